//! Declarations of buffers.

use super::name::Name;
use std::fmt;
use vyre_spec::DataType;

/// Who may do what with a buffer, and whether it is an input, an output or scratch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Input storage that no invocation writes.
    Read,
    /// Storage that is input and output.
    ReadWrite,
    /// Output storage, zero at the start of the dispatch; can be read back.
    Output,
    /// Input that no invocation writes, meant to be small.
    Uniform,
    /// Memory of one workgroup, zero at its start and after each grid barrier.
    Workgroup,
}

impl Access {
    /// Every access mode.
    pub const ALL: [Access; 5] = [Access::Read, Access::ReadWrite, Access::Output, Access::Uniform, Access::Workgroup];

    /// Its spelling in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::ReadWrite => "read_write",
            Access::Output => "output",
            Access::Uniform => "uniform",
            Access::Workgroup => "workgroup",
        }
    }

    /// The access mode with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Access> {
        Access::ALL.into_iter().find(|access| access.name() == name)
    }

    /// Its number in the wire form.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// Whether the caller passes its bytes.
    #[must_use]
    pub const fn is_input(self) -> bool {
        matches!(self, Access::Read | Access::ReadWrite | Access::Uniform)
    }

    /// Whether the dispatch gives its bytes back.
    #[must_use]
    pub const fn is_output(self) -> bool {
        matches!(self, Access::ReadWrite | Access::Output)
    }

    /// Whether invocations may write it.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        matches!(self, Access::ReadWrite | Access::Output | Access::Workgroup)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number in a declaration: written out, or a `u32` specialization constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// This number.
    Lit(u32),
    /// The value of this constant.
    Const(Name),
}

impl From<u32> for Size {
    fn from(value: u32) -> Self {
        Size::Lit(value)
    }
}

impl From<&str> for Size {
    fn from(name: &str) -> Self {
        Size::Const(name.into())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Lit(value) => value.fmt(f),
            Size::Const(name) => name.fmt(f),
        }
    }
}

/// The element type in a declaration: written out, or a type constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// This type.
    Type(DataType),
    /// The value of this constant.
    Const(Name),
}

impl From<DataType> for Element {
    fn from(data_type: DataType) -> Self {
        Element::Type(data_type)
    }
}

impl From<&str> for Element {
    fn from(name: &str) -> Self {
        Element::Const(name.into())
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Type(data_type) => data_type.fmt(f),
            Element::Const(name) => name.fmt(f),
        }
    }
}

/// One buffer of a program.
///
/// Storage and uniform buffers have a binding number, which alone orders them in every list of inputs and outputs. Workgroup
/// buffers have none, and must have a count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BufferDecl {
    /// The name, unique among buffers, constants and variables.
    pub name: Name,
    /// What may be done with it.
    pub access: Access,
    /// The type of its elements.
    pub element: Element,
    /// How many elements; `None` means as many as the caller's bytes hold.
    pub count: Option<Size>,
    /// The binding number; `None` for workgroup buffers.
    pub binding: Option<u32>,
}

impl BufferDecl {
    fn bound(name: impl Into<Name>, binding: u32, element: impl Into<Element>, access: Access) -> Self {
        BufferDecl { name: name.into(), access, element: element.into(), count: None, binding: Some(binding) }
    }

    /// An input that is only read.
    #[must_use]
    pub fn read(name: impl Into<Name>, binding: u32, element: impl Into<Element>) -> Self {
        BufferDecl::bound(name, binding, element, Access::Read)
    }

    /// An input that is changed and given back.
    #[must_use]
    pub fn read_write(name: impl Into<Name>, binding: u32, element: impl Into<Element>) -> Self {
        BufferDecl::bound(name, binding, element, Access::ReadWrite)
    }

    /// An output, zero at the start.
    #[must_use]
    pub fn output(name: impl Into<Name>, binding: u32, element: impl Into<Element>) -> Self {
        BufferDecl::bound(name, binding, element, Access::Output)
    }

    /// A small input that is only read.
    #[must_use]
    pub fn uniform(name: impl Into<Name>, binding: u32, element: impl Into<Element>) -> Self {
        BufferDecl::bound(name, binding, element, Access::Uniform)
    }

    /// Memory shared by the invocations of one workgroup; give it a count.
    #[must_use]
    pub fn workgroup(name: impl Into<Name>, element: impl Into<Element>) -> Self {
        BufferDecl { name: name.into(), access: Access::Workgroup, element: element.into(), count: None, binding: None }
    }

    /// The same buffer with exactly this many elements.
    #[must_use]
    pub fn with_count(mut self, count: impl Into<Size>) -> Self {
        self.count = Some(count.into());
        self
    }
}
