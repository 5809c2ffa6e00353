//! An op of the tests' own, subjects that get it wrong, and runs of it.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use vyre::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_conform::conform::{Conformed, Options, Tested, run};
use vyre_conform::expectations::Expectations;
use vyre_conform::{Draw, Evidence, OpSpec, OpSpecBuilder, Plan, RunError, Selection, Space, Tier};
use vyre_worker::backend::BackendSubject;
use vyre_worker::{Answer, Case, Failure, Outputs, Subject};

fn xor_program(workgroup: [u32; 3]) -> Program {
    let i = || Expr::var("i");
    Program::wrapped(
        vec![
            BufferDecl::read("a", 0, DataType::U32),
            BufferDecl::read("b", 1, DataType::U32),
            BufferDecl::output("out", 2, DataType::U32),
        ],
        workgroup,
        vec![
            Node::let_bind("i", Expr::gid_x()),
            Node::if_then(
                Expr::lt(i(), Expr::buf_len("out")),
                vec![Node::store("out", i(), Expr::bitxor(Expr::load("a", i()), Expr::load("b", i())))],
            ),
        ],
    )
}

/// Operands n and 7.
pub struct Counting(pub u64);

impl Space for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn cases(&self, _: u32) -> u64 {
        self.0
    }

    fn evidence(&self) -> Evidence {
        Evidence::Sampled
    }

    fn fill(&self, _: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        for n in cases {
            columns[0].extend((n as u32).to_le_bytes());
            columns[1].extend(7u32.to_le_bytes());
        }
    }
}

pub fn parts(id: &str, cases: u64) -> OpSpecBuilder {
    OpSpec::builder(id)
        .signature([DataType::U32, DataType::U32], DataType::U32)
        .cpu_fn(|case| case[..4].iter().zip(&case[4..]).map(|(a, b)| a ^ b).collect())
        .program(xor_program)
        .workgroup_sizes([37, 64])
        .space(Counting(cases))
}

pub fn xor(cases: u64) -> OpSpec {
    parts("demo.xor", cases).build().expect("a whole spec")
}

pub fn plan(specs: Vec<OpSpec>) -> Plan {
    // All of the spec's own space, and nothing of what the signature gives.
    Plan::new(specs, Vec::new(), &Selection::new(["*:counting"]).unwrap(), Tier::Deep).expect("a plan")
}

/// A subject over bulk that changes answers.
pub struct Changed {
    inner: Box<dyn Subject>,
    change: fn(&Case, &mut Answer),
}

impl Subject for Changed {
    fn name(&self) -> &str {
        "changed"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.run_batch(std::slice::from_ref(case)).remove(0).outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let mut answers = self.inner.run_batch(cases);
        cases.iter().zip(&mut answers).for_each(|(case, answer)| (self.change)(case, answer));
        answers
    }
}

pub fn bulk() -> Box<dyn Subject> {
    Box::new(BackendSubject::named("backend:bulk/timed").expect("a backend").expect("bulk is there"))
}

pub struct How<'a> {
    pub change: fn(&Case, &mut Answer),
    pub state: Option<&'a Path>,
    pub threads: usize,
    pub shard: (u64, u64),
    pub controls: bool,
    pub known: &'a str,
    pub seed: u64,
    pub version: Option<&'a str>,
    pub stop: &'a AtomicBool,
}

pub static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for How<'_> {
    fn default() -> Self {
        let change = |_: &Case, _: &mut Answer| {};
        How {
            change,
            state: None,
            threads: 2,
            shard: (0, 1),
            controls: true,
            known: "[]",
            seed: 0,
            version: Some("1"),
            stop: &NEVER,
        }
    }
}

pub fn conform(plan: &Plan, how: &How<'_>) -> Result<Conformed, RunError> {
    let change = how.change;
    let make = move |_: &str| -> Result<Box<dyn Subject>, String> { Ok(Box::new(Changed { inner: bulk(), change })) };
    let tested = Tested {
        make: &make,
        forms: vec!["changed".into()],
        backend: "changed".into(),
        version: how.version.map(Into::into),
        fingerprint: "a device of tests".into(),
        name: "a device of tests".into(),
        most_groups: 65_535,
    };
    let options = Options {
        seed: how.seed,
        is_nonce: false,
        shard: how.shard,
        state: how.state.map(Into::into),
        threads: how.threads,
        selection: "all".into(),
        tier: None,
        command: "vyre conform".into(),
        controls: how.controls,
        known: Expectations { entries: serde_json::from_str(how.known).expect("known failures") },
        stop: how.stop,
    };
    run(plan, &tested, &options, &mut |_| {})
}
