//! A wrapper over any device: one bit of the first bytes that a call writes is wrong. What a mutant looks like from outside.

use std::sync::Arc;
use vyre_driver::device::{
    Binding, Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Generation, Memory, Ran, Step, Submission,
};
use vyre_foundation::kernel::Kernel;

pub struct Flip<D>(pub D);

impl<D: Device> Device for Flip<D> {
    fn info(&self) -> Arc<DeviceInfo> {
        self.0.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        self.0.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.0.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        let ran = self.0.run(call, deadline)?;
        let written = call.bindings.iter_mut().find_map(|binding| match binding {
            Binding::InOut(bytes) | Binding::Out(bytes) => bytes.first_mut(),
            Binding::In(_) | Binding::Memory(_) => None,
        });
        written.into_iter().for_each(|byte| *byte ^= 1);
        Ok(ran)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        self.0.submit(steps, deadline)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        self.0.recover()
    }
}
