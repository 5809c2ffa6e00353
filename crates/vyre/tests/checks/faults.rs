//! Whether the check files notice every fault of `vyre_reference::faults`: of each, some file must give another result than it should.
//!
//! `VYRE_LONG=1` prints which file is the first to notice each.

use crate::{check_name, execute_with, parse};
use libtest_mimic::{Failed, Trial};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use vyre::ir::Program;
use vyre::launch::inputs_by_name;
use vyre::reference::faults::{self, BulkFault, Fault};
use vyre::reference::{Options, RunError, bulk, run};
use vyre_conform::checks::directive::{self, Kind};

/// Steps of a run: enough for nearly all files, and a fault may make a loop endless.
const FUEL: u64 = 1 << 20;

/// A dispatch of a check file.
struct Dispatch {
    file: String,
    program: Program,
    inputs: Vec<Vec<u8>>,
    options: Options,
    right: Outcome,
    /// Whether the bulk evaluator gives that too; where the order of invocations shows it need not.
    same_in_bulk: bool,
}

/// Bytes, or the tag and the invocation of a trap; `None` for whatever else there is.
type Outcome = Option<Result<Vec<Vec<u8>>, (u32, [u32; 3])>>;

fn outcome(result: Result<Vec<Vec<u8>>, RunError>) -> Outcome {
    match result {
        Ok(outputs) => Some(Ok(outputs)),
        Err(RunError::Trap { tag, invocation, .. }) => Some(Err((tag, invocation))),
        Err(RunError::OutOfFuel { .. } | RunError::Rejected(_) | RunError::Timeout | RunError::Cancelled) => None,
    }
}

/// What a planted fault makes of a dispatch.
type Planted = Box<dyn Fn(&Dispatch, &[&[u8]]) -> Outcome + Send>;

pub fn trials(files: &[PathBuf]) -> Vec<Trial> {
    let files: Arc<Vec<PathBuf>> = Arc::new(files.to_vec());
    let dispatches: Arc<OnceLock<Vec<Dispatch>>> = Arc::default();
    let trial = |name: String, planted: Planted| {
        let (files, dispatches) = (Arc::clone(&files), Arc::clone(&dispatches));
        Trial::test(format!("faults/{name}"), move || {
            let all = dispatches.get_or_init(|| files.iter().flat_map(dispatches_of).collect());
            let notices = |dispatch: &&Dispatch| {
                let inputs: Vec<&[u8]> = dispatch.inputs.iter().map(Vec::as_slice).collect();
                planted(dispatch, &inputs) != dispatch.right
            };
            let first = all.iter().find(notices).ok_or_else(|| Failed::from("no check file notices it"))?;
            if std::env::var("VYRE_LONG").is_ok_and(|value| value == "1") {
                println!("{name:<40} {}", first.file);
            }
            Ok(())
        })
    };
    let plain = Fault::ALL.iter().map(|fault| {
        let planted: Planted = Box::new(|dispatch: &Dispatch, inputs: &[&[u8]]| {
            outcome(faults::run(*fault, &dispatch.program, inputs, &dispatch.options))
        });
        trial(format!("fault:{}", fault.name()), planted)
    });
    let bulk = BulkFault::ALL.iter().map(|fault| {
        let planted: Planted = Box::new(|dispatch: &Dispatch, inputs: &[&[u8]]| match dispatch.same_in_bulk {
            true => outcome(faults::run_bulk(*fault, &dispatch.program, inputs, &dispatch.options)),
            false => dispatch.right.clone(),
        });
        trial(format!("bulk-fault:{}", fault.name()), planted)
    });
    plain.chain(bulk).collect()
}

/// The dispatches that a file says what they give.
fn dispatches_of(file: &PathBuf) -> Vec<Dispatch> {
    let Ok(bytes) = std::fs::read(file) else { return Vec::new() };
    let (Ok(program), Ok(directives)) = (parse(&bytes), directive::parse(&String::from_utf8_lossy(&bytes))) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for directive in directives {
        let (Kind::Run(launch, _) | Kind::Trap(launch, ..)) = &directive.kind else { continue };
        let Ok((options, inputs)) = launch.resolve(&program) else { continue };
        let options = Options { fuel: options.fuel.min(FUEL), ..options };
        let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let Ok(ordered) = inputs_by_name(&program, &named) else { continue };
        let Ok((_, result)) = execute_with(&program, launch, |program, inputs, _| run(program, inputs, &options)) else {
            continue;
        };
        let right = outcome(result);
        if right.is_none() {
            continue;
        }
        all.push(Dispatch {
            file: check_name(file),
            same_in_bulk: outcome(bulk::run(&program, &ordered, &options)) == right
                && outcome(bulk::run_compacted(&program, &ordered, &options)) == right,
            inputs: ordered.iter().map(|bytes| bytes.to_vec()).collect(),
            program: program.clone(),
            options,
            right,
        });
    }
    all
}
