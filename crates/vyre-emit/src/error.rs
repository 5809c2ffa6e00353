//! Why a kernel has no shader.

use std::fmt;

/// Why a kernel has no shader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EmitError {
    /// The kernel has something that shaders for this target have not.
    Unsupported {
        /// What.
        what: String,
    },
    /// What was made is no valid WGSL: a mistake of ours.
    Invalid {
        /// What naga says about it.
        message: String,
        /// The text.
        text: String,
    },
}

impl EmitError {
    pub(crate) fn unsupported(what: impl Into<String>) -> EmitError {
        EmitError::Unsupported { what: what.into() }
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmitError::Unsupported { what } => write!(f, "there are no shaders with {what}"),
            EmitError::Invalid { message, .. } => write!(f, "the shader that was made is not valid: {message}"),
        }
    }
}

impl std::error::Error for EmitError {}
