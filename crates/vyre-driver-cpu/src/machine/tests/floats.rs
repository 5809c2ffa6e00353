//! What the machine does with floats beside IEEE 754: which NaN, and conversions.

const QUIET32: u32 = 0x0040_0000;
const QUIET64: u64 = 0x0008_0000_0000_0000;

/// The NaN that an operation makes without having been given one.
const DEFAULT32: u32 = 0xFFC0_0000;
const DEFAULT64: u64 = 0xFFF8_0000_0000_0000;

/// The NaN that the code of [`super::random`] puts in place of what a fused multiply-add gives: which operand's it is depends on the form.
pub const FMA_NAN32: u32 = 0x7FC0_0000;
pub const FMA_NAN64: u64 = 0x7FF8_0000_0000_0000;

pub fn binary32(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let result = f(x, y);
    match () {
        () if x.is_nan() => a | QUIET32,
        () if y.is_nan() => b | QUIET32,
        () if result.is_nan() => DEFAULT32,
        () => result.to_bits(),
    }
}

pub fn binary64(a: u64, b: u64, f: impl Fn(f64, f64) -> f64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let result = f(x, y);
    match () {
        () if x.is_nan() => a | QUIET64,
        () if y.is_nan() => b | QUIET64,
        () if result.is_nan() => DEFAULT64,
        () => result.to_bits(),
    }
}

pub fn unary32(a: u32, f: impl Fn(f32) -> f32) -> u32 {
    binary32(a, 0, |a, _| f(a))
}

pub fn unary64(a: u64, f: impl Fn(f64) -> f64) -> u64 {
    binary64(a, 0, |a, _| f(a))
}

pub fn fma32(a: u32, b: u32, c: u32) -> u32 {
    match f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)) {
        result if result.is_nan() => FMA_NAN32,
        result => result.to_bits(),
    }
}

pub fn fma64(a: u64, b: u64, c: u64) -> u64 {
    match f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)) {
        result if result.is_nan() => FMA_NAN64,
        result => result.to_bits(),
    }
}

/// The predicates of `vcmpps`; bit 4 says only whether a NaN is to be noted.
pub fn compare(predicate: u8, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match predicate & 15 {
        0 => a == b,
        1 => a < b,
        2 => a <= b,
        3 => unordered,
        4 => a != b,
        5 => unordered || a >= b,
        6 => unordered || a > b,
        7 => !unordered,
        8 => unordered || a == b,
        9 => unordered || a < b,
        10 => unordered || a <= b,
        11 => false,
        12 => !unordered && a != b,
        13 => a >= b,
        14 => a > b,
        _ => true,
    }
}

/// The modes of `vroundps` that name one.
pub fn round(mode: u8, a: f64) -> f64 {
    match mode & 3 {
        0 => a.round_ties_even(),
        1 => a.floor(),
        2 => a.ceil(),
        _ => a.trunc(),
    }
}

/// To i32; what does not fit is the smallest number.
pub fn truncate(a: f64) -> u32 {
    if a > -2147483649.0 && a < 2147483648.0 { a as i32 as u32 } else { 0x8000_0000 }
}

pub fn to_f64(a: u32) -> u64 {
    match f32::from_bits(a) {
        x if x.is_nan() => u64::from(a >> 31) << 63 | 0x7FF8 << 48 | u64::from(a & 0x007F_FFFF) << 29,
        x => f64::from(x).to_bits(),
    }
}

pub fn to_f32(a: u64) -> u32 {
    match f64::from_bits(a) {
        x if x.is_nan() => (a >> 63 << 31) as u32 | 0x7FC0_0000 | (a >> 29) as u32 & 0x003F_FFFF,
        x => (x as f32).to_bits(),
    }
}

pub fn from_half(a: u16) -> u32 {
    let (sign, exponent, fraction) = (u32::from(a >> 15) << 31, u32::from(a >> 10 & 31), u32::from(a & 0x3FF));
    sign | match (exponent, fraction) {
        (31, 0) => 0x7F80_0000,
        (31, _) => 0x7FC0_0000 | fraction << 13,
        (0, _) => (fraction as f32 / 16777216.0).to_bits(),
        _ => (exponent + 112) << 23 | fraction << 13,
    }
}

/// Nearest-even.
pub fn to_half(a: u32) -> u16 {
    let (sign, magnitude) = ((a >> 16 & 0x8000) as u16, a & 0x7FFF_FFFF);
    let x = f64::from(f32::from_bits(magnitude));
    sign | match () {
        () if magnitude > 0x7F80_0000 => 0x7E00 | (magnitude >> 13 & 0x1FF) as u16,
        // Half way from the largest number to the one that would be next.
        () if x >= 65520.0 => 0x7C00,
        // Numbers below the first with an exponent are multiples of one step, and so are those up to twice that.
        () if x < 1.0 / 8192.0 => (x * 16777216.0).round_ties_even() as u16,
        () => {
            let exponent = (magnitude >> 23) as i32 - 127;
            let steps = (x * f64::from(10 - exponent).exp2()).round_ties_even() as u16;
            ((exponent + 14) as u16 * 1024) + steps
        }
    }
}
