//! What users get wrong: each is told, costs one case or one run, and loses nothing.

mod support;

use support::{How, conform, parts, plan, xor};
use vyre::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_conform::evidence::Verdict;
use vyre_conform::ledger::LedgerError;
use vyre_conform::{FindingKind, InputGenerator, OpSignature, OpSpec, RunError, StreamingRunner};

/// The program that specs are made from here, with an output of this type.
fn copy(ty: DataType) -> impl Fn([u32; 3]) -> Program + Clone {
    move |workgroup| {
        Program::wrapped(
            vec![BufferDecl::read("a", 0, DataType::U32), BufferDecl::output("out", 1, ty.clone())],
            workgroup,
            vec![Node::store("out", Expr::gid_x(), Expr::load("a", Expr::gid_x()))],
        )
    }
}

#[test]
fn a_spec_that_does_not_fit_together_is_not_made() {
    let whole = || OpSpec::builder("demo.copy").signature([DataType::U32], DataType::U32).program(copy(DataType::U32));
    assert!(whole().build().is_ok());
    let rows: Vec<(vyre_conform::OpSpecBuilder, &str)> = vec![
        (OpSpec::builder("demo.copy").program(copy(DataType::U32)), "it has no signature"),
        (OpSpec::builder("demo.copy").signature([DataType::U32], DataType::U32), "it has no program"),
        (OpSpec::builder("demo..copy").signature([DataType::U32], DataType::U32).program(copy(DataType::U32)), "words with dots"),
        (whole().workgroup_sizes([]), "each must be at least 1"),
        (whole().workgroup_sizes([64, 0]), "each must be at least 1"),
        (whole().signature([DataType::U32, DataType::U32], DataType::U32), "the signature says u32, u32 and u32"),
        (whole().signature([DataType::I32], DataType::U32), "it reads u32 and writes u32, and the signature says i32 and u32"),
        // A store of another type than the buffer's.
        (whole().program(copy(DataType::F32)), "the program for workgroups of 1"),
        (whole().alternative("other", copy(DataType::F32)), "the program `other` for workgroups of 1"),
        (whole().elements(vyre_conform::Extent::element(2, 1)), "other buffers than the signature"),
    ];
    for (parts, says) in rows {
        let error = parts.build().expect_err(says).to_string();
        assert!(error.contains(says), "{error} does not say: {says}");
    }
}

#[test]
fn a_cpu_fn_that_panics_costs_the_cases_it_panics_on() {
    let spec = parts("demo.xor", 1000)
        .cpu_fn(|case| {
            let a = u32::from_le_bytes(*case.first_chunk().unwrap());
            assert!(a != 7 && a != 900, "not {a}");
            case[..4].iter().zip(&case[4..]).map(|(a, b)| a ^ b).collect()
        })
        .build()
        .unwrap();
    let outcome = conform(&plan(vec![spec]), &How::default()).unwrap();
    assert_eq!((outcome.verdict, outcome.report.summary.passed, outcome.report.summary.failed), (Verdict::Fails, 1996, 4));
    let said: Vec<&str> = outcome.report.failures.iter().map(|failure| failure.message.as_str()).collect();
    assert!(said.iter().all(|said| said.starts_with("cpu_fn panicked: not ")), "{said:?}");
    assert!(outcome.report.failures.iter().all(|failure| failure.kind == FindingKind::Case));
}

#[test]
fn a_cpu_fn_that_disagrees_with_the_reference_is_the_suites_own_fault() {
    let spec =
        parts("demo.xor", 100).cpu_fn(|case| case[..4].iter().zip(&case[4..]).map(|(a, b)| a & b).collect()).build().unwrap();
    let outcome = conform(&plan(vec![spec]), &How::default()).unwrap();
    assert!(
        outcome.report.failures.iter().any(|failure| {
            failure.kind == FindingKind::Disputed && failure.message.contains("the suite disagrees with itself")
        })
    );
}

/// Gives cases for ever.
struct Endless;

impl InputGenerator for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn handles(&self, _: &OpSignature) -> bool {
        true
    }

    fn generate_for_op_streaming(&self, _: &str, _: &OpSignature, _: u64, each: &mut dyn FnMut(String, Vec<u8>)) {
        for n in 0u64.. {
            each(n.to_string(), n.to_le_bytes().to_vec());
        }
    }
}

struct Panics;

impl InputGenerator for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn handles(&self, _: &OpSignature) -> bool {
        true
    }

    fn generate_for_op_streaming(&self, _: &str, _: &OpSignature, _: u64, each: &mut dyn FnMut(String, Vec<u8>)) {
        each("0".into(), vec![0; 8]);
        panic!("no more ideas");
    }
}

#[test]
fn a_generator_that_never_ends_ends_at_its_limit() {
    let backend = vyre::backend::registry::acquire("bulk").unwrap();
    let report = StreamingRunner::new().with_generator(Endless).max_cases(100_000).run(&*backend, &[xor(1)]).unwrap();
    assert_eq!((report.summary.tested, report.summary.failed), (200_000, 0));
}

#[test]
fn a_generator_that_panics_stops_the_run_and_is_named() {
    let backend = vyre::backend::registry::acquire("bulk").unwrap();
    let outcome = StreamingRunner::new().with_generator(Panics).run(&*backend, &[xor(1)]);
    assert!(matches!(&outcome, Err(RunError::Stopped(said)) if said.contains("`panics` panicked: no more ideas")), "{outcome:?}");
}

#[test]
fn runs_that_make_no_sense_are_refused() {
    let backend = vyre::backend::registry::acquire("bulk").unwrap();
    let rows = [
        (StreamingRunner::new().shard(5, 4), "no shard 5 of 4"),
        (StreamingRunner::new().batch_size(0), "at least one case"),
        (StreamingRunner::new().with_generator(Endless).with_generator(Endless), "two generators `endless`"),
    ];
    for (runner, says) in rows {
        let outcome = runner.max_cases(1).run(&*backend, &[xor(1)]);
        assert!(matches!(&outcome, Err(RunError::Usage(said)) if said.contains(says)), "{outcome:?}");
    }
    let twice = StreamingRunner::new().with_generator(Endless).max_cases(1).run(&*backend, &[xor(1), xor(2)]);
    assert!(matches!(&twice, Err(RunError::Usage(said)) if said.contains("two ops `demo.xor`")), "{twice:?}");
}

#[test]
fn a_folder_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let plan = plan(vec![xor(100)]);
    let outcome = conform(&plan, &How { state: Some(&file.join("below")), ..How::default() });
    assert!(matches!(outcome, Err(RunError::Ledger(LedgerError::Io(..)))));
    // Not a ledger at all.
    std::fs::write(folder.path().join("run.redb"), "this is not a ledger, and it is not empty either").unwrap();
    let outcome = conform(&plan, &How { state: Some(folder.path()), ..How::default() });
    assert!(matches!(&outcome, Err(RunError::Ledger(LedgerError::Damaged(path, _))) if path.ends_with("run.redb")));
    assert!(std::fs::read_to_string(folder.path().join("run.redb")).unwrap().starts_with("this is not"), "nothing is lost");
}
