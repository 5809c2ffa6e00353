//! Barriers and workgroup memory: values exchanged, sums by trees, scans, memory that starts at zero, indices out of bounds.

use super::{Count, Group, Grouped, finish, put, text};
use crate::cpu::convert::{Access, memory};
use crate::spec::OpSpec;
use std::sync::Arc;
use vyre_foundation::ir::DataType;
use vyre_spec::{FloatMode, Storage};

/// One workgroup's part of `u32` inputs to the elements of its outputs.
type Meaning = fn(&Group<'_>) -> Vec<Vec<u32>>;

const HEAD: &str = "program p {\nworkgroup SIZE\nbuffer a: read u32 @0\n";

pub(super) fn barriers() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    let mut add = |name: &str, inputs: &[Count], outputs: &[Count], body: &str, meaning: Meaning| {
        let buffers = |counts: &[Count]| counts.iter().map(|count| (DataType::U32, *count)).collect();
        let grouped = Grouped { inputs: buffers(inputs), outputs: buffers(outputs) };
        let spec = grouped.spec(format!("{name}:u32"), move |group, outputs| {
            for (values, output) in meaning(group).into_iter().zip(outputs) {
                put(values, output);
            }
        });
        let mut spec = spec.program(text(format!("{HEAD}{body}}}")));
        for ordering in ["acquire", "release", "acqrel", "seqcst"] {
            let body = body.replace("barrier\n", &format!("barrier.{ordering}\n"));
            spec = spec.alternative(ordering, text(format!("{HEAD}{body}}}")));
        }
        specs.push(finish(spec));
    };
    use Count::{Each, One};
    const OUT: &str = "buffer out: output u32 @9\n";
    const TILE: &str = "buffer tile: workgroup u32[SIZE]\n";
    add(
        "barrier.reverse",
        &[Each],
        &[Each],
        &format!("{OUT}{TILE}tile[lid.x] = a[gid.x]\nbarrier\nout[gid.x] = tile[SIZE - 1 - lid.x]\n"),
        |group| vec![group.u32s(0).into_iter().rev().collect()],
    );
    add(
        "barrier.rotate",
        &[Each, One],
        &[Each],
        &format!(
            "buffer by: read u32 @1\n{OUT}{TILE}tile[lid.x] = a[gid.x]\nbarrier\nout[gid.x] = tile[(lid.x + by[wid.x] % SIZE) % SIZE]\n"
        ),
        |group| {
            let (mut values, by) = (group.u32s(0), group.u32s(1)[0]);
            values.rotate_left(by as usize % group.size);
            vec![values]
        },
    );
    // Storage instead of workgroup memory; both are compared.
    add(
        "barrier.storage",
        &[Each],
        &[Each, Each],
        &format!(
            "buffer kept: output u32 @8\n{OUT}kept[gid.x] = a[gid.x] ^ 0x55\nbarrier\nout[gid.x] = kept[gid.x + SIZE - 1 - 2 * lid.x]\n"
        ),
        |group| {
            let kept: Vec<u32> = group.u32s(0).into_iter().map(|a| a ^ 0x55).collect();
            vec![kept.clone(), kept.into_iter().rev().collect()]
        },
    );
    add(
        "barrier.tree_sum",
        &[Each],
        &[One],
        &format!(
            "{OUT}{TILE}tile[lid.x] = a[gid.x]\nbarrier\nfor k in 0..10 {{\nlet stride = 512 >> k\n\
             if lid.x < stride && lid.x + stride < SIZE {{\ntile[lid.x] = tile[lid.x] + tile[lid.x + stride]\n}}\nbarrier\n}}\n\
             if lid.x == 0 {{\nout[wid.x] = tile[0]\n}}\n"
        ),
        |group| vec![vec![group.u32s(0).into_iter().fold(0, u32::wrapping_add)]],
    );
    add(
        "barrier.scan",
        &[Each],
        &[Each],
        &format!(
            "{OUT}{TILE}tile[lid.x] = a[gid.x]\nbarrier\nfor k in 0..10 {{\nlet back = 1 << k\nlet sum = tile[lid.x]\n\
             if lid.x >= back {{\nsum = sum + tile[lid.x - back]\n}}\nbarrier\ntile[lid.x] = sum\nbarrier\n}}\nout[gid.x] = tile[lid.x]\n"
        ),
        |group| {
            let mut sum = 0_u32;
            vec![
                group
                    .u32s(0)
                    .into_iter()
                    .map(|a| {
                        sum = sum.wrapping_add(a);
                        sum
                    })
                    .collect(),
            ]
        },
    );
    // Workgroup memory is zero at first, whatever an earlier workgroup left there.
    add(
        "barrier.zero_at_start",
        &[Each],
        &[Each],
        &format!("{OUT}{TILE}out[gid.x] = a[gid.x] + tile[SIZE - 1 - lid.x]\nbarrier\ntile[lid.x] = a[gid.x] | 1\n"),
        |group| vec![group.u32s(0)],
    );
    // Those that have returned do not keep the others waiting.
    add(
        "barrier.retired",
        &[Each],
        &[Each],
        &format!(
            "{OUT}{TILE}tile[lid.x] = a[gid.x]\nif a[gid.x] % 2 == 1 {{\nout[gid.x] = 7\nreturn\n}}\nbarrier\nout[gid.x] = tile[SIZE - 1 - lid.x]\n"
        ),
        |group| {
            let values = group.u32s(0);
            let of = |(a, other): (&u32, &u32)| if a % 2 == 1 { 7 } else { *other };
            vec![values.iter().zip(values.iter().rev()).map(of).collect()]
        },
    );
    // A loop with barriers that a uniform condition leaves.
    add(
        "barrier.uniform_break",
        &[Each, One],
        &[Each],
        &format!(
            "buffer rounds: read u32 @1\n{OUT}{TILE}tile[lid.x] = a[gid.x]\nbarrier\nfor k in 0..8 {{\nif k == rounds[wid.x] % 8 {{\nbreak\n}}\n\
             let next = tile[(lid.x + 1) % SIZE]\nbarrier\ntile[lid.x] = next * 3 + k\nbarrier\n}}\nout[gid.x] = tile[lid.x]\n"
        ),
        |group| {
            let (mut values, rounds) = (group.u32s(0), group.u32s(1)[0] % 8);
            for k in 0..rounds {
                values.rotate_left(1);
                values.iter_mut().for_each(|value| *value = value.wrapping_mul(3).wrapping_add(k));
            }
            vec![values]
        },
    );
    add(
        "barrier.histogram",
        &[Each],
        &[Each],
        &format!("{OUT}{TILE}atomic.add(tile, a[gid.x] % SIZE, 1)\nbarrier\nout[gid.x] = tile[lid.x]\n"),
        |group| {
            let mut counts = vec![0; group.size];
            group.u32s(0).into_iter().for_each(|a| counts[a as usize % group.size] += 1);
            vec![counts]
        },
    );
    add(
        "ids.local",
        &[Each],
        &[Each],
        &format!(
            "{OUT}out[gid.x] = a[gid.x] ^ (lid.x + lid_count.x * 4096 + lid.y + lid.z + (gid.x - wid.x * lid_count.x - lid.x))\n"
        ),
        |group| vec![(0..).zip(group.u32s(0)).map(|(i, a)| a ^ (i + group.size as u32 * 4096)).collect()],
    );
    for (_, ty) in DataType::all_plain() {
        match ty.storage() {
            Storage::Computed(_) | Storage::Converted(_) => specs.extend([index_load(ty), index_store(ty)]),
            // Workgroup memory is written, and these cannot be.
            Storage::LoadOnly(_) | Storage::Described => {}
        }
    }
    specs
}

/// Elements of workgroup memory of this type read at indices as they come.
fn index_load(ty: &DataType) -> OpSpec {
    let text_of = format!(
        "program p {{\nworkgroup SIZE\nbuffer a: read {ty} @0\nbuffer at: read u32 @1\nbuffer out: output {ty} @2\nbuffer tile: workgroup {ty}[SIZE]\n\
         tile[lid.x] = a[gid.x]\nbarrier\nlet to = select(at[gid.x] >= 0x80000000, at[gid.x], at[gid.x] % (SIZE + 2))\nout[gid.x] = tile[to]\n}}"
    );
    indexed("index.load", ty, text_of, |size, _, at| if at >= 1 << 31 { at as usize } else { at as usize % (size + 2) })
}

/// Elements of workgroup memory of this type written by their owners, or far out of bounds.
fn index_store(ty: &DataType) -> OpSpec {
    let text_of = format!(
        "program p {{\nworkgroup SIZE\nbuffer a: read {ty} @0\nbuffer at: read u32 @1\nbuffer out: output {ty} @2\nbuffer tile: workgroup {ty}[SIZE]\n\
         tile[select(at[gid.x] >= SIZE, at[gid.x], lid.x)] = a[gid.x]\nbarrier\nout[gid.x] = tile[lid.x]\n}}"
    );
    // Nothing is there if it was written elsewhere.
    indexed("index.store", ty, text_of, |size, i, at| if at as usize >= size { usize::MAX } else { i })
}

/// `out[i]` is the element of the case that `from` says, loaded and stored, or the zero of the type.
fn indexed(name: &str, ty: &DataType, program: String, from: fn(usize, usize, u32) -> usize) -> OpSpec {
    let each = |ty: &DataType| (ty.clone(), Count::Each);
    let bytes = ty.bits().map_or(1, |bits| bits as usize / 8);
    let kept = Arc::clone(&memory(ty, Access::InPlace, FloatMode::Ieee).expect("what can be loaded and stored").one);
    let spec = Grouped::new([each(ty), each(&DataType::U32)], [each(ty)]).spec(format!("{name}:{ty}"), move |group, outputs| {
        // Once into workgroup memory, once out of it.
        let values = kept(&kept(group.inputs[0]));
        for (i, (at, to)) in group.u32s(1).into_iter().zip(outputs[0].chunks_exact_mut(bytes)).enumerate() {
            if let Some(value) = values.chunks_exact(bytes).nth(from(group.size, i, at)) {
                to.copy_from_slice(value);
            }
        }
    });
    finish(spec.program(text(program)))
}
