//! What a program may be made of: presets, and the swarm that switches parts of one off for each program.
//!
//! A program that may contain everything contains a little of each and rarely enough of two things that go wrong together. So every
//! program first draws which types and statements it goes without, and spends its size on the rest.

use super::shape::Extent;
use crate::dna::Dna;
use std::sync::LazyLock;
use vyre_foundation::ir::Scalar;

/// How a preset's programs are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of the default mix: thousands of programs a second.
    Mixed,
    /// Too large for the default mix: tens to hundreds of programs a second.
    Large,
    /// Its bytes depend on the schedule, so that no two ways to run it can be compared.
    Undetermined,
}

macro_rules! presets {
    ($( $class:ident $variant:ident $name:literal $doc:literal; )*) => {
        /// What the programs of a campaign are about.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Preset { $( #[doc = $doc] $variant, )* }

        impl Preset {
            /// Every preset.
            pub const ALL: &'static [Preset] = &[$( Preset::$variant ),*];

            /// Its name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Preset::$variant => $name, )* }
            }

            /// What its programs are about, in a few words.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $( Preset::$variant => $doc, )* }
            }

            const fn class(self) -> Class {
                match self { $( Preset::$variant => Class::$class, )* }
            }
        }
    };
}

presets! {
    Mixed Ints "ints" "Integer arithmetic of both widths.";
    Mixed Floats "floats" "Float arithmetic, elementary functions and conversions.";
    Mixed Divergent "divergent" "Branches, loops, breaks and early returns that invocations take differently.";
    Mixed Barriers "barriers" "Workgroup memory handed on across barriers, also in loops.";
    Mixed Atomics "atomics" "Atomics of all kinds, in storage and workgroup memory.";
    Mixed Subgroups "subgroups" "Votes, shuffles, reductions and scans among lanes.";
    Mixed Packed "packed" "Buffers of elements narrower than a word.";
    Mixed Gridsync "gridsync" "Phases of the whole grid.";
    Mixed HostileIndices "hostile-indices" "Indices at and far past the ends of buffers.";
    Mixed Deep "deep" "Long programs, nested far.";
    Mixed Everything "everything" "All of the above, a different part of it in each program.";
    Large Wide "wide" "Workgroups of up to 1024 invocations and dispatches of thousands, over small bodies.";
    Large Long "long" "Loops of hundreds of iterations and long chains of values that depend on each other.";
    Large Crowded "crowded" "Dozens of values alive at once, across barriers and loops, and many buffers.";
    Undetermined Racy "racy" "Programs whose invocations get in each other's way; not to be compared.";
    Undetermined OrderDependent "order-dependent" "Programs whose atomics see each other's results; not to be compared.";
}

impl Preset {
    /// The preset with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.iter().copied().find(|preset| preset.name() == name)
    }

    /// Whether its programs give the same bytes under every schedule.
    #[must_use]
    pub fn is_deterministic(self) -> bool {
        self.class() != Class::Undetermined
    }

    /// The default mix: the n-th program of a mix has the n-th of these presets, around the end. All are deterministic and small.
    #[must_use]
    pub fn mix() -> &'static [Preset] {
        static MIX: LazyLock<Vec<Preset>> = LazyLock::new(|| Preset::of_class(Class::Mixed));
        &MIX
    }

    /// The preset of the program with this number in a run of the default mix.
    #[must_use]
    pub fn mixed(number: u64) -> Preset {
        let mix = Preset::mix();
        mix[(number % mix.len() as u64) as usize]
    }

    /// The presets that are too large for the mix; deterministic as well.
    #[must_use]
    pub fn large() -> &'static [Preset] {
        static LARGE: LazyLock<Vec<Preset>> = LazyLock::new(|| Preset::of_class(Class::Large));
        &LARGE
    }

    /// The presets whose bytes depend on the schedule.
    #[must_use]
    pub fn undetermined() -> &'static [Preset] {
        static UNDETERMINED: LazyLock<Vec<Preset>> = LazyLock::new(|| Preset::of_class(Class::Undetermined));
        &UNDETERMINED
    }

    fn of_class(class: Class) -> Vec<Preset> {
        Preset::ALL.iter().copied().filter(|preset| preset.class() == class).collect()
    }
}

/// How far a program goes in keeping its invocations apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    /// The rules of `memory.rs` hold.
    Kept,
    /// Plain accesses break them now and then.
    Broken,
    /// Atomics use what they get.
    Ordered,
}

/// How likely each statement is beside the others; 0 is never.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub let_: u32,
    pub assign: u32,
    pub store: u32,
    pub atomic: u32,
    pub subgroup: u32,
    pub branch: u32,
    pub repeat: u32,
    pub barrier: u32,
    pub grid_sync: u32,
    pub leave: u32,
    pub return_: u32,
    pub trap: u32,
    pub scope: u32,
    pub exchange: u32,
    /// Bounds checks written out.
    pub guard: u32,
    /// Loops that move an index along.
    pub march: u32,
    /// Several ways out at once, each for other invocations.
    pub exits: u32,
    /// Values that each depend on the one before.
    pub chain: u32,
    /// The same load before and after others have written.
    pub reload: u32,
    /// Results of atomics that tell where to store.
    pub tickets: u32,
    /// Elements beside each other, at once.
    pub neighbours: u32,
    /// Accesses to elements that are the same or not only when the program runs.
    pub aliases: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Config {
    pub scalars: u8,
    pub weights: Weights,
    pub statements: u32,
    pub depth: u32,
    pub expr_depth: u32,
    pub vectors: bool,
    /// Percent of buffers with narrow elements.
    pub packed: u32,
    /// Percent of indices that are hostile.
    pub hostile: u32,
    pub dimensions: bool,
    pub constants: bool,
    pub workgroup_memory: bool,
    /// Whether a launch may override the workgroup size: nothing in the program tells how invocations are grouped.
    pub overridable: bool,
    pub extent: Extent,
    /// Iterations of one loop, at most.
    pub trips: u32,
    /// Iterations that all the loops around a statement may take together.
    pub iterations: u64,
    /// The longest chain of values.
    pub chain: u32,
    /// Values that are made at the start and shown at the end.
    pub crowd: u32,
    /// Buffers beside the output, at least and at most.
    pub buffers: [u32; 2],
    pub discipline: Discipline,
    /// Bits of ops that are left out.
    pub without: u64,
}

const fn bit(scalar: Scalar) -> u8 {
    1 << scalar as u8
}

impl Config {
    pub fn has(&self, scalar: Scalar) -> bool {
        self.scalars & bit(scalar) != 0
    }

    pub fn of(preset: Preset, dna: &mut Dna<'_>) -> Config {
        let ints = bit(Scalar::I32) | bit(Scalar::U64) | bit(Scalar::I64);
        let floats = bit(Scalar::F32) | bit(Scalar::F64);
        let mut config = Config {
            scalars: bit(Scalar::Bool) | bit(Scalar::U32) | ints | floats,
            weights: Weights {
                let_: 16,
                assign: 10,
                store: 14,
                atomic: 5,
                subgroup: 5,
                branch: 10,
                repeat: 9,
                barrier: 5,
                grid_sync: 3,
                leave: 6,
                return_: 2,
                trap: 1,
                scope: 3,
                exchange: 6,
                guard: 4,
                march: 3,
                exits: 4,
                chain: 2,
                reload: 2,
                tickets: 3,
                neighbours: 3,
                aliases: 3,
            },
            statements: 14,
            depth: 3,
            expr_depth: 3,
            vectors: true,
            packed: 30,
            hostile: 10,
            dimensions: true,
            constants: true,
            workgroup_memory: true,
            overridable: false,
            extent: Extent::Usual,
            trips: 6,
            iterations: 200,
            chain: 8,
            crowd: 0,
            buffers: [1, 4],
            discipline: Discipline::Kept,
            without: 0,
        };
        config.swarm(dna);
        let w = &mut config.weights;
        match preset {
            Preset::Ints => config.scalars = bit(Scalar::Bool) | bit(Scalar::U32) | (config.scalars & ints) | bit(Scalar::I32),
            Preset::Floats => {
                config.scalars |= bit(Scalar::F32);
                config.scalars &= !(bit(Scalar::U64) | bit(Scalar::I64));
                *w = Weights { atomic: 0, tickets: 0, subgroup: 0, barrier: 0, grid_sync: 0, exchange: 0, reload: 0, ..*w };
            }
            Preset::Divergent => *w = Weights { branch: 20, repeat: 16, leave: 14, return_: 5, exits: 14, ..*w },
            Preset::Barriers => {
                *w = Weights { barrier: 12, repeat: 12, exchange: 24, reload: 8, ..*w };
                config.workgroup_memory = true;
            }
            Preset::Atomics => *w = Weights { atomic: 24, barrier: 8, exchange: 12, tickets: 12, ..*w },
            Preset::Subgroups => *w = Weights { subgroup: 30, return_: 5, ..*w },
            Preset::Packed => config.packed = 90,
            Preset::Gridsync => *w = Weights { grid_sync: 12, exchange: 20, ..*w },
            Preset::HostileIndices => config.hostile = 70,
            Preset::Deep => {
                (config.statements, config.depth, config.expr_depth) = (90, 9, 7);
                *w = Weights { branch: 18, repeat: 14, ..*w };
            }
            Preset::Everything => {}
            Preset::Wide => {
                config.extent = Extent::Many;
                (config.statements, config.depth, config.expr_depth) = (10, 2, 2);
                (config.trips, config.iterations) = (4, 8);
            }
            Preset::Long => {
                config.extent = Extent::Few;
                (config.statements, config.expr_depth, config.chain) = (8, 2, 120);
                (config.trips, config.iterations) = (800, 1500);
                *w = Weights { repeat: 30, chain: 12, march: 8, assign: 16, scope: 0, ..*w };
            }
            Preset::Crowded => {
                (config.crowd, config.buffers, config.expr_depth) = (40 + dna.below(41), [7, 14], 2);
                *w = Weights { barrier: 14, exchange: 20, assign: 16, ..*w };
                config.workgroup_memory = true;
            }
            Preset::Racy => {
                config.discipline = Discipline::Broken;
                *w = Weights { store: 24, barrier: 6, ..*w };
            }
            Preset::OrderDependent => {
                config.discipline = Discipline::Ordered;
                *w = Weights { atomic: 30, ..*w };
            }
        }
        if config.buffers[1] < 8 && dna.chance(3) {
            config.buffers = [7, 10];
        }
        if config.discipline == Discipline::Kept && dna.chance(5) {
            config.overridable = true;
            config.workgroup_memory = false;
            *w = Weights { subgroup: 0, barrier: 0, grid_sync: 0, exchange: 0, reload: 0, ..*w };
        }
        config
    }

    /// Leaves parts out, each by a choice of its own.
    fn swarm(&mut self, dna: &mut Dna<'_>) {
        let drawn = u128::from(dna.bits()) << 64 | u128::from(dna.bits());
        let leaves_out = |n: u32, of_eight: u128| drawn >> (3 * n) & 7 < of_eight;
        for (n, scalar) in [Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64].into_iter().enumerate() {
            if leaves_out(n as u32, 3) {
                self.scalars &= !bit(scalar);
            }
        }
        let w = &mut self.weights;
        let optional = [
            (&mut w.guard, 3),
            (&mut w.march, 3),
            (&mut w.exits, 4),
            (&mut w.chain, 4),
            (&mut w.reload, 4),
            (&mut w.atomic, 4),
            (&mut w.subgroup, 4),
            (&mut w.branch, 2),
            (&mut w.repeat, 2),
            (&mut w.barrier, 4),
            (&mut w.grid_sync, 5),
            (&mut w.leave, 3),
            (&mut w.return_, 4),
            (&mut w.trap, 6),
            (&mut w.scope, 4),
        ];
        for (n, (weight, of_eight)) in optional.into_iter().enumerate() {
            if leaves_out(5 + n as u32, of_eight) {
                *weight = 0;
            }
        }
        if self.weights.atomic == 0 || leaves_out(26, 3) {
            self.weights.tickets = 0;
        }
        if leaves_out(27, 3) {
            self.weights.neighbours = 0;
        }
        if leaves_out(28, 3) {
            self.weights.aliases = 0;
        }
        self.vectors = !leaves_out(20, 4);
        self.dimensions = !leaves_out(21, 5);
        self.constants = !leaves_out(22, 4);
        self.workgroup_memory = !leaves_out(23, 3);
        self.packed = if leaves_out(24, 4) { 0 } else { self.packed };
        self.hostile = if leaves_out(25, 4) { 2 } else { self.hostile };
        self.without = dna.bits() & dna.bits();
        self.statements = match dna.below(8) {
            0..=2 => 5,
            3..=6 => self.statements,
            _ => self.statements * 2,
        };
        self.expr_depth -= dna.below(2);
    }
}
