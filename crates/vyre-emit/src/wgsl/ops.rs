//! Pure ops as expressions.
//!
//! What WGSL defines for every operand is written with its operators; the rest calls functions of `integers.wgsl`, and floats call those of the
//! float library.

use super::Emitter;
use crate::error::EmitError;
use crate::floats::FloatOp;
use vyre_foundation::ir::{BinaryOp, TernaryOp, UnaryOp};
use vyre_foundation::ssa::{Op, Value};
use vyre_spec::Scalar;

/// How the bits of an op's operands are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Bool,
    /// 32 bits.
    Word {
        signed: bool,
    },
    /// 64 bits.
    Pair {
        signed: bool,
    },
    F32,
}

pub(super) fn class(ty: Scalar) -> Result<Class, EmitError> {
    match ty {
        Scalar::Bool => Ok(Class::Bool),
        Scalar::U32 => Ok(Class::Word { signed: false }),
        Scalar::I32 => Ok(Class::Word { signed: true }),
        Scalar::U64 => Ok(Class::Pair { signed: false }),
        Scalar::I64 => Ok(Class::Pair { signed: true }),
        Scalar::F32 => Ok(Class::F32),
        Scalar::F64 => Err(EmitError::unsupported("f64")),
    }
}

/// An op on a type that its row does not have.
fn never(op: &str) -> ! {
    unreachable!("the validator refuses {op} on other types than its row has")
}

/// What a float op is called where it is refused.
fn name(op: FloatOp) -> String {
    match op {
        FloatOp::Unary(op) => format!("{op} of f32"),
        FloatOp::Binary(op) => format!("{op} of f32"),
        FloatOp::Ternary(op) => format!("{op} of f32"),
        FloatOp::Cast { from, to } => format!("conversions of {from} to {to}"),
        FloatOp::Canonicalize => "f32".into(),
        FloatOp::Load(small) => format!("loads of {}", small.data_type()),
        FloatOp::Store(small) => format!("stores to {}", small.data_type()),
    }
}

impl Emitter<'_> {
    pub fn op(&mut self, op: &Op) -> Result<String, EmitError> {
        match *op {
            Op::Unary { op, ty, operand } => {
                let operand = self.operands(&[operand]).remove(0);
                self.unary(op, ty, &operand)
            }
            Op::Binary { op, ty, left, right } => {
                let operands = self.operands(&[left, right]);
                let amount = self.literal_bits(right);
                self.binary(op, ty, &operands[0], &operands[1], amount)
            }
            Op::Ternary { op, ty, operands } => {
                let [a, b, c] = operands.map(|operand| self.chosen(operand));
                self.ternary(op, ty, [&a, &b, &c])
            }
            Op::Cast { from, to, value } => {
                let value = self.operands(&[value]).remove(0);
                self.cast(from, to, &value)
            }
            Op::Bitcast { from, to, value } => {
                let value = self.value(value);
                self.bitcast(from, to, &value)
            }
            Op::Vector { components } => {
                let parts: Vec<String> = components.iter().map(|part| self.value(*part)).collect();
                Ok(format!("vec{}<u32>({})", parts.len(), parts.join(", ")))
            }
            Op::Extract { vector, component } => {
                Ok(format!("{}.{}", self.value(vector), ["x", "y", "z", "w"][usize::from(component)]))
            }
        }
    }

    /// The operands; of literals alone the first comes out of a function, so that nothing is folded before it runs.
    fn operands(&self, values: &[Value]) -> Vec<String> {
        let mut operands: Vec<String> = values.iter().map(|value| self.value(*value)).collect();
        let is_word = |value: &Value| super::type_name(self.ssa.values[value.index()].ty) == "u32";
        if values.iter().all(|value| self.literal_bits(*value).is_some()) && is_word(&values[0]) {
            operands[0] = format!("vyk_lit({})", operands[0]);
        }
        operands
    }

    /// A value that `select` may give. llvmpipe takes a choice between ±1.0 and a sign bit for another op, which gives −0.0: it is not to
    /// know the number.
    fn chosen(&self, value: Value) -> String {
        let text = self.value(value);
        match self.literal_bits(value) {
            Some(0x3f80_0000 | 0xbf80_0000) => format!("({text} ^ vyk_block.zero)"),
            Some(_) | None => text,
        }
    }

    fn unary(&mut self, op: UnaryOp, ty: Scalar, x: &str) -> Result<String, EmitError> {
        use Class::{Bool, F32, Pair, Word};
        let class = class(ty)?;
        Ok(match (op, class) {
            (UnaryOp::Neg, Word { .. }) => format!("0u - {x}"),
            (UnaryOp::Neg, Pair { .. }) => format!("vyk64_neg({x})"),
            (UnaryOp::Not, Bool) => format!("!{x}"),
            (UnaryOp::Not, Word { .. } | Pair { .. }) => format!("~{x}"),
            (UnaryOp::Abs, Word { signed: false } | Pair { signed: false }) => x.into(),
            (UnaryOp::Abs, Word { signed: true }) => format!("vyk_abs({x})"),
            (UnaryOp::Abs, Pair { signed: true }) => format!("vyk64_abs({x})"),
            (UnaryOp::Popcount, Word { .. }) => format!("countOneBits({x})"),
            (UnaryOp::Popcount, Pair { .. }) => format!("vyk64_popcount({x})"),
            (UnaryOp::Clz, Word { .. }) => format!("countLeadingZeros({x})"),
            (UnaryOp::Clz, Pair { .. }) => format!("vyk64_clz({x})"),
            (UnaryOp::Ctz, Word { .. }) => format!("countTrailingZeros({x})"),
            (UnaryOp::Ctz, Pair { .. }) => format!("vyk64_ctz({x})"),
            (UnaryOp::ReverseBits, Word { .. }) => format!("reverseBits({x})"),
            (UnaryOp::ReverseBits, Pair { .. }) => format!("vyk64_reverse_bits({x})"),
            (UnaryOp::SwapBytes, Word { .. }) => format!("vyk_swap_bytes({x})"),
            (UnaryOp::SwapBytes, Pair { .. }) => format!("vyk64_swap_bytes({x})"),
            (_, F32) => return self.float_op(FloatOp::Unary(op), &[x]),
            (
                UnaryOp::Neg
                | UnaryOp::Abs
                | UnaryOp::Popcount
                | UnaryOp::Clz
                | UnaryOp::Ctz
                | UnaryOp::ReverseBits
                | UnaryOp::SwapBytes,
                Bool,
            )
            | (
                UnaryOp::Sign
                | UnaryOp::Sqrt
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Trunc
                | UnaryOp::Round
                | UnaryOp::Fract
                | UnaryOp::IsNan
                | UnaryOp::IsInf
                | UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Log
                | UnaryOp::Log2
                | UnaryOp::Sin
                | UnaryOp::Cos
                | UnaryOp::Tan
                | UnaryOp::Tanh
                | UnaryOp::Atan
                | UnaryOp::Rsqrt,
                Bool | Word { .. } | Pair { .. },
            ) => never(op.mnemonic()),
        })
    }

    /// `amount` is what the right operand is, if that is known.
    pub fn binary(&mut self, op: BinaryOp, ty: Scalar, x: &str, y: &str, amount: Option<u64>) -> Result<String, EmitError> {
        use Class::{Bool, F32, Pair, Word};
        let class = class(ty)?;
        let infix = |token: &str| format!("{x} {token} {y}");
        let call = |name: &str| format!("{name}({x}, {y})");
        // The signed form of a function has its name with `_s`.
        let by_sign = |name: &str, signed: bool| format!("{name}{}({x}, {y})", if signed { "_s" } else { "" });
        let compare = |token: &str, signed: bool| match signed {
            true => format!("bitcast<i32>({x}) {token} bitcast<i32>({y})"),
            false => format!("{x} {token} {y}"),
        };
        let less = |left: &str, right: &str, signed: bool| format!("vyk64_lt{}({left}, {right})", if signed { "_s" } else { "" });
        let modulo = |width: u64| match amount {
            Some(amount) => format!("{}u", amount % width),
            None => format!("({y} & {}u)", width - 1),
        };
        // A divisor that is known and not 0, nor -1 of a signed number.
        let is_safe = |signed: bool| amount.is_some_and(|y| y != 0 && !signed);
        Ok(match (op, class) {
            (BinaryOp::Add, Word { .. }) => infix("+"),
            (BinaryOp::Sub, Word { .. }) => infix("-"),
            (BinaryOp::Mul, Word { .. }) => infix("*"),
            (BinaryOp::Add, Pair { .. }) => call("vyk64_add"),
            (BinaryOp::Sub, Pair { .. }) => call("vyk64_sub"),
            (BinaryOp::Mul, Pair { .. }) => call("vyk64_mul"),
            (BinaryOp::Mulhi, Word { signed }) => by_sign("vyk_mulhi", signed),
            (BinaryOp::Mulhi, Pair { signed }) => by_sign("vyk64_mulhi", signed),
            (BinaryOp::Div, Word { signed }) if is_safe(signed) => infix("/"),
            (BinaryOp::Div, Word { signed }) => by_sign("vyk_div", signed),
            (BinaryOp::Div, Pair { signed }) => by_sign("vyk64_div", signed),
            (BinaryOp::Rem, Word { signed }) if is_safe(signed) => infix("%"),
            (BinaryOp::Rem, Word { signed }) => by_sign("vyk_rem", signed),
            (BinaryOp::Rem, Pair { signed }) => by_sign("vyk64_rem", signed),
            (BinaryOp::AbsDiff, Word { signed }) => by_sign("vyk_abs_diff", signed),
            (BinaryOp::AbsDiff, Pair { signed }) => by_sign("vyk64_abs_diff", signed),
            (BinaryOp::Min, Word { signed: false }) => call("min"),
            (BinaryOp::Max, Word { signed: false }) => call("max"),
            (BinaryOp::Min, Word { signed: true }) => format!("bitcast<u32>(min(bitcast<i32>({x}), bitcast<i32>({y})))"),
            (BinaryOp::Max, Word { signed: true }) => format!("bitcast<u32>(max(bitcast<i32>({x}), bitcast<i32>({y})))"),
            (BinaryOp::Min, Pair { signed }) => by_sign("vyk64_min", signed),
            (BinaryOp::Max, Pair { signed }) => by_sign("vyk64_max", signed),
            (BinaryOp::BitAnd, Word { .. } | Pair { .. }) | (BinaryOp::And, Bool) => infix("&"),
            (BinaryOp::BitOr, Word { .. } | Pair { .. }) | (BinaryOp::Or, Bool) => infix("|"),
            (BinaryOp::BitXor, Word { .. } | Pair { .. }) => infix("^"),
            (BinaryOp::BitXor, Bool) => infix("!="),
            (BinaryOp::Shl, Word { .. }) => format!("{x} << {}", modulo(32)),
            (BinaryOp::Shr, Word { signed: false }) => format!("{x} >> {}", modulo(32)),
            (BinaryOp::Shr, Word { signed: true }) => format!("bitcast<u32>(bitcast<i32>({x}) >> {})", modulo(32)),
            (BinaryOp::Shl, Pair { .. }) => call("vyk64_shl"),
            (BinaryOp::Shr, Pair { signed }) => by_sign("vyk64_shr", signed),
            (BinaryOp::Rotl, Word { .. }) => call("vyk_rotl"),
            (BinaryOp::Rotr, Word { .. }) => call("vyk_rotr"),
            (BinaryOp::Rotl, Pair { .. }) => call("vyk64_rotl"),
            (BinaryOp::Rotr, Pair { .. }) => call("vyk64_rotr"),
            (BinaryOp::SatAdd, Word { signed }) => by_sign("vyk_sat_add", signed),
            (BinaryOp::SatSub, Word { signed }) => by_sign("vyk_sat_sub", signed),
            (BinaryOp::SatAdd, Pair { signed }) => by_sign("vyk64_sat_add", signed),
            (BinaryOp::SatSub, Pair { signed }) => by_sign("vyk64_sat_sub", signed),
            (BinaryOp::Eq, Bool | Word { .. }) => infix("=="),
            (BinaryOp::Ne, Bool | Word { .. }) => infix("!="),
            (BinaryOp::Eq, Pair { .. }) => format!("all({x} == {y})"),
            (BinaryOp::Ne, Pair { .. }) => format!("any({x} != {y})"),
            (BinaryOp::Lt, Word { signed }) => compare("<", signed),
            (BinaryOp::Le, Word { signed }) => compare("<=", signed),
            (BinaryOp::Gt, Word { signed }) => compare(">", signed),
            (BinaryOp::Ge, Word { signed }) => compare(">=", signed),
            (BinaryOp::Lt, Pair { signed }) => less(x, y, signed),
            (BinaryOp::Le, Pair { signed }) => format!("!{}", less(y, x, signed)),
            (BinaryOp::Gt, Pair { signed }) => less(y, x, signed),
            (BinaryOp::Ge, Pair { signed }) => format!("!{}", less(x, y, signed)),
            (_, F32) => return self.float_op(FloatOp::Binary(op), &[x, y]),
            (BinaryOp::Copysign | BinaryOp::Pow, Bool | Word { .. } | Pair { .. })
            | (BinaryOp::And | BinaryOp::Or, Word { .. } | Pair { .. })
            | (
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Mulhi
                | BinaryOp::Div
                | BinaryOp::Rem
                | BinaryOp::AbsDiff
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::Shl
                | BinaryOp::Shr
                | BinaryOp::Rotl
                | BinaryOp::Rotr
                | BinaryOp::SatAdd
                | BinaryOp::SatSub
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge,
                Bool,
            ) => never(op.mnemonic()),
        })
    }

    fn ternary(&mut self, op: TernaryOp, ty: Scalar, [a, b, c]: [&str; 3]) -> Result<String, EmitError> {
        match op {
            TernaryOp::Select => {
                class(ty)?;
                Ok(format!("select({c}, {b}, {a})"))
            }
            TernaryOp::Fma => self.float_op(FloatOp::Ternary(op), &[a, b, c]),
        }
    }

    fn cast(&mut self, from: Scalar, to: Scalar, x: &str) -> Result<String, EmitError> {
        use Class::{Bool, F32, Pair, Word};
        Ok(match (class(from)?, class(to)?) {
            (Bool, Bool) | (Word { .. }, Word { .. }) | (Pair { .. }, Pair { .. }) | (F32, F32) => x.into(),
            (Bool, Word { .. }) => format!("select(0u, 1u, {x})"),
            (Bool, Pair { .. }) => format!("vec2<u32>(select(0u, 1u, {x}), 0u)"),
            (Bool, F32) => format!("select(0u, 0x3f800000u, {x})"),
            (Word { .. }, Bool) => format!("{x} != 0u"),
            (Word { signed: false }, Pair { .. }) => format!("vec2<u32>({x}, 0u)"),
            (Word { signed: true }, Pair { .. }) => format!("vec2<u32>({x}, 0u - ({x} >> 31u))"),
            (Pair { .. }, Bool) => format!("any({x} != vec2<u32>(0u, 0u))"),
            (Pair { .. }, Word { .. }) => format!("{x}.x"),
            (F32, Bool) => never("a conversion of f32 to bool"),
            (Word { .. } | Pair { .. }, F32) | (F32, Word { .. } | Pair { .. }) => {
                return self.float_op(FloatOp::Cast { from, to }, &[x]);
            }
        })
    }

    fn bitcast(&mut self, from: Scalar, to: Scalar, x: &str) -> Result<String, EmitError> {
        Ok(match (class(from)?, class(to)?) {
            (Class::Word { .. }, Class::F32) => return self.float_op(FloatOp::Canonicalize, &[x]),
            // Other bits are the same: a float in flight has no NaN but the one.
            (_, _) => x.into(),
        })
    }

    /// A call of the float library.
    pub fn float_op(&mut self, op: FloatOp, operands: &[&str]) -> Result<String, EmitError> {
        match self.floats.function(op) {
            Some(function) => Ok(format!("{function}({})", operands.join(", "))),
            None => Err(EmitError::unsupported(name(op))),
        }
    }
}
