//! A test program with one server for all of its tests, which ends with the program: the standard harness has no place to end it.

use crate::Server;
use libtest_mimic::{Arguments, Failed, Trial};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// A test: its name, and what it does with the server.
pub type Test = (&'static str, fn(&mut Server));

/// Runs the tests that the command line asks for, one after the other.
#[must_use]
pub fn run(tests: &[Test]) -> ExitCode {
    let arguments = Arguments::from_args();
    // Listing needs no server.
    let server = (!arguments.list).then(|| Server::start(&[]));
    let shared = Arc::new(Mutex::new(server));
    let trial = |(name, test): &Test| {
        let (shared, test) = (shared.clone(), *test);
        Trial::test(*name, move || {
            let mut server = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let server = server.as_mut().expect("it was started");
            catch_unwind(AssertUnwindSafe(|| test(server))).map_err(|said| {
                let text = said.downcast_ref::<String>().cloned();
                Failed::from(text.or_else(|| said.downcast_ref::<&str>().map(|text| (*text).to_string())).unwrap_or_default())
            })
        })
    };
    let conclusion = libtest_mimic::run(&arguments, tests.iter().map(trial).collect());
    drop(shared);
    conclusion.exit_code()
}
