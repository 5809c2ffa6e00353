//! How simple a value is, and which simpler ones stand near it.

use vyre_foundation::ir::{Child, Expr, Literal, Scalar, ValueType};

/// The zero of a type: what an expression becomes when nothing about it matters.
pub(super) fn zero(ty: ValueType) -> Expr {
    filled(ty, 0)
}

/// The one of a type.
pub(super) fn one(ty: ValueType) -> Expr {
    let (ValueType::Scalar(scalar) | ValueType::Vector(scalar, _)) = ty;
    filled(ty, one_bits(scalar))
}

fn filled(ty: ValueType, bits: u64) -> Expr {
    match ty {
        ValueType::Scalar(scalar) => Expr::Lit(Literal::from_bits(scalar, bits)),
        ValueType::Vector(scalar, count) => {
            let component = || Child::from(Expr::Lit(Literal::from_bits(scalar, bits)));
            Expr::Vector { components: (0..count).map(|_| component()).collect() }
        }
    }
}

fn one_bits(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => 1,
        Scalar::F32 => u64::from(1f32.to_bits()),
        Scalar::F64 => 1f64.to_bits(),
    }
}

/// 0 for zero and false, 1 for one and true, and more the more there is to read: the magnitude of an integer, the bits of a float.
/// A negative number is less simple than the positive one.
pub(super) fn magnitude(literal: Literal) -> u128 {
    let signed = |value: i64| u128::from(value.unsigned_abs()) * 2 + u128::from(value < 0);
    match literal {
        Literal::Bool(value) => u128::from(value),
        Literal::U32(value) => u128::from(value) * 2,
        Literal::U64(value) => u128::from(value) * 2,
        Literal::I32(value) => signed(i64::from(value)),
        Literal::I64(value) => signed(value),
        // Widened exactly, so that both kinds are judged alike.
        Literal::F32(value) => float(f64::from(value.value())),
        Literal::F64(value) => float(value.value()),
    }
}

/// Whole numbers up to 2¹⁶ come first, then those with few digits after the point, then all others; NaN and infinities are short to
/// write and stand between.
fn float(value: f64) -> u128 {
    let sign = u128::from(value.is_sign_negative());
    let size = value.abs();
    let below = if value.is_nan() || value.is_infinite() {
        1 << 17
    } else if size.fract() == 0.0 && size < 65536.0 {
        size as u128
    } else {
        let bits = size.to_bits();
        let digits = u128::from(52 - bits.trailing_zeros().min(52));
        let exponent = ((bits >> 52) as i64 - 1023).unsigned_abs();
        (1 << 18) + (digits << 11) + u128::from(exponent)
    };
    below * 2 + sign
}

/// Simpler values to try instead, the simplest first.
pub(super) fn simpler(literal: Literal) -> Vec<Literal> {
    let scalar = literal.scalar();
    let mut bits: Vec<u64> = vec![0, one_bits(scalar)];
    match literal {
        Literal::Bool(_) => {}
        Literal::U32(value) => bits.extend(simpler_integers(u64::from(value))),
        Literal::U64(value) => bits.extend(simpler_integers(value)),
        Literal::I32(value) => bits.extend(simpler_signed(i64::from(value)).map(|value| u64::from(value as i32 as u32))),
        Literal::I64(value) => bits.extend(simpler_signed(value).map(|value| value as u64)),
        Literal::F32(value) => {
            bits.extend(simpler_floats(f64::from(value.value())).map(|value| u64::from((value as f32).to_bits())))
        }
        Literal::F64(value) => bits.extend(simpler_floats(value.value()).map(f64::to_bits)),
    }
    let mut all: Vec<Literal> = Vec::new();
    for candidate in bits.into_iter().map(|bits| Literal::from_bits(scalar, bits)) {
        if magnitude(candidate) < magnitude(literal) && !all.contains(&candidate) {
            all.push(candidate);
        }
    }
    all
}

fn simpler_integers(value: u64) -> impl Iterator<Item = u64> {
    let highest = value.checked_ilog2().map(|bit| 1 << bit);
    let one_less = (value <= 64).then(|| value.wrapping_sub(1));
    [highest, Some(value & value.wrapping_sub(1)), Some(value / 2), one_less].into_iter().flatten()
}

fn simpler_signed(value: i64) -> impl Iterator<Item = i64> {
    let smaller = simpler_integers(value.unsigned_abs());
    let negative = value < 0;
    [value.wrapping_neg(), -1]
        .into_iter()
        .chain(smaller.map(move |size| if negative { (size as i64).wrapping_neg() } else { size as i64 }))
}

fn simpler_floats(value: f64) -> impl Iterator<Item = f64> {
    let near = if value.is_finite() { vec![value.trunc(), value / 2.0, shortened(value)] } else { Vec::new() };
    let sign = if value.is_sign_negative() { vec![-value, -1.0] } else { Vec::new() };
    sign.into_iter().chain([2.0]).chain(near)
}

/// The number with the lower half of the digits it uses removed.
fn shortened(value: f64) -> f64 {
    let bits = value.to_bits();
    let unused = bits.trailing_zeros().min(52);
    let drop = unused + (53 - unused) / 2;
    f64::from_bits(bits >> drop << drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_led_to_zero_by_simpler_ones_and_none_is_offered_to_itself() {
        let starts = [
            Literal::U32(u32::MAX),
            Literal::I32(i32::MIN),
            Literal::U64(u64::MAX - 1),
            Literal::I64(i64::MIN),
            Literal::F32(f32::NAN.into()),
            Literal::F32((-3.7f32).into()),
            Literal::F64(f64::MIN_POSITIVE.into()),
            Literal::F64(f64::NEG_INFINITY.into()),
            Literal::Bool(true),
        ];
        for start in starts {
            // The worst way down: always the least simple offer.
            let mut value = start;
            let mut steps = 0;
            while let Some(next) = simpler(value).into_iter().max_by_key(|literal| magnitude(*literal)) {
                assert!(magnitude(next) < magnitude(value), "{next:?} for {value:?}");
                assert_eq!(next.scalar(), start.scalar());
                value = next;
                steps += 1;
                assert!(steps < 2000, "{start:?}");
            }
            assert_eq!(magnitude(value), 0, "{start:?} ends in {value:?}");
        }
    }

    #[test]
    fn zero_and_one_of_every_type_are_the_simplest() {
        for scalar in Scalar::ALL {
            let (Expr::Lit(zero), Expr::Lit(one)) = (zero(scalar.into()), one(scalar.into())) else {
                unreachable!("a scalar's zero is a literal")
            };
            assert_eq!(magnitude(zero), 0);
            assert!((1..=2).contains(&magnitude(one)));
        }
    }
}
