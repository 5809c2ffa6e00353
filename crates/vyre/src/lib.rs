//! vyre: the same kernel and inputs give the same bytes on every device, floats included, or an error that says why not.
//!
//! This is the crate to depend on; it names the parts of the others that users need.
//!
//! ```
//! use vyre::ir::{BufferDecl, DataType, Expr, Node, Program};
//!
//! let i = || Expr::var("i");
//! let program = Program::wrapped(
//!     vec![
//!         BufferDecl::read("a", 0, DataType::U32),
//!         BufferDecl::read("b", 1, DataType::U32),
//!         BufferDecl::output("out", 2, DataType::U32),
//!     ],
//!     [64, 1, 1],
//!     vec![
//!         Node::let_bind("i", Expr::gid_x()),
//!         Node::if_then(
//!             Expr::lt(i(), Expr::buf_len("out")),
//!             vec![Node::store("out", i(), Expr::bitxor(Expr::load("a", i()), Expr::load("b", i())))],
//!         ),
//!     ],
//! )
//! .with_name("xor");
//!
//! let a: Vec<u8> = [1u32, 2, 3].iter().flat_map(|x| x.to_le_bytes()).collect();
//! let b: Vec<u8> = [7u32, 7, 7].iter().flat_map(|x| x.to_le_bytes()).collect();
//! let out = vyre::reference::run(&program, &[&a, &b], &Default::default()).unwrap();
//! assert_eq!(out[0], [6u32, 5, 4].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
//!
//! // The text form says the same, and reads back as the same program.
//! let text = program.to_string();
//! assert_eq!(vyre::text::parse("xor.vyre", &text).unwrap(), program);
//! ```

pub use vyre_driver::{
    BackendError, CompiledPipeline, Device, Dispatch, DispatchConfig, OutputBuffers, PendingDispatch, Ran, ResidentError,
    ResidentRange, ResidentStep, Resource, Results, TimedDispatchResult, VyreBackend, backend, device, files, grid_sync, json,
    observability, pipeline, route, specialization,
};
// Linked for their registrations.
#[cfg(feature = "cpu")]
pub use vyre_driver_cpu as cpu;
use vyre_driver_reference as _;
#[cfg(feature = "wgpu")]
pub use vyre_driver_wgpu as wgpu;
#[cfg(feature = "wgpu")]
pub use vyre_emit as emit;
pub use vyre_foundation::{Diagnostic, Location, Report};
pub use vyre_foundation::{
    analysis, diagnostic, interface, ir, kernel, launch, memory_model, passes, specialize, ssa, text, validate, values, wire,
};
pub use vyre_reference as reference;
pub use vyre_scalar as scalar;
pub use vyre_spec as spec;

/// The programs of the page are run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/backends.md")]
struct Backends;
