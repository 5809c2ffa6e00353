//! The fuzz loop on subjects that are wrong in known ways: what it finds, how often it says so, and that nothing depends on threads.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::ir::{BinaryOp, Expr, Item, Program, UnaryOp};
use vyre_foundation::text::parse;
use vyre_smith::fuzz::{Config, Error, Event, Programs, Source, Summary, fuzz};
use vyre_smith::generate::Preset;
use vyre_smith::subjects::{expected, subject};
use vyre_worker::{Answer, Bundle, Case, Contained, Failure, Kind, Origin, Outputs, Subject, Verdict, judge};

/// What is made of a case and the outcome of the reference.
type Fault = fn(&Case, Result<Outputs, Failure>) -> Result<Outputs, Failure>;

/// The reference, with mistakes.
#[derive(Clone, Copy)]
struct Faulty(Fault);

impl Subject for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        (self.0)(case, expected(case))
    }
}

fn has_binary(program: &Program, wanted: BinaryOp) -> bool {
    program.walk().any(|(item, _)| matches!(item, Item::Expr(Expr::Binary { op, .. }) if *op == wanted))
}

fn has_unary(program: &Program, wanted: UnaryOp) -> bool {
    program.walk().any(|(item, _)| matches!(item, Item::Expr(Expr::Unary { op, .. }) if *op == wanted))
}

fn flipped(outcome: Result<Outputs, Failure>) -> Result<Outputs, Failure> {
    outcome.map(|mut outputs| {
        outputs.iter_mut().filter_map(|bytes| bytes.first_mut()).take(1).for_each(|byte| *byte ^= 1);
        outputs
    })
}

/// Wrong wherever there is a multiplication, and, apart from that, wherever bits are counted.
fn two_faults(case: &Case, outcome: Result<Outputs, Failure>) -> Result<Outputs, Failure> {
    let wrong = has_binary(&case.program, BinaryOp::Mul) || has_unary(&case.program, UnaryOp::Popcount);
    if wrong { flipped(outcome) } else { outcome }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vyre-fuzz-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).into_iter().flatten();
        let mut names: Vec<String> = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run_with(source: &dyn Source, faulty: Faulty, config: &Config) -> Summary {
    let make = || Ok(Box::new(Contained::new(move || Box::new(faulty) as Box<dyn Subject>)) as Box<dyn Subject>);
    fuzz(source, &make, config, &mut |_| ()).expect("it goes through")
}

const INTS: Programs = Programs { preset: Some(Preset::Ints), seed: 3, inputs: 2 };

#[test]
fn two_faults_are_two_findings_and_the_rest_is_counted() {
    let folder = Folder::new("two");
    let config = Config { programs: Some(400), folder: Some(folder.0.clone()), ..Config::default() };
    let summary = run_with(&INTS, Faulty(two_faults), &config);
    assert_eq!((summary.programs, summary.cases), (400, 800));
    assert!(summary.not_run.is_none());
    let signatures: Vec<&str> = summary.findings.iter().map(|finding| finding.bundle.signature.as_str()).collect();
    assert_eq!(signatures.len(), 2, "{signatures:?}");
    for wanted in ["bytes, faulty: mul", "bytes, faulty: popcount"] {
        assert!(signatures.contains(&wanted), "{signatures:?}");
    }
    assert!(summary.wrong > 50, "{}", summary.wrong);
    assert_eq!(summary.findings.iter().map(|finding| finding.count).sum::<u64>(), summary.wrong);
    for finding in &summary.findings {
        assert!(finding.stable && !finding.known && finding.unreduced.is_none());
        assert!(finding.bundle.case.program.walk().count() <= 8, "{}", finding.bundle.case.program);
        let file = finding.file.as_ref().expect("it is written");
        let read = Bundle::read(file).expect("it is a bundle");
        assert_eq!(read, finding.bundle);
        // The bundle shows the fault, on the case it holds and on the one it came from.
        for case in [Some(&read.case), read.original.as_ref()].into_iter().flatten() {
            let right = expected(case);
            assert_eq!(judge(&right, &two_faults(case, right.clone())), Verdict::Wrong(Kind::Bytes));
        }
        assert_eq!(expected(&read.case), read.expected);
        let origin = read.origin.expect("it was generated");
        let cases = INTS.cases(origin.number);
        assert_eq!(Some(&cases[origin.input as usize]), read.original.as_ref());
        let check = fs::read_to_string(finding.check.as_ref().expect("there is a check file")).expect("it can be read");
        assert!(check.contains("// run"), "{check}");
        parse("check.vyre", &check).expect("it is a program");
    }
    // One that was found with more in it at first left its files.
    assert!(folder.files().len() >= 4);
}

#[test]
fn threads_change_nothing() {
    let run = |jobs| {
        let folder = Folder::new(&format!("jobs{jobs}"));
        let config = Config { programs: Some(333), jobs, folder: Some(folder.0.clone()), ..Config::default() };
        let summary = run_with(&INTS, Faulty(two_faults), &config);
        let findings: Vec<(u64, u64, Bundle)> =
            summary.findings.iter().map(|finding| (finding.program, finding.count, finding.bundle.clone())).collect();
        (findings, summary.programs, summary.cases, summary.wrong, summary.coverage.reached(), folder.files())
    };
    let one = run(1);
    assert_eq!(one.1, 333);
    assert!(run(2) == one);
    assert!(run(5) == one);
}

#[test]
fn what_is_in_the_folder_is_known() {
    let folder = Folder::new("known");
    let config = || Config { programs: Some(100), folder: Some(folder.0.clone()), ..Config::default() };
    let first = run_with(&INTS, Faulty(two_faults), &config());
    let files = folder.files();
    fs::write(folder.0.join("broken.json"), "{").expect("the folder can be written");
    let mut unreadable = Vec::new();
    let make = || Ok(Box::new(Faulty(two_faults)) as Box<dyn Subject>);
    let again = fuzz(&INTS, &make, &config(), &mut |event| {
        if let Event::Unreadable(path, _) = event {
            unreadable.push(path.to_path_buf());
        }
    })
    .expect("it goes through");
    assert_eq!(unreadable, [folder.0.join("broken.json")]);
    assert_eq!(folder.files().iter().filter(|name| *name != "broken.json").count(), files.len());
    assert!(!again.findings.is_empty() && again.findings.iter().all(|finding| finding.known && finding.file.is_some()));
    assert_eq!(again.wrong, first.wrong);
}

#[test]
fn subjects_that_are_right_have_no_findings() {
    for name in ["bulk", "passes", "plain"] {
        let make = || subject(name).map_err(|error| error.to_string());
        let config = Config { programs: Some(300), jobs: 2, ..Config::default() };
        let source = Programs { preset: Some(Preset::Everything), seed: 11, inputs: 2 };
        let summary = fuzz(&source, &make, &config, &mut |_| ()).expect("it goes through");
        let found: Vec<&str> = summary.findings.iter().map(|finding| finding.bundle.signature.as_str()).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
        assert_eq!((summary.programs, summary.cases, summary.skipped, summary.undecided), (300, 600, 0, 0), "{name}");
        assert!(summary.coverage.reached() > 500);
    }
}

#[test]
fn every_way_to_fail_is_its_own_kind() {
    let rows: [(Kind, Fault); 6] = [
        (Kind::Panic, |case, outcome| {
            assert!(!has_binary(&case.program, BinaryOp::Mul), "a product of {}", case.inputs.len());
            outcome
        }),
        (Kind::Refused, |_, _| Err(Failure::Refused("never".into()))),
        (Kind::Fuel, |_, _| Err(Failure::OutOfFuel)),
        (Kind::Device, |_, _| Err(Failure::Device("lost".into()))),
        (Kind::Trap, |_, _| Err(Failure::Trap { tag: 3, invocation: [0; 3] })),
        (Kind::Bytes, |_, outcome| outcome.map(|_| Vec::new())),
    ];
    for (kind, fault) in rows {
        let config = Config { programs: Some(40), ..Config::default() };
        let summary = run_with(&INTS, Faulty(fault), &config);
        let kinds: Vec<Kind> = summary.findings.iter().map(|finding| finding.bundle.kind).collect();
        assert!(kinds.first() == Some(&kind), "{kinds:?}, and it should be {kind}");
        for finding in &summary.findings {
            // A dispatch in which nothing runs shows nothing, even of a subject that is wrong about everything.
            let launch = finding.bundle.case.plan().expect("it is valid");
            assert!(launch.invocations() > 0, "{kind}: {}", finding.bundle.case.program);
        }
        if kind == Kind::Panic {
            assert_eq!(kinds.len(), 1, "one place, one finding");
            assert!(summary.findings[0].bundle.signature.contains("fuzz.rs:"));
        }
    }
}

#[test]
fn what_cannot_run_is_no_agreement() {
    let config = Config { programs: Some(32), ..Config::default() };
    let skipping = Faulty(|_, _| Err(Failure::Unsupported("everything".into())));
    let summary = run_with(&INTS, skipping, &config);
    assert_eq!((summary.cases, summary.skipped, summary.findings.len()), (0, 64, 0));
    let gone = Faulty(|_, _| Err(Failure::NotRun("no process".into())));
    let summary = run_with(&INTS, gone, &Config { programs: Some(1 << 40), ..Config::default() });
    assert!(summary.not_run.is_some_and(|(count, why)| count >= 32 && why.contains("no process")));
    let make = || Err("there is no such thing".to_string());
    let error = fuzz(&INTS, &make, &config, &mut |_| ()).err().expect("there is no subject");
    assert!(matches!(error, Error::Subject(why) if why.contains("no such thing")));
}

/// Right about every case, and the answers of neighbours have changed places.
struct Swaps;

impl Subject for Swaps {
    fn name(&self) -> &str {
        "swaps"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        expected(case)
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let mut answers: Vec<Answer> = cases.iter().map(|case| expected(case).into()).collect();
        answers.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        answers
    }
}

/// Each answer is compared with what its own case gives.
#[test]
fn answers_in_another_order_are_wrong() {
    let source = Programs { inputs: 1, ..INTS };
    let same = (0..128).step_by(2).filter(|n| expected(&source.cases(*n)[0]) == expected(&source.cases(n + 1)[0])).count();
    let make = || Ok(Box::new(Swaps) as Box<dyn Subject>);
    let config = Config { programs: Some(128), attempts: 0, ..Config::default() };
    let summary = fuzz(&source, &make, &config, &mut |_| ()).expect("it goes through");
    assert_eq!(summary.wrong + summary.undecided, 128 - 2 * same as u64);
    assert!(summary.wrong > 100, "{}", summary.wrong);
}

/// Panics where bits are counted, and is wrong about everything after that.
struct Spoiled(bool);

impl Subject for Spoiled {
    fn name(&self) -> &str {
        "spoiled"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        if has_unary(&case.program, UnaryOp::Popcount) {
            self.0 = true;
            panic!("bits are counted");
        }
        if self.0 { flipped(expected(case)) } else { expected(case) }
    }
}

/// What a panic leaves behind in a subject is not met by the programs after it.
#[test]
fn a_subject_that_panicked_is_made_anew_in_the_loop() {
    let make = || Ok(Box::new(Contained::new(|| Box::new(Spoiled(false)) as Box<dyn Subject>)) as Box<dyn Subject>);
    let config = Config { programs: Some(64), attempts: 0, ..Config::default() };
    let summary = fuzz(&INTS, &make, &config, &mut |_| ()).expect("it goes through");
    let found: Vec<&str> = summary.findings.iter().map(|finding| finding.bundle.signature.as_str()).collect();
    assert!(found.len() == 1 && found[0].starts_with("panic, spoiled: ") && found[0].contains("fuzz.rs:"), "{found:?}");
    let panicking = (0..64).filter(|n| has_unary(&INTS.cases(*n)[0].program, UnaryOp::Popcount)).count() as u64;
    assert!(panicking > 0 && panicking < 50, "{panicking}");
    assert_eq!((summary.wrong, summary.findings[0].stable), (panicking, true));
}

/// A subject that is wrong once and right ever after: the first evidence is kept.
#[test]
fn a_failure_that_does_not_happen_again_is_kept_as_seen() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let flaky = Faulty(|_, outcome| if ASKED.fetch_add(1, Ordering::Relaxed) == 5 { flipped(outcome) } else { outcome });
    let summary = run_with(&INTS, flaky, &Config { programs: Some(16), ..Config::default() });
    let [finding] = &summary.findings[..] else { panic!("{} findings", summary.findings.len()) };
    assert!(!finding.stable && finding.bundle.signature.ends_with("not every time"));
    assert_ne!(finding.bundle.expected, finding.bundle.got);
}

/// Hand-made programs, one of which races and one of which the reference refuses.
struct HandMade;

impl Source for HandMade {
    fn cases(&self, number: u64) -> Vec<Case> {
        let text = match number {
            0 => "program fine {\n  workgroup 4\n  buffer out: output u32[4] @0\n  out[gid.x] = gid.x\n}",
            1 => "program racy {\n  workgroup 4\n  buffer out: output u32[1] @0\n  out[0] = gid.x\n}",
            2 => return vec![Case::new(Program::new(Vec::new(), [0, 1, 1], Vec::new()), Vec::new())],
            _ => panic!("there are three programs"),
        };
        vec![Case::new(parse("hand.vyre", text).expect("it is a program"), Vec::new())]
    }

    fn origin(&self, _: u64, _: u32) -> Option<Origin> {
        None
    }
}

#[test]
fn races_are_not_compared_and_a_case_without_an_outcome_is_a_finding() {
    let config = Config { programs: Some(3), ..Config::default() };
    let summary = run_with(&HandMade, Faulty(|_, outcome| flipped(outcome)), &config);
    assert_eq!(summary.undecided, 1);
    let kinds: Vec<Kind> = summary.findings.iter().map(|finding| finding.bundle.kind).collect();
    assert_eq!(kinds, [Kind::Bytes, Kind::Reference]);
    assert_eq!(summary.findings[0].bundle.origin, None);
    // A source that panics is told, and ends the run.
    let summary = run_with(&HandMade, Faulty(|_, outcome| outcome), &Config { programs: Some(1 << 40), ..Config::default() });
    assert!(summary.not_run.is_some_and(|(_, why)| why.contains("there are three programs")));
}

#[test]
fn time_ends_a_run() {
    let config = Config { time: Some(std::time::Duration::from_millis(50)), jobs: 2, ..Config::default() };
    let summary = run_with(&INTS, Faulty(|_, outcome| outcome), &config);
    assert!(summary.programs > 0 && summary.findings.is_empty());
}

/// A fault of the table is found, reduced to what is wrong, and reported once, whether it shows in bytes or in traps.
#[test]
fn a_seeded_fault_is_one_finding() {
    for (name, wanted) in [("nan-compare", "lt"), ("lost-atomic", "atomic.add")] {
        let make = || subject(&format!("fault:{name}")).map_err(|error| error.to_string());
        let config = Config { programs: Some(3000), jobs: 2, ..Config::default() };
        let source = Programs { preset: Some(Preset::Everything), seed: 1, inputs: 2 };
        let summary = fuzz(&source, &make, &config, &mut |_| ()).expect("it goes through");
        let found: Vec<&str> = summary.findings.iter().map(|finding| finding.bundle.signature.as_str()).collect();
        assert_eq!(found, [format!("bytes, fault:{name}: {wanted}")]);
        assert!(summary.findings[0].bundle.case.program.walk().count() <= 12);
    }
}
