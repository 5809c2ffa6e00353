//! Passes: the same bytes with less work, on the SSA form.
//!
//! [`PASSES`] is the list, in the order in which [`Ssa::optimize`] runs them, again and again until nothing changes. Each pass is useful
//! by itself, may be left out, and is described on top of its file: what it does, why that is right, what it leaves alone.
//! [`optimize`] is the same for a program: it replaces constants by their defaults, makes the form, runs the passes and writes the
//! result back. A program that is not valid, or that the passes have nothing to say about, comes back as it is.
//!
//! **What "the same bytes" asks for.** A dispatch without data races gives exactly what it gave before: outputs, or the tag and
//! invocation of a trap. A load of memory that can be written holds its value until this invocation writes the buffer or meets
//! others at a barrier or subgroup operation; between those, what others write to the element would be a race. Loads of `read` and
//! `uniform` buffers never change. A dispatch with races stays memory-safe, and may give other bytes, as on any device.
//!
//! **What may change.** How many steps a run takes, where statements are (so a trap is reported at another place), scopes and names.
//! What is *asked of a program before it runs* may change too, always towards more: code that is gone needs no uniform control, no
//! proof of determinism, no local ids. Launches are therefore planned, and determinism is told, for the program as its author wrote
//! it.
//!
//! **What never changes.** Buffers, workgroup size, attributes, the name of the root region, and whether there is one.
//!
//! **Effects.** What a pass may remove or move it asks the instruction's [`Effect`](crate::kernel::Effect), which comes from the op's
//! row; it never lists ops to decide what is safe. What an op *computes* is asked of `vyre-scalar`, so that folding cannot disagree
//! with running.
//!
//! **Cost.** Each pass walks the form once. Repetitions are bounded by [`MAX_REPETITIONS`].

mod common;
mod control;
mod dead;
mod fold;

use crate::ir::Program;
use crate::ssa::Ssa;
use vyre_host_floats::with_default_state;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What people call it: in `vyre emit --passes`, in check files.
    pub name: &'static str,
    /// The pass itself; gives whether it changed anything. [`Pass::run_on`] calls it.
    run: fn(&mut Ssa) -> bool,
}

/// Every pass, in the order in which they run.
///
/// Dead code goes before common subexpressions are looked for: a value that nobody uses must not become the first of its kind, which
/// those behind it are replaced by. Looking for them leaves no dead code behind: what computed the same used the same.
pub const PASSES: &[Pass] = &[
    Pass { name: "fold", run: fold::fold },
    Pass { name: "control", run: control::control },
    Pass { name: "dead", run: dead::dead },
    Pass { name: "common", run: common::common },
];

/// How often the list is run at most. Nearly all programs are done after two or three times, the last of which finds nothing. A chain
/// of branches each of which is decided by the one before takes one time per link; what is left after this many stays.
pub const MAX_REPETITIONS: u32 = 16;

impl Pass {
    /// The pass of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Pass> {
        PASSES.iter().find(|pass| pass.name == name)
    }

    /// Runs the pass on a form; gives whether it changed anything. In debug builds the result is verified.
    pub fn run_on(&self, ssa: &mut Ssa) -> bool {
        let changed = with_default_state(|| (self.run)(ssa));
        if cfg!(debug_assertions)
            && let Err(broken) = ssa.verify()
        {
            panic!("the pass {} breaks the form: {broken}\n{ssa}", self.name);
        }
        changed
    }

    /// The program after this pass alone.
    #[must_use]
    pub fn apply(&self, program: &Program) -> Program {
        on_program(program, |ssa| self.run_on(ssa))
    }
}

impl Ssa {
    /// Runs all passes until nothing changes; gives whether anything did.
    pub fn optimize(&mut self) -> bool {
        let mut any = false;
        for _ in 0..MAX_REPETITIONS {
            let mut again = false;
            for pass in PASSES {
                again |= pass.run_on(self);
            }
            any |= again;
            if !again {
                break;
            }
        }
        any
    }
}

/// The program after all passes. Constants that are still in it take their defaults: specialize it before.
#[must_use]
pub fn optimize(program: &Program) -> Program {
    on_program(program, Ssa::optimize)
}

fn on_program(program: &Program, change: impl FnOnce(&mut Ssa) -> bool) -> Program {
    // Without values there is nothing that could be wrong with them.
    let Ok(program) = crate::specialize(program, []) else { return program.clone() };
    let Ok(validated) = program.validated() else { return program };
    let mut ssa = validated.ssa().clone();
    if !change(&mut ssa) {
        return program;
    }
    let written = ssa.to_program(&program);
    if cfg!(debug_assertions)
        && let Err(report) = written.validated()
    {
        panic!("a program that passes made is not valid\n{report}\nof\n{program}\nby\n{ssa}");
    }
    written
}
