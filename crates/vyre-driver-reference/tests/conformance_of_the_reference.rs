//! `reference`, which is written by hand and has neither a device nor resident data, under the kit for backend authors.

use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_reference as _;

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire("reference")
}

vyre_conform::backend_tests!(open);
