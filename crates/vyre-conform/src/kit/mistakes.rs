//! What callers get wrong, through every way to run: a typed error with its code, and nothing has run.
//!
//! Programs keep to a handful of ops where the mistake allows it. Each mistake has beside it the same dispatch without it: if the backend cannot
//! run that, the mistake says nothing about it and is skipped.

use super::cases::{program, words};
use super::{Done, KitTest, Open, lacks};
use std::sync::Arc;
use std::time::Duration;
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, VyreBackend, pipeline};
use vyre_foundation::case::Case;
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};

const COPY: &str = "program copy {
  workgroup 4
  buffer state: read_write u32 @0
  buffer four: read u32[4] @1
  buffer out: output u32 @2
  const k: u32 = 3

  if gid.x < len(out) {
    state[gid.x] = state[gid.x] + four[gid.x & 3]
    out[gid.x] = state[gid.x] ^ k
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

const NO_LENGTH: &str = "program no_length {
  workgroup 4
  buffer four: read u32[4] @0
  buffer out: output u32 @1

  out[gid.x] = four[gid.x]
}
";

const SLOW: &str = "program slow {
  workgroup 8
  buffer out: output u32[8] @0
  let x = gid.x
  for i in 0..1280000 { x = 4000000000 / (x % 1000 + 1) + i }
  out[gid.x] = x
}
";

/// A test that is about no mistake of the table.
type Test = fn(&Open) -> Done;

/// One thing that is wrong.
struct Mistake {
    what: &'static str,
    case: Case,
    /// The same without it.
    right: Case,
    /// The code of the report, and that of a dispatch on resources where it differs.
    codes: (&'static str, Option<&'static str>),
}

fn mistake(what: &'static str, code: &'static str, right: Case, change: impl FnOnce(&mut Case)) -> Mistake {
    let mut case = right.clone();
    change(&mut case);
    Mistake { what, case, right, codes: (code, None) }
}

fn right(source: &str, inputs: Vec<Vec<u8>>, change: impl FnOnce(&mut DispatchConfig)) -> Case {
    let mut case = Case::new(program(source), inputs);
    change(&mut case.config);
    case
}

fn copy() -> Case {
    right(COPY, vec![words(0..8), words(0..4)], |_| {})
}

/// A mistake that devices with small buffers cannot be asked about: they lack the buffer first.
const ABOVE_THE_DEFAULT: &str = "outputs above the default limit";

fn mistakes() -> Vec<Mistake> {
    let of_copy = |what, code, change: fn(&mut Case)| mistake(what, code, copy(), change);
    let count = |mistake: Mistake| Mistake { codes: (mistake.codes.0, Some("E0804")), ..mistake };
    let plane = || right(PLANE, Vec::new(), |config| config.grid_override = Some([2, 2, 1]));
    let race = || right(RACE, Vec::new(), |_| {});
    let no_length = right(NO_LENGTH, vec![words(0..4)], |config| {
        config.output_counts.insert("out".into(), 4);
    });
    let too_large = Program::wrapped(
        vec![BufferDecl::output("out", 0, DataType::U32).with_count(4)],
        [1025, 1, 1],
        vec![Node::store("out", Expr::gid_x(), Expr::u32(1))],
    );
    vec![
        count(of_copy("an input too few", "E0701", |case| {
            case.inputs.pop();
        })),
        count(of_copy("an input too many", "E0701", |case| case.inputs.push(words(0..4)))),
        of_copy("shorter than declared", "E0703", |case| case.inputs[1] = words(0..3)),
        of_copy("longer than declared", "E0703", |case| case.inputs[1] = words(0..5)),
        of_copy("in another order", "E0703", |case| case.inputs.swap(0, 1)),
        of_copy("no whole elements", "E0704", |case| {
            case.inputs[0].pop();
        }),
        mistake("an output without a length", "E0705", no_length, |case| case.config.output_counts.clear()),
        of_copy("a length for an input", "E0702", |case| {
            case.config.output_counts.insert("four".into(), 4);
        }),
        of_copy("a length for an unknown output", "E0702", |case| {
            case.config.output_counts.insert("result".into(), 4);
        }),
        of_copy("outputs above the limit", "E0708", |case| case.config.max_output_bytes = Some(31)),
        of_copy(ABOVE_THE_DEFAULT, "E0708", |case| {
            case.config.output_counts.insert("out".into(), 1 << 29);
        }),
        mistake("two dimensions and no grid", "E0706", plane(), |case| case.config.grid_override = None),
        of_copy("a grid with a zero", "E0707", |case| case.config.grid_override = Some([2, 0, 1])),
        of_copy("a grid that overflows an axis", "E0708", |case| case.config.grid_override = Some([u32::MAX, 1, 1])),
        of_copy("a grid that overflows", "E0708", |case| case.config.grid_override = Some([u32::MAX; 3])),
        mistake("a workgroup too large", "E0407", race(), |case| case.program = too_large),
        of_copy("another workgroup that is too large", "E0711", |case| case.config.workgroup_override = Some([2048, 1, 1])),
        of_copy("another workgroup without invocations", "E0711", |case| case.config.workgroup_override = Some([0, 1, 1])),
        of_copy("another workgroup that does not divide", "E0711", |case| case.config.workgroup_override = Some([3, 1, 1])),
        of_copy("an unknown constant", "E0709", |case| case.config.specialization.insert("scale", SpecValue::U32(1))),
        of_copy("a constant of another type", "E0710", |case| case.config.specialization.insert("k", SpecValue::F32(1.0))),
        of_copy("no time", "E0807", |case| case.config.timeout = Some(Duration::ZERO)),
        mistake("no proof", "E0804", race(), |case| case.config.require_deterministic = Some(true)),
        mistake("no proof for this grid", "E0804", plane(), |case| {
            case.config.require_deterministic = Some(true);
            case.config.grid_override = Some([1, 1, 2]);
        }),
    ]
}

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    let name = |what: &str| format!("mistakes/{}", what.replace(' ', "-"));
    let refusals = mistakes().into_iter().map(|it| KitTest::new(name(it.what), open, move |open| refused_everywhere(open, &it)));
    let others: [(&str, Test); 3] = [
        ("without one it runs", right_runs),
        ("a pipeline cannot become another", pipelines_stay),
        ("a result after the deadline is discarded", too_late),
    ];
    refusals.chain(others.map(|(what, run)| KitTest::new(name(what), open, run))).collect()
}

fn code(error: &BackendError) -> String {
    error.report(None).codes().next().map_or_else(|| "no code".into(), |code| code.to_string())
}

/// Runs into buffers of the caller's, which must stay as they are.
fn refused(what: &str, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> BackendError {
    let mut outputs = vec![vec![0xA5; 3], vec![], vec![0xA5; 100], vec![1]];
    let before = outputs.clone();
    let error = call(&mut outputs).err().unwrap_or_else(|| panic!("{what}: it ran"));
    assert_eq!(outputs, before, "{what}: the caller's buffers were changed");
    error
}

fn refused_everywhere(open: &Open, mistake: &Mistake) -> Done {
    let backend = open();
    let Mistake { what, case, right, codes } = mistake;
    let dispatched = backend.dispatch_borrowed(&right.program, &right.input_slices(), &right.config);
    if let Some(what) = lacks(&dispatched) {
        return Done::Skipped(what);
    }
    if let Err(error) = dispatched {
        panic!("without the mistake it does not run: {error}");
    }
    let largest = backend.max_storage_buffer_bytes();
    if *what == ABOVE_THE_DEFAULT && largest < 4 << 29 {
        return Done::Skipped(format!("its buffers have at most {largest} bytes"));
    }
    let (program, inputs, config) = (&case.program, &case.inputs, &case.config);
    let borrowed = case.input_slices();
    let ran = |form: &str| -> BackendError { panic!("{what}: it ran through {form}") };
    let mut errors = vec![
        ("dispatch", backend.dispatch(program, inputs, config).err().unwrap_or_else(|| ran("dispatch"))),
        ("borrowed", backend.dispatch_borrowed(program, &borrowed, config).err().unwrap_or_else(|| ran("borrowed"))),
        ("into", refused(what, |outputs| backend.dispatch_borrowed_into(program, &borrowed, config, outputs))),
        ("timed", backend.dispatch_borrowed_timed(program, &borrowed, config).err().unwrap_or_else(|| ran("timed"))),
    ];
    let begun = backend.dispatch_async(program, inputs, config).and_then(|pending| pending.wait());
    errors.push(("async", begun.err().unwrap_or_else(|| ran("async"))));
    // A pipeline says it when it is compiled or when it is run.
    let compile = || pipeline::compile(backend.clone(), program, config);
    let nothing = DispatchConfig::default();
    errors.push(("a pipeline", refused(what, |outputs| compile()?.dispatch_borrowed_into(&borrowed, &nothing, outputs))));
    let batch = compile().and_then(|it| it.dispatch_borrowed_batched(&[&borrowed], &nothing));
    errors.push(("a pipeline's batch", batch.err().unwrap_or_else(|| ran("a batch"))));
    // What does not change code can also be wrong in the call alone.
    if config.specialization.is_empty() && config.workgroup_override.is_none() && program.validated().is_ok() {
        let compiled = pipeline::compile(backend.clone(), program, &nothing).unwrap_or_else(|error| panic!("{what}: {error}"));
        errors.push(("the call", refused(what, |outputs| compiled.dispatch_borrowed_into(&borrowed, config, outputs))));
    }
    for (form, error) in errors {
        assert_eq!(code(&error), codes.0, "{what} through {form}: {error}");
    }
    on_resources(&*backend, mistake, &compile);
    Done::Passed
}

/// The same on resources: inputs on the device or not, outputs not. Without resident data it is refused for that.
fn on_resources(
    backend: &dyn VyreBackend,
    Mistake { what, case, codes, .. }: &Mistake,
    compile: &dyn Fn() -> Result<Arc<dyn CompiledPipeline>, BackendError>,
) {
    let is_supported = lacks(&backend.allocate_resident(4).and_then(|it| backend.free_resident(it))).is_none();
    let expected = if is_supported { codes.1.unwrap_or(codes.0) } else { "E0801" };
    let outputs = case.program.buffers().iter().filter(|decl| decl.access.is_output() && !decl.access.is_input()).count();
    let failed = |error: BackendError| -> Resource { panic!("{what}: {error}") };
    for is_resident in [false, true].into_iter().take(1 + usize::from(is_supported)) {
        let mut resources: Vec<Resource> = (case.inputs.iter())
            .map(|bytes| match is_resident {
                false => Resource::Borrowed(bytes.clone()),
                true => {
                    let resource = backend.allocate_resident(bytes.len()).unwrap_or_else(failed);
                    backend.upload_resident(&resource, bytes).unwrap_or_else(|error| drop(failed(error)));
                    resource
                }
            })
            .collect();
        resources.extend(vec![Resource::Borrowed(Vec::new()); outputs]);
        let result = backend.dispatch_resident_timed(&case.program, &resources, &case.config);
        let error = result.err().unwrap_or_else(|| panic!("{what}: it ran on resources"));
        assert_eq!(code(&error), expected, "{what} on resources: {error}");
        let nothing = DispatchConfig::default();
        let error = refused(what, |outputs| compile()?.dispatch_persistent_handles_into(&resources, &nothing, outputs));
        assert!(code(&error) == expected || !is_supported, "{what} through a pipeline on resources: {error}");
        for (resource, bytes) in resources.into_iter().zip(&case.inputs).filter(|_| is_resident) {
            assert_eq!(backend.download_resident(&resource).as_ref(), Ok(bytes), "{what}: resident data were changed");
            backend.free_resident(resource).unwrap_or_else(|error| drop(failed(error)));
        }
    }
}

/// The table above says something only if the same dispatch without the mistake is fine, with everything said that can be said.
fn right_runs(open: &Open) -> Done {
    let backend = open();
    let mut case = copy();
    case.config.timeout = Some(Duration::from_secs(3600));
    case.config.max_output_bytes = Some(32);
    case.config.workgroup_override = Some([2, 1, 1]);
    case.config.require_deterministic = Some(true);
    let state: Vec<u32> = (0..8).map(|n| n + n % 4).collect();
    let expected = vec![words(state.clone()), words(state.iter().map(|x| x ^ 3))];
    let found = backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config);
    if let Some(what) = lacks(&found) {
        return Done::Skipped(what);
    }
    assert_eq!(found.as_ref(), Ok(&expected));
    let compiled = pipeline::compile(backend, &case.program, &case.config).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compiled.dispatch_borrowed(&case.input_slices(), &DispatchConfig::default()).as_ref(), Ok(&expected));
    Done::Passed
}

fn pipelines_stay(open: &Open) -> Done {
    let backend = open();
    let mut case = copy();
    case.config.specialization.insert("k", SpecValue::U32(5));
    case.config.workgroup_override = Some([2, 1, 1]);
    case.config.ulp_budget = Some(1);
    let inputs = case.input_slices();
    let expected = backend.dispatch_borrowed(&case.program, &inputs, &case.config);
    if let Some(what) = lacks(&expected) {
        return Done::Skipped(what);
    }
    let compiled = pipeline::compile(backend.clone(), &case.program, &case.config).unwrap_or_else(|error| panic!("{error}"));
    let native = backend.compile_native(&case.program, &case.config).unwrap_or_else(|error| panic!("{error}"));
    for pipeline in [Some(compiled), native].into_iter().flatten() {
        let values = |name: &str, value: u32| [(name.to_string(), SpecValue::U32(value))].into_iter().collect();
        let nothing = DispatchConfig::default;
        for call in [case.config.clone(), DispatchConfig { specialization: values("k", 5), ..nothing() }, nothing()] {
            assert_eq!(pipeline.dispatch_borrowed(&inputs, &call), expected);
        }
        for call in [
            DispatchConfig { specialization: values("k", 4), ..nothing() },
            DispatchConfig { specialization: values("q", 5), ..nothing() },
            DispatchConfig { workgroup_override: Some([4, 1, 1]), ..nothing() },
            DispatchConfig { ulp_budget: Some(2), ..nothing() },
        ] {
            let error =
                refused("another code from call to call", |outputs| pipeline.dispatch_borrowed_into(&inputs, &call, outputs));
            assert!(matches!(&error, BackendError::InvalidProgram { .. }), "{call:?}: {error}");
        }
    }
    Done::Passed
}

fn too_late(open: &Open) -> Done {
    let backend = open();
    // Longer than a millisecond on any machine, since it is one long chain of divisions, and begun within it.
    let slow = program(SLOW);
    let right = backend.dispatch(&slow, &[], &DispatchConfig::default());
    if let Some(what) = lacks(&right) {
        return Done::Skipped(what);
    }
    let compiled =
        pipeline::compile(backend.clone(), &slow, &DispatchConfig::default()).unwrap_or_else(|error| panic!("{error}"));
    let limit = Duration::from_millis(1);
    let config = DispatchConfig { timeout: Some(limit), ..DispatchConfig::default() };
    let late = Err(BackendError::Timeout { limit });
    let recover = || {
        if backend.device_lost() {
            backend.try_recover().unwrap_or_else(|error| panic!("it is lost after a timeout: {error}"));
        }
    };
    assert_eq!(backend.dispatch(&slow, &[], &config), late);
    recover();
    assert_eq!(compiled.dispatch_borrowed(&[], &config), late);
    recover();
    assert_eq!(Err(refused("too late", |outputs| compiled.dispatch_borrowed_into(&[], &config, outputs))), late);
    recover();
    assert_eq!(compiled.dispatch_borrowed(&[], &DispatchConfig::default()), right, "the next one is fine");
    Done::Passed
}
