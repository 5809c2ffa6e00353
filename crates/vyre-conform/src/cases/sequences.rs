//! Dispatches that follow each other over buffers that stay on the device: what one of them has written is what a later one reads,
//! outputs are zero before each, and at the end every buffer holds what the last dispatch that wrote it has left.
//!
//! Every step is proven deterministic by what it does: each invocation writes elements of its own, or adds to one atomically. Buffers
//! have lengths around multiples of what devices copy in, and steps take them in any order, so that a write that is lost, late, short or
//! goes to another buffer shows in some byte.

use super::{Cases, Work};
use crate::suite::random::{Random, of_words};
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_worker::{Sequence, SequenceStep};

/// Steps: what the buffers of each are for is in its text. `F` is a number that differs from step to step.
const STEPS: &[(usize, &str)] = &[
    // All of the second buffer changes, and some of the third stays zero.
    (
        3,
        "buffer a: read u32 @0\nbuffer b: read_write u32 @1\nbuffer c: output u32 @2\nlet i = gid.x\n\
         if i < len(b) {\nlet v = b[i] * F + a[i]\nb[i] = v\nif v % 3 != 0 {\nc[i] = v ^ a[len(a) - 1 - i]\n}\n}",
    ),
    // The order of elements changes.
    (
        2,
        "buffer a: read u32 @0\nbuffer out: output u32 @1\nlet i = gid.x\nif i < len(out) {\nout[i] = a[(i * F + 1) % len(a)] + i\n}",
    ),
    // Sums of many.
    (
        2,
        "buffer a: read u32 @0\nbuffer sums: read_write u32 @1\nlet i = gid.x\nif i < len(a) {\natomic.add(sums, i % (F % 61 + 1), a[i])\n}",
    ),
    // Through workgroup memory.
    (
        2,
        "buffer a: read u32 @0\nbuffer b: read_write u32 @1\nbuffer tile: workgroup u32[32]\ntile[lid.x] = a[gid.x] * F\nbarrier\n\
         if gid.x < len(b) {\nb[gid.x] = b[gid.x] ^ tile[31 - lid.x]\n}",
    ),
    // Some elements of a buffer only.
    (1, "buffer a: read_write u32 @0\nlet i = gid.x\nif i < len(a) {\nif (a[i] ^ i) % 5 == 0 {\na[i] = a[i] / 3 + F\n}\n}"),
    // Two inputs, two outputs.
    (
        4,
        "buffer a: read u32 @0\nbuffer b: read u32 @1\nbuffer c: output u32 @2\nbuffer d: output u32 @3\nlet i = gid.x\n\
         if i < len(c) {\nc[i] = a[i] * 3 + b[i]\n}\nif i < len(d) && i % 7 != 2 {\nd[i] = a[i] ^ b[i] * F\n}",
    ),
];

/// Sequences of up to eight dispatches.
pub struct SequenceCases;

impl SequenceCases {
    /// All kinds of them.
    #[must_use]
    pub fn all() -> Vec<SequenceCases> {
        vec![SequenceCases]
    }

    fn made(seed: u64, number: u64) -> Sequence {
        let mut random = Random::of_case(seed, number);
        // One in eight is large enough for whoever copies in pages; all buffers of a sequence are as long as each other, or none.
        let length = |random: &mut Random| match random.below(8) {
            0 => 1020 + random.below(1100),
            1 => 1 + random.below(3),
            2..=4 => (16 << random.below(4)) - 1 + random.below(3),
            _ => 1 + random.below(200),
        };
        let (same, each) = (length(&mut random), random.below(4) == 0);
        let count = 4 + random.below(4);
        let lengths: Vec<usize> = (0..count).map(|_| if each { length(&mut random) } else { same }).collect();
        let buffers = lengths.iter().map(|length| of_words(&random.words(*length))).collect();
        let most = lengths.iter().max().copied().unwrap_or(1);
        let steps = (0..2 + random.below(7)).map(|_| step(&mut random, count, most)).collect();
        Sequence { buffers, steps, fuel: 1 << 32 }
    }
}

fn step(random: &mut Random, count: usize, most: usize) -> SequenceStep {
    let (bound, text) = STEPS[random.below(STEPS.len())];
    let factor = 2 * random.below(1000) + 3;
    let text = format!("program step {{\nworkgroup 32\n{}\n}}", text.replace('F', &factor.to_string()));
    let program: Program = vyre_foundation::text::parse("step", &text).unwrap_or_else(|report| panic!("{report}"));
    // Different buffers: one that is bound twice and written is a mistake.
    let mut free: Vec<usize> = (0..count).collect();
    let buffers = (0..bound).map(|_| free.swap_remove(random.below(free.len()))).collect();
    let config = DispatchConfig { grid_override: Some([(most as u32).div_ceil(32), 1, 1]), ..DispatchConfig::default() };
    SequenceStep { program, config, buffers }
}

impl Cases for SequenceCases {
    fn op(&self) -> &str {
        "resident.steps"
    }

    fn space(&self) -> &str {
        "generated"
    }

    fn cases(&self) -> u64 {
        1 << 40
    }

    fn profile(&self) -> String {
        "resident".into()
    }

    fn identity(&self) -> Vec<u8> {
        STEPS.iter().flat_map(|(_, text)| text.bytes()).collect()
    }

    fn case(&self, seed: u64, number: u64) -> Work {
        Work::Sequence(SequenceCases::made(seed, number))
    }
}
