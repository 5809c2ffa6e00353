//! What is proven to give the same bytes under every schedule: the examples, the kernels that are measured, and kernels as people write
//! them, with the conditions of each.

use std::path::Path;
use vyre::analysis::determinism::Proof;
use vyre::ir::{Access, Program};
use vyre::launch::{LaunchConfig, plan};

fn parsed(name: &str, text: &str) -> Program {
    vyre::text::parse(name, text).unwrap_or_else(|report| panic!("{report}"))
}

/// The kernels of a folder, by name.
fn kernels(folder: &str) -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut kernels = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_some_and(|extension| extension == "vyre") {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("it can be read");
            kernels.push((name.clone(), parsed(&name, &text)));
        }
    }
    kernels.sort_by(|a, b| a.0.cmp(&b.0));
    kernels
}

#[test]
fn examples_and_measured_kernels_are_proven() {
    let flat = "cross-backend if gid_count.y <= 1 and gid_count.z <= 1";
    let flat_groups = "cross-backend if wid_count.y <= 1 and wid_count.z <= 1";
    let one_group = "cross-backend if wid_count.x <= 1 and wid_count.y <= 1 and wid_count.z <= 1";
    let expected = [
        ("histogram", "cross-backend"),
        ("mandelbrot", flat),
        ("quantize", flat),
        ("reduce", flat_groups),
        ("saxpy", flat),
        ("scan", one_group),
        ("transpose", one_group),
        ("xor", flat),
        ("blur", "cross-backend if gid_count.z <= 1 and w * size[1] <= 4294967296"),
        ("dfa", flat),
        ("exp", flat),
        ("f8_dot", flat),
        ("histogram", "cross-backend"),
        ("mandelbrot", flat),
        ("matmul", "cross-backend if gid_count.z <= 1 and gid_count.x <= 128 and 128 * gid_count.y + gid_count.x <= 4294967424"),
        ("maximum", "unproven: the result of an atomic on `largest` depends on the order of invocations"),
        ("mix", flat),
        ("places", "unproven: the result of an atomic on `taken` depends on the order of invocations"),
        ("prefix_sum", flat),
        ("reduction", flat_groups),
        ("sin", flat),
        ("tickets", "unproven: the result of an atomic on `next` depends on the order of invocations"),
        ("xor", flat),
    ];
    let found = kernels("examples").into_iter().chain(kernels("bench/kernels"));
    let found: Vec<(String, String)> =
        found.map(|(name, program)| (name, program.determinism().expect("it is valid").to_string())).collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, answer)| (name.as_str(), answer.as_str())).collect();
    assert_eq!(found, expected);
}

/// A kernel with a row length that the launch gives.
const ROWS: &str = "\
program rows {
  workgroup 8 8
  buffer size: uniform u32[1] @0
  buffer out: output u32 @1

  let w = size[0]
  if gid.x < w {
    out[gid.y * w + gid.x] = gid.x ^ gid.y
  }
}
";

#[test]
fn what_wraps_is_refused_at_the_launch() {
    let program = parsed("rows", ROWS);
    let determinism = program.determinism().expect("it is valid").to_string();
    assert_eq!(determinism, "cross-backend if gid_count.z <= 1 and w * gid_count.y <= 4294967296");
    let mut config = LaunchConfig { grid: Some([80, 60, 1]), ..LaunchConfig::default() };
    config.output_counts.insert("out".into(), 640 * 480);
    let launch = plan(&program, &[4], &config).expect("it fits");
    let proof = |w: u32| program.proof_for(&launch, &[&w.to_le_bytes()]).expect("it is valid");
    assert_eq!(proof(640), Proof::Holds);
    // 480 rows of 2³¹ wrap: rows 0 and 2 write the same elements.
    let Proof::Unmet(condition) = proof(1 << 31) else { panic!("{:?}", proof(1 << 31)) };
    assert_eq!(condition.text, "w * gid_count.y <= 4294967296");
    // What is not at hand proves nothing.
    assert!(matches!(program.proof_for(&launch, &[&[]]).expect("it is valid"), Proof::Unmet(_)));
}

/// Whether a launch is proven, with outputs of these lengths, these numbers in the first input, and zeros in a second if there is one.
fn proof(program: &Program, grid: [u32; 3], counts: &[(&str, u32)], input: &[u32]) -> bool {
    let mut config = LaunchConfig { grid: Some(grid), ..LaunchConfig::default() };
    config.output_counts.extend(counts.iter().map(|(name, count)| ((*name).into(), *count)));
    let bytes: Vec<u8> = input.iter().flat_map(|n| n.to_le_bytes()).collect();
    let state = [0u8; 64];
    let has_state = program.buffers().iter().any(|buffer| buffer.access == Access::ReadWrite);
    let inputs: Vec<&[u8]> = [bytes.as_slice(), &state].into_iter().take(1 + usize::from(has_state)).collect();
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(program, &sizes, &config).unwrap_or_else(|report| panic!("{report}"));
    program.proof_for(&launch, &inputs).expect("it is valid") == Proof::Holds
}

fn check_file(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../checks/determinism/{name}.vyre"));
    parsed(name, &std::fs::read_to_string(path).expect("it can be read"))
}

#[test]
fn one_of_several_ways_to_be_apart_is_enough() {
    let halves = check_file("halves-that-change-places");
    for (offsets, holds) in
        [([0, 8], true), ([8, 0], true), ([0, 7], false), ([7, 0], false), ([0, 0], false), ([0, u32::MAX], false)]
    {
        assert_eq!(proof(&halves, [2, 1, 1], &[], &offsets), holds, "{offsets:?}");
    }
}

#[test]
fn two_values_of_one_name_are_two_conditions() {
    let widths = check_file("two-widths-of-one-name");
    for (sizes, holds) in [([2, 2], true), ([2, 1], false), ([1, 2], false)] {
        assert_eq!(proof(&widths, [1, 1, 1], &[("out", 8), ("other", 8)], &sizes), holds, "{sizes:?}");
    }
}

#[test]
fn divisions_by_nothing_and_products_that_wrap_are_refused_at_the_launch() {
    let rows = check_file("rows-of-a-flat-launch");
    for (w, holds) in [(0, false), (1, true), (3, true), (1 << 31, true), (u32::MAX, true)] {
        assert_eq!(proof(&rows, [2, 1, 1], &[("out", 8)], &[w]), holds, "{w}");
    }
    let volume = check_file("volume-of-a-flat-launch");
    for (sizes, holds) in
        [([2, 2], true), ([0, 2], false), ([2, 0], false), ([1 << 16, 1 << 16], false), ([1 << 16, (1 << 16) - 1], true)]
    {
        assert_eq!(proof(&volume, [2, 1, 1], &[("out", 8)], &sizes), holds, "{sizes:?}");
    }
    let batches = check_file("batches-of-planes");
    for (sizes, holds) in [([2, 2], true), ([0x8000, 0x1_0000], true), ([0x8000, 0x1_0001], false)] {
        assert_eq!(proof(&batches, [1, 1, 2], &[("out", 8)], &sizes), holds, "{sizes:?}");
    }
}

/// The reduction in which the width is halved, in workgroups of a power of two.
fn reduction(log: u32, guard: &str) -> Program {
    let size = 1 << log;
    parsed(
        "reduction",
        &format!(
            "program reduction {{
  workgroup {size}
  buffer a: read f32 @0
  buffer out: output f32 @1
  buffer tile: workgroup f32[{size}]

  tile[lid.x] = a[gid.x]
  barrier
  let half = {size} / 2
  for step in 0..{log} {{
    if {guard} {{
      tile[lid.x] = tile[lid.x] + tile[lid.x + half]
    }}
    half = half >> 1
    barrier
  }}
  if lid.x == 0 {{
    out[wid.x] = tile[0]
  }}
}}
"
        ),
    )
}

#[test]
fn workgroups_of_every_size_are_gone_through() {
    for log in 1..=10 {
        assert!(reduction(log, "lid.x < half").determinism().expect("it is valid").is_proven(), "{log}");
        assert!(!reduction(log, "lid.x <= half").determinism().expect("it is valid").is_proven(), "{log}");
    }
}
