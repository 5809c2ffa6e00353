//! Campaigns on a PostgreSQL server of their own, with fsync: claims a second, what the queue costs, many workers beside one run, and reading
//! what a million units have shown.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vyre_campaign::{
    Claimed, Db, Device, DeviceClass, Hand, Heard, Joined, Link, New, Runs, Settings, Spec, WhichDevice, create,
};
use vyre_conform::Plan;
use vyre_conform::evidence::RunData;
use vyre_conform::expectations::Judged;
use vyre_conform::ledger::Range;
use vyre_conform::report::Report;
use vyre_test_postgres::{OWNER, Server, plan, record};

const CLIENTS: usize = 32;
const MILLION: u64 = 1_000_000;

/// A database with a campaign `c` of one class.
fn campaign(server: &Server, plan: &Plan, second: f64) -> (String, Db) {
    let database = server.database();
    let db = Db::new(&server.url(OWNER, &database)).expect("an address");
    let spec = Spec { suite: plan.suite().to_string(), queries: Vec::new(), tier: "deep".into(), seed: 0, is_nonce: false };
    let class = DeviceClass { name: "dev".into(), backend: "dev".into(), device: WhichDevice::Any };
    let new = New { name: "c", spec: &spec, plan, classes: &[class], lease: 60.0, second };
    create(&mut db.connect().expect("the server is there"), &new).expect("a campaign");
    (database, db)
}

fn quiet(_: &str) {}

fn join(db: &Db, settings: &Settings, stop: &AtomicBool) -> (Link, Heard) {
    let device = Device {
        backend: "dev".into(),
        version: Some("1".into()),
        fingerprint: "f".into(),
        name: "a device".into(),
        forms: "one".into(),
        caps: Vec::new(),
    };
    match Link::join(db, settings, &device, stop, &quiet).expect("the server is there") {
        Joined::In(joined) => joined,
        Joined::NoClass(there) => panic!("there is only {there}"),
    }
}

fn settings(name: String, claim: Duration) -> Settings {
    Settings { campaign: "c".into(), name, claim, patience: Duration::from_secs(60) }
}

pub fn figures() {
    println!("\ncampaigns, PostgreSQL with fsync");
    let server = Server::start(&[]);
    claims(&server);
    overhead(&server);
    workers(&server);
    million(&server);
}

/// Every claim is one unit, claimed, answered and committed.
fn claims(server: &Server) {
    let plan = plan(200_000);
    let (_, db) = campaign(server, &plan, 0.0);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for n in 0..CLIENTS {
            let (plan, db, stop, done) = (&plan, &db, &stop, &done);
            scope.spawn(move || {
                let (link, _) = join(db, &settings(format!("w{n}"), Duration::from_secs(1)), stop);
                while began.elapsed() < Duration::from_secs(10) {
                    let Ok(Claimed::Range(claim)) = link.claim(1, stop, &quiet) else { return };
                    let units = (claim.lo..claim.hi).map(|number| record(plan, number)).collect();
                    let range = Range { units, ..Range::default() };
                    link.finish(&claim, &range, stop, &quiet).expect("an answer");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let rate = done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    println!("  {CLIENTS} clients: {rate:.0} claims finished a second (goal >= 1000)");
}

struct Second<'a>(&'a Plan);

impl Hand for Second<'_> {
    fn run(&mut self, unit: u64, _: bool, range: &mut Range) -> Result<(), String> {
        std::thread::sleep(Duration::from_secs(1));
        range.units.push(record(self.0, unit));
        Ok(())
    }

    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String> {
        self.run(unit, true, range)
    }
}

/// Eight workers whose units take a second each and nothing of the processor.
fn overhead(server: &Server) {
    let (each, hands) = (15, 8);
    let plan = plan(each * hands);
    let (_, db) = campaign(server, &plan, 0.0);
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for n in 0..hands {
            let (plan, db, stop) = (&plan, &db, &stop);
            scope.spawn(move || {
                let settings = settings(format!("w{n}"), Duration::from_secs(10));
                let (link, heard) = join(db, &settings, stop);
                let make = move || Ok(Box::new(Second(plan)) as Box<dyn Hand>);
                vyre_campaign::work(&link, &heard, &settings, vec![Box::new(make)], stop, &quiet).expect("it works");
            });
        }
    });
    let (took, needed) = (began.elapsed().as_secs_f64(), each as f64);
    let over = (took / needed - 1.0) * 100.0;
    println!("  {hands} workers, units of a second: {took:.2} s for {needed} s of work each, {over:.1} % over (goal < 2)");
}

/// The command that was built beside this one.
fn command() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("vyre");
    let has = Command::new(&beside).args(["campaign", "--help"]).stdin(Stdio::null()).output().ok()?;
    has.status.success().then_some(beside)
}

fn run(vyre: &Path, folder: &Path, url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(vyre);
    command.args(args).current_dir(folder).env("VYRE_DB", url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The same units by eight workers and by one run.
fn workers(server: &Server) {
    let Some(vyre) = command() else {
        println!("  8 workers beside one run: not built (cargo build --release --features postgres)");
        return;
    };
    let queries = ["ops.int", "ops.float.add", "ops.float.mul", "ops.float.div"];
    let mut best = [Duration::MAX; 2];
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let url = server.url(OWNER, &server.database());
        let here = |args: &[&str]| run(&vyre, folder.path(), &url, args);
        let began = Instant::now();
        let one = here(&[["conform", "--state", "one"].as_slice(), &queries].concat()).status().expect("vyre starts");
        assert!(one.success(), "the run holds");
        best[0] = best[0].min(began.elapsed());
        // What the second share of the units costs is not the queue's.
        let made = here(&[["campaign", "create", "c", "--device", "cpu=*", "--second", "0"].as_slice(), &queries].concat())
            .status()
            .expect("vyre starts");
        assert!(made.success(), "a campaign");
        let began = Instant::now();
        let start =
            || here(&["campaign", "work", "c", "--backend", "cpu", "--jobs", "1", "--claim", "2s"]).spawn().expect("vyre starts");
        let mut workers: Vec<_> = (0..8).map(|_| start()).collect();
        assert!(workers.iter_mut().all(|worker| worker.wait().expect("it ends").success()), "all is done");
        best[1] = best[1].min(began.elapsed());
    }
    let [one, many] = best.map(|time| time.as_secs_f64());
    println!("  8 workers: {many:.2} s, one run {one:.2} s: {:.2} x its throughput (goal >= 0.9)", one / many);
}

/// A million units that are there already, read and made into a page.
fn million(server: &Server) {
    let plan = plan(MILLION);
    let (database, _) = campaign(server, &plan, 0.0);
    let rows = server.folder().join("rows.sql");
    let mut text = String::from(
        "DELETE FROM vyre.span;
         INSERT INTO vyre.worker (class, token, name, fingerprint, caps) VALUES (1, 't', 'w', 'f', '{}');\n",
    );
    for lo in (0..MILLION).step_by(400) {
        let hi = MILLION.min(lo + 400);
        let mut bytes = Vec::new();
        for number in lo..hi {
            let (section, record) = record(&plan, number);
            vyre_campaign::record::encode(&section, &record, &mut bytes);
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!(
            "WITH s AS (INSERT INTO vyre.span (class, lo, hi, state, owner, fence) VALUES (1, {lo}, {hi}, 2, 1, 1) RETURNING id)
             INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records)
             SELECT 1, id, 0, {lo}, {hi}, 1, 1, '\\x{hex}' FROM s;\n"
        );
    }
    std::fs::write(&rows, text).expect("a file");
    server.sql(&database, &format!("\\i {}", rows.display()));
    let began = Instant::now();
    let runs = Runs::open(&server.url(OWNER, &database)).expect("the run");
    let data = RunData::of(&runs, runs.identity(), runs.is_finished()).expect("it is whole");
    let read = began.elapsed();
    let page = Report::new(&data, &Judged::default(), None).html();
    println!(
        "  report of {MILLION} units: read and checked in {read:.2?}, with the page ({} bytes) {:.2?} (goal <= 5 s)",
        page.len(),
        began.elapsed()
    );
}
