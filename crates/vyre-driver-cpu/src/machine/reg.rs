//! Registers, before and after they are places of the machine.

/// A virtual register of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct G(pub u32);

/// A virtual register of 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct V(pub u32);

/// Where a virtual register lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In the register of the machine with this number.
    Reg(u8),
    /// In the frame, in the slot with this number.
    Slot(u32),
    /// Nobody ever reads or writes it.
    Nowhere,
}
