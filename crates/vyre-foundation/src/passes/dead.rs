//! Dead code: what no result depends on goes.
//!
//! Whatever others can see is *live*: stores, atomics that write, subgroup operations, barriers, `return` and `trap`. So is what a live
//! instruction reads, and every `if` and loop around it, with their conditions and bounds. What an `if` yields is live if the result it
//! becomes is; what a loop is given and carries is live if its argument or its result is. `break` and `continue` make the loop they
//! end live as far as it is live for another reason: a loop that only counts has nothing to end. All else goes, also values that are
//! carried from iteration to iteration and only ever feed themselves. Every loop ends, so one without effect can go too.
//!
//! An atomic that only reads goes if nobody uses its result. Results of `if`s and arguments of loops that are not live go one by one.
//!
//! What it leaves alone: subgroup operations even if their result is unused, and barriers: they are where invocations meet.

use crate::ssa::{Def, InstId, InstKind, RegionId, Ssa, Terminator, Value};

/// The pass.
pub(super) fn dead(ssa: &mut Ssa) -> bool {
    let mut search = Search::new(ssa);
    search.find_parents(ssa.root, None);
    search.find_effects(ssa.root);
    search.spread();
    let Search { values, insts, .. } = search;
    let mut sweep = Sweep { values, insts, changed: false };
    sweep.region(ssa, ssa.root, None);
    sweep.changed
}

struct Search<'a> {
    ssa: &'a Ssa,
    /// By value and by instruction: whether it is live.
    values: Vec<bool>,
    insts: Vec<bool>,
    pending: Vec<Value>,
    /// By region: the instruction it belongs to. By instruction: the region it stands in.
    owners: Vec<Option<InstId>>,
    homes: Vec<RegionId>,
    /// By body of a loop: the regions whose terminators go on with the loop or leave it.
    ways: Vec<Vec<RegionId>>,
}

impl<'a> Search<'a> {
    fn new(ssa: &'a Ssa) -> Search<'a> {
        Search {
            ssa,
            values: vec![false; ssa.values.len()],
            insts: vec![false; ssa.insts.len()],
            pending: Vec::new(),
            owners: vec![None; ssa.regions.len()],
            homes: vec![ssa.root; ssa.insts.len()],
            ways: vec![Vec::new(); ssa.regions.len()],
        }
    }

    /// `around` is the body of the innermost loop.
    fn find_parents(&mut self, region: RegionId, around: Option<RegionId>) {
        let ssa = self.ssa;
        match ssa.region(region).end {
            Terminator::Break(_) | Terminator::Continue(_) => {
                if let Some(around) = around {
                    self.ways[around.index()].push(region);
                }
            }
            // The end of a loop body goes on with it.
            Terminator::Yield(_) if around == Some(region) => self.ways[region.index()].push(region),
            Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => {}
        }
        for id in &ssa.region(region).insts {
            self.homes[id.index()] = region;
            let kind = &ssa.inst(*id).kind;
            let is_loop = matches!(kind, InstKind::Loop { .. });
            for below in kind.regions() {
                self.owners[below.index()] = Some(*id);
                self.find_parents(below, if is_loop { Some(below) } else { around });
            }
        }
    }

    fn find_effects(&mut self, region: RegionId) {
        let ssa = self.ssa;
        for id in &ssa.region(region).insts {
            let kind = &ssa.inst(*id).kind;
            if kind.effect().has_side_effect() {
                self.mark_inst(*id);
            }
            kind.regions().for_each(|below| self.find_effects(below));
        }
        match ssa.region(region).end {
            Terminator::Return | Terminator::Trap(_) => self.mark_region(region),
            Terminator::Yield(_) | Terminator::Break(_) | Terminator::Continue(_) | Terminator::Unreachable => {}
        }
    }

    fn mark(&mut self, value: Value) {
        if !std::mem::replace(&mut self.values[value.index()], true) {
            self.pending.push(value);
        }
    }

    /// Control gets to the region only through the instruction it belongs to.
    fn mark_region(&mut self, region: RegionId) {
        if let Some(owner) = self.owners[region.index()] {
            self.mark_inst(owner);
        }
    }

    fn mark_inst(&mut self, id: InstId) {
        let ssa = self.ssa;
        if std::mem::replace(&mut self.insts[id.index()], true) {
            return;
        }
        self.mark_region(self.homes[id.index()]);
        match &ssa.inst(id).kind {
            InstKind::If { cond, .. } => self.mark(*cond),
            InstKind::Loop { from, to, body, .. } => {
                self.mark(*from);
                self.mark(*to);
                // What decides how often it runs is whatever leads to its ends.
                for n in 0..self.ways[body.index()].len() {
                    self.mark_region(self.ways[body.index()][n]);
                }
            }
            kind @ (InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync) => kind.for_each_operand(&mut |operand| self.mark(operand)),
        }
    }

    fn spread(&mut self) {
        let ssa = self.ssa;
        while let Some(value) = self.pending.pop() {
            match ssa.value(value).def {
                Def::Leaf(_) => {}
                Def::Result(id, n) => {
                    self.mark_inst(id);
                    match &ssa.inst(id).kind {
                        InstKind::If { then, otherwise, .. } => {
                            for arm in [*then, *otherwise] {
                                if let Terminator::Yield(values) = &ssa.region(arm).end {
                                    self.mark(values[n as usize]);
                                }
                            }
                        }
                        InstKind::Loop { body, .. } => self.carried(id, *body, n),
                        InstKind::Op(_)
                        | InstKind::Load { .. }
                        | InstKind::Store { .. }
                        | InstKind::Atomic { .. }
                        | InstKind::Subgroup { .. }
                        | InstKind::Barrier
                        | InstKind::GridSync => {}
                    }
                }
                Def::Argument(region, n) => {
                    let Some(id) = self.owners[region.index()] else { continue };
                    self.mark_inst(id);
                    // The first argument is the counter.
                    if let Some(n) = n.checked_sub(1) {
                        self.carried(id, region, n);
                    }
                }
            }
        }
    }

    /// The argument or the result of a loop with this number is live: both are, and what becomes them.
    fn carried(&mut self, id: InstId, body: RegionId, n: u32) {
        let ssa = self.ssa;
        let n = n as usize;
        self.mark(ssa.region(body).args[n + 1]);
        self.mark(ssa.inst(id).results[n]);
        if let InstKind::Loop { inits, .. } = &ssa.inst(id).kind {
            self.mark(inits[n]);
        }
        for way in 0..self.ways[body.index()].len() {
            let way = self.ways[body.index()][way];
            self.mark(ssa.region(way).end.values()[n]);
        }
    }
}

struct Sweep {
    values: Vec<bool>,
    insts: Vec<bool>,
    changed: bool,
}

impl Sweep {
    /// `carried` are the results of the innermost loop before any of them went.
    fn region(&mut self, ssa: &mut Ssa, id: RegionId, carried: Option<&[Value]>) {
        let mut insts = std::mem::take(&mut ssa.regions[id.index()].insts);
        let before = insts.len();
        insts.retain(|inst| self.insts[inst.index()]);
        self.changed |= insts.len() != before;
        for inst in &insts {
            self.inst(ssa, *inst, carried);
        }
        ssa.regions[id.index()].insts = insts;
        if let (Terminator::Break(values) | Terminator::Continue(values), Some(carried)) =
            (&mut ssa.regions[id.index()].end, carried)
        {
            self.keep_live(values, carried);
        }
    }

    /// Takes out of `list` what belongs to results that are not live.
    fn keep_live(&mut self, list: &mut Vec<Value>, results: &[Value]) {
        let before = list.len();
        let mut n = 0;
        list.retain(|_| {
            n += 1;
            self.values[results[n - 1].index()]
        });
        self.changed |= list.len() != before;
    }

    fn inst(&mut self, ssa: &mut Ssa, id: InstId, carried: Option<&[Value]>) {
        let results;
        match ssa.insts[id.index()].kind {
            InstKind::If { then, otherwise, .. } => {
                results = ssa.insts[id.index()].results.clone();
                for arm in [then, otherwise] {
                    self.region(ssa, arm, carried);
                    if let Terminator::Yield(values) = &mut ssa.regions[arm.index()].end {
                        self.keep_live(values, &results);
                    }
                }
            }
            InstKind::Loop { body, .. } => {
                results = ssa.insts[id.index()].results.clone();
                self.region(ssa, body, Some(&results));
                if let Terminator::Yield(values) = &mut ssa.regions[body.index()].end {
                    self.keep_live(values, &results);
                }
                if let InstKind::Loop { inits, .. } = &mut ssa.insts[id.index()].kind {
                    self.keep_live(inits, &results);
                }
                let args = &mut ssa.regions[body.index()].args;
                let mut carried = args.split_off(1);
                self.keep_live(&mut carried, &results);
                args.append(&mut carried);
                for n in 0..ssa.regions[body.index()].args.len() {
                    let arg = ssa.regions[body.index()].args[n];
                    ssa.values[arg.index()].def = Def::Argument(body, n as u32);
                }
            }
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => return,
        }
        let mut live = results.clone();
        live.retain(|result| self.values[result.index()]);
        self.changed |= live.len() != results.len();
        for (n, result) in live.iter().enumerate() {
            ssa.values[result.index()].def = Def::Result(id, n as u32);
        }
        ssa.insts[id.index()].results = live;
    }
}
