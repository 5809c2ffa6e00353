//! A program that comes at run time, compiled once and run in a loop: inputs are borrowed, and the memory of results is used again.

use vyre::prelude::*;

const LOGISTIC: &str = "program logistic {
  workgroup 64
  buffer x: read f32 @0
  buffer rate: uniform f32[1] @1
  buffer next: output f32 @2
  if gid.x < len(x) {
    next[gid.x] = rate[0] * x[gid.x] * (1.0 - x[gid.x])
  }
}";

fn main() -> Result<(), BackendError> {
    let backend = Backend::preferred()?;
    let program: Program = LOGISTIC.parse()?;
    let logistic = backend.compile(&program)?;
    let mut x: Vec<f32> = (1..=8).map(|n| n as f32 / 16.0).collect();
    let mut results = Results::default();
    for _ in 0..1000 {
        logistic.dispatch().input("x", &x).input("rate", &[3.75f32]).run_into(&mut results)?;
        results.copy_to("next", &mut x)?;
    }
    let (_, timing) = logistic.dispatch().input("x", &x).input("rate", &[3.75f32]).run_timed()?;
    let ran = timing.ran.map_or_else(String::new, |ran| ran.lowering.to_string());
    eprintln!("one more took {:?} as {ran}", timing.wall);
    // The same bits on every machine, although the map is chaotic and any other rounding would be somewhere else by now.
    println!("{:08x?}", x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>());
    Ok(())
}
