//! Everything that a run is asked for, by number.
//!
//! A plan is a list of sections, and each of them is a range of cases cut into units. Nothing is kept per unit: the unit of any number is
//! found by searching the sections, so a plan of a billion units is as small as its list of sections.

use crate::cases::Cases;
use crate::digest::Digest;
use crate::ledger::SectionInfo;
use crate::query::Selection;
use crate::space::{Evidence, Space, derived};
use crate::spec::OpSpec;
use crate::stream::UNIT;
use std::sync::Arc;
use vyre_foundation::ir::{Body, Node, Program};
use vyre_foundation::kernel::Kernel;
use vyre_spec::op::Law;

/// Cases of a unit if each is a dispatch of its own.
const DISPATCHES: u64 = 64;

/// How much of the suite is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// A minute: whether anything is wrong.
    Smoke,
    /// A quarter of an hour: before a release.
    Standard,
    /// Everything that the suite has, which takes as long as it takes.
    Deep,
}

impl Tier {
    /// All of them.
    pub const ALL: [Tier; 3] = [Tier::Smoke, Tier::Standard, Tier::Deep];

    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Smoke => "smoke",
            Tier::Standard => "standard",
            Tier::Deep => "deep",
        }
    }

    /// Whether it tries a program of an op at the workgroup size of this place in the op's list: the op's own program at all of them, and
    /// in a minute each alternative at one, which is another for another op.
    fn takes(self, spec: &OpSpec, alternative: Option<&str>, place: usize) -> bool {
        match (self, alternative) {
            (Tier::Standard | Tier::Deep, _) | (Tier::Smoke, None) => true,
            (Tier::Smoke, Some(name)) => {
                let Digest([chosen, ..]) = Digest::of([spec.id.as_bytes(), name.as_bytes()]);
                usize::from(chosen) % spec.workgroup_sizes.len() == place
            }
        }
    }

    /// How many dispatches with programs of their own it takes of so many. Those that are looked at for something rare are large.
    fn whole(self, cases: &dyn Cases) -> u64 {
        let all = cases.cases();
        if cases.is_order_dependent() {
            return match self {
                Tier::Smoke => all.min(12),
                Tier::Standard => all.min(192),
                Tier::Deep => all.min(1 << 14),
            };
        }
        match self {
            Tier::Smoke => all.min(1 << 9),
            Tier::Standard => all.min(1 << 14),
            Tier::Deep => all.min(1 << 20),
        }
    }

    /// How many cases of a space it takes, from the first on, if one has so many elements. None of an exhaustive space if not all: the
    /// sampled one says more.
    fn cases(self, elements: Option<u64>, evidence: Evidence, all: u64) -> u64 {
        let (exhaustive, boundary, sampled, dispatches) = match self {
            Tier::Smoke => (1 << 16, 1 << 14, 1 << 13, 4),
            Tier::Standard => (1 << 20, 1 << 20, 1 << 18, 128),
            Tier::Deep => return all,
        };
        let Some(elements) = elements else { return all.min(dispatches) };
        let within = |budget: u64| all.min((budget / elements).max(FEWEST));
        match evidence {
            Evidence::Exhaustive if all > exhaustive => 0,
            Evidence::Exhaustive => all,
            Evidence::Boundary => within(boundary),
            Evidence::Sampled => within(sampled),
        }
    }
}

/// Cases of a space that every tier takes, however large one is.
const FEWEST: u64 = 16;

/// A program of an op at a workgroup size over a space of cases, the law of one, or dispatches with programs of their own.
pub struct Section {
    pub(crate) info: SectionInfo,
    pub(crate) what: What,
    unit: u64,
}

/// What the cases of a section are.
pub(crate) enum What {
    /// Cases of an op.
    Op {
        /// Its number in the plan.
        spec: usize,
        program: Arc<Program>,
        space: Arc<dyn Space>,
    },
    /// Cases of an op, on which its law is tried.
    Law { spec: usize, program: Arc<Program>, space: Arc<dyn Space> },
    /// Dispatches with programs of their own.
    Whole(Arc<dyn Cases>),
}

impl Section {
    /// What it is.
    #[must_use]
    pub fn info(&self) -> &SectionInfo {
        &self.info
    }

    /// How many units it has.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.info.cases.div_ceil(self.unit)
    }
}

/// A unit of a plan: cases of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// The section's number in the plan.
    pub section: usize,
    /// The number of the first case.
    pub first: u64,
    /// How many there are.
    pub cases: u64,
}

/// What a run is asked for.
pub struct Plan {
    specs: Vec<OpSpec>,
    sections: Vec<Section>,
    /// By section: units before it.
    before: Vec<u64>,
    units: u64,
    /// The hash of all that was selected from.
    suite: Digest,
}

impl Plan {
    /// What a selection of these specs and dispatches means at a tier. Sections are in the order of their names.
    ///
    /// # Errors
    ///
    /// If a query means nothing, or all of them together.
    pub fn new(specs: Vec<OpSpec>, cases: Vec<Arc<dyn Cases>>, selection: &Selection, tier: Tier) -> Result<Plan, String> {
        let belongs = |cases: &Arc<dyn Cases>| cases.first_tier() <= tier;
        let mut sections: Vec<Section> = cases.into_iter().filter(belongs).map(|cases| whole(cases, tier)).collect();
        for (number, spec) in specs.iter().enumerate() {
            let spaces: Vec<Arc<dyn Space>> = derived(spec).into_iter().chain(spec.spaces.iter().cloned()).collect();
            for (alternative, program) in spec.programs() {
                for (place, size) in spec.workgroup_sizes.iter().enumerate() {
                    if !tier.takes(spec, alternative, place) {
                        continue;
                    }
                    let program = Arc::new(program([*size, 1, 1]));
                    for space in &spaces {
                        sections.extend(section(spec, number, alternative, *size, &program, space, tier));
                    }
                }
            }
            sections.extend(spaces.iter().filter_map(|space| law(spec, number, space, tier)));
        }
        sections.sort_by(|one, other| one.info.id.cmp(&other.info.id));
        if let Some(pair) = sections.windows(2).find(|pair| pair[0].info.id == pair[1].info.id) {
            return Err(format!("there are two sections `{}`", pair[0].info.id));
        }
        let suite = hash(&specs, &sections);
        let idle = selection.means_nothing(sections.iter().map(|section| section.info.id.as_str()));
        if let Some(query) = idle.first() {
            return Err(format!("`{query}` matches nothing in the suite; `vyre conform --list` shows what there is"));
        }
        sections.retain(|section| selection.means(&section.info.id));
        let mut before = Vec::with_capacity(sections.len());
        let mut units = 0;
        for section in &sections {
            before.push(units);
            units += section.units();
        }
        if units == 0 {
            return Err(format!("`{selection}` matches nothing in the suite; `vyre conform --list` shows what there is"));
        }
        Ok(Plan { specs, sections, before, units, suite })
    }

    /// The sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The spec of this number.
    pub(crate) fn spec(&self, number: usize) -> &OpSpec {
        &self.specs[number]
    }

    /// How many units there are.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The hash of the suite that this is a part of.
    #[must_use]
    pub fn suite(&self) -> Digest {
        self.suite
    }

    /// The unit of this number, which is less than [`Plan::units`].
    #[must_use]
    pub fn unit(&self, number: u64) -> Unit {
        let section = self.before.partition_point(|before| *before <= number) - 1;
        let it = &self.sections[section];
        let first = (number - self.before[section]) * it.unit;
        Unit { section, first, cases: it.unit.min(it.info.cases - first) }
    }

    /// The number of the unit of a section that begins with this case, if there is one.
    #[must_use]
    pub fn number(&self, section: &str, first: u64) -> Option<u64> {
        let at = self.sections.binary_search_by(|it| it.info.id.as_str().cmp(section)).ok()?;
        let it = &self.sections[at];
        (first.is_multiple_of(it.unit) && first < it.info.cases).then(|| self.before[at] + first / it.unit)
    }
}

fn section(
    spec: &OpSpec,
    number: usize,
    alternative: Option<&str>,
    size: u32,
    program: &Arc<Program>,
    space: &Arc<dyn Space>,
    tier: Tier,
) -> Option<Section> {
    let elements = spec.shape.extent(size).map(|extent| {
        let most = extent.inputs.iter().chain(&extent.outputs).max().copied().unwrap_or(1);
        u64::from(most.max(extent.invocations).max(1)).next_power_of_two()
    });
    let space_cases = space.cases(size);
    let cases = tier.cases(elements, space.evidence(), space_cases);
    if cases == 0 {
        return None;
    }
    // The unit depends on nothing but the spec, so that every device has the same leaves.
    let (unit, to_a_launch) = match elements {
        Some(elements) => ((UNIT / elements).max(1), (UNIT / elements).max(1)),
        None => (DISPATCHES, 1),
    };
    let alternative = alternative.map(str::to_string);
    let behind = alternative.as_ref().map_or(String::new(), |name| format!(":alt={name}"));
    let info = SectionInfo {
        id: format!("{}{behind}:wg={size}:{}", spec.id, space.name()),
        op: spec.id.clone(),
        version: spec.version,
        alternative,
        workgroup: size,
        space: space.name().into(),
        evidence: space.evidence(),
        space_cases,
        cases,
        launches: cases.div_ceil(to_a_launch),
        profile: profile(program),
        outputs: spec.signature.outputs.iter().map(ToString::to_string).collect(),
        is_order_dependent: false,
    };
    let what = What::Op { spec: number, program: program.clone(), space: space.clone() };
    Some(Section { info, what, unit })
}

/// The section in which the law of an op is tried, if it has one: on the values at which ops go wrong, at one workgroup size.
fn law(spec: &OpSpec, number: usize, space: &Arc<dyn Space>, tier: Tier) -> Option<Section> {
    match spec.law {
        Law::Commutes | Law::Involution => {}
        Law::None | Law::Reorders(_) => return None,
    }
    if space.evidence() != Evidence::Boundary {
        return None;
    }
    let size = *spec.workgroup_sizes.last()?;
    let program = Arc::new(spec.program([size, 1, 1]));
    let mut section = section(spec, number, None, size, &program, space, tier)?;
    section.info.op = format!("law.{}", spec.id);
    section.info.id = format!("law.{}", section.info.id);
    section.what = What::Law { spec: number, program, space: space.clone() };
    Some(section)
}

/// The section of dispatches with programs of their own.
fn whole(cases: Arc<dyn Cases>, tier: Tier) -> Section {
    let asked = tier.whole(&*cases);
    let info = SectionInfo {
        id: format!("{}:{}", cases.op(), cases.space()),
        op: cases.op().into(),
        version: 1,
        alternative: None,
        workgroup: 0,
        space: cases.space().into(),
        evidence: cases.evidence(),
        space_cases: cases.cases(),
        cases: asked,
        launches: asked,
        profile: cases.profile(),
        outputs: Vec::new(),
        is_order_dependent: cases.is_order_dependent(),
    };
    Section { info, what: What::Whole(cases), unit: DISPATCHES }
}

/// What a device must be capable of to be asked for a program.
pub(crate) fn profile(program: &Program) -> String {
    let Ok(validated) = program.validated() else { return "core".into() };
    let uses = validated.kernel().uses;
    let is_wide = is_wide(program, validated.kernel());
    let words = [(uses.f64, "f64"), (uses.subgroup, "subgroups"), (uses.grid_sync, "grid-sync"), (is_wide, "wide")];
    let needs: Vec<&str> = words.into_iter().filter(|(needs, _)| *needs).map(|(_, word)| word).collect();
    if needs.is_empty() { "core".into() } else { needs.join("+") }
}

/// Whether a program needs more than every device that runs compute shaders has: larger workgroups or more buffers than WebGPU asks of each,
/// or control that nests deeper than a shader can when each statement becomes several of its own.
fn is_wide(program: &Program, kernel: &Kernel) -> bool {
    const WORKGROUP: [u32; 3] = [256, 256, 64];
    const INVOCATIONS: u64 = 256;
    const BUFFERS: usize = 8;
    const NESTED: u32 = 20;
    let size = kernel.workgroup_size;
    let invocations: u64 = size.iter().map(|axis| u64::from(*axis)).product();
    let bound = kernel.buffers.iter().filter(|buffer| buffer.binding.is_some()).count();
    if invocations > INVOCATIONS || size.iter().zip(WORKGROUP).any(|(axis, most)| *axis > most) || bound > BUFFERS {
        return true;
    }
    let mut below: Vec<(&Body, u32)> = vec![(&program.parts().body, 0)];
    while let Some((body, depth)) = below.pop() {
        if depth > NESTED {
            return true;
        }
        for node in body.iter() {
            let deeper = depth + u32::from(matches!(node, Node::If { .. } | Node::Loop(_)));
            below.extend(node.bodies().map(|body| (body, deeper)));
        }
    }
    false
}

/// The hash of all specs and sections: what evidence of another suite would differ in.
fn hash(specs: &[OpSpec], sections: &[Section]) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![env!("CARGO_PKG_VERSION").into()];
    parts.extend(specs.iter().map(|spec| format!("{} {} {:?}", spec.id, spec.version, spec.signature).into_bytes()));
    for section in sections {
        let info = &section.info;
        parts.push(format!("{} {} {}", info.id, info.space_cases, section.unit).into_bytes());
        parts.push(match &section.what {
            What::Op { program, .. } | What::Law { program, .. } => program.fingerprint().to_vec(),
            What::Whole(cases) => cases.identity(),
        });
    }
    Digest::of(parts)
}

#[cfg(test)]
mod tests {
    use super::profile;
    use vyre_foundation::text;

    #[test]
    fn what_every_device_has_is_core() {
        let of = |text: String| profile(&text::parse("p.vyre", &text).unwrap_or_else(|report| panic!("{report}")));
        let sized =
            |size: &str| of(format!("program p {{\n  workgroup {size}\n  buffer out: output u32 @0\n  out[gid.x] = 1\n}}\n"));
        assert_eq!(["256", "16 16", "1 4 64"].map(sized), ["core"; 3]);
        assert_eq!(["257", "17 16", "1 1 65", "1024"].map(sized), ["wide"; 4]);
        let bound = |count: u32| {
            let buffers: String = (0..count).map(|n| format!("  buffer b{n}: output u32[1] @{n}\n")).collect();
            of(format!("program p {{\n  workgroup 1\n{buffers}  b0[0] = 1\n}}\n"))
        };
        assert_eq!([bound(8), bound(9)], ["core", "wide"]);
        let nested = |depth: usize| {
            let (open, close) = ("if out[0] == 0 {\n".repeat(depth), "}\n".repeat(depth));
            of(format!("program p {{\n  workgroup 1\n  buffer out: read_write u32[1] @0\n{open}out[0] = 1\n{close}}}\n"))
        };
        assert_eq!([nested(20), nested(21)], ["core", "wide"]);
        let both = "program p {\n  workgroup 512\n  buffer out: output f64 @0\n  out[gid.x] = f64(1.5)\n}\n";
        assert_eq!(of(both.into()), "f64+wide");
    }
}
