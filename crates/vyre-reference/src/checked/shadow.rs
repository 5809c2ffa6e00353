//! Shadow memory: for every element that can be written, who has touched it since the last barrier, and how.
//!
//! **Epochs.** A barrier separates what a workgroup does before and after it, a grid barrier what everybody does. Each stretch of a
//! workgroup between two barriers gets a *stamp*, a number that is never used again, so one comparison of numbers tells whether two
//! accesses are ordered: those of one invocation are; those of one workgroup are if their stamps differ; those of two workgroups are
//! if a grid barrier lies between them, that is if the older stamp is from before it. Workgroup memory of a workgroup that is gone,
//! and storage from before a grid barrier, is recognised by its stamp and never has to be cleared. Subgroup operations order nothing.
//!
//! **What is kept.** Most elements belong to one invocation per epoch: a [`Cell`] holds that one's first access of each kind.
//! When a second one comes the cell gets a [`History`]: two accesses of each kind. Two are enough to find *some* conflict whenever
//! there is one: two of different workgroups conflict with an access from anywhere, two of different invocations in the current
//! epoch with any other access from their workgroup, and which of two invocations is named does not matter.
//!
//! **Equal values.** That all stores of an epoch write one value is known without keeping it: each must find what it writes already
//! in memory, except for the first. To name two stores that differ, the last one of another value is kept.
//!
//! **What it proves.** If a run has no race and no two unordered atomics whose order may show ([`Shadow::contended`]), every schedule
//! gives its bytes. For consider the first step, in some other schedule, that differs from the same invocation's step in this run.
//! It read something else. Nobody else writes, in that epoch, what it reads without an atomic, and of atomics it reads no result
//! that others affect, so what it read was settled before the epoch began, by steps that do not differ.

use super::commute::Class;
use super::finding::{AccessSite, Finding, Kind};
use crate::dispatch::{Prepared, Shape};
use crate::observe::{Access, AtomicAccess, Observer};
use crate::schedule::Schedule;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hasher};
use vyre_foundation::ir;
use vyre_foundation::kernel::{AccessId, AccessKind, ExprKind, Kernel};
use vyre_spec::AtomicClass;

/// What is known about one element.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// The epoch of the last access; 0 if there was none.
    stamp: u32,
    /// Who accessed it, if it is not shared.
    invocation: u32,
    /// By kind of access: the number of the first, of stores that of the last.
    accesses: [u32; 4],
    /// The number of the last store of another value, if stores differ.
    overwritten: u32,
    /// By kind of access: whether there was any; a bit each.
    kinds: u8,
    /// Whether something was written since it was zero.
    written: bool,
    /// Whether its stores differ, if it is not shared.
    mixed: bool,
    /// The class of its atomics and of the first of those that change it, if it is not shared.
    class: Class,
    first_class: Class,
    /// Whether several invocations, or one in several epochs, have accessed it: then the history has the details.
    shared: bool,
    /// What does not change the history any more, until the epoch ends.
    settled: Settled,
    /// The number of its history plus 1.
    history: u32,
}

/// Accesses that are known to conflict with nothing in this epoch and need not be kept.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Settled {
    #[default]
    No,
    Loads,
    Atomics(Class),
}

/// One access that is remembered.
#[derive(Clone, Copy, Default)]
struct Record {
    stamp: u32,
    invocation: u32,
    access: u32,
    class: Class,
}

/// The accesses to an element that was touched by several invocations, all of them within the scope of the last: when that ends, the
/// cell forgets it.
#[derive(Clone, Copy, Default)]
struct History {
    /// By kind of access.
    kept: [[Record; 2]; 4],
    /// The store whose value is in memory.
    last_store: Record,
    /// The last store of another value.
    overwritten: Record,
    /// Of this epoch, and since the last grid barrier.
    atomics: [Class; 2],
    /// Whether stores differ: in this epoch, and since the last grid barrier.
    mixed: [bool; 2],
}

/// Indices into the pairs of [`History`].
const EPOCH: usize = 0;
const GRID: usize = 1;

const KINDS: [AccessKind; 4] = [AccessKind::Load, AccessKind::Store, AccessKind::AtomicLoad, AccessKind::Atomic];

/// What an access conflicts with: one of the two writes, and not both are atomic.
fn conflicts(how: AccessKind) -> &'static [AccessKind] {
    match how {
        AccessKind::Load => &[AccessKind::Store, AccessKind::Atomic],
        AccessKind::Store => &[AccessKind::Store, AccessKind::Load, AccessKind::Atomic, AccessKind::AtomicLoad],
        AccessKind::AtomicLoad => &[AccessKind::Store],
        AccessKind::Atomic => &[AccessKind::Store, AccessKind::Load],
    }
}

/// The invocation whose turn it is.
#[derive(Clone, Copy, Default)]
struct Now {
    invocation: u32,
    group: u32,
    /// Its epoch.
    stamp: u32,
    /// The epoch in which its workgroup's memory was zero.
    start: u32,
    /// The first of the cells of its workgroup's memory.
    first_local: usize,
}

struct BufferFacts {
    /// In the memory of a workgroup; else in storage.
    local: bool,
    /// Elements of 32 bits or more, where equal stores are no race.
    wide: bool,
    /// Whether it begins as zero.
    zeroed: bool,
    /// Its table of cells.
    table: usize,
}

/// What was touched, by whom and how.
pub(crate) struct Shadow<'k> {
    buffers: Vec<BufferFacts>,
    /// By table; empty for buffers that nobody can write.
    storage: Vec<Vec<Cell>>,
    /// Elements of each buffer in workgroup memory.
    local_lengths: Vec<usize>,
    /// By slot, then table.
    local: Vec<Vec<Cell>>,
    histories: Vec<History>,
    now: Now,
    /// By slot: the current epoch, and the one in which the workgroup's memory was zero.
    slots: Vec<(u32, u32)>,
    next_stamp: u32,
    /// The first epoch of this run, and the first since the last grid barrier.
    run_start: u32,
    grid_start: u32,
    /// Invocations of a workgroup.
    group_size: u32,
    /// By variable: whether anybody reads it.
    read: Vec<bool>,
    /// By access: a sum over the results of an atomic that somebody reads, which does not depend on their order.
    results: Vec<u64>,
    notes: Notes<'k>,
}

/// Findings, each once.
struct Notes<'k> {
    kernel: &'k Kernel,
    shape: &'k Shape,
    schedule: Schedule,
    /// The number of the run.
    run: u32,
    /// By kind and accesses: the number of the finding, and the run that it was first seen in.
    known: HashMap<(Kind, u32, u32), (usize, u32), Quick>,
    findings: Vec<Finding>,
    /// Pairs of atomics that do not commute.
    contentions: Vec<Finding>,
    /// A pair of atomics on an element with others that do not commute.
    doubtful: Option<Finding>,
    racy: bool,
}

/// Hashes of numbers, which nobody chooses in order to make them collide.
#[derive(Clone, Copy, Default)]
struct Quick;

impl BuildHasher for Quick {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher(0)
    }
}

struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

/// Two runs at least fit in between two times that stamps begin again.
const MAX_STAMP: u32 = 1 << 31;

/// The steps of one run that stamps are enough for.
pub(crate) const MAX_FUEL: u64 = (1 << 31) - 1;

/// The bytes of shadow memory of a dispatch: a cell per element that can be written, of workgroup memory for every workgroup that is
/// there at the same time. What elements that several invocations touch take beside that is not known before.
pub(crate) fn bytes(prepared: &Prepared<'_>) -> u64 {
    let kernel = prepared.kernel;
    let at_once = if kernel.uses.grid_sync { u64::from(prepared.shape.groups()) } else { 1 };
    let elements = kernel.buffers.iter().zip(&prepared.shape.lengths).map(|(buffer, length)| {
        let tables = match buffer.access {
            ir::Access::Read | ir::Access::Uniform => 0,
            ir::Access::ReadWrite | ir::Access::Output => 1,
            ir::Access::Workgroup => at_once,
        };
        tables.saturating_mul(u64::from(*length))
    });
    elements.fold(0u64, u64::saturating_add).saturating_mul(size_of::<Cell>() as u64)
}

impl<'k> Shadow<'k> {
    pub fn new(prepared: &'k Prepared<'_>) -> Self {
        let kernel = prepared.kernel;
        let mut read = vec![false; kernel.vars.len()];
        for expr in &kernel.exprs {
            if let ExprKind::Var { var } = expr.kind {
                read[var.index()] = true;
            }
        }
        let (mut buffers, mut storage, mut local_lengths) = (Vec::new(), Vec::new(), Vec::new());
        for (buffer, length) in kernel.buffers.iter().zip(&prepared.shape.lengths) {
            let local = buffer.access == ir::Access::Workgroup;
            let length = if buffer.access.is_writable() { *length as usize } else { 0 };
            buffers.push(BufferFacts {
                local,
                wide: buffer.element.bits().is_some_and(|bits| bits >= 32),
                zeroed: local || buffer.access == ir::Access::Output,
                table: if local { local_lengths.len() } else { storage.len() },
            });
            if local { local_lengths.push(length) } else { storage.push(vec![Cell::default(); length]) }
        }
        let notes = Notes {
            kernel,
            shape: &prepared.shape,
            schedule: Schedule::Forward,
            run: 0,
            known: HashMap::default(),
            findings: Vec::new(),
            contentions: Vec::new(),
            doubtful: None,
            racy: false,
        };
        Shadow {
            buffers,
            storage,
            local_lengths,
            local: Vec::new(),
            histories: Vec::new(),
            now: Now::default(),
            slots: Vec::new(),
            next_stamp: 1,
            run_start: 1,
            grid_start: 1,
            group_size: prepared.shape.group_invocations(),
            read,
            results: vec![0; kernel.accesses.len()],
            notes,
        }
    }

    /// Begins another run; findings are kept.
    pub fn begin(&mut self, schedule: &Schedule) {
        if self.next_stamp >= MAX_STAMP {
            self.storage.iter_mut().chain(&mut self.local).for_each(|cells| cells.fill(Cell::default()));
            self.histories.clear();
            self.next_stamp = 1;
        }
        self.run_start = self.next_stamp;
        self.grid_start = self.next_stamp;
        self.results.fill(0);
        self.notes.schedule = schedule.clone();
        self.notes.run += 1;
    }

    /// Whether there was a race.
    pub fn racy(&self) -> bool {
        self.notes.racy
    }

    /// Whether there were atomics whose order may show.
    pub fn contended(&self) -> bool {
        self.contentions().next().is_some()
    }

    /// All findings so far.
    pub fn findings(&mut self) -> &mut Vec<Finding> {
        &mut self.notes.findings
    }

    /// Pairs of atomics whose order may show, in the order in which they were seen.
    pub fn contentions(&self) -> impl Iterator<Item = &Finding> {
        self.notes.contentions.iter().chain(&self.notes.doubtful)
    }

    /// By access: a sum over the results of an atomic in this run.
    pub fn results(&self) -> &[u64] {
        &self.results
    }

    /// The epoch that a workgroup is in and the first since the last grid barrier, counted from the start of the run.
    pub fn epoch(&self, slot: usize) -> (u32, u32) {
        (self.slots[slot].0 - self.run_start, self.grid_start - self.run_start)
    }

    /// Whether the result of an atomic is read by anybody.
    pub fn observes(&self, result: Option<vyre_foundation::kernel::VarId>) -> bool {
        result.is_some_and(|var| self.read[var.index()])
    }

    fn new_stamp(&mut self) -> u32 {
        self.next_stamp += 1;
        self.next_stamp - 1
    }

    #[inline]
    fn touch(&mut self, access: Access, how: AccessKind, class: Class, unchanged: impl FnOnce() -> bool) {
        let facts = &self.buffers[access.buffer.index()];
        let now = self.now;
        // Older accesses than `scope` are ordered before this one; what is older than `life` was written into other memory.
        let (cells, scope, life) = match facts.local {
            true => (&mut self.local[now.first_local + facts.table], now.stamp, now.start),
            false => (&mut self.storage[facts.table], self.grid_start, self.run_start),
        };
        let Some(cell) = cells.get_mut(access.element as usize) else { return };
        if cell.stamp < scope {
            *cell = Cell { written: cell.written && cell.stamp >= life, history: cell.history, ..Cell::default() };
        }
        match how {
            AccessKind::Store | AccessKind::Atomic => cell.written = true,
            AccessKind::Load if facts.zeroed && !cell.written => self.notes.note(Kind::Unwritten, access, how, now),
            AccessKind::Load | AccessKind::AtomicLoad => {}
        }
        if !cell.shared && (cell.kinds == 0 || (cell.invocation == now.invocation && cell.stamp == now.stamp)) {
            cell.touch_alone(access, how, class, now, unchanged);
            return;
        }
        // No store has settled atomics of no class.
        let kind = if how == AccessKind::Load { Settled::Loads } else { Settled::Atomics(class) };
        if cell.stamp == now.stamp && cell.settled == kind {
            return;
        }
        let group_size = self.group_size;
        let sharing = Sharing { access, how, class, unchanged: unchanged(), now, scope, wide: facts.wide, group_size };
        cell.touch_shared(&sharing, &mut self.histories, &mut self.notes);
    }
}

impl Cell {
    /// Another access of the only invocation that has touched the element in this epoch.
    #[inline]
    fn touch_alone(&mut self, access: Access, how: AccessKind, class: Class, now: Now, unchanged: impl FnOnce() -> bool) {
        let kind = 1 << how as u8;
        let again = self.kinds & kind != 0;
        match how {
            AccessKind::Load => {}
            AccessKind::Store => {
                if again && !unchanged() {
                    self.mixed = true;
                    self.overwritten = self.accesses[AccessKind::Store as usize];
                }
                self.accesses[AccessKind::Store as usize] = access.id.0;
            }
            AccessKind::AtomicLoad | AccessKind::Atomic => self.class = self.class.join(class, unchanged()),
        }
        if !again {
            self.kinds |= kind;
            self.accesses[how as usize] = access.id.0;
            if how == AccessKind::Atomic {
                self.first_class = class;
            }
        }
        self.invocation = now.invocation;
        self.stamp = now.stamp;
    }

    fn touch_shared(&mut self, new: &Sharing, histories: &mut Vec<History>, notes: &mut Notes<'_>) {
        if self.history == 0 {
            histories.push(History::default());
            self.history = histories.len() as u32;
        }
        let history = &mut histories[self.history as usize - 1];
        if !self.shared {
            self.shared = true;
            *history = History { atomics: [self.class; 2], mixed: [self.mixed; 2], ..History::default() };
            for how in KINDS.into_iter().filter(|how| self.kinds & (1 << *how as u8) != 0) {
                let (invocation, stamp, access) = (self.invocation, self.stamp, self.accesses[how as usize]);
                let class = if how == AccessKind::Atomic { self.first_class } else { Class::One(AtomicClass::Load) };
                history.kept[how as usize][0] = Record { stamp, invocation, access, class };
            }
            history.last_store = history.kept[AccessKind::Store as usize][0];
            if self.mixed {
                history.overwritten = Record { access: self.overwritten, ..history.last_store };
            }
        }
        if self.stamp != new.now.stamp {
            self.stamp = new.now.stamp;
            history.atomics[EPOCH] = Class::Nothing;
            history.mixed[EPOCH] = false;
        }
        history.find_races(new, notes);
        history.find_contention(new, notes);
        history.keep(new);
        self.settled = history.settled(new);
    }
}

/// An access to an element that others have touched too.
struct Sharing {
    access: Access,
    how: AccessKind,
    class: Class,
    /// Whether it writes what is already there.
    unchanged: bool,
    now: Now,
    /// Accesses from before this epoch are ordered before it.
    scope: u32,
    wide: bool,
    group_size: u32,
}

impl Sharing {
    /// Whether a kept access is not ordered before accesses of this epoch, and then whether it is of this epoch itself.
    fn concurrent(&self, record: &Record) -> Option<usize> {
        if record.stamp < self.scope {
            None
        } else if record.stamp == self.now.stamp {
            Some(EPOCH)
        } else {
            (self.group(record) != self.now.group).then_some(GRID)
        }
    }

    /// The same, if it is of another invocation.
    fn unordered(&self, record: &Record) -> Option<usize> {
        self.concurrent(record).filter(|_| record.invocation != self.now.invocation)
    }

    fn group(&self, record: &Record) -> u32 {
        record.invocation / self.group_size
    }
}

impl History {
    fn find_races(&self, new: &Sharing, notes: &mut Notes<'_>) {
        for how in conflicts(new.how) {
            let both_store = new.how == AccessKind::Store && *how == AccessKind::Store;
            let conflicts = |record: &&Record| match new.unordered(record) {
                Some(scope) => !(both_store && new.wide && new.unchanged && !self.mixed[scope]),
                None => false,
            };
            // A store that changes the value differs from the last store for sure, one that does not from the one before. Of others
            // it can be the equal.
            let last = both_store.then_some(if new.unchanged { &self.overwritten } else { &self.last_store });
            if let Some(record) = last.into_iter().chain(&self.kept[*how as usize]).find(conflicts) {
                notes.race((*record, *how), new);
            }
        }
    }

    fn find_contention(&mut self, new: &Sharing, notes: &mut Notes<'_>) {
        if new.class == Class::Nothing {
            return;
        }
        for class in &mut self.atomics {
            *class = class.join(new.class, new.unchanged);
        }
        let kept = [AccessKind::Atomic, AccessKind::AtomicLoad]
            .into_iter()
            .flat_map(|how| self.kept[how as usize].map(|record| (record, how)));
        let mut doubtful = None;
        for (record, how) in kept {
            if let Some(scope) = new.unordered(&record)
                && self.atomics[scope] == Class::Ordered
            {
                if !record.class.commutes(new.class, new.unchanged) {
                    return notes.contention((record, how), new);
                }
                doubtful = Some((record, how));
            }
        }
        // These two commute; somebody's other access, which is not kept, may not.
        if let Some(kept) = doubtful
            && notes.doubtful.is_none()
        {
            notes.doubtful = Some(notes.of_two(Kind::Order, kept, new));
        }
    }

    /// Keeps the access if it can conflict with more than what is kept already.
    fn keep(&mut self, new: &Sharing) {
        let Sharing { access, how, now, scope, class, .. } = *new;
        let stores = self.kept[AccessKind::Store as usize];
        if how == AccessKind::Store && !new.unchanged {
            self.mixed[EPOCH] |= stores.iter().any(|record| record.stamp == now.stamp);
            self.mixed[GRID] |= stores.iter().any(|record| record.stamp >= scope);
        }
        let record = Record { stamp: now.stamp, invocation: now.invocation, access: access.id.0, class };
        if how == AccessKind::Store {
            if !new.unchanged {
                self.overwritten = self.last_store;
            }
            self.last_store = record;
        }
        let [first, second] = &mut self.kept[how as usize];
        let kept = |record: &Record| record.stamp != 0;
        if !kept(first) {
            *first = record;
        } else if new.group(first) != now.group {
            if !kept(second) || new.group(second) == new.group(first) {
                *second = record;
            }
        } else if first.stamp < now.stamp {
            if new.group(second) == now.group {
                *second = Record::default();
            }
            *first = record;
        } else if !kept(second) && first.invocation != now.invocation {
            *second = record;
        }
    }

    /// Which further accesses of this epoch need not be looked at: those of a kind that is kept twice, with nothing in their way.
    fn settled(&self, new: &Sharing) -> Settled {
        let twice = self.kept[new.how as usize][1].stamp != 0;
        let in_the_way = |how: &AccessKind| self.kept[*how as usize].iter().any(|record| new.concurrent(record).is_some());
        if !twice || conflicts(new.how).iter().any(in_the_way) {
            return Settled::No;
        }
        match new.class {
            Class::Nothing if new.how == AccessKind::Load => Settled::Loads,
            Class::One(class) if !class.only_if_equal() && self.atomics == [new.class; 2] => Settled::Atomics(new.class),
            Class::Nothing | Class::One(_) | Class::Ordered => Settled::No,
        }
    }
}

impl Observer for Shadow<'_> {
    fn group_starts(&mut self, slot: usize) {
        let stamp = self.new_stamp();
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, (0, 0));
            let tables = self.local_lengths.len() * (slot + 1);
            while self.local.len() < tables {
                let length = self.local_lengths[self.local.len() % self.local_lengths.len()];
                self.local.push(vec![Cell::default(); length]);
            }
        }
        self.slots[slot] = (stamp, stamp);
    }

    fn barrier(&mut self, slot: usize) {
        self.slots[slot].0 = self.new_stamp();
    }

    fn grid_sync(&mut self) {
        self.grid_start = self.next_stamp;
    }

    fn turn(&mut self, slot: usize, invocation: u32) {
        let (stamp, start) = self.slots[slot];
        let first_local = slot * self.local_lengths.len();
        self.now = Now { invocation, group: invocation / self.group_size, stamp, start, first_local };
    }

    #[inline]
    fn load(&mut self, access: Access) {
        self.touch(access, AccessKind::Load, Class::Nothing, || true);
    }

    #[inline]
    fn store(&mut self, access: Access, unchanged: impl FnOnce() -> bool) {
        self.touch(access, AccessKind::Store, Class::Nothing, unchanged);
    }

    fn atomic(&mut self, access: Access, AtomicAccess { op, result, old, new }: AtomicAccess) {
        let observed = self.observes(result);
        if observed {
            let mixed = (u64::from(self.now.invocation) << 32 ^ old).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let sum = &mut self.results[access.id.index()];
            *sum = sum.wrapping_add(mixed ^ mixed >> 29);
        }
        self.touch(access, AccessKind::of_atomic(op), Class::of(op, observed), || old == new);
    }

    #[cold]
    fn out_of_bounds(&mut self, access: Access) {
        let how = self.notes.kernel.access(access.id).kind;
        self.notes.note(Kind::OutOfBounds, access, how, self.now);
    }
}

impl Notes<'_> {
    /// A finding about one access.
    fn note(&mut self, kind: Kind, access: Access, how: AccessKind, now: Now) {
        if self.is_new(kind, access.id.0, access.id.0) {
            let finding = self.finding(kind, access, self.touch(access.id, now.invocation, how), None);
            self.findings.push(finding);
        }
    }

    /// A kept access and a new one are a race.
    fn race(&mut self, (record, how): (Record, AccessKind), new: &Sharing) {
        self.racy = true;
        if self.is_new(Kind::Race, record.access, new.access.id.0) {
            let finding = self.of_two(Kind::Race, (record, how), new);
            self.findings.push(finding);
        }
    }

    /// A kept atomic and a new one do not commute.
    fn contention(&mut self, (record, how): (Record, AccessKind), new: &Sharing) {
        if self.is_new(Kind::Order, record.access, new.access.id.0) {
            let finding = self.of_two(Kind::Order, (record, how), new);
            self.contentions.push(finding);
        }
    }

    /// Whether nothing is known yet about these accesses; else it is counted.
    fn is_new(&mut self, kind: Kind, a: u32, b: u32) -> bool {
        let findings = if kind == Kind::Order { &mut self.contentions } else { &mut self.findings };
        match self.known.entry((kind, a.min(b), a.max(b))) {
            Entry::Occupied(known) => {
                let (n, run) = *known.get();
                findings[n].count += u64::from(run == self.run);
                false
            }
            Entry::Vacant(unknown) => {
                unknown.insert((findings.len(), self.run));
                true
            }
        }
    }

    fn of_two(&self, kind: Kind, (record, how): (Record, AccessKind), new: &Sharing) -> Finding {
        let kept = self.touch(AccessId(record.access), record.invocation, how);
        let added = self.touch(new.access.id, new.now.invocation, new.how);
        let order = |touch: &AccessSite| (touch.place, touch.invocation.into_iter().rev().collect::<Vec<u32>>());
        let (first, second) = if order(&kept) <= order(&added) { (kept, added) } else { (added, kept) };
        self.finding(kind, new.access, first, Some(second))
    }

    fn finding(&self, kind: Kind, access: Access, touch: AccessSite, other: Option<AccessSite>) -> Finding {
        Finding {
            kind,
            access: touch,
            other,
            buffer: self.kernel.buffer(access.buffer).name.clone(),
            element: access.element,
            length: self.shape.lengths[access.buffer.index()],
            schedule: self.schedule.clone(),
            count: 1,
            difference: None,
        }
    }

    fn touch(&self, id: AccessId, invocation: u32, how: AccessKind) -> AccessSite {
        AccessSite { place: self.kernel.access(id).node, invocation: self.shape.global_id(invocation), how }
    }
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test that asks for one finding")]
mod tests {
    use super::*;
    use crate::plain::Options;
    use crate::schedule::Rng;
    use vyre_foundation::ir::AtomicOp;
    use vyre_foundation::kernel::{BufferId, VarId};

    /// An access, and all that decides what it conflicts with.
    #[derive(Clone, Copy, Debug)]
    struct Done {
        invocation: u32,
        epoch: u32,
        grid: u32,
        /// Buffer, workgroup where it has its own memory, element.
        element: (u32, u32, u32),
        how: AccessKind,
        class: Class,
        value: u64,
    }

    const GROUP: u32 = 3;

    fn unordered(a: &Done, b: &Done) -> bool {
        let together = if a.invocation / GROUP == b.invocation / GROUP { a.epoch == b.epoch } else { a.grid == b.grid };
        a.invocation != b.invocation && a.element == b.element && together
    }

    fn races(a: &Done, b: &Done) -> bool {
        let equal = a.how == AccessKind::Store && b.how == AccessKind::Store && a.value == b.value && a.element.0 != 1;
        unordered(a, b) && conflicts(a.how).contains(&b.how) && !equal
    }

    fn contends(a: &Done, b: &Done) -> bool {
        unordered(a, b)
            && a.class != Class::Nothing
            && b.class != Class::Nothing
            && !a.class.commutes(b.class, a.value == b.value)
    }

    /// What is kept finds a conflict whenever comparing all accesses with each other does.
    #[test]
    fn random_accesses_are_judged_as_by_comparing_all() {
        // As many accesses as a sequence has at most, so that each can have a number of its own.
        let text = format!(
            "program p {{\n workgroup 3\n buffer a: read_write u32[2] @0\n buffer b: read_write u8[2] @1\n \
             buffer c: workgroup u32[2]\n let r = atomic.load(a, 0)\n {}}}\n",
            "a[1] = r\n".repeat(13)
        );
        let program = vyre_foundation::text::parse("p", &text).expect("it is right");
        let mut options = Options::default();
        options.launch.grid = Some([2, 1, 1]);
        let prepared = Prepared::new(&program, &[&[0; 8], &[0; 2]], &options).expect("the launch is fine");
        let (mut racy, mut contended, mut clean) = (0, 0, 0);
        for seed in 0..200_000 {
            let mut rng = Rng(seed);
            let mut below = |n: u64| rng.next() % n;
            let mut shadow = Shadow::new(&prepared);
            shadow.begin(&Schedule::Forward);
            let (mut epochs, mut grid, mut next) = ([0, 1], 0, 2);
            (0..2).for_each(|slot| shadow.group_starts(slot));
            let mut memory: HashMap<(u32, u32, u32), u64> = HashMap::new();
            let mut done: Vec<Done> = Vec::new();
            // Each sequence is about few things, so that something comes of it.
            let few = below(4) as usize;
            let kinds = [KINDS[below(4) as usize], KINDS[below(4) as usize]];
            let (buffers, groups) = (below(3), 1 + below(2));
            for _ in 0..2 + below(12) {
                let group = below(groups) as usize;
                match below(6) {
                    0 => {
                        shadow.barrier(group);
                        epochs[group] = next;
                        next += 1;
                    }
                    1 if below(4) == 0 => {
                        shadow.grid_sync();
                        (0..2).for_each(|slot| shadow.group_starts(slot));
                        (epochs, next, grid) = ([next, next + 1], next + 2, grid + 1);
                    }
                    _ => {
                        let invocation = group as u32 * GROUP + below(u64::from(GROUP)) as u32;
                        let (buffer, index) = (buffers as u32, u32::from(below(10) == 0));
                        let element = (buffer, if buffer == 2 { group as u32 } else { 2 }, index);
                        let held = memory.get(&element).copied().unwrap_or(0);
                        let value = u64::from(below(4) == 0);
                        let (mut how, mut class) = (kinds[below(2) as usize], Class::Nothing);
                        let access = Access { id: AccessId(done.len() as u32), buffer: BufferId(buffer), element: index };
                        let mut atomic = None;
                        if buffer != 1 && (how == AccessKind::AtomicLoad || how == AccessKind::Atomic) {
                            // Some sequences have few kinds of atomics, so that they have a chance to commute.
                            let ops = [AtomicOp::Add, AtomicOp::Store, AtomicOp::Max, AtomicOp::Exchange];
                            let op =
                                if how == AccessKind::AtomicLoad { AtomicOp::Load } else { ops[below(4) as usize % (few + 1)] };
                            let observed = how == AccessKind::AtomicLoad || (few > 0 && below(8) == 0 && op != AtomicOp::Store);
                            class = Class::of(op, observed);
                            let new = match op {
                                AtomicOp::Add => held + 1,
                                AtomicOp::Max => held.max(value),
                                AtomicOp::Load => held,
                                _ => value,
                            };
                            atomic = Some((op, observed, new));
                        } else if how == AccessKind::AtomicLoad || how == AccessKind::Atomic {
                            how = if how == AccessKind::Atomic { AccessKind::Store } else { AccessKind::Load };
                        }
                        shadow.turn(group, invocation);
                        match atomic {
                            Some((op, observed, new)) => {
                                let result = observed.then_some(VarId(0));
                                shadow.atomic(access, AtomicAccess { op, result, old: held, new });
                                memory.insert(element, new);
                            }
                            None if how == AccessKind::Store => {
                                shadow.store(access, || held == value);
                                memory.insert(element, value);
                            }
                            None => shadow.load(access),
                        }
                        done.push(Done { invocation, epoch: epochs[group], grid, element, how, class, value });
                    }
                }
            }
            let any = |test: fn(&Done, &Done) -> bool| done.iter().enumerate().any(|(n, a)| done[..n].iter().any(|b| test(a, b)));
            assert_eq!(shadow.racy(), any(races), "seed {seed}: {done:#?}");
            let mut by_values = false;
            for finding in shadow.findings().iter().filter(|finding| finding.kind == Kind::Race) {
                let other = finding.other.as_ref().expect("a race has two sides");
                let done_at = |site: &AccessSite| {
                    let at = prepared.kernel.accesses.iter().position(|access| access.node == site.place);
                    &done[at.expect("it is the place of an access")]
                };
                let (a, b) = (done_at(&finding.access), done_at(other));
                assert!(unordered(a, b) && conflicts(a.how).contains(&b.how), "seed {seed}: {a:?} {b:?}");
                by_values |= races(a, b);
            }
            // Where stores are equal it is another pair that races, and that one is named too.
            assert_eq!(by_values, shadow.racy(), "seed {seed}: {done:#?}");
            if shadow.racy() {
                racy += 1;
                continue;
            }
            assert_eq!(shadow.contended(), any(contends), "seed {seed}: {done:#?}");
            if shadow.contended() { contended += 1 } else { clean += 1 }
        }
        assert!(racy > 1000 && contended > 1000 && clean > 1000, "{racy} {contended} {clean}");
    }
}
