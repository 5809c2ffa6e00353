//! Numbers as they are written: integers, decimal floats and hex floats, for the lexer and for values outside programs.
//!
//! Decimal floats are read by the standard library, which rounds correctly. Hex floats are rounded here, to nearest even, once,
//! straight into the type they are for.

use crate::ir::Literal;
use vyre_host_floats::with_default_state;
use vyre_spec::Scalar;

/// The value of a number's digits, before its sign and, for integers without suffix, before its type is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Number {
    /// Digits, and the type that the suffix gives. `None` is a magnitude that fits no type.
    Int(Option<u64>, Option<Scalar>),
    /// A float; its suffix or the lack of one gives the type.
    Float(Literal),
}

/// Why a text is no number.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum BadNumber {
    /// Letters or digits where none can be.
    Malformed {
        /// What was read.
        text: String,
        /// What to do.
        help: &'static str,
        /// The number that was most likely meant.
        meant: Option<String>,
    },
    /// A float above the largest of its type.
    Overflow(Scalar),
}

/// Reads the number that `text` begins with (a digit); gives its length in bytes too, all letters and digits that touch it included.
pub(super) fn scan(text: &str) -> (usize, Result<Number, BadNumber>) {
    let bytes = text.as_bytes();
    let run = |from: usize, wanted: fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| wanted(**byte) || **byte == b'_').count()
    };
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let exponent_end = |from: usize| {
        let sign = usize::from(matches!(at(from + 1), b'+' | b'-'));
        at(from + 1 + sign).is_ascii_digit().then(|| run(from + 1 + sign, |byte| byte.is_ascii_digit()))
    };
    // `1.` and `1.f` as in C; a range, a component or a method has something else behind the point.
    let whole = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'_').count();
    if at(whole) == b'.' {
        let after = whole + 1;
        let letter = usize::from(matches!(at(after), b'f' | b'F'));
        let next = at(after + letter);
        if next != b'.' && !next.is_ascii_alphanumeric() && next != b'_' {
            let meant = Some(format!("{}.0", &text[..whole]));
            return (
                after + letter,
                Err(malformed(&text[..whole], &text[whole..after + letter], "digits stand on both sides of a point", meant)),
            );
        }
    }
    let base = match text.get(..2) {
        Some("0x") => 16,
        Some("0b") => 2,
        _ => 10,
    };
    let (number_end, is_float) = match base {
        16 => {
            let digits_end = run(2, |byte| byte.is_ascii_hexdigit());
            let point = usize::from(at(digits_end) == b'.');
            let fraction_end = run(digits_end + point, |byte| byte.is_ascii_hexdigit());
            match at(fraction_end) {
                b'p' => (exponent_end(fraction_end).unwrap_or(fraction_end), true),
                // Without an exponent `.c7` is a component.
                _ => (digits_end, false),
            }
        }
        2 => (run(2, |byte| matches!(byte, b'0' | b'1')), false),
        _ => {
            let digits_end = run(0, |byte| byte.is_ascii_digit());
            let has_fraction = at(digits_end) == b'.' && at(digits_end + 1).is_ascii_digit();
            let mut end = if has_fraction { run(digits_end + 1, |byte| byte.is_ascii_digit()) } else { digits_end };
            if at(end) == b'e' {
                end = exponent_end(end).unwrap_or(end);
            }
            (end, end > digits_end)
        }
    };
    let end = run(number_end, |byte| byte.is_ascii_alphanumeric());
    let (number, suffix) = (&text[..number_end], &text[number_end..end]);
    let result = match (is_float, suffix, suffix_type(suffix)) {
        (true, "", _) => float(Scalar::F32, number),
        (true, "d", _) => float(Scalar::F64, number),
        (false, _, Some(ty)) => {
            int(number).map(|magnitude| Number::Int(magnitude, ty)).ok_or_else(|| explained(number, suffix, false))
        }
        (true | false, _, _) => Err(explained(number, suffix, is_float)),
    };
    (end, result)
}

/// What is wrong with a number that has too few digits or is followed by what is no suffix.
fn explained(number: &str, suffix: &str, is_float: bool) -> BadNumber {
    let decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let with = |end: &str| Some(format!("{number}{end}"));
    let (help, meant) = match (number.trim_end_matches('_'), suffix) {
        ("0x", _) => ("a hex digit stands after `0x`", None),
        ("0b", _) => ("a binary digit stands after `0b`: 0 or 1", None),
        ("0", _) if suffix.starts_with(['X', 'B']) => ("`0x` and `0b` are written small", with(&suffix.to_ascii_lowercase())),
        ("0", _) if suffix.starts_with('o') => match u64::from_str_radix(&suffix[1..].replace('_', ""), 8) {
            Ok(value) => ("there are no octal numbers; in hex it is", Some(format!("{value:#x}"))),
            Err(_) => ("there are no octal numbers", None),
        },
        (_, "u32" | "i32") if !is_float => ("the suffix of 32-bit integers is one letter", with(&suffix[..1])),
        (_, "f" | "f32") if is_float => ("a float without suffix is f32", Some(number.into())),
        (_, "f64") if is_float => ("the suffix of f64 is `d`", with("d")),
        (_, "f" | "f32") if decimal => ("a float has a point or an exponent, and no suffix when it is f32", with(".0")),
        (_, "d" | "f64") if decimal => ("a float has a point or an exponent", with(".0d")),
        (_, "e" | "E" | "p" | "P") => ("digits stand after the letter of an exponent", None),
        (_, _) if suffix.starts_with('E') => ("the `e` of an exponent is written small", with(&suffix.to_ascii_lowercase())),
        (_, _) if number.starts_with("0b") && suffix.starts_with(|c: char| c.is_ascii_digit()) => {
            ("binary digits are 0 and 1", None)
        }
        (_, _) if is_float => ("a float has no suffix when it is f32, and `d` when it is f64", None),
        (_, _) => ("the suffixes are `u`, `i`, `u64`, `i64` and, after a float, `d`", None),
    };
    malformed(number, suffix, help, meant)
}

fn malformed(number: &str, suffix: &str, help: &'static str, meant: Option<String>) -> BadNumber {
    BadNumber::Malformed { text: number.chars().chain(suffix.chars()).take(40).collect(), help, meant }
}

/// The type an integer suffix stands for; `Some(None)` for no suffix.
fn suffix_type(suffix: &str) -> Option<Option<Scalar>> {
    match suffix {
        "" => Some(None),
        "u" => Some(Some(Scalar::U32)),
        "i" => Some(Some(Scalar::I32)),
        "u64" => Some(Some(Scalar::U64)),
        "i64" => Some(Some(Scalar::I64)),
        _ => None,
    }
}

/// What follows an integer of this type; see [`suffix_type`].
pub(super) fn suffix_of(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U32 => "u",
        Scalar::I32 => "i",
        Scalar::U64 => "u64",
        Scalar::I64 => "i64",
        Scalar::F64 => "d",
        Scalar::Bool | Scalar::F32 => "",
    }
}

/// The magnitude of digits with `_` between them, in base 10, or in base 16 or 2 after `0x` or `0b`. `None` if these are not digits,
/// `Some(None)` if there are too many of them.
pub(super) fn int(text: &str) -> Option<Option<u64>> {
    let (radix, digits) = match text.get(..2) {
        Some("0x") => (16, &text[2..]),
        Some("0b") => (2, &text[2..]),
        _ => (10, text),
    };
    let mut value = Some(0u64);
    let mut any = false;
    for c in digits.chars().filter(|c| *c != '_') {
        let digit = c.to_digit(radix)?;
        any = true;
        value = value.and_then(|value| value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)));
    }
    any.then_some(value)
}

/// The float of type `scalar` (`f32` or `f64`) that `text` spells without sign and suffix: digits with a fraction or an exponent,
/// or both, in base 10 or 16.
pub(super) fn float(scalar: Scalar, text: &str) -> Result<Number, BadNumber> {
    const DIGITS: &str = "digits are missing";
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let literal = if let Some(hex) = digits.strip_prefix("0x") {
        hex_float(scalar, hex).ok_or_else(|| malformed(text, "", DIGITS, None))?
    } else if !digits.starts_with(|c: char| c.is_ascii_digit()) || digits.contains(|c: char| !"0123456789.e+-".contains(c)) {
        return Err(malformed(text, "", DIGITS, None));
    } else {
        // Reading decimal digits takes float arithmetic.
        with_default_state(|| match scalar {
            Scalar::F64 => digits.parse::<f64>().map(|value| Literal::F64(value.into())),
            Scalar::F32 | Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
                digits.parse::<f32>().map(|value| Literal::F32(value.into()))
            }
        })
        .map_err(|_| malformed(text, "", DIGITS, None))?
    };
    let infinite = match literal {
        Literal::F32(value) => value.bits() == f32::INFINITY.to_bits(),
        Literal::F64(value) => value.bits() == f64::INFINITY.to_bits(),
        Literal::Bool(_) | Literal::U32(_) | Literal::I32(_) | Literal::U64(_) | Literal::I64(_) => false,
    };
    if infinite { Err(BadNumber::Overflow(scalar)) } else { Ok(Number::Float(literal)) }
}

/// `1.8p3` without its `0x`, rounded once to nearest even; infinity above the largest finite value.
fn hex_float(scalar: Scalar, text: &str) -> Option<Literal> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let negative = exponent.starts_with('-');
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if exponent.is_empty() || !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Far beyond every float, and far from overflow in the sums below.
    const FAR: i64 = 1 << 50;
    let exponent = exponent.bytes().fold(0i64, |value, byte| (value * 10 + i64::from(byte - b'0')).min(FAR));

    // The leading 64 bits, whether any later bit is set, and the weight of the last of the 64.
    let mut bits = 0u64;
    let mut sticky = false;
    let mut weight = if negative { -exponent } else { exponent };
    let mut any = false;
    for (digits, below_point) in [(whole, false), (fraction, true)] {
        for c in digits.chars() {
            let digit = u64::from(c.to_digit(16)?);
            any = true;
            if bits >> 60 == 0 {
                bits = bits << 4 | digit;
                weight -= if below_point { 4 } else { 0 };
            } else {
                sticky |= digit != 0;
                weight += if below_point { 0 } else { 4 };
            }
        }
    }
    any.then(|| match scalar {
        Scalar::F64 => Literal::F64(f64::from_bits(round(bits, sticky, weight, 53, -1074, f64::INFINITY.to_bits())).into()),
        Scalar::F32 | Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
            let bits = round(bits, sticky, weight, 24, -149, u64::from(f32::INFINITY.to_bits()));
            Literal::F32(f32::from_bits(bits as u32).into())
        }
    })
}

/// The encoding of `bits * 2^weight` (a little more if `sticky`) as a float with `precision` bits whose smallest positive value is
/// `2^least`.
fn round(bits: u64, sticky: bool, weight: i64, precision: u32, least: i64, infinity: u64) -> u64 {
    if bits == 0 {
        return 0;
    }
    let top = weight + i64::from(63 - bits.leading_zeros());
    if top > 2000 {
        return infinity;
    }
    // The weight of the result's last bit, and how many bits fall off for it.
    let unit = (top - i64::from(precision) + 1).max(least);
    let dropped = unit - weight;
    let significand = if dropped <= 0 {
        bits << -dropped
    } else if dropped > 100 {
        0
    } else {
        let wide = u128::from(bits);
        let (kept, rest, half) = (wide >> dropped, wide & ((1 << dropped) - 1), 1u128 << (dropped - 1));
        let up = rest > half || rest == half && (sticky || kept & 1 == 1);
        kept as u64 + u64::from(up)
    };
    // The leading bit of a normal significand adds one to the exponent field, and so does a carry.
    (((unit - least) as u64) << (precision - 1)).saturating_add(significand).min(infinity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_of(text: &str) -> f32 {
        match scan(text) {
            (_, Ok(Number::Float(Literal::F32(value)))) => value.value(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn f64_of(text: &str) -> f64 {
        match scan(text) {
            (_, Ok(Number::Float(Literal::F64(value)))) => value.value(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn integers_have_their_suffix_type() {
        assert_eq!(scan("12"), (2, Ok(Number::Int(Some(12), None))));
        assert_eq!(scan("12u)"), (3, Ok(Number::Int(Some(12), Some(Scalar::U32)))));
        assert_eq!(scan("0xffi"), (5, Ok(Number::Int(Some(255), Some(Scalar::I32)))));
        assert_eq!(scan("0b1_01u64"), (9, Ok(Number::Int(Some(5), Some(Scalar::U64)))));
        assert_eq!(scan("1_000i64"), (8, Ok(Number::Int(Some(1000), Some(Scalar::I64)))));
        assert_eq!(scan("0xffd"), (5, Ok(Number::Int(Some(0xffd), None))));
        assert_eq!(scan("0..5"), (1, Ok(Number::Int(Some(0), None))));
        assert_eq!(scan("3.x"), (1, Ok(Number::Int(Some(3), None))));
        assert_eq!(scan("0x3.c7"), (3, Ok(Number::Int(Some(3), None))));
        assert_eq!(scan("18446744073709551615"), (20, Ok(Number::Int(Some(u64::MAX), None))));
        assert_eq!(scan("18446744073709551616"), (20, Ok(Number::Int(None, None))));
    }

    #[test]
    fn what_is_no_number_is_refused_whole() {
        for text in ["0x", "0b", "0b12", "12f", "1e", "2d", "1.5u", "1.5f", "0x1p", "0x1p+", "1u32", "0o7", "0x1.8p3u", "0x_"] {
            let (length, result) = scan(text);
            assert!(matches!(result, Err(BadNumber::Malformed { .. })), "{text}: {result:?}");
            assert_eq!(length, if text == "0x1p+" { 4 } else { text.len() }, "{text}");
        }
        assert_eq!(scan("1e999").1, Err(BadNumber::Overflow(Scalar::F32)));
        assert_eq!(scan("1e999d").1, Err(BadNumber::Overflow(Scalar::F64)));
        assert_eq!(scan("0x1p128").1, Err(BadNumber::Overflow(Scalar::F32)));
        assert_eq!(scan("0x1p99999999999999999999999").1, Err(BadNumber::Overflow(Scalar::F32)));
    }

    #[test]
    fn hex_floats_are_rounded_once_to_nearest_even() {
        assert_eq!(f32_of("0x1.8p3"), 12.0);
        assert_eq!(f64_of("0x1.8p3d"), 12.0);
        assert_eq!(f32_of("0x1p-149"), f32::from_bits(1));
        assert_eq!(f32_of("0x0.8p-148"), f32::from_bits(1));
        assert_eq!(f64_of("0x1p-1074d"), f64::from_bits(1));
        assert_eq!(f32_of("0x1.fffffep127"), f32::MAX);
        assert_eq!(f64_of("0x1.fffffffffffffp1023d"), f64::MAX);
        // Ties, and what a second rounding through f64 would get wrong.
        assert_eq!(f32_of("0x1.000001p0"), 1.0);
        assert_eq!(f32_of("0x1.000003p0"), f32::from_bits(0x3F80_0002));
        assert_eq!(f32_of("0x1.0000010000000000000000000001p0"), f32::from_bits(0x3F80_0001));
        assert_eq!(f32_of("0x1p-150"), 0.0);
        assert_eq!(f32_of("0x1.8p-150"), f32::from_bits(1));
        assert_eq!(f32_of("0x1.00000000000000000001p-150"), f32::from_bits(1));
        assert_eq!(f32_of("0x0p0").to_bits(), 0);
        assert_eq!(f32_of("0x1p-99999999999999999999999").to_bits(), 0);
        // The largest subnormal rounds up to the smallest normal.
        assert_eq!(f32_of("0x0.ffffffp-126"), f32::MIN_POSITIVE);
        // Many digits on either side.
        assert_eq!(f32_of(&format!("0x{}p-400", "0".repeat(100) + "1" + &"0".repeat(100))), 1.0);
        assert_eq!(f32_of(&format!("0x0.{}1p404", "0".repeat(100))), 1.0);
    }

    #[test]
    fn every_kind_of_float_survives_its_hex_spelling() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for _ in 0..10_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = f64::from_bits(state & !(1 << 63));
            if value.is_finite() {
                let (exponent, fraction) = ((state >> 52) & 0x7FF, state & ((1 << 52) - 1));
                let lead = u32::from(exponent != 0);
                let text = format!("0x{lead}.{fraction:013x}p{}d", exponent.max(1) as i64 - 1023);
                assert_eq!(f64_of(&text).to_bits(), value.to_bits(), "{text}");
                // Halving the precision by the hardware must agree.
                let narrow = value as f32;
                if narrow.is_finite() {
                    assert_eq!(f32_of(&text[..text.len() - 1]).to_bits(), narrow.to_bits(), "{text}");
                }
            }
        }
    }

    #[test]
    fn decimal_floats() {
        assert_eq!(f32_of("1.5"), 1.5);
        assert_eq!(f32_of("1e5"), 1e5);
        assert_eq!(f32_of("1.5e-3"), 1.5e-3);
        assert_eq!(f32_of("1_0.2_5e0_1"), 102.5);
        assert_eq!(f64_of("1.5d"), 1.5);
        assert_eq!(f32_of("1e-45"), f32::from_bits(1));
    }
}
