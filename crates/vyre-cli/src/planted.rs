//! The CPU backend with faults in its compiler, by name: `mutant:cpu/NAME`.

use std::num::NonZero;
use vyre::cpu::faults::{Fault, shows_in};
use vyre::cpu::{Options, faulty_cpu_device};
use vyre::device::backend;
use vyre::text::suggest::nearest;
use vyre_conform::mutants::PREFIX;
use vyre_conform::teeth::Faulty;
use vyre_worker::Subject;
use vyre_worker::backend::{BackendSubject, Form, PREFIX as BACKEND};

const CLASS: &str = "cpu";

/// The backend with a fault, made by its name, and the one without.
pub fn faulty<'a>(fault: Fault, make: impl Fn(&str) -> Result<Box<dyn Subject>, String> + Sync + Copy + 'a) -> Faulty<'a> {
    let name = format!("{PREFIX}{CLASS}/{}", fault.name());
    let right = format!("{BACKEND}{CLASS}/{}", Form::Timed);
    Faulty::new(CLASS, fault.name(), move || make(&name), move || make(&right), move |program| shows_in(fault, program))
}

/// Every subject of these, with what goes wrong.
pub fn list() -> impl Iterator<Item = (String, String)> {
    Fault::ALL.iter().map(|fault| (format!("{PREFIX}{CLASS}/{}", fault.name()), fault.about().to_string()))
}

/// The subject with this name, if it is one of these.
pub fn subject(name: &str) -> Option<Result<Box<dyn Subject>, String>> {
    let wanted = name.strip_prefix(PREFIX)?.strip_prefix(CLASS)?.strip_prefix('/')?;
    let Some(fault) = Fault::ALL.iter().copied().find(|fault| fault.name() == wanted) else {
        let meant = nearest(wanted, Fault::ALL.iter().map(|fault| fault.name())).map(|name| format!("; did you mean `{name}`?"));
        return Some(Err(format!("no fault `{wanted}` is planted in the compiler for CPUs{}", meant.unwrap_or_default())));
    };
    // Threads even for small dispatches, so that what only several of them show is shown.
    let options = Options { threads: NonZero::new(4), ..Options::default() };
    let open = move || Ok(backend(faulty_cpu_device(options, fault)).into());
    Some(Ok(Box::new(BackendSubject::over(name, Form::Timed, open))))
}
