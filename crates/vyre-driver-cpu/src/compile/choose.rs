//! How many vectors code works on at a time: tried out, as far as it is not known beforehand.

use super::facts::Facts;
use super::geometry::Geometry;
use super::lower::{Lower, Pool};
use super::own::Own;
use super::pressure::pressure;
use super::{Machine, Refused, fuse, planted, segments, shared, width};
use crate::faults::Fault;
use crate::machine::alloc::{Allocation, allocate};
use crate::machine::constants::fold_constants;
use crate::machine::dead::remove_dead;
use crate::machine::encode::{Encoded, encode};
use crate::machine::fold::fold_loads;
use crate::machine::lir::Inst;
use crate::machine::memory::CodeMemory;
use crate::machine::order::reorder;
use crate::machine::written::read_unwritten;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::ssa::Ssa;

/// The most instructions of a function; what is longer goes to the evaluator, so that compiling stays cheap and displacements small.
const MAX_CODE: usize = 1 << 20;

/// What was chosen, and what was tried.
pub(super) struct Choice {
    pub attempt: Attempt,
    pub geometry: Geometry,
    /// How many vectors, and how many more instructions for what is in the frame.
    pub tried: Vec<(u32, f32)>,
}

/// Code with as many vectors at a time as fill the time that instructions take, if not too much of them goes to the frame for it.
///
/// Numbers of vectors are tried until it is known which of those from the largest that fits upwards takes the least time. Mostly that is the
/// largest, so it comes first; but if it would hold far more than there are registers, then the smallest does, whose code is short, and others
/// only as long as they can be better: with more vectors, no less of them goes to the frame.
pub(super) fn choose(ssa: &Ssa, fault: Option<Fault>) -> Result<Choice, Refused> {
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
pub(super) struct Phase {
    pub code: Vec<Inst>,
    pub labels: u32,
    pub scratch: usize,
    pub pool: Pool,
    pub allocation: Allocation,
}

/// Code that has places for its registers.
pub(super) struct Attempt {
    pub phases: Vec<Phase>,
    /// How many instructions more there are for what is in the frame, in the worst phase.
    pub spilled: f32,
    pub slots_bytes: usize,
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
            if let Some(inst) = read_unwritten(&mut code, generals, vectors) {
                return Err(Refused(format!("its code would read a register that nothing has written: {inst:?}")));
            }
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

    pub fn finish(self, kernel: &Kernel) -> Result<Machine, Refused> {
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
