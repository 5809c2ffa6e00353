//! A device that fails on demand: any device, with faults at chosen calls.
//!
//! Every call is counted. A fault comes before the wrapped device is asked, but for a short read, which comes after it has done the work; of
//! a submission, all but the lack of memory show when it is waited for, as on devices. A device that is lost stays so until
//! [`Device::recover`], and whatever was in flight is lost with it.

use super::{
    Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Done, Generation, Memory, Ran, Step, Submission,
    WaitError,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use vyre_foundation::kernel::Kernel;

/// A way to fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The device is gone until it is recovered, with all memory and all code.
    DeviceLost,
    /// There is not enough memory.
    OutOfMemory,
    /// It takes too long; the device can be used again.
    Timeout,
    /// It takes too long on a device that cannot be stopped, and is lost.
    Hang,
    /// Fewer bytes come back than should. Nothing fails in a call that reads none.
    ShortRead,
    /// The device panics.
    Panic,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 6] =
        [Fault::DeviceLost, Fault::OutOfMemory, Fault::Timeout, Fault::Hang, Fault::ShortRead, Fault::Panic];
}

/// A method of [`Device`] that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "they are the names of methods")]
pub enum Method {
    Compile,
    Allocate,
    Run,
    Submit,
    Recover,
}

/// Which calls fail, and how. Calls are counted from zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<(Option<Method>, u64, Fault)>,
}

impl FaultPlan {
    /// Nothing fails.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The `n`-th of all calls fails too.
    #[must_use]
    pub fn at_call(mut self, n: u64, fault: Fault) -> Self {
        self.faults.push((None, n, fault));
        self
    }

    /// The `n`-th call of one method fails too.
    #[must_use]
    pub fn at_call_of(mut self, method: Method, n: u64, fault: Fault) -> Self {
        self.faults.push((Some(method), n, fault));
        self
    }
}

/// A device with faults. Clones are the same device: keep one to ask what happened.
#[derive(Clone)]
pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    plan: Arc<FaultPlan>,
    state: Arc<Mutex<State>>,
}

/// A fault, and the number of the call that it comes at.
type Met = (u64, Fault);

#[derive(Default)]
struct State {
    calls: u64,
    calls_of: HashMap<Method, u64>,
    fired: Vec<(u64, Fault)>,
    lost: bool,
    /// How often the device was lost: a submission of before is of a device that is gone.
    losses: u64,
}

impl State {
    fn lose(&mut self) {
        self.lost = true;
        self.losses += 1;
    }
}

fn lost() -> DeviceError {
    DeviceError::Lost { reason: "on demand".into() }
}

impl FaultyDevice {
    /// The device, failing as planned.
    #[must_use]
    pub fn new(inner: Arc<dyn Device>, plan: FaultPlan) -> Self {
        FaultyDevice { inner, plan: Arc::new(plan), state: Arc::default() }
    }

    /// Calls so far that could fail.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Calls of one method so far.
    #[must_use]
    pub fn calls_of(&self, method: Method) -> u64 {
        self.state().calls_of.get(&method).copied().unwrap_or(0)
    }

    /// The faults that have come, each with the number of its call.
    #[must_use]
    pub fn fired(&self) -> Vec<(u64, Fault)> {
        self.state().fired.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; the fault that it meets, with the number of the call.
    fn count(&self, method: Method) -> Option<Met> {
        let mut state = self.state();
        let (call, of) = (state.calls, *state.calls_of.entry(method).or_default());
        state.calls += 1;
        *state.calls_of.entry(method).or_default() += 1;
        let met = |(wanted, n, _): &&(Option<Method>, u64, Fault)| match wanted {
            None => *n == call,
            Some(wanted) => *wanted == method && *n == of,
        };
        self.plan.faults.iter().find(met).map(|(_, _, fault)| (call, *fault))
    }

    /// What a fault comes to when it shows; a short read shows in what is read.
    fn strike(&self, met: Option<Met>) -> Result<(), DeviceError> {
        let mut state = self.state();
        let fault = match met {
            None | Some((_, Fault::ShortRead)) if state.lost => return Err(lost()),
            None | Some((_, Fault::ShortRead)) => return Ok(()),
            Some(met) => {
                state.fired.push(met);
                met.1
            }
        };
        match fault {
            Fault::DeviceLost => {
                state.lose();
                Err(lost())
            }
            Fault::Hang => {
                state.lose();
                Err(DeviceError::Hung)
            }
            Fault::OutOfMemory => Err(DeviceError::OutOfMemory { requested: 1 }),
            Fault::Timeout => Err(DeviceError::Timeout),
            Fault::Panic => {
                drop(state);
                panic!("a fault was injected")
            }
            Fault::ShortRead => unreachable!("it shows in what is read"),
        }
    }
}

impl Device for FaultyDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.inner.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        self.strike(self.count(Method::Compile))?;
        self.inner.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.strike(self.count(Method::Allocate))?;
        self.inner.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        self.strike(self.count(Method::Run))?;
        self.inner.run(call, deadline)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        let met = self.count(Method::Submit);
        if matches!(met, Some((_, Fault::OutOfMemory))) || self.state().lost {
            self.strike(met)?;
        }
        let losses = self.state().losses;
        let inner = self.inner.submit(steps, deadline)?;
        Ok(Box::new(FaultySubmission { inner, device: self.clone(), met, losses }))
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        // A device that cannot be recovered stays lost.
        if let met @ Some((_, fault)) = self.count(Method::Recover)
            && fault != Fault::ShortRead
        {
            self.strike(met)?;
        }
        let generation = self.inner.recover()?;
        self.state().lost = false;
        Ok(generation)
    }
}

struct FaultySubmission {
    inner: Box<dyn Submission>,
    device: FaultyDevice,
    met: Option<Met>,
    losses: u64,
}

impl FaultySubmission {
    fn ended(&mut self, result: Result<Done, DeviceError>) -> Result<Done, DeviceError> {
        if self.device.state().losses != self.losses {
            return Err(lost());
        }
        let met = self.met.take();
        self.device.strike(met)?;
        let mut done = result?;
        if let Some((call, Fault::ShortRead)) = met
            && let Some(read) = done.reads.iter_mut().find(|read| !read.is_empty())
        {
            read.truncate(read.len() / 2);
            self.device.state().fired.push((call, Fault::ShortRead));
        }
        Ok(done)
    }
}

impl Submission for FaultySubmission {
    fn poll(&mut self, waker: Option<&Waker>) -> Poll<Result<Done, DeviceError>> {
        self.inner.poll(waker).map(|result| self.ended(result))
    }

    fn wait(&mut self, deadline: Deadline) -> Result<Done, WaitError> {
        let result = match self.inner.wait(deadline) {
            Err(WaitError::Pending) => return Err(WaitError::Pending),
            Err(WaitError::Failed(error)) => Err(error),
            Ok(done) => Ok(done),
        };
        self.ended(result).map_err(WaitError::Failed)
    }

    fn cancel(&mut self) {
        self.inner.cancel();
    }
}
