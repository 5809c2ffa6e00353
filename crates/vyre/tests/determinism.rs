//! What the static proof says about atomics, for every pair of kinds: a proof is a claim, so it may be given only where the op rows say
//! that the order does not show, and there it is.

use vyre::ir::{AtomicOp, Program};
use vyre::reference::checked::{Effort, Verdict, check};
use vyre::reference::{Options, Schedule};
use vyre::text;

/// An atomic on the one element of `out`, with operands that differ between invocations; nobody reads its result.
fn statement(op: AtomicOp) -> String {
    let operands: Vec<&str> = ["gid.x * 3", "7 - gid.x"].into_iter().take(op.info().operands.len()).collect();
    format!("atomic.{op}({})", [&["out", "0"], operands.as_slice()].concat().join(", "))
}

fn program(statements: &[String]) -> Program {
    let source = format!("program p {{\n workgroup 4\n buffer out: read_write u32[1] @0\n {}\n}}", statements.join("\n "));
    let program = text::parse("p.vyre", &source).unwrap_or_else(|report| panic!("{report}"));
    assert!(program.validated().is_ok(), "{source}");
    program
}

fn is_proven(program: &Program) -> bool {
    program.determinism().expect("it is valid").is_proven()
}

#[test]
fn two_atomics_are_proven_if_and_only_if_they_are_of_one_class_that_accumulates() {
    for a in AtomicOp::ALL {
        for b in AtomicOp::ALL {
            let program = program(&[statement(*a), statement(*b)]);
            let class = a.class().filter(|class| b.class() == Some(*class));
            match class {
                // Loads that nobody reads may be proven or not: both are true.
                Some(class) if !class.accumulates() && !class.only_if_equal() => {}
                class => {
                    let expected = class.is_some_and(|class| class.accumulates());
                    assert_eq!(is_proven(&program), expected, "{program}");
                }
            }
        }
    }
}

/// A proof of one pair on one element does not depend on which of them comes first, and holds in runs.
#[test]
fn proofs_hold_under_every_schedule_of_the_checked_mode() {
    let effort = Effort { schedules: Schedule::adversarial(), ..Effort::default() };
    let mut differs = 0;
    for a in AtomicOp::ALL {
        for b in AtomicOp::ALL {
            let program = program(&[statement(*a), statement(*b)]);
            for held in [0u32, 5, 0x8000_0000, u32::MAX] {
                let report = check(&program, &[&held.to_le_bytes()], &Options::default(), &effort).expect("it runs");
                assert!(report.verdict == Verdict::Deterministic || !is_proven(&program), "{held:#x} in\n{program}");
                differs += u32::from(report.verdict != Verdict::Deterministic);
            }
        }
    }
    assert!(differs > 0, "some orders show");
}
