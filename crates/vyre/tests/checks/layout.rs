//! What check files say about the text of a program, printed and formatted; and examples are formatted.

use libtest_mimic::{Failed, Trial};
use std::ops::Range;
use std::path::{Path, PathBuf};
use vyre::ir::Program;
use vyre::text;
use vyre_conform::checks::directive::Directive;

/// People copy examples, so each is formatted. Check files need not be: some are about other layouts.
pub fn trials(examples: &Path, files: &[PathBuf]) -> Vec<Trial> {
    let examples = files.iter().filter_map(|path| Some((path, path.strip_prefix(examples).ok()?)));
    examples
        .map(|(path, name)| {
            let path = path.clone();
            Trial::test(format!("formatted/{}", name.with_extension("").display()), move || {
                let content = std::fs::read_to_string(&path)?;
                let formatted = text::format("example", &content)?;
                if formatted == content { Ok(()) } else { Err(Failed::from(format!("formatted it is\n{formatted}"))) }
            })
        })
        .collect()
}

pub fn printed(
    directive: &Directive,
    program: &Program,
    expected: &str,
    edits: &mut Vec<(Range<usize>, Vec<String>)>,
) -> Result<(), String> {
    compare(directive, expected, &program.to_string(), edits)
}

pub fn formatted(
    directive: &Directive,
    program: &Program,
    expected: Option<&str>,
    edits: &mut Vec<(Range<usize>, Vec<String>)>,
) -> Result<(), String> {
    let source = program.source().ok_or("the program was not read from a text")?;
    let formatted = text::format(&source.name, &source.text).map_err(|report| report.to_string())?;
    match expected {
        Some(expected) => compare(directive, expected, without_head(&formatted), edits),
        // There may be space before another text in the file.
        None if formatted.trim_end() == source.text.trim_end() => Ok(()),
        None => Err(format!("formatted it is\n{formatted}")),
    }
}

/// The text without the comments above its first line.
fn without_head(text: &str) -> &str {
    let head: usize =
        text.split_inclusive('\n').take_while(|line| line.starts_with("//") || line.trim().is_empty()).map(str::len).sum();
    &text[head..]
}

fn compare(
    directive: &Directive,
    expected: &str,
    found: &str,
    edits: &mut Vec<(Range<usize>, Vec<String>)>,
) -> Result<(), String> {
    if found.trim_end() == expected.trim_end() {
        return Ok(());
    }
    edits.push((directive.lines.clone(), found.lines().map(str::to_string).collect()));
    Err(format!("expected\n{expected}\nfound\n{found}"))
}
