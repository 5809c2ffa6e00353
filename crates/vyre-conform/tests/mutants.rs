//! Every mutant is wrong on its witness, on which the device that it was made from is right.

use std::collections::{BTreeMap, HashSet};
use std::sync::OnceLock;
use vyre_conform::mutants::flip::{Flip, Flipped};
use vyre_conform::mutants::{self, Class, Mutant, PREFIX, Witness};
use vyre_foundation::ir::Program;
use vyre_smith::subjects::{expected, subject};
use vyre_worker::{Case, Failure, Job, Outputs, Subject};

/// What a subject gives for a witness: an outcome for each case, or that of the whole sequence.
fn outcomes(subject: &mut dyn Subject, witness: &Witness) -> Vec<Result<Outputs, Failure>> {
    match witness {
        Witness::Cases(cases) => cases.iter().map(|case| subject.run(case)).collect(),
        Witness::Sequence(sequence) => vec![subject.run_sequence(sequence)],
    }
}

fn built_in(name: &str) -> Box<dyn Subject> {
    subject(name).expect("it is built in")
}

fn programs(witness: &Witness) -> Vec<&Program> {
    match witness {
        Witness::Cases(cases) => cases.iter().map(|case| &case.program).collect(),
        Witness::Sequence(sequence) => sequence.steps.iter().map(|step| &step.program).collect(),
    }
}

/// What is wrong with a mutant, if something is.
fn problem(mutant: &Mutant) -> Option<String> {
    let witness = mutant.witness();
    let right = outcomes(&mut *built_in("plain"), &witness);
    if let Some(Err(failure)) = right.iter().find(|outcome| outcome.is_err()) {
        return Some(format!("the reference refuses the witness: {failure}"));
    }
    if outcomes(&mut *built_in("bulk"), &witness) != right {
        return Some("the bulk evaluator is wrong on the witness".into());
    }
    if !programs(&witness).iter().any(|program| mutant.applies(program)) {
        return Some("it says that it does not apply to its witness".into());
    }
    let found = outcomes(&mut *mutant.subject(), &witness);
    if let Some(Err(failure @ (Failure::Refused(_) | Failure::Unsupported(_)))) = found.iter().find(|it| it.is_err()) {
        return Some(format!("it refuses its witness: {failure}"));
    }
    (found == right).then(|| "it is right on its witness".into())
}

#[test]
fn every_mutant_is_wrong_on_its_witness_and_the_device_it_is_made_from_is_right() {
    let problems: Vec<String> =
        mutants::all().iter().filter_map(|mutant| Some(format!("{}: {}", mutant.name, problem(mutant)?))).collect();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), mutants::all().len(), problems.join("\n"));
}

#[test]
fn there_are_enough_of_every_class_and_a_third_is_held_out() {
    let mut classes: BTreeMap<Class, (usize, usize)> = BTreeMap::new();
    for mutant in mutants::all() {
        let (all, held_out) = classes.entry(mutant.class).or_default();
        *all += 1;
        *held_out += usize::from(mutant.held_out);
    }
    for (class, (all, held_out)) in &classes {
        println!("{:>5} {:>4} held out  {class}", all, held_out);
    }
    let total = mutants::all().len();
    println!("{total:>5}");
    assert!(total >= 500 && classes.len() >= 20, "{total} in {} classes", classes.len());
    assert_eq!(classes.len(), Class::ALL.len(), "a class without mutants");
    for (class, (all, held_out)) in classes {
        assert!(all >= 12, "{class} has {all}");
        assert!((all / 8..=all / 2).contains(&held_out), "{class}: {held_out} of {all} are held out");
    }
    let held_out = mutants::all().iter().filter(|mutant| mutant.held_out).count();
    assert!((total * 30 / 100..=total * 37 / 100).contains(&held_out), "{held_out} of {total} are held out");
}

/// Names that have been given out. They stand in records of what was killed, so they stay, and so does which ones are held out.
const KNOWN: [(&str, bool); 26] = [
    ("operator/add.i32-is-sub", true),
    ("constant/u32-plus-one", false),
    ("signedness/div.i32-as-u32", true),
    ("shift-mask/shl.u32-zero-past-width", true),
    ("division-guard/div.i32-overflow-is-zero", false),
    ("conversion/f32-to-i32-wraps", false),
    ("nan/min.f32-of-nan-is-nan", true),
    ("flush/mul.f32-result", true),
    ("fma/contracts-product-plus.f32", false),
    ("rounding/div.f32-is-product-with-reciprocal", true),
    ("algebra/sums-to-the-right.f32", false),
    ("comparison/lt.f32-is-le", true),
    ("index/load.u32-plus-one", false),
    ("stride/gid.x-is-gid.y", true),
    ("loop-bound/one-less", false),
    ("branch/negated", true),
    ("barrier/all-forward", false),
    ("atomic/add.u32-is-none", false),
    ("last-workgroup/last-of-2-or-more", false),
    ("tail/store.u32-dropped-beyond-8", true),
    ("size/gid.x-is-lid.x-at-37", false),
    ("stale/outputs-always", false),
    ("binding/inputs.u32-swapped", false),
    ("cache-key/without-constants", false),
    ("resident/first-upload-lost", true),
    ("rare/add.u32-1e-3", false),
];

#[test]
fn names_are_unique_and_stay() {
    let mut names = HashSet::new();
    for mutant in mutants::all() {
        assert!(names.insert(&mutant.name), "{} is there twice", mutant.name);
        assert!(mutant.name.starts_with(&format!("{}/", mutant.class)), "{}", mutant.name);
        assert!(!mutant.name.contains(char::is_whitespace), "{}", mutant.name);
        assert_eq!(mutants::named(&mutant.name).map(|found| &found.name), Some(&mutant.name));
        assert_eq!(mutant.subject().name(), format!("{PREFIX}{}", mutant.name));
    }
    let lost: Vec<_> =
        KNOWN.iter().filter(|(name, held_out)| mutants::named(name).is_none_or(|mutant| mutant.held_out != *held_out)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn subjects_are_made_by_name() {
    let found = mutants::subject("mutant:operator/add.i32-is-sub").expect("it is a mutant").expect("there is such a one");
    assert_eq!(found.name(), "mutant:operator/add.i32-is-sub");
    assert!(mutants::subject("bulk").is_none());
    let message = |name: &str| mutants::subject(name).and_then(Result::err).unwrap_or_default();
    assert!(message("mutant:operator/add.i32-is-sbu").contains("did you mean `operator/add.i32-is-sub`?"));
    assert!(message("mutant:nothing at all").contains("begin with one of operator/, constant/"));
}

/// Small cases of many kinds.
fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let spread = mutants::all().iter().step_by(97);
        let all = spread.filter_map(|mutant| match mutant.witness() {
            Witness::Cases(cases) => cases.into_iter().next(),
            Witness::Sequence(_) => None,
        });
        all.collect()
    })
}

#[test]
fn a_mutant_that_does_not_apply_is_right() {
    let right: Vec<_> = cases().iter().map(expected).collect();
    let mut compared = 0;
    for mutant in mutants::all() {
        for (case, right) in cases().iter().zip(&right).filter(|(case, _)| !mutant.applies(&case.program)) {
            assert_eq!(mutant.subject().run(case), *right, "{} on\n{}", mutant.name, case.program);
            compared += 1;
        }
    }
    println!("{compared} runs of {} cases", cases().len());
    assert!(compared > 1000, "{compared}");
}

#[test]
fn a_mutant_of_one_size_is_right_at_the_others() {
    let sized: Vec<&Mutant> = mutants::all().iter().filter(|mutant| mutant.class == Class::Size).collect();
    let size = |mutant: &Mutant| mutant.name.rsplit("-at-").next().and_then(|size| size.parse::<u32>().ok());
    let mut compared = 0;
    for mutant in &sized {
        for other in sized.iter().filter(|other| size(other) != size(mutant)).step_by(9) {
            let witness = other.witness();
            let right = outcomes(&mut *built_in("plain"), &witness);
            assert_eq!(outcomes(&mut *mutant.subject(), &witness), right, "{} on that of {}", mutant.name, other.name);
            compared += 1;
        }
    }
    assert!(compared >= sized.len(), "{compared}");
}

#[test]
fn in_place_and_again_a_mutant_gives_the_same() {
    for mutant in mutants::all().iter().step_by(5).filter(|mutant| mutant.class != Class::Stale) {
        let Witness::Cases(cases) = mutant.witness() else { continue };
        let (mut once, mut again) = (mutant.subject(), mutant.subject());
        for case in cases {
            let Ok(outputs) = once.run(&case) else { continue };
            let mut places: Outputs = outputs.iter().map(|bytes| vec![0xA5; bytes.len()]).collect();
            let mut slices: Vec<&mut [u8]> = places.iter_mut().map(Vec::as_mut_slice).collect();
            let inputs = case.input_slices();
            let job =
                Job { program: &case.program, config: &case.config, fuel: case.fuel, inputs: &inputs, outputs: &mut slices };
            again.run_in_place(job).expect("it ran a moment ago");
            assert_eq!(places, outputs, "{}", mutant.name);
        }
    }
}

#[test]
fn one_bit_of_one_answer_is_flipped() {
    let cases: Vec<Case> = cases().iter().take(4).cloned().collect();
    let right: Vec<Outputs> = cases.iter().map(|case| expected(case).expect("it runs")).collect();
    let flip = Flip { case: 2, output: 0, byte: 5, bit: 3 };
    let mut wrong = right.clone();
    wrong[2][0][5] ^= 8;
    let mut one_by_one = Flipped::new(built_in("bulk"), flip);
    assert!(!one_by_one.is_done());
    let found: Vec<Outputs> = cases.iter().map(|case| one_by_one.run(case).expect("it runs")).collect();
    assert!(one_by_one.is_done());
    assert_eq!(found, wrong);
    let mut batch = Flipped::new(built_in("bulk"), flip);
    let found: Vec<Outputs> = batch.run_batch(&cases).into_iter().map(|it| it.outcome.expect("it runs")).collect();
    assert_eq!(found, wrong);
    let mut nowhere = Flipped::new(built_in("bulk"), Flip { byte: usize::MAX, ..flip });
    let found: Vec<Outputs> = cases.iter().map(|case| nowhere.run(case).expect("it runs")).collect();
    assert!(!nowhere.is_done());
    assert_eq!(found, right);
    let mut in_place = Flipped::new(built_in("bulk"), Flip { case: 0, ..flip });
    let mut places: Outputs = right[0].iter().map(|bytes| vec![0; bytes.len()]).collect();
    let mut slices: Vec<&mut [u8]> = places.iter_mut().map(Vec::as_mut_slice).collect();
    let inputs = cases[0].input_slices();
    let (program, config, fuel) = (&cases[0].program, &cases[0].config, cases[0].fuel);
    in_place.run_in_place(Job { program, config, fuel, inputs: &inputs, outputs: &mut slices }).expect("it runs");
    assert_eq!(places[0][5], right[0][0][5] ^ 8);
}
