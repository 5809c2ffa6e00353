//! Families of instructions that are encoded alike, one line each.

use super::asm::{Map, Prefix, Vex};

/// Declares a family of instructions that are encoded alike: the variants are the mnemonics, and what stands behind each is what Intel's
/// manual says of it.
macro_rules! family {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $prefix:ident $map:ident $width:ident $code:literal,)* }) => {
        $(#[$meta])*
        #[expect(non_camel_case_types, reason = "the names of instructions")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $name { $($variant),* }

        impl $name {
            #[cfg(test)]
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub fn vex(self) -> Vex {
                match self {
                    $($name::$variant => Vex { prefix: Prefix::$prefix, map: Map::$map, wide: family!($width), code: $code },)*
                }
            }
        }
    };
    (W0) => { false };
    (W1) => { true };
}

family! {
    /// Two vectors to one.
    V3 {
        vpaddd: P66 M0F W0 0xFE,
        vpsubd: P66 M0F W0 0xFA,
        vpmulld: P66 M0F38 W0 0x40,
        vpand: P66 M0F W0 0xDB,
        vpor: P66 M0F W0 0xEB,
        vpxor: P66 M0F W0 0xEF,
        vpandn: P66 M0F W0 0xDF,
        vpcmpeqd: P66 M0F W0 0x76,
        vpcmpeqw: P66 M0F W0 0x75,
        vpcmpgtd: P66 M0F W0 0x66,
        vpminud: P66 M0F38 W0 0x3B,
        vpmaxud: P66 M0F38 W0 0x3F,
        vpminsd: P66 M0F38 W0 0x39,
        vpmaxsd: P66 M0F38 W0 0x3D,
        vpsllvd: P66 M0F38 W0 0x47,
        vpsrlvd: P66 M0F38 W0 0x45,
        vpsravd: P66 M0F38 W0 0x46,
        vpsllvq: P66 M0F38 W1 0x47,
        vpsrlvq: P66 M0F38 W1 0x45,
        vpaddq: P66 M0F W0 0xD4,
        vpsubq: P66 M0F W0 0xFB,
        vpmuludq: P66 M0F W0 0xF4,
        vpmuldq: P66 M0F38 W0 0x28,
        vpcmpeqq: P66 M0F38 W0 0x29,
        vpcmpgtq: P66 M0F38 W0 0x37,
        vpshufb: P66 M0F38 W0 0x00,
        vpermd: P66 M0F38 W0 0x36,
        vaddps: None M0F W0 0x58,
        vsubps: None M0F W0 0x5C,
        vmulps: None M0F W0 0x59,
        vdivps: None M0F W0 0x5E,
        vminps: None M0F W0 0x5D,
        vmaxps: None M0F W0 0x5F,
        vaddpd: P66 M0F W0 0x58,
        vsubpd: P66 M0F W0 0x5C,
        vmulpd: P66 M0F W0 0x59,
        vdivpd: P66 M0F W0 0x5E,
        vminpd: P66 M0F W0 0x5D,
        vmaxpd: P66 M0F W0 0x5F,
        vpunpckldq: P66 M0F W0 0x62,
        vpunpckhdq: P66 M0F W0 0x6A,
        vpsadbw: P66 M0F W0 0xF6,
        vpaddb: P66 M0F W0 0xFC,
    }
}

family! {
    /// Two vectors and a number to a vector.
    V3I {
        vcmpps: None M0F W0 0xC2,
        vcmppd: P66 M0F W0 0xC2,
        vshufps: None M0F W0 0xC6,
        vpblendd: P66 M0F3A W0 0x02,
    }
}

family! {
    /// A vector to a vector.
    V2 {
        vpabsd: P66 M0F38 W0 0x1E,
        vsqrtps: None M0F W0 0x51,
        vsqrtpd: P66 M0F W0 0x51,
        vcvtdq2ps: None M0F W0 0x5B,
        vcvttps2dq: PF3 M0F W0 0x5B,
    }
}

family! {
    /// A vector and a number to a vector.
    V2I {
        vroundps: P66 M0F3A W0 0x08,
        vroundpd: P66 M0F3A W0 0x09,
        vpermq: P66 M0F3A W1 0x00,
        vpshufd: P66 M0F W0 0x70,
    }
}

family! {
    /// A vector shifted by a number.
    Shift {
        vpsllw: P66 M0F W0 0x71,
        vpslld: P66 M0F W0 0x72,
        vpsrld: P66 M0F W0 0x72,
        vpsrad: P66 M0F W0 0x72,
        vpsllq: P66 M0F W0 0x73,
        vpsrlq: P66 M0F W0 0x73,
    }
}

family! {
    /// The low 16 bytes of a vector, or 16 bytes of memory, to a vector with elements twice as wide.
    Widen {
        vpmovzxdq: P66 M0F38 W0 0x35,
        vpmovsxdq: P66 M0F38 W0 0x25,
        vcvtps2pd: None M0F W0 0x5A,
        vcvtdq2pd: PF3 M0F W0 0xE6,
        vcvtph2ps: P66 M0F38 W0 0x13,
    }
}

family! {
    /// A vector to 16 bytes with elements half as wide; the upper half becomes zero.
    Narrow {
        vcvtpd2ps: P66 M0F W0 0x5A,
        vcvttpd2dq: P66 M0F W0 0xE6,
    }
}

impl V3 {
    /// Whether the operands may be exchanged. Those of floats may not: which NaN comes out depends on it.
    pub fn commutes(self) -> bool {
        matches!(
            self,
            V3::vpaddd
                | V3::vpmulld
                | V3::vpand
                | V3::vpor
                | V3::vpxor
                | V3::vpcmpeqd
                | V3::vpcmpeqw
                | V3::vpminud
                | V3::vpmaxud
                | V3::vpminsd
                | V3::vpmaxsd
                | V3::vpaddq
                | V3::vpmuludq
                | V3::vpmuldq
                | V3::vpcmpeqq
                | V3::vpsadbw
                | V3::vpaddb
        )
    }
}

impl Shift {
    /// The rest of the opcode.
    pub fn extension(self) -> u8 {
        match self {
            Shift::vpsrld | Shift::vpsrlq => 2,
            Shift::vpsrad => 4,
            Shift::vpsllw | Shift::vpslld | Shift::vpsllq => 6,
        }
    }
}

/// Fused multiply-add, of f32 or of f64.
#[expect(non_camel_case_types, reason = "as instructions end")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fma {
    ps,
    pd,
}

/// Two general registers to one.
#[expect(non_camel_case_types, reason = "the names of instructions")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum G2 {
    add,
    sub,
    and,
    or,
    xor,
}
