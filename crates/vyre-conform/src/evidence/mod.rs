//! What a run proves, read off its ledger once.
//!
//! [`RunData`] is everything that a ledger says, checked: the units have the root that the run ended with. From it come the classes of
//! evidence for each op ([`OpEvidence`]), the roots of profiles ([`ProfileRoot`]) and the verdict ([`Verdict`]), which certificates and
//! reports only write down.

mod bound;
mod class;
mod kills;
mod profile;

pub use bound::Bound;
pub use class::{Claim, Class, OpEvidence, Sizes};
pub use kills::{KillError, KillRates, Killed};
pub use profile::{ProfileRoot, profiles};

use crate::digest::Digest;
use crate::ledger::{Identity, Ledger, LedgerError, Places, RunInfo, Seal, SectionInfo, StillFailing, Store, remark};
use crate::report::{ParityFailure, ReducedFailure};
use crate::space::Evidence;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Everything that the ledger of a run says.
#[derive(Clone, PartialEq, Debug)]
pub struct RunData {
    /// The file that it was read from.
    pub path: PathBuf,
    /// What the run is about.
    pub identity: Identity,
    /// What is known about it as a whole.
    pub info: RunInfo,
    /// Whether it came to its end.
    pub is_finished: bool,
    /// The root over all units.
    pub root: Digest,
    /// Its parts, by name.
    pub sections: Vec<Section>,
    /// The failures that were kept, in the order in which they were found.
    pub failures: Vec<ParityFailure>,
    /// If the controls are not where the secret of the run puts them: what is wrong.
    pub misplaced: Option<String>,
}

/// A section of a run, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    /// What it is.
    pub info: SectionInfo,
    /// Whether the run said so; otherwise what is known follows from its name, and nothing is known about its space.
    pub is_described: bool,
    /// What its units come to.
    pub seal: Seal,
    /// Why the device did not run it, or a part of it.
    pub skipped: Option<String>,
    /// Why cases of it were not run, if the device hangs on them or on others like them.
    pub given_up: Option<String>,
    /// If something failed: the program.
    pub program: Option<String>,
    /// If something failed: the command that shows it again.
    pub again: Option<String>,
    /// If something failed whose program was made small: that.
    pub reduced: Option<ReducedFailure>,
    /// If something failed whose program could not be made small: why.
    pub unreduced: Option<String>,
}

impl Section {
    /// What its space proves, if that is known.
    #[must_use]
    pub fn evidence(&self) -> Option<Evidence> {
        self.is_described.then_some(self.info.evidence)
    }

    /// The command that shows the failure again: the program that was made small, if there is one.
    #[must_use]
    pub fn shown_again(&self) -> Option<&str> {
        self.reduced.as_ref().and_then(|reduced| reduced.again.as_deref()).or(self.again.as_deref())
    }

    /// Cases that the run was asked for and that were neither judged nor skipped: another shard's, or the run was cut off.
    #[must_use]
    pub fn not_run(&self) -> u64 {
        let done = self.seal.tested + self.seal.skipped;
        if self.is_described { self.info.cases.saturating_sub(done) } else { 0 }
    }

    /// Dispatches whose results were judged. Of a section that was run in part, the same part of its dispatches.
    #[must_use]
    pub fn launches(&self) -> u64 {
        if !self.is_described || self.info.cases == 0 {
            return 0;
        }
        let part = u128::from(self.info.launches) * u128::from(self.seal.tested.min(self.info.cases));
        (part / u128::from(self.info.cases)) as u64
    }
}

/// How many cases there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Units that were judged.
    pub units: u64,
    /// Cases that were judged.
    pub tested: u64,
    /// Those that hold.
    pub passed: u64,
    /// Those that do not.
    pub failed: u64,
    /// Cases that the device cannot run.
    pub skipped: u64,
    /// Cases that were asked for, and neither judged nor skipped.
    pub not_run: u64,
    /// Of those that were judged, the ones that the reference was asked about too.
    pub referred: u64,
    /// Dispatches.
    pub launches: u64,
}

/// Whether the bytes of a device are the reference's, as far as a run can say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything that was judged holds.
    Holds,
    /// Everything holds but what is known to fail, and that fails as it is known to.
    WithExceptions,
    /// Something does not hold.
    Fails,
    /// The run says nothing, and this is why.
    None(String),
}

impl Verdict {
    /// A word for it, for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::WithExceptions => "holds-with-exceptions",
            Verdict::Fails => "fails",
            Verdict::None(_) => "none",
        }
    }

    /// Why there is none, if so.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Verdict::None(why) => Some(why),
            Verdict::Holds | Verdict::WithExceptions | Verdict::Fails => None,
        }
    }
}

impl RunData {
    /// Reads a ledger: a file, or the one of the last run in a folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is damaged: of a run that has ended also if units were changed, lost or added since.
    pub fn read(path: &Path) -> Result<RunData, LedgerError> {
        let (ledger, identity, is_finished) = Ledger::read(path)?;
        RunData::of(&ledger, identity, is_finished)
    }

    /// The same from a ledger that is open.
    pub fn of(ledger: &dyn Store, identity: Identity, is_finished: bool) -> Result<RunData, LedgerError> {
        let seals = ledger.seal()?;
        let root = root_over(&seals);
        let units = seals.iter().map(|(_, seal)| seal.units).sum();
        let damaged = |what: String| Err(LedgerError::Damaged(ledger.path().into(), what));
        if let Some(ended) = ledger.root()?.filter(|ended| *ended != root) {
            return damaged(format!("its units have the root {root}, and the run ended with {ended}"));
        }
        if let Some(stored) = ledger.seals()? {
            // Equal roots have equal names; what can differ are sums that the root does not know.
            if let Some(((name, _), _)) = stored.iter().zip(&seals).find(|(stored, found)| stored != found) {
                return damaged(format!("the units of `{name}` are not those that its run ended with"));
            }
            if stored.len() != seals.len() {
                return damaged(format!("it has {} sections, and the run ended with {}", seals.len(), stored.len()));
            }
        }
        let mut remarks: BTreeMap<(String, String), String> =
            ledger.remarks()?.into_iter().map(|(section, kind, text)| ((section, kind), text)).collect();
        let mut remark = |section: &str, kind: &str| remarks.remove(&(section.to_string(), kind.to_string()));
        let mut infos: BTreeMap<String, SectionInfo> =
            ledger.sections()?.into_iter().map(|info| (info.id.clone(), info)).collect();
        let mut sections = BTreeMap::new();
        let mut add = |name: String, info: Option<SectionInfo>, seal: Seal| -> Result<(), LedgerError> {
            let reduced = remark(&name, remark::REDUCED).map(|text| serde_json::from_str(&text)).transpose();
            let malformed =
                |error| LedgerError::Damaged(ledger.path().into(), format!("the reduced program of `{name}`: {error}"));
            let section = Section {
                reduced: reduced.map_err(malformed)?,
                is_described: info.is_some(),
                info: info.unwrap_or_else(|| named(&name)),
                seal,
                skipped: remark(&name, remark::SKIPPED),
                given_up: remark(&name, remark::GIVEN_UP),
                program: remark(&name, remark::PROGRAM),
                again: remark(&name, remark::AGAIN),
                unreduced: remark(&name, remark::UNREDUCED),
            };
            sections.insert(name, section);
            Ok(())
        };
        for (name, seal) in seals {
            let info = infos.remove(&name);
            add(name, info, seal)?;
        }
        // What the run has and nobody ran.
        for (name, info) in infos {
            add(name, Some(info), Seal::default())?;
        }
        let info = ledger.info()?;
        let placed = remarks.into_keys().filter(|(_, kind)| kind == remark::CONTROL).map(|(place, _)| place).collect();
        let misplaced = match info.controls.places(units) {
            Some(places) if is_finished => misplaced(ledger, &places, placed)?,
            Some(_) | None => None,
        };
        Ok(RunData {
            path: ledger.path().into(),
            identity,
            info,
            misplaced,
            is_finished,
            root,
            sections: sections.into_values().collect(),
            failures: ledger.failures()?,
        })
    }

    /// The sums over all sections.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for section in &self.sections {
            let Seal { units, tested, failed, skipped, referred, .. } = &section.seal;
            sum.units += units;
            sum.tested += tested;
            sum.passed += tested - failed;
            sum.failed += failed;
            sum.skipped += skipped;
            sum.not_run += section.not_run();
            sum.referred += referred;
            sum.launches += section.launches();
        }
        sum
    }

    /// The evidence for each op, by name.
    #[must_use]
    pub fn ops(&self) -> Vec<OpEvidence> {
        class::ops(self)
    }

    /// The section of a unit or of a failure.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        let found = self.sections.binary_search_by(|section| section.info.id.as_str().cmp(name));
        found.ok().map(|n| &self.sections[n])
    }

    /// What the run says about its device. Sections that `is_expected` names are known to fail, and so are the cases of earlier runs that
    /// `is_still` names.
    #[must_use]
    pub fn verdict(&self, is_expected: impl Fn(&Section) -> bool, is_still: impl Fn(&StillFailing) -> bool) -> Verdict {
        let none = |why: String| Verdict::None(why);
        let controls = &self.info.controls;
        let totals = self.totals();
        if !self.is_finished {
            return none("the run is not finished; the same command resumes it".into());
        }
        if totals.tested == 0 {
            return none("nothing was judged".into());
        }
        let given_up = self.sections.iter().find(|section| section.given_up.is_some() && !is_expected(section));
        // A device that hangs on all that there is fails, although nothing can be planted in what it gives.
        let is_hung = controls.ran == 0 && given_up.is_some() && totals.failed > 0;
        if let Some(problem) = controls.problem().filter(|_| !is_hung).or_else(|| self.misplaced.clone()) {
            return none(problem);
        }
        let still = &self.info.still_failing;
        let mut failing = self.sections.iter().filter(|section| section.seal.failed > 0).peekable();
        let is_clean = failing.peek().is_none() && still.is_empty();
        if !failing.all(&is_expected) || !still.iter().all(is_still) {
            return Verdict::Fails;
        }
        match given_up {
            Some(section) => {
                let why = section.given_up.as_deref().unwrap_or_default();
                none(format!("{} was not run: {why}", section.info.id))
            }
            None if is_clean => Verdict::Holds,
            None => Verdict::WithExceptions,
        }
    }
}

/// What is wrong with the places of the controls of a run that has ended, if something is. A unit that the device cannot run, or hangs
/// on, may go without.
fn misplaced(ledger: &dyn Store, places: &[Places], mut placed: BTreeSet<String>) -> Result<Option<String>, LedgerError> {
    let (mut position, mut missing) = (0, None);
    ledger.for_each_unit(&mut |section, record| {
        // Shards take units in turn.
        let shards = places.len() as u64;
        if places[(position % shards) as usize].has(position / shards) {
            let place = format!("{section}:{}", record.first);
            let is_judged = record.skipped == 0 && record.tested == record.cases;
            if !placed.remove(&place) && is_judged {
                missing.get_or_insert(place);
            }
        }
        position += 1;
    })?;
    let missing = missing.map(|place| format!("{place} has no control, but the secret of the run puts one there"));
    let more = || placed.first().map(|place| format!("{place} has a control, but the secret of the run puts none there"));
    Ok(missing.or_else(more))
}

/// The root over sections, from their seals: what [`root_of`](crate::ledger::root_of) gives for their leaves.
fn root_over(seals: &[(String, Seal)]) -> Digest {
    let nodes: Vec<Digest> = seals.iter().map(|(name, seal)| Seal::node(name, seal.units, &seal.root)).collect();
    Digest::tree(&nodes)
}

/// What the name of a section says: `OP[:alt=NAME]:wg=N:SPACE`.
fn named(id: &str) -> SectionInfo {
    let (rest, space) = id.rsplit_once(':').unwrap_or((id, ""));
    let (rest, workgroup) = rest.rsplit_once(":wg=").unwrap_or((rest, "0"));
    let (op, alternative) = rest.split_once(":alt=").map_or((rest, None), |(op, name)| (op, Some(name.to_string())));
    SectionInfo {
        id: id.into(),
        op: op.into(),
        version: 0,
        alternative,
        workgroup: workgroup.parse().unwrap_or(0),
        space: space.into(),
        evidence: Evidence::Sampled,
        space_cases: 0,
        cases: 0,
        launches: 0,
        profile: "core".into(),
        outputs: Vec::new(),
        is_order_dependent: false,
    }
}
