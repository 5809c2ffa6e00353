//! How the random tests launch what the generator makes.

use crate::generate::Rng;
use vyre::ir::{Access, Element, Program};
use vyre::launch::LaunchConfig;
use vyre::reference::Options;

/// How many programs are tried: what `VYRE_RANDOM_PROGRAMS` says, or this many.
pub fn how_many(usually: u64) -> u64 {
    std::env::var("VYRE_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Tries the seeds from 0 to before `count` on two threads; gives what each of them counted.
pub fn on_two_threads<T: Default + Send>(count: u64, one: impl Fn(u64, &mut T) + Sync) -> Vec<T> {
    let half = count / 2;
    let one = &one;
    std::thread::scope(|scope| {
        let parts = [0..half, half..count].map(|seeds| {
            scope.spawn(move || {
                let mut tally = T::default();
                seeds.for_each(|seed| one(seed, &mut tally));
                tally
            })
        });
        parts.map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).into()
    })
}

/// Inputs for a program: short, of random bits, some empty.
fn inputs(program: &Program, rng: &mut Rng) -> Vec<Vec<u8>> {
    let length = *rng.pick(&[0usize, 1, 3, 7, 8, 9, 16, 17]);
    let buffers = program.interface().inputs.iter().map(|i| &program.buffers()[*i]);
    buffers
        .map(|decl| {
            let Element::Type(element) = &decl.element else { unreachable!("the generator uses no type constants") };
            let bytes = vyre::scalar::memory::byte_length(element, length as u64).expect("kernel types have sizes");
            (0..bytes).map(|_| rng.bits() as u8).collect()
        })
        .collect()
}

/// Inputs and options for the program of a seed.
pub fn launch(program: &Program, seed: u64) -> (Vec<Vec<u8>>, Options) {
    let mut rng = Rng(seed ^ 0x5EED);
    let bytes = inputs(program, &mut rng);
    let mut grid = [1 + rng.below(3) as u32, 1, 1];
    if rng.below(5) == 0 {
        grid[1 + rng.below(2)] = 2;
    }
    let mut options =
        Options { launch: LaunchConfig { grid: Some(grid), ..LaunchConfig::default() }, fuel: 1_000_000, ..Options::default() };
    for (decl, i) in program.buffers().iter().zip(0u32..) {
        if decl.access == Access::Output && decl.count.is_none() {
            options.launch.output_counts.insert(decl.name.to_string(), i * 3);
        }
    }
    (bytes, options)
}
