//! Schedules: in which order the invocations of a dispatch take their steps.
//!
//! The language leaves the order open, so each of these is a legal way to run a program, and a program whose bytes are promised
//! gives the same in all of them. The plain interpreter takes one by name; the checked mode tries those that are likely to show a
//! difference. A schedule has a spelling (`reverse`, `random:17`, `atomics:1,0`), so that a run can be repeated from a message.

use std::fmt;
use std::str::FromStr;

/// In which order invocations take their steps. Between barriers every order is legal.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Schedule {
    /// `forward`: workgroups and invocations by id, each as far as it gets.
    #[default]
    Forward,
    /// `reverse`: from the largest id to the smallest, each as far as it gets.
    Reverse,
    /// `stride:N`: every N-th, then those right after them, and so on.
    Stride(u32),
    /// `random:SEED`: workgroups in random order, and at every wait the invocations of one in a new random order.
    Random(u64),
    /// `groups:SEED`: whole workgroups in random order, invocations by id.
    Groups(u64),
    /// `interleave`: one statement each, in turn, across workgroups.
    Interleave,
    /// `interleave:SEED`: none to seven statements each, in random order, across workgroups.
    Shuffle(u64),
    /// `late`: nobody does its next atomic before everybody has come to theirs; then the largest id goes first.
    Late,
    /// `atomics:A,B,…`: everybody comes to its next atomic; then invocation A does its own and comes to the next, then B, and so on,
    /// and after the list the smallest id. Invocations are numbered workgroup by workgroup.
    Atomics(Vec<u32>),
}

impl Schedule {
    /// The schedules that a dispatch is tried under beside `forward`, those that show most differences first.
    #[must_use]
    pub fn adversarial() -> Vec<Schedule> {
        vec![
            Schedule::Reverse,
            Schedule::Interleave,
            Schedule::Groups(1),
            Schedule::Late,
            Schedule::Stride(3),
            Schedule::Random(1),
            Schedule::Shuffle(1),
            Schedule::Random(2),
            Schedule::Shuffle(2),
        ]
    }

    /// The numbers below `count`, in the order in which workgroups begin.
    pub(crate) fn groups(&self, count: u32) -> Box<dyn Iterator<Item = u32>> {
        match self {
            Schedule::Forward | Schedule::Interleave | Schedule::Shuffle(_) | Schedule::Late | Schedule::Atomics(_) => {
                Box::new(0..count)
            }
            Schedule::Reverse => Box::new((0..count).rev()),
            Schedule::Stride(stride) => {
                let stride = (*stride).clamp(1, count.max(1));
                Box::new((0..stride).flat_map(move |first| (first..count).step_by(stride as usize)))
            }
            Schedule::Random(seed) | Schedule::Groups(seed) => {
                // Shuffled block by block, so that a grid of billions needs no list of them.
                let mut rng = Rng(*seed);
                Box::new((0..count).step_by(BLOCK as usize).flat_map(move |first| {
                    let mut block: Vec<u32> = (first..first.saturating_add(BLOCK).min(count)).collect();
                    rng.shuffle(&mut block);
                    block
                }))
            }
        }
    }

    /// The order in which the invocations of a workgroup take their turns, if it is the same every time.
    pub(crate) fn turns(&self, count: u32) -> Turns {
        match self {
            Schedule::Forward
            | Schedule::Groups(_)
            | Schedule::Interleave
            | Schedule::Shuffle(_)
            | Schedule::Late
            | Schedule::Atomics(_) => Turns { order: (0..count).collect(), again: None },
            Schedule::Reverse | Schedule::Stride(_) => Turns { order: self.groups(count).collect(), again: None },
            Schedule::Random(seed) => Turns { order: (0..count).collect(), again: Some(Rng(!seed)) },
        }
    }
}

/// Workgroups that are shuffled together.
const BLOCK: u32 = 1 << 16;

/// The order of turns within a workgroup.
pub(crate) struct Turns {
    order: Vec<u32>,
    /// Gives a new order every time.
    again: Option<Rng>,
}

impl Turns {
    /// The order in which invocations take their next turns.
    pub fn next(&mut self) -> &[u32] {
        if let Some(rng) = &mut self.again {
            rng.shuffle(&mut self.order);
        }
        &self.order
    }
}

/// splitmix64: small, and the same everywhere.
#[derive(Clone)]
pub(crate) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            items.swap(n, self.below(n as u64 + 1) as usize);
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Forward => f.write_str("forward"),
            Schedule::Reverse => f.write_str("reverse"),
            Schedule::Stride(stride) => write!(f, "stride:{stride}"),
            Schedule::Random(seed) => write!(f, "random:{seed}"),
            Schedule::Groups(seed) => write!(f, "groups:{seed}"),
            Schedule::Interleave => f.write_str("interleave"),
            Schedule::Shuffle(seed) => write!(f, "interleave:{seed}"),
            Schedule::Late => f.write_str("late"),
            Schedule::Atomics(list) => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                write!(f, "atomics:{}", list.join(","))
            }
        }
    }
}

/// Says what a schedule may be.
impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Schedule, String> {
        let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
        let seed = |number: &str| number.parse::<u64>().map_err(|_| format!("`{number}` is not a number"));
        match (word, number) {
            ("forward", None) => Ok(Schedule::Forward),
            ("reverse", None) => Ok(Schedule::Reverse),
            ("stride", Some(number)) => {
                let stride = number.parse().ok().filter(|stride| *stride > 0);
                stride.map(Schedule::Stride).ok_or_else(|| format!("`{number}` is not a stride"))
            }
            ("random", Some(number)) => Ok(Schedule::Random(seed(number)?)),
            ("groups", Some(number)) => Ok(Schedule::Groups(seed(number)?)),
            ("interleave", None) => Ok(Schedule::Interleave),
            ("interleave", Some(number)) => Ok(Schedule::Shuffle(seed(number)?)),
            ("late", None) => Ok(Schedule::Late),
            ("atomics", Some(list)) => {
                let items = list.split(',').filter(|item| !item.is_empty());
                let list: Result<_, _> =
                    items.map(|item| item.trim().parse().map_err(|_| format!("`{item}` is not a number"))).collect();
                Ok(Schedule::Atomics(list?))
            }
            _ => Err(
                "write forward, reverse, stride:N, random:SEED, groups:SEED, interleave, interleave:SEED, late or atomics:A,B,…"
                    .to_string(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn a_schedule_reads_back_from_its_spelling() {
        let more = [Schedule::Forward, Schedule::Atomics(vec![]), Schedule::Atomics(vec![3, 0, 3])];
        for schedule in Schedule::adversarial().into_iter().chain(more) {
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
        for wrong in ["", "backwards", "stride:0", "stride", "random:x", "reverse:1", "atomics:1,x"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_order_is_a_permutation() {
        for schedule in Schedule::adversarial() {
            for count in [0, 1, 2, 7, 64, 70_000] {
                let mut groups: Vec<u32> = schedule.groups(count).collect();
                groups.sort_unstable();
                assert!(groups.iter().copied().eq(0..count), "{schedule} of {count}");
                let mut turns = schedule.turns(count);
                for _ in 0..2 {
                    let mut order = turns.next().to_vec();
                    order.sort_unstable();
                    assert!(order.iter().copied().eq(0..count), "{schedule} of {count}");
                }
            }
        }
    }
}
