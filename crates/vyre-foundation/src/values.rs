//! Elements of buffers as people write and read them: `1, 2, 0;5, 3..6, #7fc00000`.
//!
//! An item is a value of the type that a load of the element gives, `value;count` for repetition, `from..to` for a run of integers,
//! or `#bits`: the element's bits in hexadecimal. Vectors are written as their components one after the other.

use crate::ir::{DataType, FloatMode, Scalar, ValueType};
use crate::text::{format_value, parse_value};
use std::borrow::Cow;
use vyre_host_floats::with_default_state;
use vyre_scalar::Value;
use vyre_scalar::memory::{byte_length, element_count, load, store};

/// How many elements repetitions and runs may make, so that a few characters cannot ask for all memory.
const MAX_EXPANDED: usize = 1 << 20;

/// The bytes of a list of values; the error says what is wrong with which item.
pub fn encode(element: &DataType, list: &str) -> Result<Vec<u8>, String> {
    let (scalar, components) = written_type(element).ok_or_else(|| format!("{element} has no values that can be written"))?;
    let mut values: Vec<Cow<'_, str>> = Vec::new();
    let mut expanded = 0usize;
    let list = list.trim();
    // A comma after the last value is fine; one without a value before it is a value that was forgotten.
    let items = list.strip_suffix(',').unwrap_or(list).split(',').map(str::trim).filter(|_| !list.is_empty());
    for item in items {
        if item.is_empty() {
            return Err(format!("a value is missing in `{}`", shortened(list)));
        }
        let too_many = || format!("with `{item}` there are more than {MAX_EXPANDED} elements; pass a file instead");
        if let Some((from, to)) = item.split_once("..") {
            let bound = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("`{item}` is not a run of integers"));
            let (from, to) = (bound(from)?, bound(to)?);
            expanded = expanded.saturating_add(usize::try_from(to.saturating_sub(from)).unwrap_or(0));
            if expanded > MAX_EXPANDED {
                return Err(too_many());
            }
            values.extend((from..to).map(|n| Cow::Owned(n.to_string())));
        } else if let Some((value, count)) = item.split_once(';') {
            let count: usize = count.trim().parse().map_err(|_| format!("`{item}`: `{count}` is not a count"))?;
            expanded = expanded.saturating_add(count);
            if expanded > MAX_EXPANDED {
                return Err(too_many());
            }
            values.extend(std::iter::repeat_n(Cow::Borrowed(value.trim()), count));
        } else {
            values.push(Cow::Borrowed(item));
        }
    }
    if !values.len().is_multiple_of(components) {
        return Err(format!("{} components are not a whole number of {element} elements", values.len()));
    }
    let length = byte_length(element, (values.len() / components) as u64).ok_or("too many elements")?;
    let mut bytes = vec![0; length as usize];
    for (i, parts) in values.chunks(components).enumerate() {
        put(element, scalar, &mut bytes, i, parts)?;
    }
    Ok(bytes)
}

/// What stands before the name of a type in a sentence.
fn article(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool | Scalar::U32 | Scalar::U64 => "a",
        Scalar::I32 | Scalar::I64 | Scalar::F32 | Scalar::F64 => "an",
    }
}

/// The list as far as a message shows it.
fn shortened(list: &str) -> String {
    match list.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &list[..end]),
        None => list.into(),
    }
}

/// Every element of `bytes` as written by [`encode`]; a tail that is no whole element is left out.
#[must_use]
pub fn decode(element: &DataType, bytes: &[u8]) -> Vec<String> {
    let Some((scalar, components)) = written_type(element) else { return Vec::new() };
    let count = element_count(element, bytes.len() as u64).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
    let mut out = Vec::new();
    with_default_state(|| {
        for i in 0..count {
            let value = load(element, FloatMode::Ieee, bytes, i);
            out.extend(value.0[..components].iter().map(|bits| format_value(scalar, *bits)));
        }
    });
    out
}

/// The type of one written value, and how many make an element.
fn written_type(element: &DataType) -> Option<(Scalar, usize)> {
    match element.value_type()? {
        ValueType::Scalar(scalar) => Some((scalar, 1)),
        ValueType::Vector(scalar, count) => Some((scalar, usize::from(count))),
    }
}

fn put(element: &DataType, scalar: Scalar, bytes: &mut [u8], i: usize, parts: &[Cow<'_, str>]) -> Result<(), String> {
    let width = element.bits().unwrap_or(0) as usize;
    if let ([only], 1..=64) = (parts, width)
        && let Some(raw) = only.strip_prefix('#')
    {
        let bits = u64::from_str_radix(raw, 16).ok().filter(|bits| width == 64 || bits >> width == 0);
        let bits = bits.ok_or_else(|| format!("`{only}` is not {width} bits in hexadecimal"))?;
        put_bits(bytes, i, width, bits);
        return Ok(());
    }
    let mut value = Value::default();
    for (slot, part) in value.0.iter_mut().zip(parts) {
        *slot = parse_value(scalar, part).ok_or_else(|| format!("`{part}` is not {} {scalar}", article(scalar)))?;
    }
    if let vyre_spec::Storage::LoadOnly(_) = element.storage() {
        // There is no store that rounds to these; only the values they have can be written.
        let is = |bits: &u64| load(element, FloatMode::Ieee, &[*bits as u8], 0).scalar() == value.scalar();
        let bits = (0..16).find(is).ok_or_else(|| format!("`{}` is not one of the 16 values of {element}", parts[0]))?;
        put_bits(bytes, i, width, bits);
        return Ok(());
    }
    store(element, FloatMode::Ieee, bytes, i as u32, value);
    if scalar.is_int() && load(element, FloatMode::Ieee, bytes, i as u32).scalar() != value.scalar() && parts.len() == 1 {
        return Err(format!("`{}` does not fit {element}", parts[0]));
    }
    Ok(())
}

fn put_bits(bytes: &mut [u8], i: usize, width: usize, bits: u64) {
    if width == 4 {
        bytes[i / 2] |= (bits as u8) << (4 * (i % 2));
    } else {
        let size = width / 8;
        bytes[i * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_forgotten_values_are_noticed() {
        let words = |list: &str| encode(&DataType::U32, list).map(|bytes| decode(&DataType::U32, &bytes).join(" "));
        for (list, values) in [("", ""), (" ", ""), ("7", "7"), ("1, 2,", "1 2"), ("0;2,3..5,#ff", "0 0 3 4 255"), ("5..3", "")] {
            assert_eq!(words(list).as_deref(), Ok(values), "{list}");
        }
        for list in [",", "1,,2", ",1", "1,,", "1 2", "-1", "1.5", "4294967296", "#123456789", "1;-1", "1..x"] {
            assert!(words(list).is_err(), "{list}");
        }
    }

    /// Stores wrap; what people write must be a value of the element.
    #[test]
    fn integers_that_an_element_does_not_have_are_refused() {
        let types = [
            (DataType::U8, 0, 255),
            (DataType::I8, -128, 127),
            (DataType::U16, 0, 65_535),
            (DataType::I16, -32_768, 32_767),
            (DataType::I4, -8, 7),
            (DataType::U32, 0, 0xFFFF_FFFF),
            (DataType::I32, -0x8000_0000, 0x7FFF_FFFF),
        ];
        for (element, least, most) in types {
            let read = |value: i64| encode(&element, &value.to_string()).map(|bytes| decode(&element, &bytes)[0].clone());
            for value in [least, most, 0, 1] {
                assert_eq!(read(value), Ok(value.to_string()), "{element}");
            }
            // Beyond the ends, and what would wrap to a small value.
            for value in [least - 1, most + 1, most + 2, 2 * most + 2, least - most] {
                let refused = read(value);
                assert!(
                    refused.as_ref().is_err_and(|message| message.contains(&value.to_string())),
                    "{element}: {value} gives {refused:?}"
                );
            }
        }
        assert_eq!(encode(&DataType::I8, "200"), Err("`200` does not fit i8".into()));
        assert!(encode(&DataType::I8, "1, 2, 200;3").is_err() && encode(&DataType::I8, "120..130").is_err());
        assert_eq!(encode(&DataType::I8, "#c8"), Ok(vec![200]), "bits are taken as they are");
    }

    /// A few characters cannot ask for all memory, also not again and again.
    #[test]
    fn repetitions_are_counted_together() {
        let half = MAX_EXPANDED / 2;
        assert!(encode(&DataType::U32, &format!("0;{half},1..{half}")).is_ok());
        assert!(encode(&DataType::U8, &format!("0;{half},0;{half},0;1")).is_err());
        assert!(encode(&DataType::I64, "-9223372036854775808..9223372036854775807").is_err());
    }
}
