//! Rust's operators and literals for expressions: `2.0 * &x + 1.0` is the tree that a parser would make of it.
//!
//! An operator takes expressions, references to them (which are cloned: `&i + 1u32`) and numbers. What Rust cannot overload to give an
//! expression is a method named by the op: `i.lt(n)`, `a.eq(b)`, `p.and(q)`, `c.select(x, y)`.
//!
//! Nothing is converted: a number has the type that Rust gives it, and an integer without suffix is an `i32` there. `i + 1` on a `u32`
//! is a mistake that validation reports; write `i + 1u32`.

use super::expr::Expr;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};
use vyre_spec::BinaryOp;

/// A copy.
impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Self {
        expr.clone()
    }
}

/// Constants by the type of the number.
macro_rules! literals {
    ($( $type:ident )*) => { $(
        #[doc = concat!("A `", stringify!($type), "` constant.")]
        impl From<$type> for Expr {
            fn from(value: $type) -> Self {
                Expr::$type(value)
            }
        }

        operators!($type: Add add, Sub sub, Mul mul, Div div, Rem rem, BitAnd bitand, BitOr bitor, BitXor bitxor, Shl shl, Shr shr);
    )* };
}

/// Operators whose left side is a number.
macro_rules! operators {
    ($type:ident: $( $op:ident $method:ident ),*) => { $(
        impl $op<Expr> for $type {
            type Output = Expr;

            fn $method(self, right: Expr) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }

        impl $op<&Expr> for $type {
            type Output = Expr;

            fn $method(self, right: &Expr) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }
    )* };
}

/// Operators whose left side is an expression.
macro_rules! operators_of_expressions {
    ($( $op:ident $method:ident; )*) => { $(
        impl<R: Into<Expr>> $op<R> for Expr {
            type Output = Expr;

            fn $method(self, right: R) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }

        impl<R: Into<Expr>> $op<R> for &Expr {
            type Output = Expr;

            fn $method(self, right: R) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }
    )* };
}

literals! { bool u32 i32 u64 i64 f32 f64 }

operators_of_expressions! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
    BitAnd bitand;
    BitOr bitor;
    BitXor bitxor;
    Shl shl;
    Shr shr;
}

impl Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        Expr::neg(self)
    }
}

impl Neg for &Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        Expr::neg(self.clone())
    }
}

impl Not for Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        Expr::not(self)
    }
}

impl Not for &Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        Expr::not(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_spec::Scalar;

    /// What is written in Rust is what is written in the text form, for every operator and for numbers on either side.
    #[test]
    fn operators_make_the_tree_of_the_text() {
        let (x, y) = (&Expr::var("x"), &Expr::var("y"));
        let made = [
            (x + y * 2u32, "x + y * 2u"),
            ((x + y) * 2u32, "(x + y) * 2u"),
            (x - y - 1i32, "x - y - 1i"),
            (x - (y - 1.5f32), "x - (y - 1.5)"),
            (2.0f64 / x % y, "2.0d / x % y"),
            (x & y | x ^ 7u64, "x & y | x ^ 7u64"),
            (1u32 << x >> y, "1u << x >> y"),
            (-x * !y, "-x * !y"),
            (-(x.clone() * y), "-(x * y)"),
            (x.clone().lt(y).and(true), "x < y && true"),
            (x.clone().eq(y).or(x.clone().ne(0u32)), "x == y || x != 0u"),
            (x.clone().ge(1i64).select(x, y), "select(x >= 1i64, x, y)"),
            (x.clone().min(y).sqrt(), "sqrt(min(x, y))"),
            (x.clone().fma(y, 0.5f32), "fma(x, y, 0.5)"),
            (Expr::load("a", x) + Expr::len("a"), "a[x] + len(a)"),
            (Expr::wid_z() * Expr::lid_count_y() + Expr::lid_y(), "wid.z * lid_count.y + lid.y"),
            (Expr::gid_count_x() - Expr::wid_count_y(), "gid_count.x - wid_count.y"),
            (Expr::subgroup_lane() + Expr::subgroup_size(), "subgroup.lane + subgroup.size"),
            (Expr::cast(Scalar::F32, x) - true, "f32(x) - true"),
        ];
        for (expr, text) in made {
            assert_eq!(expr.to_string(), text);
        }
    }
}
