//! What a program may be made of: presets, and the swarm that switches parts of one off for each program.
//!
//! A program that may contain everything contains a little of each and rarely enough of two things that go wrong together. So every
//! program first draws which types and statements it goes without, and spends its size on the rest.

use crate::dna::Dna;
use vyre_foundation::ir::Scalar;

macro_rules! presets {
    ($( $variant:ident $name:literal $doc:literal; )*) => {
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
        }
    };
}

presets! {
    Ints "ints" "Integer arithmetic of both widths.";
    Floats "floats" "Float arithmetic, elementary functions and conversions.";
    Divergent "divergent" "Branches, loops, breaks and early returns that invocations take differently.";
    Barriers "barriers" "Workgroup memory handed on across barriers, also in loops.";
    Atomics "atomics" "Atomics of all kinds, in storage and workgroup memory.";
    Subgroups "subgroups" "Votes, shuffles, reductions and scans among lanes.";
    Packed "packed" "Buffers of elements narrower than a word.";
    Gridsync "gridsync" "Phases of the whole grid.";
    HostileIndices "hostile-indices" "Indices at and far past the ends of buffers.";
    Deep "deep" "Long programs, nested far.";
    Everything "everything" "All of the above, a different part of it in each program.";
    Racy "racy" "Programs whose invocations get in each other's way; not to be compared.";
    OrderDependent "order-dependent" "Programs whose atomics see each other's results; not to be compared.";
}

impl Preset {
    /// The preset with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.iter().copied().find(|preset| preset.name() == name)
    }

    /// Whether its programs give the same bytes under every schedule.
    #[must_use]
    pub const fn is_deterministic(self) -> bool {
        !matches!(self, Preset::Racy | Preset::OrderDependent)
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
                repeat: 8,
                barrier: 5,
                grid_sync: 3,
                leave: 6,
                return_: 2,
                trap: 1,
                scope: 3,
                exchange: 6,
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
                *w = Weights { atomic: 0, subgroup: 0, barrier: 0, grid_sync: 0, exchange: 0, ..*w };
            }
            Preset::Divergent => *w = Weights { branch: 20, repeat: 14, leave: 14, return_: 5, ..*w },
            Preset::Barriers => {
                *w = Weights { barrier: 12, repeat: 12, exchange: 24, ..*w };
                config.workgroup_memory = true;
            }
            Preset::Atomics => *w = Weights { atomic: 24, barrier: 8, exchange: 12, ..*w },
            Preset::Subgroups => *w = Weights { subgroup: 30, return_: 5, ..*w },
            Preset::Packed => config.packed = 90,
            Preset::Gridsync => *w = Weights { grid_sync: 12, exchange: 20, ..*w },
            Preset::HostileIndices => config.hostile = 70,
            Preset::Deep => {
                (config.statements, config.depth, config.expr_depth) = (90, 9, 7);
                *w = Weights { branch: 18, repeat: 14, ..*w };
            }
            Preset::Everything => {}
            Preset::Racy => {
                config.discipline = Discipline::Broken;
                *w = Weights { store: 24, barrier: 6, ..*w };
            }
            Preset::OrderDependent => {
                config.discipline = Discipline::Ordered;
                *w = Weights { atomic: 30, ..*w };
            }
        }
        config
    }

    /// Leaves parts out, each by a choice of its own.
    fn swarm(&mut self, dna: &mut Dna<'_>) {
        let drawn = dna.bits();
        let leaves_out = |n: u32, of_eight: u64| drawn >> (3 * n) & 7 < of_eight;
        for (n, scalar) in [Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64].into_iter().enumerate() {
            if leaves_out(n as u32, 3) {
                self.scalars &= !bit(scalar);
            }
        }
        let w = &mut self.weights;
        let optional = [
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
        self.vectors = !leaves_out(15, 4);
        self.dimensions = !leaves_out(16, 5);
        self.constants = !leaves_out(17, 4);
        self.workgroup_memory = !leaves_out(18, 3);
        self.packed = if leaves_out(19, 4) { 0 } else { self.packed };
        self.hostile = if leaves_out(20, 4) { 2 } else { self.hostile };
        self.without = dna.bits() & dna.bits();
        self.statements = match dna.below(8) {
            0..=2 => 5,
            3..=6 => self.statements,
            _ => self.statements * 2,
        };
        self.expr_depth -= dna.below(2);
    }
}
