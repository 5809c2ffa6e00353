//! Whether the generator still makes each of its patterns, as often as it should.
//!
//! Chance makes some of them now and then, so that having seen one at all says little. Each pattern therefore has a share of programs
//! that must have it, counted over several seeds: well below what is seen, mostly half, and above what is left when the generator
//! does not make it on purpose. `cargo test -p vyre-smith --test patterns -- --nocapture` prints what is seen.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_smith::coverage::{Exit, Pattern, patterns};
use vyre_smith::generate::{Preset, dna, generate};

const SEEDS: std::ops::Range<u64> = 100..104;
/// Programs of each seed: of the default mix, and of each large preset.
const MIXED: u64 = 5_500;
const LARGE: u64 = 250;

/// Where a pattern is looked for: in the default mix, or in a large preset.
type Place = Option<Preset>;

/// Where a pattern must be found, and in how many of 10,000 programs.
fn least(pattern: Pattern) -> (Place, u64) {
    let (wide, long, crowded) = (Some(Preset::Wide), Some(Preset::Long), Some(Preset::Crowded));
    match pattern {
        Pattern::BoundChanged => (None, 200),
        Pattern::StartChanged => (None, 80),
        Pattern::UniformBoundChanged => (None, 190),
        Pattern::ConditionChanged => (None, 350),
        Pattern::ElseConditionChanged => (None, 50),
        Pattern::IndexMoved => (None, 450),
        Pattern::OwnIndexMoved => (None, 40),
        Pattern::EndsAtLast => (None, 220),
        Pattern::EndsAtLastVarying => (None, 220),
        Pattern::OverLength => (None, 430),
        Pattern::Carried => (None, 420),
        Pattern::MadeAhead => (None, 15),
        Pattern::HostileLiteral => (None, 260),
        Pattern::HostileLength => (None, 220),
        Pattern::HostileSum => (None, 190),
        Pattern::HostileProduct => (None, 200),
        Pattern::ReversedIndex => (None, 500),
        Pattern::RotatedIndex => (None, 440),
        Pattern::FlippedIndex => (None, 280),
        Pattern::ScaledIndex => (None, 400),
        Pattern::FloodedStorage => (None, 25),
        Pattern::FloodedWorkgroup => (None, 30),
        Pattern::AtomicsMeet => (None, 150),
        Pattern::Tickets => (None, 60),
        Pattern::NeighboursLoaded => (None, 400),
        Pattern::NeighboursStored => (None, 40),
        Pattern::GuardedAccess => (None, 700),
        Pattern::GuardedByExit => (None, 110),
        Pattern::GuardedSum => (None, 90),
        Pattern::ChangedCompared => (None, 65),
        Pattern::NestedBounds => (None, 310),
        Pattern::ShiftedTwice => (None, 95),
        Pattern::Undone => (None, 150),
        Pattern::DividedAtTop => (None, 400),
        Pattern::NarrowedFloat => (None, 40),
        Pattern::MetAtRunTime => (None, 45),
        Pattern::AbsoluteDivided => (None, 80),
        Pattern::Outlived => (None, 250),
        Pattern::FarBound => (None, 80),
        Pattern::CornerPair => (None, 900),
        Pattern::MixedWidths => (None, 110),
        Pattern::VectorExchanged => (None, 70),
        Pattern::CommonSubexpression => (None, 130),
        Pattern::ReusedName => (None, 600),
        Pattern::NameOfPass => (None, 240),
        Pattern::HandedOn => (None, 1200),
        Pattern::HandedOnByGrid => (None, 110),
        Pattern::Reloaded => (None, 260),
        Pattern::SubgroupBox => (None, 150),
        Pattern::PartialGroup => (None, 1150),
        Pattern::NoGrid => (None, 800),
        Pattern::Override => (None, 130),
        Pattern::Blocks => (wide, 1400),
        Pattern::LargeGroup => (wide, 2500),
        Pattern::FullGroup => (wide, 1200),
        Pattern::PrimeGroup => (wide, 800),
        Pattern::LargeBox => (wide, 1200),
        Pattern::Tail => (wide, 1200),
        Pattern::BlocksWait => (wide, 300),
        Pattern::LongLoop => (long, 1700),
        Pattern::LongChain => (long, 2300),
        Pattern::ManyLive => (crowded, 5000),
        Pattern::CarriedAcrossBarriers => (crowded, 2500),
        Pattern::ManyBuffers => (crowded, 5000),
        Pattern::WorkgroupTypes => (crowded, 2100),
        Pattern::Exit { exit, otherwise, nested: _ } => {
            let least = match (exit, otherwise) {
                (Exit::Break | Exit::Continue, false) => 120,
                (Exit::Break | Exit::Continue, true) => 60,
                (Exit::Return, false) => 60,
                (Exit::Return, true) => 30,
                (Exit::Trap, false) => 15,
                (Exit::Trap, true) => 8,
            };
            (None, least)
        }
        Pattern::Exits(Exit::Break | Exit::Continue | Exit::Return, Exit::Trap) => (None, 20),
        Pattern::Exits(_, _) => (None, 65),
    }
}

fn seen() -> BTreeMap<(Place, Pattern), u64> {
    let places: Vec<(Place, u64)> =
        std::iter::once((None, MIXED)).chain(Preset::large().iter().map(|preset| (Some(*preset), LARGE))).collect();
    let (next, total) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut own: BTreeMap<(Place, Pattern), u64> = BTreeMap::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= MIXED {
                        break;
                    }
                    for seed in SEEDS {
                        for (place, _) in places.iter().filter(|(_, count)| number < *count) {
                            let dna = dna(seed, number);
                            let case = generate(place.unwrap_or_else(|| Preset::mixed(number)), &dna).case(&dna);
                            for pattern in patterns(&case) {
                                *own.entry((*place, pattern)).or_default() += 1;
                            }
                        }
                    }
                }
                let mut total = total.lock().expect("no thread panicked");
                for (key, count) in own {
                    *total.entry(key).or_default() += count;
                }
            });
        }
    });
    total.into_inner().expect("no thread panicked")
}

#[test]
fn every_pattern_is_made_as_often_as_it_should() {
    let seen = seen();
    let of_10_000 = |place: Place, pattern| {
        let programs = (SEEDS.end - SEEDS.start) * if place.is_none() { MIXED } else { LARGE };
        seen.get(&(place, pattern)).copied().unwrap_or(0) * 10_000 / programs
    };
    let places = || std::iter::once(None).chain(Preset::large().iter().copied().map(Some));
    let mut rare = Vec::new();
    for pattern in Pattern::all() {
        let (place, least) = least(pattern);
        let share = of_10_000(place, pattern);
        let everywhere: Vec<String> = places().map(|place| format!("{:5}", of_10_000(place, pattern))).collect();
        println!("{} {least:5} {pattern}", everywhere.join(" "));
        if share < least {
            let preset = place.map_or("the default mix", Preset::name);
            rare.push(format!("{pattern}: {share} of 10,000 programs of {preset}, not {least}"));
        }
    }
    assert!(rare.is_empty(), "the generator makes too few of these:\n{}", rare.join("\n"));
}
