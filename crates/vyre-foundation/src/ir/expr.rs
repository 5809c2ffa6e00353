//! Expressions and their builders.

use super::literal::Literal;
use super::name::Name;
use super::tree;
use std::fmt;
use std::ops::Deref;
use vyre_spec::{Axis, BinaryOp, Builtin, Scalar, TernaryOp, UnaryOp};

/// A pure expression: reads variables, ids and memory, changes nothing. Three words, because programs are full of them; what would
/// take more is in a box.
pub enum Expr {
    /// A constant.
    Lit(Literal),
    /// The value of a variable or specialization constant.
    Var(Name),
    /// An id or a count; `u32`.
    Builtin(Builtin),
    /// How many elements a buffer has; `u32`.
    Len(Name),
    /// One element of a buffer, widened to its value type; the zero of that type out of bounds. The index is `u32`.
    Load(Box<Load>),
    /// An op on one operand.
    Unary {
        /// The op; its table row has the types.
        op: UnaryOp,
        /// The operand.
        operand: Child,
    },
    /// An op on two operands.
    Binary {
        /// The op; its table row has the types.
        op: BinaryOp,
        /// The left operand.
        left: Child,
        /// The right operand.
        right: Child,
    },
    /// An op on three operands.
    Ternary {
        /// The op; its table row has the types.
        op: TernaryOp,
        /// The operands in order.
        operands: Box<[Child; 3]>,
    },
    /// The value converted to another scalar; a float never becomes a bool.
    Cast {
        /// The new type.
        to: Scalar,
        /// A scalar.
        value: Child,
    },
    /// The bits of the value taken as another scalar of the same width; not for bool.
    Bitcast {
        /// The new type.
        to: Scalar,
        /// A scalar.
        value: Child,
    },
    /// A vector of 2 to 4 components of one type: `u32`, `i32` or `f32`.
    Vector {
        /// The components in order.
        components: Box<[Child]>,
    },
    /// One component of a vector.
    Extract {
        /// The vector.
        vector: Child,
        /// Which component, from 0.
        component: u8,
    },
}

/// The parts of [`Expr::Load`].
pub struct Load {
    /// The buffer.
    pub buffer: Name,
    /// The element.
    pub index: Child,
}

impl From<Load> for Expr {
    fn from(parts: Load) -> Self {
        Expr::Load(Box::new(parts))
    }
}

/// An expression below another: a box whose drop does not recurse, so that any depth is safe.
///
/// The box is missing only while it is being dropped.
pub struct Child(Option<Box<Expr>>);

const PRESENT: &str = "an expression that is not being dropped has its children";

impl Child {
    /// The expression itself.
    #[must_use]
    pub fn into_inner(mut self) -> Expr {
        *self.take().expect(PRESENT)
    }

    /// The box, to be dropped.
    pub(super) fn take(&mut self) -> Option<Box<Expr>> {
        self.0.take()
    }
}

impl From<Expr> for Child {
    fn from(expr: Expr) -> Self {
        Child(Some(Box::new(expr)))
    }
}

impl Deref for Child {
    type Target = Expr;

    fn deref(&self) -> &Expr {
        self.0.as_deref().expect(PRESENT)
    }
}

impl std::ops::DerefMut for Child {
    fn deref_mut(&mut self) -> &mut Expr {
        self.0.as_deref_mut().expect(PRESENT)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(expr) = self.take() {
            tree::drop_expr(expr);
        }
    }
}

impl Clone for Child {
    fn clone(&self) -> Self {
        tree::clone_expr(self).into()
    }
}

impl PartialEq for Child {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Child {}

impl Clone for Expr {
    fn clone(&self) -> Self {
        tree::clone_expr(self)
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        tree::same_expr(self, other)
    }
}

impl Eq for Expr {}

/// The text form.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_expr(f, self)
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Expr {
    /// Whether nothing is below this expression.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        match self {
            Expr::Lit(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => true,
            Expr::Load(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Extract { .. } => false,
            Expr::Vector { components } => components.is_empty(),
        }
    }

    /// The variable or buffer that this expression names itself.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        match self {
            Expr::Var(name) | Expr::Len(name) => Some(name),
            Expr::Load(load) => Some(&load.buffer),
            Expr::Lit(_)
            | Expr::Builtin(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Vector { .. }
            | Expr::Extract { .. } => None,
        }
    }

    /// The same, to name another.
    #[must_use]
    pub fn name_mut(&mut self) -> Option<&mut Name> {
        match self {
            Expr::Var(name) | Expr::Len(name) => Some(name),
            Expr::Load(load) => Some(&mut load.buffer),
            Expr::Lit(_)
            | Expr::Builtin(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Vector { .. }
            | Expr::Extract { .. } => None,
        }
    }

    /// The expressions right below this one, in source order.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = &Expr> {
        let (few, many) = self.child_lists();
        few.into_iter().flatten().chain(many).map(|child| &**child)
    }

    /// The expressions right below this one: those that each have a field, or those in a list.
    pub(super) fn child_lists(&self) -> ([Option<&Child>; 2], &[Child]) {
        match self {
            Expr::Lit(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => ([None; 2], &[]),
            Expr::Load(load) => ([Some(&load.index), None], &[]),
            Expr::Unary { operand: only, .. }
            | Expr::Cast { value: only, .. }
            | Expr::Bitcast { value: only, .. }
            | Expr::Extract { vector: only, .. } => ([Some(only), None], &[]),
            Expr::Binary { left, right, .. } => ([Some(left), Some(right)], &[]),
            Expr::Ternary { operands, .. } => ([None; 2], &operands[..]),
            Expr::Vector { components } => ([None; 2], components),
        }
    }

    /// The expressions right below this one, in source order, to change them.
    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        let (few, many): ([Option<&mut Child>; 2], &mut [Child]) = match self {
            Expr::Lit(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => ([None, None], &mut []),
            Expr::Load(load) => ([Some(&mut load.index), None], &mut []),
            Expr::Unary { operand: only, .. }
            | Expr::Cast { value: only, .. }
            | Expr::Bitcast { value: only, .. }
            | Expr::Extract { vector: only, .. } => ([Some(only), None], &mut []),
            Expr::Binary { left, right, .. } => ([Some(left), Some(right)], &mut []),
            Expr::Ternary { operands, .. } => ([None, None], &mut operands[..]),
            Expr::Vector { components } => ([None, None], components),
        };
        few.into_iter().flatten().chain(many)
    }

    /// The same expression over other children: `next` is called once per child, in source order.
    pub(crate) fn with_children<'a>(&'a self, mut next: impl FnMut(&'a Expr) -> Expr) -> Expr {
        let mut child = |old: &'a Child| Child::from(next(old));
        match self {
            Expr::Lit(literal) => Expr::Lit(*literal),
            Expr::Var(name) => Expr::Var(name.clone()),
            Expr::Builtin(builtin) => Expr::Builtin(*builtin),
            Expr::Len(buffer) => Expr::Len(buffer.clone()),
            Expr::Load(load) => Load { buffer: load.buffer.clone(), index: child(&load.index) }.into(),
            Expr::Unary { op, operand } => Expr::Unary { op: *op, operand: child(operand) },
            Expr::Binary { op, left, right } => Expr::Binary { op: *op, left: child(left), right: child(right) },
            Expr::Ternary { op, operands } => {
                let [a, b, c] = &**operands;
                Expr::Ternary { op: *op, operands: Box::new([child(a), child(b), child(c)]) }
            }
            Expr::Cast { to, value } => Expr::Cast { to: *to, value: child(value) },
            Expr::Bitcast { to, value } => Expr::Bitcast { to: *to, value: child(value) },
            Expr::Vector { components } => Expr::Vector { components: components.iter().map(child).collect() },
            Expr::Extract { vector, component } => Expr::Extract { vector: child(vector), component: *component },
        }
    }
}

/// Constants, names, ids and memory.
impl Expr {
    /// A `bool` constant.
    #[must_use]
    pub fn bool(value: bool) -> Expr {
        Expr::Lit(Literal::Bool(value))
    }

    /// A `u32` constant.
    #[must_use]
    pub fn u32(value: u32) -> Expr {
        Expr::Lit(Literal::U32(value))
    }

    /// An `i32` constant.
    #[must_use]
    pub fn i32(value: i32) -> Expr {
        Expr::Lit(Literal::I32(value))
    }

    /// A `u64` constant.
    #[must_use]
    pub fn u64(value: u64) -> Expr {
        Expr::Lit(Literal::U64(value))
    }

    /// An `i64` constant.
    #[must_use]
    pub fn i64(value: i64) -> Expr {
        Expr::Lit(Literal::I64(value))
    }

    /// An `f32` constant.
    #[must_use]
    pub fn f32(value: f32) -> Expr {
        Expr::Lit(Literal::F32(value.into()))
    }

    /// An `f64` constant.
    #[must_use]
    pub fn f64(value: f64) -> Expr {
        Expr::Lit(Literal::F64(value.into()))
    }

    /// A variable or specialization constant.
    #[must_use]
    pub fn var(name: impl Into<Name>) -> Expr {
        Expr::Var(name.into())
    }

    /// `buffer[index]`
    #[must_use]
    pub fn load(buffer: impl Into<Name>, index: impl Into<Expr>) -> Expr {
        Load { buffer: buffer.into(), index: index.into().into() }.into()
    }

    /// `len(buffer)`
    #[must_use]
    pub fn buf_len(buffer: impl Into<Name>) -> Expr {
        Expr::Len(buffer.into())
    }

    /// `len(buffer)`, spelled as in the text form.
    #[must_use]
    pub fn len(buffer: impl Into<Name>) -> Expr {
        Expr::buf_len(buffer)
    }

    /// `subgroup.lane`
    #[must_use]
    pub fn subgroup_lane() -> Expr {
        Expr::Builtin(Builtin::SubgroupLane)
    }

    /// `subgroup.size`
    #[must_use]
    pub fn subgroup_size() -> Expr {
        Expr::Builtin(Builtin::SubgroupSize)
    }

    /// Any id or count.
    #[must_use]
    pub fn builtin(builtin: Builtin) -> Expr {
        Expr::Builtin(builtin)
    }

    /// `to(value)`
    #[must_use]
    pub fn cast(to: Scalar, value: impl Into<Expr>) -> Expr {
        Expr::Cast { to, value: value.into().into() }
    }

    /// `bitcast<to>(value)`
    #[must_use]
    pub fn bitcast(to: Scalar, value: impl Into<Expr>) -> Expr {
        Expr::Bitcast { to, value: value.into().into() }
    }

    /// `vec(a, b, …)`
    #[must_use]
    pub fn vector(components: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::Vector { components: components.into_iter().map(Child::from).collect() }
    }

    /// `vector.x`, `.y`, `.z`, `.w` for components 0 to 3
    #[must_use]
    pub fn extract(vector: impl Into<Expr>, component: u8) -> Expr {
        Expr::Extract { vector: vector.into().into(), component }
    }

    /// Any op with one operand.
    #[must_use]
    pub fn unary(op: UnaryOp, operand: impl Into<Expr>) -> Expr {
        Expr::Unary { op, operand: operand.into().into() }
    }

    /// Any op with two operands.
    #[must_use]
    pub fn binary(op: BinaryOp, left: impl Into<Expr>, right: impl Into<Expr>) -> Expr {
        Expr::Binary { op, left: left.into().into(), right: right.into().into() }
    }

    /// Any op with three operands.
    #[must_use]
    pub fn ternary(op: TernaryOp, a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
        Expr::Ternary { op, operands: Box::new([a.into().into(), b.into().into(), c.into().into()]) }
    }
}

/// A builder per op, named by its mnemonic and explained by its doc, from the rows in [`vyre_spec::op`]. The first operand is `self`, so
/// that `Expr::min(a, b)` and `a.min(b)` are the same.
macro_rules! unary_builders {
    ($( $name:ident $op:ident $doc:literal; )*) => {
        impl Expr { $(
            #[doc = concat!("`", stringify!($name), "`: ", $doc, ".")]
            #[must_use]
            #[allow(clippy::should_implement_trait, clippy::wrong_self_convention, reason = "named by mnemonic; it makes IR and computes nothing")]
            pub fn $name(self) -> Expr {
                Expr::unary(UnaryOp::$op, self)
            }
        )* }
    };
}

/// See [`unary_builders`].
macro_rules! binary_builders {
    ($( $name:ident $op:ident $doc:literal; )*) => {
        impl Expr { $(
            #[doc = concat!("`", stringify!($name), "`: ", $doc, ".")]
            #[must_use]
            #[allow(clippy::should_implement_trait, reason = "named by mnemonic; it makes IR and computes nothing")]
            pub fn $name(self, right: impl Into<Expr>) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        )* }
    };
}

/// See [`unary_builders`].
macro_rules! ternary_builders {
    ($( $name:ident $op:ident $doc:literal; )*) => {
        impl Expr { $(
            #[doc = concat!("`", stringify!($name), "`: ", $doc, ".")]
            #[must_use]
            pub fn $name(self, second: impl Into<Expr>, third: impl Into<Expr>) -> Expr {
                Expr::ternary(TernaryOp::$op, self, second, third)
            }
        )* }
    };
}

/// Builders of the ids and counts along the three axes.
macro_rules! id_builders {
    ($( $variant:ident: $x:ident $y:ident $z:ident, $doc:literal; )*) => {
        impl Expr { $(
            id_builders!($variant X $x "x" $doc);
            id_builders!($variant Y $y "y" $doc);
            id_builders!($variant Z $z "z" $doc);
        )* }
    };
    ($variant:ident $axis:ident $name:ident $letter:literal $doc:literal) => {
        #[doc = concat!($doc, " along ", $letter, ".")]
        #[must_use]
        pub fn $name() -> Expr {
            Expr::Builtin(Builtin::$variant(Axis::$axis))
        }
    };
}

id_builders! {
    Invocation: gid_x gid_y gid_z, "`gid`: the position of the invocation in the whole dispatch,";
    Workgroup: wid_x wid_y wid_z, "`wid`: the position of its workgroup,";
    Local: lid_x lid_y lid_z, "`lid`: the position of the invocation in its workgroup,";
    InvocationCount: gid_count_x gid_count_y gid_count_z, "`gid_count`: how many invocations the dispatch has";
    WorkgroupCount: wid_count_x wid_count_y wid_count_z, "`wid_count`: how many workgroups the dispatch has";
    LocalCount: lid_count_x lid_count_y lid_count_z, "`lid_count`: how many invocations a workgroup has";
}

vyre_spec::unary_ops!(unary_builders);
vyre_spec::binary_ops!(binary_builders);
vyre_spec::ternary_ops!(ternary_builders);
