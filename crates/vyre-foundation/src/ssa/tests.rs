//! Forms of small programs, by hand.

use super::Ssa;
use crate::ir::Program;

fn parsed(text: &str) -> Program {
    crate::text::parse("test", text).unwrap_or_else(|report| panic!("{report}"))
}

fn form(text: &str) -> (Program, Ssa) {
    let program = parsed(text);
    let ssa = program.validated().unwrap_or_else(|report| panic!("{report}")).ssa().clone();
    ssa.verify().unwrap_or_else(|broken| panic!("{broken}\n{ssa}"));
    (program, ssa)
}

/// What comes back of a program that is made into SSA and written down again.
fn written(text: &str) -> String {
    let (program, ssa) = form(text);
    let written = ssa.to_program(&program);
    if let Err(report) = written.validated() {
        panic!("{report}\n{ssa}");
    }
    written.to_string()
}

#[test]
fn variables_that_change_come_back_as_they_were() {
    let text = "\
program p {
  workgroup 64
  buffer x: read u32 @0
  buffer out: output u32 @1

  let sum = 0
  for k in 0..8 {
    if x[k] > 3 {
      sum = sum + x[k]
    } else if x[k] == 0 {
      break
    }
  }
  out[gid.x] = sum
}
";
    assert_eq!(written(text), text);
}

#[test]
fn values_that_change_places_are_kept_apart() {
    let text = "\
program p {
  workgroup 64
  buffer out: output u32 @0

  let a = gid.x
  let b = 1
  for k in 0..8 {
    let c = a
    a = b
    b = c
  }
  out[gid.x] = a - b
}
";
    let after = "\
  for k in 0..8 {
    let t0 = b
    b = a
    a = t0
  }
";
    let back = written(text);
    assert!(back.contains(after), "{back}");
}

#[test]
fn the_form_is_shown() {
    let (_, ssa) = form(
        "program p {\n  workgroup 64\n  buffer x: read u32 @0\n  buffer out: output u32 @1\n\n  let s = 0\n  for k in 0..len(x) {\n    \
         s = s + x[k]\n  }\n  if s > 5 {\n    out[gid.x] = s\n  }\n}\n",
    );
    assert_eq!(
        ssa.to_string(),
        "workgroup 64 1 1\nbuffer x: read u32 @0\nbuffer out: output u32 @1\n  %s.6: u32 = loop %k.2 from 0u to len(x) with %s.3 = 0u {\n    \
         %4: u32 = load #0 x[%k.2]\n    %s.5: u32 = add %s.3, %4\n    yield %s.5\n  }\n  %8: bool = gt %s.6, 5u\n  if %8 {\n    \
         store #1 out[gid.x] = %s.6\n  }\n"
    );
}
