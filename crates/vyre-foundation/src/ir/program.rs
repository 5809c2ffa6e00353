//! The program: parts behind an `Arc`, with the facts that are worth computing once.

use super::buffer::{BufferDecl, Element, Size};
use super::expr::Expr;
use super::name::Name;
use super::node::{Body, Node, NodeParts};
use super::tree::{Item, NodeId, Walk};
use crate::diagnostic::{BufferPart, Location, Report, Source};
use crate::interface::Interface;
use crate::specialize::{SpecValue, Specializations};
use crate::validate::{Validated, validate};
use crate::wire;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{DataType, FloatMode};

/// The blake3 hash of a program's wire body: equal programs, and only those, have equal fingerprints.
pub type Fingerprint = [u8; 32];

/// A specialization constant and the value it has unless a dispatch gives another.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstDecl {
    /// The name, unique among buffers, constants and variables.
    pub name: Name,
    /// The default, which also gives the type.
    pub default: SpecValue,
}

/// What a program is made of; all of it is part of the program's identity.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Buffers in the order of their declaration; bindings, not this order, decide how bytes are passed.
    pub buffers: Vec<BufferDecl>,
    /// Specialization constants.
    pub consts: Vec<ConstDecl>,
    /// Invocations of one workgroup along x, y and z.
    pub workgroup: [Size; 3],
    /// What happens to tiny floats.
    pub floats: FloatMode,
    /// Lanes of one subgroup, if the program uses subgroups.
    pub subgroup: Option<u32>,
    /// The statements; a wrapped program has exactly one region here.
    pub body: Body,
}

/// A kernel: immutable, cheap to clone and to share between threads.
///
/// Two programs are equal when all their [`Parts`] are: floats by bits, names included, source text and comments not.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    parts: Parts,
    source: Option<Arc<Source>>,
    wire: OnceLock<Vec<u8>>,
    fingerprint: OnceLock<Fingerprint>,
    validated: OnceLock<Result<Validated, Report>>,
    interface: OnceLock<Interface>,
    specializations: Specializations,
}

impl Program {
    /// The program of these parts.
    #[must_use]
    pub fn from_parts(parts: Parts) -> Program {
        Program::with_source(parts, None)
    }

    /// The program of these parts, which were read from a text.
    #[must_use]
    pub fn with_source(parts: Parts, source: Option<Arc<Source>>) -> Program {
        Program(Arc::new(Inner {
            parts,
            source,
            wire: OnceLock::new(),
            fingerprint: OnceLock::new(),
            validated: OnceLock::new(),
            interface: OnceLock::new(),
            specializations: Specializations::default(),
        }))
    }

    /// A program whose statements stand in one root region; what pipelines accept.
    #[must_use]
    pub fn wrapped(buffers: Vec<BufferDecl>, workgroup_size: [u32; 3], nodes: Vec<Node>) -> Program {
        Program::new(buffers, workgroup_size, vec![Node::region("main", nodes)])
    }

    /// A program with these top-level statements as they are; pipelines refuse it unless that is one region.
    #[must_use]
    pub fn new(buffers: Vec<BufferDecl>, workgroup_size: [u32; 3], nodes: Vec<Node>) -> Program {
        Program::from_parts(Parts {
            buffers,
            consts: Vec::new(),
            workgroup: workgroup_size.map(Size::Lit),
            floats: FloatMode::Ieee,
            subgroup: None,
            body: nodes.into(),
        })
    }

    /// The same program with its parts changed; the link to its source text is lost.
    #[must_use]
    pub fn edit(self, change: impl FnOnce(&mut Parts)) -> Program {
        let mut parts = match Arc::try_unwrap(self.0) {
            Ok(inner) => inner.parts,
            Err(shared) => shared.parts.clone(),
        };
        change(&mut parts);
        Program::from_parts(parts)
    }

    /// The same program under another name; a program that is not wrapped has no name and stays as it is.
    #[must_use]
    pub fn with_name(self, name: impl Into<Name>) -> Program {
        self.edit(|parts| {
            if let [Node::Region { generator, .. }] = &mut parts.body[..] {
                *generator = name.into();
            }
        })
    }

    /// The same program with this treatment of tiny floats.
    #[must_use]
    pub fn with_floats(self, floats: FloatMode) -> Program {
        self.edit(|parts| parts.floats = floats)
    }

    /// The same program with subgroups of `size` lanes.
    #[must_use]
    pub fn with_subgroup(self, size: u32) -> Program {
        self.edit(|parts| parts.subgroup = Some(size))
    }

    /// The same program with one more specialization constant.
    #[must_use]
    pub fn with_const(self, name: impl Into<Name>, default: SpecValue) -> Program {
        self.edit(|parts| parts.consts.push(ConstDecl { name: name.into(), default }))
    }

    /// The same program with a workgroup size that may name constants.
    #[must_use]
    pub fn with_workgroup(self, size: [Size; 3]) -> Program {
        self.edit(|parts| parts.workgroup = size)
    }

    /// What the program is made of.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// The program's name: what its root region was made by. `None` if it is not wrapped.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        match &self.0.parts.body[..] {
            [Node::Region { generator, .. }] => Some(generator),
            _ => None,
        }
    }

    /// Whether the statements stand in one root region.
    #[must_use]
    pub fn is_wrapped(&self) -> bool {
        self.name().is_some()
    }

    /// The buffers in the order of their declaration.
    #[must_use]
    pub fn buffers(&self) -> &[BufferDecl] {
        &self.0.parts.buffers
    }

    /// The workgroup size, constants taken at their defaults; a size that names no `u32` constant counts as 0.
    #[must_use]
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.0.parts.workgroup.each_ref().map(|size| self.0.parts.size_value(size).unwrap_or(0))
    }

    /// The text the program was read from.
    #[must_use]
    pub fn source(&self) -> Option<&Arc<Source>> {
        self.0.source.as_ref()
    }

    /// All statements and expressions in source order; the n-th is at `NodeId(n)`.
    #[must_use]
    pub fn walk(&self) -> Walk<'_> {
        Walk::body(&self.0.parts.body)
    }

    /// Where statements, expressions or types first nest deeper than anything that reads programs accepts.
    pub(crate) fn too_deep(&self) -> Option<Location> {
        self.count().err()
    }

    /// How much there is of what, without recursion; or where something nests too deep.
    pub(crate) fn count(&self) -> Result<Counts, Location> {
        let parts = self.parts();
        let is_deep_const = |decl: &ConstDecl| match &decl.default {
            SpecValue::DType(data_type) => type_is_too_deep(data_type),
            SpecValue::U32(_) | SpecValue::I32(_) | SpecValue::F32(_) | SpecValue::Bool(_) => false,
        };
        let is_deep_buffer = |decl: &BufferDecl| match &decl.element {
            Element::Type(data_type) => type_is_too_deep(data_type),
            Element::Const(_) => false,
        };
        let in_const = || parts.consts.iter().position(is_deep_const).map(|n| Location::Const(n as u32));
        let in_buffer = || {
            let n = parts.buffers.iter().position(is_deep_buffer)?;
            Some(Location::Buffer(n as u32, BufferPart::Element))
        };
        if let Some(location) = in_const().or_else(in_buffer) {
            return Err(location);
        }
        let mut counts = Counts::default();
        for (item, depth) in self.walk() {
            if depth > MAX_NESTING {
                return Err(Location::Tree(NodeId((counts.stmts + counts.exprs) as u32)));
            }
            match item {
                Item::Node(node) => {
                    counts.stmts += 1;
                    let NodeParts { declares, counter, result, buffer, .. } = node.parts();
                    let declares = declares.or(counter).or(result.and_then(Option::as_ref)).is_some();
                    counts.vars += usize::from(declares);
                    counts.accesses += usize::from(buffer.is_some());
                }
                Item::Expr(expr) => {
                    counts.exprs += 1;
                    counts.accesses += usize::from(matches!(expr, Expr::Load(_)));
                }
            }
        }
        Ok(counts)
    }

    /// The canonical encoding of all parts; equal programs have equal bodies.
    #[must_use]
    pub fn wire_body(&self) -> &[u8] {
        self.0.wire.get_or_init(|| wire::encode_parts(&self.0.parts))
    }

    /// The hash of [`Program::wire_body`], computed once.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        *self.0.fingerprint.get_or_init(|| *blake3::hash(self.wire_body()).as_bytes())
    }

    /// The program's proof of validity, or every mistake in it; computed once.
    pub fn validated(&self) -> Result<&Validated, &Report> {
        self.0.validated.get_or_init(|| validate(self)).as_ref()
    }

    /// What its constants were lately replaced by.
    pub(crate) fn specializations(&self) -> &Specializations {
        &self.0.specializations
    }

    /// Which buffers are inputs, outputs and workgroup memory, in the order that bytes are passed; computed once.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        self.0.interface.get_or_init(|| Interface::of(&self.0.parts))
    }
}

/// How many there are in a program.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) stmts: usize,
    pub(crate) exprs: usize,
    /// Declarations of variables.
    pub(crate) vars: usize,
    /// Loads, stores and atomics.
    pub(crate) accesses: usize,
}

/// Whether a type nests deeper than the limit.
fn type_is_too_deep(data_type: &DataType) -> bool {
    data_type.levels().nth(MAX_NESTING as usize).is_some()
}

impl Parts {
    /// The declaration of a constant.
    #[must_use]
    pub fn constant(&self, name: &Name) -> Option<&ConstDecl> {
        self.consts.iter().find(|decl| decl.name == *name)
    }

    /// A declared size, constants taken at their defaults; `None` if it names no `u32` constant.
    #[must_use]
    pub fn size_value(&self, size: &Size) -> Option<u32> {
        match size {
            Size::Lit(value) => Some(*value),
            Size::Const(name) => match self.constant(name)?.default {
                SpecValue::U32(value) => Some(value),
                SpecValue::I32(_) | SpecValue::F32(_) | SpecValue::Bool(_) | SpecValue::DType(_) => None,
            },
        }
    }
}

/// An empty program: no buffers, one invocation per workgroup, an empty root region.
impl Default for Program {
    fn default() -> Self {
        Program::wrapped(Vec::new(), [1, 1, 1], Vec::new())
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.wire_body() == other.wire_body()
    }
}

impl Eq for Program {}

impl Hash for Program {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

/// Reads the text form, which messages call `program`; [`crate::text::parse`] gives it another name. The program may still be invalid:
/// see [`Program::validated`].
///
/// ```
/// use vyre_foundation::ir::Program;
///
/// let text = "program ones { workgroup 64\n buffer out: output u32 @0\n out[gid.x] = 1 }";
/// let program: Program = text.parse()?;
/// assert!(program.validated().is_ok());
/// assert_eq!(program.to_string().parse::<Program>()?, program);
/// # Ok::<(), vyre_foundation::Report>(())
/// ```
impl FromStr for Program {
    type Err = Report;

    fn from_str(text: &str) -> Result<Program, Report> {
        crate::text::parse("program", text)
    }
}

/// The text form.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_program(f, self)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
