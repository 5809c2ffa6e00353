//! Machine code for x86-64 with AVX2 and FMA: instructions over virtual registers, their places, their bytes, and memory to run them in.

pub(crate) mod alloc;
pub(crate) mod asm;
pub(crate) mod constants;
pub(crate) mod dead;
pub(crate) mod encode;
pub(crate) mod families;
pub(crate) mod fold;
pub(crate) mod lir;
#[cfg(any(feature = "listing", test))]
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod reg;
pub(crate) mod written;

#[cfg(test)]
mod tests;
