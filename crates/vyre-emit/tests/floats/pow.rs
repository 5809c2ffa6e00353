//! `pow` on pairs where mistakes would show: it has too many operands for a sweep.

use crate::device::{DEVICES, Gpu};
use vyre_emit::floats::kernel::{Job, Operands, WORKGROUP, constants, kernel};
use vyre_emit::floats::{FloatOp, FloatProfile};
use vyre_spec::{BinaryOp, FloatMode};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ self.0 >> 29;
        x.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8 ^ x
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 20) % end
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn positive(&mut self) -> f32 {
        f32::from_bits(1 + self.below(0x7F7F_FFFF) as u32)
    }

    fn nudged(&mut self, x: f32) -> f32 {
        f32::from_bits(x.to_bits().wrapping_add(self.below(5) as u32).wrapping_sub(2))
    }
}

/// The exponent that takes `x` to about `2^target`.
fn exponent_for(x: f32, target: f64) -> f32 {
    (target / f64::from(x).log2()) as f32
}

/// Draws a base and an exponent.
type Family = fn(&mut Random) -> (f32, f32);

const FAMILIES: [(&str, Family); 8] = [
    ("result in range", |random| {
        let x = random.positive();
        (x, exponent_for(x, random.unit() * 282.0 - 152.0))
    }),
    ("base near 1", |random| {
        let distance = random.below(1 << 18) as u32 >> random.below(18);
        let x = f32::from_bits(if random.below(2) == 0 { 0x3F80_0001 + distance } else { 0x3F7F_FFFF - distance });
        (x, exponent_for(x, random.unit() * 282.0 - 152.0))
    }),
    ("ends of the range", |random| {
        let x = random.positive();
        let end = [128.0, -126.0, -149.0, -150.0][random.below(4) as usize];
        let y = exponent_for(x, end + (random.unit() - 0.5) / (1u64 << random.below(24)) as f64);
        (x, random.nudged(y))
    }),
    ("result near 1", |random| {
        let x = random.positive();
        (x, exponent_for(x, (random.unit() - 0.5) / (1u64 << random.below(44)) as f64))
    }),
    ("exact or nearly", |random| {
        let halvings = random.below(5) as i32;
        let degree = 1 << halvings;
        let root = 1 + random.below([1 << 24, 4096, 64, 8, 3][halvings as usize]);
        let x = (root as f64).powi(degree) * 2f64.powi((random.below(40) as i32 - 20) * degree);
        let y = (random.below(40) as f32 - 8.0) / degree as f32;
        match random.below(4) {
            0 => (random.nudged(x as f32), y),
            1 => (x as f32, random.nudged(y)),
            _ => (x as f32, y),
        }
    }),
    ("next to a midpoint's root", |random| {
        let y = (random.unit() * 8.0 - 4.0) as f32;
        let midpoint = (random.next() >> 40 | 1 << 24 | 1) as f64 * 2f64.powi(random.below(200) as i32 - 120);
        let x = (midpoint.log2() / f64::from(y)).exp2() as f32;
        (random.nudged(x), y)
    }),
    ("common exponents", |random| {
        let numerator = random.below(257) as f32 - 128.0;
        (random.positive(), numerator / [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 8.0, 10.0, 16.0, 100.0][random.below(10) as usize])
    }),
    ("negative base", |random| {
        let x = random.positive();
        let y = exponent_for(x, random.unit() * 300.0 - 160.0);
        (-x, if random.below(8) == 0 { y } else { y.round_ties_even() })
    }),
];

fn check(gpu: &Gpu, mode: FloatMode, family: &str, inputs: Vec<u32>) {
    let op = FloatOp::Binary(BinaryOp::Pow);
    let inputs: Vec<u32> = inputs.into_iter().map(|pattern| op.operand(mode, pattern)).collect();
    let count = inputs.len() / 2;
    let job = Job {
        wgsl: kernel(op, mode, FloatProfile::INTEGER, Operands::Listed).expect("it is an op of the library"),
        inputs,
        outputs: count,
        constants: constants(),
        workgroups: (count as u32).div_ceil(WORKGROUP),
    };
    for (operands, result) in job.inputs.chunks(2).zip(gpu.run(&job)) {
        let expected = op.meaning(mode, operands)[0];
        let name = gpu.name;
        assert!(result == expected, "{family}, {mode}, {name}: pow({operands:08x?}) gives {result:08x}, not {expected:08x}");
    }
}

/// `VYRE_LONG=pow` takes 2²⁶ pairs of each kind.
#[test]
fn pow_is_right_where_mistakes_would_show() {
    let long = std::env::var("VYRE_LONG").is_ok_and(|which| which == "1" || which.split(',').any(|part| part == "pow"));
    let batches = if long { 1 << 8 } else { 1 };
    let gpu = Gpu::open(DEVICES[0]);
    for (seed, (family, pair)) in (1..).zip(FAMILIES) {
        let mut random = Random(seed);
        for _ in 0..batches {
            let mut inputs = Vec::new();
            for _ in 0..1 << if long { 18 } else { 16 } {
                let (x, y) = pair(&mut random);
                inputs.extend([x.to_bits(), y.to_bits()]);
            }
            check(&gpu, FloatMode::Ieee, family, inputs);
        }
        if long {
            println!("pow, {family}: 2^26 pairs on {}", gpu.name);
        }
    }
}

/// Powers of two, small integers, and their neighbours, with each other.
#[test]
fn pow_of_special_values_is_right() {
    let powers = (0..256u32).filter(|field| field % 16 < 2 || (124..132).contains(field)).map(|field| field << 23);
    let integers = (1..16u32).chain([31, 32, 127, 128, 149, 150, 151, 1 << 23, 1 << 24]).map(|n| (n as f32).to_bits());
    let centers: Vec<u32> = powers.chain(integers).chain([0x3F00_0000, 0x3FC0_0000, 0x7F80_0000, 0x7FC0_0000]).collect();
    let values = centers.iter().flat_map(|center| [center.saturating_sub(1), *center, center + 1]);
    let values: Vec<u32> = values.flat_map(|bits| [bits, bits | 0x8000_0000]).collect();
    let pairs: Vec<u32> = values.iter().flat_map(|x| values.iter().flat_map(|y| [*x, *y])).collect();
    for (name, share) in DEVICES.into_iter().zip([1, 8]) {
        let gpu = Gpu::open(name);
        for mode in FloatMode::ALL {
            check(&gpu, mode, "special values", pairs[..pairs.len() / share].to_vec());
        }
    }
}
