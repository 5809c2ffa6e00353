//! Dispatches that the caller waits for.

use super::compiled::{Compiled, Shape};
use super::{Shared, in_time};
use crate::backend::{BackendError, DispatchConfig, OutputBuffers};
use crate::device::{Binding, Call, Code, Deadline, DeviceError, Done, Ran, Stale, Step, WaitError};
use smallvec::SmallVec;
use std::ops::Range;
use std::time::{Duration, Instant};
use vyre_foundation::ir::Access;
use vyre_foundation::launch::Launch;

/// What a slice of work should take on a device that cannot be stopped.
const SLICE: Duration = Duration::from_millis(20);

/// How often a deadline is looked at while a dispatch that was submitted runs on such a device.
const LOOKS: u64 = 64;

/// Workgroups of the first slice, of which nothing is known.
const FIRST_SLICE: u64 = 16;

pub(super) type Bindings<'a> = SmallVec<[Binding<'a>; 8]>;

impl Shared {
    /// Runs on slices, into outputs that keep their memory where it is large enough. After an error they mean nothing.
    pub fn dispatch(
        &self,
        compiled: &Compiled,
        deadline: Deadline,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<Ran, BackendError> {
        let shape = compiled.plan(self, inputs, config)?;
        self.dispatch_shape(compiled, &shape, deadline, inputs, config, outputs)
    }

    fn dispatch_shape(
        &self,
        compiled: &Compiled,
        shape: &Shape,
        deadline: Deadline,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<Ran, BackendError> {
        let generation = self.alive()?;
        in_time(deadline, config)?;
        let zeroed = make_room(compiled, &shape.launch, inputs, outputs)?;
        let mut bindings = slices(compiled, inputs, outputs);
        let zero_outputs = !zeroed && !shape.covered;
        let ran = self.execute(compiled, &shape.launch, zero_outputs, &mut bindings, deadline);
        ran.map_err(|error| self.failure(error, generation, config))
    }

    /// The same into the caller's buffers, which change only if nothing fails: the memory that they had is spare then.
    pub fn dispatch_into(
        &self,
        compiled: &Compiled,
        deadline: Deadline,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<Ran, BackendError> {
        let shape = compiled.plan(self, inputs, config)?;
        let mut spare = self.spare.take(shape.output_bytes);
        let result = self.dispatch_shape(compiled, &shape, deadline, inputs, config, &mut spare);
        if result.is_ok() {
            exchange(outputs, &mut spare);
        }
        self.spare.give_back(spare);
        result
    }

    /// Runs a whole dispatch, in as many calls as the device needs.
    pub fn execute(
        &self,
        compiled: &Compiled,
        launch: &Launch,
        zero_outputs: bool,
        bindings: &mut [Binding<'_>],
        deadline: Deadline,
    ) -> Result<Ran, DeviceError> {
        let (code, mut was_there) = compiled.code(self)?;
        let mut result = self.execute_code(compiled, &code, launch, zero_outputs, bindings, deadline);
        if let Err(DeviceError::Stale(Stale::Generation { .. })) = result {
            // Nothing ran.
            let code = compiled.compile_again(self)?;
            was_there = false;
            result = self.execute_code(compiled, &code, launch, zero_outputs, bindings, deadline);
        }
        result.map(|ran| ran.found(was_there))
    }

    fn execute_code(
        &self,
        compiled: &Compiled,
        code: &Code,
        launch: &Launch,
        zero_outputs: bool,
        bindings: &mut [Binding<'_>],
        deadline: Deadline,
    ) -> Result<Ran, DeviceError> {
        let total = u64::from(launch.groups());
        let limit = self.info.limits.groups_per_call.max(1);
        let sliced = self.is_sliced(deadline);
        if self.is_whole(compiled, launch, deadline)? {
            let mut call = Call { code, launch, groups: 0..total, zero_outputs, bindings };
            return self.device.run(&mut call, deadline);
        }
        let mut at = 0;
        let mut groups = if sliced { limit.min(FIRST_SLICE) } else { limit };
        let mut trap: Option<(u32, [u32; 3])> = None;
        let mut ran: Option<Ran> = None;
        loop {
            let before = Instant::now();
            let end = total.min(at + groups);
            let mut call = Call { code, launch, groups: at..end, zero_outputs: zero_outputs && at == 0, bindings };
            match self.device.run(&mut call, deadline) {
                Ok(next) => match &mut ran {
                    Some(ran) => ran.extend(next),
                    None => ran = Some(next),
                },
                // A later slice may have a smaller invocation that traps.
                Err(DeviceError::Trap { tag, invocation }) => {
                    let order = |[x, y, z]: [u32; 3]| [z, y, x];
                    trap = match trap {
                        Some(known) if order(known.1) <= order(invocation) => Some(known),
                        Some(_) | None => Some((tag, invocation)),
                    };
                }
                Err(error) => return Err(error),
            }
            at = end;
            if at == total {
                break;
            }
            if deadline.is_over() {
                return Err(DeviceError::Timeout);
            }
            if sliced {
                groups = next_slice(groups, before.elapsed()).min(limit);
            }
        }
        match (trap, ran) {
            (Some((tag, invocation)), _) => Err(DeviceError::Trap { tag, invocation }),
            (None, Some(ran)) => Ok(ran),
            (None, None) => unreachable!("a slice ran or trapped"),
        }
    }

    fn is_sliced(&self, deadline: Deadline) -> bool {
        deadline.0.is_some() && !self.info.capabilities.interruptible
    }

    /// Whether a dispatch is one call of the device.
    pub fn is_whole(&self, compiled: &Compiled, launch: &Launch, deadline: Deadline) -> Result<bool, DeviceError> {
        let (total, limit) = (u64::from(launch.groups()), self.info.limits.groups_per_call.max(1));
        match compiled.kernel().uses.grid_sync {
            true if total > limit => {
                Err(DeviceError::Unsupported { what: format!("grid barriers over {total} workgroups, only over {limit}") })
            }
            true => Ok(true),
            false => Ok(total <= limit && !self.is_sliced(deadline)),
        }
    }

    /// The workgroups of the steps that a dispatch is submitted as. Nobody knows how long they take: on a device that cannot be stopped
    /// a deadline is looked at so many times.
    ///
    /// # Errors
    ///
    /// If the steps could not tell the smallest invocation that traps: the first that fails ends a submission, and where there is
    /// more than one axis, a later workgroup can have a smaller invocation.
    pub fn pieces(&self, compiled: &Compiled, launch: &Launch, deadline: Deadline) -> Result<Vec<Range<u64>>, DeviceError> {
        let (total, limit) = (u64::from(launch.groups()), self.info.limits.groups_per_call.max(1));
        let is_whole = self.is_whole(compiled, launch, deadline)?;
        let is_line = |extent: [u32; 3]| extent[1..] == [1, 1];
        if !is_whole && compiled.kernel().uses.trap && !(is_line(launch.grid) && is_line(launch.workgroup_size)) {
            let what = format!("traps in submissions of more than one axis and more workgroups than {limit}, or with a deadline");
            return Err(DeviceError::Unsupported { what });
        }
        let each = match is_whole {
            true => total.max(1),
            false if self.is_sliced(deadline) => limit.min(total.div_ceil(LOOKS)).max(1),
            false => limit,
        };
        // A dispatch without workgroups has outputs that are zero.
        Ok((0..total.max(1)).step_by(usize::try_from(each).unwrap_or(usize::MAX)).map(|at| at..total.min(at + each)).collect())
    }

    /// Submits steps and waits for them; what they were begun with is let go in between.
    pub fn submit_and_wait<G>(
        &self,
        begun_with: G,
        steps: Vec<Step>,
        deadline: Deadline,
        config: &DispatchConfig,
    ) -> Result<Done, BackendError> {
        let generation = self.alive()?;
        let submitted = self.device.submit(steps, deadline);
        drop(begun_with);
        let done = submitted.and_then(|mut submission| match submission.wait(Deadline::NONE) {
            Ok(done) => Ok(done),
            Err(WaitError::Failed(error)) => Err(error),
            // Without a deadline nobody is told this.
            Err(WaitError::Pending) => Err(DeviceError::Timeout),
        });
        done.map_err(|error| self.failure(error, generation, config))
    }
}

/// Makes outputs as long as the launch says, with the bytes of those that are inputs too. Gives whether all others are zero.
fn make_room(compiled: &Compiled, launch: &Launch, inputs: &[&[u8]], outputs: &mut OutputBuffers) -> Result<bool, BackendError> {
    let interface = compiled.program().interface();
    outputs.truncate(interface.outputs.len());
    outputs.resize_with(interface.outputs.len(), Vec::new);
    let mut zeroed = true;
    for (output, i) in outputs.iter_mut().zip(&interface.outputs) {
        let requested = launch.bytes[*i];
        let no_room = BackendError::OutOfMemory { requested };
        let Ok(bytes) = usize::try_from(requested) else { return Err(no_room) };
        match compiled.kernel().buffers[*i].access {
            Access::ReadWrite => {
                let input = interface.inputs.iter().position(|input| input == i);
                let input = input.map_or(&[][..], |input| inputs[input]);
                output.clear();
                output.try_reserve_exact(bytes).map_err(|_| no_room)?;
                output.extend_from_slice(input);
            }
            // Memory that the system gives is zero already.
            Access::Output if output.capacity() < bytes => {
                *output = bytemuck::try_zeroed_vec(bytes).map_err(|()| no_room)?;
            }
            Access::Output => {
                zeroed &= bytes == 0;
                output.resize(bytes, 0);
            }
            Access::Read | Access::Uniform | Access::Workgroup => unreachable!("these are not outputs"),
        }
    }
    Ok(zeroed)
}

/// Workgroups of the next slice, after one of so many took so long.
fn next_slice(groups: u64, took: Duration) -> u64 {
    match took {
        took if took < SLICE / 8 => groups.saturating_mul(4),
        took if took < SLICE / 2 => groups.saturating_mul(2),
        took if took > SLICE * 2 => (groups / 2).max(1),
        _ => groups,
    }
}

/// The bindings of a dispatch over slices.
fn slices<'a>(compiled: &Compiled, inputs: &[&'a [u8]], outputs: &'a mut [Vec<u8>]) -> Bindings<'a> {
    // All lists are by binding number.
    let (mut inputs, mut outputs) = (inputs.iter().copied(), outputs.iter_mut());
    let mut input = || inputs.next().expect("as many inputs as the interface has were planned");
    let mut output = || outputs.next().expect("room was made for every output").as_mut_slice();
    let bound = compiled.program().interface().bound.iter();
    bound
        .map(|i| match compiled.kernel().buffers[*i].access {
            Access::Read | Access::Uniform => Binding::In(input()),
            Access::ReadWrite => {
                input();
                Binding::InOut(output())
            }
            Access::Output => Binding::Out(output()),
            Access::Workgroup => unreachable!("workgroup memory is not bound"),
        })
        .collect()
}

/// Gives the caller new results for the memory of the old ones.
pub(super) fn exchange(outputs: &mut OutputBuffers, results: &mut OutputBuffers) {
    outputs.truncate(results.len());
    outputs.resize_with(results.len(), Vec::new);
    outputs.iter_mut().zip(results).for_each(|(output, result)| std::mem::swap(output, result));
}
