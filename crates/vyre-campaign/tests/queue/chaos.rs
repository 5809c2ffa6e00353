//! Workers that are killed and stopped, a server that is cut off, clocks that are wrong, answers that come twice, and one worker that lies.
//!
//! The short form is part of the tests; `VYRE_CHAOS=1` is the long one: 64 workers, 20,000 units, 200 kills, 50 stops of a minute, 5 restarts.

use crate::conflicts::judge;
use crate::workers::{device, settings};
use crate::{Made, connect, plan, record};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use vyre_campaign::{Claimed, Db, Ended, Joined, Link, Settings, Status, settle};
use vyre_conform::Digest;
use vyre_conform::ledger::Range;
use vyre_test_postgres::{OWNER, Server, send};

struct Form {
    workers: usize,
    units: u64,
    kills: usize,
    stops: usize,
    stopped: Duration,
    restarts: usize,
    lease: f64,
    /// The share of units that is run twice: in the short form so large that the liar is found without luck.
    second: f64,
    unit: Duration,
}

fn form() -> Form {
    if std::env::var_os("VYRE_CHAOS").is_some() {
        Form {
            workers: 64,
            units: 20_000,
            kills: 200,
            stops: 50,
            stopped: Duration::from_secs(60),
            restarts: 5,
            lease: 20.0,
            second: 0.02,
            unit: Duration::from_millis(600),
        }
    } else {
        Form {
            workers: 12,
            units: 900,
            kills: 24,
            stops: 6,
            stopped: Duration::from_secs(3),
            restarts: 2,
            lease: 1.5,
            second: 0.5,
            unit: Duration::from_millis(40),
        }
    }
}

/// A worker as a process: `URL UNITS MILLISECONDS NAME`. One called `liar` lies in all it says, one called `twice…` says everything twice.
pub fn worker(how: &str) -> ExitCode {
    let words: Vec<&str> = how.split(' ').collect();
    let [url, units, each, name] = words[..] else { return ExitCode::from(2) };
    let plan = plan(units.parse().expect("a number"));
    let each = Duration::from_millis(each.parse().expect("a number"));
    let stop = AtomicBool::new(false);
    let tell = |_: &str| ();
    let settings = Settings { claim: each * 2, ..settings(name) };
    let Ok(Joined::In((link, heard))) = Link::join(&Db::new(url).expect("an address"), &settings, &device(), &stop, &tell) else {
        return ExitCode::from(3);
    };
    let (is_liar, is_twice) = (name == "liar", name.starts_with("twice"));
    if !is_twice {
        let plan = &plan;
        let change = move |record: &mut vyre_conform::ledger::UnitRecord| {
            if is_liar {
                record.expected = Digest::of([b"lie".as_slice(), &record.first.to_le_bytes()]);
                record.actual = record.expected;
            }
        };
        let make = move || Ok(Box::new(Sleeper { plan, each, change }) as Box<dyn vyre_campaign::Hand>);
        return match vyre_campaign::work(&link, &heard, &settings, vec![Box::new(make)], &stop, &tell) {
            Ok(done) => ExitCode::from(u8::from(done.ended == Ended::Banned)),
            Err(_) => ExitCode::from(3),
        };
    }
    // The same by hand: claim, sleep, and every answer twice.
    loop {
        if link.alive(&stop, &tell).is_err() {
            return ExitCode::from(3);
        }
        match link.claim(1, &stop, &tell) {
            Ok(Claimed::Range(claim)) => {
                std::thread::sleep(each);
                let range =
                    Range { units: (claim.lo..claim.hi).map(|number| record(&plan, number)).collect(), ..Range::default() };
                let first = link.finish(&claim, &range, &stop, &tell);
                let second = link.finish(&claim, &range, &stop, &tell);
                if first != second {
                    // Somebody was not believed meanwhile and the range is run again, or the lease has ended: both are the queue's to say.
                    continue;
                }
            }
            Ok(Claimed::Wait(_)) => std::thread::sleep(Duration::from_millis(100)),
            Ok(Claimed::Over(_)) => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::from(3),
        }
    }
}

struct Sleeper<'a, F> {
    plan: &'a vyre_conform::Plan,
    each: Duration,
    change: F,
}

impl<F: FnMut(&mut vyre_conform::ledger::UnitRecord)> vyre_campaign::Hand for Sleeper<'_, F> {
    fn run(&mut self, unit: u64, _: bool, range: &mut Range) -> Result<(), String> {
        std::thread::sleep(self.each);
        let (section, mut record) = record(self.plan, unit);
        (self.change)(&mut record);
        range.units.push((section, record));
        Ok(())
    }

    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String> {
        self.run(unit, true, range)
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// The library of Debian's package that bends the clocks of a process.
fn bent_clocks() -> std::path::PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = folders.map(|folder| folder.join("faketime/libfaketime.so.1")).filter(|library| library.exists());
    found.next().expect("faketime is not installed, and clocks are to be wrong here: apt-get install faketime")
}

struct Crew<'a> {
    form: &'a Form,
    url: String,
    children: Vec<(Child, Option<Instant>)>,
    made: usize,
}

impl Crew<'_> {
    fn hire(&mut self, name: &str) {
        let this = std::env::current_exe().expect("this program");
        // Clocks of a third are an hour early, of a third an hour late.
        let clock = [None, Some("-1h"), Some("+1h")][self.made % 3];
        let mut command = Command::new(&this);
        if let Some(off) = clock {
            // The library itself, and not the command `faketime`, whose process would be killed in the worker's place.
            // Only the time of day: clocks that count from the start of a machine have no hour to be wrong by.
            command.env("LD_PRELOAD", bent_clocks()).env("FAKETIME", off).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let how = format!("{} {} {} {name}", self.url, self.form.units, self.form.unit.as_millis());
        command.env("VYRE_QUEUE_WORKER", how).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("this program starts");
        self.children.push((child, None));
        self.made += 1;
    }

    /// Lets those go on whose stop is over.
    fn wake(&mut self) {
        for (child, until) in &mut self.children {
            if until.is_some_and(|until| Instant::now() > until) {
                send(child.id(), "CONT");
                *until = None;
            }
        }
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn chaos(server: &mut Server) {
    let form = form();
    let made = Made::new(server, form.units, form.lease, form.second);
    let url = server.url(OWNER, &made.database);
    let mut crew = Crew { form: &form, url, children: Vec::new(), made: 0 };
    crew.hire("liar");
    crew.hire("twice0");
    crew.hire("twice1");
    for n in 3..form.workers {
        crew.hire(&format!("w{n}"));
    }
    let mut dice = Dice(4711);
    let (mut kills, mut stops, mut restarts) = (0, 0, 0);
    let began = Instant::now();
    let mut connection = None;
    let mut findings = Vec::new();
    loop {
        assert!(began.elapsed() < Duration::from_secs(3600), "it does not come to an end");
        std::thread::sleep(Duration::from_millis(60));
        crew.wake();
        // Whoever owns the campaign looks now and then, and asks the reference about what differs.
        let looked = (|| {
            let open = match &mut connection {
                Some(open) => open,
                none @ None => none.insert(made.db.connect()?),
            };
            findings.extend(settle(open, "c", &mut judge(&made.plan))?);
            Status::read(open, "c")
        })();
        let status = match looked {
            Ok(status) => status,
            Err(_) => {
                connection = None;
                continue;
            }
        };
        let done = status.classes[0].done as f64 / form.units as f64;
        // Harm is spread over the campaign: so much of it as of the units is done.
        let due = |count: usize| (done * 1.3 * count as f64) as usize;
        if kills < form.kills && (kills < due(form.kills) || dice.below(4) == 0) {
            // The liar is to be found out, and not to be killed before that.
            let n = 1 + dice.below(crew.children.len() - 1);
            let (child, _) = &mut crew.children[n];
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
            crew.children.remove(n);
            kills += 1;
            crew.hire(&format!("w{}", crew.made));
        }
        if stops < form.stops && (stops < due(form.stops) || dice.below(12) == 0) {
            let n = dice.below(crew.children.len());
            let (child, until) = &mut crew.children[n];
            if until.is_none() && n > 0 {
                send(child.id(), "STOP");
                *until = Some(Instant::now() + form.stopped);
                stops += 1;
            }
        }
        if restarts < form.restarts && restarts < due(form.restarts) {
            server.restart_immediately();
            restarts += 1;
        }
        // Workers that went home because everything seemed done come again if a lie was found afterwards.
        let there = crew.children.iter_mut().filter_map(|(child, _)| child.try_wait().ok()).filter(Option::is_none).count();
        if there == 0 && !status.is_complete() {
            crew.hire(&format!("w{}", crew.made));
        }
        if there == 0 && status.is_complete() && crew.children.iter().all(|(_, until)| until.is_none()) {
            break;
        }
    }
    assert_eq!((kills, stops, restarts), (form.kills, form.stops, form.restarts), "all of the harm was done");
    let liars = server.sql(&made.database, "SELECT string_agg(name, ',') FROM vyre.worker WHERE state = 2");
    assert_eq!(liars, "liar", "{findings:?}");
    assert!(
        findings.iter().any(|found| found.why.contains("(liar) is not believed: the reference expects other bytes")),
        "{findings:?}"
    );
    let status = Status::read(&mut connect(&made.db), "c").expect("the server is there");
    eprintln!(
        "chaos: {} units, {kills} kills, {stops} stops, {restarts} restarts in {:?}; {} late answers refused; {} lost claims",
        form.units,
        began.elapsed(),
        status.classes[0].late,
        server.sql(&made.database, "SELECT sum(lost) FROM vyre.span"),
    );
    assert!(status.classes[0].late > 0, "somebody was late: {}", status.text());
    made.check(server);
}
