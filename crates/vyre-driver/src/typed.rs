//! One dispatch as people write it: buffers by name, values by type.

use crate::backend::{BackendError, DispatchConfig, VyreBackend};
use crate::specialization::SpecValue;
use bytemuck::{Pod, pod_collect_to_vec};
use std::time::Duration;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::{check_inputs, inputs_by_name, plan};
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::{ErrorCode, Storage};

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
    inputs: Vec<(String, Vec<u8>, Option<usize>)>,
    outputs: Vec<(String, usize)>,
    config: DispatchConfig,
}

/// The outputs of a dispatch, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    outputs: Vec<(String, Vec<u8>)>,
}

impl<'a> Dispatch<'a> {
    /// A dispatch of this program, nothing said yet.
    pub fn new(program: &'a Program) -> Self {
        Dispatch { program, inputs: Vec::new(), outputs: Vec::new(), config: DispatchConfig::default() }
    }

    /// The values of an input, of a type as wide as the buffer's elements.
    pub fn input<T: Pod>(mut self, name: &str, values: &[T]) -> Self {
        self.inputs.push((name.into(), pod_collect_to_vec(values), Some(size_of::<T>())));
        self
    }

    /// The bytes of an input.
    pub fn input_bytes(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.inputs.push((name.into(), bytes.into(), None));
        self
    }

    /// An output that will be read as this type; the dispatch is refused if it cannot be.
    pub fn output<T: Pod>(mut self, name: &str) -> Self {
        self.outputs.push((name.into(), size_of::<T>()));
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
        let mut mistakes = Vec::new();
        let typed = self.inputs.iter().filter_map(|(name, _, size)| Some((name, (*size)?, "values")));
        for (name, size, what) in typed.chain(self.outputs.iter().map(|(name, size)| (name, *size, "results"))) {
            let Some(buffer) = kernel.buffers.iter().find(|buffer| buffer.name == **name) else { continue };
            let bits = buffer.element.bits().unwrap_or(0);
            // Narrow and vector elements may also be given by their parts.
            let fits = match buffer.element.storage() {
                Storage::Computed(value) => size as u32 == value.bytes() || size as u32 * 8 == part_bits(value),
                Storage::Converted(_) | Storage::LoadOnly(_) | Storage::Described => size as u64 * 8 == bits.max(8),
            };
            if !fits {
                mistakes.push(
                    Diagnostic::new(
                        ErrorCode::E0704,
                        format!("the {what} for `{name}` have {size} bytes each, and its elements are {}", buffer.element),
                    )
                    .expected(format!("a type of {} bytes", bits.div_ceil(8)))
                    .found(format!("{size} bytes")),
                );
            }
        }
        let outputs = &program.interface().outputs;
        for (name, _) in &self.outputs {
            if !outputs.iter().any(|i| kernel.buffers[*i].name == **name) {
                let known: Vec<&str> = outputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
                mistakes.push(
                    Diagnostic::new(ErrorCode::E0702, format!("the program has no output `{name}`"))
                        .found(name)
                        .expected(format!("one of {}", known.join(", "))),
                );
            }
        }
        if !mistakes.is_empty() {
            return Err(Report::about(&program, mistakes).into());
        }
        let named: Vec<(&str, &[u8])> = self.inputs.iter().map(|(name, bytes, _)| (name.as_str(), bytes.as_slice())).collect();
        let inputs = inputs_by_name(&program, &named)?;
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        check_inputs(&program, &sizes)?;
        plan(&program, &sizes, &self.config.launch())?;
        let config = DispatchConfig { specialization: Default::default(), ..self.config.clone() };
        let bytes = backend.dispatch_borrowed(&program, &inputs, &config)?;
        if bytes.len() != outputs.len() {
            return Err(BackendError::ShortRead { expected: outputs.len() as u64, found: bytes.len() as u64 });
        }
        let names = outputs.iter().map(|i| kernel.buffers[*i].name.to_string());
        Ok(Results { outputs: names.zip(bytes).collect() })
    }
}

fn part_bits(value: vyre_spec::ValueType) -> u32 {
    match value {
        vyre_spec::ValueType::Scalar(scalar) | vyre_spec::ValueType::Vector(scalar, _) => 8 * scalar.bytes(),
    }
}

impl Results {
    /// The bytes of an output.
    pub fn bytes(&self, name: &str) -> Result<&[u8], BackendError> {
        let found = self.outputs.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.as_slice()).ok_or_else(|| {
            let known: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
            let mistake = Diagnostic::new(ErrorCode::E0702, format!("there is no output `{name}`"));
            Report::single(mistake.found(name).expected(format!("one of {}", known.join(", ")))).into()
        })
    }

    /// The values of an output.
    pub fn get<T: Pod>(&self, name: &str) -> Result<Vec<T>, BackendError> {
        let bytes = self.bytes(name)?;
        let size = size_of::<T>();
        if size == 0 || bytes.len() % size != 0 {
            let mistake =
                Diagnostic::new(ErrorCode::E0704, format!("`{name}` has {} bytes, which are no whole values", bytes.len()));
            return Err(Report::single(mistake.expected(format!("a multiple of {size} bytes")).found(bytes.len())).into());
        }
        Ok(pod_collect_to_vec(bytes))
    }

    /// Names and bytes of all outputs, in the order of their bindings.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.outputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }
}
