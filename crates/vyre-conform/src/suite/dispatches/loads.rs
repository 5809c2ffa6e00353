//! Loads at hostile indices, of every element type, from storage, uniform and workgroup memory.

use super::pattern::{ARRANGEMENTS, LENGTHS, Pattern, arranged, indices, length};
use super::{DRAWN, Edges, bytes_of, elements_in, launch, loaded, spec, text, tile};
use crate::cpu::convert::{Access, memory};
use crate::spec::OpSpecBuilder;
use crate::suite::elementwise::kernel_types;
use crate::suite::random::{Drawn, Random, of_words, words};
use std::sync::Arc;
use vyre_foundation::ir::DataType;
use vyre_spec::{FloatMode, Storage};

/// Where it is that indices go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Memory {
    Storage,
    Uniform,
    Workgroup,
}

impl Memory {
    const ALL: [Memory; 3] = [Memory::Storage, Memory::Uniform, Memory::Workgroup];

    fn name(self) -> &'static str {
        match self {
            Memory::Storage => "storage",
            Memory::Uniform => "uniform",
            Memory::Workgroup => "workgroup",
        }
    }

    /// Elements that can be touched, of so many that are given.
    fn length(self, given: usize, size: u32) -> usize {
        match self {
            Memory::Storage | Memory::Uniform => given,
            Memory::Workgroup => tile(size) as usize,
        }
    }
}

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let mut specs = Vec::new();
    for ty in kernel_types() {
        for place in Memory::ALL {
            let possible = match ty.storage() {
                Storage::Computed(_) | Storage::Converted(_) => true,
                // Workgroup memory is written, and these cannot be.
                Storage::LoadOnly(_) => place != Memory::Workgroup,
                Storage::Described => false,
            };
            if possible {
                specs.extend(Pattern::ALL.map(|pattern| load(&ty, place, pattern)));
            }
        }
    }
    for place in Memory::ALL {
        specs.extend(Pattern::ALL.map(|pattern| neighbours(place, pattern)));
    }
    specs
}

/// The start of a program with `a` in this memory: its text, and the name under which it is loaded.
fn head(ty: &DataType, value: &DataType, place: Memory) -> (String, &'static str) {
    let (declared, before, from) = match place {
        Memory::Storage => ("read", String::new(), "a"),
        Memory::Uniform => ("uniform", String::new(), "a"),
        Memory::Workgroup => {
            let filled = "tile[lid.x] = a[lid.x]\ntile[lid.x + SIZE] = a[lid.x + SIZE]\nbarrier\n";
            ("read", format!("buffer tile: workgroup {ty}[TILE]\n{filled}"), "tile")
        }
    };
    let head = format!(
        "program p {{\nworkgroup SIZE\nbuffer a: {declared} {ty} @0\nbuffer at: read u32 @1\nbuffer out: output {value} @2\n{before}"
    );
    (head, from)
}

/// Elements beside each other in one expression, of which some may be out of bounds: compilers make one load of them.
fn neighbours(place: Memory, pattern: Pattern) -> OpSpecBuilder {
    let (head, from) = head(&DataType::U32, &DataType::U32, place);
    let index = pattern.index();
    let sum =
        |e: &str| format!("{from}[{e}] + {from}[{e} + 1] * 3 + {from}[{e} + 2] * 5 + {from}[{e} - 1] * 7 + {from}[{e} + 3] * 11");
    let direct = format!("{head}if gid.x < len(out) {{\nout[gid.x] = {}\n}}\n}}", sum(&format!("({index})")));
    let named = format!("{head}if gid.x < len(out) {{\nlet e = {index}\nout[gid.x] = {}\n}}\n}}", sum("e"));
    let apart = format!(
        "{head}let e = {index}\nlet one = {from}[e + 1]\nlet none = {from}[e]\nlet two = {from}[e + 2]\nlet before = {from}[e - 1]\n\
         if gid.x < len(out) {{\nout[gid.x] = none + one * 3 + two * 5 + before * 7 + {from}[e + 3] * 11\n}}\n}}"
    );
    let meaning = move |columns: &super::Columns<'_>| {
        let mut a = words(columns.inputs[0]);
        if place == Memory::Workgroup {
            a.resize(tile(columns.workgroup) as usize, 0);
        }
        let at = |index: u32| a.get(index as usize).copied().unwrap_or(0);
        let near = [(0, 1), (1, 3), (2, 5), (u32::MAX, 7), (3, 11)];
        let sum =
            |e: u32| near.iter().fold(0_u32, |sum, (by, times)| sum.wrapping_add(at(e.wrapping_add(*by)).wrapping_mul(*times)));
        vec![of_words(&indices(pattern, columns, 1).into_iter().map(sum).collect::<Vec<u32>>())]
    };
    let id = format!("index.{}.neighbours.{}:u32", place.name(), pattern.name());
    over_indices(spec(id, &[DataType::U32, DataType::U32], &[DataType::U32], meaning), &DataType::U32, place, pattern)
        .program(text(direct))
        .alternative("named", text(named))
        .alternative("apart", text(apart))
}

/// `out[i] = a[…]`
fn load(ty: &DataType, place: Memory, pattern: Pattern) -> OpSpecBuilder {
    let value = loaded(ty);
    let (head, from) = head(ty, &value, place);
    let access = format!("{from}[{}]", pattern.index());
    let direct = format!("{head}if gid.x < len(out) {{\nout[gid.x] = {access}\n}}\n}}");
    let hoisted = format!("{head}let value = {access}\nif gid.x < len(out) {{\nout[gid.x] = value\n}}\n}}");
    let branches = format!(
        "{head}if gid.x % 2 == 1 {{\nout[gid.x] = {access}\n}} else {{\nfor k in 0..1 {{\nout[gid.x] = {access}\n}}\n}}\n}}"
    );
    let loads = Arc::clone(&memory(ty, Access::Load, FloatMode::Ieee).expect("what kernels use can be loaded").one);
    let keeps = memory(ty, Access::InPlace, FloatMode::Ieee).map(|meaning| Arc::clone(&meaning.one));
    let (element, each) = (ty.clone(), bytes_of(&value, 1));
    let meaning = move |columns: &super::Columns<'_>| {
        let mut bytes = columns.inputs[0].to_vec();
        if place == Memory::Workgroup {
            bytes.resize(bytes_of(&element, tile(columns.workgroup) as usize), 0);
            bytes = keeps.as_ref().map(|keeps| keeps(&bytes)).unwrap_or_default();
        }
        let values = loads(&bytes);
        let zero = vec![0; each];
        let at = |index: u32| values.chunks_exact(each).nth(index as usize).unwrap_or(&zero);
        vec![indices(pattern, columns, 1).into_iter().flat_map(at).copied().collect()]
    };
    let id = format!("index.{}.load.{}:{ty}", place.name(), pattern.name());
    over_indices(spec(id, &[ty.clone(), DataType::U32], &[value], meaning), ty, place, pattern)
        .program(text(direct))
        .alternative("hoisted", text(hoisted))
        .alternative("branches", text(branches))
}

/// Its launches, and its cases: elements of this type, and indices that this pattern makes of them.
fn over_indices(spec: OpSpecBuilder, ty: &DataType, place: Memory, pattern: Pattern) -> OpSpecBuilder {
    let make = {
        let ty = ty.clone();
        move |random: &mut Random, size: u32, given: usize, way: u64| {
            let a = random.bytes(bytes_of(&ty, given));
            let at = arranged(random, pattern, size, place.length(elements_in(&ty, &a), size), way);
            vec![a, of_words(&at)]
        }
    };
    let drawn = make.clone();
    spec.workgroup_sizes([37, 64])
        .per_dispatch(move |size, inputs| {
            let at = inputs[1].len() / 4;
            launch([pattern.groups(at, size), 1, 1], &[("out", pattern.invocations(at, size))])
        })
        .space(Edges {
            cases: ARRANGEMENTS * LENGTHS,
            make: move |random: &mut Random, size: u32, n: u64| make(random, size, length(n, size), n),
        })
        .space(Drawn {
            cases: DRAWN,
            make: move |random: &mut Random, size: u32| {
                let (given, way) = (random.length(size), random.word());
                drawn(random, size, given, way)
            },
        })
}
