//! Expressions of two ops on floats, each of which is rounded by itself: a device that contracts a product and a sum into one rounding, or
//! rearranges them as if they were real numbers, gives other bytes; so does one that turns a negated comparison into the opposite one, which
//! it is not for NaN. Compilers look for them through names and in loops.

use super::shared::{finish, text};
use crate::cpu::Meaning;
use crate::cpu::element::{Canonical, F32, F64, Ieee, Mode};
use crate::spec::OpSpec;
use std::cmp::Ordering::{Equal, Greater, Less};
use vyre_foundation::ir::DataType;
use vyre_spec::{FloatMode, Scalar};

/// The operands are `A`, `B` and `C`, the first op's result is `P`, and `Z` is zero. In Rust `r` is what becomes of a value in between.
macro_rules! forms {
    ($( $name:ident $first:literal $second:literal |$a:ident $b:ident $c:ident $r:ident| $value:expr; )*) => {
        /// Each with its two expressions.
        const FORMS: &[(&str, &str, &str)] = &[$( (stringify!($name), $first, $second) ),*];

        fn meaning<M: Mode>(form: &str, t: Scalar) -> Option<Meaning> {
            match (form, t) {
                $(
                    (stringify!($name), Scalar::F32) => {
                        Some(Meaning::ternary::<F32<M>, F32<M>, F32<M>, F32<M>>(|$a, $b, $c| {
                            let $r = F32::<M>::canonical;
                            let _ = ($b, $c);
                            $value
                        }))
                    }
                    (stringify!($name), Scalar::F64) => {
                        Some(Meaning::ternary::<F64<M>, F64<M>, F64<M>, F64<M>>(|$a, $b, $c| {
                            let $r = F64::<M>::canonical;
                            let _ = ($b, $c);
                            $value
                        }))
                    }
                )*
                _ => None,
            }
        }
    };
}

forms! {
    product_plus "A * B" "P + C" |a b c r| r(a * b) + c;
    plus_product "A * B" "C + P" |a b c r| c + r(a * b);
    product_minus "A * B" "P - C" |a b c r| r(a * b) - c;
    minus_product "A * B" "C - P" |a b c r| c - r(a * b);
    sum_plus "A + B" "P + C" |a b c r| r(a + b) + c;
    plus_sum "A + B" "C + P" |a b c r| c + r(a + b);
    difference_plus "A - B" "P + C" |a b c r| r(a - b) + c;
    sum_minus_first "A + B" "P - A" |a b c r| r(a + b) - a;
    product_times "A * B" "P * C" |a b c r| r(a * b) * c;
    times_product "A * B" "C * P" |a b c r| c * r(a * b);
    sum_times "A + B" "P * C" |a b c r| r(a + b) * c;
    product_over_second "A * B" "P / B" |a b c r| r(a * b) / b;
    quotient_times_second "A / B" "P * B" |a b c r| r(a / b) * b;
    quotient_over "A / B" "P / C" |a b c r| r(a / b) / c;
    zero_minus_times "Z - A" "P * C" |a b c r| r(0.0 - a) * c;
    plus_zero_times "A + Z" "P * C" |a b c r| r(a + 0.0) * c;
    two_products "A * B" "P + A * C" |a b c r| r(a * b) + r(a * c);
    difference_of_products "A * B" "P - A * C" |a b c r| r(a * b) - r(a * c);
    product_of_sums "A + B" "P * (A + C)" |a b c r| r(a + b) * r(a + c);
    times_sum "B + C" "A * P" |a b c r| a * r(b + c);
    not_less "A - Z" "select(!(P < B), B, C)" |a b c r| if r(a - 0.0).partial_cmp(&b) == Some(Less) { c } else { b };
    not_at_most "A - Z" "select(!(P <= B), B, C)" |a b c r| if matches!(r(a - 0.0).partial_cmp(&b), Some(Less | Equal)) { c } else { b };
    not_greater "A - Z" "select(!(P > B), B, C)" |a b c r| if r(a - 0.0).partial_cmp(&b) == Some(Greater) { c } else { b };
    not_at_least "A - Z" "select(!(P >= B), B, C)" |a b c r| if matches!(r(a - 0.0).partial_cmp(&b), Some(Greater | Equal)) { c } else { b };
    not_equal "A - Z" "select(!(P == B), B, C)" |a b c r| if r(a - 0.0).partial_cmp(&b) == Some(Equal) { c } else { b };
    not_unequal "A - Z" "select(!(P != B), B, C)" |a b c r| if r(a - 0.0).partial_cmp(&b) == Some(Equal) { b } else { c };
    product_of_zero_plus "A * Z" "P + C" |a b c r| r(a * 0.0) + c;
}

/// One spec for each form, float type and mode.
///
/// # Panics
///
/// If a spec is not one, which is a mistake in this file.
#[must_use]
pub fn algebra() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    for (form, first, second) in FORMS {
        for t in Scalar::ALL {
            for mode in FloatMode::ALL {
                let meaning = match mode {
                    FloatMode::Ieee => meaning::<Ieee>(form, t),
                    FloatMode::Canonical => meaning::<Canonical>(form, t),
                };
                specs.extend(meaning.map(|meaning| spec(form, [first, second], t, mode, meaning)));
            }
        }
    }
    specs
}

fn spec(form: &str, [first, second]: [&str; 2], t: Scalar, mode: FloatMode, meaning: Meaning) -> OpSpec {
    let (word, floats) = match mode {
        FloatMode::Ieee => ("", ""),
        FloatMode::Canonical => (".canonical", "floats canonical\n"),
    };
    let zero = if t == Scalar::F32 { "0.0" } else { "0.0d" };
    // An expression with these for the first result and the third operand.
    let written = |expression: &str, result: &str, third: &str| -> String {
        let word = |letter: char| match letter {
            'A' => "a[i]".into(),
            'B' => "b[i]".into(),
            'C' => third.to_string(),
            'P' => result.to_string(),
            'Z' => zero.into(),
            other => other.to_string(),
        };
        expression.chars().map(word).collect()
    };
    let program = |body: String| {
        text(format!(
            "program p {{\nworkgroup SIZE\n{floats}buffer a: read {t} @0\nbuffer b: read {t} @1\nbuffer c: read {t} @2\n\
             buffer out: output {t} @3\nlet i = gid.x\nif i < len(out) {{\n{body}}}\n}}"
        ))
    };
    let first = written(first, "", "c[i]");
    let inner = format!("({first})");
    let direct = format!("out[i] = {}\n", written(second, &inner, "c[i]"));
    let named = format!("let p = {first}\nout[i] = {}\n", written(second, "p", "c[i]"));
    let summed = format!("let sum = c[i]\n{{\nlet p = {first}\nsum = {}\n}}\nout[i] = sum\n", written(second, "p", "sum"));
    let looped = format!("let sum = c[i]\nfor k in 0..1 {{\nsum = {}\n}}\nout[i] = sum\n", written(second, &inner, "sum"));
    let ty = DataType::from(t);
    // Products that need more digits than there are, and others that take the first of them away.
    let factors = [1.0 + 1.0 / 4096.0, 1.0 / 3.0, 0.1, 1e-3, 3.0].map(|value| bytes(t, value)).to_vec();
    let others = [-1.0, -(1.0 + 1.0 / 2048.0), -0.01, -1.0 / 9.0, 1e16].map(|value| bytes(t, value)).to_vec();
    let Meaning { one, many } = meaning;
    let spec = OpSpec::builder(format!("algebra.{form}{word}:{t}"))
        .signature([ty.clone(), ty.clone(), ty.clone()], ty)
        .boundary(vec![factors.clone(), factors, others])
        .program(program(direct))
        .alternative("named", program(named))
        .alternative("summed", program(summed))
        .alternative("looped", program(looped));
    finish(spec.cpu_fn(move |case| one(case)).cpu_batch(move |columns, out| many(columns, out)))
}

fn bytes(t: Scalar, value: f64) -> Vec<u8> {
    if t == Scalar::F32 { (value as f32).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
}
