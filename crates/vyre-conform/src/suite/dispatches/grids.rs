//! Grid barriers: what all workgroups wrote before is there behind them, values of variables stay, workgroup memory is zero again, and those
//! that have returned are not waited for.

use super::{DRAWN, Edges, launch, spec, text};
use crate::spec::{Columns, OpSpecBuilder};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::ir::DataType;

/// A program over the words `a`, with `kept` and `out` of the same length; and what it leaves in both.
struct Kind {
    name: &'static str,
    body: &'static str,
    /// From the words, and the workgroup size.
    left: fn(&[u32], usize) -> [Vec<u32>; 2],
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "reverse",
        body: "kept[i] = a[i] * 3\nbarrier.grid\nif i < n {\nout[i] = kept[n - 1 - i]\n}\n",
        left: |a, _| {
            let kept: Vec<u32> = a.iter().map(|a| a.wrapping_mul(3)).collect();
            [kept.clone(), kept.into_iter().rev().collect()]
        },
    },
    Kind {
        name: "live",
        // Of every type; counters of loops that have ended; and what was read before others wrote.
        body: "let sum = 0\nfor k in 0..a[i] % 7 {\nsum = sum + k\n}\nlet wide = u64(a[i]) << 9\nlet half = f32(a[i] & 0xffff) * 0.5\n\
               let odd = a[i] % 2 == 1\nlet two = vec(i, sum)\nlet before = kept[(i + 1) % n]\nbarrier.grid\nkept[i] = a[i] + before\n\
               let other = sum * 2\nbarrier.grid\n\
               out[i] = u32(wide >> 9) + u32(half * 2.0) + select(odd, 1000, 0) + two.x + two.y + other + kept[(i + 1) % n]\n",
        left: |a, _| {
            let n = a.len();
            let sum = |a: u32| (0..a % 7).sum::<u32>();
            let out = (0..n).map(|i| {
                let a_i = a[i];
                let odd = if a_i % 2 == 1 { 1000 } else { 0 };
                a_i.wrapping_add(a_i & 0xFFFF).wrapping_add(odd + i as u32 + 3 * sum(a_i)).wrapping_add(a[(i + 1) % n])
            });
            [a.to_vec(), out.collect()]
        },
    },
    Kind {
        name: "retired",
        body: "kept[i] = a[i] + 1\nif a[i] % 3 == 0 {\nreturn\n}\nbarrier.grid\nif i < n {\nout[i] = kept[n - 1 - i]\n}\n\
               if a[i] % 3 == 1 {\nreturn\n}\nbarrier.grid\nout[i] = out[i] + 7\n",
        left: |a, _| {
            let kept: Vec<u32> = a.iter().map(|a| a.wrapping_add(1)).collect();
            let out = (0..a.len()).map(|i| match a[i] % 3 {
                0 => 0,
                1 => kept[a.len() - 1 - i],
                _ => kept[a.len() - 1 - i].wrapping_add(7),
            });
            [kept.clone(), out.collect()]
        },
    },
    Kind {
        name: "tile",
        body: "tile[lid.x] = a[i] | 1\nbarrier\nkept[i] = tile[SIZE - 1 - lid.x]\nbarrier.grid\nout[i] = tile[lid.x] + a[i]\n\
               tile[lid.x] = i\nbarrier\nout[i] = out[i] + tile[SIZE - 1 - lid.x]\n",
        left: |a, size| {
            let other = |i: usize| i / size * size + size - 1 - i % size;
            let at = |i: usize| a.get(i).copied().unwrap_or(0);
            let kept = (0..a.len()).map(|i| at(other(i)) | 1).collect();
            [kept, (0..a.len()).map(|i| a[i].wrapping_add(other(i) as u32)).collect()]
        },
    },
    Kind {
        name: "total",
        body: "if i < n {\natomic.add(kept, 0, a[i])\natomic.max(kept, 1, a[i])\n}\nbarrier.grid\nout[i] = kept[0] ^ kept[1] ^ i\n",
        left: |a, _| {
            let mut kept = vec![0; a.len()];
            let sum = a.iter().fold(0_u32, |sum, a| sum.wrapping_add(*a));
            let most = a.iter().copied().max().unwrap_or(0);
            kept.iter_mut().zip([sum, most]).for_each(|(kept, value)| *kept = value);
            let second = if a.len() > 1 { most } else { 0 };
            let out = (0..a.len() as u32).map(|i| sum ^ second ^ i).collect();
            [kept, out]
        },
    },
    Kind {
        name: "rounds",
        body: "kept[i] = a[i]\nbarrier.grid\nlet one = kept[(i + 1) % n]\nbarrier.grid\nkept[i] = one + 1\nbarrier.grid\n\
               let two = kept[(i + 1) % n]\nbarrier.grid\nkept[i] = two * 3\nout[i] = one ^ two\n",
        left: |a, _| {
            let n = a.len();
            let one = |i: usize| a[(i + 1) % n];
            let two = |i: usize| one((i + 1) % n).wrapping_add(1);
            [(0..n).map(|i| two(i).wrapping_mul(3)).collect(), (0..n).map(|i| one(i) ^ two(i)).collect()]
        },
    },
    Kind {
        name: "outputs",
        // Zero once, not at each barrier.
        body: "out[i] = out[i] + a[i]\nkept[i] = out[i]\nbarrier.grid\nout[i] = out[i] + 10\nbarrier.grid\nout[i] = out[i] + kept[i] + 100\n",
        left: |a, _| [a.to_vec(), a.iter().map(|a| a.wrapping_mul(2).wrapping_add(110)).collect()],
    },
];

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    KINDS.iter().map(grid).collect()
}

fn grid(kind: &'static Kind) -> OpSpecBuilder {
    let program = format!(
        "program p {{\nworkgroup SIZE\nbuffer a: read u32 @0\nbuffer kept: output u32 @1\nbuffer out: output u32 @2\n\
         buffer tile: workgroup u32[SIZE]\nlet i = gid.x\nlet n = len(a)\n{}}}",
        kind.body
    );
    let meaning = |columns: &Columns<'_>| {
        let left = (kind.left)(&words(columns.inputs[0]), columns.workgroup as usize);
        left.map(|words| of_words(&words)).to_vec()
    };
    spec(format!("grid.{}:u32", kind.name), &[DataType::U32], &[DataType::U32, DataType::U32], meaning)
        .program(text(program))
        .per_dispatch(|size, inputs| {
            let count = inputs[0].len() / 4;
            launch([count.div_ceil(size as usize) as u32, 1, 1], &[("kept", count), ("out", count)])
        })
        .space(Edges {
            cases: 12,
            make: |random: &mut Random, size: u32, n: u64| {
                let size = size as usize;
                let length =
                    [3 * size + 1, 1, size, 5 * size - 1, 2 * size, 2, size + 1, 7, 61, 9 * size, 3, 251][n as usize % 12];
                vec![of_words(&(0..length).map(|_| random.u32()).collect::<Vec<u32>>())]
            },
        })
        .space(Drawn {
            cases: DRAWN,
            make: |random: &mut Random, size: u32| {
                let length = random.length(size).max(1);
                vec![of_words(&random.words(length))]
            },
        })
}
