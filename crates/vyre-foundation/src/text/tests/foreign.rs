//! What is told about texts in other languages: the files in `checks/foreign` say every message, and each mistake has one.
//!
//! With `VYRE_BLESS=1` the messages in the files are rewritten.

use crate::diagnostic::{Diagnostic, Fix, Report};
use crate::text::parse;
use std::path::PathBuf;

fn report(text: &str) -> Report {
    match parse("foreign.vyre", text) {
        Ok(program) => program.validated().map(|_| ()).expect_err("there are mistakes").clone(),
        Err(report) => report,
    }
}

/// A mistake as the files say it.
fn said(report: &Report, mistake: &Diagnostic) -> String {
    let source = report.source.as_ref().expect("a text");
    let (line, column) = source.line_column(mistake.location.map(|location| source.span(location)).unwrap_or_default().start);
    let new = match &mistake.fix {
        Some(Fix::Replace(_, new)) if !new.is_empty() => format!(": {new}"),
        Some(Fix::Wrap(location, before, after)) => {
            let span = source.span(*location);
            format!(": {before}{}{after}", &source.text[span.start as usize..span.end as usize])
        }
        Some(Fix::InsertAfter(_, new)) => format!(": {new}"),
        Some(Fix::Replace(..)) | None => String::new(),
    };
    let help = mistake.help.as_ref().map(|help| format!(" ({help}{new})")).unwrap_or_default();
    let whole = format!("// error: {} at {line}:{column}, {}{help}", mistake.code, mistake.message);
    whole.replace("\n  ", " / ").replace('\n', " / ")
}

#[test]
fn every_mistake_is_told_once_with_what_to_write() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../checks/foreign");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("the folder is there").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let (mut wrong, mut told) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let is_directive = |line: &&str| line.starts_with("// error: ");
        let expected: Vec<&str> = text.lines().filter(is_directive).collect();
        // The places in the blessed file are behind so many lines as there will be directives.
        let report = report(&text);
        let found: Vec<String> = report.diagnostics.iter().map(|mistake| said(&report, mistake)).collect();
        told += found.len();
        if found == expected {
            continue;
        }
        wrong.push(format!("{}:\n{}", file.display(), found.join("\n")));
        if std::env::var_os("VYRE_BLESS").is_some() {
            let rest: Vec<&str> = text.lines().filter(|line| !is_directive(line)).collect();
            let with = |lines: &[String]| {
                let (first, others) = rest.split_at(1);
                let lines = lines.iter().map(String::as_str);
                first.iter().copied().chain(lines).chain(others.iter().copied()).collect::<Vec<_>>().join("\n") + "\n"
            };
            // Once for the number of lines, once for the places in them.
            let moved = with(&found);
            let report = self::report(&moved);
            let found: Vec<String> = report.diagnostics.iter().map(|mistake| said(&report, mistake)).collect();
            std::fs::write(&file, with(&found)).expect("the file can be written");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(told >= 100, "{told}");
}
