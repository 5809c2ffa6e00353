//! A kernel whose result depends on who comes first. That it may is known before it runs; the checked reference says where.

use vyre::prelude::*;
use vyre::reference::Options;
use vyre::reference::checked::{Effort, check};

vyre::kernel! {
    program last_one_wins {
        workgroup 4
        buffer x: read u32 @0
        buffer out: output u32[1] @1
        out[0] = x[gid.x]
    }
}

fn main() -> Result<(), BackendError> {
    let backend = Backend::preferred()?;
    let program = LastOneWins::program();

    // Whoever must not get such a result asks for a proof.
    match Dispatch::new(program).input("x", &[1u32, 2, 3, 4]).grid([1, 1, 1]).require_deterministic().run(&backend) {
        Err(error) => println!("refused: {error}"),
        Ok(results) => panic!("{results:?}"),
    }

    // What happens is found by running it under many schedules, with shadow memory.
    let x: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut options = Options::default();
    options.launch.grid = Some([1, 1, 1]);
    let found = check(program, &[&x], &options, &Effort::default()).expect("it runs");
    println!("{}: {}", found.verdict, found.findings[0].diagnostic().message);
    Ok(())
}
