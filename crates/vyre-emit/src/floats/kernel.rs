//! Kernels that apply ops of the library to columns of operands, and what `vyre-scalar` says about the same operands: what probes and
//! tests are made of.

use super::library::{FloatOp, Library};
use super::profile::FloatProfile;
use super::table;
use vyre_scalar::{Value, memory};
use vyre_spec::{FloatMode, Operand, Scalar};

/// A shader and what it is run on. All of its buffers are storage buffers of u32 in group 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The shader; its entry point is `main`, a workgroup has [`WORKGROUP`] invocations in x.
    pub wgsl: String,
    /// Binding 0, which is only read.
    pub inputs: Vec<u32>,
    /// Words of binding 1, which is only written, and read back. It starts as zeros.
    pub outputs: usize,
    /// Binding 2, which is only read: a zero, and [`table`].
    pub constants: Vec<u32>,
    /// How many workgroups there are, in x.
    pub workgroups: u32,
}

/// Invocations of a workgroup of a [`Job`].
pub const WORKGROUP: u32 = 64;

/// What a shader of a [`Job`] begins with.
pub(super) const HEADER: &str = "\
@group(0) @binding(0) var<storage, read> inputs: array<u32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<u32>;
@group(0) @binding(2) var<storage, read> constants: array<u32>;
fn vy_zero() -> u32 {
  return constants[0u];
}
fn vy_table(i: u32) -> u32 {
  return constants[i + 1u];
}
";

/// The words of binding 2 of a [`Job`].
#[must_use]
pub fn constants() -> Vec<u32> {
    [0].iter().chain(table()).copied().collect()
}

/// Where the operands of a kernel come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// From the inputs: those of one invocation side by side.
    Listed,
    /// The number of the invocation plus the first input, made fit by [`FloatOp::operand`]. For ops of one operand
    /// of one word.
    Counted,
}

/// How a pattern becomes an operand.
enum Fitted {
    Float,
    Masked(u32),
}

impl FloatOp {
    /// The words that operands and result of the op take in a kernel; `None` for what the library has no function for.
    #[must_use]
    pub fn words(self) -> Option<(usize, usize)> {
        let words = |ty: &str| if ty == "vec2<u32>" { 2 } else { 1 };
        self.signature().map(|(operands, result)| (operands.iter().map(|ty| words(ty)).sum(), words(result)))
    }

    /// Any pattern as a word of an operand of the op: floats are canonical, elements of small formats have no bits above.
    #[must_use]
    pub fn operand(self, mode: FloatMode, pattern: u32) -> u32 {
        match self.fitted() {
            Fitted::Float => FloatOp::Canonicalize.meaning(mode, &[pattern])[0],
            Fitted::Masked(mask) => pattern & mask,
        }
    }

    fn fitted(self) -> Fitted {
        match self {
            FloatOp::Unary(_) | FloatOp::Binary(_) | FloatOp::Ternary(_) | FloatOp::Store(_) => Fitted::Float,
            FloatOp::Cast { from: Scalar::F32, .. } => Fitted::Float,
            FloatOp::Cast { from: Scalar::Bool, .. } => Fitted::Masked(1),
            FloatOp::Cast { .. } | FloatOp::Canonicalize => Fitted::Masked(u32::MAX),
            FloatOp::Load(small) => Fitted::Masked(u32::MAX >> (32 - small.data_type().bits().unwrap_or(32))),
        }
    }

    /// What the result of the op is, in words, on operands in words.
    #[must_use]
    pub fn meaning(self, mode: FloatMode, operands: &[u32]) -> [u32; 2] {
        let at = |index: usize| operands.get(index).map_or(0, |word| u64::from(*word));
        let result = match self {
            FloatOp::Unary(op) => vyre_scalar::unary(op, Scalar::F32, mode, at(0)),
            FloatOp::Binary(op) => vyre_scalar::binary(op, Scalar::F32, mode, at(0), at(1)),
            FloatOp::Ternary(op) => {
                debug_assert!(op.info().operands.iter().all(|operand| *operand == Operand::T));
                vyre_scalar::ternary(op, Scalar::F32, mode, at(0), at(1), at(2))
            }
            FloatOp::Cast { from: Scalar::Bool, to } => vyre_scalar::cast(Scalar::Bool, to, mode, u64::from(at(0) != 0)),
            FloatOp::Cast { from, to } => vyre_scalar::cast(from, to, mode, at(0) | at(1) << 32),
            FloatOp::Canonicalize => vyre_scalar::canonicalize(Scalar::F32, mode, at(0)),
            FloatOp::Load(small) => {
                let bytes = (at(0) as u32).to_le_bytes();
                memory::load(&small.data_type(), mode, &bytes, 0).scalar()
            }
            FloatOp::Store(small) => {
                let mut bytes = [0; 4];
                memory::store(&small.data_type(), mode, &mut bytes, 0, Value::from(at(0)));
                u64::from(u32::from_le_bytes(bytes))
            }
        };
        [result as u32, (result >> 32) as u32]
    }
}

/// A kernel that applies an op: the text of its shader. `None` for what the library has no function for.
#[must_use]
pub fn kernel(op: FloatOp, mode: FloatMode, profile: FloatProfile, operands: Operands) -> Option<String> {
    let mut library = Library::new(mode, profile);
    let function = library.function(op)?;
    let (types, result) = op.signature()?;
    let (stride, width) = op.words()?;
    let mut arguments = Vec::new();
    match operands {
        Operands::Listed => {
            let mut word = 0;
            for ty in types {
                let at = |word: usize| format!("inputs[i * {stride}u + {word}u]");
                arguments.push(match *ty {
                    "bool" => format!("{} != 0u", at(word)),
                    "vec2<u32>" => format!("vec2<u32>({}, {})", at(word), at(word + 1)),
                    _ => at(word),
                });
                word += if *ty == "vec2<u32>" { 2 } else { 1 };
            }
        }
        Operands::Counted => {
            let pattern = match op.fitted() {
                Fitted::Float => format!("{}(inputs[0u] + i)", library.function(FloatOp::Canonicalize)?),
                Fitted::Masked(mask) => format!("((inputs[0u] + i) & {mask}u)"),
            };
            arguments.push(if types == ["bool"] { format!("{pattern} != 0u") } else { pattern });
        }
    }
    let call = format!("{function}({})", arguments.join(", "));
    let store = match result {
        "bool" => format!("outputs[i] = u32({call});"),
        "vec2<u32>" => {
            format!("let result = {call};\n    outputs[2u * i] = result.x;\n    outputs[2u * i + 1u] = result.y;")
        }
        _ => format!("outputs[i] = {call};"),
    };
    Some(format!(
        "{HEADER}{}@compute @workgroup_size({WORKGROUP})\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n  \
         let i = id.x;\n  if i < arrayLength(&outputs) / {width}u {{\n    {store}\n  }}\n}}\n",
        library.source()
    ))
}
