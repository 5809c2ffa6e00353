//! Sequences that go from backend to backend: right ones, three kinds of wrong ones, and hand-overs that are not possible.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use vyre_conform::swap::{
    Assignments, HandOverError, MAX_STEPS, ProgramBackend, Relay, SwapError, SwapProblem, every_assignment,
};
use vyre_conform::{ConformDispatchConfig, ExecutionModel, SwapBackend, WgslBackend, with_backend_swap};
use vyre_driver::backend::registry::acquire;
use vyre_driver::backend::{BackendError, TimedDispatchResult};
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice, Method};
use vyre_driver::{DispatchConfig, Resource, VyreBackend, device};
use vyre_driver_reference as _;
use vyre_foundation::ir::Program;
use vyre_foundation::text;
use vyre_foundation::wire::to_wire;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_worker::{Sequence, SequenceStep};

fn program(source: &str) -> Program {
    text::parse("test", source).unwrap_or_else(|report| panic!("{report}"))
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Changes `state` by `step` and itself: what a step makes depends on all before it.
const ADVANCE: &str = "program advance {
  workgroup 4
  buffer state: read_write u32 @0
  buffer step: read u32 @1
  if gid.x < len(state) { state[gid.x] = state[gid.x] * 3 + step[gid.x] }
}
";

const COPY: &str = "program copy {
  workgroup 4
  buffer from: read u32 @0
  buffer to: output u32 @1
  if gid.x < len(to) { to[gid.x] = from[gid.x] ^ gid.x }
}
";

const TRAPS: &str = "program traps {
  workgroup 4
  buffer state: read_write u32 @0
  state[gid.x] = 5
  if gid.x >= 2 { trap(9) }
}
";

fn step(source: &str, buffers: &[usize]) -> SequenceStep {
    SequenceStep { program: program(source), config: DispatchConfig::default(), buffers: buffers.to_vec() }
}

fn sequence(steps: Vec<SequenceStep>) -> Sequence {
    let buffers = vec![words([1, 2, 3, 4]), words([10, 20, 30, 40]), words([7; 4])];
    Sequence { buffers, steps, fuel: 1 << 20 }
}

fn open(id: &str) -> Box<dyn VyreBackend> {
    acquire(id).expect("it is registered")
}

/// What a backend does wrong with resident data.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// What its kernels write is big-endian to everybody else.
    Layout,
    /// An upload to memory that had one before is forgotten.
    Stale,
    /// What the last dispatch wrote comes to memory only with the next.
    Pending,
    /// A byte is missing at the end of what it gives back.
    Short,
    /// Memory is not taken back.
    Keeps,
}

/// `bulk` under another name, with something wrong.
struct Mutant {
    inner: Box<dyn VyreBackend>,
    wrong: Wrong,
    uploaded: Mutex<HashSet<u64>>,
    written: Mutex<HashMap<u64, Vec<u8>>>,
}

fn mutant(wrong: Wrong) -> Mutant {
    Mutant { inner: open("bulk"), wrong, uploaded: Mutex::default(), written: Mutex::default() }
}

fn handle(resource: &Resource) -> u64 {
    match resource {
        Resource::Resident(handle) => *handle,
        Resource::Borrowed(_) => panic!("all of it is resident"),
    }
}

impl VyreBackend for Mutant {
    fn id(&self) -> &'static str {
        "mutant"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.inner.dispatch(program, inputs, config)
    }

    fn allocate_resident(&self, bytes: usize) -> Result<Resource, BackendError> {
        self.inner.allocate_resident(bytes)
    }

    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        let is_first = self.uploaded.lock().unwrap().insert(handle(resource));
        if self.wrong == Wrong::Stale && !is_first {
            return Ok(());
        }
        self.written.lock().unwrap().remove(&handle(resource));
        self.inner.upload_resident(resource, bytes)
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let mut bytes = self.inner.download_resident(resource)?;
        let before = self.written.lock().unwrap().get(&handle(resource)).cloned();
        match (self.wrong, before) {
            (Wrong::Layout, Some(_)) => bytes.chunks_mut(4).for_each(<[u8]>::reverse),
            (Wrong::Pending, Some(before)) => bytes = before,
            (Wrong::Short, _) => {
                bytes.pop();
            }
            (Wrong::Nothing | Wrong::Layout | Wrong::Stale | Wrong::Pending | Wrong::Keeps, _) => {}
        }
        Ok(bytes)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        if self.wrong == Wrong::Keeps {
            return Err(BackendError::new("it is mine"));
        }
        self.inner.free_resident(resource)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let outputs = || {
            let bound = program.interface().bound.iter().zip(resources);
            bound.filter(|(i, _)| program.buffers()[**i].access.is_output()).map(|(_, resource)| resource)
        };
        let before: HashMap<u64, Vec<u8>> = outputs().map(|it| (handle(it), self.inner.download_resident(it).unwrap())).collect();
        let result = self.inner.dispatch_resident_timed(program, resources, config)?;
        self.written.lock().unwrap().extend(before);
        Ok(result)
    }
}

#[test]
fn assignments_are_all_there_once() {
    let all: Vec<Vec<usize>> = Assignments::new(2, 3).collect();
    let expected = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]];
    assert_eq!(all, expected);
    assert_eq!(Assignments::new(3, 4).collect::<HashSet<_>>().len(), 81);
    assert_eq!(Assignments::new(2, 8).count(), 256);
    assert_eq!(Assignments::new(0, 2).count(), 0);
}

#[test]
fn every_assignment_of_right_backends_ends_with_the_references_bytes() {
    let (bulk, reference, other) = (open("bulk"), open("reference"), mutant(Wrong::Nothing));
    let steps: Vec<SequenceStep> = (0..8).map(|n| step(ADVANCE, &[n % 2, 1 - n % 2])).collect();
    let eight = every_assignment(&[&*bulk, &*reference], &sequence(steps.clone())).unwrap();
    assert_eq!((eight.compared, eight.unsupported, &eight.failures), (256, 0, &vec![]));
    // One on `bulk` alone moves both buffers there once; all others move more.
    assert!(eight.hand_overs > 256 * 4 && eight.bytes_moved == eight.hand_overs * 16, "{eight:?}");
    let three = every_assignment(&[&*bulk, &*reference, &other], &sequence(steps[..5].to_vec())).unwrap();
    assert_eq!((three.compared, three.holds()), (243, true));
}

#[test]
fn each_kind_of_wrong_hand_over_is_found() {
    let bulk = open("bulk");
    let there_and_back = vec![step(ADVANCE, &[0, 1]), step(ADVANCE, &[0, 1]), step(ADVANCE, &[0, 1]), step(COPY, &[0, 2])];
    let found = |wrong| {
        let report = every_assignment(&[&*bulk, &mutant(wrong)], &sequence(there_and_back.clone())).unwrap();
        assert_eq!(report.compared, 16);
        report.failures
    };
    assert_eq!(found(Wrong::Nothing), []);
    let layout = found(Wrong::Layout);
    assert!(layout.iter().any(|it| matches!(it.problem, SwapProblem::Differs { .. })) && layout.len() > 8, "{layout:?}");
    let stale = found(Wrong::Stale);
    assert!(!stale.is_empty() && stale.iter().all(|it| it.assignment.contains(&"bulk")), "only swaps show it: {stale:?}");
    let pending = found(Wrong::Pending);
    assert!(pending.iter().any(|it| matches!(it.problem, SwapProblem::Differs { buffer: 0, .. })), "{pending:?}");
    let short = found(Wrong::Short);
    assert!(
        short.iter().any(|it| matches!(
            it.problem,
            SwapProblem::Failed { error: HandOverError::Size { backend: "mutant", expected: 16, found: 15, .. }, .. }
        )),
        "{short:?}"
    );
    assert_eq!(found(Wrong::Keeps).len(), 15, "all but the one that it has no part in");
}

#[test]
fn a_step_that_traps_traps_everywhere_and_leaves_the_buffers_alone() {
    let (bulk, reference) = (open("bulk"), open("reference"));
    let steps = vec![step(ADVANCE, &[0, 1]), step(TRAPS, &[0]), step(ADVANCE, &[0, 1])];
    let report = every_assignment(&[&*bulk, &*reference], &sequence(steps)).unwrap();
    assert_eq!((report.compared, report.holds()), (8, true), "{report:?}");
}

#[test]
fn questions_that_cannot_be_asked_are_errors() {
    let (bulk, again) = (open("bulk"), open("bulk"));
    let advance = |n: usize| sequence(vec![step(ADVANCE, &[0, 1]); n]);
    assert_eq!(every_assignment(&[], &advance(1)), Err(SwapError::NoBackends));
    assert_eq!(every_assignment(&[&*bulk, &*again], &advance(1)), Err(SwapError::SameName("bulk")));
    assert_eq!(every_assignment(&[&*bulk], &advance(0)), Err(SwapError::Steps(0)));
    assert_eq!(every_assignment(&[&*bulk], &advance(MAX_STEPS + 1)), Err(SwapError::Steps(9)));
    let (reference, mutant) = (open("reference"), mutant(Wrong::Nothing));
    assert_eq!(every_assignment(&[&*bulk, &*reference, &mutant], &advance(8)), Err(SwapError::TooMany(6561)));
    let unbound = sequence(vec![step(ADVANCE, &[0])]);
    assert!(matches!(every_assignment(&[&*bulk], &unbound), Err(SwapError::Refused { step: 0, .. })));
    let race = "program race {\n workgroup 4\n buffer out: output u32 @0\n out[0] = gid.x\n}\n";
    let racy = sequence(vec![step(ADVANCE, &[0, 1]), step(race, &[0])]);
    assert!(matches!(every_assignment(&[&*bulk], &racy), Err(SwapError::OrderShows { step: 1, .. })));
}

#[test]
fn illegal_hand_overs_are_typed_errors() {
    let (bulk, reference) = (open("bulk"), open("reference"));
    let config = DispatchConfig::default();
    let (advance, copy) = (program(ADVANCE), program(COPY));
    let mut relay = Relay::new(&[&*bulk, &*reference]);
    let (state, unwritten, small) = (relay.fill(words([1, 2])), relay.reserve(8), relay.reserve(6));
    for backend in [0, 1] {
        // A buffer that nobody has.
        let missing = relay.step(backend, &advance, &config, &[state, 7]);
        assert_eq!(missing, Err(HandOverError::NoBuffer { buffer: 7, buffers: 3 }));
        let bindings = relay.step(backend, &advance, &config, &[state]);
        assert_eq!(bindings, Err(HandOverError::Bindings { expected: 2, found: 1 }));
        let aliased = relay.step(backend, &advance, &config, &[state, state]);
        assert_eq!(aliased, Err(HandOverError::Aliased { buffer: state }));
        // An output that is read before it was written.
        assert_eq!(
            relay.step(backend, &advance, &config, &[state, unwritten]),
            Err(HandOverError::Unwritten { buffer: unwritten })
        );
        assert_eq!(relay.read(unwritten), Err(HandOverError::Unwritten { buffer: unwritten }));
        // A size that no element has.
        let odd = relay.step(backend, &copy, &config, &[state, small]);
        assert!(matches!(odd, Err(HandOverError::Backend { .. } | HandOverError::Size { .. })), "{odd:?}");
    }
    assert_eq!(relay.step(2, &copy, &config, &[state, unwritten]), Err(HandOverError::NoBackend { backend: 2, backends: 2 }));
    assert_eq!(relay.read(state), Ok(words([1, 2])), "nothing ran");
    // Written by one, read by the other, and back.
    relay.step(1, &copy, &config, &[state, unwritten]).unwrap();
    relay.step(0, &advance, &config, &[state, unwritten]).unwrap();
    relay.step(1, &copy, &config, &[state, unwritten]).unwrap();
    assert_eq!(relay.read(unwritten), Ok(words([4, 8])), "(1·3 + 1) ^ 0, (2·3 + 3) ^ 1");
    assert_eq!(relay.finish(), Ok(()));
}

#[test]
fn what_was_on_a_lost_device_is_lost_and_says_so() {
    let inner = open("bulk").device().expect("it is a device");
    let config = DispatchConfig::default();
    // The device goes with the download that would have handed the state over.
    let faulty = FaultyDevice::new(inner, FaultPlan::none().at_call_of(Method::Submit, 1, Fault::DeviceLost));
    let (lossy, reference) = (device::backend(Arc::new(faulty)), open("reference"));
    let advance = program(ADVANCE);
    let mut relay = Relay::new(&[&*lossy, &*reference]);
    let (state, by) = (relay.fill(words([1, 2])), relay.fill(words([3, 4])));
    let mut outcome = Ok(());
    for backend in [0, 1, 0, 1] {
        outcome = outcome.and_then(|()| relay.step(backend, &advance, &config, &[state, by]));
    }
    assert!(matches!(outcome, Err(HandOverError::Lost { backend: "bulk", .. })), "{outcome:?}");
    // Nothing that is lost becomes zeros: every assignment that met the loss says so.
    for n in 0..12 {
        let inner = open("bulk").device().expect("it is a device");
        let faulty = FaultyDevice::new(inner, FaultPlan::none().at_call(n, Fault::DeviceLost));
        let lossy = device::backend(Arc::new(faulty.clone()));
        let report = every_assignment(&[&*lossy, &*reference], &sequence(vec![step(ADVANCE, &[0, 1]); 3])).unwrap();
        let lost = |problem: &SwapProblem| matches!(problem, SwapProblem::Failed { error: HandOverError::Lost { .. }, .. });
        assert!(report.failures.iter().all(|it| lost(&it.problem)), "call {n}: {report:?}");
        assert_eq!(report.failures.is_empty(), faulty.fired().is_empty(), "call {n}");
    }
}

/// A number below another, from a number that is not random at all.
fn pick(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    ((*seed >> 33) as usize) % below
}

/// Generated programs over a pool of buffers: one that has the right length is mostly shared with what came before.
fn random_sequence(seed: u64) -> Sequence {
    let mut state = seed;
    let mut sequence = Sequence { buffers: Vec::new(), steps: Vec::new(), fuel: 1 << 24 };
    let programs: Vec<_> = (0..2 + pick(&mut state, 2))
        .map(|n| {
            let number = seed * 4 + n as u64;
            let dna = dna(77, number);
            generate(Preset::mixed(number), &dna).case(&dna)
        })
        .collect();
    for _ in 0..2 + pick(&mut state, 4) {
        let case = &programs[pick(&mut state, programs.len())];
        let Ok(launch) = case.plan() else { continue };
        let mut given = case.inputs.iter();
        let mut bound: Vec<usize> = Vec::new();
        for i in &case.program.interface().bound {
            let length = launch.bytes[*i] as usize;
            let start = match case.program.buffers()[*i].access.is_input() {
                true => given.next().expect("an input").clone(),
                false => vec![0x55; length],
            };
            let fitting: Vec<usize> =
                (0..sequence.buffers.len()).filter(|n| sequence.buffers[*n].len() == length && !bound.contains(n)).collect();
            bound.push(match fitting.is_empty() || pick(&mut state, 4) == 0 {
                true => {
                    sequence.buffers.push(start);
                    sequence.buffers.len() - 1
                }
                false => fitting[pick(&mut state, fitting.len())],
            });
        }
        sequence.steps.push(SequenceStep { program: case.program.clone(), config: case.config.clone(), buffers: bound });
    }
    sequence
}

#[test]
fn random_sequences_end_the_same_under_every_assignment() {
    let (bulk, reference) = (open("bulk"), open("reference"));
    let (mut judged, mut shared, mut order, mut refused) = (0, 0, 0, 0);
    for seed in 0..60 {
        let sequence = random_sequence(seed);
        match every_assignment(&[&*bulk, &*reference], &sequence) {
            Ok(report) => {
                assert!(report.holds(), "sequence {seed}: {}", report.failures[0]);
                judged += 1;
                let uses = |n| sequence.steps.iter().filter(|step| step.buffers.contains(&n)).count();
                shared += usize::from((0..sequence.buffers.len()).any(|n| uses(n) > 1));
            }
            Err(SwapError::OrderShows { .. }) => order += 1,
            Err(SwapError::Steps(0) | SwapError::Refused { .. }) => refused += 1,
            Err(error) => panic!("sequence {seed}: {error}"),
        }
    }
    assert!(judged > 30 && shared > 20, "{judged} judged, {shared} with shared buffers, {order} unordered, {refused} refused");
}

#[test]
fn random_sequences_find_the_wrong_hand_overs() {
    let bulk = open("bulk");
    for wrong in [Wrong::Layout, Wrong::Stale, Wrong::Pending] {
        let finds = |seed: u64| {
            every_assignment(&[&*bulk, &mutant(wrong)], &random_sequence(seed)).is_ok_and(|report| !report.failures.is_empty())
        };
        assert!((0..40).any(finds), "not found by forty sequences");
    }
}

#[test]
fn flat_backends_swap_and_are_compared() {
    let (bulk, reference) = (open("bulk"), open("reference"));
    let (a, b) = (ProgramBackend(&*bulk), ProgramBackend(&*reference));
    let program = program(ADVANCE.replace("step: read u32", "step: read u32[4]").as_str());
    let input = [words([1, 2, 3, 4]), words([10, 20, 30, 40])].concat();
    let config = ConformDispatchConfig::default();
    for swap_after in [0, 1, 5] {
        let found = with_backend_swap(&a, &b, &program, &input, 16, config.clone(), swap_after);
        assert_eq!(found, Ok(words([13, 26, 39, 52])), "{swap_after}");
    }
    let said = |result: Result<Vec<u8>, String>| result.unwrap_err();
    assert!(said(with_backend_swap(&a, &b, &program, &input, 16, config.clone(), usize::MAX)).contains("too late"));
    assert!(said(with_backend_swap(&a, &b, &program, &input, 12, config.clone(), 1)).contains("gives 16 bytes, and 12"));
    assert!(said(with_backend_swap(&a, &b, &program, &input[1..], 16, config.clone(), 1)).contains("elements"));
    let many = ADVANCE.replace("state: read_write u32", "state: read_write u32[4]");
    let fixed = text::parse("test", &many.replace("step: read u32", "step: read u32[4]")).unwrap();
    assert!(said(with_backend_swap(&a, &b, &fixed, &input[1..], 16, config.clone(), 1)).contains("cannot be cut"));
    assert!(said(a.dispatch("fn main() {}", &[], 0, config.clone())).contains("takes programs"));
    assert!(said(a.dispatch_program(&[1, 2, 3], &[], 0, config.clone())).len() > 5);
    let model = ExecutionModel::Program { wire: to_wire(&program).unwrap(), input, output_size: 16, config };
    assert_eq!(SwapBackend::new(&a, &b, 1).execute(&model), Ok(words([13, 26, 39, 52])));
}

/// Answers with its own name for every shader.
struct Named(&'static str);

impl WgslBackend for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn dispatch(&self, _: &str, _: &[u8], _: usize, _: ConformDispatchConfig) -> Result<Vec<u8>, String> {
        Ok(self.0.into())
    }

    fn dispatch_program(&self, _: &[u8], _: &[u8], _: usize, _: ConformDispatchConfig) -> Result<Vec<u8>, String> {
        Ok(self.0.into())
    }
}

#[test]
fn every_method_counts_as_one_dispatch() {
    let (a, b) = (Named("a"), Named("b"));
    let swap = SwapBackend::new(&a, &b, 3);
    let config = ConformDispatchConfig::default;
    assert_eq!(swap.dispatch("", &[], 1, config()), Ok(b"a".to_vec()));
    assert_eq!(swap.dispatch_batch("", &[vec![], vec![]], &[1, 1], config()), Ok(vec![b"a".to_vec(); 2]));
    let model = ExecutionModel::Wgsl { source: String::new(), input: Vec::new(), output_size: 1, config: config() };
    assert_eq!(swap.execute(&model), Ok(b"a".to_vec()));
    assert_eq!(swap.dispatch_program(&[], &[], 1, config()), Ok(b"b".to_vec()));
    assert_eq!(swap.dispatch_batch("", &[vec![]], &[1], config()), Ok(vec![b"b".to_vec()]));
    assert!(a.dispatch_batch("", &[vec![]], &[], config()).unwrap_err().contains("one size per input"));
}
