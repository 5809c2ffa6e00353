//! What the families of vector instructions compute, in plain Rust.

use super::super::lir::{Narrow, Shift, V2, V2I, V3, V3I, Widen};
use super::floats;

pub type Vector = [u8; 32];

pub fn map32(a: Vector, f: impl Fn(u32) -> u32) -> Vector {
    from32(lanes32(a).map(f))
}

pub fn lanes32(a: Vector) -> [u32; 8] {
    std::array::from_fn(|n| u32::from_le_bytes(a[4 * n..4 * n + 4].try_into().unwrap()))
}

pub fn lanes64(a: Vector) -> [u64; 4] {
    std::array::from_fn(|n| u64::from_le_bytes(a[8 * n..8 * n + 8].try_into().unwrap()))
}

pub fn from32(lanes: [u32; 8]) -> Vector {
    std::array::from_fn(|n| lanes[n / 4].to_le_bytes()[n % 4])
}

pub fn from64(lanes: [u64; 4]) -> Vector {
    std::array::from_fn(|n| lanes[n / 8].to_le_bytes()[n % 8])
}

fn lanes16(a: Vector) -> [u16; 16] {
    std::array::from_fn(|n| u16::from_le_bytes([a[2 * n], a[2 * n + 1]]))
}

fn from16(lanes: [u16; 16]) -> Vector {
    std::array::from_fn(|n| lanes[n / 2].to_le_bytes()[n % 2])
}

fn zip8(a: Vector, b: Vector, f: impl Fn(u8, u8) -> u8) -> Vector {
    std::array::from_fn(|n| f(a[n], b[n]))
}

fn zip32(a: Vector, b: Vector, f: impl Fn(u32, u32) -> u32) -> Vector {
    let (a, b) = (lanes32(a), lanes32(b));
    from32(std::array::from_fn(|n| f(a[n], b[n])))
}

fn zip64(a: Vector, b: Vector, f: impl Fn(u64, u64) -> u64) -> Vector {
    let (a, b) = (lanes64(a), lanes64(b));
    from64(std::array::from_fn(|n| f(a[n], b[n])))
}

fn ones(condition: bool) -> u32 {
    if condition { u32::MAX } else { 0 }
}

fn ones64(condition: bool) -> u64 {
    if condition { u64::MAX } else { 0 }
}

pub fn v3(op: V3, a: Vector, b: Vector) -> Vector {
    use floats::{binary32, binary64};
    let signed = |x: u32| x as i32;
    match op {
        V3::vpaddd => zip32(a, b, u32::wrapping_add),
        V3::vpsubd => zip32(a, b, u32::wrapping_sub),
        V3::vpmulld => zip32(a, b, u32::wrapping_mul),
        V3::vpand => zip8(a, b, |a, b| a & b),
        V3::vpor => zip8(a, b, |a, b| a | b),
        V3::vpxor => zip8(a, b, |a, b| a ^ b),
        V3::vpandn => zip8(a, b, |a, b| !a & b),
        V3::vpcmpeqd => zip32(a, b, |a, b| ones(a == b)),
        V3::vpcmpeqw => {
            let (a, b) = (lanes16(a), lanes16(b));
            from16(std::array::from_fn(|n| if a[n] == b[n] { u16::MAX } else { 0 }))
        }
        V3::vpcmpgtd => zip32(a, b, |a, b| ones(signed(a) > signed(b))),
        V3::vpminud => zip32(a, b, u32::min),
        V3::vpmaxud => zip32(a, b, u32::max),
        V3::vpminsd => zip32(a, b, |a, b| signed(a).min(signed(b)) as u32),
        V3::vpmaxsd => zip32(a, b, |a, b| signed(a).max(signed(b)) as u32),
        V3::vpsllvd => zip32(a, b, |a, b| a.checked_shl(b).unwrap_or(0)),
        V3::vpsrlvd => zip32(a, b, |a, b| a.checked_shr(b).unwrap_or(0)),
        V3::vpsravd => zip32(a, b, |a, b| (signed(a) >> b.min(31)) as u32),
        V3::vpsllvq => zip64(a, b, |a, b| if b < 64 { a << b } else { 0 }),
        V3::vpsrlvq => zip64(a, b, |a, b| if b < 64 { a >> b } else { 0 }),
        V3::vpaddq => zip64(a, b, u64::wrapping_add),
        V3::vpsubq => zip64(a, b, u64::wrapping_sub),
        V3::vpmuludq => zip64(a, b, |a, b| (a & 0xFFFF_FFFF) * (b & 0xFFFF_FFFF)),
        V3::vpmuldq => zip64(a, b, |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64),
        V3::vpcmpeqq => zip64(a, b, |a, b| ones64(a == b)),
        V3::vpcmpgtq => zip64(a, b, |a, b| ones64(a as i64 > b as i64)),
        V3::vpshufb => std::array::from_fn(|n| if b[n] & 0x80 != 0 { 0 } else { a[n & 16 | usize::from(b[n] & 15)] }),
        V3::vpermd => {
            let source = lanes32(b);
            map32(a, |index| source[index as usize & 7])
        }
        V3::vaddps => zip32(a, b, |a, b| binary32(a, b, |a, b| a + b)),
        V3::vsubps => zip32(a, b, |a, b| binary32(a, b, |a, b| a - b)),
        V3::vmulps => zip32(a, b, |a, b| binary32(a, b, |a, b| a * b)),
        V3::vdivps => zip32(a, b, |a, b| binary32(a, b, |a, b| a / b)),
        V3::vminps => zip32(a, b, |a, b| if f32::from_bits(a) < f32::from_bits(b) { a } else { b }),
        V3::vmaxps => zip32(a, b, |a, b| if f32::from_bits(a) > f32::from_bits(b) { a } else { b }),
        V3::vaddpd => zip64(a, b, |a, b| binary64(a, b, |a, b| a + b)),
        V3::vsubpd => zip64(a, b, |a, b| binary64(a, b, |a, b| a - b)),
        V3::vmulpd => zip64(a, b, |a, b| binary64(a, b, |a, b| a * b)),
        V3::vdivpd => zip64(a, b, |a, b| binary64(a, b, |a, b| a / b)),
        V3::vminpd => zip64(a, b, |a, b| if f64::from_bits(a) < f64::from_bits(b) { a } else { b }),
        V3::vmaxpd => zip64(a, b, |a, b| if f64::from_bits(a) > f64::from_bits(b) { a } else { b }),
        V3::vpunpckldq => unpack32(a, b, 0),
        V3::vpunpckhdq => unpack32(a, b, 2),
        V3::vpsadbw => from64(std::array::from_fn(|lane| (8 * lane..8 * lane + 8).map(|n| u64::from(a[n].abs_diff(b[n]))).sum())),
        V3::vpaddb => zip8(a, b, u8::wrapping_add),
    }
}

fn unpack32(a: Vector, b: Vector, from: usize) -> Vector {
    let (a, b) = (lanes32(a), lanes32(b));
    from32(std::array::from_fn(|n| {
        let at = n / 4 * 4 + from + n % 4 / 2;
        if n % 2 == 0 { a[at] } else { b[at] }
    }))
}

pub fn v3i(op: V3I, a: Vector, b: Vector, imm: u8) -> Vector {
    let (a32, b32, imm_at) = (lanes32(a), lanes32(b), usize::from(imm));
    match op {
        V3I::vcmpps => zip32(a, b, |a, b| ones(floats::compare(imm, f32::from_bits(a).into(), f32::from_bits(b).into()))),
        V3I::vcmppd => zip64(a, b, |a, b| ones64(floats::compare(imm, f64::from_bits(a), f64::from_bits(b)))),
        V3I::vshufps => from32(std::array::from_fn(|n| {
            let from = if n % 4 < 2 { a32 } else { b32 };
            from[n / 4 * 4 + (imm_at >> (2 * (n % 4)) & 3)]
        })),
        V3I::vpblendd => from32(std::array::from_fn(|n| if imm >> n & 1 == 1 { b32[n] } else { a32[n] })),
    }
}

pub fn v2(op: V2, a: Vector) -> Vector {
    match op {
        V2::vpabsd => map32(a, |a| (a as i32).unsigned_abs()),
        V2::vsqrtps => map32(a, |a| floats::unary32(a, f32::sqrt)),
        V2::vsqrtpd => from64(lanes64(a).map(|a| floats::unary64(a, f64::sqrt))),
        V2::vcvtdq2ps => map32(a, |a| (a as i32 as f32).to_bits()),
        V2::vcvttps2dq => map32(a, |a| floats::truncate(f32::from_bits(a).into())),
    }
}

pub fn v2i(op: V2I, a: Vector, imm: u8) -> Vector {
    let (a32, a64, imm_at) = (lanes32(a), lanes64(a), usize::from(imm));
    match op {
        V2I::vroundps => map32(a, |a| floats::unary32(a, |a| floats::round(imm, a.into()) as f32)),
        V2I::vroundpd => from64(a64.map(|a| floats::unary64(a, |a| floats::round(imm, a)))),
        V2I::vpermq => from64(std::array::from_fn(|n| a64[imm_at >> (2 * n) & 3])),
        V2I::vpshufd => from32(std::array::from_fn(|n| a32[n / 4 * 4 + (imm_at >> (2 * (n % 4)) & 3)])),
    }
}

pub fn shift(op: Shift, a: Vector, imm: u8) -> Vector {
    let by = u32::from(imm);
    match op {
        Shift::vpsllw => from16(lanes16(a).map(|a| a.checked_shl(by).unwrap_or(0))),
        Shift::vpslld => map32(a, |a| a.checked_shl(by).unwrap_or(0)),
        Shift::vpsrld => map32(a, |a| a.checked_shr(by).unwrap_or(0)),
        Shift::vpsrad => map32(a, |a| (a as i32 >> by.min(31)) as u32),
        Shift::vpsllq => from64(lanes64(a).map(|a| a.checked_shl(by).unwrap_or(0))),
        Shift::vpsrlq => from64(lanes64(a).map(|a| a.checked_shr(by).unwrap_or(0))),
    }
}

pub fn widen(op: Widen, a: Vector) -> Vector {
    let low = lanes32(a);
    let wide = |f: fn(u32) -> u64| from64(std::array::from_fn(|n| f(low[n])));
    match op {
        Widen::vpmovzxdq => wide(u64::from),
        Widen::vpmovsxdq => wide(|a| i64::from(a as i32) as u64),
        Widen::vcvtps2pd => wide(floats::to_f64),
        Widen::vcvtdq2pd => wide(|a| f64::from(a as i32).to_bits()),
        Widen::vcvtph2ps => from32(std::array::from_fn(|n| floats::from_half(u16::from_le_bytes([a[2 * n], a[2 * n + 1]])))),
    }
}

pub fn narrow(op: Narrow, a: Vector) -> Vector {
    let lanes = lanes64(a);
    from32(std::array::from_fn(|n| match (op, lanes.get(n)) {
        (_, None) => 0,
        (Narrow::vcvtpd2ps, Some(lane)) => floats::to_f32(*lane),
        (Narrow::vcvttpd2dq, Some(lane)) => floats::truncate(f64::from_bits(*lane)),
    }))
}
