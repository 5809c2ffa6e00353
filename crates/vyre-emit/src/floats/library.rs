//! From ops to WGSL: which function an op is, and the text of all functions that a set of ops needs.
//!
//! The functions are written in the files of `wgsl/`, as items that begin in the first column and end with the next line that is
//! just `}` (or `;` at the end of a line that begins one). What differs by rung, float mode or memory format only is made here. An
//! item needs those whose names occur in it.

use super::profile::{FloatProfile, LadderOp, Rung};
use super::table;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;
use vyre_scalar::small::{self, Format};
use vyre_spec::{BinaryOp, DataType, FloatMode, Scalar, TernaryOp, UnaryOp};

/// A float format that exists in memory only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SmallFloat {
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// OCP E4M3.
    F8E4M3,
    /// OCP E5M2.
    F8E5M2,
    /// E2M1; can only be loaded.
    Fp4,
    /// NormalFloat; can only be loaded.
    Nf4,
}

impl SmallFloat {
    /// Every format.
    pub const ALL: [SmallFloat; 6] =
        [SmallFloat::F16, SmallFloat::Bf16, SmallFloat::F8E4M3, SmallFloat::F8E5M2, SmallFloat::Fp4, SmallFloat::Nf4];

    /// The format of elements of this type; `None` for those that are not small floats.
    #[must_use]
    pub fn of(ty: &DataType) -> Option<SmallFloat> {
        match ty {
            DataType::F16 => Some(SmallFloat::F16),
            DataType::BF16 => Some(SmallFloat::Bf16),
            DataType::F8E4M3 => Some(SmallFloat::F8E4M3),
            DataType::F8E5M2 => Some(SmallFloat::F8E5M2),
            DataType::FP4 => Some(SmallFloat::Fp4),
            DataType::NF4 => Some(SmallFloat::Nf4),
            DataType::U32
            | DataType::I32
            | DataType::F32
            | DataType::Bool
            | DataType::U64
            | DataType::I64
            | DataType::F64
            | DataType::U8
            | DataType::I8
            | DataType::U16
            | DataType::I16
            | DataType::I4
            | DataType::Vec2U32
            | DataType::Vec4U32
            | DataType::Vec { .. }
            | DataType::Bytes
            | DataType::Array { .. }
            | DataType::Tensor
            | DataType::Handle(_)
            | DataType::TensorShaped { .. }
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => None,
        }
    }

    /// The type of its elements.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        match self {
            SmallFloat::F16 => DataType::F16,
            SmallFloat::Bf16 => DataType::BF16,
            SmallFloat::F8E4M3 => DataType::F8E4M3,
            SmallFloat::F8E5M2 => DataType::F8E5M2,
            SmallFloat::Fp4 => DataType::FP4,
            SmallFloat::Nf4 => DataType::NF4,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            SmallFloat::F16 => "f16",
            SmallFloat::Bf16 => "bf16",
            SmallFloat::F8E4M3 => "f8e4m3",
            SmallFloat::F8E5M2 => "f8e5m2",
            SmallFloat::Fp4 => "fp4",
            SmallFloat::Nf4 => "nf4",
        }
    }

    /// The layout, for those that can be stored.
    const fn format(self) -> Option<Format> {
        match self {
            SmallFloat::F16 => Some(small::F16),
            SmallFloat::Bf16 => Some(small::BF16),
            SmallFloat::F8E4M3 => Some(small::F8E4M3),
            SmallFloat::F8E5M2 => Some(small::F8E5M2),
            SmallFloat::Fp4 | SmallFloat::Nf4 => None,
        }
    }
}

/// What the library has functions for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FloatOp {
    /// An op with one operand, on f32.
    Unary(UnaryOp),
    /// An op with two operands, on f32.
    Binary(BinaryOp),
    /// An op with three operands, on f32.
    Ternary(TernaryOp),
    /// A cast, to or from f32.
    Cast {
        /// The type of the operand.
        from: Scalar,
        /// The type of the result.
        to: Scalar,
    },
    /// Any pattern of 32 bits as an f32: what a load of f32 and a bitcast to it do.
    Canonicalize,
    /// The value of an element of a small format.
    Load(SmallFloat),
    /// The pattern that is stored for a value.
    Store(SmallFloat),
}

/// As the text form writes it, with the types: `add`, `u32(f32)`, `load f16`.
impl fmt::Display for FloatOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FloatOp::Unary(op) => f.write_str(op.mnemonic()),
            FloatOp::Binary(op) => f.write_str(op.mnemonic()),
            FloatOp::Ternary(op) => f.write_str(op.mnemonic()),
            FloatOp::Cast { from, to } => write!(f, "{to}({from})"),
            FloatOp::Canonicalize => f.write_str("load f32"),
            FloatOp::Load(small) => write!(f, "load {}", small.name()),
            FloatOp::Store(small) => write!(f, "store {}", small.name()),
        }
    }
}

/// What `floats canonical` adds to a function that is right in `floats ieee`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Canonical {
    /// Nothing: the result of canonical operands is canonical, or no float.
    Same,
    /// The result is flushed.
    Flushed,
}

/// A function of the library before it is chosen by mode and rung.
struct Function {
    name: String,
    /// Types of the operands.
    operands: &'static [&'static str],
    result: &'static str,
    canonical: Canonical,
    ladder: Option<LadderOp>,
}

const FLOAT: &str = "u32";
const ONE: &[&str] = &[FLOAT];
const TWO: &[&str] = &[FLOAT, FLOAT];

impl FloatOp {
    /// Every op that the library has a function for.
    pub fn all() -> impl Iterator<Item = FloatOp> {
        let unary = UnaryOp::ALL.iter().map(|op| FloatOp::Unary(*op));
        let binary = BinaryOp::ALL.iter().map(|op| FloatOp::Binary(*op));
        let ternary = TernaryOp::ALL.iter().map(|op| FloatOp::Ternary(*op));
        let casts = Scalar::ALL
            .into_iter()
            .flat_map(|other| [FloatOp::Cast { from: Scalar::F32, to: other }, FloatOp::Cast { from: other, to: Scalar::F32 }]);
        let memory = SmallFloat::ALL.into_iter().flat_map(|small| [FloatOp::Load(small), FloatOp::Store(small)]);
        let all = unary.chain(binary).chain(ternary).chain(casts).chain(memory).chain([FloatOp::Canonicalize]);
        all.filter(|op| op.function().is_some())
    }

    /// The op whose rung decides which function is called.
    #[must_use]
    pub fn ladder(self) -> Option<LadderOp> {
        self.function().and_then(|function| function.ladder)
    }

    /// `None` for what is not defined on f32, or not a function: casts to itself, and `select`, which does not look at values.
    fn function(self) -> Option<Function> {
        use Canonical::{Flushed, Same};
        let (name, operands, result, canonical, ladder) = match self {
            FloatOp::Unary(op) => {
                let (canonical, ladder) = match op {
                    UnaryOp::Abs | UnaryOp::Sign => (Same, None),
                    UnaryOp::Neg | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => (Flushed, None),
                    UnaryOp::Sqrt => (Flushed, Some(LadderOp::Sqrt)),
                    UnaryOp::Fract => (Flushed, Some(LadderOp::Sub)),
                    UnaryOp::IsNan | UnaryOp::IsInf => return Some(Function::new(op.mnemonic(), ONE, "bool", Same, None)),
                    UnaryOp::Exp
                    | UnaryOp::Exp2
                    | UnaryOp::Log
                    | UnaryOp::Log2
                    | UnaryOp::Sin
                    | UnaryOp::Cos
                    | UnaryOp::Tan
                    | UnaryOp::Tanh
                    | UnaryOp::Atan
                    | UnaryOp::Rsqrt => (Flushed, None),
                    UnaryOp::Not
                    | UnaryOp::Popcount
                    | UnaryOp::Clz
                    | UnaryOp::Ctz
                    | UnaryOp::ReverseBits
                    | UnaryOp::SwapBytes => return None,
                };
                (op.mnemonic(), ONE, FLOAT, canonical, ladder)
            }
            FloatOp::Binary(op) => {
                let (result, canonical, ladder) = match op {
                    BinaryOp::Add => (FLOAT, Flushed, Some(LadderOp::Add)),
                    BinaryOp::Sub => (FLOAT, Flushed, Some(LadderOp::Sub)),
                    BinaryOp::Mul => (FLOAT, Flushed, Some(LadderOp::Mul)),
                    BinaryOp::Div => (FLOAT, Flushed, Some(LadderOp::Div)),
                    BinaryOp::Rem | BinaryOp::Copysign | BinaryOp::Pow => (FLOAT, Flushed, None),
                    BinaryOp::Min | BinaryOp::Max => (FLOAT, Same, None),
                    BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                        ("bool", Same, None)
                    }
                    BinaryOp::Mulhi
                    | BinaryOp::AbsDiff
                    | BinaryOp::BitAnd
                    | BinaryOp::BitOr
                    | BinaryOp::BitXor
                    | BinaryOp::Shl
                    | BinaryOp::Shr
                    | BinaryOp::Rotl
                    | BinaryOp::Rotr
                    | BinaryOp::SatAdd
                    | BinaryOp::SatSub
                    | BinaryOp::And
                    | BinaryOp::Or => return None,
                };
                (op.mnemonic(), TWO, result, canonical, ladder)
            }
            FloatOp::Ternary(op) => match op {
                TernaryOp::Fma => (op.mnemonic(), &[FLOAT, FLOAT, FLOAT] as &[&str], FLOAT, Flushed, Some(LadderOp::Fma)),
                TernaryOp::Select => return None,
            },
            FloatOp::Cast { from: Scalar::F32, to } => {
                let (name, result) = match to {
                    Scalar::U32 => ("u32_from_f32", "u32"),
                    Scalar::I32 => ("i32_from_f32", "u32"),
                    Scalar::U64 => ("u64_from_f32", "vec2<u32>"),
                    Scalar::I64 => ("i64_from_f32", "vec2<u32>"),
                    // The validator refuses the first; a value of type f64 cannot be.
                    Scalar::Bool | Scalar::F32 | Scalar::F64 => return None,
                };
                (name, ONE, result, Same, None)
            }
            FloatOp::Cast { from, to: Scalar::F32 } => {
                let (name, operands) = match from {
                    Scalar::Bool => ("f32_from_bool", &["bool"] as &[&str]),
                    Scalar::U32 => ("f32_from_u32", &["u32"] as &[&str]),
                    Scalar::I32 => ("f32_from_i32", &["u32"] as &[&str]),
                    Scalar::U64 => ("f32_from_u64", &["vec2<u32>"] as &[&str]),
                    Scalar::I64 => ("f32_from_i64", &["vec2<u32>"] as &[&str]),
                    Scalar::F32 | Scalar::F64 => return None,
                };
                (name, operands, FLOAT, Same, None)
            }
            FloatOp::Cast { .. } => return None,
            FloatOp::Canonicalize => ("canonicalize", ONE, FLOAT, Flushed, None),
            FloatOp::Load(small) => {
                return Some(Function::new(&format!("load_{}", small.name()), ONE, FLOAT, Flushed, None));
            }
            FloatOp::Store(small) => {
                // What is stored is no f32, so that it is flushed in a way of its own.
                small.format()?;
                return Some(Function::new(&format!("store_{}", small.name()), ONE, "u32", Flushed, None));
            }
        };
        Some(Function::new(name, operands, result, canonical, ladder))
    }

    /// The types of operands and result in WGSL; `None` for what the library has no function for.
    #[must_use]
    pub fn signature(self) -> Option<(&'static [&'static str], &'static str)> {
        self.function().map(|function| (function.operands, function.result))
    }
}

impl Function {
    fn new(
        name: &str,
        operands: &'static [&'static str],
        result: &'static str,
        canonical: Canonical,
        ladder: Option<LadderOp>,
    ) -> Function {
        Function { name: format!("vy_{name}"), operands, result, canonical, ladder }
    }

    /// The name of the function in this mode, on this rung.
    fn variant(&self, mode: FloatMode, rung: Rung) -> String {
        let rung = suffix(rung);
        let mode = match (mode, self.canonical) {
            (FloatMode::Ieee, _) | (FloatMode::Canonical, Canonical::Same) => "",
            (FloatMode::Canonical, Canonical::Flushed) => "_flushed",
        };
        format!("{}{rung}{mode}", self.name)
    }
}

/// What names of functions on a rung end with.
const fn suffix(rung: Rung) -> &'static str {
    match rung {
        Rung::Native => "_native",
        Rung::Protected => "_protected",
        Rung::Corrected => "_corrected",
        Rung::Integer => "",
    }
}

/// Rounds of the loops of one function at most: `pow` has 92, `rsqrt` 91, `tan` 88.
const MOST_ROUNDS: u32 = 96;

/// Names as they stand in the text, and the text of what they name.
type Items = BTreeMap<String, String>;

/// The functions that one module needs.
#[derive(Clone, Debug)]
pub struct Library {
    mode: FloatMode,
    profile: FloatProfile,
    wanted: BTreeSet<String>,
}

impl Library {
    /// Nothing yet, for a program of this mode on a device of this profile.
    #[must_use]
    pub fn new(mode: FloatMode, profile: FloatProfile) -> Library {
        Library { mode, profile, wanted: BTreeSet::new() }
    }

    /// The name of the function that computes `op`, which from now on is part of the source; `None` for what is not defined on f32.
    pub fn function(&mut self, op: FloatOp) -> Option<String> {
        let function = op.function()?;
        let rung = function.ladder.map_or(Rung::Integer, |ladder| self.profile.rung(self.mode, ladder));
        let name = function.variant(self.mode, rung);
        self.wanted.insert(name.clone());
        Some(name)
    }

    /// The name of the function that computes `op` on this rung, whatever the profile says; part of the source from now on. `None` if
    /// the op has no such rung.
    pub(super) fn on_rung(&mut self, op: LadderOp, rung: Rung) -> Option<String> {
        let function = op.op().function().filter(|_| op.has(rung))?;
        let name = function.variant(self.mode, rung);
        self.wanted.insert(name.clone());
        Some(name)
    }

    /// The text of all functions that were asked for, and of what they need.
    #[must_use]
    pub fn source(&self) -> String {
        Library::together([self])
    }

    /// The text of what several need, each function once.
    pub(super) fn together<'a>(libraries: impl IntoIterator<Item = &'a Library>) -> String {
        let needed: BTreeSet<String> = libraries.into_iter().flat_map(Library::needed).collect();
        needed.iter().filter_map(|name| ITEMS.get(name)).map(String::as_str).collect()
    }

    /// Rounds of loops that the function of an op makes at most.
    pub(crate) fn rounds(&self, op: FloatOp) -> u32 {
        let function = self.clone().function(op);
        if function.is_some_and(|name| LOOPING.contains(&name)) { MOST_ROUNDS } else { 0 }
    }

    /// Whether the source calls `vy_zero`.
    #[must_use]
    pub fn uses_zero(&self) -> bool {
        self.needed().contains("vy_zero")
    }

    /// Whether the source calls `vy_table`.
    #[must_use]
    pub fn uses_table(&self) -> bool {
        self.needed().contains("vy_table")
    }

    /// What was asked for, and whatever occurs in that.
    fn needed(&self) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        let mut left: Vec<String> = self.wanted.iter().cloned().collect();
        while let Some(name) = left.pop() {
            let text = ITEMS.get(&name).map_or("", String::as_str);
            if needed.insert(name) {
                left.extend(names(text).map(str::to_owned));
            }
        }
        needed
    }
}

/// Functions with loops, or that call some that have.
static LOOPING: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let loops = |name: &String| {
        let alone = Library { mode: FloatMode::Ieee, profile: FloatProfile::INTEGER, wanted: BTreeSet::from([name.clone()]) };
        alone.needed().iter().any(|name| ITEMS.get(name).is_some_and(|text| text.contains("for (")))
    };
    ITEMS.keys().filter(|name| loops(name)).cloned().collect()
});

/// The names of the library, or of what it expects around it, that occur in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.len() > 2 && word[..2].eq_ignore_ascii_case("vy"))
}

static ITEMS: LazyLock<Items> = LazyLock::new(|| {
    let mut items = Items::new();
    for file in [
        include_str!("wgsl/arithmetic.wgsl"),
        include_str!("wgsl/convert.wgsl"),
        include_str!("wgsl/corrected.wgsl"),
        include_str!("wgsl/elementary.wgsl"),
    ] {
        written(file, &mut items);
    }
    items.extend(table::constants());
    for small in SmallFloat::ALL {
        let (load, store) = memory(small);
        items.insert(format!("vy_load_{}", small.name()), load);
        if let Some((ieee, canonical)) = store {
            items.insert(format!("vy_store_{}", small.name()), ieee);
            items.insert(format!("vy_store_{}_flushed", small.name()), canonical);
        }
    }
    for rung in [Rung::Native, Rung::Protected] {
        for op in LadderOp::ALL {
            let (name, text) = instruction(op, rung);
            items.insert(name, text);
        }
    }
    for rung in Rung::ALL.into_iter().filter(|rung| LadderOp::Sub.has(*rung)) {
        let suffix = suffix(rung);
        let text = format!("fn vy_fract{suffix}(a: u32) -> u32 {{\n  return vy_sub{suffix}(a, vy_floor(a));\n}}\n");
        items.insert(format!("vy_fract{suffix}"), text);
    }
    // What is not written for canonical mode is what ieee gives, flushed.
    for function in FloatOp::all().filter_map(FloatOp::function).filter(|function| function.canonical == Canonical::Flushed) {
        for rung in Rung::ALL.into_iter().filter(|rung| match function.ladder {
            Some(op) => op.has(*rung),
            None => *rung == Rung::Integer,
        }) {
            let (ieee, canonical) = (function.variant(FloatMode::Ieee, rung), function.variant(FloatMode::Canonical, rung));
            if items.contains_key(&ieee) && !items.contains_key(&canonical) {
                items.insert(canonical.clone(), flushed(&function, &ieee, &canonical));
            }
        }
    }
    items
});

/// Takes a file apart into its items, without comments.
fn written(file: &str, items: &mut Items) {
    let mut item = String::new();
    for line in file.lines().filter(|line| !line.trim_start().starts_with("//") && !line.is_empty()) {
        item.push_str(line);
        item.push('\n');
        if line == "}" || (!line.starts_with(' ') && line.ends_with(';')) {
            let name = names(&item).next().expect("an item of the library begins with its name").to_owned();
            assert!(items.insert(name, std::mem::take(&mut item)).is_none(), "an item of the library is written twice");
        }
    }
    assert!(item.is_empty(), "the last item of a file of the library has no end: {item}");
}

/// The function that is the device's instruction, made canonical.
///
/// On the rung `Protected` no operand is known to the compiler, so that it cannot be folded with a literal, and no two are known to be
/// equal, so that `x - x` stays; what comes out of one function goes into the next through such an operand, so that nothing is
/// contracted or reassociated.
fn instruction(op: LadderOp, rung: Rung) -> (String, String) {
    let operand = |name: &str, shift: u32| match rung {
        Rung::Protected => format!("bitcast<f32>({name} ^ (vy_zero() << {shift}u))"),
        Rung::Native | Rung::Corrected | Rung::Integer => format!("bitcast<f32>({name})"),
    };
    let (a, b, c) = (operand("a", 0), operand("b", 1), operand("c", 2));
    let (parameters, value) = match op {
        LadderOp::Add => ("a: u32, b: u32", format!("{a} + {b}")),
        LadderOp::Sub => ("a: u32, b: u32", format!("{a} - {b}")),
        LadderOp::Mul => ("a: u32, b: u32", format!("{a} * {b}")),
        LadderOp::Div => ("a: u32, b: u32", format!("{a} / {b}")),
        LadderOp::Sqrt => ("a: u32", format!("sqrt({a})")),
        LadderOp::Fma => ("a: u32, b: u32, c: u32", format!("fma({a}, {b}, {c})")),
    };
    let name = format!("vy_{}{}", op.name(), suffix(rung));
    let text = format!("fn {name}({parameters}) -> u32 {{\n  return vy_canonicalize(bitcast<u32>({value}));\n}}\n");
    (name, text)
}

fn flushed(function: &Function, ieee: &str, canonical: &str) -> String {
    let letters = &["a", "b", "c"][..function.operands.len()];
    let parameters: Vec<String> = letters.iter().zip(function.operands).map(|(name, ty)| format!("{name}: {ty}")).collect();
    format!(
        "fn {canonical}({}) -> {} {{\n  return vy_flush({ieee}({}));\n}}\n",
        parameters.join(", "),
        function.result,
        letters.join(", ")
    )
}

/// The functions that load an element of a small format and, in `floats ieee` and `floats canonical`, store one.
fn memory(small: SmallFloat) -> (String, Option<(String, String)>) {
    let name = small.name();
    let Some(format) = small.format() else {
        let first = match small {
            SmallFloat::Fp4 => "VY_AT_FP4",
            SmallFloat::Nf4 => "VY_AT_NF4",
            SmallFloat::F16 | SmallFloat::Bf16 | SmallFloat::F8E4M3 | SmallFloat::F8E5M2 => {
                unreachable!("these formats have a layout")
            }
        };
        return (format!("fn vy_load_{name}(a: u32) -> u32 {{\n  return vy_table({first} + (a & 15u));\n}}\n"), None);
    };
    let Format { bits, fraction_bits, bias, max, has_infinity, overflow, nan } = format;
    let infinity = if has_infinity { u32::from(max) + 1 } else { 0xFFFF };
    let layout = format!("{bits}u, {fraction_bits}u, {bias}u, {max}u");
    let load = format!("fn vy_load_{name}(a: u32) -> u32 {{\n  return vy_widen(a, {layout}, {infinity}u);\n}}\n");
    let store = format!("fn vy_store_{name}(a: u32) -> u32 {{\n  return vy_narrow(a, {layout}, {overflow}u, {nan}u);\n}}\n");
    // A store is a conversion, so that what it gives is flushed too: in most formats that is -0.
    let tiny = (0..=max).rev().find(|pattern| small::widen(&format, *pattern) <= f32::MIN_POSITIVE).unwrap_or(0);
    let mask = (1 << (bits - 1)) - 1;
    let canonical = format!(
        "fn vy_store_{name}_flushed(a: u32) -> u32 {{\n  let stored = vy_store_{name}(a);\n  \
         return select(stored, 0u, (stored & {mask}u) <= {tiny}u);\n}}\n"
    );
    (load, Some((store, canonical)))
}
