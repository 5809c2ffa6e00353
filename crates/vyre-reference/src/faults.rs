//! Interpreters with one fault each, for judges to be judged by: what compares programs must notice every one of them.
//!
//! Each fault is one that real backends have had: a shift that is not masked, a barrier that does not wait, a NaN that compares. All
//! else is the plain interpreter.

use crate::dispatch::Prepared;
use crate::error::RunError;
use crate::observe::{Access, AccessKind, AtomicAccess, Observer};
use crate::plain::Options;
use crate::semantics::{Moment, Semantics};
use crate::subgroup::{self, Lane};
use vyre_foundation::ir::{
    AtomicOp, Axis, BinaryOp, Builtin, DataType, FloatMode, Program, Scalar, SubgroupOp, TernaryOp, UnaryOp,
};
use vyre_foundation::specialize;
use vyre_host_floats::with_default_state;
use vyre_scalar::Value;
use vyre_spec::SubgroupShape;

macro_rules! faults {
    ($( $variant:ident $name:literal $doc:literal; )*) => {
        /// A fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fault { $( #[doc = $doc] $variant, )* }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$( Fault::$variant ),*];

            /// Its name, as in `--subject fault:NAME`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Fault::$variant => $name, )* }
            }

            /// What goes wrong.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $( Fault::$variant => $doc, )* }
            }
        }
    };
}

faults! {
    ShiftMask "shift-mask" "A shift by the width or more gives 0.";
    ShrLogical "shr-logical" "`>>` of a signed integer brings in zeros.";
    SubSwapped "sub-swapped" "Integer `a - b` is `b - a`.";
    DivByZero "div-by-zero" "Integer `x / 0` is 0.";
    RemByZero "rem-by-zero" "Integer `x % 0` is x.";
    DivOverflow "div-overflow" "`MIN / -1` is 0.";
    MulhiUnsigned "mulhi-unsigned" "`mulhi` takes signed operands as unsigned.";
    MulLow "mul-low" "64-bit `*` loses the upper half of the left side.";
    AbsDiff "abs-diff" "`abs_diff` is the magnitude of a difference that has wrapped.";
    ClzZero "clz-zero" "`clz(0)` is one less than the width.";
    CtzZero "ctz-zero" "`ctz(0)` is 0.";
    RotateWay "rotate-way" "`rotr` rotates left.";
    SatAddWraps "sat-add-wraps" "`sat_add` wraps.";
    SatSubFloor "sat-sub-floor" "Signed `sat_sub` ends at 0 instead of MIN.";
    CompareUnsigned "compare-unsigned" "`<` of signed integers compares bits.";
    NanCompare "nan-compare" "`<` is true when a side is NaN.";
    NanUnequal "nan-unequal" "`!=` is false when a side is NaN.";
    MinNan "min-nan" "`min` of a number and NaN is NaN.";
    MaxZero "max-zero" "`max` of zeros gives its left side.";
    NegZero "neg-zero" "`-x` is `0 - x`, which loses -0.";
    RoundHalfway "round-halfway" "`round` takes ties away from zero.";
    FmaTwice "fma-twice" "`fma` rounds the product too.";
    RemFloored "rem-floored" "Float `%` takes the sign of the divisor.";
    FlushSum "flush-sum" "Float `+` flushes subnormal sums under `floats ieee`.";
    CanonicalIgnored "canonical-ignored" "Float `*` keeps subnormals under `floats canonical`.";
    Exp2Ulp "exp2-ulp" "`exp2` is the next float up where it is inexact.";
    SelectSwapped "select-swapped" "`select` of f32 takes the other one.";
    CastSaturates "cast-saturates" "Float to integer keeps the low bits when out of range.";
    CastNan "cast-nan" "NaN becomes the smallest integer.";
    CastTruncates "cast-truncates" "`u32` to `f32` rounds toward zero.";
    CastSign "cast-sign" "`i32` to a 64-bit integer is not sign-extended.";
    LoadNan "load-nan" "Loads of f32 keep the sign and payload of a NaN.";
    HalfTruncates "half-truncates" "Stores to f16 round toward zero.";
    ByteSaturates "byte-saturates" "Stores to u8 saturate.";
    NibbleOrder "nibble-order" "The high nibble is the first.";
    BoolLoad "bool-load" "A bool loads as its lowest bit.";
    LastElement "last-element" "An index just past the end names the last element.";
    IndexWraps "index-wraps" "Indices lose their two upper bits.";
    LengthRounded "length-rounded" "`len` is one too many for an odd length.";
    IdsSwapped "ids-swapped" "`lid.y` and `lid.z` are swapped.";
    LastComponent "last-component" "The last component of a vector of four is the third.";
    LostAtomic "lost-atomic" "An atomic add that makes a negative number is lost.";
    AtomicNew "atomic-new" "An atomic gives the new value.";
    ExchangeAlways "exchange-always" "A compare-exchange always writes.";
    AtomicMaxUnsigned "atomic-max-unsigned" "An atomic max of i32 compares bits.";
    WrongLane "wrong-lane" "`shuffle_up` reads from one lane too far.";
    RetiredLanes "retired-lanes" "Retired lanes count as 0 in reductions.";
    ScanExclusive "scan-exclusive" "Exclusive scans include the lane itself.";
    LoopEnd "loop-end" "A loop of three rounds or more makes one too few.";
    ContinueBreaks "continue-breaks" "`continue` leaves the loop.";
    MissedBarrier "missed-barrier" "Barriers do not wait.";
    StaleMemory "stale-memory" "Workgroup memory still holds what the workgroup before left.";
    StaleAfterSync "stale-after-sync" "Workgroup memory survives a grid barrier.";
    LostWorkgroup "lost-workgroup" "The last of three or more workgroups does not run.";
    TrapLast "trap-last" "The largest invocation that traps is reported.";
}

impl Fault {
    /// The fault with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Fault> {
        Fault::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}

/// Runs a program as [`crate::run`] does, with a fault. The schedule is always forward.
pub fn run(fault: Fault, program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    with_default_state(|| {
        let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
        let program = specialize(program, values)?;
        let mut prepared = Prepared::new(&program, inputs, options)?;
        let storage = std::mem::take(&mut prepared.storage);
        prepared.run(storage, &crate::Schedule::Forward, &mut options.fuel.clone(), &mut Faulty(fault))
    })
}

struct Faulty(Fault);

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }
}

/// The bits of the type's lowest value.
fn lowest(ty: Scalar) -> u64 {
    1 << (ty.bits() - 1)
}

fn mask(ty: Scalar) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

fn is_nan(ty: Scalar, a: u64) -> bool {
    vyre_scalar::unary(UnaryOp::IsNan, ty, FloatMode::Ieee, a) != 0
}

/// The next float away from zero.
fn further(ty: Scalar, a: u64) -> u64 {
    let exponent = match ty {
        Scalar::F32 => 0x7F80_0000,
        Scalar::F64 => 0x7FF0_0000_0000_0000,
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => 0,
    };
    if a & exponent == exponent { a } else { a + 1 }
}

impl Semantics for Faulty {
    fn unary(&self, op: UnaryOp, ty: Scalar, mode: FloatMode, a: u64) -> u64 {
        let right = vyre_scalar::unary(op, ty, mode, a);
        if self.is(Fault::ClzZero) && op == UnaryOp::Clz && a == 0 {
            return right - 1;
        }
        if self.is(Fault::CtzZero) && op == UnaryOp::Ctz && a == 0 {
            return 0;
        }
        if self.is(Fault::NegZero) && op == UnaryOp::Neg && ty.is_float() {
            return vyre_scalar::binary(BinaryOp::Sub, ty, mode, 0, a);
        }
        if self.is(Fault::RoundHalfway) && op == UnaryOp::Round {
            let away = |x: f64| x.round();
            return match ty {
                Scalar::F32 => u64::from((away(f64::from(f32::from_bits(a as u32))) as f32).to_bits()),
                Scalar::F64 => away(f64::from_bits(a)).to_bits(),
                Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => right,
            };
        }
        if self.is(Fault::Exp2Ulp) && op == UnaryOp::Exp2 && right & 0xFFFF != 0 {
            return further(ty, right);
        }
        right
    }

    fn binary(&self, op: BinaryOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
        use BinaryOp::{AbsDiff, Add, Div, Lt, Max, Min, Mul, Mulhi, Ne, Rem, Rotl, Rotr, SatAdd, SatSub, Shl, Shr, Sub};
        let with = |op, ty, a, b| vyre_scalar::binary(op, ty, mode, a, b);
        let right = with(op, ty, a, b);
        let int = ty.is_int();
        let nan = ty.is_float() && (is_nan(ty, a) || is_nan(ty, b));
        match (self.0, op) {
            (Fault::ShiftMask, Shl | Shr) if b >= u64::from(ty.bits()) => 0,
            (Fault::ShrLogical, Shr) => with(op, ty.unsigned(), a, b),
            (Fault::SubSwapped, Sub) if int => with(op, ty, b, a),
            (Fault::DivByZero, Div) if int && b == 0 => 0,
            (Fault::RemByZero, Rem) if int && b == 0 => a,
            (Fault::DivOverflow, Div) if ty.is_signed_int() && a == lowest(ty) && b == mask(ty) => 0,
            (Fault::MulhiUnsigned, Mulhi) => with(op, ty.unsigned(), a, b),
            (Fault::MulLow, Mul) if int && ty.bits() == 64 => with(op, ty, a & 0xFFFF_FFFF, b),
            (Fault::AbsDiff, AbsDiff) if ty.is_signed_int() => vyre_scalar::unary(UnaryOp::Abs, ty, mode, with(Sub, ty, a, b)),
            (Fault::RotateWay, Rotr) => with(Rotl, ty, a, b),
            (Fault::SatAddWraps, SatAdd) => with(Add, ty, a, b),
            (Fault::SatSubFloor, SatSub) if ty.is_signed_int() && right == lowest(ty) => 0,
            (Fault::CompareUnsigned, Lt) if ty.is_signed_int() => with(op, ty.unsigned(), a, b),
            (Fault::NanCompare, Lt) if nan => 1,
            (Fault::NanUnequal, Ne) if nan => 0,
            (Fault::MinNan, Min) if nan => {
                if is_nan(ty, a) {
                    a
                } else {
                    b
                }
            }
            (Fault::MaxZero, Max) if ty.is_float() && (a | b) & !lowest(ty) == 0 => a,
            (Fault::RemFloored, Rem) if ty.is_float() && right & !lowest(ty) != 0 && (right ^ b) & lowest(ty) != 0 => {
                with(Add, ty, right, b)
            }
            (Fault::FlushSum, Add) if ty.is_float() => vyre_scalar::canonicalize(ty, FloatMode::Canonical, right),
            (Fault::CanonicalIgnored, Mul) if ty.is_float() => vyre_scalar::binary(op, ty, FloatMode::Ieee, a, b),
            (_, _) => right,
        }
    }

    fn ternary(&self, op: TernaryOp, ty: Scalar, mode: FloatMode, [a, b, c]: [u64; 3]) -> u64 {
        if self.is(Fault::FmaTwice) && op == TernaryOp::Fma {
            let product = vyre_scalar::binary(BinaryOp::Mul, ty, mode, a, b);
            return vyre_scalar::binary(BinaryOp::Add, ty, mode, product, c);
        }
        if self.is(Fault::SelectSwapped) && op == TernaryOp::Select && ty == Scalar::F32 {
            return vyre_scalar::ternary(op, ty, mode, a, c, b);
        }
        vyre_scalar::ternary(op, ty, mode, a, b, c)
    }

    fn cast(&self, from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
        let right = vyre_scalar::cast(from, to, mode, a);
        if self.is(Fault::CastSaturates) && from.is_float() && to.is_int() && to.bits() == 32 {
            return vyre_scalar::cast(from, Scalar::I64, mode, a) & mask(to);
        }
        if self.is(Fault::CastNan) && from.is_float() && to.is_signed_int() && is_nan(from, a) {
            return lowest(to);
        }
        if self.is(Fault::CastTruncates) && from == Scalar::U32 && to == Scalar::F32 && a > 1 << 24 {
            let kept = 64 - a.leading_zeros() - 24;
            return vyre_scalar::cast(from, to, mode, a >> kept << kept);
        }
        if self.is(Fault::CastSign) && from == Scalar::I32 && to.is_int() && to.bits() == 64 {
            return a;
        }
        right
    }

    fn load_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> Value {
        let right = vyre_scalar::memory::load(ty, mode, bytes, index);
        if self.is(Fault::LoadNan) && *ty == DataType::F32 && is_nan(Scalar::F32, right.scalar()) {
            return vyre_scalar::memory::load(&DataType::U32, mode, bytes, index);
        }
        if self.is(Fault::NibbleOrder) && ty.bits() == Some(4) {
            // An odd number of nibbles has no partner for the last.
            return vyre_scalar::memory::load(ty, mode, bytes, index ^ 1);
        }
        if self.is(Fault::BoolLoad) && *ty == DataType::Bool {
            return (vyre_scalar::memory::load(&DataType::U32, mode, bytes, index).scalar() & 1).into();
        }
        right
    }

    fn store_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &mut [u8], index: u32, value: Value) {
        if self.is(Fault::ByteSaturates) && *ty == DataType::U8 {
            return vyre_scalar::memory::store(ty, mode, bytes, index, value.scalar().min(255).into());
        }
        vyre_scalar::memory::store(ty, mode, bytes, index, value);
        if self.is(Fault::HalfTruncates) && *ty == DataType::F16 {
            let stored = vyre_scalar::memory::load(ty, mode, bytes, index).scalar();
            let magnitude = |bits: u64| f32::from_bits(bits as u32).abs();
            let half = vyre_scalar::memory::load(&DataType::U16, mode, bytes, index).scalar();
            if magnitude(stored) > magnitude(value.scalar()) {
                vyre_scalar::memory::store(&DataType::U16, mode, bytes, index, (half - 1).into());
            }
        }
    }

    fn element(&self, index: u32, length: u32) -> Option<u32> {
        if self.is(Fault::LastElement) && index == length {
            return length.checked_sub(1);
        }
        let index = if self.is(Fault::IndexWraps) { index & 0x3FFF_FFFF } else { index };
        (index < length).then_some(index)
    }

    fn length(&self, length: u32) -> u32 {
        if self.is(Fault::LengthRounded) { length + (length & 1) } else { length }
    }

    fn builtin(&self, builtin: Builtin) -> Builtin {
        match (self.0, builtin) {
            (Fault::IdsSwapped, Builtin::Local(Axis::Y)) => Builtin::Local(Axis::Z),
            (Fault::IdsSwapped, Builtin::Local(Axis::Z)) => Builtin::Local(Axis::Y),
            (_, _) => builtin,
        }
    }

    fn component(&self, component: u8) -> u8 {
        if self.is(Fault::LastComponent) && component == 3 { 2 } else { component }
    }

    fn change(&self, op: AtomicOp, ty: Scalar, old: u64, operands: &[u64]) -> Option<u64> {
        let right = vyre_scalar::atomic(op, ty, old, operands);
        match (self.0, op) {
            (Fault::LostAtomic, AtomicOp::Add) => right.filter(|new| new & lowest(ty) == 0),
            (Fault::ExchangeAlways, AtomicOp::CompareExchange) => Some(operands[1]),
            (Fault::AtomicMaxUnsigned, AtomicOp::Max) => vyre_scalar::atomic(op, ty.unsigned(), old, operands),
            (_, _) => right,
        }
    }

    fn atomic_result(&self, old: u64, new: Option<u64>) -> u64 {
        if self.is(Fault::AtomicNew) { new.unwrap_or(old) } else { old }
    }

    fn subgroup(&self, op: SubgroupOp, ty: Scalar, mode: FloatMode, lanes: &[Lane], own: usize) -> u64 {
        let right = |lanes: &[Lane]| subgroup::result(op, ty, mode, lanes, own);
        match (self.0, op.shape()) {
            (Fault::WrongLane, SubgroupShape::Shuffle(vyre_spec::ShuffleFrom::Up)) => {
                let further: Vec<Lane> = lanes.iter().map(|lane| lane.map(|[value, by]| [value, by + 1])).collect();
                right(&further)
            }
            (Fault::RetiredLanes, SubgroupShape::Reduce(_)) => {
                let present: Vec<Lane> = lanes.iter().map(|lane| Some(lane.unwrap_or_default())).collect();
                right(&present)
            }
            (Fault::ScanExclusive, SubgroupShape::Exclusive(with)) => {
                let start = vyre_scalar::identity(with, ty);
                let lane = |lane: &Lane| lane.map_or(start, |operands| operands[0]);
                lanes[..=own].iter().fold(start, |sum, value| vyre_scalar::reduce(with, ty, mode, sum, lane(value)))
            }
            (_, _) => right(lanes),
        }
    }

    fn loop_end(&self, from: u32, to: u32) -> u32 {
        if self.is(Fault::LoopEnd) && to.saturating_sub(from) >= 3 { to - 1 } else { to }
    }

    fn continues(&self) -> bool {
        !self.is(Fault::ContinueBreaks)
    }

    fn waits_at_barriers(&self) -> bool {
        !self.is(Fault::MissedBarrier)
    }

    fn clears_memory(&self, when: Moment) -> bool {
        match when {
            Moment::GroupStarts => !self.is(Fault::StaleMemory),
            Moment::GridSync => !self.is(Fault::StaleAfterSync),
        }
    }

    fn runs_group(&self, n: u32, of: u32) -> bool {
        !(self.is(Fault::LostWorkgroup) && of >= 3 && n == of - 1)
    }

    fn reports_before(&self, a: [u32; 3], b: [u32; 3]) -> bool {
        let before = [a[2], a[1], a[0]] < [b[2], b[1], b[0]];
        before != self.is(Fault::TrapLast)
    }
}

impl Observer for Faulty {
    fn group_starts(&mut self, _: usize) {}
    fn barrier(&mut self, _: usize) {}
    fn grid_sync(&mut self) {}
    fn turn(&mut self, _: usize, _: u32) {}
    fn load(&mut self, _: Access) {}
    fn store(&mut self, _: Access, _: impl FnOnce() -> bool) {}
    fn atomic(&mut self, _: Access, _: AtomicAccess) {}
    fn out_of_bounds(&mut self, _: Access, _: AccessKind) {}
}
