//! What a caller can say about a dispatch; the type itself is part of a case, and in foundation.

use super::BackendError;
use vyre_foundation::config::Conflict;
pub use vyre_foundation::config::DispatchConfig;

impl From<Conflict> for BackendError {
    fn from(conflict: Conflict) -> Self {
        BackendError::InvalidProgram { fix: conflict.to_string() }
    }
}
