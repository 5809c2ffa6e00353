//! Programs out of bytes.
//!
//! Every program is valid by construction, ends within [`Generated::fuel`] steps, and, outside the presets that are racy or
//! order-dependent on purpose, gives the same bytes under every schedule, so that any two ways to run it can be compared. How that is
//! kept is in `memory.rs`; what a program is made of is in `config.rs`.
//!
//! The same bytes give the same program as long as [`VERSION`] is the same. A program worth keeping is kept as itself, never as
//! the bytes it came from.

mod aliases;
mod config;
mod expr;
mod figure;
mod memory;
mod pattern;
mod shape;
mod stmt;
mod tempting;

pub use crate::dna::dna;
pub use config::Preset;
pub use figure::{Figure, Numbered, asked};

use crate::dna::{Dna, stretched};
use config::{Config, Discipline};
use memory::{Buffer, Class, GridRole, GroupRole, MAX_PER};
use shape::{Extent, Shape};
use vyre_foundation::config::{DispatchConfig, SpecMap};
use vyre_foundation::ir::{
    Access, Body, BufferDecl, ConstDecl, DataType, Element, Expr, FloatMode, Name, Node, Parts, Program, Scalar, Size, SpecValue,
    ValueType,
};
use vyre_foundation::launch::plan;
use vyre_spec::limits::MAX_WORKGROUP_BYTES;
use vyre_spec::{ErrorCode, Storage};
use vyre_worker::Case;

/// Changes whenever the same bytes give another program.
pub const VERSION: u32 = 3;

/// The longest buffer without a declared count, in elements, in a dispatch of so many invocations.
fn max_length(invocations: u32) -> u32 {
    (2 * invocations).max(300)
}

/// Bytes of choices that a program of a large preset is made of.
const LARGE_DNA: usize = 4096;

/// A program with a launch that fits it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The program.
    pub program: Program,
    /// Its grid, the lengths of its outputs, values for some of its constants.
    pub config: DispatchConfig,
    /// Steps that a dispatch takes at most, whatever the inputs hold.
    pub fuel: u64,
    /// Invocations that it was made for; a launch without a grid may have others.
    pub invocations: u32,
    /// The grid that it was made for.
    pub grid: [u32; 3],
}

impl Generated {
    /// One dispatch of it, with inputs that these bytes say.
    #[must_use]
    pub fn case(&self, dna: &[u8]) -> Case {
        let inputs = crate::inputs::inputs(self, dna);
        let mut config = self.config.clone();
        if config.grid_override.is_none() && self.needs_grid(&inputs) {
            config.grid_override = Some(self.grid);
        }
        Case { program: self.program.clone(), inputs, config, fuel: self.fuel }
    }

    /// Whether one of the inputs is longer than the default grid covers.
    fn needs_grid(&self, inputs: &[Vec<u8>]) -> bool {
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let specialized = self.config.specialization.apply(&self.program);
        let planned = specialized.and_then(|program| plan(&program, &sizes, &self.config.launch()));
        planned.is_err_and(|report| report.codes().any(|code| code == ErrorCode::E0716))
    }
}

/// The program that these bytes say.
#[must_use]
pub fn generate(preset: Preset, dna: &[u8]) -> Generated {
    let more;
    let mut dna = if Preset::large().contains(&preset) {
        more = stretched(dna, LARGE_DNA);
        Dna::new(&more)
    } else {
        Dna::new(dna)
    };
    let config = Config::of(preset, &mut dna);
    let subgroup = config.weights.subgroup > 0 && dna.chance(80);
    let (shape, subgroup) = Shape::draw(&mut dna, config.extent, config.dimensions, subgroup);
    let generator = Generator {
        dna,
        config,
        shape,
        subgroup,
        buffers: Vec::new(),
        roles: Vec::new(),
        variables: Vec::new(),
        ended: Vec::new(),
        reusable: Vec::new(),
        names: Names::get(),
        next_name: 0,
        loops: Vec::new(),
        budget: 0,
        iterations: 1,
        steps: 2,
        workgroup_bytes: MAX_WORKGROUP_BYTES,
    };
    generator.program()
}

/// A variable in scope.
#[derive(Clone)]
struct Variable {
    name: Name,
    ty: ValueType,
    uniform: bool,
    assignable: bool,
}

/// A loop around the statement that is being made.
struct LoopFrame {
    counter: Name,
    /// Whether its body is reached by the whole workgroup at once, every iteration.
    uniform: bool,
    /// Whether each iteration begins with a barrier, so that it may be left and cut short.
    begins_with_barrier: bool,
    /// Whether a barrier separates its iterations.
    synchronises: bool,
    /// The roles wherever the loop is left or an iteration cut short.
    left_with: Vec<Vec<GroupRole>>,
}

/// Names that are made over and over.
#[derive(Clone)]
struct Names {
    variables: std::rc::Rc<[Name]>,
    local: Name,
    group: Name,
}

impl Names {
    fn get() -> Names {
        thread_local! {
            static NAMES: Names = Names {
                variables: (0..512).map(|n| Name::from(format!("v{n}"))).collect(),
                local: "l".into(),
                group: "g".into(),
            };
        }
        NAMES.with(Names::clone)
    }

    fn variable(&self, n: usize) -> Name {
        self.variables.get(n).cloned().unwrap_or_else(|| format!("v{n}").into())
    }
}

struct Generator<'a> {
    dna: Dna<'a>,
    config: Config,
    shape: Shape,
    subgroup: Option<u32>,
    buffers: Vec<Buffer>,
    /// By buffer: its role in the current epoch of the workgroup.
    roles: Vec<GroupRole>,
    variables: Vec<Variable>,
    /// Names of scopes that have ended.
    ended: Vec<Name>,
    /// Expressions made before in the open scopes, to be made again; none reads memory that is written.
    reusable: Vec<(Scalar, bool, Expr)>,
    names: Names,
    next_name: usize,
    loops: Vec<LoopFrame>,
    /// Statements left to make.
    budget: u32,
    /// How often the current statement runs at most.
    iterations: u64,
    /// Steps of one invocation so far, at most.
    steps: u64,
    /// Workgroup memory that is left to declare.
    workgroup_bytes: u64,
}

impl Generator<'_> {
    fn program(mut self) -> Generated {
        let mut consts = self.constants();
        let mut decls = self.declare_buffers(&mut consts);
        if self.dna.chance(30) {
            decls.reverse();
        }
        let mut workgroup = self.shape.size.map(Size::Lit);
        if self.config.constants && self.dna.chance(10) {
            let axis = self.dna.below(3) as usize;
            consts.push(ConstDecl { name: "size".into(), default: SpecValue::U32(self.shape.size[axis]) });
            workgroup[axis] = Size::Const("size".into());
        }
        self.budget = 2 + self.dna.below(self.config.statements);
        let nodes = self.top_level();
        let floats = if self.dna.chance(35) { FloatMode::Canonical } else { FloatMode::Ieee };
        let body = if self.dna.chance(4) { nodes } else { vec![Node::region("p", nodes)] };
        let specialization = self.specialization(&consts);
        let config = DispatchConfig { specialization, ..self.launch(&decls) };
        // A launch without a grid covers the longest buffer that is written.
        let (invocations, grid) = (self.shape.invocations(), self.shape.grid);
        let most = u64::from(max_length(invocations) + self.shape.group());
        let parts = Parts { buffers: decls, consts, workgroup, floats, subgroup: self.subgroup, body: Body::from(body) };
        let fuel = most * (2 * self.steps + 8);
        Generated { program: Program::from_parts(parts), config, fuel, invocations, grid }
    }

    fn constants(&mut self) -> Vec<ConstDecl> {
        if !self.config.constants {
            return Vec::new();
        }
        let mut consts = Vec::new();
        for n in 0..self.dna.below(3) {
            let default = self.constant();
            let Some(literal) = default.literal() else { continue };
            if literal.scalar() != Scalar::U32 && !self.config.has(literal.scalar()) {
                continue;
            }
            let name = Name::from(format!("c{n}"));
            let ty = literal.scalar().into();
            self.variables.push(Variable { name: name.clone(), ty, uniform: true, assignable: false });
            consts.push(ConstDecl { name, default });
        }
        consts
    }

    fn constant(&mut self) -> SpecValue {
        let scalar = self.dna.pick(&[Scalar::U32, Scalar::I32, Scalar::F32, Scalar::Bool]);
        let bits = crate::values::scalar(&mut self.dna, scalar);
        constant_of(scalar, bits)
    }

    /// Values for some of the constants: never for one that sizes the workgroup, which the body counts on.
    fn specialization(&mut self, consts: &[ConstDecl]) -> SpecMap {
        let mut values = SpecMap::new();
        for decl in consts {
            if decl.name == "size" || !self.dna.chance(40) {
                continue;
            }
            let value = match &decl.default {
                SpecValue::DType(old) => {
                    let others: Vec<DataType> = DataType::KERNEL_SCALARS.into_iter().filter(|new| may_become(old, new)).collect();
                    SpecValue::DType(self.dna.pick(&others).clone())
                }
                SpecValue::U32(_) if decl.name == "count" => SpecValue::U32(1 + self.dna.below(20)),
                other @ (SpecValue::U32(_) | SpecValue::I32(_) | SpecValue::F32(_) | SpecValue::Bool(_)) => {
                    let scalar = other.literal().map_or(Scalar::U32, |literal| literal.scalar());
                    constant_of(scalar, crate::values::scalar(&mut self.dna, scalar))
                }
            };
            values.insert(decl.name.to_string(), value);
        }
        values
    }

    fn declare_buffers(&mut self, consts: &mut Vec<ConstDecl>) -> Vec<BufferDecl> {
        let mut decls = Vec::new();
        let [least, most] = self.config.buffers;
        let count = (least + self.dna.below(1 + most - least)).max(1 + u32::from(self.config.weights.exchange > 10));
        // Bindings have gaps, and their order is not that of the declarations.
        let stride = 1 + self.dna.below(3);
        let mut binding = self.dna.below(3);
        let sink = if self.config.crowd > 0 || self.dna.chance(70) { DataType::U32 } else { self.element(false) };
        for n in 0..=count {
            let is_sink = n == 0;
            let name = if is_sink { Name::from("out") } else { Name::from(format!("b{n}")) };
            let access = match self.dna.below(10) {
                _ if is_sink => Access::Output,
                0 | 1 => Access::Read,
                2 | 3 => Access::Uniform,
                4 | 5 => Access::ReadWrite,
                6 => Access::Output,
                _ if self.config.workgroup_memory => Access::Workgroup,
                _ => Access::ReadWrite,
            };
            let meets = n == 1 && self.config.discipline == Discipline::Ordered;
            let access = match n {
                _ if meets => Access::ReadWrite,
                1 if !access.is_input() && self.dna.chance(70) => self.dna.pick(&[Access::Read, Access::Uniform]),
                2 if self.config.weights.exchange > 10 && self.dna.chance(80) => Access::Workgroup,
                _ => access,
            };
            let atomics = meets || self.config.weights.atomic > 0 && access.is_writable() && self.dna.chance(50);
            let element = match (is_sink, atomics) {
                (true, _) => sink.clone(),
                (false, true) if self.config.has(Scalar::I32) => self.dna.pick(&[DataType::U32, DataType::I32]),
                (false, true) => DataType::U32,
                (false, false) => self.element(!access.is_writable()),
            };
            let Some(value) = element.value_type() else { continue };
            let per = if !is_sink && self.dna.chance(30) { 1 + self.dna.below(MAX_PER) } else { 1 };
            let mut declared = Element::Type(element.clone());
            if self.config.constants && !is_sink && value.scalar().is_some() && self.dna.chance(6) {
                let name = Name::from(format!("t{n}"));
                consts.push(ConstDecl { name: name.clone(), default: SpecValue::DType(element.clone()) });
                declared = Element::Const(name);
            }
            // A type constant may become a narrow type, whose elements are not flooded or changed by atomics.
            let element = if declared == Element::Type(element.clone()) { element } else { DataType::U8 };
            let mut decl = BufferDecl { name: name.clone(), access, element: declared, count: None, binding: None };
            if access == Access::Workgroup {
                let slice = per * self.shape.group();
                let count = match self.dna.below(6) {
                    0 => 1 + self.dna.below(slice),
                    1 => slice + 1,
                    _ => slice,
                };
                decl.count = Some(Size::Lit(self.workgroup_count(count, value)));
            } else {
                decl.binding = Some(binding);
                binding += stride;
                if is_sink && self.dna.chance(70) {
                    // Without a grid this says how many workgroups there are, of which the last may be partly out of range.
                    let missing = if self.dna.chance(30) { self.dna.below(self.shape.group()) } else { 0 };
                    decl.count = Some(Size::Lit(self.shape.invocations() - missing));
                } else if access == Access::Output || self.dna.chance(15) {
                    decl.count = self.storage_count(access, per, consts);
                }
            }
            let grid = if meets { GridRole::Gathering(Class::Any) } else { GridRole::Fresh };
            self.buffers.push(Buffer { name, access, element, value, per, sink: is_sink, grid });
            self.roles.push(GroupRole::Fresh);
            decls.push(decl);
        }
        decls
    }

    /// As many elements of workgroup memory as are wanted, or as there is room for. A type constant makes elements no wider than values.
    fn workgroup_count(&mut self, wanted: u32, value: ValueType) -> u32 {
        let bytes = match value {
            ValueType::Scalar(scalar) => u64::from(scalar.bytes()),
            ValueType::Vector(part, count) => u64::from(part.bytes()) * u64::from(count),
        };
        // At least one element of each buffer that may come.
        // One element is always kept for each buffer that may follow.
        let room = self.workgroup_bytes.saturating_sub(16 * u64::from(self.config.buffers[1] + 1));
        let count = u64::from(wanted).min(room / bytes).max(1);
        self.workgroup_bytes -= (count * bytes).next_multiple_of(16);
        count as u32
    }

    /// How many elements a storage buffer declares, if it does.
    fn storage_count(&mut self, access: Access, per: u32, consts: &mut Vec<ConstDecl>) -> Option<Size> {
        if self.config.constants && self.dna.chance(8) && consts.iter().all(|decl| decl.name != "count") {
            consts.push(ConstDecl { name: "count".into(), default: SpecValue::U32(self.length(per)) });
            return Some(Size::Const("count".into()));
        }
        (access != Access::Output || self.dna.chance(50)).then(|| Size::Lit(self.length(per)))
    }

    /// A length for a buffer of which each invocation owns so many elements: mostly all of them, or around an edge.
    fn length(&mut self, per: u32) -> u32 {
        length(&mut self.dna, self.shape.invocations(), per, self.shape.group())
    }

    fn element(&mut self, read_only: bool) -> DataType {
        if self.dna.chance(self.config.packed) {
            let narrow = [
                DataType::U8,
                DataType::I8,
                DataType::U16,
                DataType::I16,
                DataType::F16,
                DataType::BF16,
                DataType::F8E4M3,
                DataType::F8E5M2,
                DataType::I4,
                DataType::FP4,
                DataType::NF4,
            ];
            let element = self.dna.pick(if read_only { &narrow } else { &narrow[..8] });
            if element.value_type().and_then(ValueType::scalar).is_some_and(|scalar| self.config.has(scalar)) {
                return element;
            }
        }
        if self.config.vectors && self.dna.chance(40) {
            let part = self.dna.pick(&[Scalar::U32, Scalar::I32, Scalar::F32]);
            if self.config.has(part) {
                return DataType::vector(part, 2 + self.dna.below(3) as u8);
            }
        }
        let scalar = self.any_scalar();
        match scalar {
            Scalar::Bool => DataType::Bool,
            Scalar::U32 => DataType::U32,
            Scalar::I32 => DataType::I32,
            Scalar::U64 => DataType::U64,
            Scalar::I64 => DataType::I64,
            Scalar::F32 => DataType::F32,
            Scalar::F64 => DataType::F64,
        }
    }

    fn launch(&mut self, decls: &[BufferDecl]) -> DispatchConfig {
        let mut config = DispatchConfig::default();
        let one_dimension = self.shape.flat();
        let given = match self.config.extent {
            Extent::Few => 100,
            Extent::Usual => 85,
            Extent::Many => 50,
        };
        if !one_dimension || self.dna.chance(given) {
            config.grid_override = Some(self.shape.grid);
            if self.config.overridable {
                config.workgroup_override = Some(self.shape.regrouped(&mut self.dna));
            }
        }
        let inferred = decls.iter().any(|decl| decl.access.is_input() && decl.count.is_none()) && self.dna.chance(20);
        for decl in decls {
            if decl.access == Access::Output && decl.count.is_none() && !inferred {
                let per = self.buffers.iter().find(|buffer| buffer.name == decl.name).map_or(1, |buffer| buffer.per);
                config.output_counts.insert(decl.name.to_string(), self.length(per));
            }
        }
        config
    }
}

fn constant_of(scalar: Scalar, bits: u64) -> SpecValue {
    match scalar {
        Scalar::I32 => SpecValue::I32(bits as u32 as i32),
        Scalar::F32 => SpecValue::F32(f32::from_bits(bits as u32)),
        Scalar::Bool => SpecValue::Bool(bits != 0),
        Scalar::U32 | Scalar::U64 | Scalar::I64 | Scalar::F64 => SpecValue::U32(bits as u32),
    }
}

/// A length for a buffer of which each of so many invocations owns `per` elements: around all of them, or around the size of a
/// workgroup, or next to nothing.
pub(crate) fn length(dna: &mut Dna<'_>, invocations: u32, per: u32, group: u32) -> u32 {
    let all = invocations * per;
    let length = match dna.below(17) {
        0..=7 => all,
        8 => all + 1,
        9 => all - 1,
        10 => group + 1,
        11 => group - 1,
        12 => 1,
        13 => 0,
        14 => 2 * dna.below(8) + 1,
        // Into the last workgroup.
        15 => invocations - dna.below(group),
        _ => dna.below(2 * all + 1),
    };
    length.min(max_length(invocations))
}

/// Whether a type constant that says `old` may be given `new`.
fn may_become(old: &DataType, new: &DataType) -> bool {
    let load_only = |ty: &DataType| matches!(ty.storage(), Storage::LoadOnly(_));
    new.value_type() == old.value_type() && load_only(new) == load_only(old)
}
