//! Memory that machine code runs in: written first, then made executable, and never both at once.
//!
//! Each piece of code has pages of its own, so that it begins at a multiple of every alignment that constants need and goes away as a
//! whole. Who runs it keeps the [`CodeMemory`] until the last call has returned.

use memmap2::{Mmap, MmapMut};
use std::{fmt, io};

/// Code that can be run, until it is dropped.
pub(crate) struct CodeMemory {
    pages: Mmap,
}

/// Why code cannot be run.
#[derive(Debug)]
pub(crate) enum NoCodeMemory {
    /// There is not enough memory for this many bytes.
    Exhausted(usize, io::Error),
    /// The process is not allowed to make memory executable.
    Forbidden(io::Error),
}

impl fmt::Display for NoCodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCodeMemory::Exhausted(bytes, error) => write!(f, "no memory for {bytes} bytes of machine code: {error}"),
            NoCodeMemory::Forbidden(error) => write!(f, "this process may not make memory executable: {error}"),
        }
    }
}

impl std::error::Error for NoCodeMemory {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NoCodeMemory::Exhausted(_, error) | NoCodeMemory::Forbidden(error) => Some(error),
        }
    }
}

impl CodeMemory {
    /// Copies code to memory of its own and makes it executable.
    pub fn new(bytes: &[u8]) -> Result<CodeMemory, NoCodeMemory> {
        // Pages of no bytes do not exist.
        let len = bytes.len().max(1);
        let mut pages = MmapMut::map_anon(len).map_err(|error| NoCodeMemory::Exhausted(len, error))?;
        pages[..bytes.len()].copy_from_slice(bytes);
        let pages = pages.make_exec().map_err(NoCodeMemory::Forbidden)?;
        Ok(CodeMemory { pages })
    }

    /// The first byte, at a multiple of the size of a page. It is there as long as `self`.
    pub fn entry(&self) -> *const u8 {
        self.pages.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says about the page that has an address.
    #[cfg(target_os = "linux")]
    fn permissions(address: *const u8) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(&(address as usize)).then(|| rest[..3].to_owned())
        })
    }

    #[test]
    fn code_runs_and_cannot_be_written() {
        // mov eax, 42; ret
        let code = CodeMemory::new(&[0xB8, 42, 0, 0, 0, 0xC3]).unwrap();
        assert_eq!(code.entry() as usize % 32, 0);
        // SAFETY: these bytes are a function that takes nothing and gives a number.
        let function: extern "sysv64" fn() -> u32 = unsafe { std::mem::transmute(code.entry()) };
        assert_eq!(function(), 42);
        #[cfg(target_os = "linux")]
        assert_eq!(permissions(code.entry()).as_deref(), Some("r-x"));
    }

    #[test]
    fn no_code_is_fine() {
        CodeMemory::new(&[]).unwrap();
    }

    #[test]
    fn pages_go_back() {
        // More than the mappings that Linux lets a process have.
        for _ in 0..70_000 {
            CodeMemory::new(&[0xC3]).unwrap();
        }
    }

    /// A process that Linux no longer lets turn written memory into code. What it forbids cannot be allowed again, so this test runs in
    /// a process of its own.
    #[cfg(target_os = "linux")]
    #[test]
    fn where_executable_memory_is_forbidden_the_error_says_so() {
        const ALONE: &str = "VYRE_TEST_WITHOUT_EXECUTABLE_MEMORY";
        if std::env::var_os(ALONE).is_none() {
            let test = std::thread::current().name().unwrap().to_owned();
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args([&test, "--exact"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
            return;
        }
        const PR_SET_MDWE: i32 = 65;
        const PR_MDWE_REFUSE_EXEC_GAIN: u64 = 1;
        // SAFETY: changes only what later calls to the system may do.
        if unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0u64, 0u64, 0u64) } != 0 {
            eprintln!("this kernel is older than 6.3 and cannot forbid it");
            return;
        }
        let error = CodeMemory::new(&[0xC3]).err();
        assert!(matches!(error, Some(NoCodeMemory::Forbidden(_))), "{error:?}");
    }
}
