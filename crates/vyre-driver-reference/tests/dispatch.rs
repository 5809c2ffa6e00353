//! The backend as users meet it: found in the registry, chosen by route, driven by names and types.

use std::time::Duration;
use vyre_driver::backend::registry::{acquire, acquire_preferred, registered_backends};
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, Dispatch, DispatchConfig, route};
use vyre_driver_reference as _;
use vyre_foundation::ir::Program;
use vyre_foundation::text;

const SCALE: &str = "program scale {
  workgroup 4
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer out: output u32 @2
  const k: u32 = 3

  let i = gid.x
  if i < len(out) {
    out[i] = (a[i] + b[i]) * k
  }
}
";

fn program(source: &str) -> Program {
    text::parse("test", source).unwrap_or_else(|report| panic!("{report}"))
}

fn message<T: std::fmt::Debug>(result: Result<T, BackendError>) -> String {
    result.expect_err("it is refused").message()
}

#[test]
fn both_are_registered_and_the_faster_is_preferred() {
    let ids: Vec<&str> = registered_backends().iter().map(|registration| registration.id).collect();
    assert_eq!(ids, ["bulk", "reference"]);
    assert_eq!(acquire_preferred().expect("it opens").id(), "bulk");
    assert!(message(acquire("cuda").map(|backend| backend.id())).contains("use one of bulk, reference"));
}

#[test]
fn names_and_types_give_the_values() {
    let program = program(SCALE);
    for id in ["reference", "bulk"] {
        let backend = acquire(id).expect("it opens");
        let dispatch = Dispatch::new(&program).input("b", &[10u32, 20, 30]).input("a", &[1u32, 2, 3]).output::<u32>("out");
        let results = dispatch.run(&*backend).expect("it runs");
        assert_eq!(results.get::<u32>("out").expect("there is one"), [33, 66, 99]);
        let results = dispatch.clone().constant("k", SpecValue::U32(2)).run(&*backend).expect("it runs");
        assert_eq!(results.get::<u32>("out").expect("there is one"), [22, 44, 66]);
    }
}

#[test]
fn every_mistake_is_told_before_anything_runs_and_names_the_buffer() {
    let program = program(SCALE);
    let backend = acquire("bulk").expect("it opens");
    let good = || Dispatch::new(&program).input("a", &[1u32, 2]).input("b", &[1u32, 2]);
    let cases: [(Dispatch<'_>, &[&str]); 10] = [
        (Dispatch::new(&program).input("a", &[1u32]), &["`b` is missing"]),
        (good().input("c", &[1u32]), &["no input `c`"]),
        (good().input("a", &[1u32]), &["`a` is given twice"]),
        (Dispatch::new(&program).input("a", &[1u8, 2]).input("b", &[1u32]), &["`a`", "1 bytes each"]),
        (good().output::<u64>("out"), &["`out`", "8 bytes each"]),
        (good().output::<u32>("sum"), &["no output `sum`", "out"]),
        (good().grid([0, 1, 1]), &["has none"]),
        (good().grid([u32::MAX, u32::MAX, 1]), &["too many invocations"]),
        (good().workgroup([3, 1, 1]), &["does not divide"]),
        (good().constant("scale", SpecValue::U32(1)), &["`scale`"]),
    ];
    for (dispatch, words) in cases {
        let message = message(dispatch.run(&*backend));
        for word in words {
            assert!(message.contains(word), "{word} in\n{message}");
        }
    }
    let ragged = Dispatch::new(&program).input_bytes("a", [1, 2, 3]).input("b", &[1u32]).run(&*backend);
    assert!(message(ragged).contains("not a whole number of u32"));
    let late = good().timeout(Duration::ZERO).run(&*backend);
    assert!(matches!(late, Err(BackendError::Timeout { .. })), "{late:?}");
    let large = good().config(|config| config.max_output_bytes = Some(7)).run(&*backend);
    assert!(message(large).contains("at most 7 bytes"));
}

#[test]
fn a_route_says_why_others_were_passed_over() {
    let chosen = route(&program(SCALE), &DispatchConfig::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(chosen.backend.id(), "bulk");
    assert_eq!(chosen.tried.last().map(ToString::to_string), Some("bulk: fits".into()));
}
