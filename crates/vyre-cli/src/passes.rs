//! `vyre check --passes`: the program after each pass, and which accesses of the result are in bounds.

use crate::Failure;
use serde_json::{Value, json};
use std::fmt::Write;
use vyre::analysis::Bounds;
use vyre::ir::Program;
use vyre::passes::optimize_with;

/// The program after every pass that changed it, by name, and the accesses of the last one.
struct Story {
    steps: Vec<(&'static str, Program)>,
    accesses: Vec<(String, bool)>,
}

fn story(program: &Program) -> Result<Story, Failure> {
    let mut steps = Vec::new();
    let after = optimize_with(program, |pass, after| steps.push((pass.name, after.clone())));
    let accesses = Bounds::of(after.validated().map_err(Clone::clone)?.ssa()).spelled(&after);
    Ok(Story { steps, accesses })
}

/// For people, as text that is a kernel and comments.
pub fn shown(program: &Program) -> Result<String, Failure> {
    let story = story(program)?;
    let mut out = String::new();
    for (name, after) in &story.steps {
        let _ = write!(out, "\n// after {name}\n{after}");
    }
    if story.steps.is_empty() {
        out.push_str("\n// no pass changes it\n");
    }
    for (proven, title) in [(true, "in bounds"), (false, "not proven")] {
        let accesses: Vec<&str> =
            story.accesses.iter().filter(|access| access.1 == proven).map(|access| access.0.as_str()).collect();
        if !accesses.is_empty() {
            let _ = writeln!(out, "// {title}: {}", accesses.join(", "));
        }
    }
    Ok(out)
}

/// For programs.
pub fn described(program: &Program) -> Result<Value, Failure> {
    let story = story(program)?;
    let steps: Vec<Value> =
        story.steps.iter().map(|(name, after)| json!({ "pass": name, "program": after.to_string() })).collect();
    let accesses: Vec<Value> =
        story.accesses.iter().map(|(access, proven)| json!({ "access": access, "in_bounds": proven })).collect();
    Ok(json!({ "steps": steps, "accesses": accesses }))
}
