//! One worker process as its judge sees it: cases go in, outcomes come out, and it may end or fall silent at any time.
//!
//! Threads do what can block: one writes, since a process that hangs does not read; one reads, so that the judge can wait with a
//! deadline; one keeps the end of what the process writes to standard error, which
//! often says why it died.

use crate::codec::{decode_greeting, decode_outcome, read_frame, write_frame};
use crate::subject::{Failure, Outputs};
use std::io::{self, PipeReader, Read, Write};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::process::{Child, Command, ExitStatus, Stdio};
#[cfg(not(unix))]
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long a process has to end after its channel is closed, and its last words to arrive.
const GRACE: Duration = Duration::from_secs(1);
/// How much of what a process prints is kept.
const KEPT: usize = 4096;

pub(crate) struct Process {
    child: Child,
    batches: Sender<Vec<u8>>,
    frames: Receiver<Vec<u8>>,
    printed: Receiver<Vec<u8>>,
}

/// The ends of the threads: batches to write, frames that were read, and what was printed, once it is all.
type Ends = (Sender<Vec<u8>>, Receiver<Vec<u8>>, Receiver<Vec<u8>>);

/// Why no outcome came.
pub(crate) enum Silence {
    /// The process ended.
    Ended,
    /// It neither ended nor answered in time.
    Hung,
    /// It answered with bytes that are no outcome, or for a case that was not its turn.
    Nonsense(String),
}

impl Process {
    /// Starts a process and waits until it says which subject it is.
    pub fn start(command: Command, patience: Duration) -> Result<(Process, String), String> {
        let program = command.get_program().to_owned();
        let (mut child, reader, writer, printed) =
            spawn(command).map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
        let (batches, frames, printed) = threads(reader, writer, printed).map_err(|error| {
            end(&mut child);
            format!("no threads for a worker: {error}")
        })?;
        let mut process = Process { child, batches, frames, printed };
        match process.frames.recv_timeout(patience) {
            Ok(frame) => match decode_greeting(&frame) {
                Ok(name) => Ok((process, name)),
                Err(error) => Err(format!("the worker's greeting is wrong: {error}")),
            },
            Err(RecvTimeoutError::Timeout) => Err(format!("the worker does not greet within {patience:?}")),
            Err(RecvTimeoutError::Disconnected) => Err(format!("the worker ends before it greets: {}", process.end())),
        }
    }

    /// The number by which the system knows it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Hands a batch over. Whether it arrives shows in the answers.
    pub fn send(&mut self, batch: Vec<u8>) {
        let _ = self.batches.send(batch);
    }

    /// Waits for the outcome of case `number` of the batch.
    pub fn receive(&mut self, number: usize, deadline: Duration) -> Result<Result<Outputs, Failure>, Silence> {
        let frame = self.frames.recv_timeout(deadline).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Hung,
            RecvTimeoutError::Disconnected => Silence::Ended,
        })?;
        match decode_outcome(&frame) {
            Ok((found, outcome)) if found as usize == number => Ok(outcome),
            Ok((found, _)) => Err(Silence::Nonsense(format!("an answer for case {found}, and it was the turn of {number}"))),
            Err(error) => Err(Silence::Nonsense(error.to_string())),
        }
    }

    /// Ends it, if it has not ended by itself, and says how: the signal or status, and the last line it printed.
    pub fn end(&mut self) -> String {
        let status = match ended_by_itself(&mut self.child) {
            Some(status) => describe(status),
            None => {
                end(&mut self.child);
                "it closed its channel and went on".into()
            }
        };
        match self.printed.recv_timeout(GRACE).ok().and_then(|bytes| last_line(&bytes)) {
            Some(line) => format!("{status}: {line}"),
            None => status,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Starts the process on one end of a socket, which is its standard input; see `serve.rs`. The command goes with this function: it
/// keeps the child's ends, and as long as they are open the end of the process cannot be seen.
#[cfg(unix)]
fn spawn(mut command: Command) -> io::Result<(Child, UnixStream, UnixStream, PipeReader)> {
    let (ours, theirs) = UnixStream::pair()?;
    let reader = ours.try_clone()?;
    let (printed, print) = io::pipe()?;
    let child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(print).spawn()?;
    Ok((child, reader, ours, printed))
}

/// Starts the process with pipes as standard input and output.
#[cfg(not(unix))]
fn spawn(mut command: Command) -> io::Result<(Child, ChildStdout, ChildStdin, PipeReader)> {
    let (printed, print) = io::pipe()?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(print).spawn()?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(reader), Some(writer)) => Ok((child, reader, writer, printed)),
        _ => Err(io::Error::other("the pipes that were asked for are not there")),
    }
}

/// Waits a moment for a process that should be ending.
fn ended_by_itself(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < GRACE => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Ends a process and reaps it. One that the system cannot end at once, which happens inside drivers, is waited for elsewhere.
fn end(child: &mut Child) {
    if !matches!(child.try_wait(), Ok(Some(_))) {
        // It fails only if the process has ended in between.
        let _ = child.kill();
        ended_by_itself(child);
    }
}

fn threads(
    mut reader: impl Read + Send + 'static,
    mut writer: impl Write + Send + 'static,
    mut printed: PipeReader,
) -> io::Result<Ends> {
    let named = |name: &str| std::thread::Builder::new().name(name.into());
    let (batches, to_write) = mpsc::channel::<Vec<u8>>();
    // All three end with the process: their ends of the channels close.
    named("worker in").spawn(move || {
        for batch in to_write {
            if write_frame(&mut writer, &batch).is_err() {
                break;
            }
        }
    })?;
    let (sender, frames) = mpsc::channel();
    named("worker out").spawn(move || {
        while let Ok(Some(frame)) = read_frame(&mut reader) {
            if sender.send(frame).is_err() {
                break;
            }
        }
    })?;
    let (sender, tail) = mpsc::channel();
    named("worker print").spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; KEPT];
        while let Ok(n @ 1..) = printed.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..n]);
            kept.drain(..kept.len().saturating_sub(KEPT));
        }
        let _ = sender.send(kept);
    })?;
    Ok((batches, frames, tail))
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
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

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    status.to_string()
}
