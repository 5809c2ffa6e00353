//! Backends that take one flat input and give one flat output, and one that becomes another after some dispatches.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use vyre_driver::VyreBackend;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_foundation::wire::{from_wire, to_wire};

/// What can be said about a dispatch of a [`WgslBackend`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConformDispatchConfig {
    /// Workgroups along x, y and z; what the program and its lengths make it if nothing is said.
    pub grid: Option<[u32; 3]>,
    /// Another workgroup size than the declared one, where the program cannot tell.
    pub workgroup_size: Option<[u32; 3]>,
}

impl ConformDispatchConfig {
    fn dispatch(&self) -> DispatchConfig {
        DispatchConfig { grid_override: self.grid, workgroup_override: self.workgroup_size, ..DispatchConfig::default() }
    }
}

/// One dispatch as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExecutionModel {
    /// The text of a shader.
    Wgsl {
        /// The text.
        source: String,
        /// Its input.
        input: Vec<u8>,
        /// Bytes of its output.
        output_size: usize,
        /// What is said about it.
        config: ConformDispatchConfig,
    },
    /// A program in its wire form.
    Program {
        /// The bytes of the program.
        wire: Vec<u8>,
        /// All its inputs, one after the other in the order of its interface.
        input: Vec<u8>,
        /// Bytes of all its outputs together.
        output_size: usize,
        /// What is said about it.
        config: ConformDispatchConfig,
    },
}

/// A backend of which one knows only that bytes go in and bytes come out. What goes wrong is a text, with what to do about it.
pub trait WgslBackend {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Runs a shader.
    fn dispatch(&self, wgsl: &str, input: &[u8], output_size: usize, config: ConformDispatchConfig) -> Result<Vec<u8>, String>;

    /// Runs a program in its wire form.
    fn dispatch_program(
        &self,
        program: &[u8],
        input: &[u8],
        output_size: usize,
        config: ConformDispatchConfig,
    ) -> Result<Vec<u8>, String>;

    /// Runs a shader on several inputs; the first failure ends it.
    fn dispatch_batch(
        &self,
        wgsl: &str,
        inputs: &[Vec<u8>],
        output_sizes: &[usize],
        config: ConformDispatchConfig,
    ) -> Result<Vec<Vec<u8>>, String> {
        if inputs.len() != output_sizes.len() {
            return Err(format!(
                "there are {} inputs and {} output sizes. Fix: give one size per input",
                inputs.len(),
                output_sizes.len()
            ));
        }
        let one = |(input, size): (&Vec<u8>, &usize)| self.dispatch(wgsl, input, *size, config.clone());
        inputs.iter().zip(output_sizes).map(one).collect()
    }

    /// Runs whatever it is.
    fn execute(&self, model: &ExecutionModel) -> Result<Vec<u8>, String> {
        match model {
            ExecutionModel::Wgsl { source, input, output_size, config } => {
                self.dispatch(source, input, *output_size, config.clone())
            }
            ExecutionModel::Program { wire, input, output_size, config } => {
                self.dispatch_program(wire, input, *output_size, config.clone())
            }
        }
    }
}

/// One backend for so many dispatches, another for those that follow. Each call of a method is one dispatch.
pub struct SwapBackend<'a> {
    backends: [&'a dyn WgslBackend; 2],
    swap_after: usize,
    made: AtomicUsize,
}

impl<'a> SwapBackend<'a> {
    /// Dispatches `0..swap_after` go to the first, all others to the second.
    #[must_use]
    pub fn new(backend_a: &'a dyn WgslBackend, backend_b: &'a dyn WgslBackend, swap_after: usize) -> Self {
        SwapBackend { backends: [backend_a, backend_b], swap_after, made: AtomicUsize::new(0) }
    }

    fn next(&self) -> &'a dyn WgslBackend {
        // Stops counting at the end instead of beginning again with the first backend.
        let counted = self.made.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |made| made.checked_add(1));
        let (Ok(made) | Err(made)) = counted;
        self.backends[usize::from(made >= self.swap_after)]
    }
}

impl fmt::Debug for SwapBackend<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.backends.map(WgslBackend::name);
        f.debug_struct("SwapBackend").field("a", &a).field("b", &b).field("swap_after", &self.swap_after).finish()
    }
}

impl WgslBackend for SwapBackend<'_> {
    fn name(&self) -> &str {
        "swap"
    }

    fn dispatch(&self, wgsl: &str, input: &[u8], output_size: usize, config: ConformDispatchConfig) -> Result<Vec<u8>, String> {
        self.next().dispatch(wgsl, input, output_size, config)
    }

    fn dispatch_program(
        &self,
        program: &[u8],
        input: &[u8],
        output_size: usize,
        config: ConformDispatchConfig,
    ) -> Result<Vec<u8>, String> {
        self.next().dispatch_program(program, input, output_size, config)
    }

    fn dispatch_batch(
        &self,
        wgsl: &str,
        inputs: &[Vec<u8>],
        output_sizes: &[usize],
        config: ConformDispatchConfig,
    ) -> Result<Vec<Vec<u8>>, String> {
        self.next().dispatch_batch(wgsl, inputs, output_sizes, config)
    }

    fn execute(&self, model: &ExecutionModel) -> Result<Vec<u8>, String> {
        self.next().execute(model)
    }
}

/// Dispatches that [`with_backend_swap`] makes at most.
pub const MAX_DISPATCHES: usize = 4096;

/// Runs a program `swap_after` times on the first backend and then once on the second; every time it must give what both give by
/// themselves. Gives those bytes.
///
/// Nothing stays on a device between these dispatches; sequences whose data do are the business of [`super::every_assignment`].
///
/// # Errors
///
/// A text: a backend failed, outputs differ, or there would be more than [`MAX_DISPATCHES`].
pub fn with_backend_swap(
    backend_a: &dyn WgslBackend,
    backend_b: &dyn WgslBackend,
    program: &Program,
    input: &[u8],
    output_size: usize,
    config: ConformDispatchConfig,
    swap_after: usize,
) -> Result<Vec<u8>, String> {
    if swap_after >= MAX_DISPATCHES {
        return Err(format!("a swap after {swap_after} dispatches is too late. Fix: swap before number {MAX_DISPATCHES}"));
    }
    let wire = to_wire(program).map_err(|error| format!("the program has no wire form: {error}"))?;
    let swapping = SwapBackend::new(backend_a, backend_b, swap_after);
    let mut first = None;
    for n in 0..=swap_after {
        let found = swapping
            .dispatch_program(&wire, input, output_size, config.clone())
            .map_err(|error| format!("dispatch {n}, with a swap after {swap_after}: {error}"))?;
        check_size(swapping.backends[usize::from(n == swap_after)], &found, output_size)?;
        same(&format!("dispatch {n}, with a swap after {swap_after}"), &found, first.get_or_insert_with(|| found.clone()))?;
    }
    let mixed = first.unwrap_or_default();
    for backend in [backend_a, backend_b] {
        let alone = backend
            .dispatch_program(&wire, input, output_size, config.clone())
            .map_err(|error| format!("`{}` by itself: {error}", backend.name()))?;
        check_size(backend, &alone, output_size)?;
        same(&format!("`{}` by itself", backend.name()), &alone, &mixed)?;
    }
    Ok(mixed)
}

fn check_size(backend: &dyn WgslBackend, found: &[u8], expected: usize) -> Result<(), String> {
    match found.len() == expected {
        true => Ok(()),
        false => Err(format!("`{}` gives {} bytes, and {expected} were asked for", backend.name(), found.len())),
    }
}

fn same(what: &str, found: &[u8], first: &[u8]) -> Result<(), String> {
    match found.iter().zip(first).position(|(found, first)| found != first) {
        None if found.len() == first.len() => Ok(()),
        at => Err(format!(
            "{what} gives other bytes than the first dispatch, from byte {}. Fix: make the backends agree before data go from one to \
             the other",
            at.unwrap_or(found.len().min(first.len()))
        )),
    }
}

/// Any backend as a [`WgslBackend`] that takes programs.
pub struct ProgramBackend<'a>(pub &'a dyn VyreBackend);

impl WgslBackend for ProgramBackend<'_> {
    fn name(&self) -> &str {
        self.0.id()
    }

    fn dispatch(&self, _: &str, _: &[u8], _: usize, _: ConformDispatchConfig) -> Result<Vec<u8>, String> {
        Err(format!("the backend `{}` takes programs and no WGSL. Fix: call `dispatch_program`", self.0.id()))
    }

    /// Inputs with a declared length take that much of the flat input each; one without takes what is left.
    fn dispatch_program(
        &self,
        program: &[u8],
        input: &[u8],
        output_size: usize,
        config: ConformDispatchConfig,
    ) -> Result<Vec<u8>, String> {
        let program = from_wire(program).map_err(|error| error.to_string())?;
        let inputs = cut(&program, input)?;
        let outputs = self.0.dispatch_borrowed(&program, &inputs, &config.dispatch()).map_err(|error| error.to_string())?;
        let flat = outputs.concat();
        check_size(self, &flat, output_size)?;
        Ok(flat)
    }
}

/// A backend that takes programs, together with a function that runs the text of shaders on the same device: what
/// [`WgslBackend::dispatch`] is called with.
pub struct ShaderBackend<'a, F> {
    /// What runs programs.
    pub programs: ProgramBackend<'a>,
    /// What runs shaders.
    pub shaders: F,
}

impl<F> WgslBackend for ShaderBackend<'_, F>
where
    F: Fn(&str, &[u8], usize, ConformDispatchConfig) -> Result<Vec<u8>, String>,
{
    fn name(&self) -> &str {
        self.programs.name()
    }

    fn dispatch(&self, wgsl: &str, input: &[u8], output_size: usize, config: ConformDispatchConfig) -> Result<Vec<u8>, String> {
        let output = (self.shaders)(wgsl, input, output_size, config)?;
        check_size(self, &output, output_size)?;
        Ok(output)
    }

    fn dispatch_program(
        &self,
        program: &[u8],
        input: &[u8],
        output_size: usize,
        config: ConformDispatchConfig,
    ) -> Result<Vec<u8>, String> {
        self.programs.dispatch_program(program, input, output_size, config)
    }
}

/// The parts of a flat input.
fn cut<'a>(program: &Program, mut input: &'a [u8]) -> Result<Vec<&'a [u8]>, String> {
    let kernel = program.validated().map_err(ToString::to_string)?.kernel();
    let whole = input.len();
    let declared = |i: usize| {
        let buffer = &kernel.buffers[i];
        buffer.count.map(|count| (u64::from(count) * buffer.element.bits().unwrap_or(0)).div_ceil(8))
    };
    let inputs = &program.interface().inputs;
    let fixed: u64 = inputs.iter().filter_map(|i| declared(*i)).sum();
    let open = inputs.iter().filter(|i| declared(**i).is_none()).count();
    let rest = (whole as u64).checked_sub(fixed);
    let Some(rest) = rest.filter(|rest| open == 1 || *rest == 0) else {
        return Err(format!(
            "{whole} bytes cannot be cut into the inputs of the program: {fixed} bytes are declared, and {open} inputs have no \
             declared length. Fix: declare all lengths but one"
        ));
    };
    let mut parts = Vec::with_capacity(inputs.len());
    for i in inputs {
        // The lengths add up to that of the input, unless several are open and nothing is left for them.
        let length = declared(*i).unwrap_or(rest) as usize;
        let (part, others) = input.split_at(length);
        parts.push(part);
        input = others;
    }
    Ok(parts)
}
