//! The text of a shader: from the SSA form and its facts to WGSL.
//!
//! **Values.** Every value of the form is a `let`, or a `var` where control decides it. Numbers of 32 bits, signed and float ones too, are
//! `u32`: what an op takes them for is the op's to say. Numbers of 64 bits are `vec2<u32>`, the low word first. So a driver never sees a
//! float but where a float op of the library wants it to.
//!
//! **Names** that a user gave are kept behind a number (`v12_sum`, `b0_out`), ours begin with `vy`.
//!
//! **Constants** are never folded by the shader's compiler before they run: WGSL refuses what overflows there. An op on literals alone gets
//! one of them from a function.
//!
//! **Memory** is guarded by ourselves unless the facts prove the index: drivers disagree about what lies out of bounds, and where an index
//! wraps round. See `memory.rs`. **Control** and retirement are in `control.rs`, how often loops go round in `rounds.rs`, **ops** in
//! `ops.rs`, **subgroups** in `subgroups.rs`.

mod control;
mod functions;
mod memory;
mod ops;
mod rounds;
mod subgroups;

use crate::error::EmitError;
use crate::floats::Library;
use crate::module::{Layout, Target};
use control::Control;
use memory::Place;
use std::fmt::Write as _;
use std::sync::Arc;
use vyre_foundation::analysis::{Bounds, Loops, Uniformity};
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::{Axis, Builtin};
use vyre_foundation::kernel::{BufferId, Kernel};
use vyre_foundation::ssa::{Def, Leaf, Ssa, Value};
use vyre_spec::{Scalar, ValueType};

/// The text of a kernel's shader, and what is bound where.
pub(crate) fn emit(kernel: &Arc<Kernel>, target: &Target) -> Result<(String, Layout), EmitError> {
    if kernel.uses.f64 {
        return Err(EmitError::unsupported("f64"));
    }
    if kernel.uses.grid_sync {
        return Err(EmitError::unsupported("grid barriers"));
    }
    let mut ssa = Ssa::of(kernel);
    ssa.optimize();
    let mut emitter = Emitter::new(&ssa, target);
    emitter.control = Control::of(&ssa);
    emitter.rounds = emitter.rounds_allowed();
    emitter.counts_rounds = emitter.may_run_out_of_rounds();
    emitter.body()?;
    emitter.module()
}

/// A shader while it is made.
struct Emitter<'a> {
    ssa: &'a Ssa,
    kernel: &'a Kernel,
    target: &'a Target,
    size: [u32; 3],
    bounds: Bounds,
    loops: Loops,
    uniformity: Uniformity,
    control: Control,
    /// The float functions that it calls.
    floats: Library,
    /// By buffer: how its elements lie in the shader's memory.
    places: Vec<Place>,
    /// The body so far.
    text: String,
    /// How deep control nests here, and has at most.
    depth: u32,
    deepest: u32,
    /// Functions that were made for this kernel, and variables of the workgroup beside its buffers.
    accessors: Vec<String>,
    /// Invocations exchange values of 32, of 64 bits; they vote.
    exchanges: [bool; 2],
    votes: bool,
    /// The tags of traps.
    traps: Vec<u32>,
    /// The rounds that an invocation may make, if there is a limit.
    rounds: Option<u32>,
    /// Whether they are counted.
    counts_rounds: bool,
    /// Names that nobody else has.
    fresh: u32,
}

impl<'a> Emitter<'a> {
    fn new(ssa: &'a Ssa, target: &'a Target) -> Emitter<'a> {
        let kernel = &*ssa.kernel;
        Emitter {
            ssa,
            kernel,
            target,
            size: target.workgroup.unwrap_or(kernel.workgroup_size),
            bounds: Bounds::of(ssa),
            loops: Loops::of(ssa),
            uniformity: Uniformity::of(ssa),
            control: Control::default(),
            floats: Library::new(kernel.floats, target.floats),
            places: Place::of_all(ssa),
            text: String::new(),
            depth: 0,
            deepest: 0,
            accessors: Vec::new(),
            exchanges: [false; 2],
            votes: false,
            traps: Vec::new(),
            rounds: None,
            counts_rounds: false,
            fresh: 0,
        }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        for _ in 0..=self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// Begins a block.
    fn open(&mut self, text: impl AsRef<str>) {
        self.line(text);
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.fresh += 1;
        format!("vyk_{stem}{}", self.fresh)
    }

    /// What stands for a value in an expression.
    fn value(&self, value: Value) -> String {
        let info = &self.ssa.values[value.index()];
        match info.def {
            Def::Leaf(Leaf::Lit { bits }) => literal(info.ty, bits),
            // These are numbers in the shader, and compilers refuse a number where it is an index out of bounds or shifts too far.
            Def::Leaf(Leaf::Builtin { builtin: builtin @ (Builtin::LocalCount(_) | Builtin::SubgroupSize) }) => {
                format!("vyk_lit({})", self.builtin(builtin))
            }
            Def::Leaf(Leaf::Len { buffer }) if self.kernel.buffer(buffer).count.is_some() => {
                format!("vyk_lit({})", self.len(buffer))
            }
            Def::Leaf(Leaf::Builtin { builtin }) => self.builtin(builtin),
            Def::Leaf(Leaf::Len { buffer }) => self.len(buffer),
            Def::Result(..) | Def::Argument(..) => self.name(value),
        }
    }

    /// The name of a value that an instruction or a loop defines.
    fn name(&self, value: Value) -> String {
        let value = self.control.alias(value);
        match self.ssa.values[value.index()].var {
            Some(var) => format!("v{}_{}", value.0, plain(&self.kernel.var(var).name)),
            None => format!("v{}", value.0),
        }
    }

    /// The bits of a value, if it is a literal.
    fn literal_bits(&self, value: Value) -> Option<u64> {
        match self.ssa.values[value.index()].def {
            Def::Leaf(Leaf::Lit { bits }) => Some(bits),
            Def::Leaf(Leaf::Builtin { .. } | Leaf::Len { .. }) | Def::Result(..) | Def::Argument(..) => None,
        }
    }

    fn builtin(&self, builtin: Builtin) -> String {
        let size = |axis: Axis| self.size[axis as usize];
        match builtin {
            Builtin::Invocation(axis) => format!("vyk_gid.{}", axis.name()),
            Builtin::Workgroup(axis) => format!("vyk_wid.{}", axis.name()),
            Builtin::Local(axis) => format!("vyk_lid.{}", axis.name()),
            Builtin::InvocationCount(axis) => format!("vyk_count.{}", axis.name()),
            Builtin::WorkgroupCount(axis) => format!("vyk_block.grid_{}", axis.name()),
            Builtin::LocalCount(axis) => format!("{}u", size(axis)),
            Builtin::SubgroupLane => format!("(vyk_local % {}u)", self.subgroup()),
            Builtin::SubgroupSize => format!("{}u", self.subgroup()),
        }
    }

    /// Lanes of a subgroup; a kernel that uses them says how many.
    fn subgroup(&self) -> u32 {
        self.kernel.subgroup.unwrap_or(1)
    }

    fn buffer_name(&self, id: BufferId) -> String {
        format!("b{}_{}", id.0, plain(&self.kernel.buffer(id).name))
    }

    /// The number of elements of a buffer.
    fn len(&self, id: BufferId) -> String {
        match self.kernel.buffer(id).count {
            Some(count) => format!("{count}u"),
            None => format!("vyk_block.len_{}", self.buffer_name(id)),
        }
    }

    /// Puts the module together.
    fn module(self) -> Result<(String, Layout), EmitError> {
        if self.deepest > self.target.nesting {
            let (found, most) = (self.deepest, self.target.nesting);
            return Err(EmitError::unsupported(format!("control nested {found} deep, only {most}")));
        }
        let interface = Interface::of_kernel(self.kernel);
        let lengths: Vec<usize> = interface.bound.iter().copied().filter(|i| self.kernel.buffers[*i].count.is_none()).collect();
        let mut head = String::new();
        let mut write = |line: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = head.write_fmt(line);
            head.push('\n');
        };
        write(format_args!("struct VykBlock {{"));
        let fixed = ["zero", "base_x", "base_y", "base_z", "grid_x", "grid_y", "grid_z", "spare"];
        for name in fixed {
            write(format_args!("    {name}: u32,"));
        }
        for i in &lengths {
            write(format_args!("    len_{}: u32,", self.buffer_name(BufferId(*i as u32))));
        }
        write(format_args!("}}\n\n@group(0) @binding({}) var<uniform> vyk_block: VykBlock;", Layout::BLOCK));
        if !self.traps.is_empty() || self.counts_rounds {
            let (binding, count) = (Layout::TRAPS, self.traps.len() + usize::from(self.counts_rounds));
            write(format_args!("@group(0) @binding({binding}) var<storage, read_write> vyk_traps: array<atomic<u32>, {count}>;"));
        }
        let tables = self.floats.uses_table();
        if tables {
            write(format_args!("@group(0) @binding({}) var<storage, read> vyk_tables: array<u32>;", Layout::TABLES));
        }
        let mut writable = Vec::new();
        for (n, i) in interface.bound.iter().enumerate() {
            let id = BufferId(*i as u32);
            let place = &self.places[*i];
            let access = self.kernel.buffers[*i].access.is_writable();
            writable.push(access);
            let access = if access { "read_write" } else { "read" };
            let (binding, name) = (Layout::BUFFERS as usize + n, self.buffer_name(id));
            write(format_args!("@group(0) @binding({binding}) var<storage, {access}> {name}: array<{}>;", place.cell()));
        }
        let mut workgroup_bytes = 0;
        let mut zeroed = Vec::new();
        for i in &interface.workgroup {
            let (id, place) = (BufferId(*i as u32), &self.places[*i]);
            let cells = place.cells(self.kernel.buffers[*i].count.unwrap_or(0)).max(1);
            let name = self.buffer_name(id);
            write(format_args!("var<workgroup> {name}: array<{}, {cells}>;", place.cell()));
            workgroup_bytes += cells * place.cell_bytes();
            zeroed.push((name, cells, place.zero()));
        }
        let invocations: u32 = self.size.iter().product();
        for (is_used, name, ty, bytes) in
            [(self.exchanges[0], "vyk_lanes", "u32", 4), (self.exchanges[1], "vyk_lanes64", "vec2<u32>", 8)]
        {
            if is_used {
                write(format_args!("var<workgroup> {name}: array<{ty}, {invocations}>;"));
                workgroup_bytes += invocations * bytes;
            }
        }
        if self.votes {
            write(format_args!("var<workgroup> vyk_votes: atomic<u32>;\nvar<workgroup> vyk_verdict: u32;"));
            workgroup_bytes += 8;
        }
        if self.floats.uses_zero() {
            write(format_args!("\nfn vy_zero() -> u32 {{\n    return vyk_block.zero;\n}}"));
        }
        if tables {
            write(format_args!("\nfn vy_table(i: u32) -> u32 {{\n    return vyk_tables[i];\n}}"));
        }
        for accessor in &self.accessors {
            write(format_args!("\n{accessor}"));
        }
        if self.votes {
            write(format_args!("{VOTE}"));
        }
        let mut entry = String::new();
        let _ = writeln!(entry, "\n@compute @workgroup_size({}, {}, {})", self.size[0], self.size[1], self.size[2]);
        let _ = writeln!(
            entry,
            "fn {}(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, \
             @builtin(local_invocation_index) vyk_local: u32) {{",
            Layout::ENTRY
        );
        let [x, y, z] = self.size;
        let _ = writeln!(entry, "    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);");
        let _ = writeln!(entry, "    let vyk_gid = vyk_wid * vec3<u32>({x}u, {y}u, {z}u) + vyk_lid;");
        let _ = writeln!(
            entry,
            "    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>({x}u, {y}u, {z}u);"
        );
        for (name, cells, zero) in &zeroed {
            let _ = writeln!(entry, "    for (var vyk_i = vyk_local; vyk_i < {cells}u; vyk_i = vyk_i + {invocations}u) {{");
            let _ = writeln!(entry, "        {}", zero.replace('$', &format!("{name}[vyk_i]")));
            let _ = writeln!(entry, "    }}");
        }
        if self.votes {
            let _ = writeln!(entry, "    if (vyk_local == 0u) {{\n        atomicStore(&vyk_votes, 0u);\n    }}");
        }
        if self.counts_rounds {
            let _ = writeln!(entry, "    var vyk_rounds = 0u;");
        }
        if self.votes || !zeroed.is_empty() {
            let _ = writeln!(entry, "    workgroupBarrier();");
        }
        if self.control.flagged {
            let _ = writeln!(entry, "    var vyk_alive = true;");
        }
        entry.push_str(&self.text.replace("VYK_ROUNDS", &self.traps.len().to_string()));
        entry.push_str("}\n");
        let own = format!("{head}{entry}");
        let library = functions::needed(functions::INTEGERS, &own);
        let layout = Layout {
            writable,
            lengths,
            tables,
            traps: self.traps,
            counts_rounds: self.counts_rounds,
            workgroup_bytes,
            workgroup: self.size,
        };
        Ok((format!("{head}{library}{}{entry}", self.floats.source()), layout))
    }
}

/// Whether some invocation says yes, for all alike and in a way that compilers can see.
const VOTE: &str = "
fn vyk_vote(local: u32, yes: bool) -> bool {
    if (yes) {
        atomicStore(&vyk_votes, 1u);
    }
    workgroupBarrier();
    if (local == 0u) {
        vyk_verdict = atomicExchange(&vyk_votes, 0u);
    }
    return workgroupUniformLoad(&vyk_verdict) != 0u;
}";

/// What is left of a name as part of an identifier.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// The type of a value.
fn type_name(ty: ValueType) -> &'static str {
    match ty {
        ValueType::Scalar(Scalar::Bool) => "bool",
        ValueType::Scalar(Scalar::U32 | Scalar::I32 | Scalar::F32) => "u32",
        ValueType::Scalar(Scalar::U64 | Scalar::I64 | Scalar::F64) | ValueType::Vector(_, 2) => "vec2<u32>",
        ValueType::Vector(_, 3) => "vec3<u32>",
        ValueType::Vector(..) => "vec4<u32>",
    }
}

/// A literal. There are none of vectors.
fn literal(ty: ValueType, bits: u64) -> String {
    let word = |bits: u64| if bits < 1 << 16 { format!("{bits}u") } else { format!("{bits:#x}u") };
    match ty {
        ValueType::Scalar(Scalar::Bool) => (bits != 0).to_string(),
        ValueType::Scalar(Scalar::U32 | Scalar::I32 | Scalar::F32) | ValueType::Vector(..) => word(bits & 0xffff_ffff),
        ValueType::Scalar(Scalar::U64 | Scalar::I64 | Scalar::F64) => {
            format!("vec2<u32>({}, {})", word(bits & 0xffff_ffff), word(bits >> 32))
        }
    }
}
