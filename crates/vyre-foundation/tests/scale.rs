//! Texts with very many declarations or mistakes: time grows with the text, not with its square. Nothing is timed; at these sizes the
//! square would take hours.

use vyre_foundation::diagnostic::MAX_DIAGNOSTICS;
use vyre_foundation::ir::{BufferDecl, DataType, Program, SpecValue};
use vyre_foundation::launch::{LaunchConfig, inputs_by_name, plan};
use vyre_foundation::specialize::specialize;
use vyre_foundation::text;
use vyre_foundation::{Diagnostic, Report};

/// How many lines of a kind a text has.
const MANY: usize = 50_000;

/// A program of a line each for 0, 1, 2, …
fn lines(line: impl Fn(usize) -> String) -> String {
    (0..MANY).map(line).collect()
}

fn program(declarations: &str, statements: &str) -> String {
    format!("program p {{\nworkgroup 64\nbuffer out: output u32 @4000000000\n{declarations}{statements}}}\n")
}

/// Reads and checks a text, and draws what is wrong with it.
fn refused(text: &str) -> Report {
    let report = match text::parse("p", text) {
        Ok(program) => program.validated().expect_err("the text has mistakes").clone(),
        Err(report) => report,
    };
    let drawn = report.to_string();
    let places = report.source.as_ref().expect("the mistakes are in a text");
    for diagnostic in &report.diagnostics {
        let (line, _) = places.line_column(places.span(diagnostic.location.expect("a place")).start);
        assert!(line > 1 && drawn.contains(&format!("p:{line}:")), "{diagnostic:?}");
    }
    report
}

/// All have this code; so many are worked out, and all others are counted.
#[track_caller]
fn counted(text: &str, code: &str, expected: usize) -> Report {
    let report = refused(text);
    assert!(report.codes().all(|found| found.name() == code), "{report}");
    assert_eq!((report.diagnostics.len(), report.more), (MAX_DIAGNOSTICS, expected - MAX_DIAGNOSTICS), "{code}");
    assert!(report.to_string().ends_with(&format!("\n\n… and {} more", report.more)));
    report
}

fn fixes(report: &Report) -> usize {
    report.diagnostics.iter().filter(|diagnostic| diagnostic.fix.is_some()).count()
}

#[test]
fn unknown_names() {
    // Each is one edit away from many names that are known.
    let known = lines(|n| format!("let name_{n} = {n}\n"));
    let uses = lines(|n| format!("out[0] = nam_{n}\n"));
    let report = counted(&program("", &(known + &uses)), "E0201", MANY);
    assert_eq!(fixes(&report), MAX_DIAGNOSTICS);
}

#[test]
fn names_of_scopes_that_have_ended_and_names_that_are_declared_later() {
    let gone = lines(|n| format!("{{\nlet x = {n}\n}}\nout[0] = x\n"));
    counted(&program("", &gone), "E0201", MANY);
    let later = lines(|n| format!("let a{n} = x\n")) + &lines(|n| format!("{{\nlet x = {n}\n}}\n"));
    counted(&program("", &later), "E0201", MANY);
}

#[test]
fn unknown_buffers_and_constants_and_types() {
    let buffers = lines(|n| format!("buffer name_{n}: read u32 @{n}\n"));
    let report = counted(&program(&buffers, &lines(|n| format!("nam_{n}[0] = 1\n"))), "E0204", MANY);
    assert_eq!(fixes(&report), MAX_DIAGNOSTICS);
    let consts = lines(|n| format!("const name_{n}: u32 = {n}\n"));
    let sizes = consts.clone() + &lines(|n| format!("buffer b{n}: read u32[nam_{n}] @{n}\n"));
    let report = counted(&program(&sizes, ""), "E0201", MANY);
    assert_eq!(fixes(&report), MAX_DIAGNOSTICS);
    let elements = consts + &lines(|n| format!("buffer b{n}: read nam_{n} @{n}\n"));
    counted(&program(&elements, ""), "E0207", MANY);
}

#[test]
fn bindings_that_are_missing_or_taken() {
    let missing = counted(&program(&lines(|n| format!("buffer b{n}: read u32\n")), ""), "E0402", MANY);
    assert!(missing.to_string().contains("`@99`"), "each gets a suggestion of its own");
    counted(&program(&lines(|n| format!("buffer b{n}: read u32 @0\n")), ""), "E0401", MANY - 1);
}

#[test]
fn names_that_are_taken() {
    counted(&program("", &lines(|n| format!("let a = {n}\n"))), "E0202", MANY - 1);
    counted(&program(&lines(|n| format!("buffer b: read u32 @{n}\n")), ""), "E0202", MANY - 1);
    counted(&program(&lines(|n| format!("const c: u32 = {n}\n")), ""), "E0202", MANY - 1);
}

#[test]
fn mistakes_of_every_other_kind_on_each_line() {
    counted(&program("", &lines(|_| "out[0] = 1.5\n".into())), "E0304", MANY);
    counted(&program("", &lines(|_| "out[0] = 5000000000\n".into())), "E0303", MANY);
    counted(&program("", &lines(|_| "break\n".into())), "E0505", MANY);
    counted(&program("", &lines(|n| format!("if gid.x < {n} {{\nbarrier\n}}\n"))), "E0501", MANY);
    counted(&program("", &lines(|_| "let =\n".into())), "E0104", MANY);
    counted(&program("", &lines(|_| "out[0] = §\n".into())), "E0101", MANY);
    counted(&program("", &lines(|_| "out[0] = nothing(1)\n".into())), "E0205", MANY);
    counted(&program("", &format!("let a = vec({}1)\n", lines(|n| format!("q{n}, ")))), "E0201", MANY + 1);
}

#[test]
fn declarations_that_are_right() {
    let consts = lines(|n| format!("const c{n}: u32 = 1\nconst t{n}: dtype = u32\n"));
    let buffers = lines(|n| format!("buffer b{n}: read t{n}[c{n}] @{n}\n"));
    let statements = lines(|n| format!("out[c{n}] = b{n}[0] + len(b{n})\n"));
    let text = program(&(consts + &buffers), &statements);
    let read = text::parse("p", &text).unwrap_or_else(|report| panic!("{report}"));
    assert!(read.validated().is_ok());
    assert!(text::format("p", &text).is_ok());
    assert_eq!(text::parse("p", &read.to_string()), Ok(read.clone()));

    let values: Vec<(String, SpecValue)> = (0..MANY).map(|n| (format!("c{n}"), SpecValue::U32(2))).collect();
    let special = specialize(&read, values.iter().map(|(name, value)| (name.as_str(), value)));
    let special = special.unwrap_or_else(|report| panic!("{report}"));
    let bytes = [0; 8];
    let names: Vec<String> = (0..MANY).map(|n| format!("b{n}")).collect();
    let named: Vec<(&str, &[u8])> = names.iter().rev().map(|name| (name.as_str(), &bytes[..])).collect();
    let inputs = inputs_by_name(&special, &named).unwrap_or_else(|report| panic!("{report}"));
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let config = LaunchConfig { output_counts: [("out".into(), 1)].into(), ..LaunchConfig::default() };
    assert_eq!(plan(&special, &sizes, &config).map(|launch| launch.lengths.len()), Ok(MANY + 1));
}

#[test]
fn values_that_do_not_fit_the_program() {
    let consts = lines(|n| format!("const name_{n}: u32 = 1\n"));
    let buffers = lines(|n| format!("buffer in_{n}: read u32 @{n}\n"));
    let text = program(&(consts + &buffers), "");
    let read = text::parse("p", &text).unwrap_or_else(|report| panic!("{report}"));
    let value = SpecValue::U32(1);
    let names: Vec<String> = (0..MANY).map(|n| format!("nam_{n}")).collect();
    let report = specialize(&read, names.iter().map(|name| (name.as_str(), &value))).expect_err("there are no such constants");
    assert_eq!((report.diagnostics.len(), report.more), (MAX_DIAGNOSTICS, MANY - MAX_DIAGNOSTICS));
    assert!(report.to_string().len() < 100_000, "the names are not all listed each time");
    let named: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let report = inputs_by_name(&read, &named).expect_err("there are no such inputs");
    assert_eq!(report.diagnostics.len() + report.more, 2 * MANY);
    let config = LaunchConfig { output_counts: names.iter().map(|name| (name.clone(), 1)).collect(), ..LaunchConfig::default() };
    let report = plan(&read, &vec![0; MANY], &config).expect_err("there are no such outputs");
    assert_eq!(report.diagnostics.len() + report.more, MANY);
}

#[test]
fn a_program_built_by_code_is_drawn_and_counted_too() {
    let buffers = (0..MANY).map(|n| BufferDecl::read(format!("b{n}"), 0, DataType::U32)).collect();
    let program = Program::wrapped(buffers, [1, 1, 1], vec![]);
    let report = program.validated().expect_err("the bindings are the same");
    assert_eq!((report.diagnostics.len(), report.more), (MAX_DIAGNOSTICS, MANY - 1 - MAX_DIAGNOSTICS));
    assert!(report.to_string().contains("binding 0 is taken"));
    let all: Vec<Diagnostic> = report.diagnostics.iter().cloned().cycle().take(MANY).collect();
    assert_eq!(Report::about(&program, all).more, MANY - MAX_DIAGNOSTICS);
}
