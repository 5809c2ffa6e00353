//! Specs of everything that happens to single elements: pure ops, conversions, loads and stores, derived from the op tables.
//!
//! The name of an op on integers is `ops.int.add:u32`, on floats `ops.float.add:f32`, and in programs with `floats canonical`
//! `ops.float.add.canonical:f32`. Conversions are `cast.f32:i32` and `bitcast.f32:u32`, memory is `memory.load:f16`.

use super::thresholds;
use crate::cpu::convert::Access;
use crate::cpu::{self, Meaning};
use crate::spec::{Extent, OpSpec, OpSpecBuilder};
use std::sync::Arc;
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_spec::op::{OpInfo, Operand};
use vyre_spec::{BinaryOp, FloatMode, Scalar, Storage, TernaryOp, UnaryOp, ValueType};

/// Names of operands; the result is `out`.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The specs of all pure ops, conversions, loads and stores.
///
/// # Panics
///
/// If a spec is not one, which is a mistake in this file.
#[must_use]
pub fn elementwise() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    for op in UnaryOp::ALL {
        let family = |t, mode| cpu::unary(*op, t, mode).map(|it| (it, thresholds::unary(*op, t)));
        ops(op.info(), family, |operands| Expr::unary(*op, operands[0].clone()), &mut specs);
    }
    for op in BinaryOp::ALL {
        let family = |t, mode| cpu::binary(*op, t, mode).map(|it| (it, thresholds::binary(*op, t)));
        ops(op.info(), family, |operands| Expr::binary(*op, operands[0].clone(), operands[1].clone()), &mut specs);
    }
    for op in TernaryOp::ALL {
        let family = |t, mode| cpu::ternary(*op, t, mode).map(|it| (it, thresholds::ternary(*op)));
        let expr = |operands: &[Expr]| Expr::ternary(*op, operands[0].clone(), operands[1].clone(), operands[2].clone());
        ops(op.info(), family, expr, &mut specs);
    }
    conversions(&mut specs);
    memory(&mut specs);
    vectors(&mut specs);
    specs
}

/// The modes in which an op may differ: both if floats are involved.
fn modes(types: &[Scalar]) -> &'static [FloatMode] {
    if types.iter().any(|t| t.is_float()) { &FloatMode::ALL } else { &[FloatMode::Ieee] }
}

/// The word in names for programs in this mode.
fn word(mode: FloatMode) -> &'static str {
    match mode {
        FloatMode::Ieee => "",
        FloatMode::Canonical => ".canonical",
    }
}

/// One row of an op table, on all its types.
fn ops(
    info: &'static OpInfo,
    meaning: impl Fn(Scalar, FloatMode) -> Option<(Meaning, thresholds::Values)>,
    expr: impl Fn(&[Expr]) -> Expr + Clone + Send + Sync + 'static,
    specs: &mut Vec<OpSpec>,
) {
    for t in info.over.iter() {
        let family = match t {
            Scalar::Bool => "bool",
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => "int",
            Scalar::F32 | Scalar::F64 => "float",
        };
        let operand = |operand: &Operand| match operand {
            Operand::T => t,
            Operand::Fixed(scalar) => *scalar,
        };
        let Some(result) = info.result_type(t) else { continue };
        for mode in modes(&[t]) {
            let (meaning, boundary) = meaning(t, *mode).unwrap_or_else(|| panic!("`{}` on {t} has a meaning", info.mnemonic));
            let element = Elementwise {
                id: format!("ops.{family}.{}{}:{t}", info.mnemonic, word(*mode)),
                inputs: info.operands.iter().map(operand).map(DataType::from).collect(),
                output: result.into(),
                mode: *mode,
                expr: Arc::new(expr.clone()),
            };
            specs.push(finish(element.spec(meaning).law(info.law).boundary(boundary)));
        }
    }
}

fn conversions(specs: &mut Vec<OpSpec>) {
    type Convert = (&'static str, fn(Scalar, Scalar, FloatMode) -> Option<Meaning>, fn(Scalar, Expr) -> Expr);
    let kinds: [Convert; 2] = [("cast", cpu::convert::cast, Expr::cast), ("bitcast", cpu::convert::bitcast, Expr::bitcast)];
    for (kind, meaning, expr) in kinds {
        for from in Scalar::ALL {
            for to in Scalar::ALL {
                for mode in modes(&[from, to]) {
                    let Some(meaning) = meaning(from, to, *mode) else { continue };
                    let element = Elementwise {
                        id: format!("{kind}.{from}{}:{to}", word(*mode)),
                        inputs: vec![from.into()],
                        output: to.into(),
                        mode: *mode,
                        expr: Arc::new(move |operands: &[Expr]| expr(to, operands[0].clone())),
                    };
                    specs.push(finish(element.spec(meaning).boundary(halves(from))));
                }
            }
        }
    }
}

/// Fractions next to integers, for conversions from floats.
fn halves(from: Scalar) -> Vec<Vec<Vec<u8>>> {
    let values =
        [0.4999, 0.5, 0.9999, 1.5, 2.5, 127.5, 255.9, 2_147_483_520.0, 2_147_483_647.5, 4_294_967_040.0, 4_294_967_295.5];
    let signed = values.into_iter().flat_map(|it| [it, -it]);
    match from {
        Scalar::F32 => vec![signed.map(|it: f64| (it as f32).to_le_bytes().to_vec()).collect()],
        Scalar::F64 => vec![signed.map(|it| it.to_le_bytes().to_vec()).collect()],
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => Vec::new(),
    }
}

/// Every type that a kernel can touch: the plain ones, and vectors.
pub fn kernel_types() -> Vec<DataType> {
    let plain = DataType::all_plain().map(|(_, ty)| ty.clone()).filter(|ty| ty.value_type().is_some());
    let vectors = Scalar::ALL.into_iter().flat_map(|part| (2..=4).map(move |count| DataType::vector(part, count)));
    plain.chain(vectors.filter(|ty| ty.value_type().is_some())).collect()
}

fn memory(specs: &mut Vec<OpSpec>) {
    for ty in kernel_types() {
        let Some(value) = ty.value_type() else { continue };
        let (part, loaded) = match value {
            ValueType::Scalar(scalar) => (scalar, DataType::from(scalar)),
            ValueType::Vector(part, _) => (part, ty.clone()),
        };
        for mode in modes(&[part]) {
            let meaning = |access| cpu::convert::memory(&ty, access, *mode);
            let name = |what: &str| format!("memory.{what}{}:{ty}", word(*mode));
            let copy = |id: String, from: &DataType, to: &DataType| Elementwise {
                id,
                inputs: vec![from.clone()],
                output: to.clone(),
                mode: *mode,
                expr: Arc::new(|operands: &[Expr]| operands[0].clone()),
            };
            let load = copy(name("load"), &ty, &loaded).spec(meaning(Access::Load).expect("what kernels use can be loaded"));
            // Half bytes come in twos, so that cases are whole bytes.
            let each = if ty.bits() == Some(4) { 2 } else { 1 };
            specs.push(finish(load.elements(Extent { invocations: each, inputs: vec![each], outputs: vec![each] })));
            let storable = match ty.storage() {
                Storage::Computed(_) => true,
                Storage::Converted(_) => {
                    let store = copy(name("store"), &loaded, &ty).spec(meaning(Access::Store).expect("a stored type"));
                    specs.push(finish(store.boundary(thresholds::store(&ty))));
                    true
                }
                Storage::LoadOnly(_) | Storage::Described => false,
            };
            if *mode == FloatMode::Ieee {
                let (stored, meaning) = if storable { (&ty, meaning(Access::InPlace)) } else { (&loaded, meaning(Access::Load)) };
                specs.push(pair(name("pair"), &ty, stored, each, meaning.expect("what kernels use can be loaded")));
            }
            if storable {
                let meaning = meaning(Access::InPlace).expect("what can be loaded and stored");
                specs.push(in_place(name("in_place"), &ty, *mode, &meaning));
                specs.push(neighbour(name("neighbour"), &ty, *mode, meaning));
            }
        }
    }
}

/// `c[i] = a[i]` and `d[i] = b[i]`: neither inputs nor outputs of one type are taken for each other.
fn pair(id: String, ty: &DataType, stored: &DataType, each: u32, meaning: Meaning) -> OpSpec {
    let (element, to) = (ty.clone(), stored.clone());
    let program = move |workgroup| {
        let copy = |to: &'static str, from: &'static str| Node::store(to, Expr::gid_x(), Expr::load(from, Expr::gid_x()));
        let both = vec![copy("c", "a"), copy("d", "b")];
        let buffers = vec![
            BufferDecl::read("a", 0, element.clone()),
            BufferDecl::read("b", 1, element.clone()),
            BufferDecl::output("c", 2, to.clone()),
            BufferDecl::output("d", 3, to.clone()),
        ];
        Program::wrapped(buffers, workgroup, vec![Node::if_then(Expr::lt(Expr::gid_x(), Expr::buf_len("c")), both)])
    };
    let (one, all) = (Arc::clone(&meaning.one), meaning.one);
    let spec = OpSpec::builder(id).signature([ty.clone(), ty.clone()], [stored.clone(), stored.clone()]).program(program);
    let spec = spec.elements(Extent { invocations: each, inputs: vec![each; 2], outputs: vec![each; 2] });
    let spec = spec.cpu_fn(move |case| {
        let (a, b) = case.split_at(case.len() / 2);
        [one(a), one(b)].concat()
    });
    finish(spec.cpu_batch(move |columns, out| {
        columns.inputs.iter().zip(out).for_each(|(column, out)| out.copy_from_slice(&all(column)));
    }))
}

/// `x[i] = x[i]`: nothing but what the type cannot hold is lost.
fn in_place(id: String, ty: &DataType, mode: FloatMode, meaning: &Meaning) -> OpSpec {
    let (one, many) = (Arc::clone(&meaning.one), Arc::clone(&meaning.many));
    let element = ty.clone();
    let program = move |workgroup| {
        let body = vec![Node::store("x", Expr::gid_x(), Expr::load("x", Expr::gid_x()))];
        let guarded = Node::if_then(Expr::lt(Expr::gid_x(), Expr::buf_len("x")), body);
        Program::wrapped(vec![BufferDecl::read_write("x", 0, element.clone())], workgroup, vec![guarded]).with_floats(mode)
    };
    let spec = OpSpec::builder(id).signature([ty.clone()], ty.clone()).program(program);
    finish(spec.cpu_fn(move |case| one(case)).cpu_batch(move |columns, out| many(columns, out)))
}

/// `x[2i + 1] = x[2i]`: what is beside a stored element keeps its very bits.
fn neighbour(id: String, ty: &DataType, mode: FloatMode, meaning: Meaning) -> OpSpec {
    let element = ty.clone();
    let program = move |workgroup| {
        let even = Expr::mul(Expr::gid_x(), Expr::u32(2));
        let odd = || Expr::add(Expr::var("i"), Expr::u32(1));
        let body = vec![
            Node::let_bind("i", even),
            Node::if_then(Expr::lt(odd(), Expr::buf_len("x")), vec![Node::store("x", odd(), Expr::load("x", Expr::var("i")))]),
        ];
        Program::wrapped(vec![BufferDecl::read_write("x", 0, element.clone())], workgroup, body).with_floats(mode)
    };
    let bytes = ty.bits().map_or(1, |bits| (bits / 8) as usize);
    let (one, all) = (Arc::clone(&meaning.one), meaning.one);
    let spec = OpSpec::builder(id).signature([ty.clone()], ty.clone()).program(program);
    let spec = spec.elements(Extent { invocations: 1, inputs: vec![2], outputs: vec![2] });
    let spec = spec.cpu_fn(move |case| [&case[..bytes], &one(&case[..bytes])].concat());
    finish(spec.cpu_batch(move |columns, out| {
        let pairs = || columns.inputs[0].chunks_exact(2 * bytes);
        let first: Vec<u8> = pairs().flat_map(|pair| &pair[..bytes]).copied().collect();
        let stored = all(&first);
        for ((pair, stored), out) in pairs().zip(stored.chunks_exact(bytes)).zip(out[0].chunks_exact_mut(2 * bytes)) {
            out[..bytes].copy_from_slice(&pair[..bytes]);
            out[bytes..].copy_from_slice(stored);
        }
    }))
}

/// Vectors built from components, and taken apart.
fn vectors(specs: &mut Vec<OpSpec>) {
    for part in Scalar::ALL {
        for count in 2..=4_u8 {
            let ty = DataType::vector(part, count);
            if ty.value_type().is_none() {
                continue;
            }
            for mode in modes(&[part]) {
                let canonical = cpu::convert::memory(&part.into(), Access::Load, *mode).expect("scalars can be loaded");
                specs.push(build(&ty, part, count, *mode, &canonical));
                specs.push(extract(&ty, count, *mode, &canonical));
            }
        }
    }
}

/// `vec(a, b, …)`
fn build(ty: &DataType, part: Scalar, count: u8, mode: FloatMode, canonical: &Meaning) -> OpSpec {
    let element = Elementwise {
        id: format!("vector.build{}:{ty}", word(mode)),
        inputs: vec![part.into(); count.into()],
        output: ty.clone(),
        mode,
        expr: Arc::new(|operands: &[Expr]| Expr::vector(operands.iter().cloned())),
    };
    // The bytes of a case are those of the vector.
    let one = Arc::clone(&canonical.one);
    let spec = element.builder().cpu_fn(move |case| one(case));
    let one = Arc::clone(&canonical.one);
    finish(spec.cpu_batch(move |columns, out| {
        let bytes = 4 * usize::from(count);
        for (k, column) in columns.inputs.iter().enumerate() {
            let column = one(column);
            for (from, to) in column.chunks_exact(4).zip(out[0].chunks_exact_mut(bytes)) {
                to[4 * k..][..4].copy_from_slice(from);
            }
        }
    }))
}

/// `vec(v.w, …, v.x)`: every component taken out, in the opposite order.
fn extract(ty: &DataType, count: u8, mode: FloatMode, canonical: &Meaning) -> OpSpec {
    let element = Elementwise {
        id: format!("vector.extract{}:{ty}", word(mode)),
        inputs: vec![ty.clone()],
        output: ty.clone(),
        mode,
        expr: Arc::new(move |operands: &[Expr]| {
            Expr::vector((0..count).rev().map(|component| Expr::extract(operands[0].clone(), component)))
        }),
    };
    let reversed = {
        let one = Arc::clone(&canonical.one);
        move |bytes: &[u8]| -> Vec<u8> {
            let components = one(bytes);
            let vectors = components.chunks_exact(4 * usize::from(count));
            vectors.flat_map(|vector| vector.rchunks_exact(4).flatten().copied()).collect()
        }
    };
    let again = reversed.clone();
    let spec = element.builder().cpu_fn(reversed);
    finish(spec.cpu_batch(move |columns, out| out[0].copy_from_slice(&again(columns.inputs[0]))))
}

/// An expression from its operands.
pub(super) type ExprFn = dyn Fn(&[Expr]) -> Expr + Send + Sync;

/// An expression over one element of each input, stored to one output.
pub(super) struct Elementwise {
    pub id: String,
    pub inputs: Vec<DataType>,
    pub output: DataType,
    pub mode: FloatMode,
    pub expr: Arc<ExprFn>,
}

/// How a program gets at its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// `out[i] = a[i] + b[i]`
    Direct,
    /// Operands and result are variables, and the result is computed again in a loop.
    Variables,
    /// Operands go through workgroup memory, each loaded by another invocation.
    Workgroup,
    /// In both arms of a divergent `if`, inside a loop that runs once.
    Branches,
    /// Operands are components of a vector.
    Vector,
}

impl Elementwise {
    pub fn spec(&self, meaning: Meaning) -> OpSpecBuilder {
        let Meaning { one, many } = meaning;
        self.builder().cpu_fn(move |case| one(case)).cpu_batch(move |columns, out| many(columns, out))
    }

    fn builder(&self) -> OpSpecBuilder {
        let mut spec =
            OpSpec::builder(&self.id).signature(self.inputs.clone(), self.output.clone()).program(self.program(Form::Direct));
        for (name, form) in [("variables", Form::Variables), ("workgroup", Form::Workgroup), ("branches", Form::Branches)] {
            spec = spec.alternative(name, self.program(form));
        }
        let part = |ty: &DataType| matches!(ty, DataType::U32 | DataType::I32 | DataType::F32);
        if self.inputs.len() > 1 && part(&self.inputs[0]) && self.inputs.iter().all(|ty| *ty == self.inputs[0]) {
            spec = spec.alternative("vector", self.program(Form::Vector));
        }
        spec
    }

    fn program(&self, form: Form) -> impl Fn([u32; 3]) -> Program + Send + Sync + 'static {
        let (inputs, output, mode, expr) = (self.inputs.clone(), self.output.clone(), self.mode, Arc::clone(&self.expr));
        move |workgroup: [u32; 3]| {
            let mut buffers: Vec<BufferDecl> =
                (0..).zip(&inputs).map(|(k, ty)| BufferDecl::read(NAMES[k as usize], k, ty.clone())).collect();
            buffers.push(BufferDecl::output("out", inputs.len() as u32, output.clone()));
            let i = || Expr::var("i");
            let loads: Vec<Expr> = NAMES[..inputs.len()].iter().map(|name| Expr::load(*name, i())).collect();
            let vars: Vec<Expr> = NAMES[..inputs.len()].iter().map(|name| Expr::var(format!("{name}_value"))).collect();
            let bind = || (0..loads.len()).map(|k| Node::let_bind(format!("{}_value", NAMES[k]), loads[k].clone()));
            let guard = |body: Vec<Node>| Node::if_then(Expr::lt(i(), Expr::buf_len("out")), body);
            let store = |value: Expr| Node::store("out", i(), value);
            let mut nodes = vec![Node::let_bind("i", Expr::gid_x())];
            match form {
                Form::Direct => nodes.push(guard(vec![store(expr(&loads))])),
                Form::Variables => {
                    let mut body: Vec<Node> = bind().collect();
                    body.push(Node::let_bind("result", expr(&vars)));
                    body.push(Node::loop_for("k", Expr::u32(0), Expr::u32(2), vec![Node::assign("result", expr(&vars))]));
                    body.push(store(Expr::var("result")));
                    nodes.push(guard(body));
                }
                Form::Workgroup => {
                    // Invocation l loads for the one as far from the end as it is from the start.
                    let other = Expr::sub(Expr::u32(workgroup[0] - 1), Expr::lid_x());
                    nodes.push(Node::let_bind("other", other));
                    let from = Expr::add(Expr::mul(Expr::wid_x(), Expr::u32(workgroup[0])), Expr::var("other"));
                    nodes.push(Node::let_bind("from", from));
                    let mut read = Vec::new();
                    for (name, ty) in NAMES.iter().zip(&inputs) {
                        let tile = format!("{name}_tile");
                        let element = match ty.value_type() {
                            Some(ValueType::Scalar(scalar)) => scalar.into(),
                            Some(ValueType::Vector(..)) | None => ty.clone(),
                        };
                        buffers.push(BufferDecl::workgroup(tile.as_str(), element).with_count(workgroup[0]));
                        nodes.push(Node::store(tile.as_str(), Expr::var("other"), Expr::load(*name, Expr::var("from"))));
                        read.push(Expr::load(tile.as_str(), Expr::lid_x()));
                    }
                    nodes.push(Node::barrier());
                    nodes.push(guard(vec![store(expr(&read))]));
                }
                Form::Branches => {
                    let odd = Expr::eq(Expr::bitand(i(), Expr::u32(1)), Expr::u32(1));
                    let mut arm: Vec<Node> = bind().collect();
                    arm.push(store(expr(&vars)));
                    let branches = Node::if_then_else(odd, vec![store(expr(&loads))], arm);
                    nodes.push(Node::loop_for("k", Expr::u32(0), Expr::u32(1), vec![guard(vec![branches])]));
                }
                Form::Vector => {
                    let parts: Vec<Expr> = (0..loads.len() as u8).map(|k| Expr::extract(Expr::var("all"), k)).collect();
                    let all = Node::let_bind("all", Expr::vector(loads.iter().cloned()));
                    nodes.push(guard(vec![all, store(expr(&parts))]));
                }
            }
            Program::wrapped(buffers, workgroup, nodes).with_floats(mode)
        }
    }
}

pub(super) fn finish(spec: OpSpecBuilder) -> OpSpec {
    spec.build().unwrap_or_else(|error| panic!("{error}"))
}
