//! Constants to hundreds of bits, from series of rationals: what the table of the library is filled with.

/// Words after the point.
const FRACTION: usize = 14;
const WORDS: usize = FRACTION + 2;

/// A number from 0 to 2⁶⁴ with 448 bits after the point; the lowest word first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fixed([u32; WORDS]);

impl Fixed {
    pub(super) const ZERO: Fixed = Fixed([0; WORDS]);

    pub(super) fn integer(value: u32) -> Fixed {
        let mut words = [0; WORDS];
        words[FRACTION] = value;
        Fixed(words)
    }

    pub(super) fn ratio(numerator: u32, denominator: u32) -> Fixed {
        Fixed::integer(numerator).over(denominator)
    }

    /// The `N` words after the point, the lowest first. What is below them is cut off.
    pub(super) fn fraction<const N: usize>(&self) -> [u32; N] {
        std::array::from_fn(|i| self.0[FRACTION - N + i])
    }

    /// The integer part, if it is one word.
    pub(super) fn whole(&self) -> u32 {
        self.0[FRACTION]
    }

    pub(super) fn plus(&self, other: &Fixed) -> Fixed {
        let mut carry = 0;
        Fixed(std::array::from_fn(|i| {
            let sum = u64::from(self.0[i]) + u64::from(other.0[i]) + carry;
            carry = sum >> 32;
            sum as u32
        }))
    }

    /// The difference to a number that is not larger.
    pub(super) fn minus(&self, other: &Fixed) -> Fixed {
        let mut borrow = false;
        Fixed(std::array::from_fn(|i| {
            let (difference, first) = self.0[i].overflowing_sub(other.0[i]);
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            borrow = first || second;
            difference
        }))
    }

    pub(super) fn times(&self, factor: u32) -> Fixed {
        let mut carry = 0;
        Fixed(self.0.map(|word| {
            let product = u64::from(word) * u64::from(factor) + carry;
            carry = product >> 32;
            product as u32
        }))
    }

    pub(super) fn over(&self, divisor: u32) -> Fixed {
        let mut quotient = *self;
        let mut rest = 0;
        for word in quotient.0.iter_mut().rev() {
            let dividend = rest << 32 | u64::from(*word);
            *word = (dividend / u64::from(divisor)) as u32;
            rest = dividend % u64::from(divisor);
        }
        quotient
    }

    pub(super) fn multiply(&self, other: &Fixed) -> Fixed {
        let mut product = [0u32; 2 * WORDS];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in other.0.iter().enumerate() {
                let sum = u64::from(*a) * u64::from(*b) + u64::from(product[i + j]) + carry;
                product[i + j] = sum as u32;
                carry = sum >> 32;
            }
            product[i + WORDS] = carry as u32;
        }
        Fixed(std::array::from_fn(|i| product[i + FRACTION]))
    }

    /// One over a number from 1/2 to 8, by Newton's iteration from below.
    pub(super) fn reciprocal(&self) -> Fixed {
        let two = Fixed::integer(2);
        let mut guess = Fixed::ratio(1, 8);
        for _ in 0..16 {
            guess = guess.multiply(&two.minus(&self.multiply(&guess)));
        }
        guess
    }

    /// Σ of terms until they vanish, each made from the one before and its number.
    fn series(first: Fixed, next: impl Fn(&Fixed, u32) -> Fixed) -> Fixed {
        let (mut sum, mut term, mut n) = (Fixed::ZERO, first, 0);
        while term != Fixed::ZERO {
            sum = sum.plus(&term);
            n += 1;
            term = next(&term, n);
        }
        sum
    }

    /// ln(p/q), for p ≥ q and both below 2³¹: 2 atanh((p − q)/(p + q)).
    pub(super) fn ln(p: u32, q: u32) -> Fixed {
        let (d, s) = (p - q, p + q);
        let (mut sum, mut power, mut n) = (Fixed::ZERO, Fixed::ratio(d, s), 1);
        while power != Fixed::ZERO {
            sum = sum.plus(&power.over(n));
            power = power.times(d).over(s).times(d).over(s);
            n += 2;
        }
        sum.times(2)
    }

    /// atan(p/q), for p ≤ q, by Euler's series.
    pub(super) fn atan(p: u32, q: u32) -> Fixed {
        let s = p * p + q * q;
        Fixed::series(Fixed::integer(p).times(q).over(s), |term, n| term.times(2 * n).over(2 * n + 1).times(p * p).over(s))
    }

    /// e to the power of a number below 1.
    pub(super) fn exp(&self) -> Fixed {
        Fixed::series(Fixed::integer(1), |term, n| term.multiply(self).over(n))
    }

    pub(super) fn pi() -> Fixed {
        Fixed::atan(1, 1).times(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published digits: of π and ln 2 to 128 bits, of e, √2 and log2 e to 64.
    #[test]
    fn constants_are_those_of_mathematics() {
        let big_endian = |value: &Fixed| -> [u32; 4] {
            let mut words: [u32; 4] = value.fraction();
            words.reverse();
            words
        };
        assert_eq!((Fixed::pi().whole(), big_endian(&Fixed::pi())), (3, [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344]));
        assert_eq!(big_endian(&Fixed::ln(2, 1)), [0xB172_17F7, 0xD1CF_79AB, 0xC9E3_B398, 0x03F2_F6AF]);
        let e = Fixed::ratio(1, 2).exp();
        assert_eq!(big_endian(&e.multiply(&e))[..2], [0xB7E1_5162, 0x8AED_2A6A]);
        assert_eq!(big_endian(&Fixed::ln(2, 1).over(2).exp())[..2], [0x6A09_E667, 0xF3BC_C908]);
        assert_eq!(big_endian(&Fixed::ln(2, 1).reciprocal())[..2], [0x7154_7652, 0xB82F_E177]);
        let (third, fifth) = (Fixed::atan(1, 2), Fixed::atan(1, 3));
        assert_eq!(third.plus(&fifth).fraction::<6>(), Fixed::atan(1, 1).fraction::<6>(), "Euler: atan 1/2 + atan 1/3 = pi/4");
    }
}
