//! The sixteen values of each four-bit float, as f32 bit patterns indexed by the nibble.

/// OCP E2M1: sign, two exponent bits of bias 1, one mantissa bit; no infinities and no NaN.
pub const FP4: [u32; 16] = [
    0x0000_0000, // 0
    0x3F00_0000, // 0.5
    0x3F80_0000, // 1
    0x3FC0_0000, // 1.5
    0x4000_0000, // 2
    0x4040_0000, // 3
    0x4080_0000, // 4
    0x40C0_0000, // 6
    0x8000_0000, // -0
    0xBF00_0000, // -0.5
    0xBF80_0000, // -1
    0xBFC0_0000, // -1.5
    0xC000_0000, // -2
    0xC040_0000, // -3
    0xC080_0000, // -4
    0xC0C0_0000, // -6
];

/// NormalFloat4: the quantiles of the standard normal distribution scaled to [-1, 1] that the QLoRA paper publishes, each the f32
/// nearest to the printed decimal.
pub const NF4: [u32; 16] = [
    0xBF80_0000, // -1.0
    0xBF32_39B1, // -0.6961928009986877
    0xBF06_6B30, // -0.5250730514526367
    0xBECA_32A0, // -0.39491748809814453
    0xBE91_A24D, // -0.28444138169288635
    0xBE3D_353F, // -0.18477343022823334
    0xBDBA_7871, // -0.09105003625154495
    0x0000_0000, // 0.0
    0x3DA2_FAFF, // 0.07958029955625534
    0x3E24_CAE3, // 0.16093020141124725
    0x3E7C_04DD, // 0.24611230194568634
    0x3EAD_033A, // 0.33791524171829224
    0x3EE1_A4B8, // 0.44070982933044434
    0x3F10_07AB, // 0.5626170039176941
    0x3F39_13B3, // 0.7229568362236023
    0x3F80_0000, // 1.0
];

#[cfg(test)]
mod tests {
    use super::NF4;

    /// The published decimals; each entry must be the nearest f32.
    #[test]
    #[expect(clippy::excessive_precision, reason = "the decimals as they were published")]
    fn nf4_is_the_nearest_f32_to_each_published_decimal() {
        let published: [f32; 16] = [
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
        assert_eq!(NF4, published.map(f32::to_bits));
    }
}
