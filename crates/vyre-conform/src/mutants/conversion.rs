//! Casts, and loads and stores of the types that are converted there.

use super::arithmetic::{lit, other_sign};
use super::fault::Fault;
use super::floats::flushed;
use super::rewrite::{Change, Site, on_cast, on_expr, on_node};
use super::witness::{of_expr, program};
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{DataType, Expr, Node, Scalar};
use vyre_scalar::small::{BF16, F8E4M3, F8E5M2, F16, Format, widen};
use vyre_spec::Storage;
use vyre_worker::Case;

pub(super) fn add(list: &mut List) {
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            for (name, wrong) in casts(from, to) {
                let change = on_cast(from, to, move |site, x| wrong(site, from, to, x));
                let witness =
                    move || of_expr(&[from], to, |row| row.into_iter().next().map_or(lit(to, 0), |x| Expr::cast(to, x)));
                list.add(Class::Conversion, format!("{from}-to-{to}-{name}"), Fault::Code(change), witness);
            }
        }
    }
    add_loads_and_stores(list);
}

type Wrong = fn(&mut Site<'_>, Scalar, Scalar, Expr) -> Expr;

/// The most significant bit of an integer, as a literal of it.
fn top_bit(ty: Scalar) -> u64 {
    1 << (ty.bits() - 1)
}

/// Significant bits of a float.
fn precision(ty: Scalar) -> u32 {
    if ty == Scalar::F32 { 24 } else { 53 }
}

/// The float that is next to this one on the way to zero.
fn nearer(ty: Scalar, x: Expr) -> Expr {
    let bits = ty.unsigned();
    Expr::bitcast(ty, Expr::sub(Expr::bitcast(bits, x), lit(bits, 1)))
}

/// The ways in which a cast goes wrong.
fn casts(from: Scalar, to: Scalar) -> Vec<(&'static str, Wrong)> {
    let mut all: Vec<(&'static str, Wrong)> = Vec::new();
    if from == to {
        return all;
    }
    match (from, to) {
        (Scalar::F32 | Scalar::F64, Scalar::Bool) => {}
        (Scalar::F32 | Scalar::F64, Scalar::F32 | Scalar::F64) => {
            if to == Scalar::F32 {
                all.push(("toward-zero", |site, from, to, x| {
                    let x = site.bind(x);
                    let near = site.bind(Expr::cast(to, x.clone()));
                    let past = Expr::gt(Expr::abs(Expr::cast(from, near.clone())), Expr::abs(x));
                    Expr::select(past, nearer(to, near.clone()), near)
                }));
                all.push(("saturates", |_, _, to, x| {
                    let most = 0x7F7F_FFFFu64;
                    Expr::max(Expr::min(Expr::cast(to, x), lit(to, most)), lit(to, most | 1 << 31))
                }));
            } else {
                all.push(("fraction-short", |site, _, to, x| {
                    let wide = site.bind(Expr::cast(to, x));
                    Expr::bitcast(to, Expr::bitand(Expr::bitcast(Scalar::U64, wide), Expr::u64(!0 << 30)))
                }));
            }
        }
        (Scalar::F32 | Scalar::F64, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64) => {
            all.push(("nan-is-smallest", |site, _, to, x| {
                let x = site.bind(x);
                Expr::select(Expr::is_nan(x.clone()), lit(to, top_bit(to)), Expr::cast(to, x))
            }));
            all.push(("rounds", |_, _, to, x| Expr::cast(to, Expr::round(x))));
            all.push(("does-not-saturate", |site, from, to, x| {
                // What processors give for numbers that are too large.
                let x = site.bind(x);
                let limit = Expr::cast(from, Expr::u64(1 << (to.bits() - 1)));
                let large = Expr::ge(Expr::abs(x.clone()), limit);
                Expr::select(large, lit(to, top_bit(to)), Expr::cast(to, x))
            }));
            if to.bits() == 32 {
                all.push(("wraps", |_, _, to, x| Expr::cast(to, Expr::cast(Scalar::I64, x))));
            }
            if to.is_signed_int() {
                all.push(("floors", |_, _, to, x| Expr::cast(to, Expr::floor(x))));
            } else {
                all.push(("as-signed", |_, _, to, x| {
                    let signed = other_sign(to).unwrap_or(to);
                    Expr::bitcast(to, Expr::cast(signed, x))
                }));
            }
        }
        (Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64, Scalar::F32 | Scalar::F64) => {
            all.push(("other-sign", |_, from, to, x| Expr::cast(to, Expr::bitcast(other_sign(from).unwrap_or(from), x))));
            if from.bits() > precision(to) {
                all.push(("toward-zero", |site, from, to, x| {
                    let x = site.bind(x);
                    let near = site.bind(Expr::cast(to, x.clone()));
                    let back = site.bind(Expr::cast(from, near.clone()));
                    let above = Expr::and(Expr::gt(back.clone(), x.clone()), Expr::ge(x.clone(), lit(from, 0)));
                    let below = Expr::and(Expr::lt(back, x.clone()), Expr::lt(x, lit(from, 0)));
                    Expr::select(Expr::or(above, below), nearer(to, near.clone()), near)
                }));
            }
            if to == Scalar::F64 {
                all.push(("through-f32", |_, _, to, x| Expr::cast(to, Expr::cast(Scalar::F32, x))));
            } else if from.bits() == 64 {
                all.push(("through-f64", |_, _, to, x| Expr::cast(to, Expr::cast(Scalar::F64, x))));
            }
        }
        (Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64) => {
            if range(to).1 < range(from).1 || range(to).0 > range(from).0 {
                all.push(("saturates", |_, from, to, mut x| {
                    let ((low, high), (least, most)) = (range(to), range(from));
                    if high < most {
                        x = Expr::min(x, lit(from, high as u64));
                    }
                    if low > least {
                        x = Expr::max(x, lit(from, low as u64));
                    }
                    Expr::cast(to, x)
                }));
            }
            if from.bits() < to.bits() {
                all.push(("extended-otherwise", |_, from, to, x| {
                    Expr::cast(to, Expr::bitcast(other_sign(from).unwrap_or(from), x))
                }));
            } else if from.bits() > to.bits() {
                all.push(("upper-half", |_, _, to, x| Expr::cast(to, Expr::shr(x, Expr::u32(32)))));
            }
        }
        (Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64, Scalar::Bool) => {
            all.push(("low-bit", |_, from, to, x| Expr::cast(to, Expr::bitand(x, lit(from, 1)))));
            all.push(("low-half", |_, from, to, x| Expr::cast(to, Expr::shl(x, Expr::u32(from.bits() / 2)))));
        }
        (Scalar::Bool, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64) => {
            all.push(("is-all-ones", |_, _, to, x| {
                let ones = match to {
                    Scalar::F32 => Expr::f32(-1.0),
                    Scalar::F64 => Expr::f64(-1.0),
                    Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => lit(to, u64::MAX),
                };
                Expr::select(x, ones, lit(to, 0))
            }));
        }
        (Scalar::Bool, Scalar::Bool) => {}
    }
    all
}

/// The smallest and the largest value of an integer type.
fn range(ty: Scalar) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed_int() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// A change of loads of one element type, from what is loaded.
pub(super) fn on_load(element: DataType, change: impl Fn(&mut Site<'_>, Expr) -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |site, expr| {
        let Expr::Load(load) = expr else { return None };
        (site.buffer(&load.buffer)?.element == element).then(|| change(site, expr.clone()))
    })
}

/// A change of what is stored to one element type.
fn on_store(element: DataType, change: impl Fn(&mut Site<'_>, Expr) -> Expr + Send + Sync + 'static) -> Change {
    on_node(move |site, node| {
        let Node::Store(store) = node else { return None };
        (site.buffer(&store.buffer)?.element == element).then(|| {
            let mut changed = store.clone();
            changed.value = change(site, store.value.clone());
            vec![Node::Store(changed)]
        })
    })
}

/// The layout of a type that is a small float.
fn format(element: &DataType) -> Option<&'static Format> {
    let formats = [(DataType::F16, &F16), (DataType::BF16, &BF16), (DataType::F8E4M3, &F8E4M3), (DataType::F8E5M2, &F8E5M2)];
    formats.into_iter().find(|(ty, _)| ty == element).map(|(_, format)| format)
}

fn add_loads_and_stores(list: &mut List) {
    for element in DataType::KERNEL_SCALARS {
        let (value, stores) = match element.storage() {
            Storage::Converted(scalar) => (scalar, true),
            Storage::LoadOnly(scalar) => (scalar, false),
            Storage::Computed(_) | Storage::Described => continue,
        };
        let Some(bits) = element.bits() else { continue };
        let bits = bits as u32;
        let mut put = |what: &str, change: Change, witness: fn(&DataType, Scalar) -> Witness| {
            let of = element.clone();
            list.add(Class::Conversion, what, Fault::Code(change), move || witness(&of, value));
        };
        if value.is_int() {
            let extended = on_load(element.clone(), move |_, x| {
                if value == Scalar::I32 {
                    return Expr::bitand(x, Expr::i32(((1i64 << bits) - 1) as i32));
                }
                let up = Expr::u32(32 - bits);
                let signed = Expr::shr(Expr::bitcast(Scalar::I32, Expr::shl(x, up.clone())), up);
                Expr::bitcast(Scalar::U32, signed)
            });
            put(&format!("load.{element}-extended-otherwise"), extended, loaded);
            if stores {
                let saturates = on_store(element.clone(), move |_, x| {
                    let (low, high) = match value == Scalar::I32 {
                        true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
                        false => (0, (1i64 << bits) - 1),
                    };
                    Expr::max(Expr::min(x, lit(value, high as u64)), lit(value, low as u64))
                });
                put(&format!("store.{element}-saturates"), saturates, stored);
            }
            continue;
        }
        let absolute = on_load(element.clone(), |_, x| Expr::abs(x));
        put(&format!("load.{element}-loses-sign"), absolute, loaded);
        let Some(format) = format(&element) else {
            // Types of 4 bits: the largest value is lost.
            let clamped = on_load(element.clone(), |_, x| Expr::min(x, Expr::f32(0.9)));
            put(&format!("load.{element}-clamped"), clamped, loaded);
            continue;
        };
        let least = widen(format, 1 << format.fraction_bits);
        if least.to_bits() > 0x0080_0000 {
            let flushes = on_load(element.clone(), move |site, x| {
                let x = site.bind(x);
                let small = Expr::lt(Expr::abs(x.clone()), Expr::f32(least));
                Expr::select(small, Expr::copysign(Expr::f32(0.0), x.clone()), x)
            });
            put(&format!("load.{element}-flushes"), flushes, loaded);
        } else {
            let flushes = on_load(element.clone(), |site, x| flushed(site, Scalar::F32, x));
            put(&format!("load.{element}-flushes"), flushes, loaded);
        }
        let truncates = on_store(element.clone(), move |_, x| {
            let kept = !0u32 << (23 - format.fraction_bits);
            Expr::bitcast(Scalar::F32, Expr::bitand(Expr::bitcast(Scalar::U32, x), Expr::u32(kept)))
        });
        put(&format!("store.{element}-truncates"), truncates, stored);
        let twice = on_store(element.clone(), move |_, x| {
            // Ties go away from zero: half of the last place is added before the rest is cut off.
            let half = 1u32 << (22 - format.fraction_bits);
            let kept = !0u32 << (23 - format.fraction_bits);
            let sum = Expr::add(Expr::bitcast(Scalar::U32, x), Expr::u32(half));
            Expr::bitcast(Scalar::F32, Expr::bitand(sum, Expr::u32(kept)))
        });
        put(&format!("store.{element}-ties-away"), twice, stored);
        let most = widen(format, format.max);
        let overflow = if format.overflow == format.max { f32::NAN } else { most };
        let overflows = on_store(element.clone(), move |site, x| {
            let x = site.bind(x);
            let past = Expr::gt(Expr::abs(x.clone()), Expr::f32(most));
            let instead = if overflow.is_nan() { Expr::f32(overflow) } else { Expr::copysign(Expr::f32(overflow), x.clone()) };
            Expr::select(past, instead, x)
        });
        put(&format!("store.{element}-overflows-otherwise"), overflows, stored);
    }
}

/// Every pattern of a small type, loaded.
fn loaded(element: &DataType, value: Scalar) -> Witness {
    let bits = element.bits().unwrap_or(8);
    let (bytes, count): (Vec<u8>, usize) = match bits {
        4 => ((0..=255u8).collect(), 512),
        8 => ((0..=255u8).collect(), 256),
        _ => ((0..1 << 12).flat_map(|n: u16| n.wrapping_mul(0x1021).to_le_bytes()).chain(0..=255).collect(), (1 << 12) + 128),
    };
    let program = program(std::slice::from_ref(element), witness::element(value), count, |row| {
        row.into_iter().next().unwrap_or_else(|| lit(value, 0))
    });
    Witness::Cases(vec![Case::new(program, vec![bytes])])
}

/// Values that fit and that do not, stored.
fn stored(element: &DataType, value: Scalar) -> Witness {
    let mut values = witness::edges(value);
    values.extend((0..2000).map(|n| witness::noise(value, n)));
    // Halves of the last place of small formats, and a little more or less than their largest values.
    values.extend([0x3F80_1000, 0x3F80_8000, 0x3F88_0000, 0x3F90_0000, 0x3FA0_0000, 0x477F_F000, 0x43E8_0000, 0x4770_0000]);
    let program = program(&[witness::element(value)], element.clone(), values.len(), |row| {
        row.into_iter().next().unwrap_or_else(|| lit(value, 0))
    });
    Witness::Cases(vec![Case::new(program, vec![witness::bytes(value, &values)])])
}
