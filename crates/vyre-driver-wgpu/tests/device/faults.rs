//! What drivers are known to be wrong about, and shaders are written around.

use crate::{DEVICES, grid, open, program, words};
use vyre_driver::{BackendError, Resource};

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
fn loops_go_round_to_their_end() {
    // llvmpipe ends all loops after 65,535 rounds, nested ones together, and says nothing.
    let expected = |count: u32| words((0..4).map(|gid| (0..count).fold(0, |sum: u32, i| sum.wrapping_add(i ^ gid))));
    for id in DEVICES {
        for count in [50_000, 200_000, 2_000_000] {
            assert_eq!(run(id, &rounds(count), 1), Ok(vec![expected(count)]), "{id} {count}");
        }
    }
}

#[test]
fn ways_out_of_long_loops_are_those_of_short_ones() {
    // Invocations part: each leaves, goes on and retires at places of its own, and some go round 70,000 times.
    let text = "program p {
  workgroup 8
  buffer out: output u32[16] @0
  let n = 5
  if gid.x % 3 == 1 {
    n = 70000 + gid.x
  }
  let sum = 0
  for i in 0..n {
    if i == 30000 * gid.x {
      continue
    }
    if i == 69000 + gid.x * 100 {
      break
    }
    sum = (sum ^ i) * 1664525 + gid.x
    if i == 60011 {
      if gid.x == 7 {
        out[gid.x] = sum
        return
      }
      sum = sum + 1
    }
  }
  out[gid.x] = sum
}";
    let one = |gid: u32| {
        let mut sum = 0u32;
        for i in 0..if gid % 3 == 1 { 70_000 + gid } else { 5 } {
            if i == 30_000 * gid {
                continue;
            }
            if i == 69_000 + gid * 100 {
                break;
            }
            sum = (sum ^ i).wrapping_mul(1_664_525).wrapping_add(gid);
            if i == 60_011 {
                if gid == 7 {
                    return sum;
                }
                sum = sum.wrapping_add(1);
            }
        }
        sum
    };
    for id in DEVICES {
        assert_eq!(run(id, text, 2), Ok(vec![words((0..16).map(one))]), "{id}");
    }
}

#[test]
fn what_a_driver_does_not_run_to_its_end_leaves_resident_memory_alone() {
    let text = "program p {\n workgroup 4\n buffer n: read u32[1] @0\n buffer data: read_write u32[4] @1\n buffer out: output u32[4] @2\n for i in 0..n[0] {\n  data[gid.x] = data[gid.x] + 1\n  out[gid.x] = i\n }\n}";
    let backend = open("wgpu:llvmpipe");
    let [data, out] = [(); 2].map(|()| backend.allocate_resident(16).unwrap());
    backend.upload_resident(&data, &words([1, 2, 3, 4])).unwrap();
    backend.upload_resident(&out, &words([9; 4])).unwrap();
    let dispatch = |count: u32| {
        let resources = [Resource::Borrowed(words([count])), data.clone(), out.clone()];
        backend.dispatch_resident_timed(&program(text), &resources, &grid(1))
    };
    let bytes = |of| backend.download_resident(of).unwrap();
    // Nobody repeats a body so often that this many rounds would fit.
    let refused = dispatch(100_000_000);
    assert!(matches!(&refused, Err(BackendError::UnsupportedFeature { .. })), "{refused:?}");
    assert_eq!([bytes(&data), bytes(&out)], [words([1, 2, 3, 4]), words([9; 4])]);
    dispatch(90_000).unwrap();
    assert_eq!([bytes(&data), bytes(&out)], [words([90_001, 90_002, 90_003, 90_004]), words([89_999; 4])]);
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
