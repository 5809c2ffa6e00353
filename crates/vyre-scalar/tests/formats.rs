//! The small float formats against `rustc_apfloat`, a port of LLVM's soft-float: every pattern widened, and f32 narrowed — all
//! 2³² in the long form (`VYRE_LONG=1`), else every 1021st and those next to values and midpoints of the format.
//!
//! Our rules differ from IEEE's in two places, which are applied to the soft-float's result here: NaN has no sign or payload, and
//! the 8-bit formats saturate.

mod sweep;

use rustc_apfloat::ieee::{BFloat, Float8E4M3FN, Float8E5M2, Half, IeeeFloat, Semantics, Single};
use rustc_apfloat::{Float, FloatConvert};
use sweep::{Extent, Report, extent};
use vyre_scalar::small::{BF16, F8E4M3, F8E5M2, F16, Format, narrow, widen};

const NAN: u32 = 0x7FC0_0000;

/// What a format does with an infinity or a number beyond its largest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Infinity,
    Saturates,
}

fn check_narrow<S: Semantics>(report: &mut Report, format: &Format, overflow: Overflow, bits: u32)
where
    Single: FloatConvert<IeeeFloat<S>>,
{
    let value = Single::from_bits(bits.into());
    let rounded: IeeeFloat<S> = value.convert(&mut false).value;
    let expected = if value.is_nan() {
        u64::from(format.nan)
    } else if overflow == Overflow::Saturates && !rounded.is_finite() {
        IeeeFloat::<S>::largest().copy_sign(rounded).to_bits() as u64
    } else {
        rounded.to_bits() as u64
    };
    let found = u64::from(narrow(format, f32::from_bits(bits)));
    report.check(found, expected, || format!("f32 {bits:#010x}"));
}

fn compare<S: Semantics>(name: &str, format: &Format, overflow: Overflow)
where
    IeeeFloat<S>: FloatConvert<Single>,
    Single: FloatConvert<IeeeFloat<S>>,
{
    let mut report = Report::new(format!("{name} to f32"));
    let patterns = 0..=(u16::MAX >> (16 - format.bits));
    for pattern in patterns.clone() {
        let value = IeeeFloat::<S>::from_bits(pattern.into());
        let wide: Single = value.convert(&mut false).value;
        let expected = if value.is_nan() { NAN } else { wide.to_bits() as u32 };
        report.check(widen(format, pattern).to_bits(), expected, || format!("{name} {pattern:#06x}"));
    }
    report.finish();

    let mut report = Report::new(format!("f32 to {name}"));
    match extent() {
        Extent::Everything => {
            for bits in 0..=u32::MAX {
                check_narrow(&mut report, format, overflow, bits);
            }
        }
        Extent::Sample | Extent::Digests => {
            for bits in (0..=u32::MAX).step_by(1021) {
                check_narrow(&mut report, format, overflow, bits);
            }
            for pattern in patterns {
                let value = widen(format, pattern).to_bits();
                // One step of the format is 2^(23 - fraction bits) steps of f32, except among its subnormals.
                let half = 1 << (22 - format.fraction_bits);
                for center in [value, value.wrapping_add(half), value.wrapping_sub(half)] {
                    for bits in [center.wrapping_sub(1), center, center.wrapping_add(1)] {
                        check_narrow(&mut report, format, overflow, bits);
                    }
                }
            }
            // Midpoints of subnormals, and what is too small for any.
            let least = f64::from(widen(format, 1));
            for k in 0..2048 {
                let center = (least * f64::from(k) / 2.0) as f32;
                for bits in [center.next_down(), center, center.next_up()].map(f32::to_bits) {
                    check_narrow(&mut report, format, overflow, bits);
                    check_narrow(&mut report, format, overflow, bits ^ 0x8000_0000);
                }
            }
        }
    }
    report.finish();
}

#[test]
fn f16_is_binary16() {
    compare::<rustc_apfloat::ieee::HalfS>("f16", &F16, Overflow::Infinity);
    assert_eq!(Half::largest().to_bits(), F16.max.into());
}

#[test]
fn bf16_is_bfloat() {
    compare::<rustc_apfloat::ieee::BFloatS>("bf16", &BF16, Overflow::Infinity);
    assert_eq!(BFloat::largest().to_bits(), BF16.max.into());
}

#[test]
fn f8e4m3_is_the_ocp_format_and_saturates() {
    compare::<rustc_apfloat::ieee::Float8E4M3FNS>("f8e4m3", &F8E4M3, Overflow::Saturates);
    assert_eq!(Float8E4M3FN::largest().to_bits(), F8E4M3.max.into());
}

#[test]
fn f8e5m2_is_the_ocp_format_and_saturates() {
    compare::<rustc_apfloat::ieee::Float8E5M2S>("f8e5m2", &F8E5M2, Overflow::Saturates);
    assert_eq!(Float8E5M2::largest().to_bits(), F8E5M2.max.into());
}
