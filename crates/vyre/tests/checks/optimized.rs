//! What check files say about passes: the program after one, that it is left alone, which accesses are in bounds. `specialize`, which
//! is not a pass, is the program with its constants replaced by their defaults; every pass begins with that.

use vyre::analysis::Bounds;
use vyre::ir::Program;
use vyre::passes::{self, Pass};
use vyre_conform::checks::directive::{Directive, Kind};

/// The program after a pass, or after all of them.
pub fn pass(name: &str, program: &Program) -> Result<Program, String> {
    let after = match (Pass::named(name), name) {
        (Some(pass), _) => pass.apply(program),
        (None, "optimize") => passes::optimize(program),
        (None, "specialize") => vyre::specialize(program, []).map_err(|report| report.to_string())?,
        (None, _) => return Err(format!("there is no pass {name}")),
    };
    match after.validated() {
        Ok(_) => Ok(after),
        Err(report) => Err(format!("after {name} the program is not valid:\n{report}")),
    }
}

/// The program that a pass leaves alone if it changes nothing: the one it was given, but with constants replaced.
pub fn before(name: &str, program: &Program) -> Result<Program, String> {
    if name == "specialize" { Ok(program.clone()) } else { pass("specialize", program) }
}

/// What the file says about runs must hold for the program after a pass too; there, constants have no values to be given.
pub fn runs_alike(directives: &[Directive], name: &str, program: &Program) -> Result<(), String> {
    let after = pass(name, program)?;
    for directive in directives {
        if let Kind::Run(launch, _) | Kind::Trap(launch, ..) = &directive.kind
            && !launch.options.iter().any(|(key, _)| key.starts_with("const."))
        {
            crate::one(directive, &after, &mut Vec::new())
                .map_err(|problem| format!("line {}: {problem}", directive.lines.start + 1))?;
        }
    }
    Ok(())
}

/// Which accesses are proven to be in bounds, in source order.
pub fn bounds(program: &Program) -> Result<String, String> {
    let facts = Bounds::of(program.validated().map_err(ToString::to_string)?.ssa());
    let word = |proven| if proven { "proven" } else { "unproven" };
    let all: Vec<String> = facts.spelled(program).iter().map(|(access, proven)| format!("{access} {}", word(*proven))).collect();
    Ok(all.join(", "))
}

/// What [`bounds`] gives as a directive, in lines of a readable length.
pub fn bounds_lines(bounds: &str) -> Vec<String> {
    let mut lines = vec!["// bounds:".to_string()];
    for word in bounds.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 120 => *line += &format!(" {word}"),
            _ => lines.push(format!("//     {word}")),
        }
    }
    lines
}
