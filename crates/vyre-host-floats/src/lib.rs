//! Float arithmetic on the host under the default float state, whatever the process around it has set.
//!
//! How a processor rounds, whether it flushes subnormals to zero and which exceptions end in a signal is the state of a register of
//! the thread (MXCSR on x86-64, FPCR on aarch64). Libraries change it, also by only being loaded (`-ffast-math` does), and threads
//! inherit it. Rust and LLVM assume the default: round to nearest even, subnormals kept, all exceptions masked. Under another state
//! the interpreter, the bulk evaluator, the folding passes and even the parsing and printing of numbers give other results, all of
//! them the same wrong ones, so no comparison among them notices.
//!
//! **Who calls it.** [`with_default_state`] stands at the fewest places that every use of host floats goes through:
//! - `vyre-reference`: `run`, `checked::check`, `faults::run` and `Bulk::run_into`, which are all its ways to evaluate a program;
//! - `vyre-foundation`: validation, which suggests literals of other types; `Pass::apply`, which folds; reading and writing one number
//!   as text; `values::decode`, which loads; a specialization constant as an f64;
//! - `vyre-driver-cpu`: the compiler, and every thread that runs workgroups, around all that it runs of a dispatch;
//! - `vyre-smith`: values that are drawn, and the reducer.
//!
//! Other threads and worker processes need nothing of their own: what they run goes through one of these. `vyre-scalar` does not call it,
//! because it is called for single values: whoever calls `vyre-scalar` directly computes under the state they have.
//!
//! **Cost.** Reading the register takes a few cycles, and it is written only if it differs, so nested calls are cheap.
//!
//! On other architectures, and under Miri, which has no inline assembly, there is nothing to set and bodies run as they are.

use std::hint::black_box;

#[cfg_attr(all(target_arch = "x86_64", not(miri)), path = "x86_64.rs")]
#[cfg_attr(all(target_arch = "aarch64", not(miri)), path = "aarch64.rs")]
#[cfg_attr(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri), path = "other.rs")]
mod register;

pub mod hostile;

/// Calls `body` under the default float state and gives the caller's back afterwards, also if `body` panics.
///
/// Flags that record past exceptions are not part of the state; they are the caller's again where the state had to be changed.
pub fn with_default_state<R>(body: impl FnOnce() -> R) -> R {
    let callers = register::read();
    let default = register::to_default(callers);
    if register::same_control(callers, default) {
        return apart(body);
    }
    let _restore = Restore(callers);
    register::write(default);
    apart(body)
}

/// Writes the state back, on return and on panic.
struct Restore(register::Bits);

impl Drop for Restore {
    fn drop(&mut self) {
        register::write(self.0);
    }
}

/// Calls `body` so that the compiler cannot move its arithmetic before the call or behind it.
///
/// To the compiler float arithmetic does not depend on the register, so it may move an addition past the instruction that writes it.
/// It may not move one out of a call to a function that it knows nothing about: not inlined, and behind a pointer that `black_box`
/// hides, so that it cannot find out that the function is pure and move the whole call.
fn apart<R, F: FnOnce() -> R>(body: F) -> R {
    #[inline(never)]
    fn call<R, F: FnOnce() -> R>(body: F) -> R {
        body()
    }
    black_box(call::<R, F> as fn(F) -> R)(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// What the state shows itself in: a subnormal result, a subnormal operand, an inexact quotient on either side of zero.
    fn probe() -> [u32; 4] {
        let f = |bits: u32| black_box(f32::from_bits(bits));
        [f(0x0080_0000) * f(0x3F00_0000), f(3) + f(0x0080_0000), f(0x3F80_0000) / f(0x4040_0000), f(0xBF80_0000) / f(0x4040_0000)]
            .map(f32::to_bits)
    }

    #[test]
    fn the_default_state_is_set_and_the_callers_given_back() {
        let expected = [0x0040_0000, 0x0080_0003, 0x3EAA_AAAB, 0xBEAA_AAAB];
        assert_eq!(probe(), expected);
        for state in hostile::states() {
            let found = hostile::under(state, || with_default_state(|| with_default_state(probe)));
            assert_eq!(found, expected, "{state}");
        }
    }

    /// The states do what their names say, or the tests that use them prove nothing. Those with unmasked exceptions would end in a
    /// signal here.
    #[test]
    fn the_states_are_hostile() {
        for state in hostile::states().filter(|state| !state.traps()) {
            let restore = hostile::set(state);
            let found = apart(probe);
            drop(restore);
            assert_ne!(found, probe(), "{state}");
        }
        assert_eq!(hostile::states().any(|state| state.traps()), cfg!(all(target_arch = "x86_64", not(miri))));
    }

    #[test]
    fn a_panic_gives_the_state_back() {
        for state in hostile::states() {
            let caught = hostile::under(state, || {
                catch_unwind(AssertUnwindSafe(|| {
                    with_default_state(|| std::panic::resume_unwind(Box::new("on purpose")));
                }))
            });
            assert!(caught.is_err(), "{state}");
        }
    }

    #[test]
    fn what_does_not_give_the_state_back_is_noticed() {
        let Some(state) = hostile::states().next() else { return };
        let kept = catch_unwind(|| hostile::under(state, || register::write(register::to_default(register::read()))));
        assert!(kept.is_err());
        assert_eq!(probe()[0], 0x0040_0000, "the state of the test itself is as before");
    }
}
