//! Planted faults of single instructions: one for another, before registers are given out.

use crate::faults::Fault;
use crate::machine::lir::{
    Base, Cond, Fma, GLoadKind, GShift, GStoreKind, Inst, LoadKind, Mem, Rmw, Shift, Src, StoreKind, V2I, V3, V3I, Widen, Width,
};
use crate::machine::reg::V;

/// Puts the fault into code, if it is one of instructions. `vectors` counts the vector registers.
pub(super) fn plant(fault: Fault, code: &mut Vec<Inst>, vectors: &mut u32) {
    if fault == Fault::FusedIsTwoSteps {
        split_fused(code, vectors);
    }
    for inst in code {
        if let Some(wrong) = wrong(fault, *inst) {
            *inst = wrong;
        }
    }
}

fn split_fused(code: &mut Vec<Inst>, vectors: &mut u32) {
    let mut at = 0;
    while at < code.len() {
        if let Inst::Fma { op, d, a, b, c } = code[at] {
            let product = V(*vectors);
            *vectors += 1;
            let (times, plus) = match op {
                Fma::ps => (V3::vmulps, V3::vaddps),
                Fma::pd => (V3::vmulpd, V3::vaddpd),
            };
            code[at] = Inst::V3 { op: plus, d, a: product, b: c };
            code.insert(at, Inst::V3 { op: times, d: product, a, b: b.into() });
            at += 1;
        }
        at += 1;
    }
}

fn is_buffer(at: Mem) -> bool {
    matches!(at.base, Base::Reg(_))
}

/// What stands for the instruction with the fault; `None` if it stays.
#[expect(clippy::wildcard_enum_match_arm, reason = "what no fault is about stays")]
fn wrong(fault: Fault, inst: Inst) -> Option<Inst> {
    match inst {
        Inst::V3 { op, d, a, b } => {
            let other = |op: V3| Some(Inst::V3 { op, d, a, b });
            let exchanged = || match b {
                Src::Reg(b) => Some(Inst::V3 { op, d, a: b, b: a.into() }),
                Src::Mem(_) => None,
            };
            match (fault, op) {
                (Fault::UnsignedMinIsSigned, V3::vpminud) => other(V3::vpminsd),
                (Fault::UnsignedMaxIsSigned, V3::vpmaxud) => other(V3::vpmaxsd),
                (Fault::SignedMinIsUnsigned, V3::vpminsd) => other(V3::vpminud),
                (Fault::SignedMaxIsUnsigned, V3::vpmaxsd) => other(V3::vpmaxud),
                (Fault::ProductOfEvenElements, V3::vpmulld) => other(V3::vpmuludq),
                (Fault::SignedProductIsUnsigned, V3::vpmuldq) => other(V3::vpmuludq),
                (Fault::ArithmeticShiftByIsLogical, V3::vpsravd) => other(V3::vpsrlvd),
                (Fault::LogicalShiftByIsArithmetic, V3::vpsrlvd) => other(V3::vpsravd),
                (Fault::WideShiftByIsNarrow, V3::vpsllvq) => other(V3::vpsllvd),
                (Fault::FloatDifferenceExchanged, V3::vsubps)
                | (Fault::DoubleQuotientExchanged, V3::vdivpd)
                | (Fault::IntegerGreaterExchanged, V3::vpcmpgtd) => exchanged(),
                _ => None,
            }
        }
        Inst::V3I { op: op @ (V3I::vcmpps | V3I::vcmppd), d, a, b, imm } => {
            let imm = match (fault, imm) {
                (Fault::LessIsAtMost, 0x11) => 0x12,
                (Fault::AtMostIsLess, 0x12) => 0x11,
                (Fault::GreaterIsAtLeast, 0x1E) => 0x1D,
                (Fault::AtLeastIsGreater, 0x1D) => 0x1E,
                (Fault::EqualTakesNan, 0x00) => 0x08,
                (Fault::NotEqualDropsNan, 0x04) => 0x0C,
                (Fault::NanNeverFound, 0x03) => 0x0B,
                _ => return None,
            };
            Some(Inst::V3I { op, d, a, b, imm })
        }
        Inst::V2I { op: op @ (V2I::vroundps | V2I::vroundpd), d, a, imm } => {
            let imm = match (fault, imm) {
                (Fault::NearestIsTowardZero, 8) | (Fault::DownIsTowardZero, 9) => 11,
                (Fault::TowardZeroIsDown, 11) => 9,
                _ => return None,
            };
            Some(Inst::V2I { op, d, a, imm })
        }
        Inst::Shift { op, d, a, imm } => match (fault, op) {
            (Fault::ArithmeticShiftIsLogical, Shift::vpsrad) => Some(Inst::Shift { op: Shift::vpsrld, d, a, imm }),
            (Fault::LogicalShiftIsArithmetic, Shift::vpsrld) => Some(Inst::Shift { op: Shift::vpsrad, d, a, imm }),
            (Fault::WideShiftOneMore, Shift::vpsllq) => Some(Inst::Shift { op, d, a, imm: imm + 1 }),
            _ => None,
        },
        Inst::Widen { op, d, a } => match (fault, op) {
            (Fault::SignedWideningIsUnsigned, Widen::vpmovsxdq) => Some(Inst::Widen { op: Widen::vpmovzxdq, d, a }),
            (Fault::UnsignedWideningIsSigned, Widen::vpmovzxdq) => Some(Inst::Widen { op: Widen::vpmovsxdq, d, a }),
            _ => None,
        },
        Inst::Blend { d, b, .. } if fault == Fault::BlendIgnoresMask => Some(match b {
            Src::Reg(a) => Inst::VMov { d, a },
            Src::Mem(from) => Inst::Load { kind: LoadKind::Full, d, from },
        }),
        Inst::High { d, a } if fault == Fault::HighHalfIsLow => Some(Inst::VMov { d, a }),
        Inst::Join { d, low, high } if fault == Fault::HalvesExchanged => Some(Inst::Join { d, low: high, high: low }),
        Inst::Load { kind, d, from } => {
            let kind = match (fault, kind) {
                (Fault::ByteLoadIsSigned, LoadKind::U8) => LoadKind::I8,
                (Fault::SignedByteLoadIsUnsigned, LoadKind::I8) => LoadKind::U8,
                (Fault::HalfLoadIsSigned, LoadKind::U16) => LoadKind::I16,
                (Fault::SignedHalfLoadIsUnsigned, LoadKind::I16) => LoadKind::U16,
                _ => return None,
            };
            Some(Inst::Load { kind, d, from })
        }
        Inst::Store { kind: StoreKind::Full, to, v } if fault == Fault::UpperHalfNotStored && is_buffer(to) => {
            Some(Inst::Store { kind: StoreKind::Half, to, v })
        }
        Inst::MaskStore { to, v, .. } if fault == Fault::MaskedStoreIgnoresMask => {
            Some(Inst::Store { kind: StoreKind::Full, to, v })
        }
        Inst::Splat { width: Width::W64, d, a } if fault == Fault::WideSplatIsNarrow => {
            Some(Inst::Splat { width: Width::W32, d, a })
        }
        Inst::First { width: Width::W64, d, a } if fault == Fault::FirstOfWideIsNarrow => {
            Some(Inst::First { width: Width::W32, d, a })
        }
        Inst::GShift { op: GShift::ArithmeticRight, width, d, a, imm } if fault == Fault::ScalarShiftIsLogical => {
            Some(Inst::GShift { op: GShift::Right, width, d, a, imm })
        }
        Inst::GShiftBy { op: GShift::ArithmeticRight, width, d, a, by } if fault == Fault::ScalarShiftByIsLogical => {
            Some(Inst::GShiftBy { op: GShift::Right, width, d, a, by })
        }
        Inst::GMul { width: Width::W64, d, a, b } if fault == Fault::WideProductIsNarrow => {
            Some(Inst::GMul { width: Width::W32, d, a, b })
        }
        Inst::GMov { width: Width::W64, d, a } if fault == Fault::WideMoveIsNarrow => {
            Some(Inst::GMov { width: Width::W32, d, a })
        }
        Inst::Set { cond, width, d, a, b } => {
            let cond = match (fault, cond) {
                (Fault::ScalarCompareIsSigned, Cond::Below) | (Fault::ScalarAtMostIsLess, Cond::LessEqual) => Cond::Less,
                (Fault::ScalarCompareIsSigned, Cond::AboveEqual) => Cond::GreaterEqual,
                (Fault::ScalarCompareIsSigned, Cond::Above) => Cond::Greater,
                (Fault::ScalarCompareIsSigned, Cond::BelowEqual) => Cond::LessEqual,
                (Fault::ScalarCompareIsUnsigned, Cond::Less) | (Fault::ScalarAtMostIsLess, Cond::BelowEqual) => Cond::Below,
                (Fault::ScalarCompareIsUnsigned, Cond::GreaterEqual) => Cond::AboveEqual,
                (Fault::ScalarCompareIsUnsigned, Cond::Greater) => Cond::Above,
                (Fault::ScalarCompareIsUnsigned, Cond::LessEqual) => Cond::BelowEqual,
                _ => return None,
            };
            Some(Inst::Set { cond, width, d, a, b })
        }
        Inst::Choose { cond, width, a, b, d, x, y } if fault == Fault::ChoiceExchanged => {
            Some(Inst::Choose { cond, width, a, b, d, x: y, y: x })
        }
        Inst::GLoad { kind, d, from } => {
            let kind = match (fault, kind) {
                (Fault::ScalarByteIsSigned, GLoadKind::U8) => GLoadKind::I8,
                (Fault::ScalarSignedHalfIsUnsigned, GLoadKind::I16) => GLoadKind::U16,
                _ => return None,
            };
            Some(Inst::GLoad { kind, d, from })
        }
        Inst::GStore { kind, to, a } => match (fault, kind) {
            (Fault::ByteStoreIsWord, GStoreKind::B1) | (Fault::HalfStoreIsWord, GStoreKind::B2) => {
                Some(Inst::GStore { kind: GStoreKind::B4, to, a })
            }
            _ => None,
        },
        Inst::Rmw { op, locked, d, at, a } => match (fault, op) {
            (Fault::AtomicNotLocked, _) if locked => Some(Inst::Rmw { op, locked: false, d, at, a }),
            (Fault::AtomicUnsignedMinIsSigned, Rmw::MinU) => Some(Inst::Rmw { op: Rmw::MinS, locked, d, at, a }),
            (Fault::AtomicSignedMaxIsUnsigned, Rmw::MaxS) => Some(Inst::Rmw { op: Rmw::MaxU, locked, d, at, a }),
            _ => None,
        },
        Inst::Change { op, locked: true, at, a } if fault == Fault::AtomicNotLocked => {
            Some(Inst::Change { op, locked: false, at, a })
        }
        Inst::CompareExchange { locked, d, at, expected, new } if fault == Fault::CompareExchangeExchanged => {
            Some(Inst::CompareExchange { locked, d, at, expected: new, new: expected })
        }
        Inst::CompareExchange { locked: true, d, at, expected, new } if fault == Fault::AtomicNotLocked => {
            Some(Inst::CompareExchange { locked: false, d, at, expected, new })
        }
        _ => None,
    }
}
