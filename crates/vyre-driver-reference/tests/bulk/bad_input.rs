//! What callers get wrong, on both backends and through every way to run: a typed error, and nothing has run.

use crate::{program, slices, words};
use std::sync::Arc;
use std::time::Duration;
use vyre_driver::backend::registry::acquire;
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, Resource, VyreBackend, pipeline};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};

const COPY: &str = "program copy {
  workgroup 4
  buffer state: read_write u32 @0
  buffer four: read u32[4] @1
  buffer out: output u32 @2
  const k: u32 = 3

  if gid.x < len(out) {
    state[gid.x] = state[gid.x] + four[gid.x % 4]
    out[gid.x] = state[gid.x] * k
  }
}
";

/// Of two dimensions, and proven for grids that are flat along y and z.
const PLANE: &str = "program plane {
  workgroup 4 2
  buffer out: output u32[64] @0

  out[gid.y * gid_count.x + gid.x] = gid.x
}
";

/// Many write one element.
const RACE: &str = "program race {
  workgroup 4
  buffer out: output u32[4] @0

  out[0] = gid.x
}
";

const TRAP: &str = "program fails {
  workgroup 4
  buffer out: output u32[4] @0

  trap(1)
}
";

const NO_LENGTH: &str = "program no_length {
  workgroup 4
  buffer four: read u32[4] @0
  buffer out: output u32 @1

  out[gid.x] = four[gid.x]
}
";

/// One thing that is wrong.
struct Mistake {
    what: &'static str,
    program: Program,
    inputs: Vec<Vec<u8>>,
    config: DispatchConfig,
    /// The code of the report, and that of a dispatch on resources where it differs.
    codes: (&'static str, Option<&'static str>),
}

fn copy(what: &'static str, code: &'static str, change: impl FnOnce(&mut Vec<Vec<u8>>, &mut DispatchConfig)) -> Mistake {
    let mut mistake = Mistake {
        what,
        program: program(COPY),
        inputs: vec![words(0..8), words(0..4)],
        config: DispatchConfig::default(),
        codes: (code, None),
    };
    change(&mut mistake.inputs, &mut mistake.config);
    mistake
}

fn other(
    what: &'static str,
    source: &str,
    code: &'static str,
    change: impl FnOnce(&mut Vec<Vec<u8>>, &mut DispatchConfig),
) -> Mistake {
    let mut mistake =
        Mistake { what, program: program(source), inputs: vec![], config: DispatchConfig::default(), codes: (code, None) };
    change(&mut mistake.inputs, &mut mistake.config);
    mistake
}

fn mistakes() -> Vec<Mistake> {
    let count = |mistake: Mistake| Mistake { codes: (mistake.codes.0, Some("E0804")), ..mistake };
    let too_large = Program::wrapped(
        vec![BufferDecl::output("out", 0, DataType::U32).with_count(4)],
        [1025, 1, 1],
        vec![Node::store("out", Expr::gid_x(), Expr::u32(1))],
    );
    vec![
        count(copy("an input too few", "E0701", |inputs, _| {
            inputs.pop();
        })),
        count(copy("an input too many", "E0701", |inputs, _| inputs.push(words(0..4)))),
        copy("shorter than declared", "E0703", |inputs, _| inputs[1] = words(0..3)),
        copy("longer than declared", "E0703", |inputs, _| inputs[1] = words(0..5)),
        copy("in another order", "E0703", |inputs, _| inputs.swap(0, 1)),
        copy("no whole elements", "E0704", |inputs, _| {
            inputs[0].pop();
        }),
        other("an output whose length nobody says", NO_LENGTH, "E0705", |inputs, _| inputs.push(words(0..4))),
        copy("a length for what has one", "E0702", |_, config| {
            config.output_counts.insert("four".into(), 4);
        }),
        copy("a length for what is not there", "E0702", |_, config| {
            config.output_counts.insert("result".into(), 4);
        }),
        copy("outputs above the limit", "E0708", |_, config| config.max_output_bytes = Some(31)),
        copy("outputs above the default limit", "E0708", |_, config| {
            config.output_counts.insert("out".into(), 1 << 29);
        }),
        other("two dimensions and no grid", PLANE, "E0706", |_, _| {}),
        copy("a grid with a zero", "E0707", |_, config| config.grid_override = Some([2, 0, 1])),
        copy("a grid that overflows an axis", "E0708", |_, config| config.grid_override = Some([u32::MAX, 1, 1])),
        copy("a grid that overflows", "E0708", |_, config| config.grid_override = Some([u32::MAX; 3])),
        Mistake { what: "a workgroup too large", program: too_large, ..other("", RACE, "E0407", |_, _| {}) },
        copy("another workgroup that is too large", "E0711", |_, config| config.workgroup_override = Some([2048, 1, 1])),
        copy("another workgroup without invocations", "E0711", |_, config| config.workgroup_override = Some([0, 1, 1])),
        copy("another workgroup that does not divide", "E0711", |_, config| config.workgroup_override = Some([3, 1, 1])),
        copy("an unknown constant", "E0709", |_, config| config.specialization.insert("scale", SpecValue::U32(1))),
        copy("a constant of another type", "E0710", |_, config| config.specialization.insert("k", SpecValue::F32(1.0))),
        copy("no time", "E0807", |_, config| config.timeout = Some(Duration::ZERO)),
        other("no time, and it would trap", TRAP, "E0807", |_, config| config.timeout = Some(Duration::ZERO)),
        other("no proof", RACE, "E0804", |_, config| config.require_deterministic = Some(true)),
        other("no proof for this grid", PLANE, "E0804", |_, config| {
            config.require_deterministic = Some(true);
            config.grid_override = Some([1, 1, 2]);
        }),
    ]
}

fn code(error: &BackendError) -> String {
    error.report(None).codes().next().expect("a report has a mistake").to_string()
}

/// Runs into buffers of the caller's, which must stay as they are.
fn refused(what: &str, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> BackendError {
    let mut outputs = vec![vec![0xA5; 3], vec![], vec![0xA5; 100], vec![1]];
    let before = outputs.clone();
    let error = call(&mut outputs).err().unwrap_or_else(|| panic!("{what}: it ran"));
    assert_eq!(outputs, before, "{what}");
    error
}

#[test]
fn every_mistake_is_refused_before_anything_runs() {
    for id in ["reference", "bulk"] {
        let backend: Arc<dyn VyreBackend> = Arc::from(acquire(id).unwrap());
        for Mistake { what, program, inputs, config, codes } in mistakes() {
            let what = format!("{id}: {what}");
            let borrowed = slices(&inputs);
            let mut errors = vec![
                ("dispatch", backend.dispatch(&program, &inputs, &config).unwrap_err()),
                ("dispatch_borrowed", backend.dispatch_borrowed(&program, &borrowed, &config).unwrap_err()),
                ("_into", refused(&what, |outputs| backend.dispatch_borrowed_into(&program, &borrowed, &config, outputs))),
                ("_timed", backend.dispatch_borrowed_timed(&program, &borrowed, &config).unwrap_err()),
                ("_async", backend.dispatch_async(&program, &inputs, &config).map(drop).unwrap_err()),
            ];
            // A pipeline says it when it is compiled or when it is run.
            let pipeline = || pipeline::compile(backend.clone(), &program, &config);
            let nothing = DispatchConfig::default();
            errors
                .push(("a pipeline", refused(&what, |outputs| pipeline()?.dispatch_borrowed_into(&borrowed, &nothing, outputs))));
            errors.push((
                "a pipeline's batch",
                pipeline().and_then(|it| it.dispatch_borrowed_batched(&[&borrowed], &nothing)).unwrap_err(),
            ));
            // What does not change code can also be wrong in the call alone.
            if config.specialization.is_empty() && config.workgroup_override.is_none() && program.validated().is_ok() {
                let pipeline = pipeline::compile(backend.clone(), &program, &nothing).unwrap();
                errors.push(("the call", refused(&what, |outputs| pipeline.dispatch_borrowed_into(&borrowed, &config, outputs))));
            }
            for (form, error) in errors {
                assert_eq!(code(&error), codes.0, "{what} through {form}: {error}");
            }
            on_resources(&*backend, &what, &program, &inputs, &config, codes.1.unwrap_or(codes.0), &pipeline);
        }
    }
}

/// The same on resources: inputs on the device or not, outputs not.
fn on_resources(
    backend: &dyn VyreBackend,
    what: &str,
    program: &Program,
    inputs: &[Vec<u8>],
    config: &DispatchConfig,
    expected: &str,
    pipeline: &dyn Fn() -> Result<Arc<dyn vyre_driver::CompiledPipeline>, BackendError>,
) {
    let is_supported = backend.id() == "bulk";
    let expected = if is_supported { expected } else { "E0801" };
    let outputs = program.buffers().iter().filter(|decl| decl.access.is_output() && !decl.access.is_input()).count();
    for is_resident in [false, true].into_iter().take(1 + usize::from(is_supported)) {
        let mut resources: Vec<Resource> = inputs
            .iter()
            .map(|bytes| match is_resident {
                false => Resource::Borrowed(bytes.clone()),
                true => {
                    let resource = backend.allocate_resident(bytes.len()).unwrap();
                    backend.upload_resident(&resource, bytes).unwrap();
                    resource
                }
            })
            .collect();
        resources.extend(vec![Resource::Borrowed(Vec::new()); outputs]);
        let error = backend.dispatch_resident_timed(program, &resources, config).unwrap_err();
        assert_eq!(code(&error), expected, "{what} on resources: {error}");
        let nothing = DispatchConfig::default();
        let error = refused(what, |outputs| pipeline()?.dispatch_persistent_handles_into(&resources, &nothing, outputs));
        assert!(code(&error) == expected || !is_supported, "{what} through a pipeline on resources: {error}");
        for (resource, bytes) in resources.iter().zip(inputs).filter(|_| is_resident) {
            assert_eq!(backend.download_resident(resource).as_ref(), Ok(bytes), "{what}");
        }
    }
}

#[test]
fn what_is_not_wrong_runs_through_every_way() {
    // The table above says something only if the same dispatch without the mistake is fine.
    for id in ["reference", "bulk"] {
        let backend: Arc<dyn VyreBackend> = Arc::from(acquire(id).unwrap());
        let Mistake { program, inputs, config, .. } = copy("", "", |_, config| {
            config.timeout = Some(Duration::from_secs(3600));
            config.max_output_bytes = Some(32);
            config.workgroup_override = Some([2, 1, 1]);
            config.require_deterministic = Some(true);
        });
        let state: Vec<u32> = (0..8).map(|n| n + n % 4).collect();
        let expected = vec![words(state.clone()), words(state.iter().map(|x| 3 * x))];
        let borrowed = slices(&inputs);
        assert_eq!(backend.dispatch_borrowed(&program, &borrowed, &config).as_ref(), Ok(&expected));
        let pipeline = pipeline::compile(backend.clone(), &program, &config).unwrap();
        assert_eq!(pipeline.dispatch_borrowed(&borrowed, &DispatchConfig::default()).as_ref(), Ok(&expected));
        let proven = other("", PLANE, "", |_, config| {
            config.require_deterministic = Some(true);
            config.grid_override = Some([2, 2, 1]);
        });
        assert!(backend.dispatch(&proven.program, &[], &proven.config).is_ok());
    }
}

#[test]
fn a_pipeline_cannot_become_another_from_call_to_call() {
    for id in ["reference", "bulk"] {
        let backend: Arc<dyn VyreBackend> = Arc::from(acquire(id).unwrap());
        let compiled = copy("", "", |_, config| {
            config.specialization.insert("k", SpecValue::U32(5));
            config.workgroup_override = Some([2, 1, 1]);
            config.ulp_budget = Some(1);
        });
        let inputs = slices(&compiled.inputs);
        let by_compile = pipeline::compile(backend.clone(), &compiled.program, &compiled.config).unwrap();
        let native = backend.compile_native(&compiled.program, &compiled.config).unwrap();
        for pipeline in [Some(by_compile), native].into_iter().flatten() {
            let values = |value: u32| [("k".to_string(), SpecValue::U32(value))].into_iter().collect();
            let nothing = DispatchConfig::default;
            let expected = backend.dispatch_borrowed(&compiled.program, &inputs, &compiled.config).unwrap();
            for call in [compiled.config.clone(), DispatchConfig { specialization: values(5), ..nothing() }, nothing()] {
                assert_eq!(pipeline.dispatch_borrowed(&inputs, &call).as_ref(), Ok(&expected), "{id}");
            }
            for call in [
                DispatchConfig { specialization: values(4), ..nothing() },
                DispatchConfig { specialization: [("q".to_string(), SpecValue::U32(5))].into_iter().collect(), ..nothing() },
                DispatchConfig { workgroup_override: Some([4, 1, 1]), ..nothing() },
                DispatchConfig { ulp_budget: Some(2), ..nothing() },
            ] {
                let error = refused(id, |outputs| pipeline.dispatch_borrowed_into(&inputs, &call, outputs));
                assert!(matches!(&error, BackendError::InvalidProgram { fix } if fix.contains("compile it again")), "{error}");
            }
        }
    }
}

#[test]
fn a_result_that_comes_too_late_is_none() {
    // Longer than a millisecond on any machine, and begun within it.
    let slow = program(
        "program slow {\n  workgroup 64\n  buffer out: output u32[256] @0\n  let x = gid.x\n  for i in 0..40000 {\n    x = x * 3 + i\n  }\n  \
         out[gid.x] = x\n}\n",
    );
    for id in ["reference", "bulk"] {
        let backend: Arc<dyn VyreBackend> = Arc::from(acquire(id).unwrap());
        let pipeline = pipeline::compile(backend.clone(), &slow, &DispatchConfig::default()).unwrap();
        let limit = Duration::from_millis(1);
        let config = DispatchConfig { timeout: Some(limit), ..DispatchConfig::default() };
        let late = Err(BackendError::Timeout { limit });
        assert_eq!(backend.dispatch(&slow, &[], &config), late);
        assert_eq!(pipeline.dispatch_borrowed(&[], &config), late);
        let error = refused(id, |outputs| pipeline.dispatch_borrowed_into(&[], &config, outputs));
        assert_eq!(Err(error), late);
        if id == "bulk" {
            let out = backend.allocate_resident(1024).unwrap();
            backend.upload_resident(&out, &[7; 1024]).unwrap();
            assert_eq!(pipeline.dispatch_persistent_handles(std::slice::from_ref(&out), &config), late);
            assert_eq!(backend.download_resident(&out), Ok(vec![7; 1024]));
        }
        assert!(pipeline.dispatch_borrowed(&[], &DispatchConfig::default()).is_ok(), "the next one is fine");
    }
}

#[test]
fn more_invocations_than_can_wait_for_each_other_are_refused() {
    let many = program(
        "program p {\n  workgroup 64\n  buffer out: output u32[4] @0\n  out[gid.x] = 1\n  barrier.grid\n  out[gid.x] = 2\n}\n",
    );
    let config = DispatchConfig { grid_override: Some([1 << 25, 1, 1]), ..DispatchConfig::default() };
    for (id, expected) in [("reference", "E0708"), ("bulk", "E0806")] {
        let error = acquire(id).unwrap().dispatch(&many, &[], &config).unwrap_err();
        assert_eq!(code(&error), expected, "{error}");
    }
}
