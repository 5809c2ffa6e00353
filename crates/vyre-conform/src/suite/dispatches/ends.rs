//! Invocations that end before the others: by a trap, which is what the whole dispatch then ends with, or by a return, after which nobody
//! waits for them.

use super::geometry::{places, shaped, three, times, total};
use super::{DRAWN, Edges, launch, spec, text};
use crate::spec::{Columns, OpSpecBuilder, Trap};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::ir::DataType;

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let shapes = [[37, 1, 1], [64, 1, 1], [3, 5, 7], [1, 1, 32]];
    let traps = shapes.into_iter().flat_map(|shape| KINDS.iter().map(move |kind| trap(kind, shape)));
    traps.chain(returns()).collect()
}

/// A program that traps in some invocations. Each has a word `v[n]`, and invocation `n` is also lane `l` of its workgroup.
struct Traps {
    name: &'static str,
    body: &'static str,
    /// The tag that an invocation traps with, from the words of its workgroup and its place there.
    tag: fn(&[u32], usize) -> Option<u32>,
    /// What it writes if nobody traps.
    out: fn(&[u32], usize) -> u32,
}

/// With these words an invocation has something to trap for; the others have not.
const CAUSES: [u32; 3] = [1, 2, 3];

const KINDS: [Traps; 4] = [
    Traps {
        name: "branch",
        body: "out[n] = v[n] ^ 1\nif v[n] == 1 {\ntrap(7)\n} else if v[n] == 2 {\ntrap(4294967295)\n} else if v[n] == 3 {\ntrap(0)\n}\n\
               if v[n] % 2 == 0 {\nreturn\n}\nout[n] = 5\n",
        tag: |group, l| [None, Some(7), Some(u32::MAX), Some(0)].get(group[l] as usize).copied().flatten(),
        out: |group, l| if group[l] % 2 == 0 { group[l] ^ 1 } else { 5 },
    },
    Traps {
        name: "loop",
        body: "let sum = 0\nfor k in 0..5 {\nif v[n] == k + 1 && k < 3 {\ntrap(9)\n}\nif v[n] % 5 == k {\nbreak\n}\nsum = sum * 3 + k\n}\nout[n] = sum\n",
        // Some leave the loop before.
        tag: |group, l| CAUSES.contains(&group[l]).then_some(9),
        out: |group, l| (0..group[l] % 5).fold(0, |sum, k| sum * 3 + k),
    },
    Traps {
        name: "barrier",
        body: "tile[l] = v[n]\nif v[n] == 1 {\ntrap(3)\n}\nbarrier\nif tile[(l + 1) % ALL] == 2 {\ntrap(4)\n}\nbarrier\n\
               if v[n] == 3 {\nreturn\n}\nout[n] = tile[ALL - 1 - l]\n",
        tag: |group, l| match (group[l], group[(l + 1) % group.len()]) {
            (1, _) => Some(3),
            (_, 2) => Some(4),
            _ => None,
        },
        out: |group, l| if group[l] == 3 { 0 } else { group[group.len() - 1 - l] },
    },
    Traps {
        name: "grid",
        // An invocation that traps later counts as well, and those that have trapped are not waited for.
        body: "out[n] = v[n]\nif v[n] == 2 {\ntrap(5)\n}\nbarrier.grid\nif v[n] == 1 || v[n] == 3 {\ntrap(6)\n}\nout[n] = out[n] + 1\n",
        tag: |group, l| [None, Some(6), Some(5), Some(6)].get(group[l] as usize).copied().flatten(),
        out: |group, l| group[l].wrapping_add(1),
    },
];

/// Ways to spread words over invocations.
const WAYS: u64 = 7;

fn trap(kind: &'static Traps, shape: [u32; 3]) -> OpSpecBuilder {
    let all = total(shape);
    let program = format!(
        "buffer v: read u32 @0\nbuffer grid: read u32 @1\nbuffer out: output u32 @2\nbuffer tile: workgroup u32[{all}]\n\
         let l = (lid.z * lid_count.y + lid.y) * lid_count.x + lid.x\n\
         let n = ((wid.z * wid_count.y + wid.y) * wid_count.x + wid.x) * {all} + l\n{}",
        kind.body.replace("ALL", &all.to_string())
    );
    // Invocations by workgroup, and their words.
    let traps = move |columns: &Columns<'_>| {
        let (v, groups) = (words(columns.inputs[0]), three(columns.inputs[1]));
        let mut first: Option<([u32; 3], u32)> = None;
        for (group, wid) in v.chunks_exact(all as usize).zip(places(groups)) {
            for (l, lid) in places(shape).enumerate() {
                let Some(tag) = (kind.tag)(group, l) else { continue };
                let at = [0, 1, 2].map(|axis| wid[axis] * shape[axis] + lid[axis]);
                let before = |other: [u32; 3]| [at[2], at[1], at[0]] < [other[2], other[1], other[0]];
                if first.is_none_or(|(other, _)| before(other)) {
                    first = Some((at, tag));
                }
            }
        }
        first.map(|(invocation, tag)| Trap { tag, invocation })
    };
    let meaning = move |columns: &Columns<'_>| {
        let v = words(columns.inputs[0]);
        let of = |group: &[u32]| (0..group.len()).map(|l| (kind.out)(group, l)).collect::<Vec<u32>>();
        vec![of_words(&v.chunks_exact(all as usize).flat_map(of).collect::<Vec<u32>>())]
    };
    let case = move |random: &mut Random, groups: [u32; 3], way: u64| {
        let count = total(times(groups, shape)) as usize;
        let harmless = |random: &mut Random| 4 + (random.u32() >> 1);
        let mut v: Vec<u32> = (0..count).map(|_| harmless(random)).collect();
        let cause = |random: &mut Random| CAUSES[random.below(3)];
        match way % WAYS {
            0 => {}
            1 => v[random.below(count)] = cause(random),
            2 => v[count - 1] = cause(random),
            3 => (0..5).for_each(|_| v[random.below(count)] = cause(random)),
            4 => v[0] = cause(random),
            5 => v.iter_mut().for_each(|v| *v = cause(random)),
            _ => v.iter_mut().for_each(|v| *v = if random.below(40) == 0 { cause(random) } else { *v }),
        }
        vec![of_words(&v), of_words(&groups)]
    };
    let [x, y, z] = shape;
    spec(format!("trap.{}.{x}x{y}x{z}:u32", kind.name), &[DataType::U32, DataType::U32], &[DataType::U32], meaning)
        .trap_fn(traps)
        .program(shaped(program, shape))
        .workgroup_sizes([all])
        .per_dispatch(|_, inputs| launch(three(inputs[1]), &[("out", inputs[0].len() / 4)]))
        .space(Edges {
            cases: WAYS * 3,
            make: move |random: &mut Random, _: u32, n: u64| case(random, [[2, 3, 2], [5, 1, 1], [1, 1, 4]][n as usize % 3], n),
        })
        .space(Drawn {
            cases: DRAWN,
            make: move |random: &mut Random, _: u32| {
                let groups = [0; 3].map(|_| 1 + random.below(4) as u32);
                let way = random.word();
                case(random, groups, way)
            },
        })
}

/// A program in which some return, and what it leaves for the words of one workgroup.
struct Returns {
    name: &'static str,
    body: &'static str,
    out: fn(&[u32]) -> Vec<u32>,
}

const RETURNS: [Returns; 3] = [
    Returns {
        name: "loop",
        // Whoever is gone leaves what it last wrote.
        body: "let sum = 0\nfor k in 0..6 {\nif v[i] == k {\nreturn\n}\ntile[lid.x] = v[i] * 10 + k\nbarrier\n\
               sum = sum + tile[(lid.x + 1) % SIZE]\nout[i] = sum\nbarrier\n}\nout[i] = sum + 1000\n",
        out: |v| {
            let mut tile = vec![0_u32; v.len()];
            let mut out = vec![0_u32; v.len()];
            for k in 0..6 {
                let left = |l: &usize| v[*l] > k || v[*l] >= 6;
                (0..v.len()).filter(left).for_each(|l| tile[l] = v[l].wrapping_mul(10).wrapping_add(k));
                (0..v.len()).filter(left).for_each(|l| out[l] = out[l].wrapping_add(tile[(l + 1) % v.len()]));
            }
            (0..v.len()).map(|l| if v[l] >= 6 { out[l].wrapping_add(1000) } else { out[l] }).collect()
        },
    },
    Returns {
        name: "workgroup",
        // All of a workgroup or none, and those of the others wait for each other.
        body: "if v[wid.x * SIZE] % 2 == 1 {\nout[i] = 1\nreturn\n}\ntile[lid.x] = v[i]\nbarrier\nout[i] = tile[SIZE - 1 - lid.x]\n",
        out: |v| if v[0] % 2 == 1 { vec![1; v.len()] } else { v.iter().rev().copied().collect() },
    },
    Returns {
        name: "counted",
        body: "if v[i] % 2 == 0 {\nfor k in 0..4 {\nif k == v[i] % 5 {\nout[i] = k\nreturn\n}\n}\n}\n\
               atomic.add(tile, 0, 1)\nbarrier\nout[i] = tile[0] * 16 + v[i] % 16\n",
        out: |v| {
            let is_gone = |v: u32| v.is_multiple_of(2) && v % 5 < 4;
            let left = v.iter().filter(|v| !is_gone(**v)).count() as u32;
            v.iter().map(|v| if is_gone(*v) { v % 5 } else { left * 16 + v % 16 }).collect()
        },
    },
];

fn returns() -> impl Iterator<Item = OpSpecBuilder> {
    RETURNS.iter().map(|kind| {
        let program = format!(
            "program p {{\nworkgroup SIZE\nbuffer v: read u32 @0\nbuffer out: output u32 @1\nbuffer tile: workgroup u32[SIZE]\n\
             let i = gid.x\n{}}}",
            kind.body
        );
        let meaning = |columns: &Columns<'_>| {
            let v = words(columns.inputs[0]);
            let of = v.chunks_exact(columns.workgroup as usize).flat_map(kind.out);
            vec![of_words(&of.collect::<Vec<u32>>())]
        };
        let case = |random: &mut Random, groups: usize, size: u32, way: u64| {
            let one = random.u32();
            let word = |random: &mut Random| match way % 5 {
                0 => random.below(8) as u32,
                1 => one % 8,
                2 => {
                    if random.below(30) == 0 {
                        random.below(6) as u32
                    } else {
                        7
                    }
                }
                3 => random.u32(),
                _ => random.below(2) as u32,
            };
            vec![of_words(&(0..groups * size as usize).map(|_| word(random)).collect::<Vec<u32>>())]
        };
        spec(format!("retire.{}:u32", kind.name), &[DataType::U32], &[DataType::U32], meaning)
            .program(text(program))
            .per_dispatch(|size, inputs| {
                let count = inputs[0].len() / 4;
                launch([(count / size as usize) as u32, 1, 1], &[("out", count)])
            })
            .space(Edges {
                cases: 20,
                make: move |random: &mut Random, size: u32, n: u64| case(random, [5, 1, 2, 9][n as usize % 4], size, n),
            })
            .space(Drawn {
                cases: DRAWN,
                make: move |random: &mut Random, size: u32| {
                    let (groups, way) = (1 + random.below(8), random.word());
                    case(random, groups, size, way)
                },
            })
    })
}
