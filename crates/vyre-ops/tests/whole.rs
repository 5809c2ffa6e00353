//! Compositions over whole buffers that move elements: histogram, compaction, sort.

mod support;

use support::{Case, Grids, LENGTHS, Random, agrees, agrees_at, u32s};
use vyre_ops::compact::{compact, compact_on_cpu};
use vyre_ops::histogram::{histogram, histogram_on_cpu};
use vyre_ops::sort::{radix_sort, radix_sort_on_cpu};

#[test]
fn histograms() {
    let mut random = Random(8);
    // Few bins, as many as fit in workgroup memory, more; some values beyond them.
    for (length, bins) in [(0, 1), (1, 4), (64, 4), (257, 37), (1000, 256), (300, 4096), (300, 5000)] {
        let x: Vec<u32> = (0..length).map(|n| if n % 7 == 0 { random.u32() } else { random.below(bins + 1) }).collect();
        let expected = histogram_on_cpu(&x, bins);
        let name = format!("{length} values in {bins} bins");
        let case = Case { name, inputs: vec![u32s(&x)], outputs: vec![u32s(&expected)], ..Case::default() };
        agrees(&|size| histogram(size, bins), &Grids::Any, &case);
    }
}

#[test]
fn compactions() {
    let mut random = Random(9);
    for (n, length) in LENGTHS.into_iter().enumerate() {
        let x = random.u32s(length);
        // None, all, some.
        let every = [0, 1, 2, 9][n % 4];
        let keep: Vec<u32> =
            (0..length).map(|_| if every > 0 && random.below(every) == 0 { random.u32() | 1 } else { 0 }).collect();
        let (kept, places, count) = compact_on_cpu(&x, &keep);
        let case = Case {
            name: format!("{length} elements, one of {every} kept"),
            inputs: vec![u32s(&x), u32s(&keep)],
            outputs: vec![u32s(&kept), u32s(&places), u32s(&[count])],
            counts: vec![("kept", length), ("places", length)],
        };
        agrees(&compact, &Grids::Any, &case);
    }
}

#[test]
fn sorts() {
    let mut random = Random(10);
    for (n, length) in [0, 1, 2, 37, 65, 257, 1000].into_iter().enumerate() {
        let keys: Vec<u32> = match n % 5 {
            0 => random.u32s(length),
            1 => vec![0xDEAD_BEEF; length],
            2 => (0..length as u32).rev().map(|n| n << 20).collect(),
            3 => (0..length).map(|_| random.below(3) << 28 | random.below(3)).collect(),
            _ => (0..length).map(|_| if random.below(2) == 0 { 0 } else { u32::MAX }).collect(),
        };
        let (sorted, spare) = radix_sort_on_cpu(&keys);
        let case = Case {
            name: format!("{length} keys"),
            inputs: vec![u32s(&keys)],
            outputs: vec![u32s(&sorted), u32s(&spare), u32s(&[0; 1024])],
            counts: vec![("spare", length)],
        };
        agrees(&radix_sort, &Grids::Any, &case);
    }
}

/// More workgroups than have work.
#[test]
fn sort_in_a_large_grid() {
    let keys = Random(11).u32s(3000);
    let (sorted, spare) = radix_sort_on_cpu(&keys);
    let case = Case {
        name: "3000 keys".into(),
        inputs: vec![u32s(&keys)],
        outputs: vec![u32s(&sorted), u32s(&spare), u32s(&[0; 1024])],
        counts: vec![("spare", keys.len())],
    };
    agrees_at(&[37], &radix_sort, &Grids::Workgroups(70), &case);
}
