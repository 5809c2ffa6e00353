//! Buffers of lengths that fit no vector and no word: copied by more invocations than there are elements, into outputs that are shorter
//! or longer, with what `len` says beside.

use super::{DRAWN, Edges, bytes_of, elements_in, launch, loaded, spec, text};
use crate::cpu::convert::{Access, memory};
use crate::spec::{Columns, OpSpecBuilder};
use crate::suite::elementwise::kernel_types;
use crate::suite::random::{Drawn, Random, of_words, words};
use std::sync::Arc;
use vyre_foundation::ir::DataType;
use vyre_spec::{FloatMode, Storage};

/// Small ones, powers of two and what is next to them, primes.
const LENGTHS: [usize; 26] =
    [1, 13, 3, 64, 2, 5, 257, 7, 4, 31, 8, 9, 15, 16, 17, 0, 32, 33, 61, 63, 65, 127, 128, 251, 255, 256];

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    kernel_types().iter().map(copy).collect()
}

/// `out[i] = a[i]` for every invocation, whether there is such an element or not.
fn copy(ty: &DataType) -> OpSpecBuilder {
    let (access, result) = match ty.storage() {
        Storage::Computed(_) | Storage::Converted(_) => (Access::InPlace, ty.clone()),
        Storage::LoadOnly(_) | Storage::Described => (Access::Load, loaded(ty)),
    };
    let copies = Arc::clone(&memory(ty, access, FloatMode::Ieee).expect("what kernels use can be loaded").one);
    let head = format!(
        "program p {{\nworkgroup SIZE\nbuffer a: read {ty} @0\nbuffer count: uniform u32 @1\nbuffer out: output {result} @2\n\
         buffer lengths: output u32[3] @3\nlengths[0] = len(a)\nlengths[1] = len(out)\nlengths[2] = len(count)\n"
    );
    let direct = format!("{head}out[gid.x] = a[gid.x]\n}}");
    let guarded = format!("{head}if gid.x < len(out) {{\nif gid.x < len(a) {{\nout[gid.x] = a[gid.x]\n}}\n}}\n}}");
    let strided = format!("{head}for k in 0..4 {{\nlet i = k * gid_count.x + gid.x\nout[i] = a[i]\n}}\n}}");
    let (of, each) = (ty.clone(), bytes_of(&result, 1));
    let meaning = move |columns: &Columns<'_>| {
        let (length, count) = (elements_in(&of, columns.inputs[0]), words(columns.inputs[1])[0]);
        let mut out = copies(columns.inputs[0]);
        out.resize(count as usize * each, 0);
        vec![out, of_words(&[length as u32, count, 1])]
    };
    let make = {
        let ty = ty.clone();
        move |random: &mut Random, length: usize, other: usize| {
            let a = random.bytes(bytes_of(&ty, length));
            let count = (elements_in(&ty, &a) + 1).saturating_sub(other).max(1);
            vec![a, of_words(&[count as u32])]
        }
    };
    let drawn = make.clone();
    spec(format!("lengths.copy:{ty}"), &[ty.clone(), DataType::U32], &[result, DataType::U32], meaning)
        .program(text(direct))
        .alternative("guarded", text(guarded))
        .alternative("strided", text(strided))
        .per_dispatch(|size, inputs| {
            let count = words(inputs[1])[0];
            launch([count.div_ceil(size) + 1, 1, 1], &[("out", count as usize)])
        })
        .space(Edges {
            cases: LENGTHS.len() as u64 * 3,
            make: move |random: &mut Random, _: u32, n: u64| {
                // As long, one longer, one shorter.
                let other = [1, 0, 2][n as usize % 3];
                make(random, LENGTHS[n as usize % LENGTHS.len()], other)
            },
        })
        .space(Drawn {
            cases: DRAWN,
            make: move |random: &mut Random, size: u32| {
                let (length, other) = (random.length(size), random.below(8));
                drawn(random, length, other)
            },
        })
}
