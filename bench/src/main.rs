//! Measures what the figures are about, as ratios within one run.
//!
//! `cargo run --release -p vyre-bench` runs every candidate in turn, round after round, and keeps each one's fastest round: whatever
//! else the machine does meets all of them alike. Nothing here is asserted; the numbers are for people.

use std::hint::black_box;
use std::time::{Duration, Instant};
use vyre::reference::{Options, run};

const ELEMENTS: usize = 1 << 20;
const ROUNDS: usize = 7;

struct Candidate<'a> {
    name: &'static str,
    /// What one run is divided by.
    elements: usize,
    goal: Option<f64>,
    work: Box<dyn FnMut() + 'a>,
}

fn main() {
    let a: Vec<u32> = (0..ELEMENTS as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let b: Vec<u32> = (0..ELEMENTS as u32).map(|i| i.wrapping_mul(0x85EB_CA6B)).collect();
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
    let xor = vyre::text::parse("xor.vyre", include_str!("../../examples/xor.vyre")).expect("the example parses");
    let options = Options::default();
    let mut bulk = vyre::reference::bulk::Bulk::new(&xor).expect("the example is valid");
    let sizes = [a_bytes.len() as u64, b_bytes.len() as u64];
    let launch = vyre::launch::plan(bulk.program(), &sizes, &options.launch).expect("the launch is fine");
    let mut bulk_out = Vec::new();
    let mut native = vec![0u32; ELEMENTS];

    let mut candidates = [
        Candidate {
            name: "xor 1 M, native Rust",
            elements: ELEMENTS,
            goal: None,
            work: Box::new(|| {
                for ((out, a), b) in native.iter_mut().zip(&a).zip(&b) {
                    *out = black_box(a ^ b);
                }
                black_box(&native);
            }),
        },
        Candidate {
            name: "xor 1 M, plain interpreter",
            elements: ELEMENTS,
            goal: Some(300.0),
            work: Box::new(|| {
                let out = run(&xor, &[&a_bytes, &b_bytes], &options).expect("the example runs");
                black_box(out);
            }),
        },
        Candidate {
            name: "xor 1 M, bulk evaluator",
            elements: ELEMENTS,
            goal: Some(5.0),
            work: Box::new(|| {
                bulk.run_into(&launch, &[&a_bytes, &b_bytes], u64::MAX, &mut bulk_out).expect("the example runs");
                black_box(&bulk_out);
            }),
        },
    ];

    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for (candidate, best) in candidates.iter_mut().zip(&mut best) {
            let start = Instant::now();
            (candidate.work)();
            *best = (*best).min(start.elapsed());
        }
    }
    println!("{:<32} {:>12} {:>10} {:>10}", "", "ns/element", "x native", "goal");
    let native = best[0].as_secs_f64();
    for (candidate, best) in candidates.iter().zip(best) {
        let each = best.as_secs_f64() * 1e9 / candidate.elements as f64;
        let goal = candidate.goal.map_or(String::new(), |goal| format!("<= {goal}"));
        println!("{:<32} {each:>12.2} {:>10.1} {goal:>10}", candidate.name, best.as_secs_f64() / native);
    }
}
