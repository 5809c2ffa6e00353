//! The subjects that are built in: ways to run programs that must agree with the plain interpreter.

use crate::metamorphic::{METAMORPHIC, Metamorphic};
use std::fmt;
use std::time::{Duration, Instant};
use vyre_foundation::config::{DispatchConfig, SpecMap};
use vyre_foundation::ir::{BinaryOp, Expr, Item, Program};
use vyre_foundation::launch::{Launch, plan};
use vyre_foundation::passes::{PASSES, Pass, optimize};
use vyre_foundation::text::suggest::nearest;
use vyre_reference::bulk::Bulk;
use vyre_reference::faults::{self, BulkFault, Fault};
use vyre_reference::{Limits, Options, RunError};
use vyre_worker::{Case, Failure, Job, Outputs, Ran, Subject};

/// A name that no subject has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownSubject {
    /// The name.
    pub name: String,
    /// What may have been meant.
    pub meant: Option<String>,
}

impl fmt::Display for UnknownSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no subject `{}`; ", self.name)?;
        match &self.meant {
            Some(meant) => write!(f, "did you mean `{meant}`?"),
            None => f.write_str(
                "the subjects are bulk, bulk-compacted, passes, plain, pass:NAME, fault:NAME and bulk-fault:NAME, each also after `metamorphic:`",
            ),
        }
    }
}

impl std::error::Error for UnknownSubject {}

/// Every subject there is.
#[must_use]
pub fn names() -> Vec<String> {
    list().into_iter().map(|(name, _)| name).collect()
}

/// Every subject there is, with what it does.
#[must_use]
pub fn list() -> Vec<(String, String)> {
    let fixed = [
        ("bulk", "the bulk evaluator"),
        ("bulk-compacted", "the bulk evaluator, compacting lanes even where that does not pay"),
        ("passes", "the reference after each pass by itself, and after all of them"),
        ("plain", "the reference itself, where nothing must be found"),
    ];
    let fixed = fixed.map(|(name, about)| (name.into(), about.into()));
    let passes = PASSES.iter().map(|pass| (format!("pass:{}", pass.name), "the reference after this pass".into()));
    let faults = Fault::ALL.iter().map(|fault| (format!("fault:{}", fault.name()), fault.about().into()));
    let bulk_faults = BulkFault::ALL.iter().map(|fault| (format!("bulk-fault:{}", fault.name()), fault.about().into()));
    fixed.into_iter().chain(passes).chain(faults).chain(bulk_faults).collect()
}

/// The subject with this name.
///
/// `metamorphic:` before a name makes it run every program twice, the second time written otherwise.
pub fn subject(name: &str) -> Result<Box<dyn Subject>, UnknownSubject> {
    if let Some(inner) = name.strip_prefix(METAMORPHIC) {
        return subject(inner).map(|inner| Box::new(Metamorphic::new(inner)) as Box<dyn Subject>);
    }
    let known: Option<Box<dyn Subject>> = match name.split_once(':') {
        None => match name {
            "bulk" => Some(Box::new(BulkSubject::new(name, HowBulk::Plain))),
            "bulk-compacted" => Some(Box::new(BulkSubject::new(name, HowBulk::CompactAlways))),
            "passes" => Some(Box::new(Passes)),
            "plain" => Some(Box::new(Plain)),
            _ => None,
        },
        Some(("pass", pass)) => Pass::named(pass).map(|pass| Box::new(OnePass { name: name.into(), pass }) as Box<dyn Subject>),
        Some(("fault", fault)) => {
            Fault::from_name(fault).map(|fault| Box::new(Faulty { name: name.into(), fault }) as Box<dyn Subject>)
        }
        Some(("bulk-fault", fault)) => {
            BulkFault::from_name(fault).map(|fault| Box::new(BulkSubject::new(name, HowBulk::Fault(fault))) as Box<dyn Subject>)
        }
        Some(_) => None,
    };
    known.ok_or_else(|| {
        let names = names();
        UnknownSubject { name: name.into(), meant: nearest(name, names.iter().map(String::as_str)).map(String::from) }
    })
}

/// Subjects that go wrong on purpose, for tests of what is built around subjects. They are the plain interpreter until a program has
/// an `^` in it; the last one until an input has a word that is 7 modulo 1,000, on which it crashes, or 13 modulo 10,000, on which it hangs.
pub fn test_subject(name: &str) -> Option<Box<dyn Subject>> {
    let how = match name {
        "test:bytes" => Mischief::Bytes,
        "test:crash" => Mischief::Crash,
        "test:hang" => Mischief::Hang,
        "test:panic" => Mischief::Panic,
        "test:prints" => Mischief::Prints,
        "test:rarely" => return Some(Box::new(OnSome { name: "test:rarely", crash: 1_000, hang: 10_000 })),
        "test:often" => return Some(Box::new(OnSome { name: "test:often", crash: 100, hang: 1_000 })),
        _ => return None,
    };
    Some(Box::new(Mischievous { name: name.into(), how }))
}

/// What the reference gives for a case.
pub fn expected(case: &Case) -> Result<Outputs, Failure> {
    Reference::default().expected(case)
}

/// The reference. It keeps the program of the last case with its constants replaced, which is most of the work for a small dispatch.
#[derive(Default)]
pub struct Reference {
    ready: Option<(Program, SpecMap, Program)>,
    limit: Option<Duration>,
}

impl Reference {
    /// One that takes no longer than this for a case.
    #[must_use]
    pub fn within(limit: Option<Duration>) -> Reference {
        Reference { ready: None, limit }
    }

    /// How long it may take for a case.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// What it gives for a case.
    pub fn expected(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let kept = |(program, values, _): &(Program, SpecMap, Program)| {
            *program == case.program && *values == case.config.specialization
        };
        let program = match self.ready.take().filter(kept) {
            Some((.., program)) => program,
            None => specialized(case)?,
        };
        let deadline = self.limit.and_then(|limit| Instant::now().checked_add(limit));
        let options = Options { launch: case.config.launch(), fuel: case.fuel, deadline, ..Options::default() };
        let outcome = vyre_reference::run(&program, &case.input_slices(), &options).map_err(|error| match (error, self.limit) {
            (RunError::Timeout, Some(limit)) => Failure::Hung(limit),
            (error, _) => failure(error),
        });
        self.ready = Some((case.program.clone(), case.config.specialization.clone(), program));
        outcome
    }
}

/// What an error of an evaluator of the reference is to a judge.
#[must_use]
pub fn failure(error: RunError) -> Failure {
    match error {
        RunError::Rejected(report) => Failure::Refused(report.to_string()),
        RunError::Trap { tag, invocation, .. } => Failure::Trap { tag, invocation },
        RunError::OutOfFuel { .. } => Failure::OutOfFuel,
        error @ (RunError::Timeout | RunError::Cancelled) => Failure::Device(error.to_string()),
    }
}

/// The case with its constants replaced.
fn specialized(case: &Case) -> Result<Program, Failure> {
    case.specialized().map_err(|report| Failure::Refused(report.to_string()))
}

/// The plain interpreter against itself: whatever is found with it is wrong with the judge.
struct Plain;

impl Subject for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        expected(case)
    }
}

/// The bulk evaluator. What it made ready for one case is kept for the next, if that is another dispatch of the same program.
struct BulkSubject {
    name: String,
    how: HowBulk,
    ready: Option<Ready>,
    /// Outputs of before, whose memory is used again.
    spare: Vec<Outputs>,
}

enum HowBulk {
    Plain,
    /// Lanes are compacted where it does not pay, too.
    CompactAlways,
    /// With a fault, to see whether the judge notices.
    Fault(BulkFault),
}

struct Ready {
    program: Program,
    specialization: SpecMap,
    /// The program with its constants replaced.
    specialized: Program,
    bulk: Bulk,
}

impl Subject for BulkSubject {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let mut outputs = self.spare.pop().unwrap_or_default();
        let inputs = case.input_slices();
        self.run_on(&case.program, &case.config, case.fuel, &inputs, |bulk, launch, limits| {
            bulk.run_into(launch, &inputs, limits, &mut outputs).map_err(failure)
        })?;
        Ok(outputs)
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        self.run_on(job.program, job.config, job.fuel, job.inputs, |bulk, launch, limits| {
            job.check_lengths(job.program.interface().outputs.iter().map(|i| launch.bytes[*i]))?;
            bulk.run_over(launch, job.inputs, limits, job.outputs).map_err(failure)
        })?;
        Ok(None)
    }

    fn reuse(&mut self, outputs: Vec<Outputs>) {
        self.spare = outputs;
    }
}

impl BulkSubject {
    fn new(name: &str, how: HowBulk) -> BulkSubject {
        BulkSubject { name: name.into(), how, ready: None, spare: Vec::new() }
    }

    /// Makes an evaluator ready and runs it in this way.
    fn run_on(
        &mut self,
        program: &Program,
        config: &DispatchConfig,
        fuel: u64,
        inputs: &[&[u8]],
        run: impl FnOnce(&mut Bulk, &Launch, Limits<'static>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let kept = |ready: &Ready| ready.program == *program && ready.specialization == config.specialization;
        // Taken out, so that a panic leaves nothing half done behind.
        let mut ready = match self.ready.take().filter(kept) {
            Some(ready) => ready,
            None => {
                let specialized = config.specialization.apply(program).map_err(|report| Failure::Refused(report.to_string()))?;
                let validated = specialized.validated().map_err(|report| Failure::Refused(report.to_string()))?;
                let bulk = Bulk::new(validated.kernel());
                Ready {
                    program: program.clone(),
                    specialization: config.specialization.clone(),
                    specialized,
                    bulk: match self.how {
                        HowBulk::Plain => bulk,
                        HowBulk::CompactAlways => bulk.compact_always(),
                        HowBulk::Fault(fault) => bulk.with_fault(fault),
                    },
                }
            }
        };
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let launch = plan(&ready.specialized, &sizes, &config.launch()).map_err(|report| Failure::Refused(report.to_string()))?;
        let fuel = match self.how {
            HowBulk::Plain | HowBulk::CompactAlways => fuel,
            HowBulk::Fault(_) => with_fault(fuel),
        };
        let result = run(&mut ready.bulk, &launch, Limits::fuel(fuel));
        self.ready = Some(ready);
        result
    }
}

/// The plain interpreter on a program that passes have changed. Steps are no part of what passes keep, so there are more of them.
fn run_changed(program: &Program, case: &Case) -> Result<Outputs, Failure> {
    let fuel = case.fuel.saturating_mul(4).saturating_add(1000);
    expected(&Case { program: program.clone(), config: case.config.without_specialization(), fuel, ..case.clone() })
}

/// The plain interpreter after each pass by itself and after all of them: the first outcome that differs from that of the program as
/// it was.
struct Passes;

impl Subject for Passes {
    fn name(&self) -> &str {
        "passes"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let program = specialized(case)?;
        let as_it_was = expected(case);
        let optimized = optimize(&program);
        let mut seen = vec![program.clone()];
        for changed in PASSES.iter().map(|pass| pass.apply(&program)).chain([optimized]) {
            if seen.contains(&changed) {
                continue;
            }
            let outcome = run_changed(&changed, case);
            if outcome != as_it_was {
                return outcome;
            }
            seen.push(changed);
        }
        as_it_was
    }
}

/// The plain interpreter after one pass.
struct OnePass {
    name: String,
    pass: &'static Pass,
}

impl Subject for OnePass {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        run_changed(&self.pass.apply(&specialized(case)?), case)
    }
}

/// The plain interpreter with a fault, to see whether the judge notices.
struct Faulty {
    name: String,
    fault: Fault,
}

impl Subject for Faulty {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let fuel = with_fault(case.fuel);
        let options = Options { launch: case.config.launch(), fuel, ..Options::default() };
        faults::run(self.fault, &specialized(case)?, &case.input_slices(), &options).map_err(failure)
    }
}

/// A fault may cost steps.
fn with_fault(fuel: u64) -> u64 {
    fuel.saturating_mul(4).saturating_add(1000)
}

enum Mischief {
    Bytes,
    Crash,
    Hang,
    Panic,
    Prints,
}

struct Mischievous {
    name: String,
    how: Mischief,
}

impl Subject for Mischievous {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let xor = |item| matches!(item, Item::Expr(Expr::Binary { op: BinaryOp::BitXor, .. }));
        let mut outcome = expected(case);
        if case.program.walk().any(|(item, _)| xor(item)) {
            match self.how {
                Mischief::Bytes => {
                    if let Some(byte) = outcome.iter_mut().flatten().find_map(|bytes| bytes.first_mut()) {
                        *byte ^= 1;
                    }
                }
                Mischief::Crash => std::process::abort(),
                Mischief::Hang => loop {
                    std::thread::park();
                },
                Mischief::Panic => panic!("an xor was met"),
                Mischief::Prints => println!("an xor was met"),
            }
        }
        outcome
    }
}

/// Crashes on one number in so many, and hangs on one in so many.
struct OnSome {
    name: &'static str,
    crash: u32,
    hang: u32,
}

impl Subject for OnSome {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let words = || case.inputs.iter().flat_map(|input| input.as_chunks::<4>().0).map(|word| u32::from_le_bytes(*word));
        if words().any(|word| word % self.crash == 7) {
            std::process::abort();
        }
        while words().any(|word| word % self.hang == 13) {
            std::thread::park();
        }
        expected(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_foundation::text::parse;

    fn case() -> Case {
        let text = "program p {
  workgroup 4
  const scale: u32 = 3
  buffer x: read u32 @0
  buffer out: output u32 @1
  let a = x[gid.x] * (2 + 3)
  if a == 25 {
    trap(7)
  }
  out[gid.x] = a * scale
}";
        Case::new(parse("p.vyre", text).expect("it is a program"), vec![vec![1, 0, 0, 0, 2, 0, 0, 0]])
    }

    #[test]
    fn every_subject_agrees_and_answers_to_its_name() {
        let mut trapping = case();
        trapping.inputs[0][4] = 5;
        let mut constant = case();
        constant.config.specialization.insert("scale", vyre_foundation::ir::SpecValue::U32(10));
        let refused = Case { inputs: vec![], ..case() };
        for name in names() {
            let mut subject = subject(&name).expect("it is listed");
            assert_eq!(subject.name(), name);
            if name.starts_with("fault:") || name.starts_with("bulk-fault:") {
                continue;
            }
            for case in [case(), constant.clone(), case(), trapping.clone(), case()] {
                assert_eq!(subject.run(&case), expected(&case), "{name}");
            }
            assert!(matches!(subject.run(&refused), Err(Failure::Refused(_))), "{name}");
        }
        assert_eq!(expected(&constant), Ok(vec![[50u32, 100].iter().flat_map(|x| x.to_le_bytes()).collect()]));
        assert_eq!(expected(&trapping), Err(Failure::Trap { tag: 7, invocation: [1, 0, 0] }));
    }

    #[test]
    fn a_name_that_is_not_known_is_told_with_what_was_meant() {
        let message = |name: &str| subject(name).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message("bluk").contains("did you mean `bulk`?"));
        assert!(message("pass:fodl").contains("did you mean `pass:fold`?"));
        assert!(message("fault:shift-msak").contains("did you mean `fault:shift-mask`?"));
        assert!(message("bulk-fault:els-mask").contains("did you mean `bulk-fault:else-mask`?"));
        assert!(message("gpu").contains("the subjects are bulk, bulk-compacted, passes, plain"));
        assert!(message("test:crash").contains("there is no subject"));
    }
}
