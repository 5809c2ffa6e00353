//! What can be chosen about the device.

use std::ffi::OsStr;
use std::num::NonZero;
use vyre_driver::BackendError;

/// Threads at most, whoever asks for more.
const MAX_THREADS: u32 = 1024;

/// How kernels are run. The bytes are the same whatever is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Threads that a dispatch may take; as many as the process can use if nothing is said.
    pub threads: Option<NonZero<u32>>,
    /// Whether every kernel is left to the bulk evaluator.
    pub portable: bool,
}

impl Options {
    /// What `VYRE_CPU` and `VYRE_CPU_THREADS` say.
    ///
    /// # Errors
    ///
    /// If they say something that does not exist.
    pub fn from_environment() -> Result<Options, BackendError> {
        Options::read(std::env::var_os("VYRE_CPU").as_deref(), std::env::var_os("VYRE_CPU_THREADS").as_deref())
    }

    fn read(tier: Option<&OsStr>, threads: Option<&OsStr>) -> Result<Options, BackendError> {
        let portable = match tier.map(|tier| tier.to_str()) {
            None | Some(Some("" | "auto")) => false,
            Some(Some("portable")) => true,
            Some(_) => return Err(wrong("VYRE_CPU", tier, "`portable` or `auto`")),
        };
        let number = |text: &str| text.parse::<NonZero<u32>>().ok().filter(|threads| threads.get() <= MAX_THREADS);
        let threads = match threads.map(|threads| threads.to_str()) {
            None | Some(Some("")) => None,
            Some(text) => match text.and_then(number) {
                Some(number) => Some(number),
                None => return Err(wrong("VYRE_CPU_THREADS", threads, &format!("a number from 1 to {MAX_THREADS}"))),
            },
        };
        Ok(Options { threads, portable })
    }

    /// Threads that a dispatch may take.
    pub(crate) fn thread_count(&self) -> u32 {
        let available = || std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX));
        self.threads.map_or_else(available, NonZero::get).min(MAX_THREADS)
    }
}

fn wrong(name: &str, found: Option<&OsStr>, expected: &str) -> BackendError {
    let found = found.unwrap_or_default().to_string_lossy();
    BackendError::new(format!("{name} is `{found}`. Fix: set it to {expected}, or leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tier: Option<&str>, threads: Option<&str>) -> Result<Options, String> {
        Options::read(tier.map(OsStr::new), threads.map(OsStr::new)).map_err(|error| error.message())
    }

    #[test]
    fn the_environment_is_read_and_mistakes_are_told() {
        let threads = NonZero::new(7);
        assert_eq!(read(None, None), Ok(Options::default()));
        assert_eq!(read(Some(""), Some("")), Ok(Options::default()));
        assert_eq!(read(Some("portable"), Some("7")), Ok(Options { threads, portable: true }));
        assert_eq!(read(Some("auto"), Some("7")), Ok(Options { threads, portable: false }));
        for (tier, threads, named) in [
            (Some("fast"), None, "VYRE_CPU is `fast`"),
            (None, Some("0"), "VYRE_CPU_THREADS is `0`"),
            (None, Some("-1"), "VYRE_CPU_THREADS is `-1`"),
            (None, Some("many"), "VYRE_CPU_THREADS is `many`"),
            (None, Some("1025"), "VYRE_CPU_THREADS is `1025`"),
        ] {
            let message = read(tier, threads).unwrap_err();
            assert!(message.contains(named) && message.contains("Fix: "), "{message}");
        }
    }
}
