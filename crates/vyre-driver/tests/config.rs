//! What holds for a call of a compiled pipeline, field by field; values of constants; what a program must be to be compiled.

mod support;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::device::{Plain, device};
use support::segments::program;
use vyre_driver::pipeline::{self, PipelineKey};
use vyre_driver::specialization::{SpecMap, SpecValue};
use vyre_driver::{BackendError, Dispatch, DispatchConfig, VyreBackend};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program, Size};

fn counts(entries: &[(&str, u32)]) -> BTreeMap<String, u32> {
    entries.iter().map(|(name, count)| (name.to_string(), *count)).collect()
}

fn spec(entries: &[(&str, SpecValue)]) -> SpecMap {
    entries.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// A config that says something in every field; another `n` says something else in every field.
fn full(n: u32) -> DispatchConfig {
    DispatchConfig {
        grid_override: Some([n, 1, 1]),
        workgroup_override: Some([n, 2, 3]),
        output_counts: counts(&[("out", n)]),
        max_output_bytes: Some(u64::from(n)),
        specialization: spec(&[("k", SpecValue::U32(n))]),
        ulp_budget: Some(n as u8),
        timeout: Some(Duration::from_secs(u64::from(n))),
        require_deterministic: Some(n.is_multiple_of(2)),
        profile: Some(n.to_string()),
        label: Some(format!("label {n}")),
    }
}

#[test]
fn what_a_call_does_not_say_is_what_was_compiled() {
    let nothing = DispatchConfig::default();
    assert_eq!(nothing.over(&full(1)).unwrap().into_owned(), full(1));
    assert_eq!(full(1).over(&full(1)).unwrap().into_owned(), full(1));
    assert!(matches!(nothing.over(&full(1)), Ok(Cow::Borrowed(_))), "nothing is copied");
    assert!(matches!(full(1).over(&full(1)), Ok(Cow::Borrowed(_))), "nothing is copied");
    assert_eq!(nothing.over(&nothing).unwrap().into_owned(), nothing);
}

#[test]
fn what_a_call_says_wins_field_by_field_and_changes_nothing_else() {
    let DispatchConfig {
        grid_override,
        workgroup_override: _,
        output_counts,
        max_output_bytes,
        specialization: _,
        ulp_budget: _,
        timeout,
        require_deterministic,
        profile,
        label,
    } = full(2);
    let nothing = DispatchConfig::default;
    let calls = [
        DispatchConfig { grid_override, ..nothing() },
        DispatchConfig { output_counts: output_counts.clone(), ..nothing() },
        DispatchConfig { max_output_bytes, ..nothing() },
        DispatchConfig { timeout, ..nothing() },
        DispatchConfig { require_deterministic, ..nothing() },
        DispatchConfig { profile: profile.clone(), ..nothing() },
        DispatchConfig { label: label.clone(), ..nothing() },
    ];
    let expected = [
        DispatchConfig { grid_override, ..full(1) },
        DispatchConfig { output_counts, ..full(1) },
        DispatchConfig { max_output_bytes, ..full(1) },
        DispatchConfig { timeout, ..full(1) },
        DispatchConfig { require_deterministic, ..full(1) },
        DispatchConfig { profile, ..full(1) },
        DispatchConfig { label, ..full(1) },
    ];
    for (call, expected) in calls.iter().zip(expected) {
        assert_eq!(call.over(&full(1)).unwrap().into_owned(), expected);
        assert_eq!(call.over(&nothing()).unwrap().into_owned(), *call);
    }
}

#[test]
fn lengths_of_outputs_are_laid_over_each_other_by_name() {
    let compiled = DispatchConfig { output_counts: counts(&[("a", 1), ("b", 2)]), ..DispatchConfig::default() };
    let call = DispatchConfig { output_counts: counts(&[("b", 20), ("c", 30)]), ..DispatchConfig::default() };
    assert_eq!(call.over(&compiled).unwrap().output_counts, counts(&[("a", 1), ("b", 20), ("c", 30)]));
    // So a call that says one length does not lose the other, which would silently be that of the longest input.
    let p = program(
        "program p {
          workgroup 4
          buffer a: read u32 @0
          buffer short: output u32 @1
          buffer long: output u32 @2
          short[gid.x] = len(short)
          long[gid.x] = len(long)
        }",
    );
    let compiled = DispatchConfig { output_counts: counts(&[("short", 1), ("long", 2)]), ..DispatchConfig::default() };
    let call = DispatchConfig { output_counts: counts(&[("long", 3)]), ..DispatchConfig::default() };
    for backend in [Arc::from(device()), Arc::new(Plain::default()) as Arc<dyn VyreBackend>] {
        let pipeline = pipeline::compile(backend, &p, &compiled).unwrap();
        let outputs = pipeline.dispatch_borrowed(&[&[0; 16]], &call).unwrap();
        assert_eq!(outputs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 12]);
    }
}

#[test]
fn what_changes_code_cannot_change_from_call_to_call() {
    let refused = |call: DispatchConfig, compiled: &DispatchConfig, what: &str| {
        let error = BackendError::from(call.over(compiled).unwrap_err());
        assert!(matches!(&error, BackendError::InvalidProgram { fix } if fix.contains(what)), "{what}: {error}");
    };
    let nothing = DispatchConfig::default();
    for compiled in [&full(1), &nothing] {
        let DispatchConfig { workgroup_override, specialization, ulp_budget, .. } = full(2);
        refused(DispatchConfig { workgroup_override, ..nothing.clone() }, compiled, "workgroup override");
        refused(DispatchConfig { ulp_budget, ..nothing.clone() }, compiled, "ulp budget");
        refused(DispatchConfig { specialization, ..nothing.clone() }, compiled, "says 2 for `k`");
    }
    // Saying the same again is no change; saying a part of it neither.
    let DispatchConfig { workgroup_override, ulp_budget, .. } = full(1);
    let again = DispatchConfig { workgroup_override, ulp_budget, label: Some("again".into()), ..nothing.clone() };
    assert_eq!(again.over(&full(1)).unwrap().into_owned(), DispatchConfig { label: Some("again".into()), ..full(1) });
    let two = DispatchConfig {
        specialization: spec(&[("k", SpecValue::U32(1)), ("f", SpecValue::F32(-0.0))]),
        ..DispatchConfig::default()
    };
    for part in [spec(&[("k", SpecValue::U32(1))]), spec(&[("f", SpecValue::F32(-0.0))])] {
        let call = DispatchConfig { specialization: part, ..nothing.clone() };
        assert_eq!(call.over(&two).unwrap().into_owned(), two);
    }
    for other in [("k", SpecValue::I32(1)), ("f", SpecValue::F32(0.0)), ("l", SpecValue::U32(1))] {
        refused(DispatchConfig { specialization: spec(std::slice::from_ref(&other)), ..nothing.clone() }, &two, other.0);
    }
}

#[test]
fn every_nan_is_the_same_value_of_a_constant() {
    let nan = |bits: u32| spec(&[("f", SpecValue::F32(f32::from_bits(bits)))]);
    let (one, other) = (nan(0x7FC0_0000), nan(0xFFC0_1234));
    assert_eq!(one, other);
    assert_eq!(one.cache_hash(), other.cache_hash());
    assert_ne!(one, nan(0x7F80_0000));
    let p =
        program("program p {\n workgroup 1\n const f: f32 = 1.0\n buffer out: output u32[1] @0\n out[0] = bitcast<u32>(f)\n}");
    let config = |specialization| DispatchConfig { specialization, ..DispatchConfig::default() };
    let backend = Plain::default();
    assert_eq!(PipelineKey::new(&backend, &p, &config(one.clone())), PipelineKey::new(&backend, &p, &config(other.clone())));
    assert_eq!(backend.dispatch(&p, &[], &config(other)), Ok(vec![0x7FC0_0000u32.to_le_bytes().to_vec()]));
}

#[test]
fn constants_are_replaced_before_the_program_is_judged() {
    // By its default the workgroup has no invocations; the value that it is given is what counts.
    let out = BufferDecl::output("out", 0, DataType::U32).with_count(4);
    let p = Program::wrapped(vec![out], [1, 1, 1], vec![Node::store("out", Expr::gid_x(), Expr::var("n"))])
        .with_const("n", SpecValue::U32(0))
        .with_workgroup(["n".into(), Size::Lit(1), Size::Lit(1)]);
    assert!(p.validated().is_err());
    let given = DispatchConfig { specialization: spec(&[("n", SpecValue::U32(4))]), ..DispatchConfig::default() };
    let expected: Vec<u8> = [4u32; 4].iter().flat_map(|value| value.to_le_bytes()).collect();
    for backend in [Arc::from(device()), Arc::new(Plain::default()) as Arc<dyn VyreBackend>] {
        let pipeline = pipeline::compile(backend.clone(), &p, &given).unwrap();
        assert_eq!(pipeline.dispatch(&[], &DispatchConfig::default()), Ok(vec![expected.clone()]));
        let typed = Dispatch::new(&p).constant("n", SpecValue::U32(4)).run(&*backend).unwrap();
        assert_eq!(typed.bytes("out").unwrap(), expected);
        assert!(matches!(pipeline::compile(backend, &p, &DispatchConfig::default()), Err(BackendError::Rejected(_))));
    }
}

#[test]
fn a_constant_with_the_name_of_a_variable_is_refused_and_does_not_take_its_place() {
    let out = BufferDecl::output("out", 0, DataType::U32).with_count(1);
    let nodes = vec![Node::let_bind("k", Expr::u32(7)), Node::store("out", Expr::u32(0), Expr::var("k"))];
    let p = Program::wrapped(vec![out], [1, 1, 1], nodes).with_const("k", SpecValue::U32(3));
    assert!(p.validated().is_err());
    let backend = Arc::new(Plain::default());
    for config in
        [DispatchConfig::default(), DispatchConfig { specialization: spec(&[("k", SpecValue::U32(9))]), ..Default::default() }]
    {
        let refusals = [
            pipeline::compile(backend.clone(), &p, &config).map(drop),
            backend.dispatch_borrowed(&p, &[], &config).map(drop),
            Dispatch::new(&p).config(|whole| *whole = config.clone()).run(&*backend).map(drop),
        ];
        for refused in refusals {
            assert!(matches!(&refused, Err(BackendError::Rejected(report)) if report.to_string().contains("`k`")), "{refused:?}");
        }
    }
}

#[test]
fn a_program_that_is_not_proven_deterministic_is_refused_where_that_is_asked_for() {
    let racy = program("program p {\n workgroup 2\n buffer out: output u32[4] @0\n out[0] = gid.x\n}");
    let flat = program("program p {\n workgroup 2\n buffer out: output u32[4] @0\n out[gid.x] = gid.x\n}");
    let config =
        |grid| DispatchConfig { grid_override: Some(grid), require_deterministic: Some(true), ..DispatchConfig::default() };
    let backend = Arc::new(Plain::default());
    let typed = |p: &Program, grid| Dispatch::new(p).grid(grid).require_deterministic().run(&*backend).map(drop);
    let compiled = |p: &Program, grid| pipeline::compile(backend.clone(), p, &config(grid)).map(drop);
    for (p, grid, proven) in [(&racy, [2, 1, 1], false), (&flat, [2, 1, 1], true), (&flat, [2, 2, 1], false)] {
        for found in [typed(p, grid), compiled(p, grid)] {
            match found {
                Ok(()) => assert!(proven, "{grid:?}\n{p}"),
                Err(BackendError::InvalidProgram { fix }) => assert!(!proven && fix.contains("not proven"), "{fix}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(backend.calls.load(std::sync::atomic::Ordering::Relaxed), 1, "what is refused does not run");
}
