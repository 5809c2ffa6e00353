//! Tests for whoever writes a backend, in one line.
//!
//! In `tests/conformance.rs` of the backend's crate:
//!
//! ```no_run
//! fn open() -> Result<Box<dyn vyre_driver::VyreBackend>, vyre_driver::BackendError> {
//!     vyre_driver::backend::registry::acquire("mine")
//! }
//!
//! vyre_conform::backend_tests!(open);
//! # // The line above has made a `main`.
//! ```
//!
//! As it stands that is one test per group. With
//!
//! ```toml
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! every check file, form and mistake is a test of its own, and `cargo test --test conformance -- checks/run/atomics` runs some of them.
//!
//! - `checks/…`: every check file of vyre.
//! - `forms/…`: every [form](vyre_worker::backend::Form) of dispatch, on simple kernels and on generated programs.
//! - `pipelines/…`: compiled once, and told nothing, something or everything again with every call.
//! - `mistakes/…`: what callers get wrong is refused by code, through every way to run, before anything runs.
//! - `threads/…`: the same backend and the same pipelines from several threads.
//! - `faults/…`: a device that fails at every call in turn. For backends over a [`Device`](vyre_driver::device::Device).
//! - `resident/…`: data that stay on the device.
//! - `allocations/…`: a thousand dispatches leave nothing behind.
//!
//! What a backend says it does not have is skipped, and told as such; a group in which nothing could be run at all fails.

mod allocations;
mod cases;
mod faults;
mod forms;
mod mistakes;
mod resident;
mod threads;

use crate::checks::{self, FileOutcome};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use vyre_driver::{Backend, BackendError, VyreBackend};
use vyre_worker::caught;

/// Gives a backend's crate its tests; see [`kit`](crate::kit). The function opens the backend, each time anew.
#[macro_export]
macro_rules! backend_tests {
    ($open:expr) => {
        $crate::backend_tests! {
            @groups $open;
            check_files "checks", forms "forms", pipelines "pipelines", mistakes "mistakes", threads "threads", faults "faults",
            resident "resident", allocations "allocations"
        }

        /// Without a harness, every test by itself.
        #[allow(dead_code, reason = "a crate with the usual harness has another")]
        fn main() -> ::std::process::ExitCode {
            $crate::kit::main($open)
        }
    };
    (@groups $open:expr; $($test:ident $group:literal),*) => {
        $(
            #[test]
            fn $test() {
                $crate::kit::group($open, $group);
            }
        )*
    };
}

/// What a function that opens a backend may give.
pub trait Opened {
    /// The backend, or why there is none.
    fn opened(self) -> Result<Box<dyn VyreBackend>, String>;
}

impl Opened for Box<dyn VyreBackend> {
    fn opened(self) -> Result<Box<dyn VyreBackend>, String> {
        Ok(self)
    }
}

impl Opened for Backend {
    fn opened(self) -> Result<Box<dyn VyreBackend>, String> {
        Ok(Box::new(self))
    }
}

impl<B: Opened, E: fmt::Display> Opened for Result<B, E> {
    fn opened(self) -> Result<Box<dyn VyreBackend>, String> {
        self.map_err(|error| error.to_string())?.opened()
    }
}

/// Opens the backend under test.
type Open = Arc<dyn Fn() -> Arc<dyn VyreBackend> + Send + Sync>;

/// How a test ended that did not fail. A test that fails panics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// It holds.
    Passed,
    /// The backend does not have what the test is about.
    Skipped(String),
}

/// One test of the kit.
pub struct KitTest {
    name: String,
    run: Box<dyn FnOnce() -> Done + Send>,
}

impl KitTest {
    fn new(name: impl Into<String>, open: &Open, run: impl FnOnce(&Open) -> Done + Send + 'static) -> KitTest {
        let open = open.clone();
        KitTest { name: name.into(), run: Box::new(move || run(&open)) }
    }

    /// `group/name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// What does not hold.
    pub fn run(self) -> Result<Done, String> {
        caught(self.run)
    }
}

/// Every test of the kit for a backend.
pub fn tests<O: Opened>(open: impl Fn() -> O + Send + Sync + 'static) -> Vec<KitTest> {
    let open: Open = Arc::new(move || match open().opened() {
        Ok(backend) => Arc::from(backend),
        Err(error) => panic!("the backend cannot be opened: {error}"),
    });
    let check_files = checks::EMBEDDED.iter().map(|(name, bytes)| {
        let name = format!("checks/{}", name.trim_end_matches(".vyre"));
        KitTest::new(name, &open, move |open| check_file(open, bytes))
    });
    let groups = [
        forms::tests(&open),
        mistakes::tests(&open),
        threads::tests(&open),
        faults::tests(&open),
        resident::tests(&open),
        allocations::tests(&open),
    ];
    check_files.chain(groups.into_iter().flatten()).collect()
}

fn check_file(open: &Open, bytes: &[u8]) -> Done {
    let verdict = match checks::on_backend(&*open(), bytes) {
        Ok(verdict) => verdict,
        Err(problem) => panic!("{problem}"),
    };
    let list = |problems: &[checks::Problem]| -> Vec<String> {
        problems.iter().map(|problem| format!("line {}: {}", problem.line, problem.text)).collect()
    };
    match verdict.outcome() {
        FileOutcome::Passed => Done::Passed,
        FileOutcome::Skipped => Done::Skipped(list(&verdict.skips).join("; ")),
        FileOutcome::Failed => panic!("{}", list(&verdict.failures).join("\n")),
    }
}

/// Runs the tests of the process's command line, each under its own name.
pub fn main<O: Opened>(open: impl Fn() -> O + Send + Sync + 'static) -> ExitCode {
    let trial = |test: KitTest| {
        Trial::ignorable_test(test.name.clone(), move || match test.run() {
            Ok(Done::Passed) => Ok(Completion::Completed),
            Ok(Done::Skipped(why)) => Ok(Completion::ignored_with(why)),
            Err(said) => Err(Failed::from(said)),
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests(open).into_iter().map(trial).collect()).exit_code()
}

/// Runs the tests of one group; panics with what does not hold, and if everything is skipped that has to be there.
pub fn group<O: Opened>(open: impl Fn() -> O + Send + Sync + 'static, group: &str) {
    let mut failed = Vec::new();
    let (mut passed, mut skipped) = (0, 0);
    for test in tests(open).into_iter().filter(|test| test.name.split('/').next() == Some(group)) {
        let name = test.name.clone();
        match test.run() {
            Ok(Done::Passed) => passed += 1,
            Ok(Done::Skipped(why)) => {
                skipped += 1;
                println!("skipped {name}: {why}");
            }
            Err(said) => failed.push(format!("{name}: {said}")),
        }
    }
    println!("{group}: {passed} passed, {skipped} skipped, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Of these every backend can do something.
    let is_optional = ["faults", "resident", "allocations"].contains(&group);
    assert!(passed > 0 || is_optional, "no test of `{group}` could be run: {skipped} skipped");
}

/// Whether a backend says that it does not have something, and what.
fn lacks<T>(result: &Result<T, BackendError>) -> Option<String> {
    match result {
        Err(error @ BackendError::UnsupportedFeature { .. }) => Some(error.message()),
        Err(_) | Ok(_) => None,
    }
}

/// The backend, if it has resident data.
fn with_resident(open: &Open) -> Result<Arc<dyn VyreBackend>, Done> {
    let backend = open();
    let first = backend.allocate_resident(4);
    match (lacks(&first), first) {
        (Some(what), _) => Err(Done::Skipped(what)),
        (None, Ok(resource)) => {
            backend.free_resident(resource).unwrap_or_else(|error| panic!("what was allocated cannot be freed: {error}"));
            Ok(backend)
        }
        (None, Err(error)) => panic!("four bytes cannot be allocated: {error}"),
    }
}
