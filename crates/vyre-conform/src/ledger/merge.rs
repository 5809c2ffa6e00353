//! Shards of one run, each done by itself, put together: what one run without shards would have left.

use super::record::shard_of;
use super::{Controls, Identity, Ledger, LedgerError, Range, RunInfo, Store, UnitRecord, remark, root_of};
use crate::digest::Digest;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Units that are written at once.
const AT_ONCE: usize = 4096;

/// Why shards were not put together.
#[derive(Debug)]
pub enum MergeError {
    /// A ledger cannot be read or written.
    Ledger(LedgerError),
    /// They are not the shards of one run, or not all of them; what is wrong with which.
    NotOneRun(String),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Ledger(error) => error.fmt(f),
            MergeError::NotOneRun(why) => write!(f, "these are not all shards of one run: {why}"),
        }
    }
}

impl std::error::Error for MergeError {}

impl From<LedgerError> for MergeError {
    fn from(error: LedgerError) -> MergeError {
        MergeError::Ledger(error)
    }
}

/// A shard that was read.
struct Shard {
    path: PathBuf,
    ledger: Ledger,
    identity: Identity,
    number: u64,
}

/// Puts all shards of a run together in a folder, and gives the root. With `any_device` they may come from different devices, which is then
/// what the run says about its device.
///
/// # Errors
///
/// If one is missing, there twice, cut off, of another run, or of another device.
pub fn merge(shards: &[PathBuf], out: &Path, any_device: bool) -> Result<Digest, MergeError> {
    let not = |why: String| Err(MergeError::NotOneRun(why));
    let mut read = Vec::new();
    let mut of = None;
    for path in shards {
        let (ledger, identity, is_finished) = Ledger::read(path)?;
        let shown = path.display();
        if !is_finished {
            return not(format!("`{shown}` was interrupted; the command that made it resumes it"));
        }
        let Some((number, count)) = shard_of(&identity.settings) else {
            return not(format!("`{shown}` does not say which shard it is"));
        };
        if *of.get_or_insert(count) != count {
            return not(format!("`{shown}` is one of {count}, and others are of {}", of.unwrap_or(0)));
        }
        read.push(Shard { path: path.clone(), ledger, identity, number });
    }
    let count = of.unwrap_or(0);
    read.sort_by_key(|shard| shard.number);
    for number in 0..count {
        match read.iter().filter(|shard| shard.number == number).count() {
            1 => {}
            0 => return not(format!("shard {number} of {count} is missing")),
            times => return not(format!("shard {number} of {count} is given {times} times")),
        }
    }
    let Some(first) = read.first() else { return not("no shard is given".into()) };
    let whole = |shard: &Shard| Identity {
        settings: shard.identity.settings.replace(&format!("shard {} of {count}", shard.number), "shard 0 of 1"),
        device: if any_device { "any".into() } else { shard.identity.device.clone() },
        ..shard.identity.clone()
    };
    let identity = whole(first);
    for shard in &read {
        if let Some((what, one, other)) = identity.differences(&whole(shard)).first() {
            let hint = if what == "device" { "; --any-device treats them as one" } else { "" };
            return not(format!(
                "{what} is `{one}` in `{}` and `{other}` in `{}`{hint}",
                first.path.display(),
                shard.path.display()
            ));
        }
        if shard.ledger.sections()? != first.ledger.sections()? {
            return not(format!("`{}` has other sections than `{}`", shard.path.display(), first.path.display()));
        }
    }
    write(&read, out, &identity)
}

fn write(shards: &[Shard], out: &Path, identity: &Identity) -> Result<Digest, MergeError> {
    let mut units: BTreeMap<(String, u64), (u64, UnitRecord)> = BTreeMap::new();
    let mut twice = None;
    for shard in shards {
        shard.ledger.for_each_unit(&mut |section, record| {
            if let Some((other, record)) = units.insert((section.to_string(), record.first), (shard.number, record)) {
                twice = Some(format!("{section}:{} is in the shards {other} and {}", record.first, shard.number));
            }
        })?;
    }
    // Every unit is where its shard puts it: otherwise one is missing, or the plans differ.
    let count = shards.len() as u64;
    let misplaced = (0..).zip(&units).find(|(place, (_, (shard, _)))| place % count != *shard);
    let misplaced = misplaced.map(|(_, ((section, first), (shard, _)))| format!("{section}:{first} is not one of shard {shard}"));
    if let Some(why) = twice.or(misplaced) {
        return Err(MergeError::NotOneRun(why));
    }
    let mut ledger = Ledger::open(Some(out), identity)?;
    if ledger.is_resumed() {
        return Err(MergeError::NotOneRun(format!("`{}` already has a run; write to another folder", out.display())));
    }
    ledger.describe(&shards[0].ledger.sections()?)?;
    let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
    for ((section, first), (_, record)) in &units {
        leaves.entry(section.clone()).or_default().insert(*first, record.leaf(section));
    }
    let mut units = units.into_iter().map(|((section, _), (_, record))| (section, record));
    loop {
        let some: Vec<_> = units.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        ledger.commit(&Range { units: some, ..Range::default() })?;
    }
    let mut info = RunInfo { controls: Controls::default(), still_failing: Vec::new(), took_ms: 0, ..shards[0].ledger.info()? };
    for shard in shards {
        let its = shard.ledger.info()?;
        info.began = info.began.min(its.began);
        info.took_ms += its.took_ms;
        info.controls.join(its.controls);
        info.still_failing.extend(its.still_failing);
        let remarks = shard.ledger.remarks()?.into_iter();
        let remarks = remarks.filter_map(|(section, kind, what)| Some((section, remark::known(&kind)?, what))).collect();
        ledger.commit(&Range { failures: shard.ledger.failures()?, remarks, ..Range::default() })?;
    }
    info.command = info.command.replace(&format!(" --shard 0/{count}"), "");
    ledger.set_info(&info)?;
    let root = root_of(&leaves);
    ledger.finish(root)?;
    Ok(root)
}
