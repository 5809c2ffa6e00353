//! Dispatches of compositions on everything that can run them, against the same in plain Rust.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::LazyLock;
use vyre::backend::registry::{acquire, wrap_grid_sync_split};
use vyre::ir::Program;
use vyre::reference::checked::{Effort, Verdict, check};
use vyre::reference::{Options, run};
use vyre::{DispatchConfig, VyreBackend};

/// The workgroup sizes that every composition is tried at: alone, odd, a power of two, large.
pub const SIZES: [u32; 4] = [1, 37, 64, 256];

/// Statements up to which the checked mode looks at a dispatch as well.
const CHECKED_STEPS: u64 = 1_000_000;

static BULK: LazyLock<Box<dyn VyreBackend>> = LazyLock::new(|| acquire("bulk").expect("it is linked in"));
static SPLIT: LazyLock<Box<dyn VyreBackend>> = LazyLock::new(|| wrap_grid_sync_split(acquire("bulk").expect("it is linked in")));

/// A dispatch and what it must give.
#[derive(Clone, Default)]
pub struct Case {
    pub name: String,
    pub inputs: Vec<Vec<u8>>,
    pub outputs: Vec<Vec<u8>>,
    /// Lengths of outputs that have none of their own.
    pub counts: Vec<(&'static str, usize)>,
}

/// Which grids a case is run in, by the size of a workgroup.
pub enum Grids {
    /// So many invocations, and one workgroup more, which has nothing to do.
    Invocations(usize),
    /// So many workgroups, and one more.
    Workgroups(usize),
    /// Those along x and y.
    Rectangle(fn(u32, &Case) -> [u32; 2]),
    /// Whatever; the result must not show it.
    Any,
}

impl Grids {
    fn of(&self, size: u32, case: &Case) -> Vec<[u32; 3]> {
        match self {
            Grids::Invocations(count) => {
                let groups = count.div_ceil(size as usize).max(1) as u32;
                vec![[groups, 1, 1], [groups + 1, 1, 1]]
            }
            Grids::Workgroups(count) => vec![[(*count).max(1) as u32, 1, 1], [*count as u32 + 1, 1, 1]],
            Grids::Rectangle(of) => {
                let [x, y] = of(size, case);
                vec![[x, y, 1], [x + 1, y + 1, 1]]
            }
            Grids::Any => [1, 3, 8].map(|groups| [groups, 1, 1]).into(),
        }
    }
}

/// The case at every workgroup size, on the bulk evaluator, on it with grid barriers split, and on the reference; and no schedule may
/// make a difference.
pub fn agrees(build: &dyn Fn([u32; 3]) -> Program, grids: &Grids, case: &Case) {
    agrees_at(&SIZES, build, grids, case);
}

/// The same at these workgroup sizes alone.
pub fn agrees_at(sizes: &[u32], build: &dyn Fn([u32; 3]) -> Program, grids: &Grids, case: &Case) {
    for size in sizes.iter().copied() {
        let program = build([size, 1, 1]);
        let validated = program.validated().unwrap_or_else(|report| panic!("{}: {report}", case.name));
        let grid_sync = validated.kernel().uses.grid_sync;
        for grid in grids.of(size, case) {
            let what = format!("{} in workgroups of {size}, {grid:?}", case.name);
            let output_counts = case.counts.iter().map(|(name, count)| ((*name).to_string(), *count as u32)).collect();
            let config = DispatchConfig { grid_override: Some(grid), output_counts, ..DispatchConfig::default() };
            let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
            let on = |backend: &dyn VyreBackend| {
                backend.dispatch_borrowed(&program, &inputs, &config).unwrap_or_else(|error| panic!("{what}: {error}"))
            };
            same(&format!("{what}, bulk"), &on(&**BULK), &case.outputs);
            if grid_sync {
                same(&format!("{what}, split"), &on(&**SPLIT), &case.outputs);
            }
            let options = Options { launch: config.launch(), fuel: CHECKED_STEPS, ..Options::default() };
            let effort = Effort { executions: 0, ..Effort::default() };
            match check(&program, &inputs, &options, &effort) {
                Ok(report) => {
                    assert_eq!(report.verdict, Verdict::Deterministic, "{what}: {:?}", report.report(&program));
                    assert!(report.findings.is_empty(), "{what}: {}", report.report(&program).expect("there are findings"));
                    same(&format!("{what}, checked"), &report.outcome.expect("nothing traps"), &case.outputs);
                }
                Err(vyre::reference::RunError::OutOfFuel { .. }) => {
                    let small = grid[0] == 1 && inputs.iter().all(|input| input.len() <= 256);
                    assert!(!small, "{what}: a small dispatch must be checked");
                    let options = Options { launch: config.launch(), ..Options::default() };
                    let outputs = run(&program, &inputs, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
                    same(&format!("{what}, reference"), &outputs, &case.outputs);
                }
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}

fn same(what: &str, found: &[Vec<u8>], expected: &[Vec<u8>]) {
    assert_eq!(found.len(), expected.len(), "{what}: outputs");
    for (n, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{what}: length of output {n}");
        if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
            let word = |bytes: &[u8]| bytes[at & !3..].iter().take(4).rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            panic!("{what}: output {n} differs at byte {at}: {} and {} is expected", word(found), word(expected));
        }
    }
}

/// The bytes of numbers.
pub fn bytes<T: Copy, const N: usize>(values: &[T], of: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| of(*value)).collect()
}

pub fn u32s(values: &[u32]) -> Vec<u8> {
    bytes(values, u32::to_le_bytes)
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    bytes(values, f32::to_le_bytes)
}

/// Random numbers that are the same in every run: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.u64() as u8).collect()
    }

    pub fn u32s(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.u32()).collect()
    }

    /// Of moderate size, with some that are hard to add up.
    pub fn f32s(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| match self.below(8) {
                0 => f32::from_bits(self.below(1 << 23)),
                1 => (self.u32() as i32 as f32) * 1e-3,
                2 => -0.0,
                _ => (self.u32() as i32 as f32) / (1u32 << 29) as f32,
            })
            .collect()
    }
}

/// Lengths around the edges of all workgroup sizes, and of several workgroups.
pub const LENGTHS: [usize; 16] = [0, 1, 2, 36, 37, 38, 63, 64, 65, 111, 255, 256, 257, 512, 769, 1000];
