//! A dispatch by names and types: what goes in and comes out, and every mistake told by the name of its buffer before anything runs.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::device::Plain;
use support::segments::program;
use vyre_driver::backend::private::Sealed;
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, Dispatch, DispatchConfig, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_spec::ErrorCode;

#[test]
fn values_of_every_kind_of_element_go_in_and_come_out() {
    let p = program(
        "program p {
          workgroup 4
          buffer flags: read bool @0
          buffer pairs: read vec2<u32> @1
          buffer quads: read vec4<f32> @2
          buffer halves: read f16 @3
          buffer nibbles: read i4 @4
          buffer wide: read u64 @5
          buffer bytes: read u8 @6
          buffer doubles: read f64 @7
          buffer empty: read u32 @8
          buffer out_flags: output bool[4] @9
          buffer out_pairs: output vec2<u32>[4] @10
          buffer out_quads: output vec4<f32>[4] @11
          buffer out_halves: output f16[4] @12
          buffer out_nibbles: output i32[4] @13
          buffer out_wide: output u64[4] @14
          buffer out_bytes: output u8[4] @15
          buffer out_doubles: output f64[4] @16
          buffer out_empty: output u32[4] @17
          out_flags[gid.x] = flags[gid.x]
          out_pairs[gid.x] = pairs[gid.x]
          out_quads[gid.x] = quads[gid.x]
          out_halves[gid.x] = halves[gid.x]
          out_nibbles[gid.x] = nibbles[gid.x]
          out_wide[gid.x] = wide[gid.x]
          out_bytes[gid.x] = bytes[gid.x]
          out_doubles[gid.x] = doubles[gid.x]
          out_empty[gid.x] = len(empty)
        }",
    );
    let backend = Plain::default();
    let quads = [[1.0f32, 2.0, 3.0, 4.0], [5.0; 4], [-0.0; 4], [f32::INFINITY; 4]];
    let given = Dispatch::new(&p)
        .input("nibbles", &[0x21u8, 0xF8])
        .input("halves", &[0x3C00u16, 0x7E00, 0xFE01, 0x8000])
        .input("quads", &quads)
        .input("pairs", &[[1u32, 2], [3, 4], [5, 6], [7, 8]])
        .input("flags", &[0u32, 1, 2, u32::MAX])
        .input("wide", &[1u64 << 40, 2, 3, 4])
        .input("bytes", &[1u8, 2, 3, 255])
        .input("doubles", &[0.1f64, -0.0, 2.0, 1e300])
        .input::<u32>("empty", &[])
        .output::<u32>("out_flags")
        .output::<[u32; 2]>("out_pairs")
        .output::<[f32; 4]>("out_quads")
        .output::<u16>("out_halves");
    let results = given.run(&backend).unwrap();
    assert_eq!(results.get::<u32>("out_flags").unwrap(), [0, 1, 1, 1]);
    assert_eq!(results.get::<[u32; 2]>("out_pairs").unwrap(), [[1, 2], [3, 4], [5, 6], [7, 8]]);
    // The parts of vectors, one by one, and bits as integers.
    assert_eq!(results.get::<u32>("out_pairs").unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(results.get::<f32>("out_quads").unwrap()[..4], quads[0]);
    assert_eq!(results.get::<[u32; 4]>("out_quads").unwrap()[2], [0x8000_0000; 4]);
    assert_eq!(results.get::<u16>("out_halves").unwrap(), [0x3C00, 0x7E00, 0x7E00, 0x8000]);
    assert_eq!(results.get::<i32>("out_nibbles").unwrap(), [1, 2, -8, -1]);
    assert_eq!(results.get::<u64>("out_wide").unwrap(), [1 << 40, 2, 3, 4]);
    assert_eq!(results.get::<u8>("out_bytes").unwrap(), [1, 2, 3, 255]);
    assert_eq!(results.get::<f64>("out_doubles").unwrap(), [0.1, -0.0, 2.0, 1e300]);
    assert_eq!(results.get::<u32>("out_empty").unwrap(), [0; 4]);
    assert_eq!(results.iter().map(|(name, _)| name).collect::<Vec<_>>()[..2], ["out_flags", "out_pairs"]);
    // The parts of vectors as inputs.
    let parts = given.clone().config(|_| {}).run(&backend).unwrap();
    assert_eq!(parts, results);
}

const TWO: &str = "program two {
  workgroup 4
  const k: u32 = 3
  buffer first: read u32 @3
  buffer second: read u32[2] @1
  buffer changed: read_write i32 @0
  buffer result: output u32 @2
  buffer scratch: workgroup u32[4]
  result[gid.x] = first[gid.x] + second[0] + k
}";

/// Runs on a backend that must not be reached, and gives codes and text of the refusal.
fn refused(dispatch: &Dispatch<'_>) -> (Vec<ErrorCode>, String) {
    let backend = Plain::default();
    match dispatch.run(&backend) {
        Err(BackendError::Rejected(report)) => {
            assert_eq!(backend.calls.load(Ordering::Relaxed), 0, "it ran: {report}");
            (report.codes().collect(), report.to_string())
        }
        other => panic!("{other:?}"),
    }
}

fn good(p: &Program) -> Dispatch<'_> {
    Dispatch::new(p).input("first", &[1u32, 2]).input("second", &[5u32, 6]).input("changed", &[1i32])
}

#[test]
fn mistakes_name_the_buffer_and_nothing_runs() {
    let p = program(TWO);
    good(&p).output::<u32>("result").output::<i32>("changed").run(&Plain::default()).unwrap();
    let without = |name: &str| {
        let mut dispatch = Dispatch::new(&p);
        for (known, values) in [("first", [1u32, 2].as_slice()), ("second", &[5, 6]), ("changed", &[1])] {
            if known != name {
                dispatch = dispatch.input(known, values);
            }
        }
        dispatch
    };
    use ErrorCode as E;
    let cases: Vec<(Dispatch<'_>, Vec<ErrorCode>, &[&str])> = vec![
        // Names.
        (without("first"), vec![E::E0701], &["`first` is missing"]),
        (without("first").input("frist", &[1u32]), vec![E::E0702], &["no input `frist`", "did you mean `first`?"]),
        (good(&p).input("extra", &[1u32]), vec![E::E0702], &["no input `extra`"]),
        (good(&p).input("first", &[1u32]), vec![E::E0715], &["`first` is given twice"]),
        (good(&p).input("result", &[1u32]), vec![E::E0702], &["`result` is output"]),
        (good(&p).input("scratch", &[1u32; 4]), vec![E::E0702], &["`scratch` is workgroup"]),
        (good(&p).output::<u32>("reslut"), vec![E::E0702], &["no output `reslut`", "did you mean `result`?"]),
        (good(&p).output::<u32>("first"), vec![E::E0702], &["no output `first`"]),
        (good(&p).output::<u32>("scratch"), vec![E::E0702], &["no output `scratch`"]),
        (good(&p).output::<u32>("zzz"), vec![E::E0702], &["one of changed, result"]),
        (good(&p).output_len("second", 3), vec![E::E0702], &["`second`"]),
        (good(&p).constant("kk", SpecValue::U32(1)), vec![E::E0709], &["`kk`"]),
        // Types.
        (good(&p).output::<u64>("result"), vec![E::E0704], &["`result`", "8 bytes each"]),
        (good(&p).output::<()>("result"), vec![E::E0704], &["`result`", "0 bytes each"]),
        (good(&p).output::<[u32; 2]>("result"), vec![E::E0704], &["`result`", "8 bytes each"]),
        (good(&p).output::<f32>("result"), vec![E::E0714], &["`result` are floats"]),
        (without("first").input("first", &[1u8, 2]), vec![E::E0704], &["`first`", "1 bytes each"]),
        (without("first").input("first", &[(), ()]), vec![E::E0704], &["`first`", "0 bytes each"]),
        (without("first").input::<[u32; 0]>("first", &[[]]), vec![E::E0704], &["`first`", "0 bytes each"]),
        (without("first").input("first", &[1.0f32]), vec![E::E0714], &["`first` are floats", "f32::to_bits"]),
        (good(&p).constant("k", SpecValue::F32(1.0)), vec![E::E0710], &["`k` needs a u32"]),
        // Lengths.
        (without("first").input_bytes("first", [1, 2, 3]), vec![E::E0704], &["`first` got 3 bytes"]),
        (without("second").input("second", &[1u32]), vec![E::E0703], &["`second` is too short"]),
        (without("second").input("second", &[1u32; 3]), vec![E::E0703], &["`second` is too long"]),
        (good(&p).config(|config| config.max_output_bytes = Some(7)), vec![E::E0708], &["at most 7 bytes"]),
        (good(&p).output_len("result", u32::MAX), vec![E::E0708], &["17179869180 bytes"]),
        // The launch.
        (good(&p).grid([0, 1, 1]), vec![E::E0707], &["has none"]),
        (good(&p).grid([1, 1, 0]), vec![E::E0707], &["has none"]),
        (good(&p).grid([u32::MAX, 1, 1]), vec![E::E0708], &["too many invocations"]),
        (good(&p).grid([1 << 16, 1 << 16, 1 << 16]), vec![E::E0708], &["too many invocations"]),
        (good(&p).grid([u32::MAX; 3]), vec![E::E0708], &["too many invocations"]),
        (good(&p).workgroup([8, 1, 1]), vec![E::E0711], &["workgroup memory"]),
        // Several at once are all told.
        (
            Dispatch::new(&p).input("first", &[1u8]).output::<f64>("result").output::<u32>("nothing"),
            vec![E::E0701, E::E0701, E::E0702, E::E0704, E::E0704],
            &["`first`", "`second` is missing", "`changed` is missing", "`result`", "`nothing`"],
        ),
    ];
    for (dispatch, mut codes, words) in cases {
        let (mut found, text) = refused(&dispatch);
        found.sort_unstable();
        codes.sort_unstable();
        assert_eq!(found, codes, "{text}");
        for word in words {
            assert!(text.contains(word), "{word} in\n{text}");
        }
    }
    let none = program("program p {\n workgroup 1\n buffer a: read u32 @0\n}");
    let (_, text) = refused(&Dispatch::new(&none).input("a", &[1u32]).output::<u32>("out"));
    assert!(text.contains("it gives no outputs"), "{text}");
    let backend = Plain::default();
    let late = good(&p).timeout(Duration::ZERO).run(&backend);
    assert_eq!(late, Err(BackendError::Timeout { limit: Duration::ZERO }));
    assert_eq!(backend.calls.load(Ordering::Relaxed), 0);
    let invalid =
        program("program p {\n workgroup 1\n buffer out: output u32[1] @0\n out[0] = 1\n}").edit(|parts| parts.buffers.clear());
    assert!(matches!(Dispatch::new(&invalid).run(&backend), Err(BackendError::Rejected(_))));
    assert_eq!(backend.calls.load(Ordering::Relaxed), 0);
}

#[test]
fn results_are_asked_for_by_name_and_type() {
    let p = program(TWO);
    let results = good(&p).run(&Plain::default()).unwrap();
    assert_eq!(results.get::<u32>("result").unwrap(), [9, 10]);
    assert_eq!(results.get::<i32>("changed").unwrap(), [1]);
    let message = |result: Result<(), BackendError>| result.unwrap_err().message();
    assert!(message(results.get::<u32>("resutl").map(drop)).contains("did you mean `result`?"));
    assert!(message(results.bytes("first").map(drop)).contains("one of changed, result"));
    for wrong in [
        results.get::<u8>("result").map(drop),
        results.get::<u64>("result").map(drop),
        results.get::<()>("result").map(drop),
        results.get::<f32>("result").map(drop),
    ] {
        assert!(message(wrong).contains("`result`"));
    }
}

/// Gives what it is told to.
struct Wrong(Vec<Vec<u8>>);

impl Sealed for Wrong {}

impl VyreBackend for Wrong {
    fn id(&self) -> &'static str {
        "wrong"
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_backend_that_gives_other_outputs_than_the_program_has_is_found_out() {
    let p = program(TWO);
    assert!(good(&p).run(&Wrong(vec![vec![0; 4], vec![0; 8]])).is_ok());
    for outputs in [vec![], vec![vec![0; 4]], vec![vec![0; 4], vec![0; 8], vec![]]] {
        let found = outputs.len();
        let error = good(&p).run(&Wrong(outputs)).unwrap_err();
        assert!(error.message().contains(&format!("gave {found} outputs of 2")), "{error}");
    }
    for length in [0, 7, 9, 12] {
        let error = good(&p).run(&Wrong(vec![vec![0; 4], vec![0; length]]));
        assert_eq!(error, Err(BackendError::ShortRead { expected: 8, found: length as u64 }));
    }
}

#[test]
fn a_dispatch_can_be_kept_changed_and_run_again() {
    let p = program(TWO);
    let backend: Arc<dyn VyreBackend> = Arc::new(Plain::default());
    let base = good(&p);
    let first = base.run(&*backend).unwrap();
    let other = base.clone().constant("k", SpecValue::U32(0)).output_len("result", 3).run(&*backend).unwrap();
    assert_eq!(other.get::<u32>("result").unwrap(), [6, 7, 5]);
    assert_eq!(base.run(&*backend).unwrap(), first);
}
