//! What it costs to bring a program to where a code generator takes it over, beside the time of its validation.

use crate::{interleaved, kernels};
use std::hint::black_box;
use vyre::analysis::{Bounds, Uniformity};
use vyre::ir::Program;
use vyre::ssa::Ssa;

/// Validation, and the SSA form, all passes, analyses and the way back to a program as multiples of it.
pub fn figures() {
    println!(
        "\n{:<12} {:>8} {:>12} {:>8} {:>10} {:>8} {:>10} {:>12} {:>8}   goal: form and passes <= 3 x validation",
        "the middle", "nodes", "validate, µs", "form, x", "passes, x", "both, x", "uniform, x", "proof, x", "back, x"
    );
    let measured = kernels::workloads(64).into_iter().chain(kernels::atomics(64)).map(|work| (work.name, work.program));
    for (name, program) in measured.chain([("blur", kernels::hundred()), ("sha256", kernels::thousands())]) {
        let validated = program.validated().expect("the kernels are valid");
        let kernel = validated.kernel();
        let form = Ssa::of(kernel);
        let mut optimized = form.clone();
        optimized.optimize();
        // Each candidate does enough for the clock to see.
        let times = (1 << 14) / program.walk().count().max(1) + 1;
        let repeated = |what: &dyn Fn()| (0..times).for_each(|_| what());
        let uniformity = Uniformity::of(&form);
        let [copied, checked, formed, cloned, passed, uniform, proven, back] = interleaved([
            &mut || repeated(&|| drop(black_box(Program::from_parts(program.parts().clone())))),
            &mut || {
                repeated(&|| {
                    let again = Program::from_parts(program.parts().clone());
                    assert!(black_box(&again).validated().is_ok());
                });
            },
            &mut || repeated(&|| drop(black_box(Ssa::of(kernel)))),
            &mut || repeated(&|| drop(black_box(form.clone()))),
            &mut || {
                repeated(&|| {
                    let mut form = form.clone();
                    form.optimize();
                    drop(black_box(form));
                });
            },
            &mut || repeated(&|| drop(black_box((Uniformity::of(&form), Bounds::of(&form))))),
            &mut || repeated(&|| drop(black_box(vyre::analysis::determinism::of_form(&form, &uniformity)))),
            &mut || repeated(&|| drop(black_box(optimized.to_program(&program)))),
        ])
        .map(|time| time.as_secs_f64() / times as f64);
        let validation = checked - copied;
        let passes = passed - cloned;
        println!(
            "{name:<12} {:>8} {:>12.1} {:>8.2} {:>10.2} {:>8.2} {:>10.2} {:>12.2} {:>8.2}",
            program.walk().count(),
            validation * 1e6,
            formed / validation,
            passes / validation,
            (formed + passes) / validation,
            uniform / validation,
            proven / validation,
            back / validation
        );
    }
}
