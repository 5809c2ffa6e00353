//! `wgpu:swiftshader` under the kit for backend authors.

use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_wgpu as _;

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire("wgpu:swiftshader")
}

vyre_conform::backend_tests!(open);
