//! Functions that machine code calls: what is rare, or too long to be written out.
//!
//! Operands and results are in the scratch area of the frame. None of them unwinds or allocates.

use super::context::Context;
use vyre_scalar::{binary, canonicalize, cast, small, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

/// Where things are in the scratch area: room for 64 lanes of 4 or 8 bytes each.
pub(crate) mod area {
    pub const INDEX: usize = 0;
    pub const FIRST: usize = 256;
    pub const SECOND: usize = 768;
    pub const RESULT: usize = 1280;
    pub const BYTES: usize = 1792;
}

const UNARY: u64 = 0;
const BINARY: u64 = 1;
const CAST: u64 = 2;

fn scalar_number(ty: Scalar) -> u64 {
    Scalar::ALL.iter().position(|other| *other == ty).unwrap_or(0) as u64
}

fn mode_number(mode: FloatMode) -> u64 {
    u64::from(mode == FloatMode::Canonical)
}

/// The argument of [`lanes`] for an op on one operand.
pub(crate) fn unary_argument(op: UnaryOp, ty: Scalar, mode: FloatMode) -> u64 {
    UNARY | u64::from(op as u8) << 8 | scalar_number(ty) << 16 | mode_number(mode) << 32
}

/// The argument of [`lanes`] for an op on two operands.
pub(crate) fn binary_argument(op: BinaryOp, ty: Scalar, mode: FloatMode) -> u64 {
    BINARY | u64::from(op as u8) << 8 | scalar_number(ty) << 16 | mode_number(mode) << 32
}

/// The argument of [`lanes`] for a conversion.
pub(crate) fn cast_argument(from: Scalar, to: Scalar, mode: FloatMode) -> u64 {
    CAST | scalar_number(from) << 16 | scalar_number(to) << 24 | mode_number(mode) << 32
}

/// Computes an op for the elements of one vector, eight of 32 bits or four of 64; `bool`s are masks of the operands' width.
pub(crate) extern "sysv64" fn lanes(frame: *mut u8, _: *mut u8, argument: u64) {
    compute(frame, argument, u32::MAX);
}

/// The same for the lanes that are ones in the bits at [`area::INDEX`]; the results of others stay.
pub(crate) extern "sysv64" fn some_lanes(frame: *mut u8, _: *mut u8, argument: u64) {
    // SAFETY: the frame has its areas, and code has written the word.
    let which = unsafe { frame.add(area::INDEX).cast::<u32>().read_unaligned() };
    #[cfg(test)]
    LANES_CALLED.with(|count| count.set(count.get() + u64::from(which.count_ones())));
    compute(frame, argument, which);
}

#[cfg(test)]
thread_local! {
    /// How many lanes [`some_lanes`] was called for.
    pub(crate) static LANES_CALLED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn compute(frame: *mut u8, argument: u64, which: u32) {
    let scalar = |shift: u32| Scalar::ALL[(argument >> shift & 7) as usize];
    let mode = if argument >> 32 & 1 == 1 { FloatMode::Canonical } else { FloatMode::Ieee };
    let (ty, tag) = (scalar(16), (argument >> 8) as u8);
    let kind = argument & 0xFF;
    // A conversion has the wider of its types on both sides.
    let to = if kind == CAST { scalar(24) } else { ty };
    let wide = ty.bits() == 64 || to.bits() == 64;
    let count = if wide { 4 } else { 8 };
    for n in (0..count).filter(|n| which >> n & 1 == 1) {
        let read = |area: usize, ty: Scalar| {
            // SAFETY: the frame has its areas, each with room for 64 elements.
            let bits = unsafe {
                match wide {
                    true => frame.add(area + 8 * n).cast::<u64>().read_unaligned(),
                    false => u64::from(frame.add(area + 4 * n).cast::<u32>().read_unaligned()),
                }
            };
            match ty {
                Scalar::Bool => u64::from(bits != 0),
                Scalar::U32 | Scalar::I32 => bits & 0xFFFF_FFFF,
                Scalar::U64 | Scalar::I64 => bits,
                // In registers NaNs have any sign and payload.
                Scalar::F32 => canonicalize(ty, mode, bits & 0xFFFF_FFFF),
                Scalar::F64 => canonicalize(ty, mode, bits),
            }
        };
        let result = match kind {
            UNARY => UnaryOp::from_tag(tag).map_or(0, |op| unary(op, ty, mode, read(area::FIRST, ty))),
            BINARY => BinaryOp::from_tag(tag).map_or(0, |op| {
                let second = match op.info().operands[1] {
                    vyre_spec::Operand::T => read(area::SECOND, ty),
                    vyre_spec::Operand::Fixed(fixed) => read(area::SECOND, fixed),
                };
                binary(op, ty, mode, read(area::FIRST, ty), second)
            }),
            _ => cast(ty, to, mode, read(area::FIRST, ty)),
        };
        // SAFETY: as above.
        unsafe {
            match wide {
                true => frame.add(area::RESULT + 8 * n).cast::<u64>().write_unaligned(result),
                false => frame.add(area::RESULT + 4 * n).cast::<u32>().write_unaligned(result as u32),
            }
        }
    }
}

/// The argument of [`divide`].
pub(crate) fn divide_argument(op: BinaryOp, ty: Scalar) -> u64 {
    u64::from(op == BinaryOp::Rem) | u64::from(ty == Scalar::I64) << 1
}

/// Quotients or remainders of the elements of two vectors of 64 bits each.
pub(crate) extern "sysv64" fn divide(frame: *mut u8, _: *mut u8, argument: u64) {
    let each = |op: fn(u64, u64) -> u64| {
        for n in 0..4 {
            // SAFETY: the frame has its areas, each with room for 64 elements.
            unsafe {
                let read = |area: usize| frame.add(area + 8 * n).cast::<u64>().read_unaligned();
                frame.add(area::RESULT + 8 * n).cast::<u64>().write_unaligned(op(read(area::FIRST), read(area::SECOND)));
            }
        }
    };
    match argument {
        0 => each(|a, b| a.checked_div(b).unwrap_or(a)),
        1 => each(|a, b| a.checked_rem(b).unwrap_or(0)),
        2 => each(|a, b| if b == 0 { a } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }),
        _ => each(|a, b| if b == 0 { 0 } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }),
    }
}

/// Floats to bits of a small format, one per 32-bit element.
pub(crate) extern "sysv64" fn narrow(frame: *mut u8, _: *mut u8, argument: u64) {
    let formats = [&small::F16, &small::BF16, &small::F8E4M3, &small::F8E5M2];
    let format = formats[(argument & 3) as usize];
    for n in 0..8 {
        // SAFETY: the frame has its areas, each with room for 64 elements.
        let value = f32::from_bits(unsafe { frame.add(area::FIRST + 4 * n).cast::<u32>().read_unaligned() });
        let mut bits = small::narrow(format, value);
        if argument >> 8 & 1 == 1 && small::widen(format, bits).abs() <= f32::MIN_POSITIVE {
            bits = 0;
        }
        // SAFETY: as above.
        unsafe { frame.add(area::RESULT + 4 * n).cast::<u32>().write_unaligned(u32::from(bits)) };
    }
}

/// Notes that lanes trapped. The argument is the tag; in the frame are the lanes as bits, the first invocation of the block, the
/// workgroup along x, whether workgroups are one range for each of their rows, and the row along y and z if they are.
pub(crate) extern "sysv64" fn trap(frame: *mut u8, context: *mut u8, argument: u64) {
    // SAFETY: code is called with a context, and has written the six words to its frame.
    let (context, [bits, first, group, flat, row_y, row_z]) = unsafe {
        let words = frame.add(area::FIRST).cast::<[u32; 6]>().read_unaligned();
        (&mut *context.cast::<Context>(), words)
    };
    let [nx, ny, nz] = context.size;
    for lane in 0..32 {
        if bits >> lane & 1 == 0 {
            continue;
        }
        let n = first.wrapping_add(lane);
        let [x, y, z] = if flat != 0 {
            [n, context.group_y * ny + row_y, context.group_z * nz + row_z]
        } else {
            [group * nx + n % nx, context.group_y * ny + n / nx % ny, context.group_z * nz + n / nx / ny]
        };
        let sizes = context.invocations.map(u64::from);
        let order = (u64::from(z) * sizes[1] + u64::from(y)) * sizes[0] + u64::from(x);
        if order < context.trapped {
            context.trapped = order;
            context.tag = argument as u32;
        }
    }
}
