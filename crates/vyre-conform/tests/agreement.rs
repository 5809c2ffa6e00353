//! Every backend agrees with every other, laws hold on each; and backends with a fault are found by both.

use vyre_conform::OpSpec;
use vyre_conform::agreement::{Registered, Said, agreement, every_registered};
use vyre_conform::law::{LawError, LawOutcome, law};
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_driver_reference as _;
use vyre_foundation::case::Case;
use vyre_foundation::ir::{DataType, Program};
use vyre_foundation::text;
use vyre_reference::faults::{self, Fault};
use vyre_reference::{Options, RunError};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_spec::op::Law;

/// The plain interpreter with a fault.
struct Faulty(Fault);

impl VyreBackend for Faulty {
    fn id(&self) -> &'static str {
        "faulty"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        // A fault may make a loop nearly endless.
        let specialization = config.specialization.clone().into();
        let options = Options { launch: config.launch(), specialization, fuel: 1 << 22, ..Options::default() };
        faults::run(self.0, program, &inputs, &options).map_err(|error| match error {
            RunError::Rejected(report) => BackendError::Rejected(report),
            RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
            error @ (RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => {
                BackendError::new(error.to_string())
            }
        })
    }
}

fn generated(seed: u64, count: u64) -> impl Iterator<Item = Case> {
    (0..count).map(move |number| {
        let dna = dna(seed, number);
        generate(Preset::mixed(number), &dna).case(&dna)
    })
}

fn refused() -> Case {
    let source = "program p {\n workgroup 4\n buffer a: read u32[4] @0\n buffer out: output u32 @1\n out[gid.x] = a[gid.x]\n}\n";
    Case::new(text::parse("test", source).expect("it is read"), vec![vec![0; 12]])
}

#[test]
fn all_registered_backends_agree() {
    let Registered { open, closed } = every_registered();
    assert!(closed.is_empty() && open.len() >= 2, "{closed:?}");
    let backends: Vec<&dyn VyreBackend> = open.iter().map(|backend| &**backend).collect();
    let report = agreement(&backends, generated(5, 200).chain([refused()]));
    assert!(report.holds(), "{}", report.disagreements[0]);
    assert!(report.compared > 150, "{report:?}");
}

#[test]
fn one_that_differs_is_found_and_named() {
    let open = every_registered().open;
    let faulty = Faulty(Fault::SubSwapped);
    let backends: Vec<&dyn VyreBackend> = open.iter().map(|backend| &**backend).chain([&faulty as &dyn VyreBackend]).collect();
    let report = agreement(&backends, generated(5, 60));
    assert!(!report.holds());
    let first = &report.disagreements[0];
    let others: Vec<&Said> = first.said.iter().filter(|(id, _)| *id != "faulty").map(|(_, said)| said).collect();
    assert!(others.windows(2).all(|two| two[0] == two[1]), "{first}");
    assert!(first.to_string().contains("faulty: "), "{first}");
    assert!(!agreement(&backends, []).holds(), "nothing was compared");
}

fn spec(id: &str, of: Law, ty: DataType, inputs: usize, expression: &'static str) -> OpSpec {
    let (spelled, names) = (ty.to_string(), ["a", "b"]);
    let program = move |[size, ..]: [u32; 3]| {
        let buffers: String = (0..inputs).map(|n| format!("  buffer {}: read {spelled} @{n}\n", names[n])).collect();
        let source = format!(
            "program p {{\n  workgroup {size}\n{buffers}  buffer out: output {spelled} @{inputs}\n  let i = gid.x\n  \
             if i < len(out) {{ out[i] = {expression} }}\n}}\n"
        );
        text::parse("test", &source).unwrap_or_else(|report| panic!("{report}"))
    };
    let types = vec![ty.clone(); inputs];
    OpSpec::builder(id).signature(types, ty).law(of).program(program).build().unwrap_or_else(|error| panic!("{error}"))
}

/// All pairs of bit patterns at which floats and integers go wrong.
fn pairs() -> [Vec<u8>; 2] {
    let edge =
        [0u32, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x3f80_0000, 0x7f80_0000, 0xff80_0001, 0x7fc1_2345, 0x0040_0000];
    let left = edge.iter().flat_map(|a| edge.iter().flat_map(|_| a.to_le_bytes()));
    let right = edge.iter().flat_map(|_| edge.iter().flat_map(|b| b.to_le_bytes()));
    [left.collect(), right.collect()]
}

#[test]
fn laws_hold_on_every_backend_and_break_on_faulty_ones() {
    let [left, right] = pairs();
    let two = [left.clone(), right];
    let one = [left];
    let specs: Vec<(OpSpec, &[Vec<u8>])> = vec![
        (spec("test.add:u32", Law::Commutes, DataType::U32, 2, "a[i] + b[i]"), &two),
        (spec("test.add:f32", Law::Commutes, DataType::F32, 2, "a[i] + b[i]"), &two),
        (spec("test.max:f32", Law::Commutes, DataType::F32, 2, "max(a[i], b[i])"), &two),
        (spec("test.neg:f32", Law::Involution, DataType::F32, 1, "-a[i]"), &one),
        (spec("test.not:u32", Law::Involution, DataType::U32, 1, "!a[i]"), &one),
        (spec("test.reverse:u32", Law::Involution, DataType::U32, 1, "reverse_bits(a[i])"), &one),
    ];
    let open = every_registered().open;
    for (spec, columns) in &specs {
        for backend in &open {
            for size in [1, 37, 64] {
                assert_eq!(law(&**backend, spec, size, columns), Ok(LawOutcome::Held(121)), "{} on {}", spec.id(), backend.id());
            }
        }
    }
    for (fault, n) in [(Fault::MaxZero, 2), (Fault::NegZero, 3)] {
        let (spec, columns) = &specs[n];
        let broken = law(&Faulty(fault), spec, 64, columns);
        let Ok(LawOutcome::Broken(failure)) = broken else { panic!("{}: {broken:?}", spec.id()) };
        assert!(failure.to_string().contains(spec.id()) && failure.expected != failure.found, "{failure}");
    }
    // A law that does not hold for an op that is right.
    let wrong = spec("test.sub:u32", Law::Commutes, DataType::U32, 2, "a[i] - b[i]");
    assert!(matches!(law(&*open[0], &wrong, 64, &two), Ok(LawOutcome::Broken(_))));
}

#[test]
fn laws_that_cannot_be_tried_say_why() {
    let open = every_registered().open;
    let backend = &*open[0];
    let [left, right] = pairs();
    let add = spec("test.add:u32", Law::Commutes, DataType::U32, 2, "a[i] + b[i]");
    let columns = |result| matches!(result, Err(LawError::Columns(_)));
    assert!(columns(law(backend, &add, 64, &[])));
    assert!(columns(law(backend, &add, 64, &[left.clone(), right[4..].to_vec()])));
    assert!(columns(law(backend, &add, 64, &[left[1..].to_vec(), right[1..].to_vec()])));
    assert!(columns(law(backend, &add, 64, &[vec![], vec![]])));
    let none = spec("test.add:u32", Law::None, DataType::U32, 2, "a[i] + b[i]");
    assert_eq!(law(backend, &none, 64, &[left.clone(), right.clone()]), Ok(LawOutcome::NoLaw));
    let misfit = spec("test.add:u32", Law::Involution, DataType::U32, 2, "a[i] + b[i]");
    assert!(matches!(law(backend, &misfit, 64, &[left.clone(), right]), Err(LawError::Spec(_))));
    let lone = spec("test.not:u32", Law::Commutes, DataType::U32, 1, "!a[i]");
    assert!(matches!(law(backend, &lone, 64, &[left]), Err(LawError::Spec(_))));
}
