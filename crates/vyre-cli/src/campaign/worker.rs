//! `vyre campaign work`: a worker for the devices of this machine.

use super::{Where, alone, failure, line};
use crate::conform::{self, stop_on_signals, threads};
use crate::{Failure, print};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vyre::backend::registry::{acquire, registered_devices};
use vyre_campaign::{Db, Device, Ended, Hand, Heard, Joined, Link, MakeHand, Settings, Work, counted, work as work_on};
use vyre_conform::Plan;
use vyre_conform::conform::{Tested, Units};
use vyre_conform::ledger::Range;

/// Run units of a campaign.
#[derive(clap::Args)]
#[command(after_help = "\
Without --backend the worker uses every device of this machine that the campaign asks for, one after the other. After SIGTERM it finishes
the units that are running and gives the rest of its ranges back; after SIGKILL, other workers run its ranges when its lease has expired.
While the database is out of reach, the worker waits.

Exit status: 0 everything that this machine can run is done, or the campaign was cancelled; 1 the worker is not believed; 2 the command line
is wrong or the database out of reach; 3 the worker was told to stop, or could not run something.")]
pub struct Args {
    /// The campaign
    name: String,
    #[command(flatten)]
    place: Where,
    /// Only this backend
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Units to run at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// How long one dispatch may take before its process is ended, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::time::duration)]
    deadline: Duration,
    /// Run the backend in this process: faster, but a crash ends the worker
    #[arg(long)]
    in_process: bool,
    /// Keep cases that fail as bundles in this folder
    #[arg(long, value_name = "DIR")]
    bundles: Option<PathBuf>,
    /// How long the units of one claim should take; 10s to 60s keeps the load on the database low
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = crate::time::duration)]
    claim: Duration,
    /// How long to wait for a database that is out of reach
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::time::duration)]
    patience: Duration,
    /// One JSON object for each device, when it is done
    #[arg(long)]
    pub json: bool,
    #[arg(long, hide = true)]
    test_subjects: bool,
}

pub fn work(args: &Args) -> Result<(), Failure> {
    let db = args.place.db()?;
    let stop = stop_on_signals()?;
    let backends: Vec<String> = match &args.backend {
        Some(backend) => vec![backend.clone()],
        None => registered_devices().into_iter().map(|(_, device)| device.id).collect(),
    };
    let (mut has_come, mut classes, mut problem) = (false, String::new(), None);
    for backend in backends {
        match with(args, &db, &backend, &stop)? {
            Joined::NoClass(there) => classes = there,
            Joined::In((class, worked)) => {
                has_come = true;
                told(args, &class, &worked);
                problem = problem.or(worked.problem);
                match worked.ended {
                    Ended::Done | Ended::Cancelled => {}
                    Ended::Banned => {
                        return Err(Failure::Data("this worker is not believed: the reference or other workers contradict its answers; `vyre campaign status` says which".into()));
                    }
                    Ended::Stopped => {
                        let why = problem.unwrap_or_else(|| {
                            "the worker was told to stop; its finished units count, and others run the rest".into()
                        });
                        return Err(Failure::NoVerdict(why));
                    }
                }
            }
        }
    }
    if !has_come {
        return Err(Failure::Usage(format!(
            "the campaign `{}` has no use for the devices of this machine; it asks for {classes}",
            args.name
        )));
    }
    problem.map_or(Ok(()), |why| Err(Failure::NoVerdict(why)))
}

fn told(args: &Args, class: &str, worked: &Work) {
    let Work { ended, units, claims, late, problem } = worked;
    let ended = match ended {
        Ended::Done => "done",
        Ended::Cancelled => "cancelled",
        Ended::Banned => "not believed",
        Ended::Stopped => "stopped",
    };
    if args.json {
        let object =
            json!({ "device": class, "ended": ended, "units": units, "claims": claims, "late": late, "problem": problem });
        print(&format!("{object}\n"));
    } else {
        let (units, claims) = (counted(*units, "unit"), counted(*claims, "claim"));
        let late = if *late == 0 { String::new() } else { format!("; {} came too late", counted(*late, "answer")) };
        print(&format!("{class}: {ended}; {units} in {claims}{late}\n"));
    }
}

/// Works with one device until there is nothing left for it.
fn with(args: &Args, db: &Db, backend: &str, stop: &AtomicBool) -> Result<Joined<(String, Work)>, Failure> {
    let how =
        conform::Args::of_suite(&[], "smoke", 0, Some(backend))?.run_with(args.deadline, args.in_process, args.test_subjects);
    let make = |form: &str| conform::subject(&how, form);
    let tested = conform::tested(&how, backend, &make)?;
    let settings = Settings { campaign: args.name.clone(), name: name(), claim: args.claim, patience: args.patience };
    let tell = |what: &str| line(what);
    let (link, heard) = match Link::join(db, &settings, &device(&tested), stop, &tell).map_err(failure)? {
        Joined::NoClass(there) => return Ok(Joined::NoClass(there)),
        Joined::In(joined) => joined,
    };
    let plan = plan(&heard)?;
    let tell_problem: &(dyn Fn(&str) + Sync) = &tell;
    let maker = |_| {
        let (plan, tested, heard) = (&plan, &tested, &heard);
        Box::new(move || {
            let seed = heard.spec.seed;
            let units = Units::new(plan, tested, seed, Some(heard.secret), args.bundles.clone(), stop)?;
            Ok(Box::new(OnDevice { units, plan, backend, heard, args }) as Box<dyn Hand>)
        }) as MakeHand<'_>
    };
    let hands = (0..threads(args.jobs).max(1)).map(maker).collect();
    let worked = work_on(&link, &heard, &settings, hands, stop, tell_problem).map_err(failure)?;
    Ok(Joined::In((heard.class.clone(), worked)))
}

/// The units of a campaign. What comes from the database names parts of the suite and nothing else.
fn plan(heard: &Heard) -> Result<Plan, Failure> {
    let spec = &heard.spec;
    let plan = conform::plan(&conform::Args::of_suite(&spec.queries, &spec.tier, spec.seed, None)?)?;
    if plan.suite().to_string() != spec.suite || plan.units() != heard.units {
        return Err(Failure::NoVerdict(format!(
            "the campaign is of the suite {} with {} units, and this vyre has the suite {} with {}: use the version that made the campaign",
            spec.suite,
            heard.units,
            plan.suite(),
            plan.units()
        )));
    }
    Ok(plan)
}

fn name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    format!("{}:{}", host.as_deref().map_or("host", str::trim), std::process::id())
}

fn device(tested: &Tested<'_>) -> Device {
    let caps = acquire(&tested.backend).map(|open| {
        let all = [
            ("f64", open.supports_f64()),
            ("subgroups", open.supports_subgroup_ops()),
            ("grid-sync", open.supports_grid_sync()),
            ("wide", open.max_compute_invocations_per_workgroup() >= 1024),
        ];
        all.into_iter().filter(|(_, has)| *has).map(|(word, _)| word.to_string()).collect()
    });
    Device {
        backend: tested.backend.clone(),
        version: tested.version.clone(),
        fingerprint: tested.fingerprint.clone(),
        name: tested.name.clone(),
        forms: tested.forms.join(" "),
        caps: caps.unwrap_or_default(),
    }
}

struct OnDevice<'a> {
    units: Units<'a>,
    plan: &'a Plan,
    backend: &'a str,
    heard: &'a Heard,
    args: &'a Args,
}

impl Hand for OnDevice<'_> {
    fn run(&mut self, unit: u64, is_first: bool, range: &mut Range) -> Result<(), String> {
        // Second runs have no blind controls.
        if is_first { self.units.run(unit, range) } else { self.units.part(self.plan.unit(unit), range) }
    }

    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String> {
        let Args { deadline, in_process, test_subjects, .. } = self.args;
        let ask = alone::Ask {
            spec: self.heard.spec.clone(),
            backend: self.backend.into(),
            deadline: deadline.as_secs_f64(),
            in_process: *in_process,
            test_subjects: *test_subjects,
            unit,
            part: None,
        };
        alone::case_by_case(self.plan, &ask, range)
    }
}
