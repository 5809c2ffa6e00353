//! Check files: programs that say what must come out of them, so that the judge is whoever wrote the file.

use super::{Cases, Judge, Work};
use crate::checks::{self, EMBEDDED, Stated};
use crate::plan::profile;
use crate::space::Evidence;
use std::sync::LazyLock;
use vyre_foundation::ir::Program;

/// The dispatches of one check file.
pub struct CheckCases {
    op: String,
    name: String,
    file: &'static File,
}

/// A check file that says what comes of dispatches.
struct File {
    /// Below `checks/`.
    path: &'static str,
    bytes: &'static [u8],
    stated: Vec<Stated>,
}

/// What the files of vyre say about dispatches. Reading them takes longer than a list of names may, so it is done once.
static READ: LazyLock<Vec<File>> = LazyLock::new(|| {
    let read = |(path, bytes): &(&'static str, &'static [u8])| {
        let stated = checks::stated(bytes).unwrap_or_else(|problem| panic!("the check file {path}: {problem}"));
        File { path, bytes, stated }
    };
    EMBEDDED.iter().map(read).filter(|file| !file.stated.is_empty()).collect()
});

impl CheckCases {
    /// One for every check file of vyre that says what comes of a dispatch, whatever the order of its invocations: the op is its folder,
    /// `checks.run.atomics`, and the space its name.
    ///
    /// # Panics
    ///
    /// If a file is not a check file, which the tests of the language would have found.
    #[must_use]
    pub fn all() -> Vec<CheckCases> {
        READ.iter().map(CheckCases::new).collect()
    }

    fn new(file: &'static File) -> CheckCases {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
        let words = std::iter::once("checks").chain(folder.split('/').filter(|word| !word.is_empty()));
        let name = name.strip_suffix(".vyre").unwrap_or(name).to_string();
        CheckCases { op: words.collect::<Vec<_>>().join("."), name, file }
    }
}

impl Cases for CheckCases {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        &self.name
    }

    fn cases(&self) -> u64 {
        self.file.stated.len() as u64
    }

    fn evidence(&self) -> Evidence {
        Evidence::Boundary
    }

    fn profile(&self) -> String {
        let of = |run: &Stated| run.case.specialized().map_or_else(|_| "core".into(), |program| profile(&program));
        let mut profiles: Vec<String> = self.file.stated.iter().map(of).collect();
        profiles.dedup();
        if profiles.len() == 1 { profiles.remove(0) } else { "mixed".into() }
    }

    fn identity(&self) -> Vec<u8> {
        blake3::hash(self.file.bytes).as_bytes().to_vec()
    }

    fn case(&self, _: u64, number: u64) -> Work {
        self.file.stated[number as usize].case.clone().into()
    }

    fn judge(&self, _: u64, number: u64) -> Judge {
        Judge::Stated(self.file.stated[number as usize].outcome.clone())
    }

    fn program(&self) -> Option<&Program> {
        // With constants it is another program in each dispatch.
        let program = &self.file.stated.first()?.case.program;
        program.parts().consts.is_empty().then_some(program)
    }
}
