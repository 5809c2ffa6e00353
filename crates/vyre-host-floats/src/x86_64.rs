//! MXCSR. Rust on x86-64 does no arithmetic on the x87, so its control word does not matter.

use std::arch::asm;

pub(crate) type Bits = u32;

/// Denormals-are-zero, the masks of the six exceptions, the rounding mode, flush-to-zero.
const CONTROL: Bits = 0xFFC0;
/// The flags of exceptions that have happened.
const FLAGS: Bits = 0x003F;
/// All exceptions masked; everything else is 0.
const DEFAULT: Bits = 0x1F80;

const DENORMALS_ARE_ZERO: Bits = 1 << 6;
const FLUSH_TO_ZERO: Bits = 1 << 15;
const ROUND_DOWN: Bits = 1 << 13;
const ROUND_UP: Bits = 2 << 13;
const ROUND_TO_ZERO: Bits = 3 << 13;

/// For tests: what is changed in the default state, by exclusive or, and whether exceptions then end in a signal.
pub(crate) const HOSTILE: &[(&str, Bits, bool)] = &[
    ("flush-to-zero", FLUSH_TO_ZERO, false),
    ("denormals-are-zero", DENORMALS_ARE_ZERO, false),
    ("flush-to-zero, denormals-are-zero", FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, false),
    ("round-down", ROUND_DOWN, false),
    ("round-up", ROUND_UP, false),
    ("round-to-zero", ROUND_TO_ZERO, false),
    ("invalid unmasked", 1 << 7, true),
    ("denormal unmasked", 1 << 8, true),
    ("division by zero unmasked", 1 << 9, true),
    ("overflow unmasked", 1 << 10, true),
    ("underflow unmasked", 1 << 11, true),
    ("inexact unmasked", 1 << 12, true),
    ("all at once", FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | ROUND_TO_ZERO | DEFAULT, true),
];

pub(crate) fn read() -> Bits {
    let mut bits = 0;
    // SAFETY: `stmxcsr` writes the 32 bits of MXCSR to where `bits` is, which is ours to write, and changes nothing else.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut bits, options(nostack, preserves_flags)) };
    bits
}

/// The same register with the default control bits, no flags, and bits that are not about floats as they are.
pub(crate) fn to_default(bits: Bits) -> Bits {
    bits & !(CONTROL | FLAGS) | DEFAULT
}

pub(crate) fn same_control(a: Bits, b: Bits) -> bool {
    (a ^ b) & CONTROL == 0
}

/// Gives `bits` the register; they come from [`read`], with control bits and flags changed.
pub(crate) fn write(bits: Bits) {
    // SAFETY: `ldmxcsr` reads 32 bits from where `bits` is and faults only on reserved bits, which are as the processor gave them.
    // The compiler assumes the default control bits for its own arithmetic: `with_default_state` establishes them, and writes other
    // ones only to give back what its caller had, after the last arithmetic of the body (see `apart`). `hostile::under` leaves them,
    // for a body whose float results may differ or end in a signal; memory they cannot touch.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const bits, options(nostack, readonly)) };
}
