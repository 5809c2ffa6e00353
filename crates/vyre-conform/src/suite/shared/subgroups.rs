//! Subgroup ops: each on every type, at every size of subgroups that a program can declare, with all lanes and with some retired.

use super::{Count, Group, Grouped, finish, put, text};
use crate::spec::OpSpec;
use vyre_foundation::ir::DataType;
use vyre_spec::limits::SUBGROUP_SIZES;
use vyre_spec::op::{ReduceOp, ShuffleFrom, SubgroupOp, SubgroupShape, Vote};
use vyre_spec::{FloatMode, Scalar};

pub(super) fn subgroups() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    for lanes in SUBGROUP_SIZES {
        for op in SubgroupOp::ALL {
            for t in op.info().over.iter() {
                let modes: &[FloatMode] = if t.is_float() { &FloatMode::ALL } else { &[FloatMode::Ieee] };
                for mode in modes {
                    for retired in [false, true] {
                        specs.push(Op { op: *op, t, mode: *mode, lanes, retired }.spec());
                    }
                }
            }
        }
        specs.push(ids(lanes));
    }
    specs
}

/// The workgroup sizes that subgroups of this size divide.
fn sizes(lanes: u32) -> [u32; 3] {
    [lanes, 96, 256]
}

/// `subgroup.lane` and `subgroup.size`.
fn ids(lanes: u32) -> OpSpec {
    let program = format!(
        "program p {{\nworkgroup SIZE\nsubgroup {lanes}\nbuffer a: read u32 @0\nbuffer out: output u32 @1\n\
         out[gid.x] = (a[gid.x] ^ subgroup.lane) + subgroup.size * 256\n}}"
    );
    let each = || (DataType::U32, Count::Each);
    let spec = Grouped::new([each()], [each()]).spec(format!("subgroup.{lanes}.ids:u32"), move |group, outputs| {
        put((0..).zip(group.u32s(0)).map(|(i, a)| (a ^ (i % lanes)).wrapping_add(lanes * 256)), outputs[0]);
    });
    finish(spec.workgroup_sizes(sizes(lanes)).program(text(program)))
}

/// One op on one type.
#[derive(Clone, Copy)]
struct Op {
    op: SubgroupOp,
    t: Scalar,
    mode: FloatMode,
    lanes: u32,
    /// Whether some lanes return first.
    retired: bool,
}

/// A lane that takes part: its operands, as bits.
#[derive(Clone, Copy)]
struct Lane {
    live: bool,
    value: u64,
    second: u32,
}

impl Op {
    fn spec(self) -> OpSpec {
        let Op { op, t, mode, lanes, retired } = self;
        let info = op.info();
        let result = info.result_type(t).unwrap_or(t);
        // The lane of a broadcast is the same for a workgroup.
        let second = (info.operands.len() > 1).then_some(if op == SubgroupOp::Broadcast { Count::One } else { Count::Each });
        let mut inputs = vec![(DataType::from(t), Count::Each)];
        inputs.extend(second.map(|count| (DataType::U32, count)));
        inputs.extend(retired.then_some((DataType::Bool, Count::Each)));
        let declared = match second {
            Some(_) => "buffer b: read u32 @1\n",
            None => "",
        };
        let operand = match second {
            Some(Count::One) => ", b[wid.x]",
            Some(Count::Each) => ", b[gid.x]",
            None => "",
        };
        let (live, leave) = if retired { ("buffer live: read bool @2\n", "if !live[gid.x] {\nreturn\n}\n") } else { ("", "") };
        let program = format!(
            "program p {{\nworkgroup SIZE\nfloats {mode}\nsubgroup {lanes}\nbuffer a: read {t} @0\n{declared}{live}buffer out: output {result} @3\n\
             {leave}let result = subgroup.{op}(a[gid.x]{operand})\nout[gid.x] = result\n}}"
        );
        let words =
            [if retired { ".retired" } else { "" }, if mode == FloatMode::Canonical { ".canonical" } else { "" }].concat();
        let grouped = Grouped { inputs, outputs: vec![(result.into(), Count::Each)] };
        let spec = grouped.spec(format!("subgroup.{lanes}.{op}{words}:{t}"), move |group, outputs| {
            self.evaluate(group, second, result, outputs[0]);
        });
        finish(spec.workgroup_sizes(sizes(lanes)).law(info.law).program(text(program)))
    }

    fn evaluate(self, group: &Group<'_>, second: Option<Count>, result: Scalar, output: &mut [u8]) {
        let values = group.bits(0, self.t.bytes() as usize);
        let seconds = second.map(|_| group.u32s(1));
        let live = self.retired.then(|| group.u32s(if second.is_some() { 2 } else { 1 }));
        let lane = |i: usize| Lane {
            live: live.as_ref().is_none_or(|live| live[i] != 0),
            value: self.canonical(values[i]),
            second: match (&seconds, second) {
                (Some(seconds), Some(Count::Each)) => seconds[i],
                (Some(seconds), Some(Count::One)) => seconds[0],
                (None, _) | (_, None) => 0,
            },
        };
        let bytes = result.bytes() as usize;
        let all: Vec<Lane> = (0..group.size).map(lane).collect();
        for (subgroup, output) in all.chunks(self.lanes as usize).zip(output.chunks_mut(bytes * self.lanes as usize)) {
            for (n, to) in output.chunks_exact_mut(bytes).enumerate() {
                // Who has returned writes nothing.
                let value = if subgroup[n].live { self.result(subgroup, n) } else { 0 };
                to.copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        }
    }

    /// What lane `n` gets.
    fn result(self, subgroup: &[Lane], n: usize) -> u64 {
        let truth = |lane: &Lane| lane.live && lane.value != 0;
        let fold = |op: ReduceOp, lanes: &[Lane]| {
            let live = lanes.iter().filter(|lane| lane.live);
            live.fold(self.identity(op), |all, lane| self.combine(op, all, lane.value))
        };
        match self.op.shape() {
            SubgroupShape::Vote(Vote::Ballot) => subgroup.iter().enumerate().map(|(k, lane)| u64::from(truth(lane)) << k).sum(),
            SubgroupShape::Vote(Vote::Any) => subgroup.iter().any(truth).into(),
            SubgroupShape::Vote(Vote::All) => subgroup.iter().all(|lane| !lane.live || lane.value != 0).into(),
            SubgroupShape::Shuffle(from) => {
                let (own, second) = (n as i64, i64::from(subgroup[n].second));
                let from = match from {
                    ShuffleFrom::Named => second,
                    ShuffleFrom::Xor => own ^ second,
                    ShuffleFrom::Up => own - second,
                    ShuffleFrom::Down => own + second,
                };
                match usize::try_from(from).ok().and_then(|from| subgroup.get(from)) {
                    Some(lane) if lane.live => lane.value,
                    Some(_) => 0,
                    None => subgroup[n].value,
                }
            }
            SubgroupShape::Reduce(op) => fold(op, subgroup),
            SubgroupShape::Inclusive(op) => fold(op, &subgroup[..=n]),
            SubgroupShape::Exclusive(op) => fold(op, &subgroup[..n]),
        }
    }

    /// The value that bits in memory are, as bits.
    fn canonical(self, bits: u64) -> u64 {
        let flushes = self.mode == FloatMode::Canonical;
        match self.t {
            Scalar::Bool => (bits != 0).into(),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => bits,
            Scalar::F32 => match bits & 0x7FFF_FFFF {
                0..=0x0080_0000 if flushes => 0,
                0x7F80_0001.. => 0x7FC0_0000,
                _ => bits,
            },
            Scalar::F64 => match bits & (u64::MAX >> 1) {
                0..=0x0010_0000_0000_0000 if flushes => 0,
                0x7FF0_0000_0000_0001.. => 0x7FF8_0000_0000_0000,
                _ => bits,
            },
        }
    }

    /// The value of lanes that have none.
    fn identity(self, op: ReduceOp) -> u64 {
        let all = u64::MAX >> (64 - self.t.bits());
        let (least, most) = match self.t {
            Scalar::I32 | Scalar::I64 => (all / 2 + 1, all / 2),
            Scalar::F32 => (0x7FC0_0000, 0x7FC0_0000),
            Scalar::Bool | Scalar::U32 | Scalar::U64 | Scalar::F64 => (0, all),
        };
        match op {
            ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => 0,
            ReduceOp::Mul => 1,
            ReduceOp::And => all,
            ReduceOp::Min => most,
            ReduceOp::Max => least,
        }
    }

    fn combine(self, op: ReduceOp, a: u64, b: u64) -> u64 {
        let all = u64::MAX >> (64 - self.t.bits());
        match op {
            ReduceOp::Add => a.wrapping_add(b) & all,
            ReduceOp::Mul => a.wrapping_mul(b) & all,
            ReduceOp::And => a & b,
            ReduceOp::Or => a | b,
            ReduceOp::Xor => a ^ b,
            ReduceOp::Min | ReduceOp::Max => {
                let least = op == ReduceOp::Min;
                match (self.rank(a), self.rank(b)) {
                    (None, _) => b,
                    (_, None) => a,
                    (Some(first), Some(second)) => {
                        if (first < second) == least {
                            a
                        } else {
                            b
                        }
                    }
                }
            }
        }
    }

    /// Where a value stands in the order of its type, -0 before +0; NaN stands nowhere.
    fn rank(self, bits: u64) -> Option<i128> {
        Some(match self.t {
            Scalar::Bool | Scalar::U32 | Scalar::U64 => bits.into(),
            Scalar::I32 => (bits as i32).into(),
            Scalar::I64 | Scalar::F64 => (bits as i64).into(),
            Scalar::F32 => match (bits as u32 & 0x7FFF_FFFF, bits as u32 >> 31) {
                (0x7F80_0001.., _) => return None,
                (magnitude, 0) => magnitude.into(),
                (magnitude, _) => -1 - i128::from(magnitude),
            },
        })
    }
}
