//! The example under the kit for backend authors: what it can run it runs right, in every form.

use vyre::backend::registry::acquire;
use vyre::{BackendError, VyreBackend};
use vyre_example_backend as _;

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire("example")
}

vyre_conform::backend_tests!(open);
