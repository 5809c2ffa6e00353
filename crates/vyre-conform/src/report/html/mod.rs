//! A run as one HTML page that needs nothing else: no script, no font, no picture from elsewhere.
//!
//! Its size follows the ops and not the cases: what could be long is cut or counted. Every text goes through the template's escaping;
//! the two cells that are marked safe hold hex digits and tags that are written here.

mod failures;
mod map;

use super::{Report, cut, duration, grouped};
use crate::date::moment;
use crate::digest::Digest;
use crate::evidence::{Claim, Class, OpEvidence, Verdict};
use askama::Template;
use failures::Failure;
use map::{Entry, Families, Map};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Ops that fail that are linked from the top.
const JUMPS: usize = 16;
/// Characters of a program, of a message, and of a name.
const PROGRAM: usize = 6000;
const MESSAGE: usize = 1200;
const NAME: usize = 160;
/// Rows of tables that are not about ops.
const ROWS: usize = 200;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    tone: &'static str,
    headline: String,
    reason: String,
    backend: String,
    device_name: String,
    tier: Option<String>,
    began: Option<String>,
    tiles: Vec<Tile>,
    jumps: Vec<Jump>,
    more_jumps: usize,
    problems: Vec<String>,
    failures_note: String,
    failures: Vec<Failure>,
    legend: Vec<Entry>,
    maps: Vec<Map>,
    profiles: Vec<Profile>,
    controls: String,
    kills: Option<Kills>,
    sizes: Vec<Size>,
    has_unconfirmed: bool,
    skips: Vec<Skip>,
    groups: Vec<Group>,
    facts: Vec<(String, String, bool)>,
    command: String,
}

struct Jump {
    tone: &'static str,
    anchor: String,
    op: String,
}

struct Tile {
    label: &'static str,
    value: String,
    tone: &'static str,
}

struct Profile {
    name: String,
    state: &'static str,
    tone: &'static str,
    units: String,
    cases: String,
    left_out: String,
    root: String,
    short: String,
}

struct Kills {
    all: String,
    classes: Vec<Kill>,
}

struct Kill {
    class: String,
    killed: u64,
    of: u64,
    rate: String,
    low: String,
    width: String,
}

struct Size {
    size: u32,
    ops: String,
    is_confirmed: bool,
}

struct Skip {
    reason: String,
    cases: String,
    sections: String,
}

struct Group {
    name: String,
    note: String,
    is_open: bool,
    ops: Vec<Op>,
}

struct Op {
    op: String,
    anchor: String,
    claims: Vec<String>,
    tested: String,
    launches: String,
}

impl Report<'_> {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let run = self.run;
        let (maps, legend) = self.maps();
        let (failures, failures_note) = self.failure_cards();
        let jump = |card: &Failure| Jump { tone: card.tone, anchor: card.anchor.clone(), op: card.op.clone() };
        let jumps: Vec<Jump> = failures.iter().take(JUMPS).map(jump).collect();
        let sizes = self.sizes();
        let page = Page {
            tone: match self.verdict {
                Verdict::Holds => "holds",
                Verdict::WithExceptions => "exceptions",
                Verdict::Fails => "fails",
                Verdict::None(_) => "none",
            },
            headline: self.headline(),
            reason: cut(&self.reason(), MESSAGE),
            backend: cut(&run.identity.backend, NAME),
            device_name: cut(&run.info.device_name, NAME),
            tier: run.info.tier.as_deref().map(|tier| cut(tier, NAME)),
            began: Some(run.info.began).filter(|time| *time > 0).map(moment),
            tiles: self.tiles(),
            more_jumps: self.failing().len().saturating_sub(jumps.len()),
            jumps,
            problems: self.known.problems.iter().take(ROWS).map(|problem| cut(&problem.to_string(), MESSAGE)).collect(),
            failures_note,
            failures,
            legend,
            maps,
            profiles: self.profile_rows(),
            controls: self.controls(),
            kills: self.kill_rows(),
            has_unconfirmed: sizes.iter().any(|size| !size.is_confirmed),
            sizes,
            skips: self.skip_rows(),
            groups: self.groups(),
            facts: self.facts(),
            command: cut(&run.info.command, MESSAGE),
        };
        // Only a writer can fail, and a string does not.
        page.render().unwrap_or_default()
    }

    fn tiles(&self) -> Vec<Tile> {
        let totals = self.totals;
        let tile = |label, value, tone| Tile { label, value, tone };
        let mut tiles = vec![
            tile("cases judged", grouped(totals.tested), ""),
            tile("fail", grouped(totals.failed), if totals.failed > 0 { "bad" } else { "" }),
            tile("skipped", grouped(totals.skipped), if totals.skipped > 0 { "warn" } else { "" }),
        ];
        if totals.not_run > 0 {
            tiles.push(tile("not run", grouped(totals.not_run), "warn"));
        }
        tiles.extend([
            tile("launches", grouped(totals.launches), ""),
            tile("by the reference too", grouped(totals.referred), ""),
            tile("ops", grouped(self.ops.len() as u64), ""),
            tile("time", duration(self.run.info.took_ms), ""),
        ]);
        tiles
    }

    fn profile_rows(&self) -> Vec<Profile> {
        let row = |(name, profile): (&String, &crate::evidence::ProfileRoot)| {
            let (state, tone) = match profile {
                profile if profile.is_claimed() => ("shown", "holds"),
                profile if profile.failed > 0 => ("fails", "fails"),
                profile if profile.units == 0 => ("not run", "none"),
                _ => ("in part", "exceptions"),
            };
            let left_out = [
                (profile.skipped_units, "units skipped"),
                (profile.order_dependent_units, "units whose result may depend on order"),
                (profile.not_run, "cases not run"),
            ];
            let left_out: Vec<String> = left_out
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", grouped(count)))
                .collect();
            Profile {
                name: cut(name, NAME),
                state,
                tone,
                units: grouped(profile.units),
                cases: grouped(profile.cases),
                left_out: if left_out.is_empty() { "nothing".into() } else { left_out.join(", ") },
                root: profile.root.to_string(),
                short: short(&profile.root),
            }
        };
        self.profiles.iter().take(ROWS).map(row).collect()
    }

    fn controls(&self) -> String {
        let controls = &self.run.info.controls;
        match (controls.ran, controls.survived.first()) {
            (0, _) => "The run has no controls: nothing shows that a fault would have been noticed.".into(),
            (ran, None) if controls.caught == ran => {
                format!("{ran} units had a planted fault, at places that were secret and fixed beforehand. All were noticed.")
            }
            (ran, first) => format!(
                "Of {ran} units with a planted fault only {} were noticed{}. So the run has no verdict.",
                controls.caught,
                first.map_or(String::new(), |what| cut(&format!(" (not {what})"), MESSAGE))
            ),
        }
    }

    fn kill_rows(&self) -> Option<Kills> {
        let rates = self.kills?;
        let percent = |part: f64| format!("{:.2}", part * 100.0);
        let classes = rates.classes.iter().take(ROWS).map(|(class, killed)| {
            let (low, high) = killed.interval();
            Kill {
                class: cut(class, NAME),
                killed: killed.killed,
                of: killed.of,
                rate: percent(killed.rate()),
                low: percent(low),
                width: percent(high - low),
            }
        });
        let all = rates.all();
        Some(Kills { all: format!("{} of {}", all.killed, all.of), classes: classes.collect() })
    }

    fn sizes(&self) -> Vec<Size> {
        let mut sizes: BTreeMap<(u32, Reverse<bool>), u64> = BTreeMap::new();
        for op in &self.ops {
            for (list, is_confirmed) in [(&op.sizes.confirmed, true), (&op.sizes.not_confirmed, false)] {
                list.iter().for_each(|size| *sizes.entry((*size, Reverse(is_confirmed))).or_default() += 1);
            }
        }
        let size = |((size, Reverse(is_confirmed)), ops): ((u32, Reverse<bool>), u64)| {
            let ops = if ops == 1 { "1 op".into() } else { format!("{} ops", grouped(ops)) };
            Size { size, ops, is_confirmed }
        };
        sizes.into_iter().take(ROWS).map(size).collect()
    }

    fn skip_rows(&self) -> Vec<Skip> {
        let row = |(reason, (sections, cases)): (&str, (Vec<&str>, u64))| {
            const NAMED: usize = 6;
            let mut named = sections.iter().take(NAMED).map(|name| cut(name, NAME)).collect::<Vec<_>>().join(", ");
            if sections.len() > NAMED {
                named += &format!(" and {} more", sections.len() - NAMED);
            }
            Skip { reason: cut(reason, MESSAGE), cases: grouped(cases), sections: named }
        };
        self.skips().into_iter().take(ROWS).map(row).collect()
    }

    fn groups(&self) -> Vec<Group> {
        let mut families: BTreeMap<&str, Vec<&OpEvidence>> = BTreeMap::new();
        let by = Families::of(&self.ops);
        for op in &self.ops {
            families.entry(by.parts(&op.op).0).or_default().push(op);
        }
        let is_open = self.ops.len() <= 12;
        let group = |(family, ops): (&str, Vec<&OpEvidence>)| Group {
            name: if family.is_empty() { "ops".into() } else { cut(family, NAME) },
            note: if ops.len() == 1 { "1 op".into() } else { format!("{} ops", ops.len()) },
            is_open,
            ops: ops.into_iter().map(row_of_op).collect(),
        };
        families.into_iter().map(group).collect()
    }

    fn facts(&self) -> Vec<(String, String, bool)> {
        let run = self.run;
        let identity = &run.identity;
        let text = |name: &str, value: String| (name.to_string(), cut(&value, MESSAGE), true);
        let mut facts = vec![
            text("backend", identity.backend.clone()),
            text("version", identity.version.clone().unwrap_or_else(|| "not said".into())),
            text("device", identity.device.clone()),
            text("suite", identity.suite.clone()),
            text("selection", identity.selection.clone()),
            text("settings", identity.settings.clone()),
            text("root", run.root.to_string()),
        ];
        facts.extend(run.info.versions.iter().take(ROWS).map(|(name, version)| (cut(name, NAME), cut(version, NAME), true)));
        if let Some(commitment) = run.info.controls.commitment {
            facts.push(text("commitment to the controls", commitment.to_string()));
        }
        if let Some(secret) = run.info.controls.secret {
            facts.push(text("their secret", secret.to_string()));
        }
        facts
    }
}

fn row_of_op(op: &OpEvidence) -> Op {
    let mut claims: Vec<String> = op.claims.iter().map(claim).collect();
    if op.failed > 0 {
        claims.insert(0, format!("fails: {} cases", grouped(op.failed)));
    }
    if op.skipped > 0 {
        let reason = op.skips.values().next().map_or(String::new(), |reason| format!(": {reason}"));
        claims.push(cut(&format!("skipped: {} cases{reason}", grouped(op.skipped)), 2 * NAME));
    }
    if op.not_run > 0 {
        claims.push(format!("not run: {} cases", grouped(op.not_run)));
    }
    const MOST: usize = 12;
    if claims.len() > MOST {
        let more = claims.len() - MOST;
        claims.truncate(MOST);
        claims.push(format!("and {more} more"));
    }
    Op { op: cut(&op.op, NAME), anchor: anchor(&op.op), claims, tested: grouped(op.tested), launches: grouped(op.launches()) }
}

/// A claim in one line.
fn claim(claim: &Claim) -> String {
    let sizes: Vec<String> = claim.workgroups.iter().take(16).map(u32::to_string).collect();
    let program = claim.alternative.as_ref().map_or(String::new(), |name| format!(" [{name}]"));
    let values = match (claim.class, claim.bound()) {
        (Class::Exhaustive | Class::Boundary, _) => format!("all {}", grouped(claim.values)),
        (Class::Sampled, Some(bound)) => bound.to_string(),
        (Class::Sampled | Class::Chosen, _) if claim.of > claim.values => {
            format!("{} of {}", grouped(claim.values), grouped(claim.of))
        }
        (Class::Sampled | Class::Chosen, _) => grouped(claim.values),
    };
    cut(&format!("{} {}{program}: {values}, at {}", claim.class, claim.space, sizes.join(" ")), 2 * NAME)
}

/// The name of an op as a place in the page.
fn anchor(op: &str) -> String {
    format!("op-{}", &Digest::of([op]).to_string()[..12])
}

fn short(digest: &Digest) -> String {
    let text = digest.to_string();
    format!("{}…{}", &text[..10], &text[54..])
}
