//! The side of the worker: reads batches, runs them, answers case by case.
//!
//! One thread reads, so that the process notices at once when its judge is gone, even while the subject hangs. The channel is the
//! process's standard input, a socket that is read and written; what a subject prints goes elsewhere and cannot be mistaken for an
//! answer.

use crate::caught::Contained;
use crate::codec::{decode_batch, encode_greeting, encode_outcome, read_frame, write_frame};
use crate::subject::Subject;
use std::io::{self, Read, Write};
use std::sync::mpsc;

/// Answers batches until the input ends, then calls `gone`, from another thread and without waiting for a case that still runs.
///
/// `make` gives the subject: at the start, and again after a panic.
pub fn serve(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    make: impl FnMut() -> Box<dyn Subject> + Send,
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let mut subject = Contained::new(make);
    write_frame(&mut output, &encode_greeting(subject.name()))?;
    let (sender, batches) = mpsc::channel();
    std::thread::Builder::new().name("batches".into()).spawn(move || {
        let mut input = input;
        loop {
            match read_frame(&mut input) {
                Ok(Some(frame)) => {
                    if sender.send(Ok(frame)).is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    // If nobody takes it, the process is ending anyway.
                    let _ = sender.send(Err(error));
                    break;
                }
            }
        }
        gone();
    })?;
    for frame in batches {
        for (number, case) in decode_batch(&frame?).map_err(io::Error::other)?.iter().enumerate() {
            write_frame(&mut output, &encode_outcome(number as u32, subject.run(case)))?;
        }
    }
    Ok(())
}

/// The whole of a worker process: serves the judge that started it, and ends with it.
#[cfg(unix)]
pub fn serve_judge(make: impl FnMut() -> Box<dyn Subject> + Send) -> io::Result<()> {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    let channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    channel.peer_addr().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "a worker is started by a judge, which gives it a socket as standard input")
    })?;
    serve(channel.try_clone()?, channel, make, || std::process::exit(0))
}

/// The whole of a worker process: serves the judge that started it, and ends with it.
///
/// Without Unix sockets the channel is standard input and output, and a subject must not print.
#[cfg(not(unix))]
pub fn serve_judge(make: impl FnMut() -> Box<dyn Subject> + Send) -> io::Result<()> {
    serve(io::stdin(), io::stdout(), make, || std::process::exit(0))
}
