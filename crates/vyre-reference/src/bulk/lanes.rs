//! Loops over lanes, compiled for more than one width of vectors.

/// Defines a function that picks a copy of its body by what the processor can do: `pulp` compiles it for the baseline and once more
/// for wider vectors. The body, and what it calls, must be inlined into the copy to profit, so everything in it is
/// `#[inline(always)]`. Width is all that differs between the copies: Rust neither contracts nor reorders float operations.
macro_rules! vectorised {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $([$($generic:ident: $bound:ident),*])? ($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block
    ) => {
        $(#[$meta])*
        $vis fn $name<'a $($(, $generic: $bound)*)?>(arch: pulp::Arch, $($arg: $ty),*) -> $ret {
            struct Args<'a $($(, $generic: $bound)*)?> {
                $($arg: $ty,)*
                lifetime: std::marker::PhantomData<&'a ($($($generic,)*)?)>,
            }
            impl<'a $($(, $generic: $bound)*)?> pulp::WithSimd for Args<'a $($(, $generic)*)?> {
                type Output = $ret;

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) -> $ret {
                    let Args { $($arg,)* lifetime: _ } = self;
                    $body
                }
            }
            arch.dispatch(Args { $($arg,)* lifetime: std::marker::PhantomData })
        }
    };
}

pub(super) use vectorised;

use super::column::Word;

vectorised! {
    /// `out = a & (b ^ flip)` on columns of 0 and 1, where no `a` means 1; gives how many lanes are 1.
    pub(super) fn both(a: Option<&'a [u32]>, b: &'a [u32], flip: u32, out: &'a mut [u32]) -> u32 {
        let mut count = 0;
        match a {
            None => {
                for (out, b) in out.iter_mut().zip(b) {
                    *out = b ^ flip;
                    count += *out;
                }
            }
            Some(a) => {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = a & (b ^ flip);
                    count += *out;
                }
            }
        }
        count
    }
}

vectorised! {
    /// `out &= b ^ flip` on columns of 0 and 1; gives how many lanes are 1.
    pub(super) fn both_in_place(b: &'a [u32], flip: u32, out: &'a mut [u32]) -> u32 {
        let mut count = 0;
        for (out, b) in out.iter_mut().zip(b) {
            *out &= b ^ flip;
            count += *out;
        }
        count
    }
}

vectorised! {
    /// Takes over the values of the lanes in the mask.
    pub(super) fn blend [W: Word](values: &'a [W], mask: &'a [u32], out: &'a mut [W]) -> () {
        for ((out, value), bit) in out.iter_mut().zip(values).zip(mask) {
            *out = value.or_else(*bit, *out);
        }
    }
}

vectorised! {
    /// The same bits in every lane.
    pub(super) fn fill [W: Word](bits: u64, out: &'a mut [W]) -> () {
        out.fill(W::from_bits(bits));
    }
}
