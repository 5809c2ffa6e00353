//! Grid barriers in one dispatch against the driver's split into several.

use crate::{TIERS, dispatch, eager, eager_device, generated, meaning};
use std::sync::Arc;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::device::{
    Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Generation, Memory, Ran, Step, Submission, backend,
};
use vyre_driver::grid_sync::contains_grid_sync;
use vyre_foundation::kernel::Kernel;

/// A device that says it has no grid barriers.
struct WithoutGridSync(Arc<dyn Device>);

impl Device for WithoutGridSync {
    fn info(&self) -> Arc<DeviceInfo> {
        let mut info = DeviceInfo::clone(&self.0.info());
        info.capabilities.grid_sync = false;
        Arc::new(info)
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        assert!(!kernel.uses.grid_sync, "such kernels are split");
        self.0.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.0.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        self.0.run(call, deadline)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        self.0.submit(steps, deadline)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        self.0.recover()
    }
}

#[test]
fn grid_barriers_in_one_dispatch_give_the_bytes_of_the_split() {
    for portable in TIERS {
        let one = eager(3, portable);
        assert!(one.supports_grid_sync());
        let split = wrap_grid_sync_split(backend(Arc::new(WithoutGridSync(eager_device(3, portable)))));
        assert!(!split.supports_grid_sync());
        let cases = (0..).map(|number| generated(0x65, number)).filter(|case| contains_grid_sync(&case.program)).take(60);
        for case in cases {
            let (found, other) = (dispatch(&*one, &case), dispatch(&*split, &case));
            assert!(found == other && found == meaning(&case), "portable: {portable}\n{}", case.program);
        }
    }
}
