//! Programs written otherwise give the same bytes on what is right, and show faults of what is wrong without asking the reference.

use vyre_reference::faults::Fault;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::subjects::{expected, subject};
use vyre_worker::{Case, Failure};

/// Cases of a preset, or of the default mix.
fn cases(preset: Option<Preset>, count: u64) -> impl Iterator<Item = Case> {
    (0..count).map(move |number| {
        let dna = dna(11, number);
        generate(preset.unwrap_or_else(|| Preset::mixed(number)), &dna).case(&dna)
    })
}

#[test]
fn nothing_changes_on_what_is_right() {
    for name in ["metamorphic:plain", "metamorphic:bulk"] {
        let mut subject = subject(name).expect("there is one");
        for case in cases(None, 1_500) {
            let outcome = subject.run(&case);
            assert!(outcome == expected(&case), "{name}: {outcome:?}\n{}", case.program);
        }
    }
}

/// Faults that depend on how a program is written, the preset that is about such programs, and the words of a rewrite that shows each.
const SHOWN: [(Fault, Preset, &str); 6] = [
    (Fault::SubSwapped, Preset::Ints, "a - b as a + -b"),
    (Fault::NanCompare, Preset::Floats, "turned around"),
    (Fault::CompareUnsigned, Preset::Ints, "turned around"),
    (Fault::MaxZero, Preset::Floats, "swapped"),
    (Fault::LoopEnd, Preset::Divergent, "first iteration"),
    (Fault::NegZero, Preset::Floats, "undoes itself"),
];

#[test]
fn faults_show_without_the_reference_and_name_the_rewrite() {
    for (fault, preset, words) in SHOWN {
        let mut subject = subject(&format!("metamorphic:fault:{}", fault.name())).expect("there is one");
        let found = cases(Some(preset), 20_000).find_map(|case| match subject.run(&case) {
            Err(Failure::Device(message)) if message.contains(words) => Some(message),
            Ok(_) | Err(_) => None,
        });
        assert!(found.is_some(), "{} is not shown by “{words}”", fault.name());
    }
}
