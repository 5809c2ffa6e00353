//! Workgroups of 1 to 1024 invocations, primes among them, and last workgroups that are partly beyond the buffers: work that is shared
//! between workgroups, checked against plain Rust.

use crate::{TIERS, eager, program, words};
use vyre_driver::DispatchConfig;

const SIZES: [u32; 16] = [1, 2, 3, 7, 8, 13, 31, 64, 97, 127, 251, 256, 509, 512, 1021, 1024];

/// Every type that stores something narrower than a word, beside a neighbour that another workgroup stores; atomics on words that all
/// workgroups share; a sum over the workgroup through its memory.
fn kernel(size: u32) -> String {
    format!(
        "program p {{
  workgroup {size}
  buffer a: read u32 @0
  buffer bytes: output u8 @1
  buffer halves: output u16 @2
  buffer wide: output u64 @3
  buffer sums: output u32 @4
  buffer counts: read_write u32 @5
  buffer tile: workgroup u32[{size}]

  let i = gid.x
  tile[lid.x] = a[i]
  barrier
  if i < len(a) {{
    if a[i] % 3 != 0 {{
      bytes[i] = a[i]
      halves[i] = a[i] + 1
      wide[i] = u64(a[i]) * 5000000000
    }}
    atomic.add(counts, a[i] % 5, 1)
    atomic.max(counts, 5, 1000 + i)
  }}
  if lid.x == 0 {{
    let sum = 0
    for j in 0..{size} {{
      sum = sum + tile[j]
    }}
    sums[wid.x] = sum
  }}
}}
"
    )
}

#[test]
fn workgroups_of_every_size_share_the_work() {
    let devices: Vec<_> = [1, 2, 7].into_iter().flat_map(|threads| TIERS.map(|portable| eager(threads, portable))).collect();
    for size in SIZES {
        let program = program(&kernel(size));
        for length in [1, size, size * 3 + size / 2 + 1, 2000] {
            let a: Vec<u32> = (0..length).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
            let groups = length.div_ceil(size);
            let kept = |x: &u32| !x.is_multiple_of(3);
            let mut counts = vec![7_u32; 6];
            a.iter().for_each(|x| counts[(x % 5) as usize] += 1);
            counts[5] = 1000 + length - 1;
            let sums = a.chunks(size as usize).map(|part| part.iter().fold(0, |sum: u32, x| sum.wrapping_add(*x)));
            let expected = [
                a.iter().map(|x| if kept(x) { *x as u8 } else { 0 }).collect(),
                a.iter().flat_map(|x| if kept(x) { (*x + 1) as u16 } else { 0 }.to_le_bytes()).collect(),
                a.iter().flat_map(|x| if kept(x) { u64::from(*x) * 5_000_000_000 } else { 0 }.to_le_bytes()).collect(),
                words(sums),
                words(counts),
            ];
            let mut config = DispatchConfig { grid_override: Some([groups, 1, 1]), ..DispatchConfig::default() };
            config.output_counts = ["bytes", "halves", "wide"].map(|name| (name.to_string(), length)).into();
            config.output_counts.insert("sums".into(), groups);
            let inputs = [words(a.iter().copied()), words([7; 6])];
            for device in &devices {
                let found = device.dispatch(&program, &inputs, &config).unwrap();
                assert!(found == expected, "workgroups of {size}, {length} elements on {}", device.device_name());
            }
        }
    }
}
