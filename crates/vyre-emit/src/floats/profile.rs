//! Which lowerings are right on a device.

use super::library::FloatOp;
use serde::{Deserialize, Serialize};
use vyre_spec::{BinaryOp, FloatMode, TernaryOp, UnaryOp};

/// How a float op is computed, from the cheapest to the one that needs nothing from the device but integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The device's instruction. Needs a promise of the language that compilers do not rewrite it: SPIR-V with `NoContraction` and
    /// the float controls.
    Native,
    /// The device's instruction, with operands that the compiler cannot know anything about: each is xor-ed with a zero that is
    /// loaded at run time.
    Protected,
    /// The device's instruction gives a first guess, which integers make exact. Division and square root.
    Corrected,
    /// Integers only.
    Integer,
}

impl Rung {
    /// Every rung, the cheapest first.
    pub const ALL: [Rung; 4] = [Rung::Native, Rung::Protected, Rung::Corrected, Rung::Integer];

    /// Its name in profiles and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Native => "native",
            Rung::Protected => "protected",
            Rung::Corrected => "corrected",
            Rung::Integer => "integer",
        }
    }
}

/// The ops that have more than one rung.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LadderOp {
    /// `a + b`
    Add,
    /// `a - b`; also what `fract` subtracts with.
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// The square root.
    Sqrt,
    /// `a * b + c`, rounded once.
    Fma,
}

impl LadderOp {
    /// Every op with more than one rung.
    pub const ALL: [LadderOp; 6] = [LadderOp::Add, LadderOp::Sub, LadderOp::Mul, LadderOp::Div, LadderOp::Sqrt, LadderOp::Fma];

    /// The mnemonic of the op.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LadderOp::Add => "add",
            LadderOp::Sub => "sub",
            LadderOp::Mul => "mul",
            LadderOp::Div => "div",
            LadderOp::Sqrt => "sqrt",
            LadderOp::Fma => "fma",
        }
    }

    /// The op as one of the library.
    #[must_use]
    pub const fn op(self) -> FloatOp {
        match self {
            LadderOp::Add => FloatOp::Binary(BinaryOp::Add),
            LadderOp::Sub => FloatOp::Binary(BinaryOp::Sub),
            LadderOp::Mul => FloatOp::Binary(BinaryOp::Mul),
            LadderOp::Div => FloatOp::Binary(BinaryOp::Div),
            LadderOp::Sqrt => FloatOp::Unary(UnaryOp::Sqrt),
            LadderOp::Fma => FloatOp::Ternary(TernaryOp::Fma),
        }
    }

    /// Whether the op has this rung.
    #[must_use]
    pub const fn has(self, rung: Rung) -> bool {
        match rung {
            Rung::Native | Rung::Protected | Rung::Integer => true,
            Rung::Corrected => match self {
                LadderOp::Div | LadderOp::Sqrt => true,
                LadderOp::Add | LadderOp::Sub | LadderOp::Mul | LadderOp::Fma => false,
            },
        }
    }
}

/// The rung of each op in one float mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rungs {
    /// Of [`LadderOp::Add`].
    pub add: Rung,
    /// Of [`LadderOp::Sub`].
    pub sub: Rung,
    /// Of [`LadderOp::Mul`].
    pub mul: Rung,
    /// Of [`LadderOp::Div`].
    pub div: Rung,
    /// Of [`LadderOp::Sqrt`].
    pub sqrt: Rung,
    /// Of [`LadderOp::Fma`].
    pub fma: Rung,
}

impl Rungs {
    /// Integers only.
    pub const INTEGER: Rungs = Rungs {
        add: Rung::Integer,
        sub: Rung::Integer,
        mul: Rung::Integer,
        div: Rung::Integer,
        sqrt: Rung::Integer,
        fma: Rung::Integer,
    };

    fn place(&mut self, op: LadderOp) -> &mut Rung {
        match op {
            LadderOp::Add => &mut self.add,
            LadderOp::Sub => &mut self.sub,
            LadderOp::Mul => &mut self.mul,
            LadderOp::Div => &mut self.div,
            LadderOp::Sqrt => &mut self.sqrt,
            LadderOp::Fma => &mut self.fma,
        }
    }
}

/// The cheapest proven rung of each op in each float mode on one device: what a compiler for it may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloatProfile {
    /// In `floats ieee`.
    pub ieee: Rungs,
    /// In `floats canonical`.
    pub canonical: Rungs,
}

impl FloatProfile {
    /// Right on every device whose integers are: integers only.
    pub const INTEGER: FloatProfile = FloatProfile { ieee: Rungs::INTEGER, canonical: Rungs::INTEGER };

    /// The rung of `op`.
    #[must_use]
    pub fn rung(&self, mode: FloatMode, op: LadderOp) -> Rung {
        let mut copy = *self;
        *copy.rungs(mode).place(op)
    }

    /// Sets the rung of `op`; the caller has proof.
    pub fn set(&mut self, mode: FloatMode, op: LadderOp, rung: Rung) {
        assert!(op.has(rung), "{} has no rung {}", op.name(), rung.name());
        *self.rungs(mode).place(op) = rung;
    }

    fn rungs(&mut self, mode: FloatMode) -> &mut Rungs {
        match mode {
            FloatMode::Ieee => &mut self.ieee,
            FloatMode::Canonical => &mut self.canonical,
        }
    }
}
