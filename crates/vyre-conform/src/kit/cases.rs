//! What the tests of the kit run, and what must come out.

use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, Resource, VyreBackend};
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::plan;
use vyre_foundation::text;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::subjects::Reference;
use vyre_worker::Failure;

pub(super) type Outcome = Result<Vec<Vec<u8>>, BackendError>;

/// A dispatch, and what the reference gives for it.
pub(super) struct Known {
    pub what: String,
    pub case: Case,
    pub expected: Outcome,
}

pub(super) fn program(source: &str) -> Program {
    text::parse("kit", source).unwrap_or_else(|report| panic!("{report}"))
}

pub(super) fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl Known {
    pub fn new(what: String, case: Case) -> Known {
        let expected = Reference::default().expected(&case).map_err(|failure| match failure {
            Failure::Trap { tag, invocation } => BackendError::Trap { tag, invocation },
            failure @ (Failure::Refused(_)
            | Failure::Unsupported(_)
            | Failure::OutOfFuel
            | Failure::Panicked(_)
            | Failure::Crashed(_)
            | Failure::Hung(_)
            | Failure::Device(_)
            | Failure::WildWrite { .. }
            | Failure::NotRun(_)
            | Failure::GivenUp(_)) => panic!("{what}: the reference does not run it: {failure}"),
        });
        Known { what, case, expected }
    }

    /// Compares what a backend gave. Says no if the backend does not have what the program needs.
    pub fn check(&self, form: &str, found: &Outcome) -> bool {
        if super::lacks(found).is_some() {
            return false;
        }
        assert!(
            *found == self.expected,
            "{} by {form} gives {}, and the reference {}\n{}",
            self.what,
            told(found),
            told(&self.expected),
            self.case.program
        );
        true
    }

    /// What a way to run into the caller's buffers gives. Their list stays where it is, and after a failure everything as it is.
    pub fn with_buffers(&self, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> Outcome {
        let mut buffers: OutputBuffers = self.expected.iter().flatten().map(|output| vec![0xA5; output.len() + 1]).collect();
        // One more than there are outputs.
        buffers.push(vec![0xA5; 3]);
        let before = buffers.clone();
        let places = |buffers: &OutputBuffers| -> Vec<*const u8> { buffers.iter().map(|buffer| buffer.as_ptr()).collect() };
        let (place, at) = (buffers.as_ptr(), places(&buffers));
        let result = call(&mut buffers);
        assert_eq!(buffers.as_ptr(), place, "{}: the list of buffers was replaced", self.what);
        match result {
            Ok(()) => Ok(buffers),
            Err(error) => {
                assert!(places(&buffers) == at && buffers == before, "{}: a failure changed the caller's buffers", self.what);
                Err(error)
            }
        }
    }
}

/// Enough of an outcome to see what is wrong.
fn told(outcome: &Outcome) -> String {
    const SHOWN: usize = 400;
    let whole = match outcome {
        Ok(outputs) => format!("{outputs:02x?}"),
        Err(error) => error.to_string(),
    };
    match whole.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// Kernels that a backend with a handful of ops can run, so that it too is tried in every form.
pub(super) fn simple() -> Vec<Known> {
    const TWO: &str = "program two {
  workgroup 4
  buffer a: read u32 @1
  buffer state: read_write u32 @0
  buffer out: output u32 @2
  if gid.x < len(out) {
    let x = a[gid.x] + gid.x
    state[gid.x] = state[gid.x] ^ x
    out[gid.x] = x & 0xffff
  }
}
";
    const EDGE: &str = "program edge {
  workgroup 3
  buffer a: read u32[4] @0
  buffer out: output u32 @1
  if a[gid.x] < a[gid.x + 1] { out[gid.x] = a[gid.x + 0xffff_ffff] } else { out[gid.x + 1] = len(out) - gid.x }
}
";
    let two = program(TWO);
    let known = |what: &str, case: Case| Known::new(format!("the kernel `{what}`"), case);
    let lengths = [0u32, 1, 3, 4, 5, 63, 64, 65, 1000];
    let mut all: Vec<Known> = lengths
        .iter()
        .map(|n| known(&format!("two, {n} elements"), Case::new(two.clone(), vec![words(0..*n), words((0..*n).rev())])))
        .collect();
    let mut edge = Case::new(program(EDGE), vec![words([5, 9, 9, 2])]);
    edge.config = DispatchConfig {
        grid_override: Some([3, 1, 1]),
        output_counts: [("out".to_string(), 7)].into(),
        ..DispatchConfig::default()
    };
    all.push(known("edge", edge));
    all
}

/// So many generated dispatches whose bytes do not depend on the order of invocations, of every preset in turn. `VYRE_KIT=N` takes N.
pub(super) fn generated(seed: u64, count: u64) -> Vec<Known> {
    let count = std::env::var("VYRE_KIT").ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    let one = |number: u64| {
        let preset = Preset::mixed(number);
        let dna = dna(seed, number);
        Known::new(format!("generated program {number} of {}", preset.name()), generate(preset, &dna).case(&dna))
    };
    (0..count).map(one).collect()
}

/// What the buffers of a dispatch begin with, by binding. What an output held before must not be seen, so it holds something.
pub(super) fn starts(case: &Case) -> Result<Vec<Vec<u8>>, BackendError> {
    let program = case.specialized()?;
    let launch = plan(&program, &case.input_sizes(), &case.config.launch())?;
    let mut inputs = case.inputs.iter();
    let start = |i: &usize| match program.buffers()[*i].access.is_input() {
        true => inputs.next().cloned().unwrap_or_default(),
        false => vec![0x55; launch.bytes[*i] as usize],
    };
    Ok(program.interface().bound.iter().map(start).collect())
}

/// The buffers of a dispatch as resources, those whose number `is_resident` accepts on the device.
pub(super) struct Bound {
    /// The program with its constants replaced.
    pub program: Program,
    pub resources: Vec<Resource>,
    /// By resource: what it held at first.
    pub before: Vec<Vec<u8>>,
}

impl Bound {
    pub fn new(backend: &dyn VyreBackend, case: &Case, is_resident: impl Fn(usize) -> bool) -> Result<Bound, BackendError> {
        let before = starts(case)?;
        let program = case.specialized()?;
        let mut resources = Vec::with_capacity(before.len());
        for (n, (i, bytes)) in program.interface().bound.iter().zip(&before).enumerate() {
            resources.push(match is_resident(n) {
                true => {
                    let resource = backend.allocate_resident(bytes.len())?;
                    backend.upload_resident(&resource, bytes)?;
                    resource
                }
                // Only a place for what comes back.
                false if !program.buffers()[*i].access.is_input() => Resource::Borrowed(Vec::new()),
                false => Resource::Borrowed(bytes.clone()),
            });
        }
        Ok(Bound { program, resources, before })
    }

    /// The outputs of a dispatch that returned these: what is resident is downloaded. After a failure nothing has changed.
    pub fn outputs(&self, backend: &dyn VyreBackend, returned: Outcome) -> Outcome {
        let resident = |resource: &Resource| matches!(resource, Resource::Resident(_));
        let mut returned = match returned {
            Ok(returned) => returned.into_iter(),
            Err(error) => {
                for (resource, before) in self.resources.iter().zip(&self.before).filter(|(resource, _)| resident(resource)) {
                    assert_eq!(backend.download_resident(resource)?, *before, "a failure changed resident data: {error}");
                }
                return Err(error);
            }
        };
        let mut outputs = Vec::new();
        for ((i, resource), before) in self.program.interface().bound.iter().zip(&self.resources).zip(&self.before) {
            match (self.program.buffers()[*i].access.is_output(), resource) {
                (true, Resource::Resident(_)) => outputs.push(backend.download_resident(resource)?),
                (true, Resource::Borrowed(_)) => outputs.extend(returned.next()),
                (false, Resource::Resident(_)) => {
                    assert_eq!(backend.download_resident(resource)?, *before, "an input was changed");
                }
                (false, Resource::Borrowed(_)) => {}
            }
        }
        assert_eq!(returned.next(), None, "something comes back for what is resident");
        Ok(outputs)
    }

    pub fn free(self, backend: &dyn VyreBackend) -> Result<(), BackendError> {
        let mut resident = self.resources.into_iter().filter(|resource| matches!(resource, Resource::Resident(_)));
        resident.try_for_each(|resource| backend.free_resident(resource))
    }
}

/// One dispatch on resources.
pub(super) fn on_resources(
    backend: &dyn VyreBackend,
    case: &Case,
    is_resident: impl Fn(usize) -> bool,
    call: impl FnOnce(&[Resource]) -> Outcome,
) -> Outcome {
    let bound = Bound::new(backend, case, is_resident)?;
    let outcome = bound.outputs(backend, call(&bound.resources));
    bound.free(backend)?;
    outcome
}
