//! Ops that are wrong for a few operands: by the hash of their bits, for one in a thousand to one in a million.
//!
//! Each op on each type has one such mutant, whose rate follows from its name. The lowest bit of its result is flipped.

use super::fault::Fault;
use super::ops::{flipped, on_op, pure_ops, value};
use super::rewrite::Site;
use super::witness::{apply, mix, noise, of_operands, signature};
use super::{Class, List, Witness, hash};
use vyre_foundation::ir::{Expr, OpId, Scalar};

/// How many of the 2^32 hashes are wrong, and what stands for it in names.
const RATES: [(u32, &str); 4] = [(4_294_967, "1e-3"), (429_497, "1e-4"), (42_950, "1e-5"), (4_295, "1e-6")];

pub(super) fn add(list: &mut List) {
    for op in pure_ops() {
        for ty in op.info().over.iter() {
            let (types, result) = signature(op, ty);
            // A bool has too few values for a rate.
            if types.iter().all(|ty| *ty == Scalar::Bool) {
                continue;
            }
            let place = format!("{op}.{ty}");
            let (below, rate) = RATES[(hash(&place) >> 8) as usize % RATES.len()];
            let of = types.clone();
            let change = on_op(op, ty, move |site, operands| {
                let operands: Vec<Expr> = operands.into_iter().map(|operand| site.bind(operand)).collect();
                let hash = hashed(site, &of, &operands);
                let right = site.bind(apply(op, operands));
                Expr::select(Expr::lt(hash, Expr::u32(below)), flipped(result, right.clone()), right)
            });
            list.add(Class::Rare, format!("{place}-{rate}"), Fault::Code(change), move || found(op, ty, &types, result, below));
        }
    }
}

const ODD: [u32; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];

/// The hash of operands, as a kernel computes it; [`hash_of`] is the same in numbers.
fn hashed(site: &mut Site<'_>, types: &[Scalar], operands: &[Expr]) -> Expr {
    let mut sum = Expr::u32(0);
    for ((ty, operand), odd) in types.iter().zip(operands).zip(ODD) {
        let word = match ty {
            Scalar::Bool | Scalar::I32 => Expr::cast(Scalar::U32, operand.clone()),
            Scalar::U32 => operand.clone(),
            Scalar::F32 => Expr::bitcast(Scalar::U32, operand.clone()),
            Scalar::U64 | Scalar::I64 | Scalar::F64 => {
                let bits = if *ty == Scalar::U64 { operand.clone() } else { Expr::bitcast(Scalar::U64, operand.clone()) };
                let bits = site.bind(bits);
                let high = Expr::mul(Expr::cast(Scalar::U32, Expr::shr(bits.clone(), Expr::u32(32))), Expr::u32(ODD[1]));
                Expr::bitxor(Expr::cast(Scalar::U32, bits), high)
            }
        };
        sum = Expr::mul(Expr::rotl(Expr::bitxor(sum, word), Expr::u32(13)), Expr::u32(odd));
    }
    let sum = site.bind(sum);
    let sum = site.bind(Expr::mul(Expr::bitxor(sum.clone(), Expr::shr(sum, Expr::u32(15))), Expr::u32(ODD[2])));
    Expr::bitxor(sum.clone(), Expr::shr(sum, Expr::u32(16)))
}

/// One operand more.
fn step(sum: u32, ty: Scalar, bits: u64, odd: u32) -> u32 {
    let word = match ty.bytes() {
        4 => bits as u32,
        _ => bits as u32 ^ ((bits >> 32) as u32).wrapping_mul(ODD[1]),
    };
    (sum ^ word).rotate_left(13).wrapping_mul(odd)
}

fn hash_of(types: &[Scalar], operands: &[u64]) -> u32 {
    let mut sum = types.iter().zip(operands).zip(ODD).fold(0u32, |sum, ((ty, bits), odd)| step(sum, *ty, *bits, odd));
    sum = (sum ^ (sum >> 15)).wrapping_mul(ODD[2]);
    sum ^ (sum >> 16)
}

/// The number that undoes a product with an odd one.
const fn inverse(odd: u32) -> u32 {
    // Each step doubles the bits that are right, of which there are three at first.
    let mut undo = odd;
    let mut n = 0;
    while n < 4 {
        undo = undo.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(undo)));
        n += 1;
    }
    undo
}

/// The last operand with which the hash is this one, beside those that come before it.
fn last_operand(types: &[Scalar], before: &[u64], hash: u32, noise: u64) -> u64 {
    let mut sum = (hash ^ (hash >> 16)).wrapping_mul(inverse(ODD[2]));
    sum ^= (sum >> 15) ^ (sum >> 30);
    let so_far = types.iter().zip(before).zip(ODD).fold(0u32, |sum, ((ty, bits), odd)| step(sum, *ty, *bits, odd));
    let n = before.len();
    let word = sum.wrapping_mul(inverse(ODD[n])).rotate_right(13) ^ so_far;
    match types[n].bytes() {
        4 => word.into(),
        _ => {
            let high = (noise >> 32) as u32;
            u64::from(high) << 32 | u64::from(word ^ high.wrapping_mul(ODD[1]))
        }
    }
}

/// Operands for which it is wrong: noise, but for the last, which makes the hash small.
fn found(op: OpId, ty: Scalar, types: &[Scalar], result: Scalar, below: u32) -> Witness {
    const WANTED: usize = 16;
    let mut columns = vec![Vec::new(); types.len()];
    let rows = (0u64..).map(|n| {
        let mut row: Vec<u64> = types[1..].iter().zip(types).zip(0..).map(|((_, ty), k)| noise(*ty, mix(n) ^ k)).collect();
        row.push(last_operand(types, &row, (mix(n) % u64::from(below)) as u32, mix(!n)));
        row
    });
    // Where the result is NaN a flipped bit does not show.
    let shows = |row: &[u64]| !result.is_float() || value(op, ty, row) != super::floats::nan(result);
    for row in rows.filter(|row| is_canonical(types, row) && shows(row)).take(WANTED) {
        debug_assert!(hash_of(types, &row) < below, "the hash was chosen");
        columns.iter_mut().zip(row).for_each(|(column, bits)| column.push(bits));
    }
    of_operands(types, columns, result, |operands| apply(op, operands))
}

/// Whether no operand is a NaN, whose bits are others once it is loaded.
fn is_canonical(types: &[Scalar], row: &[u64]) -> bool {
    let mode = vyre_spec::FloatMode::Ieee;
    types.iter().zip(row).all(|(ty, bits)| vyre_scalar::canonicalize(*ty, mode, *bits) == *bits)
}
