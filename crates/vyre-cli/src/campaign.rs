//! `vyre campaign`: one conformance run over many machines, on PostgreSQL.

mod alone;
mod top;
mod worker;

use crate::conform::{self, stop_on_signals};
use crate::{Failure, print, report, warn, write_file};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vyre_campaign::{
    Connection, Db, DbError, DeviceClass, Matrix, New, Spec, Status, WORKERS, WhichDevice, cancel, counted, create, settle,
};
use vyre_conform::cert::Rerun;
use vyre_conform::conform::Again;
use vyre_conform::evidence::RunData;
use vyre_conform::report::Report;

/// Prove backends on many machines: one queue, one ledger, one root for each device.
#[derive(clap::Args)]
#[command(after_help = "\
A campaign is a part of the suite and a list of devices. Workers may come and go: they take ranges of units and return one record for
each unit. A device gets the same root as from a run on one machine. docs/campaigns.md explains how that works and what it withstands.

The database is --db URL, or VYRE_DB in the environment, which keeps the password out of the list of processes:
postgres://USER:PASSWORD@HOST/DATABASE?sslmode=require&sslrootcert=FILE, or ?host=/run/postgresql for a Unix socket.

Examples:
  vyre campaign create nightly --tier standard --device cpu --device bulk
  vyre campaign work nightly                       on every machine: runs what its devices can run, until all is done
  vyre campaign status nightly
  vyre campaign top nightly                        the same, live
  vyre campaign report nightly --html page.html    ops by devices, a root for each, and where they differ
  vyre report 'postgres://host/db#nightly/cpu'     the run of one device; other commands that read runs take this too
  vyre campaign cancel nightly

Exit status: 0 the promise holds, 1 it does not, 2 the command line is wrong or the database out of reach, 3 there is no verdict.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Create a campaign, and its tables if the database has none yet
    Create(Create),
    /// Run units of a campaign until all are done
    Work(worker::Args),
    /// Show the progress of a campaign, and settle answers that differ
    Status(Look),
    /// Show the progress live, on the whole terminal
    Top(Look),
    /// Show the results of a campaign's devices side by side
    Report(Matrices),
    /// Stop a campaign: workers leave, and what is done is kept
    Cancel(Cancel),
    #[command(hide = true)]
    Alone(alone::Args),
}

/// Where the database is.
#[derive(clap::Args, Clone)]
pub struct Where {
    /// The database, with user and password [default: VYRE_DB]
    #[arg(long, value_name = "URL")]
    db: Option<String>,
}

impl Where {
    /// The database that is meant.
    pub fn db(&self) -> Result<Db, Failure> {
        let url = self.db.clone().or_else(|| std::env::var("VYRE_DB").ok());
        let Some(url) = url else {
            return Err(Failure::Usage("which database? Write --db postgres://USER@HOST/DATABASE, or set VYRE_DB".into()));
        };
        Db::new(&url).map_err(failure)
    }
}

#[derive(clap::Args)]
struct Create {
    /// The name of the campaign
    name: String,
    /// Queries for parts of the suite [default: the whole suite]
    queries: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// A device: BACKEND (the first one that joins), BACKEND=FINGERPRINT (that one), BACKEND=* (all of them, as if they were one); NAME:BACKEND… gives it a name
    #[arg(long = "device", value_name = "DEVICE", required = true)]
    devices: Vec<String>,
    /// How much to test: smoke, standard, deep
    #[arg(long, default_value = "smoke", value_parser = conform::tier)]
    tier: vyre_conform::Tier,
    /// Random seed for the cases that are sampled
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Like --seed, but chosen by a verifier
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    nonce: Option<u64>,
    /// How long a worker may be silent before its ranges are taken back
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::time::duration)]
    lease: Duration,
    /// Percentage of the units that a second worker runs too
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    second: f64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Look {
    /// The campaign
    name: String,
    #[command(flatten)]
    place: Where,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Matrices {
    /// The campaign
    name: String,
    #[command(flatten)]
    place: Where,
    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Keep writing the page until all is done; it refreshes itself in a browser
    #[arg(long, requires = "html")]
    watch: bool,
    /// Seconds between two pages
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Write Markdown for a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    #[command(flatten)]
    beside: report::Beside,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Cancel {
    /// The campaign
    name: String,
    #[command(flatten)]
    place: Where,
    /// Remove the campaign with all its results
    #[arg(long)]
    remove: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        Ok(_) | Err(_) => Err("write a number from 0 to 100".into()),
    }
}

impl Args {
    /// Whether the output is JSON.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Create(args) => args.json,
            Command::Work(args) => args.json,
            Command::Status(args) | Command::Top(args) => args.json,
            Command::Report(args) => args.json,
            Command::Cancel(args) => args.json,
            Command::Alone(_) => false,
        }
    }
}

/// What an error of a database is to the command.
pub fn failure(error: DbError) -> Failure {
    match error {
        DbError::Url(_) | DbError::Away(_) | DbError::Denied(_) | DbError::NoCampaigns(_) | DbError::Refused(_) => {
            Failure::Usage(error.to_string())
        }
        DbError::Layout { .. } => Failure::NoVerdict(error.to_string()),
        DbError::Damaged(_) => Failure::Data(error.to_string()),
    }
}

pub fn campaign(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => make(args),
        Command::Work(args) => worker::work(args),
        Command::Status(args) => status(args),
        Command::Top(args) => top::top(&args.place.db()?, &args.name, args.json),
        Command::Report(args) => matrix(args),
        Command::Cancel(args) => end(args),
        Command::Alone(args) => alone::alone(args),
    }
}

/// `[NAME:]BACKEND[=FINGERPRINT]`.
fn device(text: &str) -> DeviceClass {
    let (rest, device) = match text.split_once('=') {
        None => (text, WhichDevice::First),
        Some((rest, "*")) => (rest, WhichDevice::Any),
        Some((rest, fingerprint)) => (rest, WhichDevice::Fingerprint(fingerprint.into())),
    };
    // The names of test subjects and mutants contain colons themselves.
    let (name, backend) = match rest.split_once(':') {
        Some((name, backend)) if !["mutant", "exec"].contains(&name) => (name, backend),
        Some(_) | None => (rest, rest),
    };
    DeviceClass { name: name.into(), backend: backend.into(), device }
}

fn make(args: &Create) -> Result<(), Failure> {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.';
    if args.name.is_empty() || !args.name.chars().all(is_word) {
        return Err(Failure::Usage(format!(
            "`{}` cannot be the name of a campaign: use letters, digits, `-`, `_` and `.`",
            args.name
        )));
    }
    let classes: Vec<DeviceClass> = args.devices.iter().map(|text| device(text)).collect();
    for (n, class) in classes.iter().enumerate() {
        if classes[..n].iter().any(|other| other.name == class.name) {
            return Err(Failure::Usage(format!("two devices are called `{0}`; write NAME:{0}", class.name)));
        }
    }
    let seed = args.nonce.unwrap_or(args.seed);
    let plan = conform::plan(&conform::Args::of_suite(&args.queries, args.tier.name(), seed, None)?)?;
    let spec = Spec {
        suite: plan.suite().to_string(),
        queries: args.queries.clone(),
        tier: args.tier.name().into(),
        seed,
        is_nonce: args.nonce.is_some(),
    };
    let lease = args.lease.as_secs_f64();
    if !(0.5..=86_400.0).contains(&lease) {
        return Err(Failure::Usage("a lease has to be between half a second and a day".into()));
    }
    let new = New { name: &args.name, spec: &spec, plan: &plan, classes: &classes, lease, second: args.second / 100.0 };
    let db = args.place.db()?;
    let campaign = db.connect().and_then(|mut connection| create(&mut connection, &new)).map_err(failure)?;
    if args.json {
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        print(&format!(
            "{}\n",
            json!({ "campaign": campaign.name, "units": campaign.units, "devices": names, "suite": spec.suite })
        ));
        return Ok(());
    }
    print(&format!(
        "{}: {} units for each of {}\n\
         start workers with: vyre campaign work {}\n\
         the database user of a worker needs one right: GRANT {WORKERS} TO somebody\n",
        campaign.name,
        campaign.units,
        counted(classes.len() as u64, "device"),
        campaign.name
    ));
    Ok(())
}

/// Why the state of a campaign could not be read.
pub enum Unseen {
    /// The database is out of reach at this moment.
    Away(String),
    /// Anything else, which does not get better by waiting.
    Failed(Failure),
}

impl From<DbError> for Unseen {
    fn from(error: DbError) -> Unseen {
        if let DbError::Away(why) = error { Unseen::Away(why) } else { Unseen::Failed(failure(error)) }
    }
}

impl From<Failure> for Unseen {
    fn from(failure: Failure) -> Unseen {
        Unseen::Failed(failure)
    }
}

impl From<Unseen> for Failure {
    fn from(unseen: Unseen) -> Failure {
        match unseen {
            Unseen::Away(why) => failure(DbError::Away(why)),
            Unseen::Failed(failure) => failure,
        }
    }
}

/// Looks at a campaign again and again, through one connection as long as that lives.
pub struct Watcher<'a> {
    db: &'a Db,
    name: &'a str,
    connection: Option<Connection>,
}

impl<'a> Watcher<'a> {
    pub fn new(db: &'a Db, name: &'a str) -> Watcher<'a> {
        Watcher { db, name, connection: None }
    }

    /// Reads the state of the campaign, after settling answers that differ; tells what came of these.
    pub fn look(&mut self, tell: &mut dyn FnMut(&str)) -> Result<Status, Unseen> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none @ None => none.insert(self.db.connect()?),
        };
        look(connection, self.name, tell).inspect_err(|_| self.connection = None)
    }
}

/// The reference is asked on this machine.
fn look(connection: &mut Connection, name: &str, tell: &mut dyn FnMut(&str)) -> Result<Status, Unseen> {
    let status = Status::read(connection, name)?;
    if status.classes.iter().all(|class| class.conflicts_open == 0) {
        return Ok(status);
    }
    let campaigns = vyre_campaign::campaigns(connection)?;
    let Some(spec) = campaigns.into_iter().find(|campaign| campaign.name == name).map(|campaign| campaign.spec) else {
        return Ok(status);
    };
    let args = conform::Args::of_suite(&spec.queries, &spec.tier, spec.seed, Some(REFERENCE))?;
    let args = args.run_with(Duration::from_secs(600), true, false);
    let plan = conform::plan(&args)?;
    if plan.suite().to_string() != spec.suite {
        let (theirs, ours) = (spec.suite, plan.suite());
        return Err(Unseen::Failed(Failure::NoVerdict(format!(
            "answers of two workers differ, and who is right can only be decided by the version of vyre that made the campaign: \
             it has the suite {theirs}, and this one has the suite {ours}"
        ))));
    }
    let make = |form: &str| conform::subject(&args, form);
    let tested = conform::tested(&args, REFERENCE, &make)?;
    let mut again = Again::new(&plan, &tested, spec.seed).map_err(Failure::NoVerdict)?;
    let mut judge = |number: u64| {
        let unit = plan.unit(number);
        again.unit(&plan.sections()[unit.section].info().id, unit.first)
    };
    for settled in settle(connection, name, &mut judge)? {
        tell(&format!("{}: {}", settled.class, settled.why));
    }
    Ok(Status::read(connection, name)?)
}

/// The device that says what is expected, which does not depend on the device: this one is on every machine, and fast.
const REFERENCE: &str = "bulk";

/// Tells something on a line of standard error.
fn line(what: &str) {
    warn(&format!("{what}\n"));
}

fn status(args: &Look) -> Result<(), Failure> {
    let status = Watcher::new(&args.place.db()?, &args.name).look(&mut line)?;
    if args.json {
        print(&format!("{}\n", json!({ "is_complete": status.is_complete(), "status": status })));
    } else {
        print(&status.text());
    }
    Ok(())
}

fn matrix(args: &Matrices) -> Result<(), Failure> {
    let db = args.place.db()?;
    let stop = stop_on_signals()?;
    if args.watch {
        watch(args, &db, &stop)?;
    }
    let status = Watcher::new(&db, &args.name).look(&mut line)?;
    let (matrix, runs) = Matrix::read(&db, &args.name).map_err(report::ledger)?;
    if let Some(path) = &args.html {
        write_file(path, status.page(None, Some(&matrix)).as_bytes(), &[])?;
    }
    if let Some(path) = &args.markdown {
        write_file(path, matrix.markdown().as_bytes(), &[])?;
    }
    if args.json {
        print(&format!("{}\n", json!({ "matrix": matrix, "status": status })));
    } else {
        print(&matrix.text());
        status.classes.iter().for_each(|class| print(&format!("{}: {}\n", class.name, class.sampling())));
        status.classes.iter().flat_map(|class| &class.findings).for_each(|why| print(&format!("{why}\n")));
    }
    verdict(args, &runs)
}

/// The worst verdict of all devices.
fn verdict(args: &Matrices, runs: &[RunData]) -> Result<(), Failure> {
    use vyre_conform::evidence::Verdict;
    let mut none = false;
    for run in runs {
        let (known, kills) = args.beside.read(run)?;
        match Report::new(run, &known, kills.as_ref()).verdict {
            Verdict::Holds | Verdict::WithExceptions => {}
            Verdict::Fails => return Err(Failure::Said),
            Verdict::None(_) => none = true,
        }
    }
    // The reason stands beside the device.
    if none { Err(Failure::Files(3)) } else { Ok(()) }
}

/// Writes the page until nothing is left to do. Once it has seen the campaign it waits for a database that is out of reach.
fn watch(args: &Matrices, db: &Db, stop: &AtomicBool) -> Result<(), Failure> {
    let Some(path) = &args.html else { return Ok(()) };
    let mut watcher = Watcher::new(db, &args.name);
    let (mut has_seen, mut is_away) = (false, false);
    while !stop.load(Ordering::Relaxed) {
        match watcher.look(&mut line) {
            Ok(status) => {
                has_seen = true;
                if std::mem::take(&mut is_away) {
                    line(&format!("{} is back", db.place()));
                }
                let is_over = status.is_cancelled || status.is_complete();
                write_file(path, status.page((!is_over).then_some(args.every), None).as_bytes(), &[])?;
                if is_over {
                    return Ok(());
                }
            }
            Err(Unseen::Away(why)) if has_seen => {
                if !std::mem::replace(&mut is_away, true) {
                    line(&format!("{why}; the page stays as it is until the database is back"));
                }
            }
            Err(unseen) => return Err(unseen.into()),
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(args.every) && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

fn end(args: &Cancel) -> Result<(), Failure> {
    let mut connection = args.place.db()?.connect().map_err(failure)?;
    cancel(&mut connection, &args.name, args.remove).map_err(failure)?;
    if args.json {
        print(&format!("{}\n", json!({ "campaign": args.name, "is_removed": args.remove })));
    } else {
        let what = if args.remove { "removed" } else { "cancelled: workers leave, and what is done is kept" };
        print(&format!("{}: {what}\n", args.name));
    }
    Ok(())
}
