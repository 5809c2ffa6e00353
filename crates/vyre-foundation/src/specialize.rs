//! Specialization: values for a program's constants, put in before anything else looks at the program.
//!
//! The result has no constants left: in expressions they are literals, in sizes numbers, in element types types. It is an ordinary
//! program and is validated like one.

use crate::diagnostic::{Diagnostic, Location, Mistakes, Report, one_of};
use crate::ir::{Body, DataType, Element, Expr, F32Bits, Literal, Name, Node, Parts, Program, Scalar, Size};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use vyre_host_floats::with_default_state;
use vyre_spec::ErrorCode;

/// The value of a specialization constant; floats are the same if their bits are, and every NaN is the one NaN, as in programs.
#[derive(Clone, Debug)]
pub enum SpecValue {
    /// A `u32`; the only kind that sizes and counts take.
    U32(u32),
    /// An `i32`.
    I32(i32),
    /// An `f32`, told apart by its bits; which NaN it is does not count.
    F32(f32),
    /// A `bool`.
    Bool(bool),
    /// An element type.
    DType(DataType),
}

impl PartialEq for SpecValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (SpecValue::U32(a), SpecValue::U32(b)) => a == b,
            (SpecValue::I32(a), SpecValue::I32(b)) => a == b,
            (SpecValue::F32(a), SpecValue::F32(b)) => F32Bits::from(*a) == F32Bits::from(*b),
            (SpecValue::Bool(a), SpecValue::Bool(b)) => a == b,
            (SpecValue::DType(a), SpecValue::DType(b)) => a == b,
            (
                SpecValue::U32(_) | SpecValue::I32(_) | SpecValue::F32(_) | SpecValue::Bool(_) | SpecValue::DType(_),
                SpecValue::U32(_) | SpecValue::I32(_) | SpecValue::F32(_) | SpecValue::Bool(_) | SpecValue::DType(_),
            ) => false,
        }
    }
}

impl Eq for SpecValue {}

/// Values by their Rust types.
macro_rules! from_values {
    ($( $type:ty => $kind:ident; )*) => { $(
        impl From<$type> for SpecValue {
            fn from(value: $type) -> Self {
                SpecValue::$kind(value)
            }
        }
    )* };
}

from_values! {
    u32 => U32;
    i32 => I32;
    f32 => F32;
    bool => Bool;
    DataType => DType;
}

impl SpecValue {
    /// The value as it stands in an expression; `None` for a type.
    #[must_use]
    pub fn literal(&self) -> Option<Literal> {
        match self {
            SpecValue::U32(value) => Some(Literal::U32(*value)),
            SpecValue::I32(value) => Some(Literal::I32(*value)),
            SpecValue::F32(value) => Some(Literal::F32((*value).into())),
            SpecValue::Bool(value) => Some(Literal::Bool(*value)),
            SpecValue::DType(_) => None,
        }
    }

    /// The type as it stands in the declaration of a constant.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.literal().map_or("dtype", |literal| literal.scalar().name())
    }

    /// One value of each kind.
    pub(crate) fn one_of_each() -> [SpecValue; 5] {
        [SpecValue::U32(0), SpecValue::I32(0), SpecValue::F32(0.0), SpecValue::Bool(false), SpecValue::DType(DataType::U32)]
    }

    /// The value as a number, for devices that take override constants so; a type is its tag.
    #[must_use]
    pub fn as_pipeline_f64(&self) -> f64 {
        match self {
            SpecValue::U32(value) => f64::from(*value),
            SpecValue::I32(value) => f64::from(*value),
            // Under denormals-are-zero a conversion loses small values.
            SpecValue::F32(value) => with_default_state(|| f64::from(F32Bits::from(*value).value())),
            SpecValue::Bool(value) => f64::from(u8::from(*value)),
            SpecValue::DType(data_type) => f64::from(data_type.tag()),
        }
    }

    /// The kind in the low byte, the bits above it, and the parameters of a type, hashed, in the top 24 bits.
    #[must_use]
    pub fn cache_hash(&self) -> u64 {
        let (kind, bits, parameters) = match self {
            SpecValue::U32(value) => (0, *value, 0),
            SpecValue::I32(value) => (1, *value as u32, 0),
            SpecValue::F32(value) => (2, F32Bits::from(*value).bits(), 0),
            SpecValue::Bool(value) => (3, u32::from(*value), 0),
            SpecValue::DType(data_type) => {
                let plain = DataType::plain_from_tag(data_type.tag()).is_some();
                let hash = blake3::hash(data_type.to_string().as_bytes());
                let [a, b, c, ..] = *hash.as_bytes();
                (4, data_type.tag(), if plain { 0 } else { u32::from_le_bytes([a, b, c, 0]) })
            }
        };
        kind | u64::from(bits) << 8 | u64::from(parameters) << 40
    }

    /// Reads a value of this kind; see [`SpecValue::kind`].
    #[must_use]
    pub fn parse(kind: &str, text: &str) -> Option<SpecValue> {
        SpecValue::one_of_each().iter().find(|value| value.kind() == kind)?.parse_same_kind(text)
    }

    /// Reads a value of the same kind as this one, as `--const` takes it: `7`, `-1.5`, `true`, `f16`.
    #[must_use]
    pub fn parse_same_kind(&self, text: &str) -> Option<SpecValue> {
        match self {
            SpecValue::U32(_) => crate::text::parse_value(Scalar::U32, text).map(|bits| SpecValue::U32(bits as u32)),
            SpecValue::I32(_) => crate::text::parse_value(Scalar::I32, text).map(|bits| SpecValue::I32(bits as u32 as i32)),
            SpecValue::F32(_) => {
                crate::text::parse_value(Scalar::F32, text).map(|bits| SpecValue::F32(f32::from_bits(bits as u32)))
            }
            SpecValue::Bool(_) => crate::text::parse_value(Scalar::Bool, text).map(|bits| SpecValue::Bool(bits != 0)),
            SpecValue::DType(_) => crate::text::parse_data_type(text).map(SpecValue::DType),
        }
    }
}

/// The spelling in the text form.
impl fmt::Display for SpecValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecValue::U32(value) => value.fmt(f),
            SpecValue::I32(value) => value.fmt(f),
            SpecValue::F32(value) => Expr::f32(*value).fmt(f),
            SpecValue::Bool(value) => value.fmt(f),
            SpecValue::DType(data_type) => data_type.fmt(f),
        }
    }
}

/// The program with its constants replaced by `values`, and by their defaults where there is none. A program remembers the results
/// for the latest values, so that what these found out about themselves is found out once.
///
/// A value for a name that is no constant, or of another type than the constant, is an error, as is a type that does not load as
/// the default does.
pub fn specialize<'a>(program: &Program, values: impl IntoIterator<Item = (&'a str, &'a SpecValue)>) -> Result<Program, Report> {
    let parts = program.parts();
    let mut chosen: Vec<&SpecValue> = parts.consts.iter().map(|decl| &decl.default).collect();
    let mut mistakes = Mistakes::default();
    let mut known: HashMap<&str, usize> = HashMap::with_capacity(parts.consts.len());
    for (n, decl) in parts.consts.iter().enumerate() {
        known.entry(decl.name.as_str()).or_insert(n);
    }
    for (name, value) in values {
        let Some(n) = known.get(name).copied() else {
            mistakes.push_with(|| unknown_constant(parts, name));
            continue;
        };
        let decl = &parts.consts[n];
        let location = Location::Const(n as u32);
        if decl.default.kind() != value.kind() {
            mistakes.push(
                Diagnostic::new(ErrorCode::E0710, format!("`{}` needs a {}, found {value}", decl.name, decl.default.kind()))
                    .at(location)
                    .expected(decl.default.kind())
                    .found(value.kind()),
            );
        } else if let (SpecValue::DType(old), SpecValue::DType(new)) = (&decl.default, value)
            && old.value_type() != new.value_type()
        {
            let name_of = |ty: &DataType| ty.value_type().map_or("nothing".to_string(), |ty| ty.to_string());
            mistakes.push(
                Diagnostic::new(
                    ErrorCode::E0413,
                    format!("`{}` is {old}, which loads as {}; {new} loads as {}", decl.name, name_of(old), name_of(new)),
                )
                .at(location)
                .expected(format!("a type that loads as {}", name_of(old)))
                .found(new),
            );
        } else {
            chosen[n] = value;
        }
    }
    if !mistakes.is_empty() {
        return Err(Report::about(program, mistakes));
    }
    if parts.consts.is_empty() {
        return Ok(program.clone());
    }
    // Names are judged before constants are gone: one that is also a variable's would be replaced in its place. What else is wrong
    // with the program may be so with the defaults only.
    if let Err(report) = program.validated()
        && report.codes().any(|code| code == ErrorCode::E0202)
    {
        return Err(report.clone());
    }
    let values: Vec<SpecValue> = chosen.into_iter().cloned().collect();
    Ok(program.specializations().get(values, |values| {
        let names = parts.consts.iter().map(|decl| decl.name.clone());
        substitute(program, &names.zip(values.iter().cloned()).collect())
    }))
}

/// How many results a program remembers.
const REMEMBERED: usize = 8;

/// The latest results of [`specialize`] for one program, each with the values of all its constants in the order of declaration.
#[derive(Default)]
pub(crate) struct Specializations(Mutex<VecDeque<(Vec<SpecValue>, Program)>>);

impl Specializations {
    fn get(&self, values: Vec<SpecValue>, make: impl FnOnce(&[SpecValue]) -> Program) -> Program {
        // A list of results is whole at any time.
        let results = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = results().iter().find(|(of, _)| *of == values) {
            return found.clone();
        }
        let made = make(&values);
        let mut results = results();
        results.truncate(REMEMBERED - 1);
        results.push_front((values, made.clone()));
        made
    }
}

fn unknown_constant(parts: &Parts, name: &str) -> Diagnostic {
    let diagnostic =
        Diagnostic::new(ErrorCode::E0709, format!("the program has no specialization constant `{name}`")).found(name);
    match parts.consts.as_slice() {
        [] => diagnostic.help("it declares no constants"),
        consts => diagnostic.expected(one_of(consts.iter().map(|decl| decl.name.as_str()))),
    }
}

fn substitute(program: &Program, values: &BTreeMap<Name, SpecValue>) -> Program {
    let mut parts = program.parts().clone();
    parts.consts.clear();
    let resize = |size: &mut Size| {
        if let Size::Const(name) = size
            && let Some(SpecValue::U32(value)) = values.get(name)
        {
            *size = Size::Lit(*value);
        }
    };
    parts.workgroup.iter_mut().for_each(&resize);
    for buffer in &mut parts.buffers {
        buffer.count.iter_mut().for_each(&resize);
        if let Element::Const(name) = &buffer.element
            && let Some(SpecValue::DType(data_type)) = values.get(name)
        {
            buffer.element = Element::Type(data_type.clone());
        }
    }
    substitute_body(&mut parts.body, values);
    Program::with_source(parts, program.source().cloned())
}

/// Keeps its own stacks: the program may not be validated yet, so its depth is not bounded.
fn substitute_body(body: &mut Body, values: &BTreeMap<Name, SpecValue>) {
    let mut nodes: Vec<&mut Node> = body.iter_mut().collect();
    while let Some(node) = nodes.pop() {
        {
            let mut exprs: Vec<&mut Expr> = node.exprs_mut().collect();
            while let Some(expr) = exprs.pop() {
                if let Expr::Var(name) = expr {
                    if let Some(literal) = values.get(name).and_then(SpecValue::literal) {
                        *expr = Expr::Lit(literal);
                    }
                } else {
                    exprs.extend(expr.children_mut().map(|child| &mut **child));
                }
            }
        }
        nodes.extend(node.bodies_mut().flat_map(|body| body.iter_mut()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_give_the_program_that_is_remembered_and_others_never_do() {
        let text = "program p {\n  workgroup 1\n  const a: u32 = 0\n  const b: f32 = 0.0\n  buffer out: output u32[1] @0\n\n  \
                    out[a] = u32(b)\n}\n";
        let program = crate::text::parse("p", text).unwrap_or_else(|report| panic!("{report}"));
        let with = |a: u32, b: f32| {
            let (a, b) = (SpecValue::U32(a), SpecValue::F32(b));
            specialize(&program, [("a", &a), ("b", &b)]).unwrap_or_else(|report| panic!("{report}"))
        };
        let is_same = |one: &Program, other: &Program| std::ptr::eq(one.interface(), other.interface());
        let first = with(1, -0.0);
        assert!(is_same(&first, &with(1, -0.0)));
        assert!(first != with(1, 0.0) && first != with(0, -0.0), "floats differ by bits");
        let defaults = specialize(&program, []).unwrap_or_else(|report| panic!("{report}"));
        assert!(is_same(&defaults, &with(0, 0.0)), "a default that is said is a default");
        for n in 0..3 * REMEMBERED as u32 {
            let text = with(n, 1.0).to_string();
            assert!(text.contains(&format!("out[{n}] = u32(1.0)")), "{text}");
        }
        assert!(first == with(1, -0.0) && !is_same(&first, &with(1, -0.0)), "only the latest are remembered");
    }

    /// Kind in the low byte, bits in the next four; so values of different kinds differ also where their bits do not.
    #[test]
    fn hashes_tell_kinds_and_values_apart() {
        let table = [
            (SpecValue::U32(7), 7, 0),
            (SpecValue::I32(7), 7, 1),
            (SpecValue::F32(f32::from_bits(7)), 7, 2),
            (SpecValue::U32(1), 1, 0),
            (SpecValue::I32(1), 1, 1),
            (SpecValue::Bool(true), 1, 3),
            (SpecValue::U32(u32::MAX), u32::MAX, 0),
            (SpecValue::I32(-1), u32::MAX, 1),
            (SpecValue::F32(1.0), 0x3F80_0000, 2),
            (SpecValue::F32(-0.0), 0x8000_0000, 2),
            (SpecValue::F32(0.0), 0, 2),
            (SpecValue::DType(DataType::U32), DataType::U32.tag(), 4),
        ];
        for (one, bits, kind) in &table {
            assert_eq!(one.cache_hash(), u64::from(*bits) << 8 | kind, "{one:?}");
            for (other, ..) in &table {
                assert_eq!(one == other, one.cache_hash() == other.cache_hash(), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn every_nan_is_one_value_in_whatever_way_it_is_looked_at() {
        let text = "program p {\n  workgroup 1\n  const f: f32 = 1.0\n  buffer out: output f32[1] @0\n\n  out[0] = f\n}\n";
        let program = crate::text::parse("p", text).unwrap_or_else(|report| panic!("{report}"));
        let nan = |bits: u32| SpecValue::F32(f32::from_bits(bits));
        let with = |value: &SpecValue| specialize(&program, [("f", value)]).unwrap_or_else(|report| panic!("{report}"));
        let defaulting = |default: &SpecValue| {
            let mut parts = program.parts().clone();
            parts.consts[0].default = default.clone();
            Program::from_parts(parts)
        };
        let one = nan(0x7FC0_0000);
        for bits in [0x7FC0_0001, 0xFFC0_0000, 0x7F80_0001, 0xFFFF_FFFF] {
            let other = nan(bits);
            assert_eq!(one, other, "{bits:#x}");
            assert_eq!(one.cache_hash(), other.cache_hash(), "{bits:#x}");
            assert_eq!(one.literal(), other.literal(), "{bits:#x}");
            assert_eq!(one.to_string(), other.to_string(), "{bits:#x}");
            assert_eq!(one.as_pipeline_f64().to_bits(), other.as_pipeline_f64().to_bits(), "{bits:#x}");
            assert_eq!(with(&one), with(&other), "{bits:#x}");
            let (a, b) = (defaulting(&one), defaulting(&other));
            assert!(a == b && a.fingerprint() == b.fingerprint(), "{bits:#x}");
        }
        let infinity = nan(0x7F80_0000);
        assert!(one != infinity && one.cache_hash() != infinity.cache_hash());
    }

    #[test]
    fn a_variable_that_has_the_name_of_a_constant_is_not_replaced_but_refused() {
        let text =
            "program p {\n  workgroup 1\n  const k: u32 = 3\n  buffer out: output u32[1] @0\n\n  let k = 7\n  out[0] = k\n}\n";
        let program = crate::text::parse("p", text).unwrap_or_else(|report| panic!("{report}"));
        for values in [vec![], vec![("k", &SpecValue::U32(5))]] {
            let refused = specialize(&program, values).expect_err("the name is taken");
            assert!(refused.codes().any(|code| code == ErrorCode::E0202), "{refused}");
        }
    }
}
