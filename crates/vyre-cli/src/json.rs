//! What commands say with `--json`: one object per line of standard output.

use serde_json::{Value, json};
use vyre::ir::{DataType, FloatMode, Scalar, ValueType};
pub use vyre::json::{one, report};

/// The elements of a buffer; floats that JSON has no number for are strings.
pub fn elements(element: &DataType, bytes: &[u8]) -> Vec<Value> {
    let scalar = match element.value_type() {
        Some(ValueType::Scalar(scalar) | ValueType::Vector(scalar, _)) => scalar,
        None => return Vec::new(),
    };
    let count = vyre::scalar::memory::element_count(element, bytes.len() as u64).unwrap_or(0);
    let components = match element.value_type() {
        Some(ValueType::Vector(_, count)) => usize::from(count),
        Some(ValueType::Scalar(_)) | None => 1,
    };
    let mut values = Vec::new();
    for i in 0..count {
        let loaded = vyre::scalar::memory::load(element, FloatMode::Ieee, bytes, i as u32);
        values.extend(loaded.0[..components].iter().map(|bits| value(scalar, *bits)));
    }
    values
}

fn value(scalar: Scalar, bits: u64) -> Value {
    let number = match scalar {
        Scalar::Bool => return json!(bits != 0),
        Scalar::U32 | Scalar::U64 => return json!(bits),
        Scalar::I32 => return json!(bits as u32 as i32),
        Scalar::I64 => return json!(bits as i64),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
    };
    serde_json::Number::from_f64(number).map_or_else(|| json!(vyre::text::format_value(scalar, bits)), Value::Number)
}
