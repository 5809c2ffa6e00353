//! One worker process as its judge sees it: a batch goes in, answers come out, and it may end, fall silent or talk nonsense at any time.
//!
//! Nothing here blocks for longer than it is told to: the judge waits for all three pipes at once, writes what fits, and keeps the end
//! of what the process prints, which often says why it died.

use crate::memory::{self, status};
use crate::message::{Encoding, Greeting, Hello, PROTOCOL, framed};
use crate::system::{Shared, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a process has to end after its channel is closed, and its last words to arrive.
const GRACE: Duration = Duration::from_secs(1);
/// How much of what a process prints is kept.
const KEPT: usize = 4096;
/// The longest message a worker may send. Answers are short; the bytes of outputs are not in them.
const LONGEST: u32 = 1 << 26;
/// The shared memory that a process begins with.
const MEMORY: usize = 1 << 20;

pub(crate) struct Process {
    /// Taken when it is handed over to be waited for.
    child: Option<Child>,
    id: u32,
    to: ChildStdin,
    from: ChildStdout,
    /// Until it is closed.
    printing: Option<ChildStderr>,
    printed: Vec<u8>,
    /// Messages and parts of them that the pipe had no room for.
    unsent: Vec<u8>,
    /// Bytes that have arrived and belong to no message yet.
    arrived: Vec<u8>,
    pub(crate) memory: Shared,
    pub(crate) encoding: Encoding,
}

/// Says when nothing more is to be waited for.
#[derive(Clone, Default, Debug)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// When this becomes true.
    #[must_use]
    pub fn when(flag: Arc<AtomicBool>) -> Stop {
        Stop(Some(flag))
    }

    /// Whether it is so.
    #[must_use]
    pub fn is_said(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// What is said about cases that did not run for that reason.
pub(crate) const STOPPED: &str = "it was stopped";

/// Why no message came.
#[derive(Debug)]
pub(crate) enum Silence {
    /// The process ended.
    Ended,
    /// It neither ended nor answered in time.
    Hung,
    /// What it sends is no message.
    Nonsense(String),
    /// Nobody wants to know any more.
    Stopped,
}

impl Process {
    /// Starts a process and waits until it says which subject it is.
    pub(crate) fn start(mut command: Command, patience: Duration, stop: &Stop) -> Result<(Process, String), String> {
        let program = command.get_program().to_owned();
        let cannot = |error: io::Error| format!("cannot start `{}`: {error}", program.display());
        let memory = Shared::new(MEMORY).map_err(|error| format!("no shared memory: {error}"))?;
        // A group of its own, so that what the process starts itself is ended with it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = spawn(command, memory.file()).map_err(cannot)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), printing @ Some(_)) = pipes else {
            end(child);
            return Err("the pipes that were asked for are not there".into());
        };
        let id = child.id();
        let encoding = Encoding::Json;
        let mut process = Process {
            child: Some(child),
            id,
            to,
            from,
            printing,
            printed: vec![],
            unsent: vec![],
            arrived: vec![],
            memory,
            encoding,
        };
        process.does_not_block().map_err(|error| cannot(error.into()))?;
        let hello = Hello {
            vyre_worker: PROTOCOL,
            memory_fd: process.memory.file().as_raw_fd(),
            encodings: vec![Encoding::Wire, Encoding::Json],
        };
        let hello = encoding.encode(&hello)?;
        process.send(&hello)?;
        let greeting = process.answer(patience, 0..0, stop).map_err(|silence| match silence {
            Silence::Hung => format!("the worker sent no greeting within {patience:?}"),
            Silence::Ended => format!("the worker ended before it sent a greeting: {}", process.last_words()),
            Silence::Nonsense(what) => format!("the worker's greeting is wrong: {what}"),
            Silence::Stopped => STOPPED.into(),
        })?;
        let greeting: Greeting =
            encoding.decode(&greeting).map_err(|error| format!("the worker's greeting is wrong: {error}"))?;
        if greeting.vyre_worker != PROTOCOL {
            return Err(format!("the worker speaks protocol {}, and this vyre speaks protocol {PROTOCOL}", greeting.vyre_worker));
        }
        process.encoding = greeting.encoding;
        Ok((process, greeting.subject))
    }

    fn does_not_block(&self) -> rustix::io::Result<()> {
        fcntl_setfl(&self.to, fcntl_getfl(&self.to)? | OFlags::NONBLOCK)?;
        fcntl_setfl(&self.from, fcntl_getfl(&self.from)? | OFlags::NONBLOCK)?;
        self.printing.iter().try_for_each(|pipe| fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK))
    }

    /// The number by which the system knows it.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Sends a message, or as much of it as the pipe has room for; the rest goes while an answer is waited for.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.unsent.extend(framed(message)?);
        self.write();
        Ok(())
    }

    fn write(&mut self) {
        match self.to.write(&self.unsent) {
            Ok(n) => drop(self.unsent.drain(..n)),
            Err(error) if is_later(&error) => {}
            // It has closed its end; whether it has ended shows in what it sends.
            Err(_) => self.unsent.clear(),
        }
    }

    /// Whether something has come that nobody asked for, if nothing is asked at the moment.
    pub(crate) fn goes_on(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Waits for the answer to the oldest message that has none, as long as one of these status words grows at least once in every `limit`
    /// and nobody says stop.
    pub(crate) fn answer(&mut self, limit: Duration, words: Range<usize>, stop: &Stop) -> Result<Vec<u8>, Silence> {
        let mut seen = self.progress(words.clone());
        let mut since = Instant::now();
        // How often progress is looked at, which costs something and makes the limit inexact.
        let look = (limit / 16).clamp(Duration::from_millis(1), Duration::from_millis(50));
        loop {
            if let Some(answer) = self.message()? {
                return Ok(answer);
            }
            if stop.is_said() {
                return Err(Silence::Stopped);
            }
            let now = self.progress(words.clone());
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Silence::Hung);
            }
            let ready = self.wait(!self.unsent.is_empty(), look.min(left))?;
            if ready.printing {
                self.hear();
            }
            if ready.to {
                self.write();
            }
            if ready.from {
                self.receive()?;
            }
        }
    }

    /// A number that grows whenever a case begins or ends, and never above what it is when all have: who sets a word back and forth makes
    /// no progress.
    fn progress(&self, words: Range<usize>) -> u64 {
        self.memory.words()[words].iter().map(|word| memory::state(word).min(status::FAILED)).sum()
    }

    fn wait(&self, sending: bool, time: Duration) -> Result<Ready, Silence> {
        let mut pipes = vec![PollFd::new(&self.from, PollFlags::IN)];
        if sending {
            pipes.push(PollFd::new(&self.to, PollFlags::OUT));
        }
        pipes.extend(self.printing.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut pipes, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Silence::Nonsense(format!("its pipes cannot be waited for: {error}"))),
        }
        let is_ready = |n: usize| pipes.get(n).is_some_and(|pipe| !pipe.revents().is_empty());
        let printing = if self.printing.is_some() { is_ready(pipes.len() - 1) } else { false };
        Ok(Ready { from: is_ready(0), to: sending && is_ready(1), printing })
    }

    /// Takes in what has arrived.
    fn receive(&mut self) -> Result<(), Silence> {
        let mut part = [0; 1 << 14];
        match self.from.read(&mut part) {
            Ok(0) => Err(Silence::Ended),
            Ok(n) => {
                self.arrived.extend_from_slice(&part[..n]);
                Ok(())
            }
            Err(error) if is_later(&error) => Ok(()),
            Err(_) => Err(Silence::Ended),
        }
    }

    /// The message that has arrived, if it is whole.
    fn message(&mut self) -> Result<Option<Vec<u8>>, Silence> {
        let Some((length, _)) = self.arrived.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        if length > LONGEST {
            return Err(Silence::Nonsense(format!("a message of {length} bytes")));
        }
        let end = 4 + length as usize;
        if self.arrived.len() < end {
            return Ok(None);
        }
        let rest = self.arrived.split_off(end);
        let mut message = std::mem::replace(&mut self.arrived, rest);
        message.drain(..4);
        Ok(Some(message))
    }

    /// Takes in what it has printed.
    fn hear(&mut self) {
        let mut part = [0; KEPT];
        let Some(pipe) = &mut self.printing else { return };
        match pipe.read(&mut part) {
            Ok(0) => self.printing = None,
            Ok(n) => {
                self.printed.extend_from_slice(&part[..n]);
                self.printed.drain(..self.printed.len().saturating_sub(KEPT));
            }
            Err(error) if is_later(&error) => {}
            Err(_) => self.printing = None,
        }
    }

    /// How it ended: the signal or status, and the last line it printed. It is ended, if it has not ended by itself.
    pub(crate) fn last_words(&mut self) -> String {
        let status = match self.child.as_mut().and_then(ended_by_itself) {
            Some(status) => describe(status),
            None => "it closed its channel and went on".into(),
        };
        self.child.take().into_iter().for_each(end);
        // Whoever else holds the pipe may keep it open.
        let start = Instant::now();
        while self.printing.is_some() && start.elapsed() < GRACE {
            match self.wait(false, Duration::from_millis(10)) {
                Ok(ready) if ready.printing => self.hear(),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        match last_line(&self.printed) {
            Some(line) => format!("{status}: {line}"),
            None => status,
        }
    }
}

/// Which pipes something can be done with.
struct Ready {
    from: bool,
    to: bool,
    printing: bool,
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.take().into_iter().for_each(end);
    }
}

/// Waits a moment for a process that should be ending.
fn ended_by_itself(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < GRACE => std::thread::sleep(Duration::from_micros(200)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Ends a process with all that it has started, and waits for it. One that the system cannot end at once, which happens inside
/// drivers, is waited for by a thread.
fn end(mut child: Child) {
    // The number is the group's as long as the process has not been waited for.
    if !matches!(child.try_wait(), Ok(Some(_))) {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // They fail only if the process has ended in between.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = child.kill();
        if ended_by_itself(&mut child).is_none() {
            let waiting = std::thread::Builder::new().name("worker end".into());
            // Without a thread it is waited for when this process ends.
            let _ = waiting.spawn(move || child.wait());
        }
    }
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).map(|char| if char.is_control() { ' ' } else { char }).collect())
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(4), _) => "signal 4, illegal instruction".into(),
        (Some(6), _) => "signal 6, aborted".into(),
        (Some(7), _) => "signal 7, bus error".into(),
        (Some(8), _) => "signal 8, arithmetic error".into(),
        (Some(9), _) => "signal 9, killed".into(),
        (Some(11), _) => "signal 11, bad memory access".into(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => status.to_string(),
    }
}
