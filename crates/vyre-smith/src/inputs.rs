//! Inputs for a generated program: values that are worth trying, at lengths that are.

use crate::dna::Dna;
use crate::generate::{Generated, length};
use crate::values;
use vyre_foundation::specialize;

/// The bytes of the inputs, in the order of the interface; a declared count is kept.
///
/// # Panics
///
/// If the program is not valid, which a generated one is.
#[must_use]
pub fn inputs(generated: &Generated, dna: &[u8]) -> Vec<Vec<u8>> {
    let mut dna = Dna::new(dna);
    let values = generated.config.specialization.iter();
    let program = specialize(&generated.program, values).expect("a generated program takes the values generated for it");
    let kernel = match program.validated() {
        Ok(validated) => validated.kernel(),
        Err(report) => panic!("a generated program is valid:\n{report}\n{program}"),
    };
    let group = kernel.workgroup_invocations();
    program
        .interface()
        .inputs
        .iter()
        .map(|i| {
            let buffer = &kernel.buffers[*i];
            let per = if dna.chance(20) { 1 + dna.below(3) } else { 1 };
            let count = buffer.count.unwrap_or_else(|| length(&mut dna, generated.invocations, per, group));
            values::bytes(&mut dna, &buffer.element, count)
        })
        .collect()
}
