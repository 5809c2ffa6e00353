//! Dispatches as people write them: buffers by name, values by type.
//!
//! [`Dispatch`] puts one together. What it is run on is its second parameter: a program, which [`Dispatch::run`] gives to a backend, or
//! a [`Pipeline`], which has all forms. Everything that can be wrong with either is found in [`Dispatch::prepare`], before anything runs.

mod buffer;
mod handle;
mod pipeline;
mod ready;
mod results;
mod running;

pub use buffer::{Buffer, Values};
pub use handle::Backend;
pub use pipeline::Pipeline;
pub use results::{Results, Timing};
pub use running::Running;

use crate::backend::{BackendError, DispatchConfig, VyreBackend};
use crate::specialization::SpecValue;
use buffer::Part;
use bytemuck::{Pod, cast_slice};
use std::any::TypeId;
use std::borrow::Cow;
use std::time::Duration;
use vyre_foundation::Diagnostic;
use vyre_foundation::ir::{DataType, Name, Program, Scalar, ValueType};
use vyre_spec::ErrorCode;

/// A dispatch that is being put together.
///
/// Every mistake, in names, types, lengths or launch, is found before anything runs, and names the buffer.
///
/// ```
/// # use vyre_driver::{Backend, BackendError, Dispatch};
/// # fn example(program: &vyre_foundation::ir::Program, backend: &Backend) -> Result<(), BackendError> {
/// let results = Dispatch::new(program).input("a", &[1u32, 2, 3]).output::<u32>("out").grid([1, 1, 1]).run(backend)?;
/// let out: Vec<u32> = results.get("out")?;
///
/// // Compiled once, run many times; `run_into`, `run_timed` and `run_async` are other forms of `run`.
/// let pipeline = Dispatch::new(program).grid([1, 1, 1]).compile(backend)?;
/// for n in 0..10u32 {
///     let out: Vec<u32> = pipeline.dispatch().input("a", &[n]).run()?.get("out")?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a dispatch does nothing until it is run"]
#[derive(Clone, Debug)]
pub struct Dispatch<'a, On = ()> {
    program: &'a Program,
    on: On,
    given: Vec<Given<'a>>,
    outputs: Vec<(Name, Type)>,
    config: DispatchConfig,
    over: Option<Elements>,
}

/// What a launch goes over.
#[derive(Clone, Debug)]
enum Elements {
    Of(String),
    Count(u64),
}

/// What stands for a buffer.
#[derive(Clone, Debug)]
struct Given<'a> {
    name: Name,
    value: Value<'a>,
    /// `None` for bytes.
    ty: Option<Type>,
}

#[derive(Clone, Debug)]
enum Value<'a> {
    Host(Cow<'a, [u8]>),
    Resident(Part),
}

/// A type of values as far as it matters.
#[derive(Clone, Copy, Debug)]
struct Type {
    size: usize,
    is_float: bool,
}

impl Type {
    fn of<T: Pod>() -> Self {
        let floats = [
            TypeId::of::<f32>(),
            TypeId::of::<[f32; 2]>(),
            TypeId::of::<[f32; 3]>(),
            TypeId::of::<[f32; 4]>(),
            TypeId::of::<f64>(),
        ];
        Type { size: size_of::<T>(), is_float: floats.contains(&TypeId::of::<T>()) }
    }

    /// Why `what` for a buffer of these elements cannot be of this type. Integers may stand for the bits of anything; floats that are
    /// put into integers, or are read from them, would be other numbers.
    fn mistake(self, what: &str, name: &str, element: &DataType) -> Option<Diagnostic> {
        let bytes = element.bits().unwrap_or(0).div_ceil(8);
        let part = match element.value_type() {
            // The parts of a vector may also be given one by one.
            Some(ValueType::Vector(scalar, _)) => u64::from(scalar.bytes()),
            Some(ValueType::Scalar(_)) | None => bytes,
        };
        if self.size as u64 != bytes && self.size as u64 != part {
            let message = format!("the {what} for `{name}` have {} bytes each, and its elements are {element}", self.size);
            let mistake = Diagnostic::new(ErrorCode::E0704, message);
            return Some(mistake.expected(format!("a type of {bytes} bytes")).found(format!("{} bytes", self.size)));
        }
        let takes_floats = match element.value_type() {
            Some(ValueType::Scalar(scalar) | ValueType::Vector(scalar, _)) => match scalar {
                Scalar::F32 | Scalar::F64 => true,
                Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => false,
            },
            None => false,
        };
        if self.is_float && !takes_floats {
            let message = format!("the {what} for `{name}` are floats, and its elements are {element}");
            let mistake = Diagnostic::new(ErrorCode::E0714, message).expected("integers").found("floats");
            return Some(mistake.help("for the bits of floats, give them as integers (`f32::to_bits`)"));
        }
        None
    }
}

impl<'a> Dispatch<'a> {
    /// A dispatch of this program, nothing said yet.
    pub fn new(program: &'a Program) -> Self {
        Dispatch::of(program, ())
    }

    /// Checks all of it and runs it.
    ///
    /// # Errors
    ///
    /// If it is wrong, or the backend cannot run it.
    pub fn run(&self, backend: &dyn VyreBackend) -> Result<Results, BackendError> {
        let program = self.config.specialization.apply(self.program)?;
        self.prepare(&program, &self.config.without_specialization())?.run(backend)
    }

    /// Compiles the program with what is said so far: values of constants, workgroup size, and whatever every later dispatch is to begin
    /// with. Inputs are not looked at.
    ///
    /// # Errors
    ///
    /// If the program is wrong, or the backend cannot compile it.
    pub fn compile(&self, backend: &Backend) -> Result<Pipeline, BackendError> {
        Pipeline::new(backend, self.program, &self.config)
    }
}

impl<'a, On> Dispatch<'a, On> {
    fn of(program: &'a Program, on: On) -> Self {
        Dispatch { program, on, given: Vec::new(), outputs: Vec::new(), config: DispatchConfig::default(), over: None }
    }

    fn give(mut self, name: impl Into<Name>, value: Value<'a>, ty: Option<Type>) -> Self {
        self.given.push(Given { name: name.into(), value, ty });
        self
    }

    /// The values of an input, of a type as wide as the buffer's elements. Integers may stand for the bits of anything, floats only
    /// for floats.
    pub fn input<T: Pod>(self, name: impl Into<Name>, values: &'a [T]) -> Self {
        self.give(name, Value::Host(Cow::Borrowed(cast_slice(values))), Some(Type::of::<T>()))
    }

    /// The bytes of an input.
    pub fn input_bytes(self, name: impl Into<Name>, bytes: impl Into<Vec<u8>>) -> Self {
        self.give(name, Value::Host(Cow::Owned(bytes.into())), None)
    }

    /// Resident memory for an input or an output. What the program writes into it stays there and is not among the results.
    pub fn buffer<T: Pod>(self, name: impl Into<Name>, buffer: &Buffer<T>) -> Self {
        self.give(name, Value::Resident(buffer.part().clone()), Some(Type::of::<T>()))
    }

    /// An input that may be either.
    pub fn values<T: Pod>(self, name: impl Into<Name>, values: impl Into<Values<'a, T>>) -> Self {
        match values.into() {
            Values::Host(values) => self.input(name, values),
            Values::Resident(buffer) => self.buffer(name, buffer),
        }
    }

    /// An output that will be read as this type; the dispatch is refused if it cannot be.
    pub fn output<T: Pod>(mut self, name: impl Into<Name>) -> Self {
        self.outputs.push((name.into(), Type::of::<T>()));
        self
    }

    /// Elements of an output that declares no count.
    pub fn output_len(mut self, name: &str, count: u32) -> Self {
        self.config.output_counts.insert(name.into(), count);
        self
    }

    /// Workgroups along x, y and z.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.config.grid_override = Some(grid);
        self.over = None;
        self
    }

    /// One invocation per element of a buffer, for a 1-D program: as many workgroups as cover it.
    pub fn over(mut self, name: &str) -> Self {
        self.over = Some(Elements::Of(name.into()));
        self
    }

    /// At least so many invocations, for a 1-D program: as many workgroups as it takes.
    pub fn invocations(mut self, count: u64) -> Self {
        self.over = Some(Elements::Count(count));
        self
    }

    /// Another workgroup size, where results cannot depend on it.
    pub fn workgroup(mut self, size: [u32; 3]) -> Self {
        self.config.workgroup_override = Some(size);
        self
    }

    /// The value of a specialization constant: `3u32`, `-1i32`, `0.5f32`, `true`, `DataType::F16`.
    pub fn constant(mut self, name: &str, value: impl Into<SpecValue>) -> Self {
        self.config.specialization.insert(name, value.into());
        self
    }

    /// When to give up.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.config.timeout = Some(limit);
        self
    }

    /// Refuse the program if its bytes are not proven the same under every schedule.
    pub fn require_deterministic(mut self) -> Self {
        self.config.require_deterministic = Some(true);
        self
    }

    /// Everything else that can be said.
    pub fn config(mut self, change: impl FnOnce(&mut DispatchConfig)) -> Self {
        change(&mut self.config);
        self
    }
}
