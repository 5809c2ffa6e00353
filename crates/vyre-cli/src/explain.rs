//! `vyre explain`: what an error code means, with an example that is wrong and one that is right.
//!
//! The text is the page docs/errors.md, a section per code. Its programs and commands are run by `tests/explain.rs`.

use crate::{Failure, Style, print};
use serde_json::{Value, json};
use std::fmt::Write;
use vyre::spec::ErrorCode;

/// Explain error codes, each with an example that is wrong and one that is right.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  vyre explain E0301        what `error[E0301]` means
  vyre explain              every code in a line
  vyre explain barrier      the codes that are about barriers")]
pub struct Args {
    /// Codes such as E0301, or a word to look for; without any, every code in a line
    #[arg(value_name = "CODE|WORD")]
    codes: Vec<String>,
    /// One JSON object per code
    #[arg(long)]
    pub json: bool,
}

const PAGE: &str = include_str!("../../../docs/errors.md");

/// What the page says about a code.
struct Section {
    code: ErrorCode,
    text: String,
    wrong: Vec<Block>,
    right: Vec<Block>,
}

/// An example or a part of it.
struct Block {
    language: &'static str,
    text: String,
}

pub fn explain(args: &Args) -> Result<(), Failure> {
    if args.codes.is_empty() {
        return list(ErrorCode::ALL.iter().copied(), args.json);
    }
    let mut shown = Vec::new();
    for word in &args.codes {
        match code(word) {
            Some(code) => shown.push(code),
            None => {
                let word = word.to_lowercase();
                let found: Vec<ErrorCode> =
                    ErrorCode::ALL.iter().copied().filter(|code| code.title().to_lowercase().contains(&word)).collect();
                match found.as_slice() {
                    [] => {
                        return Err(Failure::Usage(format!(
                            "there is no error code `{word}`, and no code is about that word; `vyre explain` lists all codes"
                        )));
                    }
                    [only] => shown.push(*only),
                    several => list(several.iter().copied(), args.json)?,
                }
            }
        }
    }
    for (n, code) in shown.into_iter().enumerate() {
        let section = section(code);
        match args.json {
            true => print(&format!("{}\n", section.json())),
            false => print(&format!("{}{}", if n > 0 { "\n" } else { "" }, section.drawn(Style::of_stdout()))),
        }
    }
    Ok(())
}

fn list(codes: impl Iterator<Item = ErrorCode>, as_json: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for code in codes {
        let _ = match as_json {
            true => writeln!(text, "{}", json!({ "code": code.name(), "title": code.title() })),
            false => writeln!(text, "{code}  {}", code.title()),
        };
    }
    print(&text);
    Ok(())
}

/// The code that a person means: `E0301`, `e301`, `error[E0301]`, and `301` if it is an error.
fn code(word: &str) -> Option<ErrorCode> {
    let word = word.trim().to_ascii_uppercase();
    let inner = word.split_once('[').map_or(word.as_str(), |(_, rest)| rest).trim_end_matches([']', ':']);
    let (kind, digits) = match inner.strip_prefix(['E', 'W']) {
        Some(digits) => (&inner[..1], digits),
        None => ("E", inner),
    };
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    ErrorCode::from_name(&format!("{kind}{digits:0>4}"))
}

/// The section of the page about a code.
fn section(code: ErrorCode) -> Section {
    let heading = format!("\n## {code}: ");
    let start = PAGE.find(&heading).expect("the page has a section for every code: tests/explain.rs");
    let rest = &PAGE[start + heading.len()..];
    let section = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
    let body = section.split_once('\n').map_or("", |(_, body)| body);
    let (text, examples) = body.split_once("\nWrong:\n").unwrap_or((body, ""));
    let (wrong, right) = examples.split_once("\nRight:\n").unwrap_or((examples, ""));
    Section { code, text: text.trim().replace('\n', " "), wrong: blocks(wrong), right: blocks(right) }
}

fn blocks(text: &'static str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap_or((block, ""));
        let language = language.split(',').next().unwrap_or(language);
        blocks.push(Block { language, text: text.trim_end().into() });
    }
    blocks
}

impl Section {
    fn json(&self) -> Value {
        let blocks = |blocks: &[Block]| -> Value {
            blocks.iter().map(|block| json!({ "language": block.language, "text": block.text })).collect()
        };
        json!({
            "code": self.code.name(),
            "title": self.code.title(),
            "explanation": self.text,
            "wrong": blocks(&self.wrong),
            "right": blocks(&self.right),
        })
    }

    fn drawn(&self, style: Style) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}: {}\n", style.strong(self.code.name()), style.strong(self.code.title()));
        let _ = writeln!(out, "{}", style.wrap(&self.text));
        for (word, blocks) in [(style.bad("wrong:"), &self.wrong), (style.good("right:"), &self.right)] {
            let _ = writeln!(out, "\n{word}");
            for block in blocks {
                out.push('\n');
                for line in block.text.lines() {
                    let prompt = if block.language == "sh" { "$ " } else { "" };
                    let _ = writeln!(out, "{}", format!("    {prompt}{line}").trim_end());
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_as_people_write_them() {
        for word in ["E0301", "e0301", "E301", "301", "0301", " E0301 ", "error[E0301]:", "[E0301]"] {
            assert_eq!(code(word), Some(ErrorCode::E0301), "{word}");
        }
        assert_eq!(code("warning[W0501]"), Some(ErrorCode::W0501));
        for word in ["", "E", "E9999", "E03010", "barrier", "é", "[", "E-301"] {
            assert_eq!(code(word), None, "{word}");
        }
    }

    #[test]
    fn every_code_has_a_section_with_both_examples() {
        let headings: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let wanted: Vec<String> = ErrorCode::ALL.iter().map(|code| format!("{code}: {}", code.title())).collect();
        assert_eq!(headings, wanted);
        for code in ErrorCode::ALL {
            let section = section(*code);
            assert!(!section.text.is_empty() && !section.text.contains("```"), "{code}");
            assert!(!section.wrong.is_empty() && !section.right.is_empty(), "{code}");
        }
    }
}
