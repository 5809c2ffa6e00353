//! Shaders as text: run alone, and by harnesses that swap backends.

use crate::{DEVICES, open, words};
use vyre_conform::{
    ConformDispatchConfig, ExecutionModel, ProgramBackend, ShaderBackend, SwapBackend, WgslBackend, with_backend_swap,
};
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_wgpu::{Shaders, Shading};
use vyre_foundation::text;

const ADD: &str = "@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(4)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) {
        output[id.x] += input[id.x] + 1u;
    }
}";

fn config() -> ConformDispatchConfig {
    ConformDispatchConfig::default()
}

/// A device that takes text and programs.
fn backend<'a>(programs: &'a dyn VyreBackend, shaders: &'a Shaders) -> impl WgslBackend + 'a {
    let shaders = |wgsl: &str, input: &[u8], output_size: usize, config: ConformDispatchConfig| {
        let ConformDispatchConfig { grid: groups, workgroup_size } = config;
        shaders.run(&Shading { wgsl, input, output_size, workgroup_size, groups }).map_err(|error| error.to_string())
    };
    ShaderBackend { programs: ProgramBackend(programs), shaders }
}

#[test]
fn text_runs_on_both_devices_and_swaps_between_them() {
    let [one, other] = DEVICES.map(|id| (open(id), Shaders::open(id).unwrap()));
    let (one, other) = (backend(&*one.0, &one.1), backend(&*other.0, &other.1));
    let input = words([1, 2, 3, 4, 5]);
    // More words of output than of input: what is read beyond is zero, as WGSL's guards make it there.
    for backend in [&one as &dyn WgslBackend, &other] {
        assert_eq!(backend.dispatch(ADD, &input, 20, config()), Ok(words([2, 3, 4, 5, 6])));
        // The output is zero at first, every time; its last word may be cut.
        assert_eq!(backend.dispatch(ADD, &input, 6, config()), Ok(words([2, 3])[..6].to_vec()));
        let one_group = ConformDispatchConfig { grid: Some([1, 1, 1]), workgroup_size: Some([4, 1, 1]) };
        assert_eq!(backend.dispatch(ADD, &input, 20, one_group), Ok(words([2, 3, 4, 5, 0])));
    }
    let swapping = SwapBackend::new(&one, &other, 2);
    let model = ExecutionModel::Wgsl { source: ADD.into(), input: input.clone(), output_size: 20, config: config() };
    for _ in 0..2 {
        assert_eq!(swapping.execute(&model), Ok(words([2, 3, 4, 5, 6])));
    }
    let batch = swapping.dispatch_batch(ADD, &[input.clone(), words([7])], &[8, 4], config());
    assert_eq!(batch, Ok(vec![words([2, 3]), words([8])]));
    // Programs go the same way.
    let program = "program p {\n workgroup 4\n buffer a: read u32 @0\n buffer out: output u32 @1\n out[gid.x] = a[gid.x] + 1\n}";
    let program = text::parse("p", program).unwrap();
    assert_eq!(with_backend_swap(&one, &other, &program, &input, 20, config(), 3), Ok(words([2, 3, 4, 5, 6])));
}

#[test]
fn text_that_cannot_run_is_refused_with_what_to_do() {
    for id in DEVICES {
        let shaders = Shaders::open(id).unwrap();
        let run = |wgsl: &str, output_size, groups, workgroup_size| {
            shaders.run(&Shading { wgsl, input: &[], output_size, workgroup_size, groups }).map_err(|error| error.to_string())
        };
        let refused = |wgsl: &str, expected: &str| {
            let error = run(wgsl, 4, None, None).unwrap_err();
            assert!(error.contains(expected), "{id}: {error}");
        };
        refused("fn main() { let x = 1u + 1.0; }", "wgsl:1:");
        refused("@compute @workgroup_size(1) fn main() { y = 1u; }", "wgsl:1:");
        refused("", "0 compute entry points");
        refused("@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}", "2 compute entry points");
        let bound =
            |declaration: &str| format!("{declaration} x: array<u32, 4>; @compute @workgroup_size(1) fn main() {{ _ = x[0]; }}");
        refused(&bound("@group(0) @binding(2) var<storage, read>"), "group 0, binding 2, where `x` is");
        refused(&bound("@group(1) @binding(0) var<storage, read>"), "group 1, binding 0");
        let uniform = "@group(0) @binding(0) var<uniform> x: u32; @compute @workgroup_size(1) fn main() { _ = x; }";
        refused(uniform, "`x` is not a storage buffer");
        refused("@compute @workgroup_size(4096) fn main() {}", "workgroup");
        assert!(run(ADD, 4, Some([1, 70_000, 1]), None).unwrap_err().contains("70000 workgroups along y"), "{id}");
        assert!(run(ADD, 4, None, Some([8, 1, 1])).unwrap_err().contains("[4, 1, 1], not of [8, 1, 1]"), "{id}");
        // Nothing of that harms the next.
        let nothing = "@compute @workgroup_size(1) fn main() {}";
        assert_eq!(run(nothing, 8, None, None), Ok(vec![0; 8]), "{id}");
        assert_eq!(run(ADD, 4, None, None), Ok(words([1])), "{id}");
    }
    assert!(matches!(Shaders::open("wgpu:none"), Err(BackendError::UnknownBackend { .. })));
}
