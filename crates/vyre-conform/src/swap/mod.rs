//! Programs that begin on one backend and go on on another.
//!
//! - [`every_assignment`]: a sequence of dispatches over buffers that stay, under every assignment of backends to its steps. All of them
//!   end with the reference's bytes.
//! - [`Relay`]: the buffers that go from backend to backend, byte for byte. A hand-over that is not possible is a [`HandOverError`].
//! - [`SwapBackend`], [`with_backend_swap`]: the same for backends of which one knows only that bytes go in and come out.

mod assignment;
mod relay;
mod wgsl;

pub use assignment::{
    Assignments, MAX_ASSIGNMENTS, MAX_STEPS, SwapError, SwapFailure, SwapProblem, SwapReport, every_assignment,
};
pub use relay::{HandOverError, Relay};
pub use wgsl::{
    ConformDispatchConfig, ExecutionModel, MAX_DISPATCHES, ProgramBackend, ShaderBackend, SwapBackend, WgslBackend,
    with_backend_swap,
};
