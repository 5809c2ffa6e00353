//! No register that is known here.

pub(crate) type Bits = u32;

pub(crate) const HOSTILE: &[(&str, Bits, bool)] = &[];

pub(crate) fn read() -> Bits {
    0
}

pub(crate) fn to_default(_: Bits) -> Bits {
    0
}

pub(crate) fn same_control(_: Bits, _: Bits) -> bool {
    true
}

pub(crate) fn write(_: Bits) {}
