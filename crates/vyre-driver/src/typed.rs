//! One dispatch as people write it: buffers by name, values by type.

use crate::backend::{BackendError, DispatchConfig, VyreBackend, expect_outputs};
use crate::launch::{Planned, require_determinism};
use crate::observability::{self, total};
use crate::specialization::SpecValue;
use bytemuck::{Pod, pod_collect_to_vec};
use std::any::TypeId;
use std::collections::HashMap;
use std::time::Duration;
use vyre_foundation::diagnostic::Mistakes;
use vyre_foundation::ir::{DataType, Program, Scalar, ValueType};
use vyre_foundation::kernel::Buffer;
use vyre_foundation::launch::{Over, check_inputs, grid_over, inputs_by_name, plan};
use vyre_foundation::text::suggest::nearest;
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

/// A dispatch that is being put together.
///
/// Every mistake, in names, types, lengths or launch, is found before anything runs, and names the buffer.
///
/// ```
/// # use vyre_driver::{Dispatch, VyreBackend, BackendError};
/// # fn example(program: &vyre_foundation::ir::Program, backend: &dyn VyreBackend) -> Result<(), BackendError> {
/// let results = Dispatch::new(program).input("a", &[1u32, 2, 3]).output::<u32>("out").grid([1, 1, 1]).run(backend)?;
/// let out: Vec<u32> = results.get("out")?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a dispatch does nothing until it is run"]
#[derive(Clone, Debug)]
pub struct Dispatch<'a> {
    program: &'a Program,
    inputs: Vec<(String, Vec<u8>, Option<Given>)>,
    outputs: Vec<(String, Given)>,
    config: DispatchConfig,
    over: Option<Elements>,
}

/// What a launch goes over.
#[derive(Clone, Debug)]
enum Elements {
    Of(String),
    Count(u64),
}

/// The outputs of a dispatch, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    outputs: Vec<(String, DataType, Vec<u8>)>,
}

/// A type of values as far as it matters.
#[derive(Clone, Copy, Debug)]
struct Given {
    size: usize,
    is_float: bool,
}

impl Given {
    fn of<T: Pod>() -> Self {
        let floats = [
            TypeId::of::<f32>(),
            TypeId::of::<[f32; 2]>(),
            TypeId::of::<[f32; 3]>(),
            TypeId::of::<[f32; 4]>(),
            TypeId::of::<f64>(),
        ];
        Given { size: size_of::<T>(), is_float: floats.contains(&TypeId::of::<T>()) }
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
        Dispatch { program, inputs: Vec::new(), outputs: Vec::new(), config: DispatchConfig::default(), over: None }
    }

    /// The values of an input, of a type as wide as the buffer's elements. Integers may stand for the bits of anything, floats only
    /// for floats.
    pub fn input<T: Pod>(mut self, name: &str, values: &[T]) -> Self {
        self.inputs.push((name.into(), pod_collect_to_vec(values), Some(Given::of::<T>())));
        self
    }

    /// The bytes of an input.
    pub fn input_bytes(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.inputs.push((name.into(), bytes.into(), None));
        self
    }

    /// An output that will be read as this type; the dispatch is refused if it cannot be.
    pub fn output<T: Pod>(mut self, name: &str) -> Self {
        self.outputs.push((name.into(), Given::of::<T>()));
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

    /// Another workgroup size, where the program cannot tell.
    pub fn workgroup(mut self, size: [u32; 3]) -> Self {
        self.config.workgroup_override = Some(size);
        self
    }

    /// The value of a specialization constant.
    pub fn constant(mut self, name: &str, value: SpecValue) -> Self {
        self.config.specialization.insert(name, value);
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

    /// Checks all of it and runs it.
    pub fn run(&self, backend: &dyn VyreBackend) -> Result<Results, BackendError> {
        let program = self.config.specialization.apply(self.program)?;
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        let outputs = &program.interface().outputs;
        let by_name: HashMap<&str, &Buffer> = kernel.buffers.iter().map(|buffer| (buffer.name.as_str(), buffer)).collect();
        let mut mistakes = Mistakes::default();
        let typed = self.inputs.iter().filter_map(|(name, _, given)| Some((name, (*given)?, "values")));
        for (name, given, what) in typed.chain(self.outputs.iter().map(|(name, given)| (name, *given, "results"))) {
            let buffer = by_name.get(name.as_str());
            mistakes.extend(buffer.and_then(|buffer| given.mistake(what, name, &buffer.element)));
        }
        let known: Vec<&str> = outputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
        let is_output = |name: &str| by_name.get(name).is_some_and(|buffer| buffer.access.is_output());
        let unknown = self.outputs.iter().filter(|(name, _)| !is_output(name));
        mistakes.extend(unknown.map(|(name, _)| no_output(&format!("the program has no output `{name}`"), name, &known)));
        let named: Vec<(&str, &[u8])> = self.inputs.iter().map(|(name, bytes, _)| (name.as_str(), bytes.as_slice())).collect();
        let inputs = inputs_by_name(&program, &named).unwrap_or_else(|report| {
            mistakes.append(report.into());
            Vec::new()
        });
        if !mistakes.is_empty() {
            return Err(Report::about(&program, mistakes).into());
        }
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        check_inputs(&program, &sizes)?;
        let mut config = self.config.without_specialization();
        if let Some(over) = &self.over {
            let over = match over {
                Elements::Of(name) => Over::Buffer(name),
                Elements::Count(count) => Over::Invocations(*count),
            };
            config.grid_override = Some(grid_over(&program, &sizes, &config.launch(), over)?);
        }
        let launch = plan(&program, &sizes, &config.launch())?;
        require_determinism(&program, Planned::Launch(&launch, &inputs), &config)?;
        if let Some(limit) = self.config.timeout.filter(Duration::is_zero) {
            return Err(BackendError::Timeout { limit });
        }
        let counters = observability::of_backend(backend.id());
        let bytes = counters.dispatch(&config, total(&inputs), || backend.dispatch_borrowed(&program, &inputs, &config))?;
        expect_outputs(backend, outputs.len(), bytes.len())?;
        let mut results = Vec::with_capacity(bytes.len());
        for (i, bytes) in outputs.iter().zip(bytes) {
            let (expected, found) = (launch.bytes[*i], bytes.len() as u64);
            if expected != found {
                return Err(BackendError::ShortRead { expected, found });
            }
            results.push((kernel.buffers[*i].name.to_string(), kernel.buffers[*i].element.clone(), bytes));
        }
        Ok(Results { outputs: results })
    }
}

fn no_output(message: &str, name: &str, known: &[&str]) -> Diagnostic {
    let mistake = Diagnostic::new(ErrorCode::E0702, message).found(name);
    match (nearest(name, known.iter().copied()), known) {
        (Some(close), _) => mistake.expected(format!("one of {}", known.join(", "))).help(format!("did you mean `{close}`?")),
        (None, []) => mistake.help("it gives no outputs"),
        (None, known) => mistake.expected(format!("one of {}", known.join(", "))),
    }
}

impl Results {
    fn find(&self, name: &str) -> Result<(&DataType, &[u8]), BackendError> {
        let found = self.outputs.iter().find(|(known, _, _)| known == name);
        found.map(|(_, element, bytes)| (element, bytes.as_slice())).ok_or_else(|| {
            let known: Vec<&str> = self.outputs.iter().map(|(name, _, _)| name.as_str()).collect();
            Report::single(no_output(&format!("there is no output `{name}`"), name, &known)).into()
        })
    }

    /// The bytes of an output.
    pub fn bytes(&self, name: &str) -> Result<&[u8], BackendError> {
        Ok(self.find(name)?.1)
    }

    /// The values of an output, of a type as wide as the buffer's elements.
    pub fn get<T: Pod>(&self, name: &str) -> Result<Vec<T>, BackendError> {
        let (element, bytes) = self.find(name)?;
        match Given::of::<T>().mistake("results", name, element) {
            Some(mistake) => Err(Report::single(mistake).into()),
            None => Ok(pod_collect_to_vec(bytes)),
        }
    }

    /// Names and bytes of all outputs, in the order of their bindings.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.outputs.iter().map(|(name, _, bytes)| (name.as_str(), bytes.as_slice()))
    }
}
