//! Specs of memory, geometry and ends: what plain Rust says is what the plain interpreter and the bulk evaluator give, traps included, and
//! no dispatch depends on the order of its invocations.

use std::collections::BTreeSet;
use vyre_conform::suite::{dispatches, elementwise::kernel_types};
use vyre_conform::{Columns, Draw, OpSpec, Shape, Trap};
use vyre_foundation::ir::Program;
use vyre_reference::checked::{Effort, check};
use vyre_reference::{Options, RunError, bulk, run};
use vyre_spec::Storage;
use vyre_spec::op::AtomicOp;

/// How a dispatch ends.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    Bytes(Vec<Vec<u8>>),
    Trap(Trap),
}

impl End {
    fn of(outcome: Result<Vec<Vec<u8>>, RunError>) -> End {
        match outcome {
            Ok(outputs) => End::Bytes(outputs),
            Err(RunError::Trap { tag, invocation, .. }) => End::Trap(Trap { tag, invocation }),
            Err(error @ (RunError::Rejected(_) | RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled)) => {
                panic!("{error}")
            }
        }
    }
}

/// One case of a spec.
struct One<'a> {
    spec: &'a OpSpec,
    workgroup: u32,
    inputs: Vec<Vec<u8>>,
}

impl One<'_> {
    fn slices(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    fn options(&self) -> Options {
        let Shape::Dispatch(launch) = self.spec.shape() else { panic!("{} has dispatches", self.spec.id()) };
        Options { launch: launch(self.workgroup, &self.slices()).launch(), ..Options::default() }
    }

    /// What plain Rust says, for outputs of these lengths.
    fn expected(&self, program: &Program) -> End {
        let inputs = self.slices();
        let columns = Columns { cases: 1, workgroup: self.workgroup, inputs: &inputs };
        if let Some(trap) = self.spec.trap_fn().and_then(|trap| trap(&columns)) {
            return End::Trap(trap);
        }
        let config = self.options().launch;
        let lengths: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let launch = vyre_foundation::launch::plan(program, &lengths, &config).unwrap_or_else(|report| panic!("{report}"));
        let mut outputs: Vec<Vec<u8>> =
            program.interface().outputs.iter().map(|i| vec![0xA5; launch.bytes[*i] as usize]).collect();
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        self.spec.cpu_batch().expect("it has a meaning")(&columns, &mut slices);
        End::Bytes(outputs)
    }
}

/// Checks the specs of a family on so many cases of each space.
fn check_family(prefix: &str, plain: u64, bulked: u64) {
    let specs: Vec<OpSpec> = dispatches().into_iter().filter(|spec| spec.id().starts_with(prefix)).collect();
    assert!(!specs.is_empty(), "{prefix}");
    let (mut ran, mut trapped) = (0, 0);
    for spec in &specs {
        for size in spec.workgroup_sizes() {
            for space in spec.spaces() {
                let programs = std::iter::once(("", spec.program([*size, 1, 1])));
                let programs = programs.chain(spec.alternatives().map(|(name, program)| (name, program([*size, 1, 1]))));
                for (name, program) in programs {
                    for n in 0..bulked.min(space.cases(*size)) {
                        let mut inputs = vec![Vec::new(); spec.signature().inputs.len()];
                        space.fill(Draw { seed: 7, workgroup: *size }, n..n + 1, &mut inputs);
                        let one = One { spec, workgroup: *size, inputs };
                        let expected = one.expected(&program);
                        let place = format!("{} {name} wg={size} {}:{n}\n{program}", spec.id(), space.name());
                        let found = End::of(bulk::run(&program, &one.slices(), &one.options()));
                        assert!(found == expected, "bulk: {place}\n{found:?}\n{expected:?}");
                        if n < plain {
                            let found = End::of(run(&program, &one.slices(), &one.options()));
                            assert!(found == expected, "plain: {place}\n{found:?}\n{expected:?}");
                            ran += 1;
                            trapped += u64::from(matches!(expected, End::Trap(_)));
                        }
                    }
                }
            }
        }
    }
    println!("{prefix}: {} specs, {ran} dispatches by the plain interpreter, {trapped} of which trap", specs.len());
    assert_eq!(trapped > 0, prefix == "trap");
}

#[test]
fn loads() {
    for place in ["storage", "uniform", "workgroup"] {
        check_family(&format!("index.{place}.load"), 2, 12);
    }
}

#[test]
fn stores() {
    for place in ["storage", "workgroup"] {
        check_family(&format!("index.{place}.store"), 2, 12);
    }
}

#[test]
fn atomics() {
    for place in ["storage", "workgroup"] {
        check_family(&format!("index.{place}.atomic"), 2, 12);
    }
}

#[test]
fn lengths() {
    check_family("lengths", 3, 78);
}

#[test]
fn geometry() {
    check_family("geometry", 2, 10);
}

#[test]
fn traps() {
    check_family("trap", 8, 64);
}

#[test]
fn returns() {
    check_family("retire", 5, 40);
}

#[test]
fn grid_barriers() {
    check_family("grid", 4, 40);
}

/// A case whose result depends on the order of invocations would be a false alarm some day.
#[test]
fn no_order_shows() {
    let mut checked = 0;
    for spec in dispatches() {
        let size = spec.workgroup_sizes()[0];
        let program = spec.program([size, 1, 1]);
        for space in spec.spaces() {
            let mut inputs = vec![Vec::new(); spec.signature().inputs.len()];
            space.fill(Draw { seed: 1, workgroup: size }, 0..1, &mut inputs);
            let one = One { spec: &spec, workgroup: size, inputs };
            match check(&program, &one.slices(), &one.options(), &Effort::default()) {
                Ok(report) => assert!(report.holds(), "{}: {}\n{program}", spec.id(), report.verdict),
                Err(RunError::Trap { .. }) => continue,
                Err(error) => panic!("{}: {error}", spec.id()),
            }
            checked += 1;
        }
    }
    assert!(checked > 1000, "{checked}");
}

/// Every element type is loaded, stored and copied, every atomic is out of bounds somewhere.
#[test]
fn every_type_and_atomic_has_its_specs() {
    let ids: BTreeSet<String> = dispatches().iter().map(|spec| spec.id().to_string()).collect();
    let mut wanted = Vec::new();
    for ty in kernel_types() {
        wanted.push(format!("lengths.copy:{ty}"));
        for pattern in ["lane", "group", "run", "down", "scaled"] {
            wanted.extend(["storage", "uniform"].map(|place| format!("index.{place}.load.{pattern}:{ty}")));
            if !matches!(ty.storage(), Storage::LoadOnly(_)) {
                wanted.push(format!("index.workgroup.load.{pattern}:{ty}"));
                wanted.extend(["storage", "workgroup"].map(|place| format!("index.{place}.store.{pattern}:{ty}")));
            }
        }
    }
    for op in AtomicOp::ALL {
        for t in op.info().over.iter() {
            for place in ["storage", "workgroup"] {
                wanted.extend(["lane", "run"].map(|pattern| format!("index.{place}.atomic.{op}.{pattern}:{t}")));
            }
        }
    }
    let missing: Vec<&String> = wanted.iter().filter(|id| !ids.contains(*id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
