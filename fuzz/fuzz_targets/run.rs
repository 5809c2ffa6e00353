//! Valid programs on any inputs: the interpreters end without panics, and agree where the bytes cannot depend on the order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vyre::analysis::determinism::Proof;
use vyre::ir::Element;
use vyre::launch::{LaunchConfig, plan};
use vyre::reference::{Options, Schedule, bulk, run};

fuzz_target!(|data: &[u8]| {
    // The text ends with the first zero; what follows is the inputs.
    let (text, bytes) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let grid = bytes.len() as u8;
    let Ok(program) = vyre::text::parse("fuzz.vyre", text) else { return };
    let mut inputs: Vec<&[u8]> = Vec::new();
    for i in &program.interface().inputs {
        let decl = &program.buffers()[*i];
        let count = decl.count.as_ref().and_then(|count| program.parts().size_value(count));
        let length = match (&decl.element, count) {
            (Element::Type(element), Some(count)) => {
                vyre::scalar::memory::byte_length(element, u64::from(count)).unwrap_or(0) as usize
            }
            _ => bytes.len(),
        };
        inputs.push(&bytes[..length.min(bytes.len())]);
    }
    let mut options = Options {
        launch: LaunchConfig {
            grid: Some([1 + u32::from(grid % 3), 1, 1]),
            max_output_bytes: 1 << 16,
            ..LaunchConfig::default()
        },
        fuel: 100_000,
        ..Options::default()
    };
    let forward = run(&program, &inputs, &options);
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let Ok(launch) = plan(&program, &sizes, &options.launch) else { return };
    if forward.is_ok() && program.proof_for(&launch, &inputs) == Ok(Proof::Holds) {
        options.schedule = Schedule::Reverse;
        assert!(run(&program, &inputs, &options) == forward, "the order shows\n{program}");
        options.fuel = u64::MAX;
        assert!(bulk::run(&program, &inputs, &options) == forward, "the bulk evaluator differs\n{program}");
        assert!(
            bulk::run_compacted(&program, &inputs, &options) == forward,
            "the bulk evaluator differs, lanes compacted\n{program}"
        );
    }
});
