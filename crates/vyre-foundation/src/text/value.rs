//! Single values as text, for check files and the command line.

use super::number::{self, Number};
use crate::ir::{Literal, Scalar};
use vyre_host_floats::with_default_state;

/// The bits of a value of type `scalar`: `12`, `-3`, `0xff`, `1_000`, `1.5`, `1e-3`, `0x1.8p3`, `inf`, `-inf`, `nan`, `true`; an
/// integer is fine where a float is asked for, and `#7fc00000` gives the bits of any type. `None` if the text is no such value, or one
/// that the type does not have.
#[must_use]
pub fn parse_value(scalar: Scalar, text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix('#') {
        return raw_bits(scalar, bits);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match scalar {
        Scalar::Bool => match text {
            "true" | "1" => Some(1),
            "false" | "0" => Some(0),
            _ => None,
        },
        Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
            if !digits.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let value = super::ast::OpenInt { negative, magnitude: number::int(digits)? };
            value.of_type(scalar).map(Literal::bits)
        }
        Scalar::F32 | Scalar::F64 => {
            let literal = match digits {
                "inf" if scalar == Scalar::F32 => Literal::F32(f32::INFINITY.into()),
                "inf" => Literal::F64(f64::INFINITY.into()),
                "nan" if negative => return None,
                "nan" if scalar == Scalar::F32 => Literal::F32(f32::NAN.into()),
                "nan" => Literal::F64(f64::NAN.into()),
                _ => finite(scalar, digits)?,
            };
            let sign = u64::from(negative) << (scalar.bits() - 1);
            Some(literal.bits() ^ sign)
        }
    }
}

fn raw_bits(scalar: Scalar, digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().filter(|bits| scalar.bytes() == 8 || *bits <= u64::from(u32::MAX))
}

/// A finite float without sign: whatever the language reads as one or as an integer, without suffix.
fn finite(scalar: Scalar, digits: &str) -> Option<Literal> {
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // An integer is the float with exponent 0: correctly rounded, however many digits it has.
    let text = match number::int(digits) {
        Some(_) if digits.starts_with("0x") => format!("{digits}p0"),
        Some(_) if digits.starts_with("0b") => return None,
        Some(_) => format!("{digits}e0"),
        None => digits.to_string(),
    };
    // The whole text must be one number: `scan` stops where a number ends.
    match number::scan(&text) {
        (length, Ok(Number::Float(literal))) if length == text.len() && literal.scalar() == Scalar::F32 => {}
        (_, Err(number::BadNumber::Overflow(_))) if scalar == Scalar::F64 => {}
        (_, _) => return None,
    }
    match number::float(scalar, &text) {
        Ok(Number::Float(literal)) => Some(literal),
        Ok(Number::Int(..)) | Err(_) => None,
    }
}

/// The value with these bits, as short as [`parse_value`] can read it back: `12`, `-3`, `1.5`, `3.0`, `inf`, `nan`, `-0.0`, `1e-45`,
/// `true`. Bits that no value of the type has, such as other NaNs, are written `#7fc00001`.
#[must_use]
pub fn format_value(scalar: Scalar, bits: u64) -> String {
    let literal = Literal::from_bits(scalar, bits);
    if literal.bits() != bits {
        return format!("#{bits:x}");
    }
    match literal {
        Literal::Bool(value) => value.to_string(),
        Literal::U32(value) => value.to_string(),
        Literal::I32(value) => value.to_string(),
        Literal::U64(value) => value.to_string(),
        Literal::I64(value) => value.to_string(),
        Literal::F32(_) | Literal::F64(_) => float_text(literal),
    }
}

/// The shortest decimal that is read as the same float, without suffix; with a point or an exponent, so that it is no integer.
pub(super) fn float_text(literal: Literal) -> String {
    // Whether there is an exponent is decided by comparing floats.
    let text = with_default_state(|| match literal {
        Literal::F32(value) => format!("{:?}", value.value()),
        Literal::F64(value) => format!("{:?}", value.value()),
        Literal::Bool(_) | Literal::U32(_) | Literal::I32(_) | Literal::U64(_) | Literal::I64(_) => {
            format!("{:?}", literal.bits())
        }
    });
    if text == "NaN" { "nan".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_within_range() {
        assert_eq!(parse_value(Scalar::U32, "4_294_967_295"), Some(0xFFFF_FFFF));
        assert_eq!(parse_value(Scalar::U32, "4294967296"), None);
        assert_eq!(parse_value(Scalar::U32, "-1"), None);
        assert_eq!(parse_value(Scalar::U32, "0xff"), Some(255));
        assert_eq!(parse_value(Scalar::I32, "-2147483648"), Some(0x8000_0000));
        assert_eq!(parse_value(Scalar::I32, "2147483648"), None);
        assert_eq!(parse_value(Scalar::I32, "0xffffffff"), None);
        assert_eq!(parse_value(Scalar::I64, "-1"), Some(u64::MAX));
        assert_eq!(parse_value(Scalar::U64, "18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_value(Scalar::U64, "18446744073709551616"), None);
        for text in ["", "-", "--1", "1.0", "0x", "_", "1u", " 1", "1 ", "+1", "a", "#", "#-1", "#+1", "0x-1", "-#1"] {
            assert_eq!(parse_value(Scalar::I32, text), None, "{text:?}");
        }
        assert_eq!(parse_value(Scalar::I32, "#ffffffff"), Some(0xFFFF_FFFF));
        assert_eq!(parse_value(Scalar::I32, "#100000000"), None);
    }

    #[test]
    fn floats() {
        let f32_bits = |value: f32| Some(u64::from(value.to_bits()));
        for (text, value) in [
            ("1.5", 1.5),
            ("-1.5", -1.5),
            ("3", 3.0),
            ("-0", -0.0),
            ("-0.0", -0.0),
            ("16777217", 16_777_216.0),
            ("0xff", 255.0),
            ("1e5", 1e5),
            ("0x1.8p3", 12.0),
            ("-inf", f32::NEG_INFINITY),
            ("1_0.5", 10.5),
            ("340282346638528859811704183484516925440", f32::MAX),
        ] {
            assert_eq!(parse_value(Scalar::F32, text), f32_bits(value), "{text}");
        }
        assert_eq!(parse_value(Scalar::F32, "nan"), Some(0x7FC0_0000));
        assert_eq!(parse_value(Scalar::F64, "nan"), Some(0x7FF8_0000_0000_0000));
        assert_eq!(parse_value(Scalar::F64, "1e300"), Some(1e300f64.to_bits()));
        assert_eq!(parse_value(Scalar::F64, "-0.1"), Some((-0.1f64).to_bits()));
        assert_eq!(parse_value(Scalar::F32, "#7fc00001"), Some(0x7FC0_0001));
        for text in [
            "", "-", "1e999", "1e", "1.", ".5", "1.5d", "1.5f", "-nan", "inff", "infinity", "NaN", "1.5 ", "0b1", "1.5x", "1e5.5",
        ] {
            assert_eq!(parse_value(Scalar::F32, text), None, "{text:?}");
        }
        assert_eq!(parse_value(Scalar::F64, "1e999"), None);
        assert_eq!(parse_value(Scalar::F64, "1e300d"), None);
    }

    #[test]
    fn bools() {
        assert_eq!(parse_value(Scalar::Bool, "true"), Some(1));
        assert_eq!(parse_value(Scalar::Bool, "0"), Some(0));
        assert_eq!(parse_value(Scalar::Bool, "2"), None);
        assert_eq!(parse_value(Scalar::Bool, "#2"), Some(2));
    }

    #[test]
    fn values_are_short_and_read_back() {
        for (value, text) in
            [(1.5f32, "1.5"), (3.0, "3.0"), (-0.0, "-0.0"), (1e-45, "1e-45"), (f32::INFINITY, "inf"), (f32::NAN, "nan")]
        {
            assert_eq!(format_value(Scalar::F32, u64::from(value.to_bits())), text);
        }
        assert_eq!(format_value(Scalar::I32, 0xFFFF_FFFD), "-3");
        assert_eq!(format_value(Scalar::F32, 0x7FC0_0001), "#7fc00001");
        let mut state = 0x2545_F491_4F6C_DD1Du64;
        for round in 0..20_000u32 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            for scalar in Scalar::ALL {
                let bits = match round % 3 {
                    0 => state >> (state % 64),
                    1 => (state % 5).wrapping_sub(2),
                    _ => state,
                };
                let bits = if scalar.bytes() == 4 { bits & 0xFFFF_FFFF } else { bits };
                let text = format_value(scalar, bits);
                assert_eq!(parse_value(scalar, &text), Some(bits), "{scalar} {text}");
            }
        }
    }
}
