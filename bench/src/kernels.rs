//! The six kernels that every evaluator is measured on, with their inputs.

use vyre::ir::Program;
use vyre::launch::LaunchConfig;

/// A kernel and one launch of it.
pub struct Workload {
    /// What it is called in tables.
    pub name: &'static str,
    /// The kernel.
    pub program: Program,
    /// Bytes of the inputs, in order.
    pub inputs: Vec<Vec<u8>>,
    /// The launch.
    pub config: LaunchConfig,
    /// What one run is divided by: invocations.
    pub elements: usize,
}

fn words(count: usize, of: impl Fn(u32) -> u32) -> Vec<u8> {
    (0..count as u32).flat_map(|i| of(i).to_le_bytes()).collect()
}

/// A number like a random one.
pub fn hash(i: u32) -> u32 {
    let x = (i ^ i >> 16).wrapping_mul(0x7FEB_352D);
    (x ^ x >> 15).wrapping_mul(0x846C_A68B)
}

/// A float in [0, 1).
pub fn unit(i: u32) -> f32 {
    (hash(i) >> 8) as f32 / (1 << 24) as f32
}

/// All six, each with about this many invocations.
#[must_use]
pub fn workloads(elements: usize) -> Vec<Workload> {
    let parse = |name: &str, text: &str| vyre::text::parse(name, text).expect("the kernels parse");
    let plain = |name, text, inputs: Vec<Vec<u8>>| Workload {
        name,
        program: parse(name, text),
        inputs,
        config: LaunchConfig::default(),
        elements,
    };
    let mut all = vec![
        plain("xor", include_str!("../../examples/xor.vyre"), vec![words(elements, hash), words(elements, |i| hash(i ^ 0xFFFF))]),
        plain("mix", include_str!("../kernels/mix.vyre"), vec![words(elements, hash)]),
        plain(
            "mandelbrot",
            include_str!("../kernels/mandelbrot.vyre"),
            vec![
                words(elements, |i| (unit(i) * 3.0 - 2.0).to_bits()),
                words(elements, |i| (unit(i ^ 0xABCD) * 2.0 - 1.0).to_bits()),
            ],
        ),
        plain("reduction", include_str!("../kernels/reduction.vyre"), vec![words(elements, hash)]),
        plain(
            "dfa",
            include_str!("../kernels/dfa.vyre"),
            vec![words(elements / 4 + 16, hash), words(16 * 256, |i| hash(i) % 16)],
        ),
    ];
    for workload in &mut all {
        workload.config.grid = Some([elements.div_ceil(workload.program.workgroup_size()[0] as usize) as u32, 1, 1]);
        if workload.name == "dfa" {
            workload.config.output_counts.insert("states".into(), elements as u32);
        }
        if workload.name == "reduction" {
            workload.config.output_counts.insert("sums".into(), elements.div_ceil(256) as u32);
        }
    }
    let side = 128;
    all.push(Workload {
        name: "matmul",
        program: parse("matmul", include_str!("../kernels/matmul.vyre")),
        inputs: vec![words(side * side, |i| unit(i).to_bits()), words(side * side, |i| unit(!i).to_bits())],
        config: LaunchConfig { grid: Some([side as u32 / 16, side as u32 / 16, 1]), ..LaunchConfig::default() },
        elements: side * side,
    });
    all
}

/// Kernels with atomics, the same in every order: the first because its atomics commute, the others for reasons that nobody can see
/// without trying.
#[must_use]
pub fn atomics(elements: usize) -> Vec<Workload> {
    let all = [
        ("histogram", include_str!("../kernels/histogram.vyre"), elements),
        ("tickets", include_str!("../kernels/tickets.vyre"), elements),
        ("places", include_str!("../kernels/places.vyre"), elements / 64),
        ("maximum", include_str!("../kernels/maximum.vyre"), 1),
    ];
    all.map(|(name, text, outputs)| {
        let program = vyre::text::parse(name, text).expect("the kernels parse");
        let groups = elements.div_ceil(program.workgroup_size()[0] as usize) as u32;
        let mut config = LaunchConfig { grid: Some([groups, 1, 1]), ..LaunchConfig::default() };
        let sized = program.buffers().iter().filter(|buffer| buffer.access.is_output() && buffer.count.is_none());
        config.output_counts.extend(sized.map(|buffer| (buffer.name.to_string(), outputs as u32)));
        Workload { name, program, inputs: vec![words(elements, hash)], config, elements }
    })
    .into()
}

/// A program of about a hundred statements and expressions.
#[must_use]
pub fn hundred() -> Program {
    vyre::text::parse("blur", include_str!("../kernels/blur.vyre")).expect("the kernel parses")
}

/// What SHA-256 starts with, and the constants of its rounds: the fractional parts of square and cube roots of the first primes.
#[must_use]
pub fn sha256_constants() -> ([u32; 8], [u32; 64]) {
    let mut primes = (2u32..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    let primes: [f64; 64] = std::array::from_fn(|_| f64::from(primes.next().expect("there are more")));
    let bits = |root: f64| ((root.fract() * 2f64.powi(32)) as u64) as u32;
    (std::array::from_fn(|n| bits(primes[n].sqrt())), primes.map(|prime| bits(prime.cbrt())))
}

/// A program of several thousand: SHA-256 of one block of 16 words per invocation, every round written out.
#[must_use]
pub fn thousands() -> Program {
    let (start, round) = sha256_constants();
    let mut text = String::from(
        "program sha256 {\n  workgroup 64\n  buffer blocks: read u32 @0\n  buffer digests: output u32 @1\n\n  let block = gid.x * 16\n",
    );
    let mut line = |line: String| text.extend(["  ", &line, "\n"]);
    for i in 0..64 {
        line(if i < 16 {
            format!("let w{i} = swap_bytes(blocks[block + {i}])")
        } else {
            let (a, b) = (format!("w{}", i - 15), format!("w{}", i - 2));
            format!(
                "let w{i} = w{} + (rotr({a}, 7) ^ rotr({a}, 18) ^ {a} >> 3) + w{} + (rotr({b}, 17) ^ rotr({b}, 19) ^ {b} >> 10)",
                i - 16,
                i - 7
            )
        });
    }
    // What the round calls a and e; its b, c, d and f, g, h are those of the rounds before.
    for (name, values) in [("a", &start[..4]), ("e", &start[4..8])] {
        (0..4).for_each(|i| line(format!("let {name}{i} = {}", values[3 - i])));
    }
    for (i, constant) in round.iter().enumerate() {
        let [d, c, b, a] = [0, 1, 2, 3].map(|n| format!("a{}", i + n));
        let [h, g, f, e] = [0, 1, 2, 3].map(|n| format!("e{}", i + n));
        line(format!(
            "let t{i} = {h} + (rotr({e}, 6) ^ rotr({e}, 11) ^ rotr({e}, 25)) + ({e} & {f} ^ !{e} & {g}) + {constant} + w{i}"
        ));
        line(format!("let e{} = {d} + t{i}", i + 4));
        line(format!(
            "let a{} = t{i} + (rotr({a}, 2) ^ rotr({a}, 13) ^ rotr({a}, 22)) + ({a} & {b} ^ {a} & {c} ^ {b} & {c})",
            i + 4
        ));
    }
    for (i, start) in start.iter().enumerate() {
        let state = if i < 4 { format!("a{}", 67 - i) } else { format!("e{}", 71 - i) };
        line(format!("digests[gid.x * 8 + {i}] = swap_bytes({state} + {start})"));
    }
    text.push('}');
    vyre::text::parse("sha256", &text).unwrap_or_else(|report| panic!("{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre::reference::{Options, run};

    #[test]
    fn the_written_out_hash_is_sha_256() {
        let mut block = [0; 64];
        block[..4].copy_from_slice(b"abc\x80");
        block[63] = 24;
        let mut options = Options::default();
        options.launch.grid = Some([1, 1, 1]);
        options.launch.output_counts.insert("digests".into(), 8);
        let outputs = run(&thousands(), &[&block], &options).expect("it runs");
        let digest: String = outputs[0].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
