//! `wgpu:llvmpipe-gl` under the kit for backend authors, where OpenGL comes up.

use std::process::ExitCode;
use vyre_driver::backend::registry::{acquire, registered_devices};
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_wgpu as _;

const ID: &str = "wgpu:llvmpipe-gl";

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire(ID)
}

fn main() -> ExitCode {
    if !registered_devices().iter().any(|(_, device)| device.id == ID) {
        eprintln!("there is no `{ID}` here: OpenGL does not come up");
        return ExitCode::SUCCESS;
    }
    vyre_conform::kit::main(open)
}
