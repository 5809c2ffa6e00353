//! The devices of a campaign side by side: what each has shown about each op, their roots, and where they differ.

use crate::create::campaign;
use crate::db::{Db, DbError};
use crate::runs::{Runs, classes};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use vyre_conform::Digest;
use vyre_conform::diff::{Kind, diff};
use vyre_conform::evidence::{OpEvidence, ProfileRoot, RunData, profiles};
use vyre_conform::ledger::LedgerError;

/// A device of a campaign.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Column {
    /// Its class.
    pub name: String,
    /// The device, for people.
    pub device: String,
    /// `holds`, `fails` or `none`.
    pub verdict: &'static str,
    /// Why there is none, if so.
    pub why: Option<String>,
    /// The root over all of its units.
    pub root: Digest,
    /// The roots of profiles, which devices that are right have in common.
    pub profiles: BTreeMap<String, ProfileRoot>,
}

/// Where two devices differ.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// Their classes.
    pub devices: [String; 2],
    /// Units that differ, by how.
    pub units: BTreeMap<&'static str, u64>,
    /// The first sections of these.
    pub sections: Vec<String>,
}

/// Ops by devices.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Matrix {
    /// The campaign.
    pub campaign: String,
    /// The devices.
    pub columns: Vec<Column>,
    /// By op: what each device has shown, in the order of the columns.
    pub rows: BTreeMap<String, Vec<String>>,
    /// The differences between the first device and each of the others.
    pub pairs: Vec<Pair>,
}

/// What a device has shown for an op, in few words.
fn cell(op: Option<&OpEvidence>) -> String {
    let Some(op) = op else { return "—".into() };
    if op.failed > 0 {
        return format!("{} FAIL", op.failed);
    }
    if op.tested == 0 {
        return if op.skipped > 0 { "skipped".into() } else { "not run".into() };
    }
    let class = op.class().map_or(String::new(), |class| class.to_string());
    match (op.skipped, op.not_run) {
        (0, 0) => class,
        (0, _) => format!("{class}, in part"),
        (_, _) => format!("{class}, some skipped"),
    }
}

impl Matrix {
    /// Reads all devices of a campaign, and gives the evidence of each as well.
    ///
    /// # Errors
    ///
    /// If the database cannot be asked, or what a device has shown is damaged.
    pub fn read(db: &Db, name: &str) -> Result<(Matrix, Vec<RunData>), LedgerError> {
        let io = |error: DbError| LedgerError::Io(db.place().into(), error.to_string());
        let mut connection = db.connect().map_err(io)?;
        let campaign = campaign(&mut connection, name).map_err(io)?;
        let (mut columns, mut all, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for class in classes(&mut connection, campaign.id).map_err(io)? {
            let name = class.name.clone();
            let run = Runs::of(db.connect().map_err(io)?, campaign.clone(), class).map_err(io)?;
            let data = RunData::of(&run, run.identity(), run.is_finished())?;
            if run.is_finished() {
                // A root that was seen once must be seen again. A user that may only read cannot store it, which costs only that.
                let _ = run.keep_root(data.root);
            }
            let verdict = data.verdict(|_| false, |_| false);
            columns.push(Column {
                name,
                device: data.info.device_name.clone(),
                verdict: verdict.word(),
                why: verdict.why().map(str::to_string),
                root: data.root,
                profiles: profiles(&data),
            });
            all.push(data);
            runs.push(run);
        }
        let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (at, data) in all.iter().enumerate() {
            for op in data.ops() {
                let row = rows.entry(op.op.clone()).or_insert_with(|| vec![cell(None); columns.len()]);
                row[at] = cell(Some(&op));
            }
        }
        let mut pairs = Vec::new();
        for n in 1..runs.len() {
            let found = diff((&runs[0], &runs[0].identity()), (&runs[n], &runs[n].identity()))?;
            let Some(found) = found else { continue };
            pairs.push(Pair {
                devices: [columns[0].name.clone(), columns[n].name.clone()],
                units: Kind::ALL.iter().map(|kind| (kind.name(), found.count(*kind))).filter(|(_, count)| *count > 0).collect(),
                sections: found.sections.keys().take(16).cloned().collect(),
            });
        }
        Ok((Matrix { campaign: campaign.name, columns, rows, pairs }, all))
    }

    /// The same for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let width = self.rows.keys().map(|op| op.chars().count()).max().unwrap_or(0).max(4);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.values().map(|row| row[at].chars().count());
                cells.chain([self.columns[at].name.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let line = |first: &str, cells: Vec<&str>| {
            let mut line = format!("{first:width$}");
            cells.iter().zip(&widths).for_each(|(cell, width)| {
                let _ = write!(line, "  {cell:width$}");
            });
            format!("{}\n", line.trim_end())
        };
        let mut text = line("op", self.columns.iter().map(|column| column.name.as_str()).collect());
        self.rows.iter().for_each(|(op, row)| text += &line(op, row.iter().map(String::as_str).collect()));
        for Column { name, device, verdict, why, root, .. } in &self.columns {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let _ = writeln!(text, "{name}: {verdict}{why}; root {root} ({device})");
        }
        text + &self.differences()
    }

    fn differences(&self) -> String {
        let mut text = String::new();
        for Pair { devices: [one, other], units, sections } in &self.pairs {
            if units.is_empty() {
                let _ = writeln!(text, "{one} and {other} gave the same bytes");
                continue;
            }
            let units: Vec<String> = units.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let _ = writeln!(text, "{other} against {one}: {} units; {}", units.join(", "), sections.join(", "));
        }
        text
    }

    /// The same in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let cells = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("## {}\n\n", self.campaign);
        text += &cells(["op"].into_iter().chain(self.columns.iter().map(|column| column.name.as_str())).collect());
        text += &cells(vec!["---"; self.columns.len() + 1]);
        for (op, row) in &self.rows {
            let op = format!("`{op}`");
            text += &cells([op.as_str()].into_iter().chain(row.iter().map(String::as_str)).collect());
        }
        text += "\n| device | verdict | root |\n|---|---|---|\n";
        for Column { name, device, verdict, root, .. } in &self.columns {
            let _ = writeln!(text, "| {name} ({device}) | {verdict} | `{root}` |");
        }
        format!("{text}\n{}", self.differences())
    }
}
