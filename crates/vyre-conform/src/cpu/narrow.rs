//! Floats of 16, 8 and 4 bits, from the formats as they are published: IEEE 754 binary16, bfloat16, OCP 8-bit floating point (E4M3 and
//! E5M2), OCP E2M1 and NormalFloat4.

use super::element::{Element, F32, Mode, array};
use super::exact::power_of_two;
use std::marker::PhantomData;

/// What the largest exponent of a format is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Top {
    /// Infinities and NaN; what is too large becomes an infinity.
    Infinite,
    /// Infinities and NaN; what is too large, infinities included, becomes the largest finite number.
    Saturates,
    /// Numbers, but for one NaN with all mantissa bits; what is too large becomes the largest finite number.
    OneNan,
    /// Numbers.
    Numbers,
}

/// A binary format: a sign, biased exponent bits, mantissa bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    top: Top,
    /// The one NaN.
    nan: u32,
}

/// IEEE 754 binary16.
pub const F16: Format = Format { exponent_bits: 5, mantissa_bits: 10, top: Top::Infinite, nan: 0x7E00 };
/// The upper half of binary32.
pub const BF16: Format = Format { exponent_bits: 8, mantissa_bits: 7, top: Top::Infinite, nan: 0x7FC0 };
/// OCP E4M3.
pub const F8E4M3: Format = Format { exponent_bits: 4, mantissa_bits: 3, top: Top::OneNan, nan: 0x7F };
/// OCP E5M2.
pub const F8E5M2: Format = Format { exponent_bits: 5, mantissa_bits: 2, top: Top::Saturates, nan: 0x7E };
/// OCP E2M1, which has no NaN.
pub const FP4: Format = Format { exponent_bits: 2, mantissa_bits: 1, top: Top::Numbers, nan: 0 };

/// NormalFloat4 as the QLoRA paper prints it.
pub const NF4: [f64; 16] = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
];

impl Format {
    /// The exponent of the smallest normal number.
    const fn least_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// What the code stands for.
    #[must_use]
    pub fn decode(self, code: u32) -> f32 {
        let mantissa = code & ((1 << self.mantissa_bits) - 1);
        let biased = code >> self.mantissa_bits & ((1 << self.exponent_bits) - 1);
        let negative = code >> (self.exponent_bits + self.mantissa_bits) & 1 == 1;
        let last = self.least_exponent() - self.mantissa_bits as i32;
        let number = if biased == 0 {
            f64::from(mantissa) * power_of_two(last)
        } else {
            f64::from(mantissa | 1 << self.mantissa_bits) * power_of_two(last + biased as i32 - 1)
        };
        let magnitude = match self.top {
            Top::Infinite | Top::Saturates if biased == (1 << self.exponent_bits) - 1 => {
                if mantissa == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            Top::OneNan if code & self.nan == self.nan => f64::NAN,
            Top::Infinite | Top::Saturates | Top::OneNan | Top::Numbers => number,
        };
        (if negative { -magnitude } else { magnitude }) as f32
    }

    /// The largest code of a finite number.
    const fn largest(self) -> u32 {
        match self.top {
            Top::Infinite | Top::Saturates => (((1 << self.exponent_bits) - 1) << self.mantissa_bits) - 1,
            Top::OneNan => self.nan - 1,
            Top::Numbers => (1 << (self.exponent_bits + self.mantissa_bits)) - 1,
        }
    }

    /// The code of the nearest number, ties to even.
    #[must_use]
    pub fn encode(self, value: f32) -> u32 {
        if value.is_nan() {
            return self.nan;
        }
        let sign = u32::from(value.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        let too_large = match self.top {
            Top::Infinite => self.largest() + 1,
            Top::Saturates | Top::OneNan | Top::Numbers => self.largest(),
        };
        if value.is_infinite() {
            return sign | too_large;
        }
        // In units of the last place at its size, rounded: adding and taking away 2^52 leaves an integer. Codes of numbers go up one
        // by one, also where the exponent does.
        let magnitude = f64::from(value).abs();
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least_exponent());
        let large = power_of_two(52);
        let units = (magnitude * power_of_two(self.mantissa_bits as i32 - exponent) + large) - large;
        let code = units as u32 + (((exponent - self.least_exponent()) as u32) << self.mantissa_bits);
        sign | if code > self.largest() { too_large } else { code }
    }
}

macro_rules! narrow_floats {
    ($( $(#[$doc:meta])* $name:ident: $memory:ty, $format:ident; )*) => { $(
        $(#[$doc])*
        pub struct $name<M>(PhantomData<M>);

        impl<M: Mode> Element for $name<M> {
            type Value = f32;
            const BYTES: usize = size_of::<$memory>();
            fn load(bytes: &[u8]) -> f32 {
                F32::<M>::canonical($format.decode(<$memory>::from_le_bytes(array(bytes)).into()))
            }
            fn store(value: f32, bytes: &mut [u8]) {
                // What is stored is a float too, so it is +0 if it is tiny in a program that has no tiny floats.
                let code = $format.encode(F32::<M>::canonical(value));
                let tiny = M::FLUSHES && F32::<M>::canonical($format.decode(code)) == 0.0;
                bytes.copy_from_slice(&(if tiny { 0 } else { code as $memory }).to_le_bytes());
            }
        }
    )* };
}

narrow_floats! {
    /// An f16 in memory, an f32 in a program of this mode.
    HalfFloat: u16, F16;
    /// A bf16.
    BrainFloat: u16, BF16;
    /// An f8e4m3.
    E4m3: u8, F8E4M3;
    /// An f8e5m2.
    E5m2: u8, F8E5M2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_every_format_survives_or_becomes_what_the_format_says() {
        for format in [F16, BF16, F8E4M3, F8E5M2, FP4] {
            for code in 0..1 << (1 + format.exponent_bits + format.mantissa_bits) {
                let value = format.decode(code);
                let again = format.encode(value);
                if value.is_nan() {
                    assert_eq!(again, format.nan);
                } else if value.is_infinite() && format.top == Top::Saturates {
                    assert_eq!(again, code - 1);
                } else {
                    assert_eq!(again, code, "{format:?}");
                }
            }
        }
    }

    #[test]
    fn ends_of_the_formats_are_those_published() {
        assert_eq!(F16.decode(F16.largest()), 65504.0);
        assert_eq!(F16.decode(1), 2.0_f32.powi(-24));
        assert_eq!(F8E4M3.decode(0x7E), 448.0);
        assert_eq!(F8E4M3.decode(1), 2.0_f32.powi(-9));
        assert_eq!(F8E5M2.decode(0x7B), 57344.0);
        assert_eq!(F8E5M2.decode(1), 2.0_f32.powi(-16));
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|code| FP4.decode(code)), [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!((0..=0x7F7F).rev().map(|code| BF16.decode(code)).find(|it| it.is_finite()), Some(f32::from_bits(0x7F7F_0000)));
    }
}
