//! The side of the worker: reads batches, runs them in the shared memory, answers batch by batch.
//!
//! Messages come on standard input and go to what was standard output when the process started; what a subject prints goes to standard
//! error and cannot be mistaken for an answer. A thread does nothing but notice that the judge is gone, even while the subject hangs.

use crate::caught::Contained;
use crate::memory::{Region, status};
use crate::message::{Answers, Batch, Encoding, Greeting, Hello, PROTOCOL, Told, Work, read_message, write_message};
use crate::subject::{Job, Sequence, SequenceStep, Subject, put};
use crate::system::Mapping;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use vyre_foundation::ir::Program;

/// The whole of a worker process: serves the judge that started it, and ends with it.
///
/// `make` gives the subject: at the start, and again after a panic.
pub fn serve_judge(make: impl FnMut() -> Box<dyn Subject> + Send) -> io::Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let mut output = std::fs::File::from(output);
    rustix::stdio::dup2_stdout(io::stderr())?;
    let mut input = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let hello = read_message(&mut input)?.ok_or_else(|| lies("it says nothing"))?;
    let hello: Hello = Encoding::Json.decode(&hello).map_err(|error| lies(&format!("its first message is wrong: {error}")))?;
    let encoding = Encoding::Wire;
    if hello.vyre_worker != PROTOCOL || !hello.encodings.contains(&encoding) {
        return Err(lies(&format!("it speaks protocol {}, and this vyre speaks protocol {PROTOCOL}", hello.vyre_worker)));
    }
    let file = inherited(hello.memory_fd)?;
    let watched = input.try_clone()?;
    std::thread::Builder::new().name("judge".into()).spawn(move || wait_for_end(&watched))?;
    let mut subject = Contained::new(make);
    let greeting = Greeting { vyre_worker: PROTOCOL, subject: subject.name().to_string(), encoding };
    write_message(&mut output, &Encoding::Json.encode(&greeting).map_err(io::Error::other)?)?;
    let mut memory = Memory { file, mapping: None };
    while let Some(message) = read_message(&mut input)? {
        let batch: Batch = encoding.decode(&message).map_err(|error| lies(&format!("its batch is wrong: {error}")))?;
        let answers = Answers { answers: memory.run(&batch, &mut subject)? };
        write_message(&mut output, &encoding.encode(&answers).map_err(io::Error::other)?)?;
    }
    Ok(())
}

fn lies(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a worker must be started by a judge, and this is not one: {what}"))
}

/// A copy of the file with this number, if there is one.
fn inherited(number: i32) -> io::Result<OwnedFd> {
    std::fs::OpenOptions::new().read(true).write(true).open(format!("/dev/fd/{number}")).map(OwnedFd::from)
}

/// Ends the process when the other end of the pipe is closed, whatever else it is doing.
fn wait_for_end(input: &std::fs::File) {
    loop {
        // Nothing is asked for: what is told is the end, which cannot be left out.
        let mut pipe = [PollFd::new(input, PollFlags::empty())];
        match poll(&mut pipe, None) {
            Ok(1..) => std::process::exit(0),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

struct Memory {
    file: OwnedFd,
    mapping: Option<Mapping>,
}

impl Memory {
    fn run(&mut self, batch: &Batch, subject: &mut dyn Subject) -> io::Result<Vec<Told>> {
        let length = usize::try_from(batch.memory).map_err(io::Error::other)?;
        let mapping = match self.mapping.take().filter(|mapping| mapping.bytes == length) {
            Some(mapping) => mapping,
            None => Mapping::new(self.file.as_fd(), length)?,
        };
        let mapping = self.mapping.insert(mapping);
        let regions = batch.cases.iter().flat_map(|work| work.inputs.iter().chain(&work.outputs));
        let data = batch.status.saturating_add(8 * batch.cases.len() as u64);
        let end = regions.map(|region| region.offset.saturating_add(region.bytes)).fold(data, u64::max);
        let parts = mapping.batch(batch.status, batch.cases.len(), end);
        let (words, bytes) = parts.ok_or_else(|| lies("its memory has no room for what it sends"))?;
        let mut answers = Vec::with_capacity(batch.cases.len());
        let mut rest = Rest { bytes, at: data };
        for (work, word) in batch.cases.iter().zip(words) {
            word.store(status::RUNNING.to_le(), Ordering::Release);
            let told = one(work, &batch.programs, &mut rest, subject)?;
            let ended = match &told {
                Told::Outputs(_) => status::OUTPUTS,
                Told::Failure(_) => status::FAILED,
            };
            word.store(ended.to_le(), Ordering::Release);
            answers.push(told);
        }
        Ok(answers)
    }
}

/// Memory that has not been given away yet, from a place on.
struct Rest<'a> {
    bytes: &'a mut [u8],
    at: u64,
}

impl<'a> Rest<'a> {
    fn take(&mut self, region: Region) -> io::Result<&'a mut [u8]> {
        let bytes = std::mem::take(&mut self.bytes);
        let outside = || lies("its buffers do not follow each other in the memory");
        let skipped = region.offset.checked_sub(self.at).filter(|skipped| *skipped <= bytes.len() as u64).ok_or_else(outside)?;
        let (_, bytes) = bytes.split_at_mut(skipped as usize);
        if region.bytes > bytes.len() as u64 {
            return Err(outside());
        }
        let (taken, rest) = bytes.split_at_mut(region.bytes as usize);
        (self.bytes, self.at) = (rest, region.offset + region.bytes);
        Ok(taken)
    }
}

fn one(work: &Work, programs: &[Program], rest: &mut Rest<'_>, subject: &mut dyn Subject) -> io::Result<Told> {
    let program = |number: u32| programs.get(number as usize).ok_or_else(|| lies("a case names a program that does not exist"));
    let inputs = work.inputs.iter().map(|region| rest.take(*region).map(|bytes| &*bytes)).collect::<io::Result<Vec<_>>>()?;
    let mut outputs = work.outputs.iter().map(|region| rest.take(*region)).collect::<io::Result<Vec<_>>>()?;
    if let [run] = work.run.as_slice()
        && run.buffers.is_none()
    {
        let job =
            Job { program: program(run.program)?, config: &run.config, fuel: work.fuel, inputs: &inputs, outputs: &mut outputs };
        return Ok(match subject.run_in_place(job) {
            Ok(ran) => Told::Outputs(ran.into_iter().collect()),
            Err(failure) => Told::Failure(failure),
        });
    }
    let mut steps = Vec::with_capacity(work.run.len());
    for run in &work.run {
        let buffers = run.buffers.as_deref().ok_or_else(|| lies("a dispatch of several is bound to nothing"))?;
        let buffers = buffers.iter().map(|n| *n as usize).collect();
        steps.push(SequenceStep { program: program(run.program)?.clone(), config: run.config.clone(), buffers });
    }
    let sequence = Sequence { buffers: inputs.iter().map(|bytes| bytes.to_vec()).collect(), steps, fuel: work.fuel };
    Ok(match subject.run_sequence(&sequence).and_then(|found| put(&found, &mut outputs)) {
        Ok(()) => Told::Outputs(Vec::new()),
        Err(failure) => Told::Failure(failure),
    })
}
