//! What a mutant costs beside the bulk evaluator that it is made from: what is kept ready has to be, and nothing else may be added.

use crate::interleaved;
use crate::kernels::{Workload, workloads};
use vyre_conform::mutants;
use vyre_smith::subjects::subject;
use vyre_worker::{Case, Job, Subject};

const ELEMENTS: usize = 1 << 16;

/// How names of mutants of every kind begin: one op for another, a launch that is cut, a key that is weak, memory that is kept, and an op with a hash beside it.
const NAMES: [&str; 6] = [
    "operator/add.u32-is-sub",
    "operator/add.f64-is-sub",
    "last-workgroup/last-of-2-or-more",
    "cache-key/without-constants",
    "stale/first-input-always",
    "rare/bitxor.u32-",
];

/// Dispatches in the caller's memory, each candidate in turn.
pub fn figures() {
    println!(
        "{:<44} {:>12} {:>12} {:>8}   goal: <= 1.10 where the program is as long",
        "us per dispatch of 65,536", "bulk", "mutant", "x"
    );
    for Workload { name, program, inputs, config, .. } in workloads(ELEMENTS) {
        let mut case = Case::new(program, inputs);
        case.config.grid_override = config.grid;
        case.config.output_counts = config.output_counts;
        let slices = case.input_slices();
        let mut outputs = subject("bulk").expect("it is built in").run(&case).expect("the kernels run");
        for mutant in NAMES.iter().filter_map(|name| mutants::all().iter().find(|mutant| mutant.name.starts_with(name))) {
            let (mut right, mut wrong) = (subject("bulk").expect("it is built in"), mutant.subject());
            let run = |subject: &mut dyn Subject, outputs: &mut Vec<Vec<u8>>| {
                let mut places: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
                let (program, config) = (&case.program, &case.config);
                let job = Job { program, config, fuel: 1 << 40, inputs: &slices, outputs: &mut places };
                subject.run_in_place(job).expect("the kernels run");
            };
            let mut again = outputs.clone();
            let [bulk, found] = interleaved([&mut || run(&mut *right, &mut outputs), &mut || run(&mut *wrong, &mut again)]);
            let applies = if mutant.applies(&case.program) { "" } else { " (nothing to change)" };
            println!(
                "{:<44} {:>12.1} {:>12.1} {:>8.2}{applies}",
                format!("{name}, {}", mutant.name),
                bulk.as_secs_f64() * 1e6,
                found.as_secs_f64() * 1e6,
                found.as_secs_f64() / bulk.as_secs_f64()
            );
        }
    }
}
