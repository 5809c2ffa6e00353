//! Passes keep what a program does.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vyre::analysis::determinism::Proof;
use vyre::launch::{LaunchConfig, plan};
use vyre::passes::PASSES;
use vyre::reference::{Options, run};

fuzz_target!(|data: &[u8]| {
    // The text ends with the first zero; what follows is the inputs.
    let (text, bytes) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(program) = vyre::text::parse("fuzz.vyre", text) else { return };
    let inputs: Vec<&[u8]> = program.interface().inputs.iter().map(|_| bytes).collect();
    let options = Options {
        launch: LaunchConfig { grid: Some([2, 1, 1]), max_output_bytes: 1 << 16, ..LaunchConfig::default() },
        fuel: 100_000,
        ..Options::default()
    };
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let Ok(launch) = plan(&program, &sizes, &options.launch) else { return };
    if program.proof_for(&launch, &inputs) != Ok(Proof::Holds) {
        return;
    }
    let Ok(before) = run(&program, &inputs, &options) else { return };
    for pass in PASSES {
        let after = pass.apply(&program);
        assert!(after.validated().is_ok(), "{} makes it invalid\n{program}\n{after}", pass.name);
        let options = Options { fuel: u64::MAX, ..options.clone() };
        assert!(run(&after, &inputs, &options).as_ref() == Ok(&before), "{} changes the bytes\n{program}\n{after}", pass.name);
    }
});
