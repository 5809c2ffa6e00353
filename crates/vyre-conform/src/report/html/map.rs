//! The map of evidence, op by type.

use super::failures::failure_anchor;
use super::{NAME, anchor};
use crate::evidence::{Class, OpEvidence};
use crate::report::{Report, cut, grouped};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Entry {
    pub css: &'static str,
    pub letter: &'static str,
    pub words: &'static str,
    pub count: usize,
}

pub(super) struct Map {
    pub name: String,
    pub columns: Vec<String>,
    pub has_types: bool,
    pub is_wide: bool,
    pub rows: Vec<MapRow>,
}

pub(super) struct MapRow {
    pub name: String,
    pub cells: Vec<Option<MapCell>>,
}

pub(super) struct MapCell {
    pub css: &'static str,
    pub letter: &'static str,
    pub anchor: String,
    pub title: String,
}

/// What a cell of the map shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shade {
    Class(Class),
    Fails,
    Known,
    Skipped,
    NotRun,
}

impl Shade {
    const ALL: [Shade; 8] = [
        Shade::Class(Class::Exhaustive),
        Shade::Class(Class::Boundary),
        Shade::Class(Class::Sampled),
        Shade::Class(Class::Chosen),
        Shade::Fails,
        Shade::Known,
        Shade::Skipped,
        Shade::NotRun,
    ];

    /// Class of the style sheet, letter, and words for the legend.
    fn shown(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Shade::Class(Class::Exhaustive) => ("E", "E", "exhaustive"),
            Shade::Class(Class::Boundary) => ("B", "B", "boundary values"),
            Shade::Class(Class::Sampled) => ("S", "S", "sampled"),
            Shade::Class(Class::Chosen) => ("C", "C", "chosen cases"),
            Shade::Fails => ("F", "✕", "fails"),
            Shade::Known => ("K", "!", "known failure"),
            Shade::Skipped => ("skip", "–", "skipped"),
            Shade::NotRun => ("unrun", "", "not run"),
        }
    }
}

impl Report<'_> {
    pub(super) fn is_known(&self, op: &str) -> bool {
        let mut failing = self.run.sections.iter().filter(|section| section.info.op == op && section.seal.failed > 0);
        failing.all(|section| self.known.known.contains_key(&section.info.id))
    }

    fn shade(&self, op: &OpEvidence) -> Shade {
        match op.class() {
            _ if op.failed > 0 && self.is_known(&op.op) => Shade::Known,
            _ if op.failed > 0 => Shade::Fails,
            Some(class) => Shade::Class(class),
            None if op.skipped > 0 => Shade::Skipped,
            None => Shade::NotRun,
        }
    }

    /// A map for each family of ops, and how many ops there are of each shade.
    pub(super) fn maps(&self) -> (Vec<Map>, Vec<Entry>) {
        let mut families: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, &OpEvidence>>> = BTreeMap::new();
        let mut counts = Shade::ALL.map(|shade| (shade, 0));
        let by = Families::of(&self.ops);
        for op in &self.ops {
            let (family, name, of) = by.parts(&op.op);
            families.entry(family).or_default().entry(name).or_default().insert(of, op);
            let shade = self.shade(op);
            counts.iter_mut().filter(|(one, _)| *one == shade).for_each(|(_, count)| *count += 1);
        }
        let map = |(family, ops): (&str, BTreeMap<&str, BTreeMap<&str, &OpEvidence>>)| {
            let mut types: Vec<&str> =
                ops.values().flat_map(BTreeMap::keys).copied().collect::<BTreeSet<_>>().into_iter().collect();
            types.sort_by_key(|name| (type_rank(name), *name));
            let row = |(name, cells): (&str, BTreeMap<&str, &OpEvidence>)| MapRow {
                name: cut(name, NAME),
                cells: types.iter().map(|of| cells.get(of).map(|op| self.map_cell(op))).collect(),
            };
            Map {
                name: if family.is_empty() { "ops".into() } else { cut(family, NAME) },
                has_types: types != [""],
                is_wide: types.len() > 5,
                columns: types.iter().map(|name| cut(name, NAME)).collect(),
                rows: ops.into_iter().map(row).collect(),
            }
        };
        let entry = |(shade, count): (Shade, usize)| {
            let (css, letter, words) = shade.shown();
            Entry { css, letter, words, count }
        };
        (families.into_iter().map(map).collect(), counts.into_iter().filter(|(_, count)| *count > 0).map(entry).collect())
    }

    fn map_cell(&self, op: &OpEvidence) -> MapCell {
        let (css, letter, words) = self.shade(op).shown();
        let title = match op.failed {
            0 => format!("{}: {words}, {} cases", op.op, grouped(op.tested)),
            failed => format!("{}: {} of {} cases fail", op.op, grouped(failed), grouped(op.tested)),
        };
        let anchor = if op.failed > 0 { failure_anchor(&op.op) } else { anchor(&op.op) };
        MapCell { css, letter, anchor, title: cut(&title, NAME) }
    }
}

/// Names of one family; with more than these it is divided.
const NAMES: usize = 48;

/// How ops are divided into families: by the first word of their names, and where that is too large, by the first two.
pub(super) struct Families<'o>(BTreeSet<&'o str>);

impl<'o> Families<'o> {
    pub fn of(ops: &'o [OpEvidence]) -> Families<'o> {
        let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for op in ops {
            let path = op.op.split(':').next().unwrap_or("");
            names.entry(path.split('.').next().unwrap_or("")).or_default().insert(path);
        }
        Families(names.into_iter().filter(|(_, names)| names.len() > NAMES).map(|(first, _)| first).collect())
    }

    /// Family, name and type of an op: `ops.int.add:u32` is `add` of `ops.int` for `u32`.
    pub fn parts<'n>(&self, op: &'n str) -> (&'n str, &'n str, &'n str) {
        let (path, of) = op.split_once(':').unwrap_or((op, ""));
        let (first, rest) = path.split_once('.').unwrap_or(("", path));
        match rest.split_once('.') {
            Some((second, name)) if self.0.contains(first) => (&path[..first.len() + 1 + second.len()], name, of),
            Some(_) | None => (first, rest, of),
        }
    }
}

/// Types in the order in which people look for them; others follow by name.
fn type_rank(name: &str) -> usize {
    const ORDER: [&str; 18] = [
        "", "bool", "u32", "i32", "u64", "i64", "f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "u8", "i8", "u16", "i16", "i4",
        "fp4",
    ];
    ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len())
}
