//! FPCR, all of which is control. The flags are in another register, FPSR, and are left alone.

use std::arch::asm;

pub(crate) type Bits = u64;

const ROUND_UP: Bits = 1 << 22;
const ROUND_DOWN: Bits = 2 << 22;
const ROUND_TO_ZERO: Bits = 3 << 22;
const FLUSH_TO_ZERO: Bits = 1 << 24;

/// For tests: what is changed in the default state, by exclusive or, and whether exceptions then end in a signal. Most processors
/// ignore the bits that unmask exceptions, and flush operands and results together.
pub(crate) const HOSTILE: &[(&str, Bits, bool)] = &[
    ("flush-to-zero", FLUSH_TO_ZERO, false),
    ("round-down", ROUND_DOWN, false),
    ("round-up", ROUND_UP, false),
    ("round-to-zero", ROUND_TO_ZERO, false),
];

pub(crate) fn read() -> Bits {
    let bits;
    // SAFETY: `mrs` copies FPCR to a general register and changes nothing.
    unsafe { asm!("mrs {}, fpcr", out(reg) bits, options(nomem, nostack, preserves_flags)) };
    bits
}

/// Nearest even, nothing flushed, payloads of NaN kept, no traps: all bits 0, as at the start of a process.
pub(crate) fn to_default(_: Bits) -> Bits {
    0
}

pub(crate) fn same_control(a: Bits, b: Bits) -> bool {
    a == b
}

/// Gives `bits` the register.
pub(crate) fn write(bits: Bits) {
    // SAFETY: `msr` to FPCR changes how floats are computed and nothing else. The compiler assumes the default for its own arithmetic:
    // `with_default_state` establishes it, and writes another state only to give back what its caller had, after the last arithmetic
    // of the body (see `apart`). `hostile::under` leaves it, for a body whose float results may differ; memory they cannot touch.
    unsafe { asm!("msr fpcr, {}", in(reg) bits, options(nostack, preserves_flags)) };
}
