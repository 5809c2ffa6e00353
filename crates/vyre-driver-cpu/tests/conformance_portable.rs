//! `cpu` under the kit for backend authors, with every kernel left to the bulk evaluator.

use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::device::backend;
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_cpu::{Options, cpu_device};

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    Ok(wrap_grid_sync_split(backend(cpu_device(Options { portable: true, ..Options::default() }))))
}

vyre_conform::backend_tests!(open);
