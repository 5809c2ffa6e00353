//! What a number of programs means, so that it means the same wherever one is given.

use super::{Generated, Preset, dna, generate};
use vyre_worker::Case;

/// So many programs of the default mix, and for every 200 of them one of each large preset.
///
/// A figure of 1,000,000 programs is 1,000,000 of the mix and 5,000 of each large preset. Programs have the numbers that they have
/// in a run of `vyre fuzz` with the same preset and seed, so that a failure can be shown there.
#[derive(Clone, Debug)]
pub struct Figure {
    seed: u64,
    mixed: u64,
    each: Vec<(Preset, u64)>,
}

/// The number of programs that `VYRE_SMITH_PROGRAMS` asks for, or the usual one.
#[must_use]
pub fn asked(usually: u64) -> u64 {
    number_in("VYRE_SMITH_PROGRAMS").unwrap_or(usually)
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A program of a figure.
pub struct Numbered {
    /// What it is about.
    pub preset: Preset,
    /// The seed that its bytes come from.
    pub seed: u64,
    /// Its number in a run of this preset, or of the mix.
    pub number: u64,
    /// The bytes that it was made of.
    pub dna: Vec<u8>,
    /// The program.
    pub generated: Generated,
}

impl Numbered {
    /// A dispatch of it, with inputs from the same bytes.
    #[must_use]
    pub fn case(&self) -> Case {
        self.generated.case(&self.dna)
    }
}

impl Figure {
    /// A figure of so many programs of a seed.
    #[must_use]
    pub fn of(seed: u64, programs: u64) -> Figure {
        let each = programs.div_ceil(200).max(programs.min(20));
        Figure { seed, mixed: programs, each: Preset::large().iter().map(|preset| (*preset, each)).collect() }
    }

    /// The figure that `VYRE_SMITH_PROGRAMS` asks for, or the usual one; of the seed that `VYRE_SMITH_SEED` asks for, or the usual one.
    #[must_use]
    pub fn asked(seed: u64, usually: u64) -> Figure {
        Figure::of(number_in("VYRE_SMITH_SEED").unwrap_or(seed), asked(usually))
    }

    /// With programs whose bytes depend on the schedule: for every 8 of the mix one of each such preset.
    #[must_use]
    pub fn and_undetermined(mut self) -> Figure {
        self.each.extend(Preset::undetermined().iter().map(|preset| (*preset, self.mixed.div_ceil(8))));
        self
    }

    /// How many programs there are in all.
    #[must_use]
    pub fn programs(&self) -> u64 {
        self.mixed + self.each.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Which preset has the n-th program, and with which number.
    ///
    /// # Panics
    ///
    /// If there are not that many.
    #[must_use]
    pub fn place(&self, n: u64) -> (Preset, u64) {
        // Large programs first, so that no thread is left alone with them.
        let mut left = n;
        for (preset, count) in &self.each {
            if left < *count {
                return (*preset, left);
            }
            left -= count;
        }
        assert!(left < self.mixed, "there are {} programs", self.programs());
        (Preset::mixed(left), left)
    }

    /// The n-th program.
    ///
    /// # Panics
    ///
    /// If there are not that many.
    #[must_use]
    pub fn program(&self, n: u64) -> Numbered {
        let (preset, number) = self.place(n);
        let dna = dna(self.seed, number);
        let generated = generate(preset, &dna);
        Numbered { preset, seed: self.seed, number, dna, generated }
    }

    /// Calls `each` with every program, on two threads, and gives what each of them has counted.
    pub fn count<T: Default + Send>(&self, each: impl Fn(&Numbered, &mut T) + Sync) -> Vec<T> {
        let next = std::sync::atomic::AtomicU64::new(0);
        let work = || {
            let mut tally = T::default();
            loop {
                let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if n >= self.programs() {
                    return tally;
                }
                each(&self.program(n), &mut tally);
            }
        };
        std::thread::scope(|scope| {
            let threads = [scope.spawn(work), scope.spawn(work)];
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).into()
        })
    }
}
