//! Workgroups and grids in three dimensions: what every invocation sees of its ids and counts, how many there are, volumes that a grid
//! covers in part or more than completely, and workgroup memory that is turned.

use super::{DRAWN, Edges, launch, parse, spec};
use crate::spec::{Columns, OpSpecBuilder};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::ir::DataType;

/// Workgroups: odd along each axis, flat along some, as large as they may be.
const SHAPES: [[u32; 3]; 9] =
    [[3, 5, 7], [1, 1, 64], [37, 1, 1], [2, 3, 4], [16, 16, 1], [1, 37, 1], [8, 1, 8], [1, 2, 128], [16, 8, 8]];

/// Grids of workgroups.
const GRIDS: [[u32; 3]; 10] =
    [[2, 3, 4], [1, 1, 1], [1, 5, 2], [7, 1, 1], [1, 1, 9], [1, 6, 1], [3, 1, 5], [4, 3, 1], [2, 2, 2], [13, 2, 1]];

const AXES: [&str; 3] = ["x", "y", "z"];

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    SHAPES.into_iter().flat_map(|shape| [ids(shape), volume(shape), turned(shape)]).collect()
}

fn name(kind: &str, [x, y, z]: [u32; 3]) -> String {
    format!("geometry.{kind}.{x}x{y}x{z}:u32")
}

/// The program of this text, in workgroups of this shape, whatever the size that is asked for: there is one.
pub(super) fn shaped(
    text: String,
    [x, y, z]: [u32; 3],
) -> impl Fn([u32; 3]) -> vyre_foundation::ir::Program + Send + Sync + 'static {
    let program = parse(&format!("program p {{\nworkgroup {x} {y} {z}\n{text}}}"));
    move |_| program.clone()
}

/// The number of an invocation of a box, by z, then y, then x.
fn number([x, y, _]: [u32; 3], at: [u32; 3]) -> u32 {
    (at[2] * y + at[1]) * x + at[0]
}

/// Every place in a box, in the order of numbers.
pub(super) fn places([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c])))
}

pub(super) fn total([x, y, z]: [u32; 3]) -> u32 {
    x * y * z
}

pub(super) fn three(bytes: &[u8]) -> [u32; 3] {
    let all = words(bytes);
    [all[0], all[1], all[2]]
}

pub(super) fn times(one: [u32; 3], other: [u32; 3]) -> [u32; 3] {
    [0, 1, 2].map(|axis| one[axis] * other[axis])
}

/// A grid at random, of not too many invocations.
fn grid(random: &mut Random, shape: [u32; 3]) -> [u32; 3] {
    let most = (1 << 14) / total(shape) as usize;
    let mut grid = [1; 3];
    for axis in [random.below(3), random.below(3), random.below(3)] {
        let left = most / total(grid) as usize * grid[axis] as usize;
        grid[axis] = 1 + random.below(left.clamp(1, 24)) as u32;
    }
    grid
}

/// All eighteen ids and counts of every invocation, and how many of them there were in the dispatch and in each workgroup.
fn ids(shape: [u32; 3]) -> OpSpecBuilder {
    let kinds = ["gid", "wid", "lid", "gid_count", "wid_count", "lid_count"];
    let told: String = (kinds.iter().flat_map(|kind| AXES.map(|axis| format!("{kind}.{axis}"))))
        .enumerate()
        .map(|(k, value)| format!("out[n * 18 + {k}] = {value}\n"))
        .collect();
    let program = format!(
        "buffer grid: read u32 @0\nbuffer out: output u32 @1\nbuffer counts: output u32 @2\n\
         let n = (gid.z * gid_count.y + gid.y) * gid_count.x + gid.x\n{told}\
         atomic.add(counts, 0, 1)\natomic.add(counts, 1 + (wid.z * wid_count.y + wid.y) * wid_count.x + wid.x, 1)\n"
    );
    let meaning = move |columns: &Columns<'_>| {
        let groups = three(columns.inputs[0]);
        let all = times(groups, shape);
        let of = |at: [u32; 3]| {
            let wid = [0, 1, 2].map(|axis| at[axis] / shape[axis]);
            let lid = [0, 1, 2].map(|axis| at[axis] % shape[axis]);
            [at, wid, lid, all, groups, shape].concat()
        };
        let mut counts = vec![total(all)];
        counts.extend(vec![total(shape); total(groups) as usize]);
        vec![of_words(&places(all).flat_map(of).collect::<Vec<u32>>()), of_words(&counts)]
    };
    spec(name("ids", shape), &[DataType::U32], &[DataType::U32, DataType::U32], meaning)
        .program(shaped(program, shape))
        .workgroup_sizes([total(shape)])
        .per_dispatch(move |_, inputs| {
            let groups = three(inputs[0]);
            let out = total(times(groups, shape)) as usize * 18;
            launch(groups, &[("out", out), ("counts", 1 + total(groups) as usize)])
        })
        .space(Edges {
            cases: GRIDS.len() as u64,
            make: |_: &mut Random, _: u32, n: u64| vec![of_words(&GRIDS[n as usize % GRIDS.len()])],
        })
        .space(Drawn { cases: DRAWN, make: move |random: &mut Random, _: u32| vec![of_words(&grid(random, shape))] })
}

/// A volume turned around, by a grid that covers it more or less: what is outside is left alone, and what nobody comes to is zero.
fn volume(shape: [u32; 3]) -> OpSpecBuilder {
    let program = "buffer a: read u32 @0\nbuffer extent: uniform u32 @1\nbuffer grid: read u32 @2\nbuffer out: output u32 @3\n\
         let w = extent[0]\nlet h = extent[1]\nlet d = extent[2]\nif gid.x < w && gid.y < h && gid.z < d {\n\
         out[(gid.z * h + gid.y) * w + gid.x] = a[(gid.x * h + gid.y) * d + gid.z]\n}\n"
        .to_string();
    let meaning = move |columns: &Columns<'_>| {
        let (a, extent, groups) = (words(columns.inputs[0]), three(columns.inputs[1]), three(columns.inputs[2]));
        let [_, h, d] = extent;
        let all = times(groups, shape);
        let is_reached = |at: &[u32; 3]| (0..3).all(|axis| at[axis] < all[axis]);
        let of = |at: [u32; 3]| if is_reached(&at) { a[((at[0] * h + at[1]) * d + at[2]) as usize] } else { 0 };
        vec![of_words(&places(extent).map(of).collect::<Vec<u32>>())]
    };
    let case = move |random: &mut Random, groups: [u32; 3], less: [u32; 3]| {
        // The grid covers a little more than the volume, or a little less.
        let extent = [0, 1, 2].map(|axis| (groups[axis] * shape[axis] + 1).saturating_sub(less[axis]).max(1));
        let a: Vec<u32> = (0..total(extent)).map(|_| random.u32()).collect();
        vec![of_words(&a), of_words(&extent), of_words(&groups)]
    };
    spec(name("volume", shape), &vec![DataType::U32; 3], &[DataType::U32], meaning)
        .program(shaped(program, shape))
        .workgroup_sizes([total(shape)])
        .per_dispatch(|_, inputs| launch(three(inputs[2]), &[("out", inputs[0].len() / 4)]))
        .space(Edges {
            cases: GRIDS.len() as u64 * 4,
            make: move |random: &mut Random, _: u32, n: u64| {
                let less = [[3, 3, 3], [0, 2, 1], [2, 0, 0], [1, 1, 1]][n as usize / 3 % 4];
                case(random, GRIDS[n as usize % GRIDS.len()], less)
            },
        })
        .space(Drawn {
            cases: DRAWN,
            make: move |random: &mut Random, _: u32| {
                let (groups, less) = (grid(random, shape), [0; 3].map(|_| random.below(5) as u32));
                case(random, groups, less)
            },
        })
}

/// Each workgroup's elements in the opposite order and with their axes exchanged, through workgroup memory.
fn turned(shape: [u32; 3]) -> OpSpecBuilder {
    let [_, y, z] = shape;
    let all = total(shape);
    let program = format!(
        "buffer a: read u32 @0\nbuffer grid: read u32 @1\nbuffer out: output u32 @2\nbuffer tile: workgroup u32[{all}]\n\
         let l = (lid.z * lid_count.y + lid.y) * lid_count.x + lid.x\n\
         let from = ((wid.z * wid_count.y + wid.y) * wid_count.x + wid.x) * {all}\n\
         tile[l] = a[from + l]\nbarrier\n\
         out[from + l] = tile[{all} - 1 - l] * 3 + tile[(lid.x * {y} + lid.y) * {z} + lid.z]\n"
    );
    let meaning = move |columns: &Columns<'_>| {
        let a = words(columns.inputs[0]);
        let of = |tile: &[u32]| -> Vec<u32> {
            let turned = |at: [u32; 3]| tile[((at[0] * y + at[1]) * z + at[2]) as usize];
            let backwards = |at: [u32; 3]| tile[(all - 1 - number(shape, at)) as usize];
            places(shape).map(|at| backwards(at).wrapping_mul(3).wrapping_add(turned(at))).collect()
        };
        vec![of_words(&a.chunks_exact(all as usize).flat_map(of).collect::<Vec<u32>>())]
    };
    let case = move |random: &mut Random, groups: [u32; 3]| {
        let a: Vec<u32> = (0..total(groups) * all).map(|_| random.u32()).collect();
        vec![of_words(&a), of_words(&groups)]
    };
    spec(name("turned", shape), &[DataType::U32, DataType::U32], &[DataType::U32], meaning)
        .program(shaped(program, shape))
        .workgroup_sizes([all])
        .per_dispatch(|_, inputs| launch(three(inputs[1]), &[("out", inputs[0].len() / 4)]))
        .space(Edges {
            cases: GRIDS.len() as u64,
            make: move |random: &mut Random, _: u32, n: u64| case(random, GRIDS[n as usize % GRIDS.len()]),
        })
        .space(Drawn {
            cases: DRAWN,
            make: move |random: &mut Random, _: u32| {
                let groups = grid(random, shape);
                case(random, groups)
            },
        })
}
