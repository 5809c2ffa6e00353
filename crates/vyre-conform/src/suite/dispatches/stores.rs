//! Stores at hostile indices, of every element type that can be stored, to storage and workgroup memory.
//!
//! No element is stored to twice, unless it is by all invocations of a workgroup with one value. What is not stored to keeps its bits.

use super::pattern::{ARRANGEMENTS, LENGTHS, Pattern, apart, arranged, indices, length};
use super::{Columns, DRAWN, Edges, bytes_of, launch, loaded, spec, text, tile};
use crate::cpu::convert::{Access, memory};
use crate::spec::{CpuFn, OpSpecBuilder};
use crate::suite::elementwise::kernel_types;
use crate::suite::random::{Drawn, Random, of_words};
use std::sync::Arc;
use vyre_foundation::ir::DataType;
use vyre_spec::{FloatMode, Storage};

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let mut specs = Vec::new();
    for ty in kernel_types() {
        match ty.storage() {
            Storage::Computed(_) | Storage::Converted(_) => {
                specs.extend(Pattern::ALL.map(|pattern| Store::new(&ty, pattern).storage()));
                specs.extend(Pattern::ALL.map(|pattern| Store::new(&ty, pattern).workgroup()));
            }
            Storage::LoadOnly(_) | Storage::Described => {}
        }
    }
    specs
}

#[derive(Clone)]
struct Store {
    ty: DataType,
    pattern: Pattern,
    stores: CpuFn,
}

impl Store {
    fn new(ty: &DataType, pattern: Pattern) -> Store {
        let meaning = memory(ty, Access::Store, FloatMode::Ieee).expect("it can be stored");
        Store { ty: ty.clone(), pattern, stores: Arc::clone(&meaning.one) }
    }

    /// Who of a workgroup stores to the element that all of them could, and what. Equal stores of all are only allowed to whole words.
    fn by_all(&self) -> bool {
        self.ty.bits().is_some_and(|bits| bits >= 32)
    }

    /// The statement, and who executes it.
    fn statement(&self, to: &str) -> String {
        let index = self.pattern.index();
        match self.pattern {
            Pattern::Group if self.by_all() => format!("{to}[{index}] = v[wid.x]\n"),
            Pattern::Group => format!("if lid.x == SIZE / 2 {{\n{to}[{index}] = v[gid.x]\n}}\n"),
            Pattern::Lane | Pattern::Run | Pattern::Down | Pattern::Scaled => {
                format!("if gid.x < len(v) {{\n{to}[{index}] = v[gid.x]\n}}\n")
            }
        }
    }

    /// The stores of a dispatch: who, where, and the number of the value.
    fn stored(&self, columns: &Columns<'_>, at: usize) -> Vec<(usize, usize, usize)> {
        let size = columns.workgroup as usize;
        let all = indices(self.pattern, columns, at).into_iter().enumerate();
        match self.pattern {
            Pattern::Group if self.by_all() => all.map(|(i, index)| (i, index as usize, i / size)).collect(),
            Pattern::Group => all.filter(|(i, _)| i % size == size / 2).map(|(i, index)| (i, index as usize, i)).collect(),
            Pattern::Lane | Pattern::Run | Pattern::Down | Pattern::Scaled => {
                all.map(|(i, index)| (i, index as usize, i)).collect()
            }
        }
    }

    /// `at` and values for memory of this length.
    fn operands(&self, random: &mut Random, size: u32, length: usize, way: u64, is_per_group: bool) -> [Vec<u8>; 2] {
        let mut at = arranged(random, self.pattern, size, length, way);
        apart(&mut at, self.pattern, size, length, is_per_group);
        let values = bytes_of(&loaded(&self.ty), self.pattern.invocations(at.len(), size));
        [of_words(&at), random.bytes(values)]
    }

    /// `x[…] = v[i]`
    fn storage(self) -> OpSpecBuilder {
        let (ty, value, pattern) = (self.ty.clone(), loaded(&self.ty), self.pattern);
        let head = format!(
            "program p {{\nworkgroup SIZE\nbuffer x: read_write {ty} @0\nbuffer at: read u32 @1\nbuffer v: read {value} @2\n"
        );
        let direct = format!("{head}{}}}", self.statement("x"));
        let inside = format!("{head}for k in 0..2 {{\nif k == gid.x % 2 {{\n{}}}\n}}\n}}", self.statement("x"));
        let (it, drawn, edges) = (self.clone(), self.clone(), self.clone());
        let meaning = move |columns: &Columns<'_>| {
            let (mut x, values) = (columns.inputs[0].to_vec(), (it.stores)(columns.inputs[2]));
            it.put(&mut x, &values, it.stored(columns, 1).into_iter().map(|(_, index, n)| (index, n)));
            vec![x]
        };
        let make = |it: &Store, random: &mut Random, size: u32, length: usize, way: u64| {
            let x = random.bytes(bytes_of(&it.ty, length));
            let [at, v] = it.operands(random, size, length, way, false);
            vec![x, at, v]
        };
        let mut spec =
            spec(format!("index.storage.store.{}:{ty}", pattern.name()), &[ty.clone(), DataType::U32, value], &[ty], meaning)
                .program(text(direct));
        // In turns, not all of a workgroup store at once; that is another program where they have to.
        if pattern != Pattern::Group {
            spec = spec.alternative("inside", text(inside));
        }
        spec.workgroup_sizes([37, 64])
            .per_dispatch(move |size, inputs| launch([pattern.groups(inputs[1].len() / 4, size), 1, 1], &[]))
            .space(Edges {
                cases: ARRANGEMENTS * LENGTHS,
                make: move |random: &mut Random, size: u32, n: u64| make(&edges, random, size, length(n, size), n),
            })
            .space(Drawn {
                cases: DRAWN,
                make: move |random: &mut Random, size: u32| {
                    let (length, way) = (random.length(size), random.word());
                    make(&drawn, random, size, length, way)
                },
            })
    }

    /// `tile[…] = v[i]`, and all of the tile behind a barrier.
    fn workgroup(self) -> OpSpecBuilder {
        let (ty, value, pattern) = (self.ty.clone(), loaded(&self.ty), self.pattern);
        let program = format!(
            "program p {{\nworkgroup SIZE\nbuffer at: read u32 @0\nbuffer v: read {value} @1\nbuffer out: output {ty} @2\n\
             buffer tile: workgroup {ty}[TILE]\n{}barrier\nout[wid.x * TILE + lid.x] = tile[lid.x]\n\
             if lid.x + SIZE < TILE {{\nout[wid.x * TILE + SIZE + lid.x] = tile[SIZE + lid.x]\n}}\n}}",
            self.statement("tile")
        );
        let keeps = memory(&ty, Access::InPlace, FloatMode::Ieee).expect("what can be loaded and stored").one;
        let (it, drawn, edges) = (self.clone(), self.clone(), self);
        let meaning = move |columns: &Columns<'_>| {
            let (size, length) = (columns.workgroup as usize, tile(columns.workgroup) as usize);
            let groups = it.pattern.groups(columns.inputs[0].len() / 4, columns.workgroup) as usize;
            let values = (it.stores)(columns.inputs[1]);
            let mut all = vec![0; bytes_of(&it.ty, groups * length)];
            let inside = it.stored(columns, 0).into_iter().filter(|(_, index, _)| *index < length);
            it.put(&mut all, &values, inside.map(|(i, index, n)| (i / size * length + index, n)));
            vec![keeps(&all)]
        };
        let make = |it: &Store, random: &mut Random, size: u32, way: u64| {
            it.operands(random, size, tile(size) as usize, way, true).to_vec()
        };
        spec(format!("index.workgroup.store.{}:{ty}", pattern.name()), &[DataType::U32, value], &[ty], meaning)
            .program(text(program))
            .workgroup_sizes([37, 64])
            .per_dispatch(move |size, inputs| {
                let groups = pattern.groups(inputs[0].len() / 4, size);
                launch([groups, 1, 1], &[("out", (groups * tile(size)) as usize)])
            })
            .space(Edges {
                cases: ARRANGEMENTS,
                make: move |random: &mut Random, size: u32, n: u64| make(&edges, random, size, n),
            })
            .space(Drawn {
                cases: DRAWN,
                make: move |random: &mut Random, size: u32| {
                    let way = random.word();
                    make(&drawn, random, size, way)
                },
            })
    }

    /// Writes values of these numbers to elements, where there are such.
    fn put(&self, elements: &mut [u8], values: &[u8], stores: impl Iterator<Item = (usize, usize)>) {
        let each = bytes_of(&self.ty, 1);
        for (index, number) in stores {
            if let Some(element) = elements.chunks_exact_mut(each).nth(index) {
                element.copy_from_slice(&values[number * each..][..each]);
            }
        }
    }
}
