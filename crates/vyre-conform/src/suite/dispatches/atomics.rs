//! Atomics at hostile indices, in storage and workgroup memory: out of bounds they give 0 and change nothing.
//!
//! No two invocations touch one element, so the old value that each of them gets is known.

use super::pattern::{ARRANGEMENTS, LENGTHS, Pattern, apart, arranged, indices, length};
use super::{Columns, DRAWN, Edges, launch, spec, text, tile};
use crate::spec::OpSpecBuilder;
use crate::suite::random::{Drawn, Random, of_words, words};
use crate::suite::shared::left;
use vyre_foundation::ir::DataType;
use vyre_spec::Scalar;
use vyre_spec::op::AtomicOp;

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let mut specs = Vec::new();
    for op in AtomicOp::ALL {
        for t in op.info().over.iter() {
            for pattern in [Pattern::Lane, Pattern::Run] {
                specs.extend([false, true].map(|in_tile| Atomic::new(*op, t, pattern, in_tile).spec()));
            }
        }
    }
    specs
}

#[derive(Clone, Copy)]
struct Atomic {
    op: AtomicOp,
    t: Scalar,
    pattern: Pattern,
    /// In workgroup memory.
    in_tile: bool,
    operands: usize,
    gives: bool,
}

impl Atomic {
    fn new(op: AtomicOp, t: Scalar, pattern: Pattern, in_tile: bool) -> Atomic {
        let info = op.info();
        Atomic { op, t, pattern, in_tile, operands: info.operands.len(), gives: info.result_type(t).is_some() }
    }

    fn program(self) -> String {
        let Atomic { op, t, pattern, .. } = self;
        let declared: String = (0..self.operands).map(|k| format!("buffer {}: read {t} @{}\n", ["a", "b"][k], k + 2)).collect();
        let operands: String = (0..self.operands).map(|k| format!(", {}[gid.x]", ["a", "b"][k])).collect();
        let (olds, old, keep) = match self.gives {
            true => (format!("buffer olds: output {t} @4\n"), "let old = ", "olds[gid.x] = old\n"),
            false => (String::new(), "", ""),
        };
        let head = format!("program p {{\nworkgroup SIZE\nbuffer x: read_write {t} @0\nbuffer at: read u32 @1\n{declared}{olds}");
        // If each has its own index, some of the last workgroup have none.
        let guard = match pattern {
            Pattern::Lane => "gid.x < len(at)",
            Pattern::Group | Pattern::Run | Pattern::Down | Pattern::Scaled => "wid.x < len(at)",
        };
        let to = if self.in_tile { "tile" } else { "x" };
        let body = format!("if {guard} {{\n{old}atomic.{op}({to}, {}{operands})\n{keep}}}\n", pattern.index());
        if !self.in_tile {
            return format!("{head}{body}}}");
        }
        let copies = [("lid.x", "true"), ("lid.x + SIZE", "lid.x + SIZE < TILE")].map(|(l, guard)| {
            let load = format!("if {guard} {{\ntile[{l}] = x[wid.x * TILE + {l}]\n}}\n");
            (load, format!("if {guard} {{\nx[wid.x * TILE + {l}] = tile[{l}]\n}}\n"))
        });
        let [(first, back), (second, rest)] = copies;
        format!("{head}buffer tile: workgroup {t}[TILE]\n{first}{second}barrier\n{body}barrier\n{back}{rest}}}")
    }

    fn meaning(self, columns: &Columns<'_>) -> Vec<Vec<u8>> {
        let mut x = words(columns.inputs[0]);
        let operand = |k: usize| columns.inputs.get(2 + k).map_or_else(Vec::new, |bytes| words(bytes));
        let (a, b) = (operand(0), operand(1));
        let mut olds = Vec::new();
        let length = tile(columns.workgroup) as usize;
        for (i, index) in indices(self.pattern, columns, 1).into_iter().enumerate() {
            let index = match self.in_tile {
                true if index as usize >= length => None,
                true => Some(i / columns.workgroup as usize * length + index as usize),
                false => Some(index as usize),
            };
            let of = |all: &[u32]| all.get(i).copied().unwrap_or(0);
            olds.push(match index.and_then(|index| x.get_mut(index)) {
                Some(cell) => std::mem::replace(cell, left(self.op, self.t.is_signed_int(), *cell, of(&a), of(&b))),
                None => 0,
            });
        }
        let olds = self.gives.then(|| of_words(&olds));
        std::iter::once(of_words(&x)).chain(olds).collect()
    }

    fn make(self, random: &mut Random, size: u32, length: usize, way: u64) -> Vec<Vec<u8>> {
        let (per_group, length) = if self.in_tile { (true, tile(size) as usize) } else { (false, length) };
        let mut at = arranged(random, self.pattern, size, length, way);
        apart(&mut at, self.pattern, size, length, per_group);
        let count = self.pattern.invocations(at.len(), size);
        let elements = if self.in_tile { self.pattern.groups(at.len(), size) as usize * length } else { length };
        let x = random.words(elements);
        let mut operands: Vec<Vec<u32>> = (0..self.operands).map(|_| random.words(count)).collect();
        if self.op == AtomicOp::CompareExchange {
            // Half of them meet what they expect.
            for (i, expected) in operands[0].iter_mut().enumerate() {
                let group = if per_group { i / size as usize * length } else { 0 };
                let index = self.pattern.of(&at, size, i) as usize;
                let cell = x.get(group + index).filter(|_| index < length);
                *expected = cell.copied().filter(|_| random.below(2) == 0).unwrap_or(*expected);
            }
        }
        [x, at].into_iter().chain(operands).map(|words| of_words(&words)).collect()
    }

    fn spec(self) -> OpSpecBuilder {
        let Atomic { op, t, pattern, .. } = self;
        let ty = DataType::from(t);
        let mut inputs = vec![ty.clone(), DataType::U32];
        inputs.extend((0..self.operands).map(|_| ty.clone()));
        let outputs = vec![ty; 1 + usize::from(self.gives)];
        let place = if self.in_tile { "workgroup" } else { "storage" };
        let id = format!("index.{place}.atomic.{op}.{}:{t}", pattern.name());
        spec(id, &inputs, &outputs, move |columns| self.meaning(columns))
            .program(text(self.program()))
            .workgroup_sizes([37, 64])
            .per_dispatch(move |size, inputs| {
                let at = inputs[1].len() / 4;
                let olds = [("olds", pattern.invocations(at, size))];
                launch([pattern.groups(at, size), 1, 1], if self.gives { &olds } else { &[] })
            })
            .space(Edges {
                cases: ARRANGEMENTS * LENGTHS,
                make: move |random: &mut Random, size: u32, n: u64| self.make(random, size, length(n, size), n),
            })
            .space(Drawn {
                cases: DRAWN,
                make: move |random: &mut Random, size: u32| {
                    let (length, way) = (random.length(size), random.word());
                    self.make(random, size, length, way)
                },
            })
    }
}
