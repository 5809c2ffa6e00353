//! From a kernel to machine code.
//!
//! ```text
//! Kernel ──▶ Ssa ──passes, hoist, unroll──▶ Ssa ──shapes, facts──▶ phases of segments ──lower──▶ machine::lir ──▶ bytes
//! ```
//!
//! A workgroup's invocations become the lanes of *blocks*, 8, 16, 32 or 64 at a time ([`geometry`]). What is uniform is scalar code, the rest
//! vectors ([`shape`]); control that lanes take apart is masks ([`control`]); barriers cut the program into segments, each of which runs for
//! all blocks ([`group`]). What code needs to know of a dispatch it finds in a [`context`].

mod access;
mod active;
mod atomics;
mod bytes;
mod context;
mod control;
mod facts;
mod fuse;
mod geometry;
mod group;
mod helpers;
mod hoist;
mod homes;
mod leaves;
mod loops;
mod lower;
mod masks;
mod ops;
mod places;
mod planted;
mod pressure;
mod segments;
mod shape;
mod shared;
pub(crate) mod show;
mod slots;
mod subgroups;
mod traps;
mod unroll;
mod width;

use crate::faults::Fault;
use crate::machine::alloc::{Allocation, allocate};
use crate::machine::constants::fold_constants;
use crate::machine::dead::remove_dead;
use crate::machine::encode::{Encoded, encode};
use crate::machine::fold::fold_loads;
use crate::machine::lir::{Base, Cond, G2, GLoadKind, GSrc, Inst, Label, Mem, Width};
use crate::machine::memory::CodeMemory;
use crate::machine::order::reorder;
use crate::machine::reg::G;
use crate::run::{Job, MachineCode, Scratch, Stopped};
use atomics::{MAX_OWN, Own};
use context::{BUFFERS, BoundBuffer, Context, NO_TRAP};
use facts::Facts;
use geometry::Geometry;
use lower::{Lower, Pool};
use places::Places;
use pressure::pressure;
use segments::Item;
use slots::Slots;
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::ssa::Ssa;
use vyre_host_floats::with_default_state;

/// Why a kernel is left to the portable evaluator.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub String);

/// A kernel as machine code.
pub(crate) struct Machine {
    /// One function per phase.
    phases: Vec<CodeMemory>,
    bytes: u64,
    hash: [u8; 32],
    /// Where the workgroup memory of a buffer begins.
    shared: Vec<Option<usize>>,
    shared_bytes: usize,
    slots_bytes: usize,
    /// Buffers that a thread may have for itself.
    own: Vec<Own>,
}

/// Bytes that a thread has for a buffer of its own.
const OWN_BYTES: usize = 4 * MAX_OWN as usize;

/// The most instructions of a function; what is longer goes to the evaluator, so that compiling stays cheap and displacements small.
const MAX_CODE: usize = 1 << 20;

impl Machine {
    /// Compiles a kernel.
    pub fn compile(kernel: &Arc<Kernel>, fault: Option<Fault>) -> Result<Machine, Refused> {
        if !is_supported() {
            return Err(Refused("this CPU has no AVX2, FMA or BMI".into()));
        }
        // How often registers are used is counted in floats.
        with_default_state(|| choose(&prepared(kernel, fault), fault)?.attempt.finish(kernel))
    }

    /// The elements of its own that a thread has of a buffer, by its number among those.
    ///
    /// # Safety
    ///
    /// `memory` is a scratch of `scratch_bytes`, nobody else has these elements meanwhile, and there are no more than [`MAX_OWN`].
    unsafe fn own_elements<'a>(&self, memory: *mut u8, n: usize, count: u32) -> &'a mut [u32] {
        let start = self.scratch_bytes() - (n + 1) * OWN_BYTES;
        // SAFETY: the end of the scratch has room for them, at a multiple of 64.
        unsafe { std::slice::from_raw_parts_mut(memory.add(start).cast(), count as usize) }
    }

    /// Gives a thread buffers of its own, if that is worth it for so many workgroups; whether it has.
    fn begin_own(&self, job: &Job<'_>, groups: usize, memory: *mut u8, buffers: *mut BoundBuffer) -> bool {
        let bound = |own: &Own| job.buffers[own.buffer.index()];
        let lengths: u64 = self.own.iter().map(|own| u64::from(bound(own).length)).sum();
        let invocations = job.launch.workgroup_size.iter().map(|size| u64::from(*size)).product::<u64>() * groups as u64;
        let fits = |own: &Own| bound(own).length <= MAX_OWN && bound(own).data.cast::<u32>().is_aligned();
        if self.own.is_empty() || !self.own.iter().all(fits) || invocations < 4 * lengths {
            return false;
        }
        for (n, own) in self.own.iter().enumerate() {
            let length = bound(own).length;
            // SAFETY: it is the thread's scratch, and `fits` has looked at the length.
            let elements = unsafe { self.own_elements(memory, n, length) };
            own.begin(elements);
            let address = elements.as_mut_ptr().cast();
            // SAFETY: there is room for every buffer of the kernel.
            unsafe { buffers.add(own.buffer.index()).write(BoundBuffer { address, length: u64::from(length) }) };
        }
        true
    }

    /// Changes buffers by what a thread has of them.
    fn end_own(&self, job: &Job<'_>, memory: *mut u8) {
        for (n, own) in self.own.iter().enumerate() {
            let buffer = job.buffers[own.buffer.index()];
            // SAFETY: code is done with them; the buffer has as many, aligned as they have to be, and code of all threads changes it by
            // atomics only, since the kernel does nothing else with it.
            unsafe { own.end(self.own_elements(memory, n, buffer.length), buffer.data) };
        }
    }

    fn context_size(&self) -> usize {
        (BUFFERS + self.shared.len() * size_of::<BoundBuffer>()).next_multiple_of(64)
    }
}

/// The form that code is made from.
fn prepared(kernel: &Arc<Kernel>, fault: Option<Fault>) -> Ssa {
    let mut ssa = Ssa::of(kernel);
    ssa.optimize();
    hoist::hoist(&mut ssa, fault);
    unroll::unroll(&mut ssa, fault);
    ssa
}

/// What was chosen, and what was tried.
struct Choice {
    attempt: Attempt,
    geometry: Geometry,
    /// How many vectors, and how many more instructions for what is in the frame.
    tried: Vec<(u32, f32)>,
}

/// Code with as many vectors at a time as fill the time that instructions take, if not too much of them goes to the frame for it.
///
/// Numbers of vectors are tried until it is known which of those from the largest that fits upwards takes the least time. Mostly that is the
/// largest, so it comes first; but if it would hold far more than there are registers, then the smallest does, whose code is short, and others
/// only as long as they can be better: with more vectors, no less of them goes to the frame.
fn choose(ssa: &Ssa, fault: Option<Fault>) -> Result<Choice, Refused> {
    let geometry = |parts| Geometry::new(ssa.kernel.workgroup_size, parts, ssa.kernel.size_matters().is_none());
    let one = geometry(1);
    let mut facts = Facts::of(ssa, &one, fault);
    let (mut candidates, wait) = width::candidates(ssa, &one, &facts);
    let most = candidates.first().copied().unwrap_or(1);
    let upwards = most > 1 && pressure(ssa, &facts.shapes) * most > MAX_PRESSURE;
    if upwards {
        candidates.reverse();
    }
    let mut tried: Vec<(u32, f32)> = Vec::new();
    let mut chosen: Option<(Attempt, u32, f32)> = None;
    for parts in candidates {
        if let (Some((_, spilled)), Some((_, _, best)), true) = (tried.last(), &chosen, upwards)
            && *spilled > MAX_SPILLED
            && wait.time(parts, *spilled) >= *best
        {
            continue;
        }
        let geometry = geometry(parts);
        facts.adapt(ssa, &geometry, fault);
        let attempt = Attempt::of(ssa, &facts, geometry, fault)?;
        tried.push((parts, attempt.spilled));
        let fits = attempt.spilled <= MAX_SPILLED;
        let time = wait.time(parts, attempt.spilled);
        let is_better = chosen.as_ref().is_none_or(|(_, _, best)| if upwards { fits || time < *best } else { time <= *best });
        if is_better {
            chosen = Some((attempt, parts, time));
        }
        if fits && !upwards {
            break;
        }
    }
    let (attempt, parts, _) = chosen.ok_or_else(|| Refused("there is no number of lanes for it".into()))?;
    Ok(Choice { attempt, geometry: geometry(parts), tried })
}

/// Vectors that are held at once, of which most have to be in the frame.
const MAX_PRESSURE: u32 = 64;

/// How many instructions more, for what is in the frame, are no reason to try fewer vectors at a time.
const MAX_SPILLED: f32 = 0.04;

/// The code of a phase, with places for its registers.
struct Phase {
    code: Vec<Inst>,
    labels: u32,
    scratch: usize,
    pool: Pool,
    allocation: Allocation,
}

/// Code that has places for its registers.
struct Attempt {
    phases: Vec<Phase>,
    /// How many instructions more there are for what is in the frame, in the worst phase.
    spilled: f32,
    slots_bytes: usize,
    own: Vec<Own>,
}

impl Attempt {
    fn of(ssa: &Ssa, facts: &Facts, geometry: Geometry, fault: Option<Fault>) -> Result<Attempt, Refused> {
        let mut items = segments::phases(ssa, &|id| facts.shapes.escapes(id).leaves_loop);
        fuse::fuse(ssa, &mut items);
        let single = items.len() == 1 && (geometry.flat || geometry.blocks() == 1 || !ssa.kernel.uses.barrier);
        let mut attempt = Attempt { phases: Vec::new(), spilled: 0.0, slots_bytes: 0, own: facts.own.clone() };
        for (n, phase) in items.iter().enumerate() {
            let mut lower = Lower::new(ssa, facts, geometry, fault);
            if !single {
                lower.plan_slots(&items);
                attempt.slots_bytes = (lower.slots.block_bytes * geometry.blocks() as usize).next_multiple_of(64);
            }
            lower.function(phase, n == 0);
            if let Some(why) = lower.refused {
                return Err(Refused(why));
            }
            let Lower { mut code, generals, mut vectors, labels, scratch, pool, .. } = lower;
            if code.len() > MAX_CODE {
                return Err(Refused("it is too long".into()));
            }
            if let Some(fault) = fault {
                planted::plant(fault, &mut code, &mut vectors);
            }
            fold_constants(&mut code, generals);
            remove_dead(&mut code, generals, vectors);
            fold_loads(&mut code, vectors);
            let mut ordered = code.clone();
            let mut allocation = allocate(&mut code, generals, vectors, fault);
            if allocation.spilled > 0.0 {
                reorder(&mut ordered, generals, vectors);
                let other = allocate(&mut ordered, generals, vectors, fault);
                if other.spilled < allocation.spilled {
                    (code, allocation) = (ordered, other);
                }
            }
            attempt.spilled = attempt.spilled.max(allocation.spilled);
            attempt.phases.push(Phase { code, labels, scratch, pool, allocation });
        }
        Ok(attempt)
    }

    fn finish(self, kernel: &Kernel) -> Result<Machine, Refused> {
        let mut phases = Vec::new();
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        for Phase { code, labels, scratch, pool, allocation } in &self.phases {
            let encoded = encode(code, *labels, *scratch, &pool.bytes, allocation);
            hash_code(&mut hasher, &encoded);
            bytes += encoded.bytes.len() as u64;
            phases.push(CodeMemory::new(&encoded.bytes).map_err(|error| Refused(error.to_string()))?);
        }
        let (shared, shared_bytes) = shared::shared_offsets(kernel);
        let hash = *hasher.finalize().as_bytes();
        Ok(Machine { phases, bytes, hash, shared, shared_bytes, slots_bytes: self.slots_bytes, own: self.own })
    }
}

/// The code without what is another in every process.
fn hash_code(hasher: &mut blake3::Hasher, encoded: &Encoded) {
    let mut rest = 0;
    for at in &encoded.addresses {
        hasher.update(&encoded.bytes[rest..*at]);
        rest = at + size_of::<u64>();
    }
    hasher.update(&encoded.bytes[rest..]);
}

/// Whether this CPU has what code is made of.
fn is_supported() -> bool {
    macro_rules! all {
        ($($name:tt)*) => { true $(&& std::is_x86_feature_detected!($name))* };
    }
    all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt")
}

impl<'a> Lower<'a> {
    fn new(ssa: &'a Ssa, facts: &'a Facts, geometry: Geometry, fault: Option<Fault>) -> Lower<'a> {
        Lower {
            ssa,
            facts,
            geometry,
            mode: ssa.kernel.floats,
            entry: Vec::new(),
            group_head: Vec::new(),
            block_head: Vec::new(),
            code: Vec::new(),
            generals: 0,
            vectors: 0,
            labels: 1,
            pool: Pool::default(),
            tables: HashMap::new(),
            locs: Places::new(ssa.values.len()),
            splats: HashMap::new(),
            splatted: Vec::new(),
            leaves: HashMap::new(),
            vector_leaves: HashMap::new(),
            lengths: HashMap::new(),
            mask: None,
            scopes: Vec::new(),
            arm: None,
            nobody: Label(0),
            loops: Vec::new(),
            bail: Label(0),
            block: None,
            flat_end: None,
            row: None,
            group: None,
            scratch: 0,
            slots: Slots::default(),
            in_block_head: false,
            in_cold: false,
            decided: None,
            prefix: None,
            refused: None,
            fault,
        }
    }

    /// The function of one phase.
    fn function(&mut self, items: &[Item], is_first: bool) {
        if self.geometry.flat {
            self.flat_function();
        } else {
            self.group_function(items, is_first);
        }
        let entry = std::mem::take(&mut self.entry);
        self.code.splice(0..0, entry);
        self.push(Inst::Label(self.bail));
        self.push(Inst::Return);
    }

    /// Workgroups that are one range of invocations for each of their rows: a loop over blocks of it, inside of one over rows.
    fn flat_function(&mut self) {
        let [size, rows @ ..] = self.geometry.size;
        let (start, end) = (self.new_g(), self.new_g());
        for (d, offset) in [(start, offset_of!(Context, first_group)), (end, offset_of!(Context, end_group))] {
            let group = self.load_g(GLoadKind::W32, Mem::context(offset));
            self.push(Inst::GMul { width: Width::W64, d, a: group, b: GSrc::Imm(size as i32) });
        }
        let one_row = self.geometry.row_count() == 1;
        let block = if one_row { start } else { self.new_g() };
        self.row = (!one_row).then(|| [self.new_g(), self.new_g()]);
        (self.block, self.flat_end) = (Some(block), Some(end));
        let before = std::mem::take(&mut self.code);
        self.whole_block();
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::take(&mut self.block_head);
        // The loops over z and y, from the outside.
        let around = self.row.map(|[y, z]| [(z, rows[1]), (y, rows[0])]);
        let heads: Vec<(G, u32, Label)> =
            around.into_iter().flatten().map(|(row, count)| (row, count, self.new_label())).collect();
        for (row, _, again) in &heads {
            self.push(Inst::GImm { d: *row, imm: 0 });
            self.push(Inst::LoopBegin);
            self.push(Inst::Label(*again));
        }
        if !one_row {
            self.push(Inst::GMov { width: Width::W64, d: block, a: start });
        }
        let again = self.new_label();
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        self.code.extend(head);
        self.code.extend(body);
        let lanes = self.geometry.lanes() as i32;
        self.push(Inst::G2 { op: G2::add, width: Width::W64, d: block, a: block, b: GSrc::Imm(lanes) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W64, a: block, b: end.into(), to: again });
        self.push(Inst::LoopEnd);
        for (row, count, again) in heads.into_iter().rev() {
            self.push(Inst::G2 { op: G2::add, width: Width::W32, d: row, a: row, b: GSrc::Imm(1) });
            let b = GSrc::Imm(count as i32);
            self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: row, b, to: again });
            self.push(Inst::LoopEnd);
        }
        // Leaves of workgroups do not change in between.
        let group_head = std::mem::take(&mut self.group_head);
        self.entry.extend(group_head);
    }

    /// All of the program for one block.
    fn whole_block(&mut self) {
        let next = self.new_label();
        self.enter_block(true, next);
        let root = self.ssa.root;
        self.region(root);
        self.push(Inst::Label(next));
        self.scopes.clear();
        self.mask = None;
    }

    fn group_function(&mut self, items: &[Item], is_first: bool) {
        let group = self.new_g();
        self.group = Some(group);
        self.push(Inst::GLoad { kind: GLoadKind::W32, d: group, from: Mem::context(offset_of!(Context, first_group)) });
        let again = self.new_label();
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        let ranges = shared::to_clear(self.ssa, self.facts, items);
        self.clear_shared(&ranges);
        let before = std::mem::take(&mut self.code);
        if self.slots.block_bytes > 0 || self.is_planned() {
            self.items(items, is_first);
        } else {
            self.single_segment();
        }
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::take(&mut self.group_head);
        self.code.extend(head);
        self.code.extend(body);
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: group, a: group, b: GSrc::Imm(1) });
        let b = GSrc::Mem(Mem { base: Base::Context, index: None, disp: offset_of!(Context, end_group) as i32 });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: group, b, to: again });
        self.push(Inst::LoopEnd);
    }

    /// A program without barriers, or of a single block: a loop over blocks of all of it.
    fn single_segment(&mut self) {
        let block = (self.geometry.blocks() > 1).then(|| self.new_g());
        self.block = block;
        let before = std::mem::take(&mut self.code);
        self.whole_block();
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::take(&mut self.block_head);
        let Some(block) = block else {
            self.code.extend(head);
            self.code.extend(body);
            return;
        };
        let again = self.new_label();
        self.push(Inst::GImm { d: block, imm: 0 });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        self.code.extend(head);
        self.code.extend(body);
        let (lanes, total) = (self.geometry.lanes() as i32, self.geometry.total() as i32);
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: block, a: block, b: GSrc::Imm(lanes) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: block, b: GSrc::Imm(total), to: again });
        self.push(Inst::LoopEnd);
    }
}

impl MachineCode for Machine {
    fn phases(&self) -> u32 {
        self.phases.len() as u32
    }

    fn context_bytes(&self) -> usize {
        if self.phases.len() > 1 { self.slots_bytes.next_multiple_of(64) } else { 0 }
    }

    fn scratch_bytes(&self) -> usize {
        let slots = if self.phases.len() > 1 { 0 } else { self.slots_bytes };
        self.context_size() + self.shared_bytes.next_multiple_of(64) + slots + self.own.len() * OWN_BYTES
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn run(&self, job: &Job<'_>, groups: Range<u32>, scratch: &mut Scratch) -> Result<(), Stopped> {
        let launch = job.launch;
        let memory = scratch.memory().as_mut_ptr();
        let shared = self.context_size();
        let slots = shared + self.shared_bytes.next_multiple_of(64);
        let invocations: [u32; 3] = std::array::from_fn(|axis| launch.grid[axis].wrapping_mul(launch.workgroup_size[axis]));
        let mut context = Context {
            stop: job.stop.as_ptr().cast(),
            first_group: 0,
            end_group: 0,
            group_y: 0,
            group_z: 0,
            grid: launch.grid,
            invocations,
            shared: memory.wrapping_add(shared),
            slots: memory.wrapping_add(slots),
            trapped: NO_TRAP,
            tag: 0,
            size: launch.workgroup_size,
            has_own: 0,
        };
        // SAFETY: the scratch has `scratch_bytes`, of which the context and its buffers are the beginning.
        let buffers = unsafe { memory.add(BUFFERS).cast::<BoundBuffer>() };
        for (n, (buffer, offset)) in job.buffers.iter().zip(&self.shared).enumerate() {
            let address = match offset {
                Some(offset) => memory.wrapping_add(shared + offset),
                None => buffer.data,
            };
            // SAFETY: there is room for every buffer of the kernel.
            unsafe { buffers.add(n).write(BoundBuffer { address, length: u64::from(buffer.length) }) };
        }
        let own = self.begin_own(job, groups.len(), memory, buffers);
        context.has_own = u32::from(own);
        let [nx, ny, _] = launch.grid;
        let phased = self.phases.len() > 1;
        let mut next = groups.start;
        let entry = self.phases[job.phase as usize].entry();
        while next < groups.end {
            // Code runs workgroups that follow each other along x; one at a time where each has a context of its own.
            let x = next % nx;
            let count = if phased { 1 } else { (groups.end - next).min(nx - x) };
            (context.first_group, context.end_group) = (x, x + count);
            (context.group_y, context.group_z) = (next / nx % ny, next / nx / ny);
            if phased {
                let number = (next - job.first_group) as usize;
                context.slots = job.contexts.wrapping_add(number * self.context_bytes());
            }
            // SAFETY: the context is as code expects it: it is at the beginning of the scratch, and the buffers follow. Code touches
            // nothing else but the buffers inside their lengths, the scratch and its own frame.
            unsafe {
                memory.cast::<Context>().write(std::ptr::read(&context));
                let function: extern "sysv64" fn(*mut u8) = std::mem::transmute(entry);
                function(memory);
                let Context { trapped, tag, .. } = memory.cast::<Context>().read();
                (context.trapped, context.tag) = (trapped, tag);
            }
            if job.stop.load(Relaxed) {
                return Err(Stopped);
            }
            next += count;
        }
        if own {
            self.end_own(job, memory);
        }
        if context.trapped != NO_TRAP {
            scratch.note_trap(context.trapped, context.tag);
        }
        Ok(())
    }
}
