//! The predicate of `vyre reduce`: a command of the user's that runs once per candidate.
//!
//! It runs in a process group of its own, so that one that hangs can be ended with all that it started. That also keeps the signals of
//! a terminal from it: whoever interrupts this command interrupts the reduction, which then ends the predicate, removes its folder
//! and at last does what the signal asks for.

use crate::Failure;
use crate::launch::launch_flags;
use crate::reduce::Args;
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vyre_smith::reduce::Interest;
use vyre_worker::Case;

/// The user's command, and the folder in which it finds candidates.
pub struct Predicate {
    command: String,
    timeout: Duration,
    folder: TempDir,
    this: PathBuf,
    signals: Signals,
    /// What it printed the first time, and how it ended.
    pub first: Option<(String, String)>,
    /// How often it was ended because it took too long.
    pub hung: u64,
}

impl Predicate {
    pub fn new(args: &Args) -> Result<Predicate, Failure> {
        let signals = Signals::caught().map_err(|error| Failure::Usage(format!("cannot listen to signals: {error}")))?;
        let cannot = |error| Failure::Usage(format!("cannot make a temporary folder: {error}"));
        let folder = tempfile::Builder::new().prefix("vyre-reduce-").tempdir().map_err(cannot)?;
        let this = std::env::current_exe().unwrap_or_else(|_| "vyre".into());
        let variables = ["VYRE_FILE", "VYRE_WIRE", "VYRE_ARGS", "VYRE_INPUT"];
        let command = if variables.iter().any(|name| args.predicate.contains(name)) {
            args.predicate.clone()
        } else {
            format!("{} \"$VYRE_FILE\"", args.predicate)
        };
        Ok(Predicate { command, timeout: args.deadline, folder, this, signals, first: None, hung: 0 })
    }

    pub fn ask(&mut self, case: &Case) -> Interest {
        match self.run(case) {
            Err(error) => Interest::Failed(error.to_string()),
            Ok(Ended::Interrupted) => Interest::Stop,
            Ok(ended) => {
                if self.first.is_none() {
                    let printed = fs::read(self.folder.path().join("printed")).unwrap_or_default();
                    self.first = Some((String::from_utf8_lossy(&printed).into_owned(), ended.to_string()));
                }
                match ended {
                    Ended::Itself(status) if status.success() => Interest::Yes,
                    Ended::Itself(status) if status.code().is_some() => Interest::No,
                    Ended::Itself(_) => Interest::Failed(ended.to_string()),
                    Ended::Hung(_) => {
                        self.hung += 1;
                        Interest::Failed(ended.to_string())
                    }
                    Ended::Interrupted => Interest::Stop,
                }
            }
        }
    }

    fn run(&self, case: &Case) -> io::Result<Ended> {
        let place = |name: &str| self.folder.path().join(name);
        let (text, wire) = (place("candidate.vyre"), place("candidate.vyreb"));
        fs::write(&text, case.program.to_string())?;
        fs::write(&wire, vyre::wire::to_wire(&case.program).map_err(|error| io::Error::other(error.to_string()))?)?;
        let printed = File::create(place("printed"))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command);
        command.env("VYRE_FILE", &text).env("VYRE_WIRE", &wire).env("VYRE", &self.this);
        let mut flags = String::new();
        for (n, (i, bytes)) in case.program.interface().inputs.iter().zip(&case.inputs).enumerate() {
            let name = case.program.buffers()[*i].name.as_str();
            let path = place(&format!("input{n}.bin"));
            fs::write(&path, bytes)?;
            let _ = write!(flags, " --in {name}=@{}", path.display());
            if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                command.env(format!("VYRE_INPUT_{name}"), &path);
            }
        }
        flags.push_str(&launch_flags(case));
        command.env("VYRE_ARGS", flags.trim_start());
        command.stdin(Stdio::null()).stderr(printed.try_clone()?).stdout(printed);
        in_own_group(&mut command);
        self.wait(command.spawn()?)
    }

    /// Waits for a process, and ends it with all that it has started if that takes too long or nobody wants to know any more.
    fn wait(&self, mut child: Child) -> io::Result<Ended> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Ended::Itself(status));
            }
            let is_late = start.elapsed() >= self.timeout;
            if is_late || self.signals.first().is_some() {
                end_group(&child);
                let _ = child.kill();
                child.wait()?;
                return Ok(if is_late { Ended::Hung(self.timeout) } else { Ended::Interrupted });
            }
            std::thread::sleep(pause.min(self.timeout.saturating_sub(start.elapsed())));
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Removes the folder; then this process ends, if a signal has asked for that.
    pub fn finish(self) {
        let Predicate { folder, signals, .. } = self;
        // What cannot be removed stays; there is nobody left to be told.
        drop(folder);
        signals.obey();
    }
}

/// How a run of the predicate ended.
enum Ended {
    Itself(ExitStatus),
    Hung(Duration),
    /// A signal came before it did.
    Interrupted,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Itself(status) => status.fmt(f),
            Ended::Hung(time) => write!(f, "no answer for {time:?}"),
            Ended::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// Signals that ask this process to end, which are kept until it can. The second of a kind ends it at once.
struct Signals(Vec<(i32, Arc<AtomicBool>)>);

impl Signals {
    fn caught() -> io::Result<Signals> {
        use signal_hook::consts::TERM_SIGNALS;
        let hangup = if cfg!(unix) { Some(1) } else { None };
        let mut caught = Vec::new();
        for signal in TERM_SIGNALS.iter().copied().chain(hangup) {
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register_conditional_default(signal, came.clone())?;
            signal_hook::flag::register(signal, came.clone())?;
            caught.push((signal, came));
        }
        Ok(Signals(caught))
    }

    /// One that came.
    fn first(&self) -> Option<i32> {
        self.0.iter().find(|(_, came)| came.load(Ordering::Relaxed)).map(|(signal, _)| *signal)
    }

    /// Ends this process as the signal would have, so that a shell sees it and stops too.
    fn obey(&self) {
        if let Some(signal) = self.first() {
            // It returns only for signals that do not end a process.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

#[cfg(unix)]
fn in_own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Ends every process of the group that the child leads. The child has not been waited for, so its number is still its own.
#[cfg(unix)]
fn end_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // It fails only if the whole group has ended in between.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

#[cfg(not(unix))]
fn in_own_group(_: &mut Command) {}

#[cfg(not(unix))]
fn end_group(_: &Child) {}
