//! Two programs, one after the other, that differ in hardly anything: one bit of a literal, the value of a constant, an op, the float
//! mode. A device that takes the one for the other, because the key of its cache knows too little, gives the first one's bytes twice.
//!
//! Cases 2n and 2n + 1 are twins, and units have an even number of cases, so that a device gets both.

use super::{Cases, Work};
use crate::plan::profile;
use crate::suite::random::{Random, of_words};
use vyre_foundation::case::Case;
use vyre_foundation::ir::{Access, BinaryOp, BufferDecl, DataType, Expr, Literal, Node, Program, Scalar, SpecValue, UnaryOp};
use vyre_spec::FloatMode;
use vyre_spec::op::Operand;

/// What twins differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Difference {
    /// A bit of a literal of this type.
    Literal(Scalar),
    /// The values that constants are given.
    Constants,
    /// Which op it is, on operands of this type.
    Op(Scalar),
    /// The float mode.
    FloatMode,
    /// How many elements a buffer of this access is declared with.
    Count(Access),
    /// What the elements of a buffer are, of one size.
    Element,
    /// The size of subgroups.
    Subgroup,
    /// The size of workgroups.
    Workgroup,
}

/// Pairs of programs that differ in one thing.
pub struct TwinCases {
    difference: Difference,
    op: String,
    space: String,
}

impl TwinCases {
    /// One for each thing that programs can differ in.
    #[must_use]
    pub fn all() -> Vec<TwinCases> {
        let of = |difference, name: &str, space: &str| TwinCases { difference, op: format!("twins.{name}"), space: space.into() };
        let mut all: Vec<TwinCases> =
            Scalar::ALL.into_iter().map(|t| of(Difference::Literal(t), "literal", &format!("generated-{t}"))).collect();
        let computed = Scalar::ALL.into_iter().filter(|t| *t != Scalar::Bool);
        all.extend(computed.map(|t| of(Difference::Op(t), "op", &format!("generated-{t}"))));
        all.push(of(Difference::Constants, "constants", "generated"));
        all.push(of(Difference::FloatMode, "float_mode", "generated"));
        for access in [Access::Read, Access::Uniform, Access::Workgroup] {
            all.push(of(Difference::Count(access), "count", &format!("generated-{access}")));
        }
        all.push(of(Difference::Element, "element", "generated"));
        all.push(of(Difference::Subgroup, "subgroup", "generated"));
        all.push(of(Difference::Workgroup, "workgroup", "generated"));
        all
    }

    fn made(&self, seed: u64, number: u64) -> Case {
        let (mut random, is_second) = (Random::of_case(seed, number / 2), number % 2 == 1);
        let words = of_words(&random.words(100));
        match self.difference {
            Difference::Literal(t) => Case::new(literal(t, &mut random, is_second), vec![words]),
            Difference::Op(t) => Case::new(op(t, &mut random, is_second), vec![words]),
            Difference::Constants => constants(&mut random, is_second, words),
            Difference::FloatMode => {
                let mode = if is_second { FloatMode::Canonical } else { FloatMode::Ieee };
                let tiny = (0..100).map(|_| random.u32() & 0x80FF_FFFF).collect::<Vec<u32>>();
                let product = Expr::mul(Expr::load("x", Expr::gid_x()), Expr::f32(0.75));
                Case::new(stored(DataType::F32, DataType::F32, product).with_floats(mode), vec![of_words(&tiny)])
            }
            Difference::Count(access) => count(access, &mut random, is_second, &words),
            Difference::Element => element(&mut random, is_second),
            Difference::Subgroup => {
                let first = random.below(4);
                let size = [4, 8, 16, 32][if is_second { (first + 1 + random.below(3)) % 4 } else { first }];
                let text = format!(
                    "subgroup {size}\nbuffer x: read u32 @0\nbuffer out: output u32 @1\nlet s = subgroup.add(x[gid.x])\nout[gid.x] = s"
                );
                Case::new(program(32, &text), vec![words])
            }
            Difference::Workgroup => {
                let first = 2 + random.below(60);
                let size = if is_second { first + 1 + random.below(64) } else { first };
                let text = "buffer x: read u32 @0\nbuffer out: output u32 @1\nif gid.x < len(out) {\nout[gid.x] = x[gid.x] ^ lid.x * 3 ^ wid.x * 64\n}";
                Case::new(program(size, text), vec![words])
            }
        }
    }
}

impl Cases for TwinCases {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        &self.space
    }

    fn cases(&self) -> u64 {
        1 << 40
    }

    fn profile(&self) -> String {
        profile(&self.made(0, 0).program)
    }

    fn identity(&self) -> Vec<u8> {
        vec![1]
    }

    fn case(&self, seed: u64, number: u64) -> Work {
        self.made(seed, number).into()
    }
}

fn program(workgroup: usize, text: &str) -> Program {
    let text = format!("program twin {{\nworkgroup {workgroup}\n{text}\n}}");
    vyre_foundation::text::parse("twins", &text).unwrap_or_else(|report| panic!("{report}"))
}

/// A program in which the declared number of elements shows, by `len` and by what is out of bounds.
fn count(access: Access, random: &mut Random, is_second: bool, words: &[u8]) -> Case {
    let first = 1 + random.below(40);
    let count = if is_second { first + 1 + random.below(20) } else { first };
    let out = "buffer out: output u32[64] @1\n";
    let text = match access {
        Access::Workgroup => format!(
            "buffer x: read u32[64] @0\n{out}buffer t: workgroup u32[{count}]\nt[lid.x] = x[lid.x]\nbarrier\nout[lid.x] = t[63 - lid.x] ^ len(t)"
        ),
        Access::Read | Access::ReadWrite | Access::Output | Access::Uniform => {
            format!("buffer x: {access} u32[{count}] @0\n{out}out[lid.x] = x[lid.x] ^ len(x)")
        }
    };
    let given = if access == Access::Workgroup { 64 } else { count };
    Case::new(program(64, &text), vec![words[..4 * given].to_vec()])
}

/// A program that reads elements of one of two types, which the same bytes are.
fn element(random: &mut Random, is_second: bool) -> Case {
    let pairs = [
        ("f16", "bf16", "x[gid.x]", 16),
        ("f8e4m3", "f8e5m2", "x[gid.x]", 8),
        ("fp4", "nf4", "x[gid.x]", 4),
        ("u8", "i8", "f32(x[gid.x])", 8),
        ("u16", "i16", "f32(x[gid.x])", 16),
        ("u32", "i32", "f32(x[gid.x])", 32),
        ("u64", "i64", "f32(x[gid.x])", 64),
    ];
    let (one, other, value, bits) = pairs[random.below(pairs.len())];
    let (element, count) = (if is_second { other } else { one }, 64 * 64 / bits);
    let text = format!("buffer x: read {element}[{count}] @0\nbuffer out: output u32[64] @1\nout[gid.x] = bitcast<u32>({value})");
    // Words at the ends of their range are the same numbers in many types.
    let words: Vec<u32> = (0..128).map(|_| random.u32()).collect();
    Case::new(program(64, &text), vec![of_words(&words)])
}

/// `out[i] = value`, in which `x[i]` is an element of the input.
fn stored(input: DataType, output: DataType, value: Expr) -> Program {
    let buffers = vec![BufferDecl::read("x", 0, input), BufferDecl::output("out", 1, output)];
    Program::wrapped(buffers, [32, 1, 1], vec![Node::store("out", Expr::gid_x(), value)])
}

/// What an element of the input is as this type.
fn operand(t: Scalar) -> Expr {
    let x = Expr::load("x", Expr::gid_x());
    if t == Scalar::U32 { x } else { Expr::cast(t, x) }
}

/// A program that stores a literal where an element is even.
fn literal(t: Scalar, random: &mut Random, is_second: bool) -> Program {
    // Which NaN it is nobody can tell, so exponents are never those of one.
    let (width, exponent) = match t {
        Scalar::Bool => (1, 0),
        Scalar::U32 | Scalar::I32 => (32, 0),
        Scalar::U64 | Scalar::I64 => (64, 0),
        Scalar::F32 => (32, 0x4000_0000),
        Scalar::F64 => (64, 0x4000_0000_0000_0000),
    };
    // Zero has a sign that comparing numbers does not see.
    let bits = if random.below(4) == 0 { 0 } else { random.word() & !exponent };
    let bit = 1 << if random.below(4) == 0 { width - 1 } else { random.below(width) };
    // The bit that keeps it from being a NaN stays.
    let bit = if bit == exponent { 1 } else { bit };
    let bits = if is_second { bits ^ bit } else { bits };
    let bits = if width < 64 { bits & ((1 << width) - 1) } else { bits };
    let even = Expr::eq(Expr::bitand(Expr::load("x", Expr::gid_x()), Expr::u32(1)), Expr::u32(0));
    let chosen = Expr::select(even, Expr::Lit(Literal::from_bits(t, bits)), operand(t));
    stored(DataType::U32, t.into(), chosen)
}

/// A program that applies one of two ops, of one operand or of two.
fn op(t: Scalar, random: &mut Random, is_second: bool) -> Program {
    let unary: Vec<Expr> = UnaryOp::ALL
        .iter()
        .filter(|op| op.info().over.contains(t) && op.info().result_type(t) == Some(t))
        .map(|op| Expr::unary(*op, operand(t)))
        .collect();
    let binary: Vec<Expr> = BinaryOp::ALL
        .iter()
        .filter(|op| op.info().over.contains(t) && op.info().result_type(t) == Some(t))
        .filter(|op| op.info().operands.iter().all(|operand| *operand == Operand::T))
        .map(|op| Expr::binary(*op, operand(t), operand_of_next(t)))
        .collect();
    let all = if random.below(3) == 0 && unary.len() > 1 { unary } else { binary };
    let first = random.below(all.len());
    let second = (first + 1 + random.below(all.len() - 1)) % all.len();
    stored(DataType::U32, t.into(), all[if is_second { second } else { first }].clone())
}

/// What the element behind an invocation's own is as this type, without its high bits.
fn operand_of_next(t: Scalar) -> Expr {
    let next = Expr::load("x", Expr::add(Expr::gid_x(), Expr::u32(1)));
    let low = Expr::bitand(next, Expr::u32(0xFF));
    if t == Scalar::U32 { low } else { Expr::cast(t, low) }
}

/// A program with two constants of each type, and values for some of them.
fn constants(random: &mut Random, is_second: bool, words: Vec<u8>) -> Case {
    let text = "program tuned {
  workgroup 32
  const a: u32 = 3
  const b: u32 = 4
  const c: i32 = 5
  const d: i32 = 6
  const e: f32 = 7.5
  const f: f32 = 8.5
  const g: bool = false
  const h: bool = true
  buffer x: read u32 @0
  buffer out: output u32 @1
  let k = gid.x % 8
  let r = a
  if k == 1 {
    r = b
  }
  if k == 2 {
    r = bitcast<u32>(c)
  }
  if k == 3 {
    r = bitcast<u32>(d)
  }
  if k == 4 {
    r = bitcast<u32>(e)
  }
  if k == 5 {
    r = bitcast<u32>(f)
  }
  if k == 6 {
    r = u32(g)
  }
  if k == 7 {
    r = u32(h)
  }
  out[gid.x] = r ^ x[gid.x]
}";
    let program = vyre_foundation::text::parse("twins", text).unwrap_or_else(|report| panic!("{report}"));
    let number = |random: &mut Random| f32::from_bits(random.u32() & 0xBFFF_FFFF);
    let mut values: Vec<(&str, SpecValue)> = vec![
        ("a", SpecValue::U32(random.u32())),
        ("b", SpecValue::U32(random.u32())),
        ("c", SpecValue::I32(random.u32() as i32)),
        ("d", SpecValue::I32(random.u32() as i32)),
        ("e", SpecValue::F32(number(random))),
        ("f", SpecValue::F32(number(random))),
        ("g", SpecValue::Bool(random.below(2) == 0)),
        ("h", SpecValue::Bool(random.below(2) == 0)),
    ];
    let (how, pair, which, bit) = (random.below(3), random.below(4), random.below(8), random.below(30));
    if how == 0 && pair == 3 {
        // Equal bools that change places stay what they are.
        values[6].1 = SpecValue::Bool(false);
        values[7].1 = SpecValue::Bool(true);
    }
    if is_second {
        match how {
            // Two of one type change places.
            0 => {
                let (one, other) = (values[2 * pair].1.clone(), values[2 * pair + 1].1.clone());
                (values[2 * pair].1, values[2 * pair + 1].1) = (other, one);
            }
            // One has another value.
            1 => {
                values[which].1 = match values[which].1.clone() {
                    SpecValue::U32(value) => SpecValue::U32(value ^ 1 << bit),
                    SpecValue::I32(value) => SpecValue::I32(value ^ 1 << bit),
                    SpecValue::F32(value) => SpecValue::F32(f32::from_bits(value.to_bits() ^ 1 << bit)),
                    SpecValue::Bool(value) => SpecValue::Bool(!value),
                    SpecValue::DType(ty) => SpecValue::DType(ty),
                };
            }
            // One has none, and its default stands.
            _ => {
                values.remove(which);
            }
        }
    }
    let mut case = Case::new(program, vec![words]);
    values.into_iter().for_each(|(name, value)| case.config.specialization.insert(name, value));
    case
}
