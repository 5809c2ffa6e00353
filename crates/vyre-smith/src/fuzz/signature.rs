//! What makes two findings the same.
//!
//! A panic is known by its place and a crash by how the process died. Any other finding is known by the kinds of ops and statements in
//! its program, which says much once the program is reduced. Types are left out: a wrong shift is wrong for all of them.

use std::collections::BTreeSet;
use vyre_foundation::ir::{Element, Expr, Item, Node, Program, Scalar, ValueType};
use vyre_worker::{Failure, Kind, Outputs};

/// The kinds of things in a program that can go wrong, as words; without what is in nearly every program. Conversions count only where
/// there is nothing else, since they are there to make types fit.
pub(super) fn features(program: &Program) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut conversions = BTreeSet::new();
    for (item, _) in program.walk() {
        let word = match item {
            Item::Expr(expr) => match expr {
                Expr::Lit(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) | Expr::Load(_) => continue,
                Expr::Unary { op, .. } => op.mnemonic().to_string(),
                Expr::Binary { op, .. } => op.mnemonic().to_string(),
                Expr::Ternary { op, .. } => op.mnemonic().to_string(),
                Expr::Cast { .. } => {
                    conversions.insert("cast".to_string());
                    continue;
                }
                Expr::Bitcast { .. } => {
                    conversions.insert("bitcast".to_string());
                    continue;
                }
                Expr::Vector { .. } | Expr::Extract { .. } => {
                    conversions.insert("vector".to_string());
                    continue;
                }
            },
            Item::Node(node) => match node {
                Node::Let { .. } | Node::Assign { .. } | Node::Store(_) | Node::Block(_) | Node::Region { .. } => continue,
                Node::Atomic(atomic) => format!("atomic.{}", atomic.op.mnemonic()),
                Node::Subgroup(subgroup) => format!("subgroup.{}", subgroup.op.mnemonic()),
                Node::If { .. } => "if".into(),
                Node::Loop(_) => "for".into(),
                Node::Break => "break".into(),
                Node::Continue => "continue".into(),
                Node::Return => "return".into(),
                Node::Barrier { .. } => "barrier".into(),
                Node::Trap { .. } => "trap".into(),
            },
        };
        found.insert(word);
    }
    for decl in program.buffers() {
        if let Element::Type(element) = &decl.element
            && element.value_type().is_none_or(|ty| match ty {
                ValueType::Vector(..) => false,
                ValueType::Scalar(scalar) => {
                    matches!(scalar, Scalar::U32 | Scalar::I32 | Scalar::F32) && element.bits() != Some(32)
                }
            })
        {
            found.insert(format!("buffer {element}"));
        }
    }
    if found.is_empty() { conversions } else { found }
}

/// What is known about a failure before its program is reduced; `None` where only the program tells.
pub(super) fn symptom(got: &Result<Outputs, Failure>) -> Option<String> {
    match got {
        Err(Failure::Panicked(message)) => Some(match message.rsplit_once(" at ") {
            Some((_, place)) => place.to_string(),
            None => without_numbers(message),
        }),
        Err(Failure::Crashed(how)) => Some(without_numbers(how)),
        Ok(_)
        | Err(
            Failure::Trap { .. }
            | Failure::Refused(_)
            | Failure::Unsupported(_)
            | Failure::OutOfFuel
            | Failure::Hung(_)
            | Failure::Device(_)
            | Failure::WildWrite { .. }
            | Failure::NotRun(_)
            | Failure::GivenUp(_),
        ) => None,
    }
}

/// The name under which a finding is counted.
pub(super) fn signature(kind: Kind, subject: &str, program: &Program, got: &Result<Outputs, Failure>) -> String {
    let what = symptom(got).unwrap_or_else(|| {
        let features: Vec<String> = features(program).into_iter().collect();
        if features.is_empty() { "loads and stores alone".into() } else { features.join(" ") }
    });
    format!("{kind}, {subject}: {what}")
}

/// Addresses and counts differ from run to run.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(' ') {
        let is_number = word.starts_with("0x") || word.starts_with(|c: char| c.is_ascii_digit());
        // The number of a signal is short, and says which it was.
        if is_number && word.trim_end().len() > 3 {
            out.push_str("# ");
        } else {
            out.push_str(word);
        }
    }
    out.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_foundation::text::parse;

    #[test]
    fn a_signature_says_what_the_program_does() {
        let text = "program p {
  workgroup 4
  buffer x: read f16 @0
  buffer y: read u32 @1
  buffer out: output u32 @2
  let a = (y[gid.x] << 3) + u32(x[gid.x])
  if a > 2 {
    out[gid.x] = a << 1
  }
}";
        let program = parse("p.vyre", text).expect("it is a program");
        let found = signature(Kind::Bytes, "bulk", &program, &Ok(vec![]));
        assert_eq!(found, "bytes, bulk: add buffer f16 gt if shl");
        let text = "program p {\n  workgroup 4\n  buffer out: output f32 @2\n  out[gid.x] = f32(bitcast<i32>(gid.x))\n}";
        let program = parse("p.vyre", text).expect("it is a program");
        assert_eq!(signature(Kind::Bytes, "bulk", &program, &Ok(vec![])), "bytes, bulk: bitcast cast");
        let text = "program p {\n  workgroup 4\n  buffer out: output u32 @2\n  out[gid.x] = 1\n}";
        let program = parse("p.vyre", text).expect("it is a program");
        assert_eq!(signature(Kind::Trap, "bulk", &program, &Ok(vec![])), "trap, bulk: loads and stores alone");
    }

    #[test]
    fn panics_and_crashes_are_known_by_what_they_say() {
        let program = Program::default();
        let panic = |message: &str| signature(Kind::Panic, "bulk", &program, &Err(Failure::Panicked(message.into())));
        assert_eq!(panic("index 7 of 3 at src/a.rs:3:4"), panic("index 9 of 1 at src/a.rs:3:4"));
        assert_ne!(panic("index 7 of 3 at src/a.rs:3:4"), panic("index 7 of 3 at src/b.rs:3:4"));
        let crash = |how: &str| symptom(&Err(Failure::Crashed(how.into())));
        assert_eq!(crash("signal 6, aborted: bad 0x55d0c1 here"), crash("signal 6, aborted: bad 0x55d0ff here"));
        assert_ne!(crash("signal 6, aborted"), crash("signal 11, bad memory access"));
    }
}
