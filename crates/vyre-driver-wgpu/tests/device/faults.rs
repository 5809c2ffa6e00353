//! What drivers are known to be wrong about, and shaders are written around.

use crate::{DEVICES, grid, open, program, words};
use vyre_driver::BackendError;

fn run(id: &str, text: &str, groups: u32) -> Result<Vec<Vec<u8>>, BackendError> {
    open(id).dispatch_borrowed(&program(text), &[], &grid(groups))
}

/// A loop of so many rounds for every invocation.
fn rounds(count: u32) -> String {
    format!(
        "program p {{\n workgroup 4\n buffer out: output u32[4] @0\n let sum = 0\n for i in 0..gid_count.x / 4 * {count} {{\n  sum = sum + (i ^ gid.x)\n }}\n out[gid.x] = sum\n}}"
    )
}

#[test]
fn loops_go_round_to_their_end_or_the_driver_is_said_not_to() {
    let expected = |count: u32| words((0..4).map(|gid| (0..count).fold(0, |sum: u32, i| sum.wrapping_add(i ^ gid))));
    for id in DEVICES {
        assert_eq!(run(id, &rounds(50_000), 1), Ok(vec![expected(50_000)]), "{id}");
    }
    assert_eq!(run("wgpu:swiftshader", &rounds(200_000), 1), Ok(vec![expected(200_000)]));
    // It ends all loops after 65,535 rounds, nested ones together, and says nothing.
    let refused = run("wgpu:llvmpipe", &rounds(200_000), 1);
    assert!(matches!(&refused, Err(BackendError::UnsupportedFeature { .. })), "{refused:?}");
}

#[test]
fn control_that_nests_too_deep_is_refused_by_name_and_less_is_right() {
    let nested = |depth: usize| {
        let open: String = (0..depth).map(|n| format!("if gid.x < {} {{\n", 1000 + n)).collect();
        format!("program p {{\n workgroup 1\n buffer out: output u32[1] @0\n{open} out[gid.x] = 7\n{}}}", "}\n".repeat(depth))
    };
    // Conditions that depend on each other would be folded.
    for id in DEVICES {
        for depth in [1, 20, 60] {
            assert_eq!(run(id, &nested(depth), 1), Ok(vec![words([7])]), "{id} {depth}");
        }
        let refused = run(id, &nested(100), 1);
        let Err(BackendError::UnsupportedFeature { .. }) = &refused else { panic!("{id}: {refused:?}") };
        assert!(refused.unwrap_err().to_string().contains("nested"), "{id}");
    }
}

#[test]
fn indices_far_out_of_bounds_are_out_of_bounds() {
    // 2^30 words on, the address of an element is its own again.
    let text = "program p {\n workgroup 1\n buffer out: output u32[8] @0\n out[0] = 5\n let far = gid_count.x * 0x40000000\n out[1] = out[far]\n out[far + 2] = 9\n out[0xffffffff] = 9\n out[8] = 9\n atomic.add(out, far, 1)\n}";
    for id in DEVICES {
        assert_eq!(run(id, text, 1), Ok(vec![words([5, 0, 0, 0, 0, 0, 0, 0])]), "{id}");
    }
}
