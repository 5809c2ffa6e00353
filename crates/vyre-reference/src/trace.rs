//! A run of the plain interpreter, told step by step.
//!
//! `vyre run --trace` draws it for one invocation. What is said about programs without running them is tested against it
//! (`crates/vyre-smith/tests/facts.rs`), so it says who does what in which iterations, and nothing that is worked out from it.

use crate::dispatch::Prepared;
use crate::error::RunError;
use crate::faults::hooks::Faultless;
use crate::observe::{Access, AtomicAccess, Observer};
use crate::plain::Options;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::{AccessId, ExprId, StmtId};
use vyre_foundation::specialize;
use vyre_host_floats::with_default_state;
use vyre_scalar::Value;

/// Who does something, and in which iterations.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The invocation, numbered workgroup by workgroup.
    pub invocation: u32,
    /// The loops around, the innermost last, and how many iterations of each came before this one.
    pub loops: &'a [(StmtId, u32)],
}

/// Is told what happens, in the order of the schedule.
pub trait Sink {
    /// A statement is about to be executed.
    fn statement(&mut self, at: At<'_>, stmt: StmtId);
    /// An expression was evaluated; its operands came before it.
    fn expression(&mut self, at: At<'_>, expr: ExprId, value: Value);
    /// An iteration begins; it is the innermost one of `at`.
    fn iteration(&mut self, at: At<'_>);
    /// A loop is left, by its bounds or a `break`, after this many iterations that were begun. The loop is no longer part of `at`.
    fn loop_ends(&mut self, at: At<'_>, stmt: StmtId, iterations: u32);
    /// A load, store or atomic.
    fn access(&mut self, at: At<'_>, access: AccessId, element: u32, in_bounds: bool);
    /// What an atomic found in its element, and what it left there.
    fn atomic(&mut self, _: At<'_>, _: AccessId, _old: u64, _new: u64) {}
    /// What a subgroup operation, the last statement of this invocation, gave it.
    fn exchanged(&mut self, _: At<'_>, _: Value) {}
    /// All invocations of a workgroup that are not retired go on together.
    fn barrier(&mut self, workgroup: u32);
    /// All workgroups go on together.
    fn grid_barrier(&mut self);
}

/// Runs a program as [`crate::run`] does. Statements, expressions and accesses are numbered as in the kernel of the program with its
/// constants replaced.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options, sink: &mut impl Sink) -> Result<Vec<Vec<u8>>, RunError> {
    with_default_state(|| {
        let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
        let program = specialize(program, values)?;
        let mut prepared = Prepared::new(&program, inputs, options)?;
        let storage = std::mem::take(&mut prepared.storage);
        let mut tracer = Tracer {
            sink,
            per_workgroup: prepared.shape.group_invocations(),
            invocation: 0,
            slots: Vec::new(),
            loops: Vec::new(),
        };
        prepared.run(storage, &options.schedule, &mut options.fuel(), &mut tracer, &Faultless)
    })
}

struct Tracer<'a, S> {
    sink: &'a mut S,
    per_workgroup: u32,
    /// Whose turn it is.
    invocation: u32,
    /// By slot: the workgroup in it.
    slots: Vec<u32>,
    /// By invocation: the loops it is in.
    loops: Vec<Vec<(StmtId, u32)>>,
}

impl<S: Sink> Tracer<'_, S> {
    /// The sink, and who is acting.
    fn told(&mut self) -> (&mut S, At<'_>) {
        let loops = self.loops.get(self.invocation as usize).map_or(&[][..], |loops| loops);
        (self.sink, At { invocation: self.invocation, loops })
    }

    fn access(&mut self, access: Access, in_bounds: bool) {
        let (sink, at) = self.told();
        sink.access(at, access.id, access.element, in_bounds);
    }
}

impl<S: Sink> Observer for Tracer<'_, S> {
    fn group_starts(&mut self, _: usize) {}

    fn barrier(&mut self, slot: usize) {
        self.sink.barrier(self.slots[slot]);
    }

    fn grid_sync(&mut self) {
        self.sink.grid_barrier();
    }

    fn turn(&mut self, slot: usize, invocation: u32) {
        self.invocation = invocation;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] = invocation / self.per_workgroup;
        if self.loops.len() <= invocation as usize {
            self.loops.resize(invocation as usize + 1, Vec::new());
        }
    }

    fn load(&mut self, access: Access) {
        self.access(access, true);
    }

    fn store(&mut self, access: Access, _: impl FnOnce() -> bool) {
        self.access(access, true);
    }

    fn atomic(&mut self, access: Access, atomic: AtomicAccess) {
        self.access(access, true);
        let (sink, at) = self.told();
        sink.atomic(at, access.id, atomic.old, atomic.new);
    }

    fn out_of_bounds(&mut self, access: Access) {
        self.access(access, false);
    }

    fn statement(&mut self, stmt: StmtId) {
        let (sink, at) = self.told();
        sink.statement(at, stmt);
    }

    fn expression(&mut self, expr: ExprId, value: impl Into<Value>) {
        let (sink, at) = self.told();
        sink.expression(at, expr, value.into());
    }

    fn exchanged(&mut self, value: impl Into<Value>) {
        let (sink, at) = self.told();
        sink.exchanged(at, value.into());
    }

    fn iteration(&mut self, stmt: StmtId, is_first: bool) {
        let loops = &mut self.loops[self.invocation as usize];
        match loops.last_mut() {
            Some((_, ordinal)) if !is_first => *ordinal += 1,
            Some(_) | None => loops.push((stmt, 0)),
        }
        let (sink, at) = self.told();
        sink.iteration(at);
    }

    fn loop_ends(&mut self, stmt: StmtId) {
        // A loop that had no iteration is not among them, and cannot be inside itself.
        let iterations = match self.loops[self.invocation as usize].pop_if(|(last, _)| *last == stmt) {
            Some((_, ordinal)) => ordinal + 1,
            None => 0,
        };
        let (sink, at) = self.told();
        sink.loop_ends(at, stmt, iterations);
    }
}
