//! A litmus test as a program of many copies.
//!
//! Of two workgroups that follow each other the first has one invocation of each of its copies and the second the other; around a barrier both
//! are in one workgroup, the first half of which are the one and the second half the other. The partner of an invocation is found by a
//! permutation, so that the two are not always the same distance apart.

use super::{Litmus, Numbered, Outcome, Place, Step};
use vyre_foundation::ir::Program;
use vyre_foundation::{Report, text};

/// What makes rare outcomes likelier. None of it changes what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stress {
    /// Copies whose invocations are in the same workgroup or pair of them; a power of two from 1 to 128.
    pub copies: u32,
    /// Workgroups or pairs of them.
    pub blocks: u32,
    /// Elements from one location to the next: 1 puts neighbours into one word of a cache, 64 into different lines.
    pub spacing: u32,
    /// The partner of copy `n` stands at place `(n * this + this) % copies`; odd, so that each has one.
    pub permute: u32,
    /// Invocations first do up to so many adds on memory that is not looked at, each another number of them.
    pub delay: u32,
}

impl Default for Stress {
    fn default() -> Self {
        Stress { copies: 64, blocks: 32, spacing: 1, permute: 1, delay: 0 }
    }
}

impl Stress {
    /// Different ones, to be tried in turn.
    #[must_use]
    pub fn several() -> Vec<Stress> {
        let stress = |copies, spacing, permute, delay| Stress { copies, spacing, permute, delay, ..Stress::default() };
        vec![
            Stress::default(),
            stress(64, 16, 5, 0),
            stress(32, 64, 13, 3),
            stress(128, 1, 31, 8),
            stress(1, 3, 1, 1),
            stress(16, 33, 7, 15),
        ]
    }

    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<String> {
        let Stress { copies, blocks, spacing, permute, delay } = self;
        if !copies.is_power_of_two() || *copies > 128 {
            return Some(format!("copies are a power of two up to 128, not {copies}"));
        }
        if *blocks == 0 || *spacing == 0 {
            return Some("there has to be a block and a spacing".into());
        }
        if permute % 2 == 0 {
            return Some(format!("an even permutation, {permute}, puts two copies into one place"));
        }
        let elements = u64::from(*copies) * u64::from(*blocks) * u64::from(*spacing) * 2;
        if elements > 1 << 26 || *delay > 1 << 12 {
            return Some(format!("{elements} elements or {delay} adds are too many"));
        }
        None
    }

    /// Copies of the test in a dispatch.
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.copies.saturating_mul(self.blocks)
    }
}

/// A program of copies of a test, and how its outputs are read.
pub(super) struct Copies {
    pub program: Program,
    pub groups: u32,
    instances: usize,
    spacing: usize,
    locations: usize,
    registers: usize,
}

/// The test with its steps in this order.
pub(super) fn copies(litmus: &Litmus, threads: &[Vec<Numbered>; 2], stress: &Stress) -> Result<Copies, Report> {
    let source = source(litmus, threads, stress);
    let program = text::parse(litmus.name, &source)?;
    program.validated().map_err(Clone::clone)?;
    Ok(Copies {
        program,
        groups: match litmus.place {
            Place::Workgroups => 2 * stress.blocks,
            Place::Storage | Place::WorkgroupMemory => stress.blocks,
        },
        instances: stress.instances() as usize,
        spacing: stress.spacing as usize,
        locations: litmus.locations(),
        registers: litmus.registers(),
    })
}

fn source(litmus: &Litmus, threads: &[Vec<Numbered>; 2], stress: &Stress) -> String {
    let Stress { copies, permute, spacing, delay, .. } = stress;
    let (locations, registers) = (litmus.locations() as u32, litmus.registers() as u32);
    let instances = stress.instances();
    let is_local = litmus.place == Place::WorkgroupMemory;
    let mut text = String::from("program litmus {\n");
    let mut line = |words: String| {
        text.push_str("  ");
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("workgroup {}", if litmus.place == Place::Workgroups { *copies } else { 2 * copies }));
    line(format!("buffer memory: output u32[{}] @0", instances * locations * spacing));
    line(format!("buffer results: output u32[{}] @1", (instances * registers).max(1)));
    line("buffer noise: output u32[16] @2".into());
    if is_local {
        // Spacing would take more memory than a workgroup has.
        line(format!("buffer tile: workgroup u32[{}]", copies * locations));
    }
    match litmus.place {
        Place::Workgroups => {
            line("let role = wid.x & 1".into());
            line("let block = wid.x >> 1".into());
            line("let place = lid.x".into());
        }
        Place::Storage | Place::WorkgroupMemory => {
            line(format!("let role = lid.x / {copies}"));
            line("let block = wid.x".into());
            line(format!("let place = lid.x % {copies}"));
        }
    }
    line(format!("if role == 1 {{ place = (place * {permute} + {permute}) % {copies} }}"));
    line(format!("let copy = block * {copies} + place"));
    match is_local {
        true => line(format!("let x = place * {locations}")),
        false => line(format!("let x = copy * {}", locations * spacing)),
    }
    line(format!("let y = x + {}", if is_local { 1 } else { *spacing }));
    if *delay > 0 {
        line(format!("for n in 0..(gid.x * 7 + role * 3) % {delay} {{ let old = atomic.add(noise, (n + place) & 15, 1) }}"));
    }
    for register in 0..registers {
        line(format!("let r{register} = 0"));
    }
    let memory = if is_local { "tile" } else { "memory" };
    let phases = threads.each_ref().map(|steps| steps.split(|numbered| numbered.step == Step::Barrier).collect::<Vec<_>>());
    for phase in 0..phases.iter().map(Vec::len).max().unwrap_or(0) {
        if phase > 0 {
            line("barrier".into());
        }
        for (role, phases) in phases.iter().enumerate() {
            let steps = phases.get(phase).copied().unwrap_or_default();
            if steps.is_empty() {
                continue;
            }
            line(format!("if role == {role} {{"));
            for step in steps {
                line(format!("  {}", spelled(*step, memory)));
            }
            line("}".into());
        }
    }
    for (role, steps) in threads.iter().enumerate() {
        for register in steps.iter().filter_map(|numbered| numbered.register) {
            line(format!("if role == {role} {{ results[copy * {registers} + {register}] = r{register} }}"));
        }
    }
    if is_local {
        line("barrier".into());
        for location in 0..locations {
            line(format!(
                "if role == 0 {{ memory[copy * {} + {}] = tile[x + {location}] }}",
                locations * spacing,
                location * spacing
            ));
        }
    }
    text.push_str("}\n");
    text
}

fn spelled(Numbered { step, register }: Numbered, memory: &str) -> String {
    let at = |location: u8| if location == 0 { "x" } else { "y" };
    let (old, copied) = match register {
        Some(register) => (format!("let old{register} = "), format!("\n    r{register} = old{register}")),
        None => (String::new(), String::new()),
    };
    let access = match step {
        Step::Store(location, value) => format!("atomic.store({memory}, {}, {value})", at(location)),
        Step::Load(location) => format!("atomic.load({memory}, {})", at(location)),
        Step::Add(location, value) => format!("atomic.add({memory}, {}, {value})", at(location)),
        Step::Exchange(location, value) => format!("atomic.exchange({memory}, {}, {value})", at(location)),
        Step::Claim(location, value) => format!("atomic.compare_exchange({memory}, {}, 0, {value})", at(location)),
        Step::PlainStore(location, value) => format!("{memory}[{}] = {value}", at(location)),
        Step::PlainLoad(location) => format!("{memory}[{}]", at(location)),
        Step::Barrier => unreachable!("barriers part the phases"),
    };
    format!("{old}{access}{copied}")
}

impl Copies {
    /// What every copy saw, from the outputs.
    pub fn outcomes(&self, outputs: &[Vec<u8>]) -> Option<Vec<Outcome>> {
        let words =
            |bytes: &Vec<u8>| -> Vec<u32> { bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect() };
        let [memory, results, _] = outputs else { return None };
        let (memory, results) = (words(memory), words(results));
        let stride = self.locations * self.spacing;
        if memory.len() < self.instances * stride || results.len() < self.instances * self.registers {
            return None;
        }
        let one = |n: usize| Outcome {
            registers: results[n * self.registers..][..self.registers].to_vec(),
            memory: (0..self.locations).map(|location| memory[n * stride + location * self.spacing]).collect(),
        };
        Some((0..self.instances).map(one).collect())
    }
}
