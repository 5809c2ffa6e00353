//! Structured control, and what becomes of invocations that retire.
//!
//! `if` and loops stay what they are. Their results and what a loop carries are variables, which arms and iterations assign.
//!
//! **Retirement.** Without barriers `return` is `return`. With them, all invocations have to get to the end: one that retires sets a
//! flag, and is kept out of everything but what all do together. What all do together is *synchronous*: barriers, subgroup operations,
//! every `if` and loop around one, and every way out of such a loop. The rest of a synchronous region lies in blocks of the invocations that are
//! still alive; a block is a loop that runs once where something in it retires, so that `break` leaves it. Values that leave a block are variables
//! before it. Conditions of what is synchronous are asked of those alive, by a vote (`vyk_vote`), since a retired invocation has values that
//! nobody computed; so its result is known to be uniform by every compiler.

use super::{Emitter, type_name};
use crate::error::EmitError;
use vyre_foundation::ssa::{InstId, InstKind, RegionId, Ssa, Terminator, Value};

/// What is known about control before anything is written.
#[derive(Default)]
pub(super) struct Control {
    /// Invocations that retire are flagged.
    pub flagged: bool,
    /// By instruction: whether it is synchronous.
    synchronous: Vec<bool>,
    /// By instruction: whether an invocation may retire in it.
    retires: Vec<bool>,
    /// By value: the variable that holds it, if it is another's.
    aliases: Vec<Option<Value>>,
    /// Whether an invocation may have retired before this place.
    retired: bool,
    /// Loops around this place, the innermost last.
    around: Vec<Around>,
    /// Declarations of values that leave the block that is written, if one is.
    leaving: Option<String>,
}

/// A loop.
struct Around {
    /// The variables that it carries.
    carried: Vec<Value>,
    /// Where its body stands several times, each time in a `switch` that jumps leave: the variable that says that the loop ends.
    ended: Option<String>,
}

impl Control {
    pub fn of(ssa: &Ssa) -> Control {
        let mut control = Control {
            synchronous: vec![false; ssa.insts.len()],
            retires: vec![false; ssa.insts.len()],
            aliases: vec![None; ssa.values.len()],
            ..Control::default()
        };
        let root = control.look(ssa, ssa.root);
        let retires_inside = ssa.region(ssa.root).insts.iter().any(|inst| control.retires[inst.index()]);
        control.flagged = root.meets && retires_inside;
        control.jumps(ssa, ssa.root, false);
        control
    }

    /// The variable that a value is in.
    pub fn alias(&self, value: Value) -> Value {
        self.aliases.get(value.index()).copied().flatten().unwrap_or(value)
    }

    fn look(&mut self, ssa: &Ssa, region: RegionId) -> Seen {
        let end = &ssa.region(region).end;
        let mut seen = Seen { meets: false, retires: matches!(end, Terminator::Return | Terminator::Trap(_)) };
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            let mut own = Seen { meets: inst.kind.effect().is_rendezvous(), retires: false };
            for inner in inst.kind.regions() {
                let inner = self.look(ssa, inner);
                own = Seen { meets: own.meets || inner.meets, retires: own.retires || inner.retires };
            }
            self.synchronous[id.index()] = own.meets;
            self.retires[id.index()] = own.retires;
            if let InstKind::Loop { body, .. } = &inst.kind {
                // What a loop results in is what it carries when it ends.
                for (result, argument) in inst.results.iter().zip(&ssa.region(*body).args[1..]) {
                    self.aliases[result.index()] = Some(*argument);
                }
            }
            seen = Seen { meets: seen.meets || own.meets, retires: seen.retires || own.retires };
        }
        seen
    }

    /// An `if` with a way out of a synchronous loop is synchronous; gives whether the region has one.
    fn jumps(&mut self, ssa: &Ssa, region: RegionId, in_synchronous: bool) -> bool {
        let mut jumps = in_synchronous && matches!(ssa.region(region).end, Terminator::Break(_) | Terminator::Continue(_));
        for id in &ssa.region(region).insts {
            match &ssa.inst(*id).kind {
                InstKind::If { then, otherwise, .. } => {
                    let then = self.jumps(ssa, *then, in_synchronous);
                    let otherwise = self.jumps(ssa, *otherwise, in_synchronous);
                    self.synchronous[id.index()] |= then || otherwise;
                    jumps |= then || otherwise;
                }
                InstKind::Loop { body, .. } => {
                    let inside = self.synchronous[id.index()];
                    self.jumps(ssa, *body, inside);
                }
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Barrier
                | InstKind::GridSync => {}
            }
        }
        jumps
    }
}

/// What lies in a region.
struct Seen {
    /// A barrier or subgroup operation.
    meets: bool,
    /// A `return` or `trap`.
    retires: bool,
}

impl Emitter<'_> {
    /// Writes the body of the entry point.
    pub fn body(&mut self) -> Result<(), EmitError> {
        match self.control.flagged {
            true => self.synchronous_region(self.ssa.root, &[]),
            false => self.region(self.ssa.root, &[]),
        }
    }

    /// Gives a value its value.
    pub fn define(&mut self, value: Value, expression: &str) {
        let (name, ty) = (self.name(value), type_name(self.ssa.values[value.index()].ty));
        match &mut self.control.leaving {
            Some(leaving) => {
                leaving.push_str(&format!("var {name}: {ty};\n"));
                self.line(format!("{name} = {expression};"));
            }
            None => self.line(format!("let {name}: {ty} = {expression};")),
        }
    }

    /// Declares a value that is assigned later.
    pub fn declare(&mut self, value: Value) {
        let (name, ty) = (self.name(value), type_name(self.ssa.values[value.index()].ty));
        match &mut self.control.leaving {
            Some(leaving) => leaving.push_str(&format!("var {name}: {ty};\n")),
            None => self.line(format!("var {name}: {ty};")),
        }
    }

    /// Assigns values to variables, all at once.
    fn assign(&mut self, targets: &[Value], values: &[Value]) {
        let names: Vec<String> = targets.iter().map(|target| self.name(*target)).collect();
        let mut sources: Vec<String> = values.iter().map(|value| self.value(*value)).collect();
        // One that is overwritten before it is read is kept.
        for n in 1..sources.len() {
            if names[..n].contains(&sources[n]) && names[n] != sources[n] {
                let kept = self.fresh("kept");
                self.line(format!("let {kept} = {};", sources[n]));
                sources[n] = kept;
            }
        }
        for (name, source) in names.iter().zip(&sources).filter(|(name, source)| name != source) {
            self.line(format!("{name} = {source};"));
        }
    }

    /// A region whose end assigns these variables if control goes on.
    fn region(&mut self, region: RegionId, targets: &[Value]) -> Result<(), EmitError> {
        for inst in &self.ssa.region(region).insts {
            self.inst(*inst)?;
            if self.control.flagged
                && self.control.retires[inst.index()]
                && matches!(self.ssa.inst(*inst).kind, InstKind::Loop { .. })
            {
                self.line("if (!vyk_alive) { break; }");
            }
        }
        match &self.ssa.region(region).end {
            Terminator::Yield(values) => self.assign(targets, values),
            Terminator::Break(values) => self.leave(values),
            Terminator::Continue(values) => self.go_on(values),
            Terminator::Return => self.retire(None),
            Terminator::Trap(tag) => self.retire(Some(*tag)),
            Terminator::Unreachable => {}
        }
        Ok(())
    }

    fn leave(&mut self, values: &[Value]) {
        let Some(around) = self.control.around.last() else { unreachable!("a break is in a loop") };
        let (carried, ended) = (around.carried.clone(), around.ended.clone());
        self.assign(&carried, values);
        if let Some(ended) = ended {
            self.line(format!("{ended} = true;"));
        }
        self.line("break;");
    }

    fn go_on(&mut self, values: &[Value]) {
        let Some(around) = self.control.around.last() else { unreachable!("a continue is in a loop") };
        let (carried, is_once) = (around.carried.clone(), around.ended.is_none());
        self.assign(&carried, values);
        self.line(if is_once { "continue;" } else { "break;" });
    }

    fn retire(&mut self, trap: Option<u32>) {
        if let Some(tag) = trap {
            let site = self.traps.len();
            self.traps.push(tag);
            // The smallest invocation is the largest complement, and no complement is 0: there are less than 2^32 invocations.
            self.line(format!(
                "atomicMax(&vyk_traps[{site}], ~(vyk_gid.x + vyk_count.x * (vyk_gid.y + vyk_count.y * vyk_gid.z)));"
            ));
        }
        match self.control.flagged {
            true => {
                self.line("vyk_alive = false;");
                if let Some(ended) = self.control.around.last().and_then(|around| around.ended.clone()) {
                    self.line(format!("{ended} = true;"));
                }
                self.line("break;");
            }
            false => self.line("return;"),
        }
    }

    fn inst(&mut self, id: InstId) -> Result<(), EmitError> {
        let inst = self.ssa.inst(id);
        match &inst.kind {
            InstKind::Op(op) => {
                let expression = self.op(op)?;
                self.define(inst.results[0], &expression);
            }
            InstKind::Load { access, buffer, index } => {
                let expression = self.load(*access, *buffer, *index)?;
                self.define(inst.results[0], &expression);
            }
            InstKind::Store { access, buffer, index, value } => self.store(*access, *buffer, *index, *value)?,
            InstKind::Atomic { access, op, buffer, index, operands } => {
                self.atomic(*access, *op, *buffer, *index, operands, inst.results.first().copied());
            }
            InstKind::Subgroup { op, ty, operands } => self.subgroup_op(*op, *ty, operands, inst.results.first().copied())?,
            InstKind::If { cond, then, otherwise } => {
                let cond = self.value(*cond);
                self.branch(id, &cond, *then, *otherwise, false)?;
            }
            InstKind::Loop { from, to, inits, body } => self.repeat(id, [*from, *to], inits, *body, false)?,
            InstKind::Barrier => self.barrier(),
            InstKind::GridSync => unreachable!("kernels with grid barriers are refused"),
        }
        Ok(())
    }

    pub fn barrier(&mut self) {
        self.line("storageBarrier();");
        self.line("workgroupBarrier();");
    }

    /// An `if`; in one that is synchronous so are the arms.
    fn branch(
        &mut self,
        id: InstId,
        cond: &str,
        then: RegionId,
        otherwise: RegionId,
        synchronous: bool,
    ) -> Result<(), EmitError> {
        let results = &self.ssa.inst(id).results;
        results.iter().for_each(|result| self.declare(*result));
        let leaving = self.control.leaving.take();
        let before = self.control.retired;
        self.open(format!("if ({cond}) {{"));
        self.arm(then, results, synchronous)?;
        let after = std::mem::replace(&mut self.control.retired, before);
        if !self.is_empty(otherwise, results) {
            self.depth -= 1;
            self.open("} else {");
            self.arm(otherwise, results, synchronous)?;
        }
        self.control.retired |= after;
        self.close();
        self.control.leaving = leaving;
        Ok(())
    }

    fn arm(&mut self, region: RegionId, results: &[Value], synchronous: bool) -> Result<(), EmitError> {
        match synchronous {
            true => self.synchronous_region(region, results),
            false => self.region(region, results),
        }
    }

    fn is_empty(&self, region: RegionId, results: &[Value]) -> bool {
        let region = self.ssa.region(region);
        region.insts.is_empty() && results.is_empty() && region.end.is_yield()
    }

    /// A loop; in one that is synchronous so is the body.
    fn repeat(
        &mut self,
        id: InstId,
        [from, to]: [Value; 2],
        inits: &[Value],
        body: RegionId,
        synchronous: bool,
    ) -> Result<(), EmitError> {
        let arguments = &self.ssa.region(body).args;
        let (counter, carried) = (arguments[0], &arguments[1..]);
        for (argument, init) in carried.iter().zip(inits) {
            self.declare(*argument);
            let (name, init) = (self.name(*argument), self.value(*init));
            self.line(format!("{name} = {init};"));
        }
        let leaving = self.control.leaving.take();
        self.control.retired |= synchronous && self.control.retires[id.index()];
        let (i, from, to) = (self.name(counter), self.value(from), self.value(to));
        self.open("{");
        self.line(format!("var {i}: u32 = {from};"));
        match self.copies(body, synchronous) {
            1 => {
                self.control.around.push(Around { carried: carried.to_vec(), ended: None });
                self.head(&i, &to, synchronous);
                self.count_round(body, 1);
                self.arm(body, carried, synchronous)?;
                self.open("continuing {");
                self.line(format!("{i} = {i} + 1u;"));
                self.close();
                self.close();
            }
            copies => {
                let ended = self.jumps_out(body).then(|| self.fresh("ended"));
                self.control.around.push(Around { carried: carried.to_vec(), ended: ended.clone() });
                if let Some(ended) = &ended {
                    self.line(format!("var {ended} = false;"));
                }
                self.head(&i, &to, false);
                self.count_round(body, copies);
                for copy in 0..copies {
                    if copy > 0 {
                        self.line(format!("if ({i} >= {to}) {{ break; }}"));
                    }
                    self.open(if ended.is_some() { "switch (0u) { default: {" } else { "{" });
                    self.arm(body, carried, false)?;
                    self.depth -= 1;
                    self.line(if ended.is_some() { "} }" } else { "}" });
                    if let Some(ended) = &ended {
                        self.line(format!("if ({ended}) {{ break; }}"));
                    }
                    self.line(format!("{i} = {i} + 1u;"));
                }
                self.close();
            }
        }
        self.control.around.pop();
        self.close();
        self.control.leaving = leaving;
        Ok(())
    }

    /// Begins a loop that goes on while a counter is below a number.
    fn head(&mut self, i: &str, end: &str, synchronous: bool) {
        self.open("loop {");
        match synchronous && self.control.retired {
            true => {
                self.votes = true;
                self.line(format!("if (!vyk_vote(vyk_local, vyk_alive && {i} < {end})) {{ break; }}"));
            }
            false => self.line(format!("if ({i} >= {end}) {{ break; }}")),
        }
    }

    /// A region that all invocations go through together, those that have retired too.
    fn synchronous_region(&mut self, region: RegionId, targets: &[Value]) -> Result<(), EmitError> {
        let mut block = Vec::new();
        for id in &self.ssa.region(region).insts {
            if self.control.synchronous[id.index()] {
                self.block(std::mem::take(&mut block), false)?;
                self.synchronous_inst(*id)?;
            } else if self.control.retires[id.index()] {
                self.block(std::mem::take(&mut block), false)?;
                self.block(vec![*id], true)?;
                self.control.retired = true;
            } else {
                block.push(*id);
            }
        }
        self.block(block, false)?;
        match &self.ssa.region(region).end {
            Terminator::Yield(values) => self.assign(targets, values),
            Terminator::Break(values) => self.leave(values),
            Terminator::Continue(values) => self.go_on(values),
            end @ (Terminator::Return | Terminator::Trap(_)) => {
                let tag = if let Terminator::Trap(tag) = end { Some(*tag) } else { None };
                self.open("loop {");
                if self.control.retired {
                    self.line("if (!vyk_alive) { break; }");
                }
                self.retire(tag);
                self.close();
                self.control.retired = true;
            }
            Terminator::Unreachable => {}
        }
        Ok(())
    }

    /// Instructions for those that are alive.
    fn block(&mut self, insts: Vec<InstId>, retires: bool) -> Result<(), EmitError> {
        if insts.is_empty() {
            return Ok(());
        }
        if !self.control.retired && !retires {
            return insts.into_iter().try_for_each(|inst| self.inst(inst));
        }
        let leaving = self.control.leaving.replace(String::new());
        let before = std::mem::take(&mut self.text);
        match retires {
            true => {
                self.open("loop {");
                if self.control.retired {
                    self.line("if (!vyk_alive) { break; }");
                }
            }
            false => self.open("if (vyk_alive) {"),
        }
        for inst in insts {
            self.inst(inst)?;
        }
        if retires {
            self.line("break;");
        }
        self.close();
        let block = std::mem::replace(&mut self.text, before);
        let declared = std::mem::replace(&mut self.control.leaving, leaving).unwrap_or_default();
        declared.lines().for_each(|line| self.line(line));
        self.text.push_str(&block);
        Ok(())
    }

    fn synchronous_inst(&mut self, id: InstId) -> Result<(), EmitError> {
        let inst = self.ssa.inst(id);
        match &inst.kind {
            InstKind::If { cond, then, otherwise } => {
                let mut cond = self.value(*cond);
                if self.control.retired {
                    self.votes = true;
                    let vote = self.fresh("vote");
                    self.line(format!("let {vote} = vyk_vote(vyk_local, vyk_alive && {cond});"));
                    cond = vote;
                }
                self.branch(id, &cond, *then, *otherwise, true)
            }
            InstKind::Loop { from, to, inits, body } => self.repeat(id, [*from, *to], inits, *body, true),
            InstKind::Barrier | InstKind::Subgroup { .. } => self.inst(id),
            InstKind::GridSync => unreachable!("kernels with grid barriers are refused"),
            InstKind::Op(_) | InstKind::Load { .. } | InstKind::Store { .. } | InstKind::Atomic { .. } => {
                unreachable!("an instruction that waits for nobody is in a block")
            }
        }
    }
}
