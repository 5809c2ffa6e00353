//! The driver layer: what a backend is, how one is found, and how programs become pipelines.
//!
//! - [`backend`]: the contract, its errors, and the registry.
//! - [`device`]: what a real backend implements, and the adapter that makes a backend of it.
//! - [`pipeline`]: compile once, run many times; caches; the manifest that reproduces a pipeline elsewhere.
//! - [`specialization`]: values for constants, and keys made of them.
//! - [`grid_sync`]: programs with grid barriers as several dispatches.
//! - [`resident`]: the handles of data that stays on a device.
//! - [`observability`]: counters of dispatches, and spans.
//! - [`files`]: writing files whole or not at all.
//! - [`json`]: errors of every layer for programs to read.
//! - [`launch`]: a program's identity as devices take it.
//! - [`route`](mod@route): which backend can run a program, and why others cannot.
//! - [`Backend`], [`Buffer`], [`Dispatch`], [`Pipeline`]: the same by the names of buffers, with typed values: what people write.

pub mod backend;
pub mod device;
pub mod files;
pub mod grid_sync;
pub mod json;
pub mod launch;
pub mod observability;
pub mod pipeline;
pub mod resident;
pub mod route;
pub mod specialization;
mod typed;

pub use backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ResidentError, ResidentRange, ResidentStep,
    Resource, TimedDispatchResult, VyreBackend,
};
pub use device::{Device, Ran};
pub use route::route;
pub use typed::{Backend, Buffer, Dispatch, Pipeline, Results, Running, Timing, Values};
