//! Programs with grid barriers, run as segments on a backend that has none, give what the reference gives for the whole: bytes, or
//! the tag and invocation of a trap. What the split must never do again is in `design_faults.rs`.
//!
//! `VYRE_SMITH_PROGRAMS` sets how many generated programs are compared; a failure names the preset and the number of the program.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::segments::{Ran, Segments, agree, agree_words, grid, grid_sync, hidden, native, program, resident, unwords, words};
use vyre_driver::backend::private::Sealed;
use vyre_driver::grid_sync::{
    contains_grid_sync, dispatch_resident_with_grid_sync_split_timed, dispatch_with_grid_sync_split,
    dispatch_with_grid_sync_split_into, dispatch_with_grid_sync_split_timed, split,
};
use vyre_driver::specialization::SpecMap;
use vyre_driver::{BackendError, DispatchConfig, Resource, VyreBackend};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program, Scalar, SpecValue};
use vyre_reference::checked::{Effort, Verdict, check};
use vyre_reference::{Options, Schedule};
use vyre_smith::generate::{Preset, asked, dna, generate};

// ---- what crosses ----

#[test]
fn variables_of_every_type_cross() {
    let text = "program p {
      workgroup 2
      buffer seed: read_write u32[4] @0
      buffer words: output u32[64] @1
      buffer wide: output u64[4] @2
      buffer signed: output i64[4] @3
      buffer single: output f32[4] @4
      buffer double: output f64[4] @5
      buffer pairs: output vec2<u32>[4] @6
      buffer triples: output vec3<i32>[4] @7
      buffer quads: output vec4<f32>[4] @8
      let s = seed[gid.x]
      let b = s > 2
      let u = s * 3
      let i = bitcast<i32>(s) - 10
      let w = u64(s) * 0x123456789ABCDEF + 5
      let v = -i64(s) * 0x7FFFFFFFFFF
      let f = f32(s) / 3.0
      let d = -f64(s) / 3.0d
      let odd = f / 0.0 * 0.0
      let nothing = f32(s) * -0.0
      let p = vec(s, s + 1)
      let t = vec(i, i - 1, i - 2)
      let q = vec(f, odd, nothing, -f)
      seed[gid.x] = 0
      barrier.grid
      barrier.grid
      words[gid.x] = u32(b) + seed[gid.x]
      words[gid.x + 4] = u
      words[gid.x + 8] = bitcast<u32>(i)
      words[gid.x + 12] = bitcast<u32>(odd)
      words[gid.x + 16] = bitcast<u32>(nothing)
      wide[gid.x] = w
      signed[gid.x] = v
      single[gid.x] = f
      double[gid.x] = d
      pairs[gid.x] = p
      triples[gid.x] = t
      quads[gid.x] = q
    }";
    let outputs = agree(&program(text), &[&words([1, 2, 3, 4_000_000_000])], &grid(2, 1, 1)).unwrap();
    assert_eq!(outputs[0], vec![0; 16]);
    let low = unwords(&outputs[1]);
    assert_eq!(low[..4], [0, 0, 1, 1]);
    assert_eq!(low[12..16], [0x7FC0_0000; 4]);
    assert_eq!(low[16..20], [0x8000_0000; 4]);
    let wide: Vec<u64> = outputs[2].chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(wide[3], 4_000_000_000u64.wrapping_mul(0x0123_4567_89AB_CDEF) + 5);
}

#[test]
fn canonical_floats_cross_as_they_are() {
    let text = "program p {
      workgroup 1
      floats canonical
      buffer a: read_write f32[5] @0
      buffer out: output u32[5] @1
      let x = a[gid.x]
      let y = bitcast<f32>(bitcast<u32>(x) >> 1)
      a[gid.x] = 1.0
      barrier.grid
      out[gid.x] = bitcast<u32>(x) + bitcast<u32>(y)
    }";
    let tiny = [f32::MIN_POSITIVE, f32::MIN_POSITIVE * 1.5, -f32::MIN_POSITIVE / 4.0, -0.0, 3.0e-38];
    agree(&program(text), &[&words(tiny.map(f32::to_bits))], &DispatchConfig::default()).unwrap();
}

#[test]
fn reassigned_variables_have_their_latest_value() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      let x = gid.x
      let y = 1
      let z = 5
      let w = 50000
      if gid.x > 1 {
        x = x + 10
        w = 70000
      }
      barrier.grid
      x = x * 2
      if gid.x == 3 {
        w = 90000
      }
      for i in 0..gid.x {
        y = y * 3
      }
      barrier.grid
      z = 0
      z = z + y
      out[gid.x] = x * 1000 + y * 10 + z + w
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![50011, 52033, 94099, 116_297]]);
}

#[test]
fn what_is_overwritten_before_it_is_read_does_not_cross() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      let x = out[gid.x]
      let v = vec(x, x)
      barrier.grid
      x = gid.x
      v = vec(x, 2)
      out[gid.x] = x + v.y
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![2, 3, 4, 5]]);
    assert!(split(&program(text)).unwrap().segments.iter().all(|segment| hidden(&segment.program) == 0));
}

#[test]
fn what_cannot_have_changed_is_computed_again() {
    let text = "program p {
      workgroup 2
      buffer a: read u32[4] @0
      buffer c: uniform u32[1] @1
      buffer out: output u32[4] @2
      let i = 3 - gid.x
      let x = a[i] + c[0] + len(a)
      let y = x * 2
      out[i] = 1
      barrier.grid
      out[gid.x] = y + out[gid.x]
    }";
    let outputs = agree(&program(text), &[&words([1, 2, 3, 4]), &words([10])], &DispatchConfig::default()).unwrap();
    assert_eq!(unwords(&outputs[0]), [37, 35, 33, 31]);
    assert!(split(&program(text)).unwrap().segments.iter().all(|segment| hidden(&segment.program) == 0));
}

#[test]
fn variables_that_still_hold_a_literal_an_id_or_a_length_do_not_cross() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      let n = 40
      let id = gid.x
      let size = len(out)
      out[3 - gid.x] = 5
      barrier.grid
      out[gid.x] = out[gid.x] + 1
      barrier.grid
      n = n + size
      id = id + out[gid.x]
      size = size * 100
      out[gid.x] = n + id + size
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![450, 451, 452, 453]]);
    assert!(split(&program(text)).unwrap().segments.iter().all(|segment| hidden(&segment.program) == 0));
}

#[test]
fn uniform_variables_stay_uniform() {
    // Barriers and broadcasts after the grid barrier depend on values that cross it.
    let text = "program p {
      workgroup 4
      subgroup 4
      buffer c: read u32[3] @0
      buffer out: output u32[12] @1
      buffer tile: workgroup u32[4]
      let n = c[wid.x]
      n = n + 1
      let pick = c[wid.x] % 4
      pick = pick + 0
      let wide = u64(n) << 33
      wide = wide + 1
      if lid.x == 0 {
        return
      }
      barrier.grid
      let sum = 0
      for i in 0..n {
        tile[lid.x] = gid.x + i
        barrier
        sum = sum + tile[3 - lid.x]
        barrier
      }
      if wide > 0x600000000 {
        barrier
      }
      let got = subgroup.broadcast(sum, pick)
      out[gid.x] = sum * 1000 + got
    }";
    let p = program(text);
    let outputs = agree(&p, &[&words([1, 2, 3])], &DispatchConfig::default()).unwrap();
    assert_eq!(unwords(&outputs[0])[0], 0);
    let gives = split(&p).unwrap().segments[0].gives.clone().expect("something crosses");
    assert_eq!((gives.group_words, gives.invocation_words, gives.fates), (4, 1, true));
}

#[test]
fn variables_of_blocks_cross_and_names_are_used_again() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      {
        let x = out[gid.x] + gid.x
        region \"inner\" {
          let y = x * 2
          y = y + 1
          barrier.grid
          out[gid.x] = x + y
        }
        {
          let y = 7
          out[gid.x] = out[gid.x] + y
        }
        barrier.grid
        x = x + 1
        out[gid.x] = out[gid.x] * 100 + x
      }
      for x in 0..2 {
        let y = x
        out[gid.x] = out[gid.x] + y
      }
      {
        let x = out[gid.x]
        let y = x + 1
        y = y + 1
        barrier.grid
        out[gid.x] = out[gid.x] + (y - x)
      }
      let x = 1
      let y = 2
      x = x + y
      barrier.grid
      out[gid.x] = out[gid.x] + x
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![807, 1108, 1409, 1710]]);
    assert_eq!(split(&program(text)).unwrap().segments.len(), 5);
}

#[test]
fn names_of_hidden_things_may_be_taken() {
    let text = "program p {
      workgroup 2
      buffer `$taken`: output u32[4] @0
      buffer `$given`: read_write u32[4] @4294967295
      let `$invocation` = `$given`[gid.x]
      `$given`[gid.x] = 0
      if gid.x == 1 {
        return
      }
      barrier.grid
      `$taken`[gid.x] = `$invocation` + `$given`[gid.x]
    }";
    let outputs = agree(&program(text), &[&words([1, 2, 3, 4])], &DispatchConfig::default()).unwrap();
    assert_eq!(unwords(&outputs[0]), [1, 0, 3, 4]);
}

// ---- who is retired ----

#[test]
fn divergent_returns_last() {
    let text = "program p {
      workgroup 4
      subgroup 4
      buffer out: output u32[12] @0
      buffer lanes: output u32[12] @1
      if gid.x % 3 == 0 {
        return
      }
      barrier.grid
      let present = subgroup.ballot(true)
      lanes[gid.x] = present
      for i in 0..4 {
        if i == gid.x {
          return
        }
      }
      barrier.grid
      let sum = subgroup.add(gid.x)
      out[gid.x] = sum
    }";
    let outputs = agree_words(text, &DispatchConfig::default());
    assert_eq!(outputs[0], [0, 0, 0, 0, 16, 16, 0, 16, 29, 0, 29, 29]);
    assert_eq!(outputs[1], [0, 6, 6, 0, 11, 11, 0, 11, 13, 0, 13, 13]);
}

#[test]
fn a_return_that_all_take_needs_nothing_hidden() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      out[gid.x] = gid.x
      if gid.x < 2 {
        return
      } else {
        {
          return
        }
      }
      out[gid.x] = 9
      barrier.grid
      out[gid.x] = 10
      barrier.grid
      out[gid.x] = 11
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![0, 1, 2, 3]]);
    let segments = split(&program(text)).unwrap().segments;
    assert_eq!(segments.len(), 3);
    for segment in &segments[1..] {
        assert_eq!(segment.program.parts().body[..], [Node::region("p", vec![Node::Return])]);
    }
    assert!(segments.iter().all(|segment| hidden(&segment.program) == 0));
}

#[test]
fn traps_are_compared_by_invocation_not_by_time() {
    let text = "program p {
      workgroup 2
      buffer a: read u32[6] @0
      buffer out: output u32[6] @1
      if a[gid.x] == 1 {
        trap(11)
      }
      barrier.grid
      if a[gid.x] == 2 {
        trap(22)
      }
      out[gid.x] = a[gid.x]
      barrier.grid
      if a[gid.x] == 3 {
        trap(4294967295)
      }
      barrier.grid
    }";
    let p = program(text);
    let trap = |a: [u32; 6]| match agree(&p, &[&words(a)], &DispatchConfig::default()) {
        Err(BackendError::Trap { tag, invocation: [x, 0, 0] }) => Some((tag, x)),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(trap([0; 6]), None);
    assert_eq!(trap([0, 0, 1, 0, 0, 0]), Some((11, 2)));
    assert_eq!(trap([0, 2, 1, 0, 0, 0]), Some((22, 1)));
    assert_eq!(trap([3, 2, 1, 0, 0, 0]), Some((u32::MAX, 0)));
    assert_eq!(trap([0, 0, 1, 2, 3, 1]), Some((11, 2)));
    assert_eq!(trap([0, 0, 0, 0, 0, 3]), Some((u32::MAX, 5)));
}

#[test]
fn a_trap_before_everything_ends_is_the_error() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      if gid.x == 3 {
        trap(5)
      }
      barrier.grid
      if gid.x == 2 {
        trap(0)
      }
      return
      barrier.grid
      trap(7)
    }";
    let found = agree(&program(text), &[], &DispatchConfig::default());
    assert_eq!(found, Err(BackendError::Trap { tag: 0, invocation: [2, 0, 0] }));
    let first = text.replace("gid.x == 3", "gid.x == 1");
    let found = agree(&program(&first), &[], &DispatchConfig::default());
    assert_eq!(found, Err(BackendError::Trap { tag: 5, invocation: [1, 0, 0] }));
}

#[test]
fn grids_of_two_and_three_dimensions() {
    let text = "program p {
      workgroup 2 3 2
      buffer out: output u32[288] @0
      let i = (gid.z * gid_count.y + gid.y) * gid_count.x + gid.x
      let mine = out[i] + i
      out[i] = 1
      let shared = wid.z * 100 + wid.y * 10 + wid.x
      shared = shared + 1
      if i % 7 == 3 {
        return
      }
      if gid.z > 2 && gid.x == 1 {
        TRAP
      }
      barrier.grid
      out[i] = mine * 1000 + shared
    }";
    let config = grid(3, 4, 2);
    agree_words(&text.replace("TRAP", "return"), &config);
    let found = agree(&program(&text.replace("TRAP", "trap(3)")), &[], &config);
    assert_eq!(found, Err(BackendError::Trap { tag: 3, invocation: [1, 0, 3] }));
}

#[test]
fn the_smallest_invocation_is_that_of_the_smallest_z_then_y_then_x() {
    let text = "program p {
      workgroup 2 2 1
      buffer ids: read vec3<u32>[2] @0
      let first = ids[0]
      let second = ids[1]
      if gid.x == first.x && gid.y == first.y && gid.z == first.z {
        trap(1)
      }
      barrier.grid
      if gid.x == second.x && gid.y == second.y && gid.z == second.z {
        trap(2)
      }
      barrier.grid
    }";
    for (first, second, tag) in [
        ([1, 0, 1], [0, 0, 2], 1),
        ([0, 3, 0], [3, 2, 0], 2),
        ([0, 0, 2], [3, 3, 1], 2),
        ([2, 1, 1], [1, 1, 1], 2),
        ([9, 9, 9], [1, 1, 1], 2),
    ] {
        let found = agree(&program(text), &[&words(first.into_iter().chain(second))], &grid(2, 2, 3));
        let invocation = if tag == 1 { first } else { second };
        assert_eq!(found, Err(BackendError::Trap { tag, invocation }));
    }
}

// ---- memory ----

#[test]
fn atomics_before_and_after() {
    let text = "program p {
      workgroup 4
      buffer sum: read_write u32[2] @3
      buffer out: output u32[8] @1
      let mine = atomic.add(sum, 0, gid.x + 1)
      barrier.grid
      atomic.max(sum, 1, gid.x)
      let total = sum[0]
      barrier.grid
      out[gid.x] = total * 10 + sum[1] + mine * 0
    }";
    let outputs = agree(&program(text), &[&words([100, 0])], &grid(2, 1, 1)).unwrap();
    assert_eq!(unwords(&outputs[0]), [1367; 8]);
    assert_eq!(unwords(&outputs[1]), [136, 7]);
}

#[test]
fn workgroup_memory_is_zero_again() {
    let text = "program p {
      workgroup 4
      buffer out: output u32[8] @0
      buffer tile: workgroup u32[4]
      tile[lid.x] = gid.x + 1
      barrier
      out[gid.x] = tile[3 - lid.x]
      barrier.grid
      out[gid.x] = out[gid.x] * 10 + tile[lid.x]
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![40, 30, 20, 10, 80, 70, 60, 50]]);
}

#[test]
fn empty_segments() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[4] @0
      barrier.grid
      let x = out[gid.x] + gid.x
      out[gid.x] = 5
      barrier.grid
      barrier.grid
      out[gid.x] = out[gid.x] + x
      if gid.x == 1 {
        return
      }
      barrier.grid
      barrier.grid
    }";
    assert_eq!(agree_words(text, &DispatchConfig::default()), [vec![5, 6, 7, 8]]);
    let segments = split(&program(text)).unwrap().segments;
    assert_eq!(segments.len(), 6);
    let crossing: Vec<bool> = segments.iter().map(|segment| segment.gives.is_some()).collect();
    assert_eq!(crossing, [false, true, true, false, false, false], "only what something crosses has a state");
    let only_barriers = program("program p {\n workgroup 2\n buffer out: output u32[4] @0\n barrier.grid\n barrier.grid\n}");
    assert_eq!(agree(&only_barriers, &[], &DispatchConfig::default()), Ok(vec![vec![0; 16]]));
}

#[test]
fn lengths_and_grids_are_those_of_the_program() {
    // `out` takes its length from the longest input, the grid from the longest writable buffer; neither may follow hidden buffers.
    let text = "program p {
      workgroup 4
      buffer a: read u32 @0
      buffer small: read_write u32 @1
      buffer out: output u32 @2
      buffer asked: output u8 @3
      let x = small[gid.x] + len(out)
      small[gid.x] = gid_count.x
      asked[gid.x] = gid.x
      if gid.x == 5 {
        return
      }
      barrier.grid
      let y = x + small[gid.x]
      out[gid.x] = x
      barrier.grid
      out[gid.x] = y + x + len(out) + len(small) * 100 + len(a) * 10000 + len(asked)
    }";
    let mut config = DispatchConfig::default();
    config.output_counts.insert("asked".into(), 3);
    let (a, small) = (words(0..9), words([1, 2, 3]));
    agree(&program(text), &[&a, &small], &config).unwrap();
    // Nothing runs where there is nothing to write.
    config.output_counts.insert("asked".into(), 0);
    assert_eq!(agree(&program(text), &[&[], &[]], &config), Ok(vec![vec![]; 3]));
}

#[test]
fn constants_are_replaced_first() {
    let text = "program p {
      workgroup 2
      const scale: u32 = 3
      const n: u32 = 4
      const stop: bool = false
      buffer out: output u32[n] @0
      let x = out[gid.x] + scale
      if stop {
        return
      }
      barrier.grid
      out[gid.x] = x * scale
    }";
    let mut config = DispatchConfig::default();
    assert_eq!(agree_words(text, &config), [vec![9; 4]]);
    config.specialization =
        [("scale".to_string(), SpecValue::U32(5)), ("n".to_string(), SpecValue::U32(2))].into_iter().collect();
    assert_eq!(agree_words(text, &config), [vec![25; 2]]);
    config.specialization.insert("stop", SpecValue::Bool(true));
    assert_eq!(agree_words(text, &config), [vec![0; 2]]);
    config.specialization = SpecMap::from_iter([("scle".to_string(), SpecValue::U32(5))]);
    let found = dispatch_with_grid_sync_split(&Segments::default(), &program(text), &[], &config);
    assert!(matches!(found, Err(BackendError::Rejected(_))), "{found:?}");
}

// ---- hard programs ----

#[test]
fn results_of_operations_cross() {
    let text = "program p {
      workgroup 8
      subgroup 4
      buffer state: read_write u32[16] @0
      buffer signed: read_write i32[1] @1
      buffer out: output u32[16] @2
      buffer tile: workgroup i32[2]
      let old = atomic.add(state, gid.x, 5)
      let swapped = atomic.exchange(state, gid.x, 1)
      let same = atomic.compare_exchange(state, gid.x, 1, gid.x)
      let lowest = atomic.min(signed, 0, 100i)
      atomic.add(tile, 1, 3i)
      let votes = subgroup.ballot(gid.x % 3 == 0)
      let sum = subgroup.inclusive_add(gid.x)
      let any = subgroup.any(gid.x == 5)
      let first = subgroup.broadcast(old, 2)
      let fma = subgroup.max(f32(gid.x) / 3.0)
      state[gid.x] = 77
      barrier.grid
      let again = subgroup.shuffle_xor(sum, 1)
      tile[0] = tile[1]
      barrier.grid
      out[gid.x] = old + swapped * 2 + same * 3 + votes * 5 + sum * 7 + u32(any) * 11 + first * 13 + again * 17
        + u32(fma * 19.0) + u32(lowest) + u32(tile[0]) + subgroup.lane + subgroup.size
    }";
    agree(&program(text), &[&words(0..16), &words([50])], &grid(2, 1, 1)).unwrap();
}

#[test]
fn names_of_sibling_scopes_cross_with_their_own_types() {
    let text = "program p {
      workgroup 2
      buffer out: output u32[8] @0
      buffer wide: output u64[8] @1
      region \"a\" {
        let x = u64(gid.x) << 33
        x = x + 1
        { barrier.grid }
        wide[gid.x] = x
        region \"inside\" {
          let y = x * 2
          y = y + 1
          barrier.grid
          wide[gid.x] = wide[gid.x] + y
        }
        let y = x > 0
        y = !y
        barrier.grid
        out[gid.x] = u32(y)
      }
      {
        let x = vec(f32(gid.x), 0.5)
        let y = x
        y = vec(x.y, x.x)
        barrier.grid
        out[gid.x] = out[gid.x] + bitcast<u32>(x.x) + bitcast<u32>(y.x)
        { let z = 1 \n out[gid.x] = out[gid.x] + z }
        { let z = 2.0 \n barrier.grid \n out[gid.x] = out[gid.x] + u32(z) }
      }
      for x in 0..3 { out[gid.x] = out[gid.x] + x }
      if gid.x > 1 { let x = 5 \n out[gid.x] = out[gid.x] + x } else { let x = 6i \n out[gid.x] = out[gid.x] + u32(x) }
      let x = gid.x < 3
      x = !x
      barrier.grid
      if x { out[gid.x] = out[gid.x] + 1000 }
    }";
    agree_words(&text.replace("\\n", "\n"), &grid(4, 1, 1));
    assert_eq!(split(&program(&text.replace("\\n", "\n"))).unwrap().segments.len(), 7);
}

#[test]
fn variables_that_loops_and_branches_change_on_both_sides() {
    let text = "program p {
      workgroup 4
      buffer a: read u32 @0
      buffer out: output u32[32] @1
      buffer more: output i64[32] @2
      let i = gid.x
      let b = i * 2
      let total = 0
      let sign = -1i64
      let stop = false
      if i % 3 == 1 {
        for k in 0..i {
          if k == 5 { break }
          if k % 2 == 0 { continue }
          total = total + a[k]
          stop = total > 20
        }
      } else {
        if i > 4 { total = 1000 } else { if i > 2 { return } }
        sign = sign * i64(i)
      }
      barrier.grid
      i = 100 + i
      for k in 0..4 {
        if stop { break }
        total = total * 3 + k
        if total > 4000 { stop = true }
        sign = sign - i64(total)
      }
      barrier.grid
      barrier.grid
      if !stop { total = total + b }
      out[gid.x] = total
      more[gid.x] = sign
      barrier.grid
      out[gid.x] = out[gid.x] + i + b
    }";
    agree(&program(&text.replace("-1i64", "-i64(1)")), &[&words(1..20)], &DispatchConfig::default()).unwrap();
}

#[test]
fn returns_in_nested_ifs_loops_blocks_and_regions() {
    let text = "program p {
      workgroup 4
      buffer out: output u32[24] @0
      buffer count: read_write u32[4] @1
      {
        region \"r\" {
          if gid.x % 2 == 0 {
            if gid.x % 4 == 0 { { if gid.x > 4 { return } } } else { out[gid.x] = 1 }
          }
          atomic.add(count, 0, 1)
          barrier.grid
          for k in 0..3 {
            for l in 0..3 {
              if k * 3 + l == gid.x { return }
            }
          }
        }
        atomic.add(count, 1, 1)
        barrier.grid
        if wid.x == 5 { return }
        atomic.add(count, 2, 1)
      }
      barrier.grid
      atomic.add(count, 3, 1)
      out[gid.x] = out[gid.x] + 10 + count[0]
    }";
    let outputs = agree(&program(text), &[&words([0; 4])], &grid(6, 1, 1)).unwrap();
    assert_eq!(unwords(&outputs[1]), [20, 12, 9, 9]);
}

#[test]
fn returns_that_are_uniform_and_returns_that_nobody_takes() {
    for (condition, taken) in [
        ("wid_count.x == 3", true),
        ("wid_count.x == 4", false),
        ("len(out) > 5", true),
        ("c[0] == 7", true),
        ("c[0] == 8", false),
        ("gid.x < 0", false),
        ("true", true),
    ] {
        let text = "program p {
          workgroup 2
          buffer c: read u32[1] @0
          buffer out: output u32[6] @1
          let x = out[gid.x] + 1
          out[gid.x] = 5
          if CONDITION { return }
          barrier.grid
          out[gid.x] = out[gid.x] + x
          barrier
          barrier.grid
          out[gid.x] = out[gid.x] + 10 * x
        }";
        let p = program(&text.replace("CONDITION", condition));
        let outputs = agree(&p, &[&words([7])], &DispatchConfig::default()).unwrap();
        assert_eq!(unwords(&outputs[0]), [if taken { 5 } else { 16 }; 6], "{condition}");
    }
}

#[test]
fn buffers_that_only_later_segments_use_and_buffers_without_elements() {
    let text = "program p {
      workgroup 2
      buffer late: read f16 @0
      buffer table: uniform u32[2] @1
      buffer nothing: read u32 @2
      buffer empty: read_write u32 @3
      buffer out: output u32[6] @4
      buffer half: output f16[3] @5
      buffer byte: read_write u8 @6
      buffer later: read vec2<i32> @7
      buffer last: output i16[5] @8
      let x = out[gid.x] + len(nothing) + len(empty) + nothing[0] + empty[gid.x]
      empty[gid.x] = 1
      barrier.grid
      half[gid.x] = late[gid.x] / 3.0
      byte[gid.x] = gid.x + 250 + x
      barrier.grid
      let y = later[gid.x]
      last[gid.x] = y.x - y.y + 70000i
      out[gid.x] = table[gid.x % 2] + u32(byte[gid.x]) + bitcast<u32>(half[gid.x]) + len(late) + len(later) + len(byte)
    }";
    let late: Vec<u8> = [0x3C00u16, 0xFE00, 0x8001].iter().flat_map(|half| half.to_le_bytes()).collect();
    let inputs: [&[u8]; 6] = [&late, &words([1, 2]), &[], &[], &[7; 5], &words([1, 2, 3, 4])];
    agree(&program(text), &inputs, &DispatchConfig::default()).unwrap();
    // The first segment brings all of them to the backend, which so judges all before anything runs.
    let backend = Segments::default();
    let mut bad = inputs;
    bad[5] = &[0; 7];
    let refused = dispatch_with_grid_sync_split(&backend, &program(text), &bad, &DispatchConfig::default());
    assert!(matches!(refused, Err(BackendError::Rejected(_))), "{refused:?}");
    assert!(backend.count() <= 1);
}

#[test]
fn traps_in_every_place() {
    let text = "program p {
      workgroup 2 2 1
      buffer a: read u32[32] @0
      buffer out: output u32[32] @1
      let i = (gid.z * gid_count.y + gid.y) * gid_count.x + gid.x
      let kept = out[i] + a[i]
      out[i] = 1
      if a[i] == 1 { { region \"r\" { for k in 0..5 { if k == 3 { trap(3) } } } } }
      barrier.grid
      if a[i] == 2 { if kept == 2 { trap(0) } }
      if a[i] == 3 { return }
      barrier
      out[i] = kept
      barrier.grid
      if a[i] == 3 { trap(33) }
      if a[i] == 4 { trap(44) } else { if a[i] == 5 { return } }
      barrier.grid
      if a[i] == 5 { trap(55) }
      out[i] = out[i] + 1
    }";
    let p = program(text);
    let outcome = |values: &[(usize, u32)]| {
        let mut a = [0u32; 32];
        values.iter().for_each(|(at, value)| a[*at] = *value);
        match agree(&p, &[&words(a)], &grid(2, 2, 2)) {
            Err(BackendError::Trap { tag, invocation: [x, y, z] }) => Some((tag, (z * 4 + y) * 4 + x)),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(outcome(&[]), None);
    assert_eq!(outcome(&[(3, 3), (4, 5), (31, 3)]), None, "those that returned do not trap");
    assert_eq!(outcome(&[(31, 1)]), Some((3, 31)));
    assert_eq!(outcome(&[(31, 1), (30, 2)]), Some((0, 30)));
    assert_eq!(outcome(&[(31, 1), (30, 2), (29, 4)]), Some((44, 29)));
    assert_eq!(outcome(&[(9, 1), (30, 2), (29, 4)]), Some((3, 9)));
    assert_eq!(outcome(&[(16, 4), (15, 2), (17, 1)]), Some((0, 15)));
    let all: Vec<(usize, u32)> = (0..32).map(|at| (at, 1 + (at as u32 + 3) % 4)).collect();
    assert_eq!(outcome(&all), Some((44, 0)));
    let both: Vec<(usize, u32)> = (0..32).map(|at| (at, if at < 16 { 4 } else { 1 })).collect();
    assert_eq!(outcome(&both), Some((44, 0)));
}

#[test]
fn uniform_values_of_every_type_are_uniform_after_the_barrier() {
    let text = "program p {
      workgroup 4 1 2
      subgroup 8
      floats canonical
      buffer c: read f64[2] @0
      buffer out: output u32[32] @1
      buffer tile: workgroup u32[8]
      let d = c[wid.x]
      d = d * 2.0d
      let flag = d > 3.0d
      flag = !flag
      let v = vec(f32(d), 1.5, -0.0)
      v = vec(v.z, v.x, v.y)
      let w = u64(wid.x) << 40
      w = w | 3
      let n = 3i
      n = n - i32(wid.x)
      let own = gid.x + gid.z * 100
      own = own + 1
      if own == 2 { return }
      barrier.grid
      if flag { barrier }
      if v.y > 1.0 { barrier }
      for i in 0..u32(w & 3) { tile[lid.z * 4 + lid.x] = own \n barrier }
      for i in 0..u32(n) { barrier }
      if d < 100.0d { barrier }
      let got = subgroup.broadcast(own, u32(w & 7))
      out[gid.z * 16 + gid.x] = own + got + tile[7 - (lid.z * 4 + lid.x)] + bitcast<u32>(v.z)
    }";
    let text = text.replace("\\n", "\n");
    let doubles: Vec<u8> = [1.0f64, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    agree(&program(&text), &[&doubles], &grid(2, 1, 1)).unwrap();
    let gives = split(&program(&text)).unwrap().segments[0].gives.clone().expect("something crosses");
    assert_eq!((gives.group_words, gives.invocation_words, gives.fates), (2 + 1 + 3 + 2 + 1, 2, true));
}

#[test]
fn values_that_are_made_of_changed_ones_cross_themselves() {
    let text = "program p {
      workgroup 2
      buffer a: read u32[8] @0
      buffer out: output u32[8] @1
      let i = gid.x
      let j = i + 1
      let k = a[j] + a[8 + i]
      let fixed = a[gid.x] * 3
      let of_fixed = fixed + len(a)
      if gid.x == 1 { i = 7 }
      let m = i * 10
      barrier.grid
      i = 500
      out[gid.x] = j + k + m + of_fixed
      barrier.grid
      out[gid.x] = out[gid.x] + i + fixed + k
    }";
    agree(&program(text), &[&words(10..18)], &grid(4, 1, 1)).unwrap();
}

#[test]
fn many_values_of_many_workgroups_cross_many_barriers() {
    let mut text = String::from(
        "program p {\n workgroup 5 1 3\n buffer out: output u32[900] @0\n let i = (gid.z * gid_count.y + gid.y) * gid_count.x + gid.x\n",
    );
    for n in 0..60 {
        text.push_str(&format!("let v{n} = out[i] + i * {n}\n let w{n} = u64(v{n}) << {}\n", n % 40));
    }
    for n in 0..12 {
        text.push_str(&format!("v{n} = v{n} + 1\n if i % {} == 1 {{ w{n} = w{n} + u64(i) }}\n barrier.grid\n", n + 2));
    }
    text.push_str("out[i] = 0\n");
    for n in 0..60 {
        text.push_str(&format!("out[i] = out[i] * 31 + v{n} + u32(w{n} >> 7)\n"));
    }
    text.push('}');
    agree_words(&text, &grid(3, 2, 2));
}

#[test]
fn constants_in_sizes_counts_and_types() {
    let text = "program p {
      workgroup n m
      const n: u32 = 2
      const m: u32 = 1
      const size: u32 = 8
      const t: dtype = f32
      const flip: bool = false
      const bias: f32 = 0.25
      buffer a: read t @0
      buffer out: output f32[size] @1
      buffer tile: workgroup f32[size]
      let i = gid.y * gid_count.x + gid.x
      let x = a[i] + bias
      out[i] = x
      x = x * 2.0
      tile[i % size] = x
      if flip { x = -x }
      barrier.grid
      out[i] = out[i] + x + tile[i % size] + f32(size)
    }";
    let p = program(text);
    let floats = words([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_bits));
    let halves: Vec<u8> = [0x3C00u16, 0x4000, 0x4200].iter().flat_map(|half| half.to_le_bytes()).collect();
    let mut config = grid(4, 1, 1);
    agree(&p, &[&floats], &config).unwrap();
    config.specialization = [
        ("n", SpecValue::U32(1)),
        ("m", SpecValue::U32(4)),
        ("size", SpecValue::U32(16)),
        ("t", SpecValue::DType(DataType::F16)),
        ("flip", SpecValue::Bool(true)),
        ("bias", SpecValue::F32(-0.0)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect();
    agree(&p, &[&halves], &config).unwrap();
}

#[test]
fn bad_input_is_refused_before_anything_runs_in_every_form() {
    let text = "program p {
      workgroup 4
      const k: u32 = 1
      buffer a: read u32 @0
      buffer state: read_write u32[4] @1
      buffer out: output u32 @2
      let x = state[gid.x] + a[gid.x] * k
      state[gid.x] = 0
      barrier.grid
      out[gid.x] = x
    }";
    let good: [&[u8]; 2] = [&[1; 16], &[2; 16]];
    let set = |change: fn(&mut DispatchConfig)| {
        let mut config = DispatchConfig::default();
        change(&mut config);
        config
    };
    type Case<'a> = (&'a str, Vec<&'a [u8]>, DispatchConfig);
    let long = DispatchConfig::default;
    let cases: Vec<Case<'_>> = vec![
        ("takes 2 inputs, found 1", vec![good[0]], long()),
        ("takes 2 inputs, found 3", vec![good[0], good[1], good[1]], long()),
        ("`state` is too long", vec![good[0], &[0; 20]], long()),
        ("`state` is too short", vec![good[0], &[0; 12]], long()),
        ("has none", good.to_vec(), set(|config| config.grid_override = Some([1, 0, 1]))),
        ("too many invocations", good.to_vec(), set(|config| config.grid_override = Some([u32::MAX, 1, 1]))),
        ("too many invocations", good.to_vec(), set(|config| config.grid_override = Some([u32::MAX; 3]))),
        ("at most 15 bytes", good.to_vec(), set(|config| config.max_output_bytes = Some(15))),
        (
            "not an output that can be given a length",
            good.to_vec(),
            set(|config| config.output_counts = [("state".into(), 1)].into()),
        ),
        ("at most 1073741824 bytes", good.to_vec(), set(|config| config.output_counts = [("out".into(), u32::MAX)].into())),
        ("no specialization constant `kk`", good.to_vec(), set(|config| config.specialization.insert("kk", SpecValue::U32(1)))),
        ("`k` needs a u32", good.to_vec(), set(|config| config.specialization.insert("k", SpecValue::Bool(true)))),
        ("cannot be overridden", good.to_vec(), set(|config| config.workgroup_override = Some([2, 1, 1]))),
        ("took longer than 0ns", good.to_vec(), set(|config| config.timeout = Some(Duration::ZERO))),
    ];
    let p = program(text);
    agree(&p, &good, &DispatchConfig::default()).unwrap();
    for (what, inputs, config) in cases {
        let backend = Segments::default();
        let mut outputs = vec![vec![0xA5; 3]];
        let mut results = vec![
            dispatch_with_grid_sync_split(&backend, &p, &inputs, &config).map(drop),
            dispatch_with_grid_sync_split_timed(&backend, &p, &inputs, &config).map(drop),
            dispatch_with_grid_sync_split_into(&backend, &p, &inputs, &config, &mut outputs),
        ];
        assert_eq!(outputs, [[0xA5; 3]], "{what}: the caller's buffers have changed");
        if inputs.len() == 2 {
            let resources: Vec<Resource> =
                inputs.iter().chain([&[][..]].iter()).map(|bytes| Resource::Borrowed(bytes.to_vec())).collect();
            results.push(dispatch_resident_with_grid_sync_split_timed(&backend, &p, &resources, &config).map(drop));
        }
        for result in results {
            let error = result.unwrap_err();
            assert!(error.message().contains(what), "{what}: {error}");
            assert!(!matches!(error, BackendError::Other(_)), "{what}: {error:?}");
        }
        assert_eq!(backend.count(), 0, "{what}: something ran");
    }
}

// ---- the forms ----

const CROSSING: &str = "program p {
  workgroup 2
  buffer state: read_write u32[4] @0
  buffer out: output u32[4] @1
  let x = state[gid.x]
  state[gid.x] = 0
  barrier.grid
  out[gid.x] = x + 1
}";

#[test]
fn bytes_are_handed_on_as_they_are() {
    #[derive(Default)]
    struct Recorder(Mutex<Vec<Vec<Vec<u8>>>>);
    impl Sealed for Recorder {}
    impl VyreBackend for Recorder {
        fn id(&self) -> &'static str {
            "recorder"
        }
        fn dispatch(&self, _: &Program, inputs: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
            let mut calls = self.0.lock().unwrap();
            calls.push(inputs.to_vec());
            Ok(vec![vec![calls.len() as u8], vec![calls.len() as u8; 2]])
        }
    }
    let buffers = vec![
        BufferDecl::read_write("state", 0, DataType::U32).with_count(1),
        BufferDecl::output("out", 1, DataType::U32).with_count(1),
    ];
    let nodes = vec![Node::Return, grid_sync(), Node::Return, grid_sync(), Node::Return];
    let p = Program::wrapped(buffers, [1, 1, 1], nodes);
    let recorder = Recorder::default();
    let outputs = dispatch_with_grid_sync_split(&recorder, &p, &[&[7]], &DispatchConfig::default());
    assert_eq!(outputs, Ok(vec![vec![3], vec![3, 3]]));
    assert_eq!(*recorder.0.lock().unwrap(), [vec![vec![7]], vec![vec![1], vec![1, 1]], vec![vec![2], vec![2, 2]]]);
    // With a hidden buffer its length must be known, and so must theirs.
    let found = dispatch_with_grid_sync_split(&recorder, &program(CROSSING), &[&[7]], &DispatchConfig::default());
    assert!(matches!(found, Err(BackendError::Rejected(_))), "{found:?}");
    // Too few inputs cannot be handed on at all; too few outputs neither.
    let found = dispatch_with_grid_sync_split(&recorder, &p, &[], &DispatchConfig::default());
    assert!(matches!(found, Err(BackendError::Rejected(_))), "{found:?}");
    assert_eq!(recorder.0.lock().unwrap().len(), 3, "nothing ran");
    let one = Program::wrapped(vec![BufferDecl::read_write("state", 0, DataType::U32)], [1, 1, 1], vec![grid_sync()]);
    let found = dispatch_with_grid_sync_split(&recorder, &one, &[&[7]], &DispatchConfig::default());
    assert!(matches!(&found, Err(BackendError::Other(message)) if message.contains("2 outputs of 1")), "{found:?}");
}

#[test]
fn the_callers_buffers_are_kept_and_untouched_on_failure() {
    let (p, state) = (program(CROSSING), words([1, 2, 3, 4]));
    let mut outputs = vec![Vec::with_capacity(64), vec![9; 64]];
    let addresses = [outputs[0].as_ptr(), outputs[1].as_ptr()];
    let config = DispatchConfig::default();
    for fails_at in [0, 1] {
        let backend = Segments { fails_at: Some(fails_at), ..Segments::default() };
        let failed = dispatch_with_grid_sync_split_into(&backend, &p, &[&state], &config, &mut outputs);
        assert_eq!(failed, Err(BackendError::DeviceLost { reason: "injected".into() }));
        assert_eq!(outputs, [vec![], vec![9; 64]]);
        assert_eq!(backend.count(), fails_at + 1);
    }
    dispatch_with_grid_sync_split_into(&Segments::default(), &p, &[&state], &config, &mut outputs).unwrap();
    assert_eq!(outputs, [vec![0; 16], words([2, 3, 4, 5])]);
    assert_eq!([outputs[0].as_ptr(), outputs[1].as_ptr()], addresses);
}

#[test]
fn hidden_memory_is_given_back_after_a_failure() {
    let (p, config) = (program(&CROSSING.replace("barrier.grid", "barrier.grid\nbarrier.grid")), DispatchConfig::default());
    for fails_at in 0..3 {
        let backend = Segments { fails_at: Some(fails_at), ..Segments::default() };
        let resources = [backend.keep(words([1, 2, 3, 4])), backend.keep(vec![1; 16])];
        let failed = dispatch_resident_with_grid_sync_split_timed(&backend, &p, &resources, &config);
        assert_eq!(failed, Err(BackendError::DeviceLost { reason: "injected".into() }));
        assert_eq!(backend.resident.lock().unwrap().len(), 2);
        assert!(backend.allocated.load(Ordering::Relaxed) > 2, "the state was resident");
    }
    let backend = Segments::default();
    let failed = dispatch_resident_with_grid_sync_split_timed(&backend, &p, &[], &config);
    assert!(matches!(failed, Err(BackendError::InvalidProgram { .. })), "{failed:?}");
    assert_eq!(backend.count(), 0);
}

#[test]
fn times_are_sums() {
    let (p, config) = (program(CROSSING), DispatchConfig::default());
    let resources = [Resource::Borrowed(words([1, 2, 3, 4])), Resource::Borrowed(vec![0; 16])];
    let timed = dispatch_resident_with_grid_sync_split_timed(&Segments::default(), &p, &resources, &config).unwrap();
    assert_eq!((timed.wall_ns, timed.device_ns), (10, Some(6)));
    let timed = dispatch_with_grid_sync_split_timed(&Segments::default(), &p, &[&words(0..4)], &config).unwrap();
    assert!(timed.wall_ns > 0 && timed.device_ns.is_none());
}

#[test]
fn a_timeout_is_for_all_segments_together() {
    let p = program(CROSSING);
    let state = words([1, 2, 3, 4]);
    let backend = Segments::default();
    let config = DispatchConfig { timeout: Some(Duration::ZERO), ..DispatchConfig::default() };
    let late = dispatch_with_grid_sync_split(&backend, &p, &[&state], &config);
    assert_eq!(late, Err(BackendError::Timeout { limit: Duration::ZERO }));
    assert_eq!(backend.count(), 0);
    let limit = Duration::from_secs(3600);
    let config = DispatchConfig { timeout: Some(limit), ..DispatchConfig::default() };
    dispatch_with_grid_sync_split(&backend, &p, &[&state], &config).unwrap();
    let ran = backend.ran.lock().unwrap();
    let left: Vec<Duration> = ran.iter().map(|ran| ran.config.timeout.expect("each is told")).collect();
    assert!(limit > left[0] && left[0] > left[1], "{left:?}");
}

#[test]
fn what_cannot_be_split_is_refused_before_anything_runs() {
    let backend = Segments { max_bytes: 15, ..Segments::default() };
    let state = words([1, 2, 3, 4]);
    let refuses = |p: &Program, config: &DispatchConfig, what: &str| {
        let found = dispatch_with_grid_sync_split(&backend, p, &[&state], config).unwrap_err();
        assert!(found.message().contains(what), "{what}: {found}");
        let resources = [Resource::Borrowed(state.clone()), Resource::Borrowed(vec![0; 16])];
        let found = dispatch_resident_with_grid_sync_split_timed(&backend, p, &resources, config).unwrap_err();
        assert!(found.message().contains(what), "{what}: {found}");
    };
    let (p, config) = (program(CROSSING), DispatchConfig::default());
    refuses(&p, &config, "take 16 bytes, and the backend binds 15");
    let mut limited = config.clone();
    limited.max_output_bytes = Some(16);
    let wide = program(&CROSSING.replace("let x = state[gid.x]", "let x = u64(state[gid.x])").replace("= x + 1", "= u32(x) + 1"));
    let large = Segments::default();
    let found = dispatch_with_grid_sync_split(&large, &wide, &[&state], &limited).unwrap_err();
    assert!(found.message().contains("take 32 bytes, and `max_output_bytes` allows 16"), "{found}");
    dispatch_with_grid_sync_split(&large, &p, &[&state], &limited).expect("the state has a limit of its own");
    refuses(&p, &DispatchConfig { workgroup_override: Some([4, 1, 1]), ..config.clone() }, "cannot be overridden");
    let inside = program(&CROSSING.replace("barrier.grid", "if true { barrier.grid }"));
    refuses(&inside, &config, "inside an `if` or a loop");
    let racy = program(&CROSSING.replace("state[gid.x] = 0", "state[0] = gid.x"));
    refuses(&racy, &DispatchConfig { require_deterministic: Some(true), ..config.clone() }, "not proven the same");
    assert_eq!(backend.count(), 0);
    let proven = DispatchConfig { require_deterministic: Some(true), ..config };
    dispatch_with_grid_sync_split(&large, &p, &[&state], &proven).expect("the whole program is proven, not its segments");
}

#[test]
fn a_program_without_grid_barriers_is_one_dispatch_as_it_is() {
    let p = program(&CROSSING.replace("barrier.grid", "barrier"));
    let backend = Segments::default();
    dispatch_with_grid_sync_split(&backend, &p, &[&words(0..4)], &DispatchConfig::default()).unwrap();
    assert_eq!(backend.programs(), std::slice::from_ref(&p));
    assert_eq!(backend.ran.lock().unwrap()[0].inputs, [words(0..4)]);
    assert_eq!(split(&p).unwrap().segments.len(), 1);
    let raw = Program::new(
        vec![BufferDecl::output("out", 0, DataType::U32).with_count(3)],
        [1, 1, 1],
        vec![
            Node::let_bind("x", Expr::load("out", Expr::gid_x())),
            grid_sync(),
            Node::store("out", Expr::gid_x(), Expr::add(Expr::var("x"), Expr::u32(4))),
        ],
    );
    let outputs = agree(&raw, &[], &DispatchConfig::default()).unwrap();
    assert_eq!(unwords(&outputs[0]), [4; 3]);
}

// ---- generated programs ----

/// The program with returns and traps that some invocations take put between its statements: the generator's own are rare, since
/// they end what it is after.
fn with_retirement(program: &Program, mut choices: u64) -> Program {
    let mut draw = |below: usize| {
        let drawn = choices % below as u64;
        choices /= below as u64;
        drawn as usize
    };
    program.clone().edit(|parts| {
        let nodes: &mut Vec<Node> = match &mut parts.body[..] {
            [Node::Region { body, .. }] => body,
            _ => &mut parts.body,
        };
        for _ in 0..draw(3) {
            let (one_of, which) = (Expr::u32(2 + draw(6) as u32), Expr::u32(draw(2) as u32));
            let mixed = Expr::add(Expr::gid_x(), Expr::add(Expr::mul(Expr::gid_y(), Expr::u32(3)), Expr::gid_z()));
            let end = if draw(6) == 0 { Node::trap(draw(9) as u32) } else { Node::Return };
            nodes.insert(draw(nodes.len() + 1), Node::if_then(Expr::eq(Expr::rem(mixed, one_of), which), vec![end]));
        }
    })
}

/// The program with grid barriers put between its statements, the rest of them in blocks here and there, and with variables of every
/// type that all invocations have and some change, told in an output of their own.
fn with_barriers_and_locals(program: &Program, mut choices: u64) -> Program {
    let mut draw = |below: usize| {
        choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (choices >> 33) as usize % below
    };
    let [own, at] = ["own", "at"].map(|name| format!("${name}"));
    let own = || Expr::var(own.as_str());
    let linear =
        Expr::add(Expr::mul(Expr::add(Expr::mul(Expr::gid_z(), Expr::u32(5)), Expr::gid_y()), Expr::u32(7)), Expr::gid_x());
    let kinds: [(&str, Expr); 6] = [
        ("$u", Expr::mul(own(), Expr::u32(0x9E37_79B9))),
        ("$w", Expr::mul(Expr::cast(Scalar::U64, own()), Expr::u64(0x9E37_79B9_7F4A_7C15))),
        ("$f", Expr::div(Expr::cast(Scalar::F32, own()), Expr::f32(3.0))),
        ("$d", Expr::div(Expr::cast(Scalar::F64, own()), Expr::f64(-7.0))),
        ("$b", Expr::eq(Expr::rem(own(), Expr::u32(3)), Expr::u32(1))),
        ("$v", Expr::vector([own(), Expr::add(own(), Expr::u32(1)), Expr::bitxor(own(), Expr::u32(5))])),
    ];
    let changed = |n: usize| match n {
        0 => Node::assign("$u", Expr::add(Expr::mul(Expr::var("$u"), Expr::u32(31)), Expr::u32(7))),
        1 => Node::assign("$w", Expr::bitxor(Expr::var("$w"), Expr::shl(Expr::cast(Scalar::U64, Expr::var("$u")), Expr::u32(9)))),
        2 => Node::assign("$f", Expr::mul(Expr::var("$f"), Expr::f32(-1.5))),
        3 => Node::assign("$d", Expr::sub(Expr::var("$d"), Expr::cast(Scalar::F64, Expr::var("$f")))),
        4 => Node::assign("$b", Expr::eq(Expr::var("$b"), Expr::lt(Expr::var("$u"), Expr::u32(1 << 31)))),
        _ => Node::assign("$v", Expr::vector([1, 2, 0].map(|n| Expr::extract(Expr::var("$v"), n)))),
    };
    program.clone().edit(|parts| {
        let binding = parts.buffers.iter().filter_map(|decl| decl.binding).max().map_or(0, |last| last.wrapping_add(1));
        parts.buffers.push(BufferDecl::output("$told", binding, DataType::U32).with_count(96));
        let nodes: &mut Vec<Node> = match &mut parts.body[..] {
            [Node::Region { body, .. }] => body,
            _ => &mut parts.body,
        };
        for _ in 0..1 + draw(4) {
            let n = draw(6);
            let change = match draw(3) {
                0 => changed(n),
                1 => Node::if_then(Expr::eq(Expr::rem(own(), Expr::u32(2 + draw(3) as u32)), Expr::u32(0)), vec![changed(n)]),
                _ => {
                    Node::loop_for(at.as_str(), Expr::u32(0), Expr::rem(own(), Expr::u32(4)), vec![changed(n), changed(draw(6))])
                }
            };
            nodes.insert(draw(nodes.len() + 1), change);
        }
        for _ in 0..draw(4) {
            nodes.insert(draw(nodes.len() + 1), grid_sync());
        }
        let told = [
            Expr::var("$u"),
            Expr::cast(Scalar::U32, Expr::shr(Expr::var("$w"), Expr::u32(32))),
            Expr::bitcast(Scalar::U32, Expr::var("$f")),
            Expr::cast(Scalar::U32, Expr::shr(Expr::bitcast(Scalar::U64, Expr::var("$d")), Expr::u32(20))),
            Expr::cast(Scalar::U32, Expr::var("$b")),
            Expr::extract(Expr::var("$v"), 0),
        ];
        let told = told.into_iter().fold(Expr::u32(1), |sum, word| Expr::add(Expr::mul(sum, Expr::u32(16_777_619)), word));
        // Invocations whose own numbers are the same write the same.
        nodes.push(Node::store("$told", own(), told));
        for _ in 0..draw(3) {
            let rest = nodes.split_off(draw(nodes.len()));
            nodes.push(if draw(2) == 0 { Node::block(rest) } else { Node::region("rest", rest) });
        }
        let lets = kinds.into_iter().map(|(name, value)| Node::let_bind(name, value));
        nodes.splice(0..0, std::iter::once(Node::let_bind("$own", linear)).chain(lets));
    })
}

/// Calls `each` with generated programs that have grid barriers, on two threads, until it was called so often.
fn for_each(count: u64, each: impl Fn(&str, &Program, &[&[u8]], &DispatchConfig) + Sync) {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < count {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let preset = match number % 4 {
                        0 if number.is_multiple_of(256) => Preset::large()[(number / 256) as usize % Preset::large().len()],
                        0 => Preset::mixed(number / 4),
                        _ => Preset::Gridsync,
                    };
                    let dna = dna(5, number);
                    let case = generate(preset, &dna).case(&dna);
                    let choices = u64::from_le_bytes(dna.first_chunk().copied().unwrap_or_default());
                    let choices = choices ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let program = match number % 8 {
                        0..4 => with_barriers_and_locals(&case.program, choices),
                        _ => case.program.clone(),
                    };
                    let program = with_retirement(&program, choices);
                    if !contains_grid_sync(&program) {
                        continue;
                    }
                    // What is added to the program must not change its grid.
                    let grid = case.plan().ok().map(|launch| launch.grid).filter(|grid| !grid.contains(&0));
                    let config = DispatchConfig {
                        grid_override: grid.or(case.config.grid_override),
                        workgroup_override: None,
                        ..case.config.clone()
                    };
                    let what = format!("program {number} of {}", preset.name());
                    each(&what, &program, &case.input_slices(), &config);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}

#[test]
fn segments_give_what_the_whole_gives_for_generated_programs() {
    let schedules = [Schedule::Forward, Schedule::Reverse, Schedule::Random(3), Schedule::Stride(3)];
    let seen: [AtomicU64; 7] = Default::default();
    let [turn, traps, earlier_traps, states, shared, retired, forms] = &seen;
    for_each(asked(10_000), |what, program, inputs, config| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        let expected = native(program, inputs, config);
        let backend = Segments { schedule: schedules[n as usize % 4].clone(), ..Segments::default() };
        let found = dispatch_with_grid_sync_split(&backend, program, inputs, config);
        let say = || format!("{what}\n{program}\n{config:?}\n{inputs:?}\nsegments\n{:?}", backend.programs());
        assert!(found == expected, "{found:?}\n{expected:?}\n{}", say());
        let parts = split(&config.specialization.apply(program).unwrap()).unwrap();
        traps.fetch_add(u64::from(expected.is_err()), Ordering::Relaxed);
        let gives: Vec<_> = parts.segments.iter().filter_map(|segment| segment.gives.as_ref()).collect();
        let any = |of: &AtomicU64, any: bool| of.fetch_add(u64::from(any), Ordering::Relaxed);
        any(earlier_traps, expected.is_err() && gives.iter().any(|state| state.tags));
        any(states, !gives.is_empty());
        any(shared, gives.iter().any(|state| state.group_words > 0));
        any(retired, gives.iter().any(|state| state.fates));
        if n.is_multiple_of(16) {
            any(forms, true);
            assert!(resident(program, inputs, config, n.is_multiple_of(32), |n| n != 1) == expected, "resident: {}", say());
        }
    });
    let [turn, traps, earlier_traps, states, shared, retired, forms] = seen.map(AtomicU64::into_inner);
    println!(
        "{turn} programs: {states} with hidden buffers, {shared} with uniform values in them, {retired} with retired invocations; \
         {traps} trap, {earlier_traps} of them may before a barrier; {forms} also on resident data"
    );
    assert!(states * 4 > turn && shared * 50 > turn && retired * 4 > turn && earlier_traps * 50 > turn, "too few of a kind");
}

#[test]
fn segments_of_generated_programs_are_free_of_races() {
    for_each(asked(10_000) / 50, |what, program, inputs, config| {
        let backend = Segments::default();
        let _ = dispatch_with_grid_sync_split(&backend, program, inputs, config);
        for Ran { program, inputs, config } in backend.ran.lock().unwrap().iter() {
            let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let options = Options { launch: config.launch(), ..Options::default() };
            let effort = Effort { executions: 10, ..Effort::default() };
            let report = check(program, &inputs, &options, &effort).unwrap_or_else(|error| panic!("{error}: {what}\n{program}"));
            assert!(report.verdict == Verdict::Deterministic, "{}: {what}\n{program}", report.verdict);
        }
    });
}
