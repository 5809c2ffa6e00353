//! Types: of operands against the row of their op, of values against where they go, and what would convert the one to the other.

use super::{Resolver, Typed};
use crate::diagnostic::{Diagnostic, Fix, Location};
use crate::ir::{Expr, Literal, NodeId, OpId};
use crate::kernel::ExprKind;
use vyre_spec::{ErrorCode, Operand, Scalar, TypeSet, ValueType};

impl Resolver<'_> {
    /// An expression that must have this type.
    #[inline]
    pub(super) fn fixed(&mut self, expr: &Expr, expected: Scalar, code: ErrorCode, what: &str) -> Typed {
        let value = self.expr(expr);
        if let Some(found) = value.ty.filter(|found| *found != ValueType::Scalar(expected)) {
            let diagnostic =
                Diagnostic::new(code, format!("{what} must be {expected}, found {found}")).at(Location::Tree(value.place));
            let diagnostic = self.mismatch(diagnostic, expected.into(), value);
            self.mistake(diagnostic);
        }
        value
    }

    /// Checks the operands of an op against its row; gives what its type variable stands for. `known` is the type variable where
    /// something other than an operand decides it.
    #[inline]
    pub(super) fn op(&mut self, op: OpId, known: Option<ValueType>, operands: &[Typed], place: NodeId) -> Option<Scalar> {
        let info = op.info();
        if operands.len() != info.operands.len() {
            let beside = if matches!(op, OpId::Atomic(_)) { " beside buffer and index" } else { "" };
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0313,
                    format!("`{op}` takes {}{beside}, found {}", counted(info.operands.len(), "argument"), operands.len()),
                )
                .at(Location::Operation(place))
                .expected(counted(info.operands.len(), "argument"))
                .found(operands.len()),
            );
            return None;
        }
        let pairs = || operands.iter().zip(info.operands);
        let first = pairs().find(|(operand, rule)| **rule == Operand::T && operand.ty.is_some()).map(|(operand, _)| *operand);
        let mut fine = pairs().all(|(operand, _)| operand.ty.is_some());
        // A literal takes its type from its context, so the other operand is the one to follow.
        let leader = pairs()
            .filter(|(operand, rule)| **rule == Operand::T && operand.ty.is_some())
            .map(|(operand, _)| *operand)
            .find(|operand| !operand.literal)
            .or(first);
        let expected = known.or(leader.and_then(|leader| leader.ty));
        let t = match expected {
            Some(ValueType::Scalar(t)) if info.over.contains(t) => Some(t),
            Some(found) => {
                let at = leader.map_or(Location::Head(place), |leader| Location::Tree(leader.place));
                let diagnostic = self.wrong_type(op, found, at, place);
                self.mistake(diagnostic);
                return None;
            }
            None => None,
        };
        for (operand, rule) in pairs() {
            let wanted = match rule {
                Operand::T => expected,
                Operand::Fixed(scalar) => Some(ValueType::Scalar(*scalar)),
            };
            if let (Some(wanted), Some(found)) = (wanted, operand.ty)
                && wanted != found
            {
                fine = false;
                let diagnostic = Diagnostic::new(ErrorCode::E0301, format!("`{}` needs {wanted} here, found {found}", token(op)))
                    .at(Location::Tree(operand.place));
                let diagnostic = match (rule, leader, known) {
                    (Operand::T, Some(leader), None) => {
                        diagnostic.related(Location::Tree(leader.place), format!("this is {wanted}"))
                    }
                    (Operand::T | Operand::Fixed(_), _, _) => diagnostic,
                };
                let mut diagnostic = self.mismatch(diagnostic, wanted, *operand);
                // `2.5 * n`: converting the literal would lose what it says.
                if let (true, ValueType::Scalar(from), Some(leader)) = (operand.literal, found, leader)
                    && from.is_float()
                    && matches!(&diagnostic.fix, Some(Fix::Wrap(..)))
                    && known.is_none()
                {
                    let wrap = Fix::Wrap(Location::Tree(leader.place), format!("{from}("), ")".into());
                    diagnostic = diagnostic.fix("convert the other operand", wrap);
                }
                self.mistake(diagnostic);
            }
        }
        t.filter(|_| fine)
    }

    pub(super) fn vector_type(&mut self, components: &[Typed], place: NodeId) -> Option<ValueType> {
        let wrong = |message: String| {
            Diagnostic::new(ErrorCode::E0311, message).at(Location::Tree(place)).expected("2 to 4 components of u32, i32 or f32")
        };
        if !(2..=4).contains(&components.len()) {
            self.mistake(
                wrong(format!("a vector cannot have {}", counted(components.len(), "component"))).found(components.len()),
            );
            return None;
        }
        let first = components.iter().find_map(|component| component.ty)?;
        let ValueType::Scalar(scalar @ (Scalar::U32 | Scalar::I32 | Scalar::F32)) = first else {
            self.mistake(wrong(format!("a vector cannot hold {first}")).found(first));
            return None;
        };
        for component in components {
            if let Some(found) = component.ty.filter(|found| *found != first) {
                let diagnostic = Diagnostic::new(
                    ErrorCode::E0301,
                    format!("the components of a vector have one type: {first}, and this is {found}"),
                )
                .at(Location::Tree(component.place));
                let diagnostic = self.mismatch(diagnostic, first, *component);
                self.mistake(diagnostic);
            }
        }
        Some(ValueType::Vector(scalar, components.len() as u8))
    }

    fn wrong_type(&self, op: OpId, found: ValueType, at: Location, place: NodeId) -> Diagnostic {
        let info = op.info();
        let diagnostic = Diagnostic::new(ErrorCode::E0302, format!("`{}` does not take {found}", token(op)))
            .at(at)
            .expected(any_of(info.over))
            .found(found);
        let logical = match (op, found) {
            (OpId::Binary(vyre_spec::BinaryOp::BitAnd), ValueType::Scalar(Scalar::Bool)) => Some("&&"),
            (OpId::Binary(vyre_spec::BinaryOp::BitOr), ValueType::Scalar(Scalar::Bool)) => Some("||"),
            _ => None,
        };
        match (logical, found) {
            (Some(token), _) => diagnostic.fix("for bool write", Fix::Replace(Location::Head(place), token.into())),
            (None, ValueType::Vector(..)) => diagnostic.help("vectors are not computed on; take a component: `.x`"),
            (None, ValueType::Scalar(_)) => diagnostic,
        }
    }

    /// Adds what was expected and found, and the conversion that would mend it.
    pub(super) fn mismatch(&self, diagnostic: Diagnostic, expected: ValueType, value: Typed) -> Diagnostic {
        let Some(found) = value.ty else { return diagnostic };
        let diagnostic = diagnostic.expected(expected).found(found);
        let at = Location::Tree(value.place);
        let (ValueType::Scalar(to), ValueType::Scalar(from)) = (expected, found) else { return diagnostic };
        if let (true, ExprKind::Lit { bits }) = (value.literal, self.kernel.expr(value.id).kind)
            && let Some(written) = literal_as(Literal::from_bits(from, bits), to)
        {
            return diagnostic.fix("write", Fix::Replace(at, written));
        }
        match to {
            Scalar::Bool => diagnostic.fix("compare it", Fix::Wrap(at, "(".into(), format!(" != {})", zero(from)))),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => {
                diagnostic.fix("convert it", Fix::Wrap(at, format!("{to}("), ")".into()))
            }
        }
    }

    /// The type that a cast converts from, unless it cannot.
    pub(super) fn cast(&mut self, to: Scalar, value: Typed, place: NodeId) -> Option<Scalar> {
        match value.ty {
            None => None,
            Some(ValueType::Scalar(from)) if to != Scalar::Bool || !from.is_float() => Some(from),
            Some(from) => {
                let diagnostic = Diagnostic::new(ErrorCode::E0308, format!("{from} does not convert to {to}"))
                    .at(Location::Tree(place))
                    .found(from);
                self.mistake(match from {
                    ValueType::Scalar(from) => diagnostic.expected("an integer or bool").fix(
                        "compare it with zero instead",
                        Fix::Wrap(Location::Tree(value.place), "(".into(), format!(" != {})", zero(from))),
                    ),
                    ValueType::Vector(..) => {
                        diagnostic.expected("a scalar").help("convert its components one by one, `.x` first")
                    }
                });
                None
            }
        }
    }

    /// The type whose bits a bitcast takes, unless it cannot.
    pub(super) fn bitcast(&mut self, to: Scalar, value: Typed, place: NodeId) -> Option<Scalar> {
        match value.ty {
            None => None,
            Some(ValueType::Scalar(from)) if from.bits() == to.bits() && from != Scalar::Bool => Some(from),
            Some(from) => {
                let width = |ty: ValueType| match ty {
                    ValueType::Scalar(Scalar::Bool) => "a bool, which has no bits to cast".to_string(),
                    ValueType::Scalar(scalar) => format!("{} bits", scalar.bits()),
                    ValueType::Vector(..) => "a vector".to_string(),
                };
                let message = match (to, from) {
                    (Scalar::Bool, _) => "there is no bitcast to bool".to_string(),
                    _ => format!("a bitcast keeps the width, and {from} is not as wide as {to}"),
                };
                let diagnostic = Diagnostic::new(ErrorCode::E0309, message).at(Location::Tree(place)).found(width(from));
                self.mistake(match to {
                    Scalar::Bool => diagnostic.help("compare with zero instead"),
                    Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => {
                        diagnostic.expected(width(to.into()))
                    }
                });
                None
            }
        }
    }

    #[inline]
    pub(super) fn note_type(&mut self, ty: ValueType) {
        let scalar = match ty {
            ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => scalar,
        };
        self.kernel.uses.f64 |= scalar == Scalar::F64;
        self.kernel.uses.int64 |= matches!(scalar, Scalar::U64 | Scalar::I64);
    }
}

/// A literal as one of another type, if that type has the value.
fn literal_as(literal: Literal, to: Scalar) -> Option<String> {
    let integer = match literal {
        Literal::Bool(_) => return None,
        Literal::U32(value) => i128::from(value),
        Literal::I32(value) => i128::from(value),
        Literal::U64(value) => i128::from(value),
        Literal::I64(value) => i128::from(value),
        Literal::F32(value) => exact_integer(f64::from(value.value()))?,
        Literal::F64(value) => exact_integer(value.value())?,
    };
    let suffix = |fits: bool, suffix: &str| fits.then(|| format!("{integer}{suffix}"));
    match to {
        Scalar::Bool => None,
        Scalar::U32 => suffix(u32::try_from(integer).is_ok(), "u"),
        Scalar::I32 => suffix(i32::try_from(integer).is_ok(), "i"),
        Scalar::U64 => suffix(u64::try_from(integer).is_ok(), "u64"),
        Scalar::I64 => suffix(i64::try_from(integer).is_ok(), "i64"),
        Scalar::F32 => suffix(integer.unsigned_abs() <= 1 << 24, ".0"),
        Scalar::F64 => suffix(integer.unsigned_abs() <= 1 << 53, ".0d"),
    }
}

fn exact_integer(value: f64) -> Option<i128> {
    (value.trunc() == value && value.abs() < 1e18 && (value != 0.0 || value.is_sign_positive())).then_some(value as i128)
}

fn zero(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "false",
        Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => "0",
        Scalar::F32 => "0.0",
        Scalar::F64 => "0.0d",
    }
}

/// How a reader of the text knows the op: its operator, or its name.
fn token(op: OpId) -> String {
    match op.info().spelling {
        vyre_spec::Spelling::Call => op.to_string(),
        vyre_spec::Spelling::Prefix(token) | vyre_spec::Spelling::Infix(token, _) => token.to_string(),
    }
}

fn any_of(types: TypeSet) -> String {
    let names: Vec<&str> = types.iter().map(Scalar::name).collect();
    match names.as_slice() {
        [only] => (*only).to_string(),
        names => format!("one of {}", names.join(", ")),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
