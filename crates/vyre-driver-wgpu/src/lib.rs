//! Vulkan, Metal, DX12 and GL as devices, through wgpu: `wgpu:llvmpipe`, `wgpu:swiftshader`, `wgpu:0`, ….
//!
//! Every adapter that the system has is a device of its own, software ones too. A kernel becomes WGSL ([`vyre_emit`]), which is compiled by
//! the driver below (`code.rs`); memory is the device's (`gpu.rs`), and so is time: work cannot be stopped once it runs, only left
//! behind (`device.rs`).

mod adapters;
mod code;
mod device;
mod gpu;
mod kept;
mod probe;
mod raw;
mod steps;
mod trusted;

pub use device::wgpu_device;
pub use probe::{Probed, probe};
pub use raw::{Shaders, Shading};

use vyre_driver::BackendError;
use vyre_driver::backend::registry::{BackendRegistration, DeviceListing, Devices};

/// The name of the backend, which the ids of its devices begin with.
pub const ID: &str = "wgpu";

inventory::submit! {
    BackendRegistration {
        id: ID,
        precedence: 300,
        about: "shaders on the adapters of this system, through wgpu",
        devices: Devices::Found { list, open },
    }
}

fn list() -> Vec<DeviceListing> {
    adapters::found().iter().map(|found| DeviceListing { id: found.id.to_string(), name: found.name() }).collect()
}

fn open(id: &str) -> Result<Box<dyn vyre_driver::VyreBackend>, BackendError> {
    Ok(vyre_driver::device::backend(wgpu_device(id)?))
}
