//! Loads and stores of the types below 32 bits, in both float modes: every pattern loaded, and f32 stored — all 2³² in the long
//! form (`VYRE_LONG=1`), else every 1021st and those next to values and midpoints of the format.
//!
//! The formats of 16 and 8 bits are compared with `rustc_apfloat`, a port of LLVM's soft-float. Our rules differ from IEEE's in
//! three places, which are applied to the soft-float's result here: NaN has no sign or payload, the 8-bit formats saturate, and
//! canonical mode has no small numbers. Nibbles have the values of published tables and are never stored.

mod sweep;

use rustc_apfloat::FloatConvert;
use rustc_apfloat::ieee::{BFloatS, Float8E4M3FNS, Float8E5M2S, HalfS, IeeeFloat, Semantics, Single};
use sweep::soft::{Format, Overflow, hard_to_round, narrowed, patterns, widened};
use sweep::{Extent, Random, Report, Type, extent};
use vyre_scalar::{Value, memory};
use vyre_spec::nibble::NF4;
use vyre_spec::{DataType, FloatMode};

fn load(ty: &DataType, mode: FloatMode, pattern: u16) -> u64 {
    memory::load(ty, mode, &pattern.to_le_bytes(), 0).scalar()
}

fn store(ty: &DataType, mode: FloatMode, value: u64) -> u64 {
    let mut bytes = [0; 2];
    memory::store(ty, mode, &mut bytes, 0, Value::from(value));
    u16::from_le_bytes(bytes).into()
}

fn compare<S: Semantics>(format: &Format)
where
    IeeeFloat<S>: FloatConvert<Single>,
    Single: FloatConvert<IeeeFloat<S>>,
{
    let ty = &format.ty;
    let mut report = Report::new(format!("load of {ty}"));
    for pattern in patterns::<S>() {
        for mode in FloatMode::ALL {
            let expected = Type::F32.canonical(mode, widened::<S>(pattern).into());
            report.check(load(ty, mode, pattern), expected, || format!("{ty} {pattern:#06x}, {mode:?}"));
        }
    }
    report.finish();

    let mut report = Report::new(format!("store to {ty}"));
    let mut check = |bits: u32| {
        for mode in FloatMode::ALL {
            let value = Type::F32.canonical(mode, bits.into());
            let expected = narrowed::<S>(format, mode, value);
            report.check(store(ty, mode, value), expected, || format!("f32 {bits:#010x}, {mode:?}"));
        }
    };
    match extent() {
        Extent::Everything => (0..=u32::MAX).for_each(check),
        Extent::Sample | Extent::Digests => {
            (0..=u32::MAX).step_by(1021).for_each(&mut check);
            hard_to_round::<S>().for_each(check);
        }
    }
    report.finish();
}

#[test]
fn f16_is_binary16() {
    compare::<HalfS>(&Format { ty: DataType::F16, overflow: Overflow::Infinity, nan: 0x7E00 });
}

#[test]
fn bf16_is_bfloat() {
    compare::<BFloatS>(&Format { ty: DataType::BF16, overflow: Overflow::Infinity, nan: 0x7FC0 });
}

#[test]
fn f8e4m3_is_the_ocp_format_and_saturates() {
    compare::<Float8E4M3FNS>(&Format { ty: DataType::F8E4M3, overflow: Overflow::Saturates, nan: 0x7F });
}

#[test]
fn f8e5m2_is_the_ocp_format_and_saturates() {
    compare::<Float8E5M2S>(&Format { ty: DataType::F8E5M2, overflow: Overflow::Saturates, nan: 0x7E });
}

/// The values of E2M1 as OCP lists them.
const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

#[test]
fn every_nibble_loads_as_its_value_from_either_half_of_a_byte() {
    let mut report = Report::new("load of a nibble");
    for byte in 0..=u8::MAX {
        for (index, nibble) in [(0, byte % 16), (1, byte / 16)] {
            let signed = i32::from(nibble) - if nibble < 8 { 0 } else { 16 };
            for mode in FloatMode::ALL {
                let float = |bits: u32| Type::F32.canonical(mode, bits.into());
                for (ty, expected) in [
                    (DataType::I4, u64::from(signed as u32)),
                    (DataType::FP4, float(E2M1[usize::from(nibble)].to_bits())),
                    (DataType::NF4, float(NF4[usize::from(nibble)])),
                ] {
                    let found = memory::load(&ty, mode, &[byte], index).scalar();
                    report.check(found, expected, || format!("{ty} {nibble:#x}, {mode:?}"));
                }
            }
        }
    }
    report.finish();
}

#[test]
fn every_small_integer_widens_by_its_sign_and_stores_wrap() {
    let mut report = Report::new("small integers");
    let mut random = Random(1);
    for pattern in 0..=u16::MAX {
        let high = random.next();
        for (ty, width, widened) in [
            (DataType::U8, 8, u32::from(pattern as u8)),
            (DataType::I8, 8, i32::from(pattern as i8) as u32),
            (DataType::U16, 16, u32::from(pattern)),
            (DataType::I16, 16, i32::from(pattern as i16) as u32),
        ] {
            let mask = (1u64 << width) - 1;
            for mode in FloatMode::ALL {
                report.check(load(&ty, mode, pattern), u64::from(widened), || format!("load of {ty} {pattern:#x}"));
                let value = u64::from(high as u32 & !(mask as u32)) | u64::from(pattern) & mask;
                report.check(store(&ty, mode, value), value & mask, || format!("store of {value:#x} to {ty}"));
            }
        }
    }
    report.finish();
}
