//! The op tables: one row per op, from which everything that must know the ops is derived.
//!
//! A row gives the mnemonic, the wire tag, how the text form spells it, the operand and result types, what it does beside giving a
//! value, what law it keeps, and what it means. An op has one type variable `T`, ranging over the row's [`TypeSet`]; operands and
//! result are `T` or a fixed type. What an op *does* is in `vyre-scalar` (pure ops), or in the interpreter (atomics and subgroup ops,
//! which involve more than one invocation).
//!
//! To add an op: add its row here, then follow the compiler: every `match` over these enums is exhaustive.

use crate::scalar::{Scalar, TypeSet};
use std::fmt;

/// The type of one operand of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// The op's type variable; all operands marked so have one type.
    T,
    /// Always this scalar.
    Fixed(Scalar),
}

/// The type of an op's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultRule {
    /// The op's type variable.
    T,
    /// Always this scalar.
    Fixed(Scalar),
    /// The unsigned integer as wide as the type variable.
    UnsignedT,
    /// The op gives no value.
    None,
}

/// As tables have it.
impl fmt::Display for ResultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultRule::T => f.write_str("T"),
            ResultRule::Fixed(scalar) => scalar.fmt(f),
            ResultRule::UnsignedT => f.write_str("unsigned T"),
            ResultRule::None => f.write_str("none"),
        }
    }
}

/// What an op does beside giving a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: the same operands give the same value anywhere, and an unused one can go.
    Pure,
    /// Reads one element of memory that other invocations may change at the same time.
    AtomicRead,
    /// Changes one element of memory that other invocations may change at the same time.
    AtomicWrite,
    /// Exchanges values with the other invocations of the subgroup, so it stays where all of them reach it.
    Convergent,
}

/// What holds for an op whatever its operands are, on every type and in both float modes: what may be done to it without asking
/// for its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// None of these.
    None,
    /// The first two operands may be swapped.
    Commutes,
    /// Applied to its own result it gives the operand back.
    Involution,
    /// It may change places with other atomics of this class on the same element, as long as nobody reads a result; see the class.
    Reorders(AtomicClass),
}

/// Atomics that leave the same value in memory in whatever order they come. Two of different classes do not; nor do two of one class,
/// to those who read the results, except for loads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicClass {
    /// Change nothing, so they give the same in every order.
    Load,
    /// Add and subtract.
    Sum,
    /// Keep the smallest.
    Min,
    /// Keep the largest.
    Max,
    /// Keep the bits set in all.
    And,
    /// Keep the bits set in some.
    Or,
    /// Flip bits.
    Xor,
    /// Replace the value; in every order only if all of them write the same one.
    Store,
}

impl AtomicClass {
    /// Every class.
    pub const ALL: [AtomicClass; 8] = {
        use AtomicClass::*;
        [Load, Sum, Min, Max, And, Or, Xor, Store]
    };

    /// Whether ops of the class change memory, and come in any order whatever their operands are.
    #[must_use]
    pub const fn accumulates(self) -> bool {
        match self {
            AtomicClass::Sum | AtomicClass::Min | AtomicClass::Max | AtomicClass::And | AtomicClass::Or | AtomicClass::Xor => {
                true
            }
            AtomicClass::Load | AtomicClass::Store => false,
        }
    }

    /// Whether ops of the class come in any order only if they have equal operands.
    #[must_use]
    pub const fn only_if_equal(self) -> bool {
        match self {
            AtomicClass::Store => true,
            AtomicClass::Load
            | AtomicClass::Sum
            | AtomicClass::Min
            | AtomicClass::Max
            | AtomicClass::And
            | AtomicClass::Or
            | AtomicClass::Xor => false,
        }
    }

    /// The ops of the class, in the order of the table.
    pub fn ops(self) -> impl Iterator<Item = AtomicOp> {
        AtomicOp::ALL.iter().copied().filter(move |op| op.class() == Some(self))
    }
}

impl AtomicOp {
    /// The atomics that it may change places with if nobody reads the results; `None` if there are none.
    #[must_use]
    pub const fn class(self) -> Option<AtomicClass> {
        match self.info().law {
            Law::Reorders(class) => Some(class),
            Law::None | Law::Commutes | Law::Involution => None,
        }
    }
}

/// How the text form writes an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spelling {
    /// `mnemonic(a, b)`.
    Call,
    /// This token before the operand.
    Prefix(&'static str),
    /// This token between the operands.
    Infix(&'static str, Precedence),
}

/// How tightly an infix operator binds; the order is Rust's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precedence {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `== != < <= > >=`, which do not chain.
    Compare,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `<< >>`
    Shift,
    /// `+ -`
    Sum,
    /// `* / %`
    Product,
}

/// One row of an op table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpInfo {
    /// The name of the op: in calls, in builders, in the documentation.
    pub mnemonic: &'static str,
    /// The op's number in the wire form, unique in its family.
    pub tag: u8,
    /// How the text form writes it.
    pub spelling: Spelling,
    /// What the type variable ranges over.
    pub over: TypeSet,
    /// The operands in order.
    pub operands: &'static [Operand],
    /// The result.
    pub result: ResultRule,
    /// What it does beside giving the result.
    pub effect: Effect,
    /// What holds for it whatever the operands are.
    pub law: Law,
    /// The meaning, in a few words; `docs/semantics.md` has the full table.
    pub doc: &'static str,
}

impl OpInfo {
    /// The result type when the type variable is `t`; `None` for an op without a result.
    #[must_use]
    pub const fn result_type(&self, t: Scalar) -> Option<Scalar> {
        match self.result {
            ResultRule::T => Some(t),
            ResultRule::Fixed(scalar) => Some(scalar),
            ResultRule::UnsignedT => Some(t.unsigned()),
            ResultRule::None => None,
        }
    }
}

const T: Operand = Operand::T;
const U32: Operand = Operand::Fixed(Scalar::U32);
const BOOL: Operand = Operand::Fixed(Scalar::Bool);

const TO_T: ResultRule = ResultRule::T;
const TO_BOOL: ResultRule = ResultRule::Fixed(Scalar::Bool);
const TO_U32: ResultRule = ResultRule::Fixed(Scalar::U32);
const TO_UNSIGNED: ResultRule = ResultRule::UnsignedT;
const TO_NOTHING: ResultRule = ResultRule::None;

const fn infix(token: &'static str, precedence: Precedence) -> Spelling {
    Spelling::Infix(token, precedence)
}

const CALL: Spelling = Spelling::Call;

/// Declares the enum of a family, its table, one row a variant, and a macro that hands `mnemonic Variant doc;` of every row to another
/// macro, for crates that need an item per op. (`$d` is a dollar sign: macros cannot write one into macros they make.)
macro_rules! op_table {
    (
        $d:tt $list:ident:
        $(#[$meta:meta])*
        $family:ident {
            $( $variant:ident = $tag:literal $mnemonic:ident $spelling:expr, $over:ident ($($operand:ident),*) $result:ident $effect:ident $law:expr, $doc:literal; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $family { $( #[doc = $doc] $variant = $tag, )* }

        impl $family {
            /// Every op of the family, in the order of the table.
            pub const ALL: &'static [$family] = &[$( $family::$variant ),*];

            /// The most operands that an op of the family has.
            pub const MAX_OPERANDS: usize = {
                let (mut most, mut n) = (0, 0);
                while n < $family::ALL.len() {
                    let count = $family::ALL[n].info().operands.len();
                    most = if count > most { count } else { most };
                    n += 1;
                }
                most
            };

            /// The op's row.
            #[must_use]
            pub const fn info(self) -> &'static OpInfo {
                match self {
                    $( $family::$variant => const { &OpInfo {
                        mnemonic: stringify!($mnemonic),
                        tag: $tag,
                        spelling: $spelling,
                        over: TypeSet::$over,
                        operands: &[$($operand),*],
                        result: $result,
                        effect: Effect::$effect,
                        law: $law,
                        doc: $doc,
                    } }, )*
                }
            }

            /// The op's name.
            #[must_use]
            pub const fn mnemonic(self) -> &'static str {
                self.info().mnemonic
            }

            /// The op with this name.
            #[must_use]
            pub fn from_mnemonic(mnemonic: &str) -> Option<$family> {
                $( if mnemonic == stringify!($mnemonic) {
                    return Some($family::$variant);
                } )*
                None
            }

            /// The op with this wire tag.
            #[must_use]
            pub const fn from_tag(tag: u8) -> Option<$family> {
                match tag { $( $tag => Some($family::$variant), )* _ => None }
            }
        }

        impl fmt::Display for $family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.mnemonic())
            }
        }

        /// Calls the macro that is named with `mnemonic Variant doc;` of every op of the family.
        #[macro_export]
        macro_rules! $list {
            ($d callback:ident) => {
                $d callback! { $( $mnemonic $variant $doc; )* }
            };
        }
    };
}

op_table! {
    $ unary_ops:
    /// Ops with one operand.
    UnaryOp {
        Neg         = 0x01 neg          Spelling::Prefix("-"), NUMBER (T) TO_T Pure Law::Involution, "the negative; MIN stays MIN, unsigned wraps";
        Not         = 0x02 not          Spelling::Prefix("!"), LOGICAL (T) TO_T Pure Law::Involution, "every bit flipped, or logical not";
        Abs         = 0x03 abs          CALL, NUMBER (T) TO_T Pure Law::None, "the magnitude; MIN stays MIN";
        Popcount    = 0x04 popcount     CALL, INT (T) TO_U32 Pure Law::None, "how many bits are one";
        Clz         = 0x05 clz          CALL, INT (T) TO_U32 Pure Law::None, "zero bits above the highest one; the width for 0";
        Ctz         = 0x06 ctz          CALL, INT (T) TO_U32 Pure Law::None, "zero bits below the lowest one; the width for 0";
        ReverseBits = 0x07 reverse_bits CALL, INT (T) TO_T Pure Law::Involution, "the bits in the opposite order";
        Sign        = 0x08 sign         CALL, FLOAT (T) TO_T Pure Law::None, "-1 or 1; a zero is itself, NaN is NaN";
        Sqrt        = 0x09 sqrt         CALL, FLOAT (T) TO_T Pure Law::None, "the square root, correctly rounded";
        Floor       = 0x0A floor        CALL, FLOAT (T) TO_T Pure Law::None, "the largest integer not above";
        Ceil        = 0x0B ceil         CALL, FLOAT (T) TO_T Pure Law::None, "the smallest integer not below";
        Trunc       = 0x0C trunc        CALL, FLOAT (T) TO_T Pure Law::None, "the integer part, towards zero";
        Round       = 0x0D round        CALL, FLOAT (T) TO_T Pure Law::None, "the nearest integer, ties to even";
        Fract       = 0x0E fract        CALL, FLOAT (T) TO_T Pure Law::None, "x - floor(x), rounded; in [0, 1]";
        IsNan       = 0x0F is_nan       CALL, FLOAT (T) TO_BOOL Pure Law::None, "whether it is NaN";
        IsInf       = 0x10 is_inf       CALL, FLOAT (T) TO_BOOL Pure Law::None, "whether it is an infinity";
        Exp         = 0x11 exp          CALL, F32 (T) TO_T Pure Law::None, "e to the x, correctly rounded";
        Exp2        = 0x12 exp2         CALL, F32 (T) TO_T Pure Law::None, "2 to the x, correctly rounded";
        Log         = 0x13 log          CALL, F32 (T) TO_T Pure Law::None, "the natural logarithm, correctly rounded";
        Log2        = 0x14 log2         CALL, F32 (T) TO_T Pure Law::None, "the logarithm of base 2, correctly rounded";
        Sin         = 0x15 sin          CALL, F32 (T) TO_T Pure Law::None, "the sine of radians, correctly rounded";
        Cos         = 0x16 cos          CALL, F32 (T) TO_T Pure Law::None, "the cosine of radians, correctly rounded";
        Tan         = 0x17 tan          CALL, F32 (T) TO_T Pure Law::None, "the tangent of radians, correctly rounded";
        Tanh        = 0x18 tanh         CALL, F32 (T) TO_T Pure Law::None, "the hyperbolic tangent, correctly rounded";
        Atan        = 0x19 atan         CALL, F32 (T) TO_T Pure Law::None, "the arc tangent, correctly rounded";
        Rsqrt       = 0x1A rsqrt        CALL, F32 (T) TO_T Pure Law::None, "1 / sqrt(x), rounded once";
        SwapBytes   = 0x1B swap_bytes   CALL, INT (T) TO_T Pure Law::Involution, "the bytes in the opposite order";
    }
}

op_table! {
    $ binary_ops:
    /// Ops with two operands.
    BinaryOp {
        Add      = 0x01 add      infix("+", Precedence::Sum), NUMBER (T, T) TO_T Pure Law::Commutes, "the sum; integers wrap";
        Sub      = 0x02 sub      infix("-", Precedence::Sum), NUMBER (T, T) TO_T Pure Law::None, "the difference; integers wrap";
        Mul      = 0x03 mul      infix("*", Precedence::Product), NUMBER (T, T) TO_T Pure Law::Commutes, "the product; integers wrap";
        Mulhi    = 0x04 mulhi    CALL, INT (T, T) TO_T Pure Law::Commutes, "the upper half of the double-width product";
        Div      = 0x05 div      infix("/", Precedence::Product), NUMBER (T, T) TO_T Pure Law::None, "the quotient; integers truncate, x / 0 is x, MIN / -1 is MIN";
        Rem      = 0x06 rem      infix("%", Precedence::Product), NUMBER (T, T) TO_T Pure Law::None, "the remainder of truncated division; integer x % 0 is 0";
        AbsDiff  = 0x07 abs_diff CALL, INT (T, T) TO_UNSIGNED Pure Law::Commutes, "the distance, exact, as the unsigned type";
        Min      = 0x08 min      CALL, NUMBER (T, T) TO_T Pure Law::Commutes, "the smaller; a number beats NaN, -0 < +0";
        Max      = 0x09 max      CALL, NUMBER (T, T) TO_T Pure Law::Commutes, "the larger; a number beats NaN, -0 < +0";
        BitAnd   = 0x0A bitand   infix("&", Precedence::BitAnd), INT (T, T) TO_T Pure Law::Commutes, "bits set in both";
        BitOr    = 0x0B bitor    infix("|", Precedence::BitOr), INT (T, T) TO_T Pure Law::Commutes, "bits set in either";
        BitXor   = 0x0C bitxor   infix("^", Precedence::BitXor), LOGICAL (T, T) TO_T Pure Law::Commutes, "bits set in exactly one, or exclusive or";
        Shl      = 0x0D shl      infix("<<", Precedence::Shift), INT (T, U32) TO_T Pure Law::None, "shifted left by the amount modulo the width";
        Shr      = 0x0E shr      infix(">>", Precedence::Shift), INT (T, U32) TO_T Pure Law::None, "shifted right by the amount modulo the width; signed keeps the sign";
        Rotl     = 0x0F rotl     CALL, INT (T, U32) TO_T Pure Law::None, "rotated left by the amount modulo the width";
        Rotr     = 0x10 rotr     CALL, INT (T, U32) TO_T Pure Law::None, "rotated right by the amount modulo the width";
        SatAdd   = 0x11 sat_add  CALL, INT (T, T) TO_T Pure Law::Commutes, "the sum, held at the ends of the type's range";
        SatSub   = 0x12 sat_sub  CALL, INT (T, T) TO_T Pure Law::None, "the difference, held at the ends of the type's range";
        Copysign = 0x13 copysign CALL, FLOAT (T, T) TO_T Pure Law::None, "the magnitude of the first with the sign of the second; NaN counts as positive";
        Pow      = 0x14 pow      CALL, F32 (T, T) TO_T Pure Law::None, "the first to the power of the second, correctly rounded";
        And      = 0x15 and      infix("&&", Precedence::And), BOOL (T, T) TO_T Pure Law::Commutes, "both; the right side is always evaluated";
        Or       = 0x16 or       infix("||", Precedence::Or), BOOL (T, T) TO_T Pure Law::Commutes, "either; the right side is always evaluated";
        Eq       = 0x17 eq       infix("==", Precedence::Compare), ALL (T, T) TO_BOOL Pure Law::Commutes, "equal; NaN equals nothing, -0 equals +0";
        Ne       = 0x18 ne       infix("!=", Precedence::Compare), ALL (T, T) TO_BOOL Pure Law::Commutes, "not equal; true with a NaN";
        Lt       = 0x19 lt       infix("<", Precedence::Compare), NUMBER (T, T) TO_BOOL Pure Law::None, "less; false with a NaN";
        Le       = 0x1A le       infix("<=", Precedence::Compare), NUMBER (T, T) TO_BOOL Pure Law::None, "less or equal; false with a NaN";
        Gt       = 0x1B gt       infix(">", Precedence::Compare), NUMBER (T, T) TO_BOOL Pure Law::None, "greater; false with a NaN";
        Ge       = 0x1C ge       infix(">=", Precedence::Compare), NUMBER (T, T) TO_BOOL Pure Law::None, "greater or equal; false with a NaN";
    }
}

op_table! {
    $ ternary_ops:
    /// Ops with three operands.
    TernaryOp {
        Fma    = 0x01 fma    CALL, FLOAT (T, T, T) TO_T Pure Law::Commutes, "a * b + c, rounded once";
        Select = 0x02 select CALL, ALL (BOOL, T, T) TO_T Pure Law::None, "the second if the first is true, else the third; all are evaluated";
    }
}

op_table! {
    $ atomic_ops:
    /// Ops on one element of a `u32` or `i32` buffer that no other invocation can interrupt; operands beside buffer and index.
    AtomicOp {
        Load            = 0x01 load             CALL, INT32 () TO_T AtomicRead Law::Reorders(AtomicClass::Load), "the value";
        Store           = 0x02 store            CALL, INT32 (T) TO_NOTHING AtomicWrite Law::Reorders(AtomicClass::Store), "writes the operand";
        Exchange        = 0x03 exchange         CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Store), "writes the operand, gives the old value";
        CompareExchange = 0x04 compare_exchange CALL, INT32 (T, T) TO_T AtomicWrite Law::None, "writes the second if the old value equals the first; gives the old value";
        Add             = 0x05 add              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Sum), "adds, wrapping; gives the old value";
        Sub             = 0x06 sub              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Sum), "subtracts, wrapping; gives the old value";
        Min             = 0x07 min              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Min), "keeps the smaller; gives the old value";
        Max             = 0x08 max              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Max), "keeps the larger; gives the old value";
        And             = 0x09 and              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::And), "keeps bits set in both; gives the old value";
        Or              = 0x0A or               CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Or), "keeps bits set in either; gives the old value";
        Xor             = 0x0B xor              CALL, INT32 (T) TO_T AtomicWrite Law::Reorders(AtomicClass::Xor), "keeps bits set in exactly one; gives the old value";
    }
}

op_table! {
    $ subgroup_ops:
    /// Ops among the invocations of one subgroup; retired lanes contribute the identity, 0 or false.
    SubgroupOp {
        Ballot       = 0x01 ballot        CALL, BOOL (T) TO_U32 Convergent Law::None, "bit n is the operand of lane n";
        Any          = 0x02 any           CALL, BOOL (T) TO_T Convergent Law::None, "whether it is true in some lane";
        All          = 0x03 all           CALL, BOOL (T) TO_T Convergent Law::None, "whether it is true in every lane that is not retired";
        Broadcast    = 0x04 broadcast     CALL, ALL (T, U32) TO_T Convergent Law::None, "the first operand in the lane that the second names, which must be uniform";
        Shuffle      = 0x05 shuffle       CALL, ALL (T, U32) TO_T Convergent Law::None, "the first operand in the lane that the second names, or in the lane itself if there is no such lane";
        ShuffleXor   = 0x06 shuffle_xor   CALL, ALL (T, U32) TO_T Convergent Law::None, "the operand of lane ^ second, or of the lane itself if there is no such lane";
        ShuffleUp    = 0x07 shuffle_up    CALL, ALL (T, U32) TO_T Convergent Law::None, "the operand of lane - second, or of the lane itself if there is no such lane";
        ShuffleDown  = 0x08 shuffle_down  CALL, ALL (T, U32) TO_T Convergent Law::None, "the operand of lane + second, or of the lane itself if there is no such lane";
        Add          = 0x10 add           CALL, INT (T) TO_T Convergent Law::None, "the wrapping sum over the subgroup";
        Mul          = 0x11 mul           CALL, INT (T) TO_T Convergent Law::None, "the wrapping product over the subgroup";
        Min          = 0x12 min           CALL, INT_F32 (T) TO_T Convergent Law::None, "the smallest in the subgroup";
        Max          = 0x13 max           CALL, INT_F32 (T) TO_T Convergent Law::None, "the largest in the subgroup";
        And          = 0x14 and           CALL, INT (T) TO_T Convergent Law::None, "the bits set in every lane";
        Or           = 0x15 or            CALL, INT (T) TO_T Convergent Law::None, "the bits set in some lane";
        Xor          = 0x16 xor           CALL, INT (T) TO_T Convergent Law::None, "the exclusive or over the subgroup";
        InclusiveAdd = 0x20 inclusive_add CALL, INT (T) TO_T Convergent Law::None, "the wrapping sum over the lanes up to this one";
        InclusiveMul = 0x21 inclusive_mul CALL, INT (T) TO_T Convergent Law::None, "the wrapping product over the lanes up to this one";
        InclusiveMin = 0x22 inclusive_min CALL, INT_F32 (T) TO_T Convergent Law::None, "the smallest of the lanes up to this one";
        InclusiveMax = 0x23 inclusive_max CALL, INT_F32 (T) TO_T Convergent Law::None, "the largest of the lanes up to this one";
        InclusiveAnd = 0x24 inclusive_and CALL, INT (T) TO_T Convergent Law::None, "the bits set in every lane up to this one";
        InclusiveOr  = 0x25 inclusive_or  CALL, INT (T) TO_T Convergent Law::None, "the bits set in some lane up to this one";
        InclusiveXor = 0x26 inclusive_xor CALL, INT (T) TO_T Convergent Law::None, "the exclusive or of the lanes up to this one";
        ExclusiveAdd = 0x30 exclusive_add CALL, INT (T) TO_T Convergent Law::None, "the wrapping sum over the lanes before this one; lane 0 gets 0";
        ExclusiveMul = 0x31 exclusive_mul CALL, INT (T) TO_T Convergent Law::None, "the wrapping product over the lanes before this one; lane 0 gets 1";
        ExclusiveMin = 0x32 exclusive_min CALL, INT_F32 (T) TO_T Convergent Law::None, "the smallest of the lanes before this one; lane 0 gets the type's MAX, f32 NaN";
        ExclusiveMax = 0x33 exclusive_max CALL, INT_F32 (T) TO_T Convergent Law::None, "the largest of the lanes before this one; lane 0 gets the type's MIN, f32 NaN";
        ExclusiveAnd = 0x34 exclusive_and CALL, INT (T) TO_T Convergent Law::None, "the bits set in every lane before this one; lane 0 gets all bits";
        ExclusiveOr  = 0x35 exclusive_or  CALL, INT (T) TO_T Convergent Law::None, "the bits set in some lane before this one; lane 0 gets 0";
        ExclusiveXor = 0x36 exclusive_xor CALL, INT (T) TO_T Convergent Law::None, "the exclusive or of the lanes before this one; lane 0 gets 0";
    }
}

/// The associative ops that subgroups reduce and scan with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// Wrapping sum.
    Add,
    /// Wrapping product.
    Mul,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in exactly one.
    Xor,
}

impl ReduceOp {
    /// The op that combines two values.
    #[must_use]
    pub const fn binary(self) -> BinaryOp {
        match self {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::Mul => BinaryOp::Mul,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::And => BinaryOp::BitAnd,
            ReduceOp::Or => BinaryOp::BitOr,
            ReduceOp::Xor => BinaryOp::BitXor,
        }
    }
}

/// What a vote says about the lanes' booleans.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Vote {
    /// All of them, as bits.
    Ballot,
    /// Whether one is true.
    Any,
    /// Whether all are.
    All,
}

/// Which lane a shuffle reads from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShuffleFrom {
    /// The one that the second operand names.
    Named,
    /// The own number exclusive-or the second operand.
    Xor,
    /// The own number less the second operand.
    Up,
    /// The own number plus the second operand.
    Down,
}

/// What a subgroup op does with the lanes' operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SubgroupShape {
    /// Collects booleans.
    Vote(Vote),
    /// Moves values between lanes.
    Shuffle(ShuffleFrom),
    /// One result from all lanes.
    Reduce(ReduceOp),
    /// Each lane's result from the lanes up to and including it.
    Inclusive(ReduceOp),
    /// Each lane's result from the lanes before it.
    Exclusive(ReduceOp),
}

impl SubgroupOp {
    /// What the op does with the lanes' operands.
    #[must_use]
    pub const fn shape(self) -> SubgroupShape {
        use SubgroupShape::{Exclusive, Inclusive, Reduce};
        match self {
            SubgroupOp::Ballot => SubgroupShape::Vote(Vote::Ballot),
            SubgroupOp::Any => SubgroupShape::Vote(Vote::Any),
            SubgroupOp::All => SubgroupShape::Vote(Vote::All),
            SubgroupOp::Broadcast | SubgroupOp::Shuffle => SubgroupShape::Shuffle(ShuffleFrom::Named),
            SubgroupOp::ShuffleXor => SubgroupShape::Shuffle(ShuffleFrom::Xor),
            SubgroupOp::ShuffleUp => SubgroupShape::Shuffle(ShuffleFrom::Up),
            SubgroupOp::ShuffleDown => SubgroupShape::Shuffle(ShuffleFrom::Down),
            SubgroupOp::Add => Reduce(ReduceOp::Add),
            SubgroupOp::Mul => Reduce(ReduceOp::Mul),
            SubgroupOp::Min => Reduce(ReduceOp::Min),
            SubgroupOp::Max => Reduce(ReduceOp::Max),
            SubgroupOp::And => Reduce(ReduceOp::And),
            SubgroupOp::Or => Reduce(ReduceOp::Or),
            SubgroupOp::Xor => Reduce(ReduceOp::Xor),
            SubgroupOp::InclusiveAdd => Inclusive(ReduceOp::Add),
            SubgroupOp::InclusiveMul => Inclusive(ReduceOp::Mul),
            SubgroupOp::InclusiveMin => Inclusive(ReduceOp::Min),
            SubgroupOp::InclusiveMax => Inclusive(ReduceOp::Max),
            SubgroupOp::InclusiveAnd => Inclusive(ReduceOp::And),
            SubgroupOp::InclusiveOr => Inclusive(ReduceOp::Or),
            SubgroupOp::InclusiveXor => Inclusive(ReduceOp::Xor),
            SubgroupOp::ExclusiveAdd => Exclusive(ReduceOp::Add),
            SubgroupOp::ExclusiveMul => Exclusive(ReduceOp::Mul),
            SubgroupOp::ExclusiveMin => Exclusive(ReduceOp::Min),
            SubgroupOp::ExclusiveMax => Exclusive(ReduceOp::Max),
            SubgroupOp::ExclusiveAnd => Exclusive(ReduceOp::And),
            SubgroupOp::ExclusiveOr => Exclusive(ReduceOp::Or),
            SubgroupOp::ExclusiveXor => Exclusive(ReduceOp::Xor),
        }
    }
}

/// A dimension of ids, sizes and counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    /// The fastest varying one.
    X,
    /// The middle one.
    Y,
    /// The slowest varying one.
    Z,
}

impl Axis {
    /// The three axes.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    /// `x`, `y` or `z`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }
}

/// A `u32` every invocation finds out about itself or the launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Builtin {
    /// `gid.x`: the invocation's position in the whole dispatch.
    Invocation(Axis),
    /// `wid.x`: the position of its workgroup.
    Workgroup(Axis),
    /// `lid.x`: its position in the workgroup.
    Local(Axis),
    /// `gid_count.x`: how many invocations the dispatch has.
    InvocationCount(Axis),
    /// `wid_count.x`: how many workgroups the dispatch has.
    WorkgroupCount(Axis),
    /// `lid_count.x`: how many invocations a workgroup has.
    LocalCount(Axis),
    /// `subgroup.lane`: its position in the subgroup.
    SubgroupLane,
    /// `subgroup.size`: how many lanes a subgroup has.
    SubgroupSize,
}

impl Builtin {
    /// Every builtin.
    pub const ALL: [Builtin; 20] = {
        use Axis::{X, Y, Z};
        use Builtin::*;
        [
            Invocation(X),
            Invocation(Y),
            Invocation(Z),
            Workgroup(X),
            Workgroup(Y),
            Workgroup(Z),
            Local(X),
            Local(Y),
            Local(Z),
            InvocationCount(X),
            InvocationCount(Y),
            InvocationCount(Z),
            WorkgroupCount(X),
            WorkgroupCount(Y),
            WorkgroupCount(Z),
            LocalCount(X),
            LocalCount(Y),
            LocalCount(Z),
            SubgroupLane,
            SubgroupSize,
        ]
    };

    /// The two halves of its spelling: `gid` and `x`, `subgroup` and `lane`.
    #[must_use]
    pub const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Builtin::Invocation(axis) => ("gid", axis.name()),
            Builtin::Workgroup(axis) => ("wid", axis.name()),
            Builtin::Local(axis) => ("lid", axis.name()),
            Builtin::InvocationCount(axis) => ("gid_count", axis.name()),
            Builtin::WorkgroupCount(axis) => ("wid_count", axis.name()),
            Builtin::LocalCount(axis) => ("lid_count", axis.name()),
            Builtin::SubgroupLane => ("subgroup", "lane"),
            Builtin::SubgroupSize => ("subgroup", "size"),
        }
    }

    /// The builtin spelled by these halves.
    #[must_use]
    pub fn from_parts(base: &str, field: &str) -> Option<Builtin> {
        Builtin::ALL.into_iter().find(|builtin| builtin.parts() == (base, field))
    }

    /// Its number in the wire form.
    #[must_use]
    pub const fn tag(self) -> u8 {
        match self {
            Builtin::Invocation(axis) => 0x10 + axis as u8,
            Builtin::Workgroup(axis) => 0x20 + axis as u8,
            Builtin::Local(axis) => 0x30 + axis as u8,
            Builtin::InvocationCount(axis) => 0x40 + axis as u8,
            Builtin::WorkgroupCount(axis) => 0x50 + axis as u8,
            Builtin::LocalCount(axis) => 0x60 + axis as u8,
            Builtin::SubgroupLane => 0x01,
            Builtin::SubgroupSize => 0x02,
        }
    }

    /// The builtin with this wire tag.
    #[must_use]
    pub fn from_tag(tag: u8) -> Option<Builtin> {
        Builtin::ALL.into_iter().find(|builtin| builtin.tag() == tag)
    }

    /// Whether all invocations of a workgroup read the same value.
    #[must_use]
    pub const fn is_uniform(self) -> bool {
        match self {
            Builtin::Workgroup(_)
            | Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupSize => true,
            Builtin::Invocation(_) | Builtin::Local(_) | Builtin::SubgroupLane => false,
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, field) = self.parts();
        write!(f, "{base}.{field}")
    }
}

/// Which table an op is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpFamily {
    /// [`UnaryOp`]
    Unary,
    /// [`BinaryOp`]
    Binary,
    /// [`TernaryOp`]
    Ternary,
    /// [`AtomicOp`]
    Atomic,
    /// [`SubgroupOp`]
    Subgroup,
}

/// One op of any family, as a key for sets of ops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpId {
    /// An op with one operand.
    Unary(UnaryOp),
    /// An op with two operands.
    Binary(BinaryOp),
    /// An op with three operands.
    Ternary(TernaryOp),
    /// An atomic op.
    Atomic(AtomicOp),
    /// A subgroup op.
    Subgroup(SubgroupOp),
}

impl OpId {
    /// Every op of every family.
    pub fn all() -> impl Iterator<Item = OpId> {
        let unary = UnaryOp::ALL.iter().map(|op| OpId::Unary(*op));
        let binary = BinaryOp::ALL.iter().map(|op| OpId::Binary(*op));
        let ternary = TernaryOp::ALL.iter().map(|op| OpId::Ternary(*op));
        let atomic = AtomicOp::ALL.iter().map(|op| OpId::Atomic(*op));
        let subgroup = SubgroupOp::ALL.iter().map(|op| OpId::Subgroup(*op));
        unary.chain(binary).chain(ternary).chain(atomic).chain(subgroup)
    }

    /// The op's row.
    #[must_use]
    pub const fn info(self) -> &'static OpInfo {
        match self {
            OpId::Unary(op) => op.info(),
            OpId::Binary(op) => op.info(),
            OpId::Ternary(op) => op.info(),
            OpId::Atomic(op) => op.info(),
            OpId::Subgroup(op) => op.info(),
        }
    }

    /// How it is written, with letters for its operands: `a + b`, `shl(a, b: u32)`, `atomic.add(buf, i, a)`.
    #[must_use]
    pub fn written(self) -> String {
        let info = self.info();
        let operands = info.operands.iter().zip(["a", "b", "c"]).map(|(operand, name)| match operand {
            Operand::T => name.to_string(),
            Operand::Fixed(scalar) => format!("{name}: {scalar}"),
        });
        let (prefix, first): (&str, &[&str]) = match self {
            OpId::Unary(_) | OpId::Binary(_) | OpId::Ternary(_) => ("", &[]),
            OpId::Atomic(_) => ("atomic.", &["buf", "i"]),
            OpId::Subgroup(_) => ("subgroup.", &[]),
        };
        match info.spelling {
            Spelling::Call => {
                let all: Vec<String> = first.iter().map(|name| (*name).to_string()).chain(operands).collect();
                format!("{prefix}{}({})", info.mnemonic, all.join(", "))
            }
            Spelling::Prefix(token) => format!("{token}a"),
            Spelling::Infix(token, _) => format!("a {token} b"),
        }
    }

    /// The op's table.
    #[must_use]
    pub const fn family(self) -> OpFamily {
        match self {
            OpId::Unary(_) => OpFamily::Unary,
            OpId::Binary(_) => OpFamily::Binary,
            OpId::Ternary(_) => OpFamily::Ternary,
            OpId::Atomic(_) => OpFamily::Atomic,
            OpId::Subgroup(_) => OpFamily::Subgroup,
        }
    }
}

/// How the text form calls the op: `add`, `atomic.add`, `subgroup.add`.
impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.family() {
            OpFamily::Unary | OpFamily::Binary | OpFamily::Ternary => "",
            OpFamily::Atomic => "atomic.",
            OpFamily::Subgroup => "subgroup.",
        };
        write!(f, "{prefix}{}", self.info().mnemonic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tags_and_spellings_are_unique_within_a_family() {
        let mut tags = HashSet::new();
        let mut names = HashSet::new();
        for id in OpId::all() {
            assert!(tags.insert((id.family(), id.info().tag)), "tag of {id} is taken");
            assert!(names.insert(id.to_string()), "name {id} is taken");
        }
        for builtin in Builtin::ALL {
            assert_eq!(Builtin::from_tag(builtin.tag()), Some(builtin));
            let (base, field) = builtin.parts();
            assert_eq!(Builtin::from_parts(base, field), Some(builtin));
        }
    }

    #[test]
    fn mnemonics_and_tags_find_their_op() {
        for op in BinaryOp::ALL {
            assert_eq!(BinaryOp::from_mnemonic(op.mnemonic()), Some(*op));
            assert_eq!(BinaryOp::from_tag(op.info().tag), Some(*op));
            assert_eq!(op.info().operands.len(), 2);
        }
        for op in UnaryOp::ALL {
            assert_eq!(UnaryOp::from_tag(op.info().tag), Some(*op));
            assert_eq!(op.info().operands.len(), 1);
        }
        assert_eq!(TernaryOp::from_mnemonic("nothing"), None);
    }
}
