//! Literals that are read or encoded wrong.

use super::fault::Fault;
use super::rewrite::on_expr;
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{BufferDecl, Expr, Literal, Node, Program, Scalar};
use vyre_spec::FloatMode;
use vyre_worker::Case;

/// What a literal of some bits becomes.
type Wrong = fn(Scalar, u64) -> u64;

pub(super) fn add(list: &mut List) {
    for ty in Scalar::ALL {
        let sets: &[&[(&str, Wrong)]] = match ty {
            Scalar::Bool => &[&BOOL],
            Scalar::U32 | Scalar::I32 => &[&INT],
            Scalar::U64 | Scalar::I64 => &[&INT, &WIDE],
            Scalar::F32 => &[&FLOAT],
            Scalar::F64 => &[&FLOAT, &DOUBLE],
        };
        for (name, wrong) in sets.iter().copied().flatten().copied() {
            let change = on_expr(move |_, expr| {
                let Expr::Lit(literal) = expr else { return None };
                let instead = Literal::from_bits(ty, wrong(ty, literal.bits()));
                (literal.scalar() == ty && instead != *literal).then_some(Expr::Lit(instead))
            });
            list.add(Class::Constant, format!("{ty}-{name}"), Fault::Code(change), move || literals(ty));
        }
    }
}

const BOOL: [(&str, Wrong); 3] = [("inverted", |_, bits| bits ^ 1), ("always-true", |_, _| 1), ("always-false", |_, _| 0)];

const INT: [(&str, Wrong); 7] = [
    ("plus-one", |_, bits| bits.wrapping_add(1)),
    ("negated", |_, bits| bits.wrapping_neg()),
    ("low-byte", |_, bits| bits & 0xFF),
    ("byte-extended", |_, bits| bits as u8 as i8 as i64 as u64),
    ("low-half", |_, bits| bits & 0xFFFF),
    ("half-extended", |_, bits| bits as u16 as i16 as i64 as u64),
    ("no-top-bit", |ty, bits| bits & !(1 << (ty.bits() - 1))),
];

const WIDE: [(&str, Wrong); 2] =
    [("low-word", |_, bits| bits & 0xFFFF_FFFF), ("word-extended", |_, bits| bits as u32 as i32 as i64 as u64)];

fn sign(ty: Scalar) -> u64 {
    1 << (ty.bits() - 1)
}

fn infinity(ty: Scalar) -> u64 {
    if ty == Scalar::F32 { 0x7F80_0000 } else { 0x7FF0_0000_0000_0000 }
}

fn first_normal(ty: Scalar) -> u64 {
    if ty == Scalar::F32 { 0x0080_0000 } else { 0x0010_0000_0000_0000 }
}

const FLOAT: [(&str, Wrong); 7] = [
    ("one-ulp", |ty, bits| if bits & !sign(ty) < infinity(ty) { bits ^ 1 } else { bits }),
    ("negated", |ty, bits| bits ^ sign(ty)),
    ("no-minus-zero", |ty, bits| if bits == sign(ty) { 0 } else { bits }),
    ("short-fraction", |ty, bits| bits & !(first_normal(ty) / 128 - 1)),
    ("flushed", |ty, bits| if bits & !sign(ty) < first_normal(ty) { bits & sign(ty) } else { bits }),
    ("nan-is-infinity", |ty, bits| if bits & !sign(ty) > infinity(ty) { infinity(ty) } else { bits }),
    ("infinity-is-largest", |ty, bits| if bits & !sign(ty) == infinity(ty) { bits - 1 } else { bits }),
];

const DOUBLE: [(&str, Wrong); 1] = [("through-f32", |_, bits| {
    let small = vyre_scalar::cast(Scalar::F64, Scalar::F32, FloatMode::Ieee, bits);
    vyre_scalar::cast(Scalar::F32, Scalar::F64, FloatMode::Ieee, small)
})];

/// Literals of a type, one after the other.
fn literals(ty: Scalar) -> Witness {
    let noise = (0..8).map(|n| witness::noise(ty, n));
    let values: Vec<u64> = witness::edges(ty).into_iter().chain(noise).collect();
    let out = BufferDecl::output("out", 0, witness::element(ty)).with_count(values.len() as u32 + 1);
    let store = |(n, bits): (usize, &u64)| Node::store("out", Expr::u32(n as u32), Expr::Lit(Literal::from_bits(ty, *bits)));
    let body = values.iter().enumerate().map(store).collect();
    let mut case = Case::new(Program::wrapped(vec![out], [1, 1, 1], body), Vec::new());
    case.config.grid_override = Some([1, 1, 1]);
    Witness::Cases(vec![case])
}
