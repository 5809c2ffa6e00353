//! The indices at which memory is touched: how invocations compute theirs, and which ones they are.

use super::Columns;
use crate::suite::random::{Random, words};
use std::collections::HashSet;

/// How an invocation comes to its index. Compilers see more or less of it, and treat it differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pattern {
    /// Each has its own, out of memory: nothing is known about it.
    Lane,
    /// All of a workgroup have the same.
    Group,
    /// Neighbours have neighbouring ones, from anywhere: a vector that begins in bounds and ends outside.
    Run,
    /// The same downwards.
    Down,
    /// Four apart, by a product that may wrap.
    Scaled,
}

impl Pattern {
    pub(super) const ALL: [Pattern; 5] = [Pattern::Lane, Pattern::Group, Pattern::Run, Pattern::Down, Pattern::Scaled];

    pub(super) fn name(self) -> &'static str {
        match self {
            Pattern::Lane => "lane",
            Pattern::Group => "group",
            Pattern::Run => "run",
            Pattern::Down => "down",
            Pattern::Scaled => "scaled",
        }
    }

    /// The index in a program, from the buffer `at`.
    pub(super) fn index(self) -> &'static str {
        match self {
            Pattern::Lane => "at[gid.x]",
            Pattern::Group => "at[wid.x]",
            Pattern::Run => "at[wid.x] + lid.x",
            Pattern::Down => "at[wid.x] - lid.x",
            Pattern::Scaled => "(at[wid.x] + lid.x) * 4",
        }
    }

    /// The index of an invocation.
    pub(super) fn of(self, at: &[u32], size: u32, invocation: usize) -> u32 {
        let (group, lane) = (invocation / size as usize, invocation as u32 % size);
        match self {
            Pattern::Lane => at[invocation],
            Pattern::Group => at[group],
            Pattern::Run => at[group].wrapping_add(lane),
            Pattern::Down => at[group].wrapping_sub(lane),
            Pattern::Scaled => at[group].wrapping_add(lane).wrapping_mul(4),
        }
    }

    /// Elements that `at` has.
    fn slots(self, size: u32) -> usize {
        match self {
            Pattern::Lane => 3 * size as usize + 5,
            Pattern::Group | Pattern::Run | Pattern::Down | Pattern::Scaled => 16,
        }
    }

    /// Invocations for an `at` of so many elements: not all of the last workgroup take part if each has its own.
    pub(super) fn invocations(self, at: usize, size: u32) -> usize {
        match self {
            Pattern::Lane => at,
            Pattern::Group | Pattern::Run | Pattern::Down | Pattern::Scaled => at * size as usize,
        }
    }

    /// Workgroups for so many invocations.
    pub(super) fn groups(self, at: usize, size: u32) -> u32 {
        self.invocations(at, size).div_ceil(size as usize) as u32
    }

    /// Which invocation's slot it is.
    fn slot(self, size: u32, invocation: usize) -> usize {
        match self {
            Pattern::Lane => invocation,
            Pattern::Group | Pattern::Run | Pattern::Down | Pattern::Scaled => invocation / size as usize,
        }
    }
}

/// Ways to fill `at`.
pub(super) const ARRANGEMENTS: u64 = 12;

/// Lengths of memory: small ones, primes, and around the workgroup size. Their number has no divisor in common with [`ARRANGEMENTS`], so
/// that going through both at once meets every pair.
pub(super) const LENGTHS: u64 = 11;

/// The length of this number.
pub(super) fn length(n: u64, size: u32) -> usize {
    let size = size as usize;
    [61, 1, size + 1, 2, 4 * size + 3, 7, 0, 13, size - 1, 3, 251][(n % LENGTHS) as usize]
}

/// Indices around the ends of memory of this length, and those whose bytes are found there again if their product with the size of an
/// element wraps.
fn hostile(length: u32, size: u32) -> Vec<u32> {
    let (middle, vector) = (length / 2, length.next_multiple_of(8));
    let mut all =
        vec![0, length.wrapping_sub(1), length, length + 1, length.wrapping_sub(size / 2), 0_u32.wrapping_sub(size / 2)];
    for bit in [31, 30, 29, 28] {
        all.extend([1 << bit, (1_u32 << bit) + middle, (1_u32 << bit).wrapping_sub(1), (1_u32 << bit).wrapping_sub(size / 2)]);
    }
    all.extend([u32::MAX, u32::MAX - 1, 0_u32.wrapping_sub(length), 0_u32.wrapping_sub(size), (3 << 30) + middle]);
    // Twelve bytes and three of four bits.
    all.extend([u32::MAX / 12 + 1, u32::MAX / 6 + 1, u32::MAX / 3 + 1]);
    all.extend([1, middle, vector, vector.wrapping_sub(1), vector + 1, 2 * length, 4 * length, 8 * length]);
    all.extend([length.wrapping_sub(size), length.wrapping_sub(size - 1), length.wrapping_sub(3), size, size - 1, size + 1]);
    all
}

/// The elements of `at` for memory of this length, arranged in the way of this number.
pub(super) fn arranged(random: &mut Random, pattern: Pattern, size: u32, length: usize, way: u64) -> Vec<u32> {
    let (slots, count) = (pattern.slots(size), length as u32);
    let hostile = hostile(count, size);
    let inside = |random: &mut Random| random.below(length.max(1)) as u32;
    // In groups of different cases the rows are others.
    let turn = random.below(hostile.len());
    let alone = random.below(slots);
    (0..slots)
        .map(|slot| {
            let up = slot as u32;
            match way % ARRANGEMENTS {
                0 => hostile[(turn + slot) % hostile.len()],
                1 => up,
                2 => up.wrapping_add(count).wrapping_sub(slots as u32 / 2),
                3 => up.wrapping_sub(slots as u32 / 2),
                4 => {
                    if slot == alone {
                        hostile[turn]
                    } else {
                        inside(random)
                    }
                }
                5 => {
                    if slot == alone {
                        inside(random)
                    } else {
                        count.wrapping_add(up)
                    }
                }
                6 => up.wrapping_add([1 << 28, 1 << 29, 1 << 30, 1 << 31][turn % 4]),
                7 => hostile[random.below(hostile.len())],
                8 => {
                    if random.below(2) == 0 {
                        inside(random)
                    } else {
                        hostile[random.below(hostile.len())]
                    }
                }
                9 => count.wrapping_sub(1).wrapping_sub(up),
                10 => up.wrapping_mul([2, 3, 5, 0x4000_0001][turn % 4]),
                _ => {
                    if random.below(4) == 0 {
                        random.u32()
                    } else {
                        inside(random)
                    }
                }
            }
        })
        .collect()
}

/// Puts slots far away whose elements others touch too, so that no element is touched twice: by two invocations of the dispatch, or of a
/// workgroup if each has memory of its own. All invocations of [`Pattern::Group`] count as one.
pub(super) fn apart(at: &mut [u32], pattern: Pattern, size: u32, length: usize, is_per_group: bool) {
    /// Out of bounds with every pattern, whatever it is multiplied with.
    const AWAY: u32 = 1 << 28;
    let mut touched: HashSet<(usize, u32)> = HashSet::new();
    let (mut begun, count) = (0, pattern.invocations(at.len(), size));
    while begun < count {
        let slot = pattern.slot(size, begun);
        let end = (begun..count).find(|invocation| pattern.slot(size, *invocation) != slot).unwrap_or(count);
        let of = |at: &[u32], invocation: usize| {
            let group = if is_per_group { invocation / size as usize } else { 0 };
            (group, pattern.of(at, size, invocation))
        };
        let mine: HashSet<(usize, u32)> =
            (begun..end).map(|invocation| of(at, invocation)).filter(|(_, index)| (*index as usize) < length).collect();
        if mine.is_disjoint(&touched) {
            touched.extend(mine);
        } else {
            at[slot] = AWAY;
        }
        begun = end;
    }
}

/// What invocations touch, in their order: the index of each.
pub(super) fn indices(pattern: Pattern, columns: &Columns<'_>, at: usize) -> Vec<u32> {
    let at = words(columns.inputs[at]);
    let count = pattern.invocations(at.len(), columns.workgroup);
    (0..count).map(|invocation| pattern.of(&at, columns.workgroup, invocation)).collect()
}
