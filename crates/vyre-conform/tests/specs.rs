//! Every spec of the suite: what it says in plain Rust, for one case and for many, is what its programs give in the plain interpreter
//! and in the bulk evaluator, on cases from each of its spaces. And every op on every type of the tables has a spec.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use vyre_conform::suite::{algebra as expressions, elementwise, identities as simplified, shared};
use vyre_conform::{Columns, Draw, OpSpec, Shape, Space, space};
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::launch::LaunchConfig;
use vyre_reference::{Options, RunError, bulk, run};
use vyre_spec::limits::SUBGROUP_SIZES;
use vyre_spec::op::{AtomicOp, SubgroupOp};
use vyre_spec::{BinaryOp, DataType, Scalar, Storage, TernaryOp, UnaryOp};

type Evaluator = fn(&Program, &[&[u8]], &Options) -> Result<Vec<Vec<u8>>, RunError>;

/// Cases of a spec at a workgroup size, and what plain Rust says about them.
struct Batch {
    cases: usize,
    workgroup: u32,
    inputs: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
}

impl Batch {
    fn new(spec: &OpSpec, space: &dyn Space, workgroup: u32, numbers: Range<u64>) -> Batch {
        let cases = (numbers.end - numbers.start) as usize;
        let mut inputs = vec![Vec::new(); spec.signature().inputs.len()];
        space.fill(Draw { seed: 42, workgroup }, numbers, &mut inputs);
        let extent = spec.shape().extent(workgroup).expect("cases side by side");
        let bytes = |elements: u32, ty: &DataType| (u64::from(elements) * ty.bits().unwrap() / 8) as usize;
        for (i, column) in inputs.iter().enumerate() {
            let of_case = bytes(extent.inputs[i], &spec.signature().inputs[i]);
            assert_eq!(column.len(), cases * of_case, "{}: `{}` fills input {i}", spec.id(), space.name());
        }
        let sizes = || extent.outputs.iter().zip(&spec.signature().outputs).map(|(elements, ty)| bytes(*elements, ty));
        // Whatever was in the outputs must not matter.
        let mut expected: Vec<Vec<u8>> = sizes().map(|of_case| vec![0xA5; cases * of_case]).collect();
        let columns: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
        spec.cpu_batch().expect("a batch form")(&Columns { cases, workgroup, inputs: &columns }, &mut outputs);
        Batch { cases, workgroup, inputs, expected }
    }

    /// The part of each column that belongs to a case, one after the other.
    fn case(columns: &[Vec<u8>], cases: usize, n: usize) -> Vec<u8> {
        columns.iter().flat_map(|column| column[column.len() / cases * n..][..column.len() / cases].to_vec()).collect()
    }

    /// The form for one case says the same as the form for many.
    fn check_one(&self, spec: &OpSpec) {
        let one = spec.cpu_fn().expect("a form for one case");
        for n in 0..self.cases {
            let case = Batch::case(&self.inputs, self.cases, n);
            assert_eq!(one(&case), Batch::case(&self.expected, self.cases, n), "{}: case {n} is {case:02x?}", spec.id());
        }
    }

    /// A program gives what is expected.
    fn check_program(&self, spec: &OpSpec, name: &str, program: &Program, evaluator: Evaluator) {
        let extent = spec.shape().extent(self.workgroup).expect("cases side by side");
        let groups = (self.cases as u64 * u64::from(extent.invocations)).div_ceil(self.workgroup.into()) as u32;
        let outputs = program.interface().outputs.iter().zip(&extent.outputs);
        let output_counts: BTreeMap<String, u32> = outputs
            .filter(|(i, _)| program.buffers()[**i].access == Access::Output)
            .map(|(i, each)| (program.buffers()[*i].name.to_string(), each * self.cases as u32))
            .collect();
        let launch = LaunchConfig { grid: Some([groups, 1, 1]), output_counts, ..LaunchConfig::default() };
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        let found = evaluator(program, &inputs, &Options { launch, ..Options::default() })
            .unwrap_or_else(|error| panic!("{}{name}: {error}\n{program}", spec.id()));
        for (output, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            assert_eq!(found.len(), expected.len(), "{}{name}: output {output}", spec.id());
            if found != expected {
                let at = found.iter().zip(expected).position(|(a, b)| a != b).unwrap();
                let each = expected.len() / self.cases;
                let n = at / each;
                panic!(
                    "{}{name} at workgroups of {}, output {output}, case {n} of {:02x?}: the program gives {:02x?}, plain Rust {:02x?}\n{program}",
                    spec.id(),
                    self.workgroup,
                    Batch::case(&self.inputs, self.cases, n),
                    &found[n * each..][..each],
                    &expected[n * each..][..each],
                );
            }
        }
    }
}

/// Some cases of a space: all if they are few, otherwise the first ones, the last ones and some windows in between.
fn windows(cases: u64, most: u64) -> Vec<Range<u64>> {
    let each = (most / 8).max(1);
    if cases <= 8 * each {
        return [0].map(|start| start..cases).into();
    }
    let inner = (0..6).map(|k| (cases - each) / 6 * k + (k * 7919) % ((cases - each) / 6));
    let mut starts: Vec<u64> = [0, cases - each].into_iter().chain(inner).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().map(|start| start..start + each).collect()
}

/// Checks all specs, and says how many cases there were.
fn check(specs: &[OpSpec]) {
    let (mut plain, mut bulked) = (0_u64, 0_u64);
    let mut spaces_seen = BTreeMap::new();
    // More with VYRE_SPECS_CASES=1000000.
    let most = std::env::var("VYRE_SPECS_CASES").map_or(32_768, |cases| cases.parse().expect("a number"));
    for spec in specs {
        let spaces: Vec<Arc<dyn Space>> = space::derived(spec).into_iter().chain(spec.spaces().iter().cloned()).collect();
        assert!(!spaces.is_empty(), "{} has no cases", spec.id());
        // A case that is a workgroup has as many elements.
        let weight = |size: u32| match spec.shape() {
            Shape::Elements(_) => 1,
            Shape::Workgroup(_) => u64::from(size),
            Shape::Dispatch(_) => panic!("{}: no dispatches here", spec.id()),
        };
        for space in &spaces {
            *spaces_seen.entry(space.name().to_owned()).or_insert(0) += 1;
            for (k, size) in spec.workgroup_sizes().iter().enumerate() {
                let program = spec.program([*size, 1, 1]);
                for numbers in windows(space.cases(*size), 512 / weight(*size)) {
                    let batch = Batch::new(spec, &**space, *size, numbers);
                    batch.check_one(spec);
                    batch.check_program(spec, "", &program, run);
                    batch.check_program(spec, "", &program, bulk::run);
                    plain += batch.cases as u64;
                }
                for (name, alternative) in spec.alternatives() {
                    let windows = windows(space.cases(*size), 128 / weight(*size));
                    let numbers = windows[k % windows.len()].clone();
                    let batch = Batch::new(spec, &**space, *size, numbers);
                    let program = alternative([*size, 1, 1]);
                    batch.check_program(spec, &format!("[alt:{name}]"), &program, run);
                    batch.check_program(spec, &format!("[alt:{name}]"), &program, bulk::run);
                    plain += batch.cases as u64;
                }
            }
            let size = spec.workgroup_sizes().last().copied().unwrap();
            let program = spec.program([size, 1, 1]);
            for numbers in windows(space.cases(size), most / weight(size)) {
                let batch = Batch::new(spec, &**space, size, numbers);
                batch.check_program(spec, "", &program, bulk::run);
                bulked += batch.cases as u64;
            }
        }
    }
    println!(
        "{} specs, spaces {spaces_seen:?}, {plain} cases by the plain interpreter, {bulked} more by the bulk evaluator",
        specs.len()
    );
    assert!(plain > 0 && bulked > 0);
}

/// All specs, made once.
fn suite() -> &'static [OpSpec] {
    static SUITE: LazyLock<Vec<OpSpec>> =
        LazyLock::new(|| elementwise().into_iter().chain(expressions()).chain(simplified()).chain(shared()).collect());
    &SUITE
}

fn check_family(prefix: &str) {
    let specs: Vec<OpSpec> = suite().iter().filter(|spec| spec.id().starts_with(prefix)).cloned().collect();
    check(&specs);
}

#[test]
fn integers() {
    check_family("ops.int");
}

#[test]
fn booleans() {
    check_family("ops.bool");
}

#[test]
fn floats() {
    check_family("ops.float");
}

#[test]
fn algebra() {
    check_family("algebra");
}

#[test]
fn identities() {
    check_family("identity");
}

#[test]
fn casts() {
    check_family("cast");
}

#[test]
fn bitcasts() {
    check_family("bitcast");
}

#[test]
fn memory() {
    check_family("memory");
}

#[test]
fn vectors() {
    check_family("vector");
}

#[test]
fn atomics() {
    check_family("atomic");
}

#[test]
fn subgroups() {
    check_family("subgroup");
}

#[test]
fn barriers() {
    check_family("barrier");
    check_family("ids");
}

#[test]
fn indices() {
    check_family("index");
}

#[test]
fn control() {
    check_family("control");
}

/// Walks the tables and asks for each spec by its name.
#[test]
fn every_op_on_every_type_has_a_spec() {
    let specs = suite();
    let ids: BTreeSet<&str> = specs.iter().map(OpSpec::id).collect();
    assert_eq!(ids.len(), specs.len(), "names are unique");
    let mut wanted = BTreeSet::new();
    let infos = UnaryOp::ALL.iter().map(|op| op.info());
    let infos = infos.chain(BinaryOp::ALL.iter().map(|op| op.info())).chain(TernaryOp::ALL.iter().map(|op| op.info()));
    for info in infos {
        for t in info.over.iter() {
            let name = info.mnemonic;
            wanted.insert(match t {
                Scalar::Bool => format!("ops.bool.{name}:{t}"),
                Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => format!("ops.int.{name}:{t}"),
                Scalar::F32 | Scalar::F64 => format!("ops.float.{name}:{t}"),
            });
            if t.is_float() {
                wanted.insert(format!("ops.float.{name}.canonical:{t}"));
            }
        }
    }
    // What the validator accepts is what there are specs for.
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            for (kind, expr) in [("cast", "to(a[0])"), ("bitcast", "bitcast<to>(a[0])")] {
                let expr = expr.replace("to", to.name());
                let text = format!(
                    "program p {{ workgroup 1\nbuffer a: read {from} @0\nbuffer out: output {to} @1\nout[0] = {expr}\n}}"
                );
                let program = vyre_foundation::text::parse("cast", &text).unwrap_or_else(|report| panic!("{report}"));
                let id = format!("{kind}.{from}:{to}");
                if program.validated().is_ok() {
                    wanted.insert(id);
                    if from.is_float() || to.is_float() {
                        wanted.insert(format!("{kind}.{from}.canonical:{to}"));
                    }
                } else {
                    assert!(!ids.contains(id.as_str()), "{id}");
                }
            }
        }
    }
    for (_, ty) in DataType::all_plain() {
        let kinds: &[&str] = match ty.storage() {
            Storage::Computed(_) => &["load", "in_place", "neighbour"],
            Storage::Converted(_) => &["load", "store", "in_place", "neighbour"],
            Storage::LoadOnly(_) => &["load"],
            Storage::Described => &[],
        };
        wanted.extend(kinds.iter().map(|kind| format!("memory.{kind}:{ty}")));
    }
    for part in ["u32", "i32", "f32"] {
        for count in 2..=4 {
            wanted.extend(
                ["memory.load", "memory.in_place", "vector.build", "vector.extract"].map(|it| format!("{it}:vec{count}<{part}>")),
            );
        }
    }
    for op in AtomicOp::ALL {
        for t in op.info().over.iter() {
            wanted.extend(["own", "uniform"].map(|kind| format!("atomic.{op}.{kind}:{t}")));
        }
    }
    for op in SubgroupOp::ALL {
        for t in op.info().over.iter() {
            for lanes in SUBGROUP_SIZES {
                wanted.extend(["", ".retired"].map(|kind| format!("subgroup.{lanes}.{op}{kind}:{t}")));
            }
        }
    }
    let missing: Vec<&String> = wanted.iter().filter(|id| !ids.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "no spec for {missing:?}");
    println!("{} specs, {} asked for by name", specs.len(), wanted.len());
}
