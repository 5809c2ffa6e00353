//! Memory that a dispatch asks for: what is too much is an error, not the end of the process.

use vyre_foundation::kernel::Kernel;
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

/// What invocations that wait for each other at grid barriers may take together.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Refuses a dispatch of so many invocations if all of them are under way at the same time and there is no room for that.
pub(crate) fn check_state(kernel: &Kernel, invocations: u64) -> Result<(), Report> {
    let state = invocations.saturating_mul((kernel.vars.len() as u64 + 4) * size_of::<vyre_scalar::Value>() as u64);
    if !kernel.uses.grid_sync || state <= MAX_STATE_BYTES {
        return Ok(());
    }
    Err(Report::single(
        Diagnostic::new(
            ErrorCode::E0708,
            format!("{invocations} invocations that wait for each other are too many for the interpreter"),
        )
        .expected(format!("at most {MAX_STATE_BYTES} bytes of state"))
        .found(format!("{state} bytes")),
    ))
}

/// Refuses a checked run whose shadow memory takes more bytes than are allowed.
pub(crate) fn check_shadow(bytes: u64, allowed: u64) -> Result<(), Report> {
    if bytes <= allowed {
        return Ok(());
    }
    Err(Report::single(
        Diagnostic::new(ErrorCode::E0708, format!("to check this launch takes {bytes} bytes of shadow memory"))
            .expected(format!("at most {allowed} bytes"))
            .found(format!("{bytes} bytes"))
            .help("check a smaller launch: every element that can be written takes some forty bytes"),
    ))
}

/// Makes a buffer hold so many zeros, in the memory it has if that is enough.
pub(crate) fn fill_with_zeros(buffer: &mut Vec<u8>, bytes: u64) -> Result<(), Report> {
    buffer.clear();
    match usize::try_from(bytes).ok().filter(|bytes| buffer.try_reserve_exact(*bytes).is_ok()) {
        Some(bytes) => {
            buffer.resize(bytes, 0);
            Ok(())
        }
        None => Err(Report::single(
            Diagnostic::new(ErrorCode::E0708, format!("there is no memory for an output of {bytes} bytes"))
                .help("ask for shorter outputs, or dispatch in parts"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        let mut buffer = vec![1; 3];
        assert!(fill_with_zeros(&mut buffer, u64::MAX).is_err_and(|report| report.codes().eq([ErrorCode::E0708])));
        assert!(fill_with_zeros(&mut buffer, 2).is_ok() && buffer == [0, 0]);
    }

    #[test]
    fn invocations_that_wait_for_each_other_are_bounded_in_both_evaluators() {
        let text = "program p {\n  workgroup 64\n  buffer out: output u32[1] @0\n\n  let x = gid.x\n  barrier.grid\n  \
                    atomic.add(out, 0, x)\n}\n";
        let program = vyre_foundation::text::parse("p", text).unwrap_or_else(|report| panic!("{report}"));
        let mut options = crate::Options { fuel: 1, ..crate::Options::default() };
        options.launch.grid = Some([1 << 25, 1, 1]);
        for result in [crate::run(&program, &[], &options), crate::bulk::run(&program, &[], &options)] {
            let Err(crate::RunError::Rejected(report)) = result else { panic!("{result:?}") };
            assert!(report.codes().eq([ErrorCode::E0708]), "{report}");
        }
    }
}
