//! vyre: the same kernel and inputs give the same bytes on every device, floats included, or an error that says why not.
//!
//! This is the crate to depend on; it names the parts of the others that users need. A kernel is text, or built by code; a
//! [`Dispatch`] runs it, with buffers by name and values by type:
//!
//! ```
//! use vyre::prelude::*;
//!
//! fn main() -> Result<(), BackendError> {
//!     let program: Program = "program xor {
//!       workgroup 64
//!       buffer a: read u32 @0
//!       buffer b: read u32 @1
//!       buffer out: output u32 @2
//!       if gid.x < len(out) { out[gid.x] = a[gid.x] ^ b[gid.x] }
//!     }"
//!     .parse()?;
//!     let backend = Backend::preferred()?;
//!     let results = Dispatch::new(&program).input("a", &[1u32, 2, 3]).input("b", &[7u32, 7, 7]).run(&backend)?;
//!     assert_eq!(results.get::<u32>("out")?, [6, 5, 4]);
//!     Ok(())
//! }
//! ```
//!
//! To run it many times, compile it once: [`Backend::compile`] gives a [`Pipeline`], whose dispatches are run, run into results of
//! before, timed, begun as futures, or run in batches. Data stays on the device in a [`Buffer`]:
//!
//! ```
//! # use vyre::prelude::*;
//! # let backend = Backend::preferred()?;
//! let double: Program = "program double { workgroup 64\n buffer x: read_write f32 @0\n x[gid.x] = 2.0 * x[gid.x] }".parse()?;
//! let double = backend.compile(&double)?;
//! let x = backend.buffer(&[1.0f32, 2.0, 3.0])?;
//! for _ in 0..10 {
//!     double.dispatch().buffer("x", &x).run()?;
//! }
//! assert_eq!(x.read()?, [1024.0, 2048.0, 3072.0]);
//! # Ok::<(), BackendError>(())
//! ```
//!
//! With [`kernel!`] the text is checked when the crate is compiled, and its buffers are parameters with types:
//!
//! ```
//! # use vyre::prelude::*;
//! vyre::kernel! {
//!     program saxpy {
//!         workgroup 64
//!         const a: f32 = 2.0
//!         buffer x: read f32 @0
//!         buffer y: read f32 @1
//!         buffer out: output f32 @2
//!         if gid.x < len(out) { out[gid.x] = a * x[gid.x] + y[gid.x] }
//!     }
//! }
//!
//! let saxpy = Saxpy::compile(&Backend::preferred()?)?;
//! assert_eq!(saxpy.run(&[1.0, 2.0], &[10.0, 20.0])?.out, [12.0, 24.0]);
//! # Ok::<(), BackendError>(())
//! ```
//!
//! The same program from Rust. Names are the only references; operators make expressions, and so do numbers, by their types:
//!
//! ```
//! # use vyre::prelude::*;
//! let i = Expr::var("i");
//! let built = Program::wrapped(
//!     vec![
//!         BufferDecl::read("a", 0, DataType::U32),
//!         BufferDecl::read("b", 1, DataType::U32),
//!         BufferDecl::output("out", 2, DataType::U32),
//!     ],
//!     [64, 1, 1],
//!     vec![
//!         Node::let_bind("i", Expr::gid_x()),
//!         Node::if_then(
//!             i.clone().lt(Expr::len("out")),
//!             vec![Node::store("out", &i, Expr::load("a", &i) ^ Expr::load("b", &i))],
//!         ),
//!     ],
//! )
//! .with_name("xor");
//!
//! // The text form says the same, and reads back as the same program.
//! assert_eq!(built.to_string().parse::<Program>()?, built);
//! # Ok::<(), vyre::Report>(())
//! ```
//!
//! # Errors
//!
//! [`BackendError`] has one variant per thing that a caller does differently; its `Display` draws mistakes into the text of the program.
//!
//! ```
//! # use vyre::prelude::*;
//! # use vyre::ResidentError;
//! # let backend = Backend::open("bulk")?;
//! # let text = "program half { workgroup 64\n buffer x: read_write f32 @0\n if x[gid.x] < 0.0 { trap(7) }\n x[gid.x] = x[gid.x] / 2.0 }";
//! let half: Program = text.parse()?;
//! match Dispatch::new(&half).input("x", &[1.0f32, -1.0]).run(&backend) {
//!     // Names, types, lengths, launch: everything that is wrong, before anything ran. Codes are stable.
//!     Err(BackendError::Rejected(report)) => eprintln!("{report}\n{:?}", report.codes().collect::<Vec<_>>()),
//!     // The kernel said stop.
//!     Err(BackendError::Trap { tag, invocation }) => assert_eq!((tag, invocation), (7, [1, 0, 0])),
//!     // This device cannot; another may.
//!     Err(BackendError::UnsupportedFeature { feature, backend }) => eprintln!("{backend} has no {feature}"),
//!     // The device is gone, and with it its memory.
//!     Err(BackendError::DeviceLost { .. } | BackendError::Resident(ResidentError::Stale(_))) => backend.try_recover()?,
//!     // Everything else has its remedy in the message.
//!     Err(error) => return Err(error),
//!     Ok(results) => println!("{:?}", results.get::<f32>("x")?),
//! }
//! # Ok::<(), BackendError>(())
//! ```

pub mod prelude;

pub use vyre_driver::{
    Backend, BackendError, Buffer, CompiledPipeline, Device, Dispatch, DispatchConfig, OutputBuffers, PendingDispatch, Pipeline,
    Ran, ResidentError, ResidentRange, ResidentStep, Resource, Results, Running, TimedDispatchResult, Timing, Values,
    VyreBackend, backend, device, files, grid_sync, json, observability, pipeline, route, specialization,
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
/// The float state of the host: backends compute under the default one.
pub use vyre_host_floats as host_floats;
pub use vyre_reference as reference;
pub use vyre_scalar as scalar;
pub use vyre_spec as spec;

/// A kernel that is checked when the crate around it is compiled: mistakes in it are errors of the compiler, at their place in the text.
///
/// In the macro stands the text of a program, or `file = "kernels/blur.vyre"`, a path from the file that the macro is in, or a string, for
/// what Rust cannot read as tokens (hexadecimal floats, names in backticks). Attributes and a visibility can stand in front.
///
/// It gives the items below, named after the program:
///
/// ```
/// # use vyre::prelude::*;
/// vyre::kernel! {
///     /// The values above a limit, and how many there are.
///     pub program above {
///         workgroup 64
///         const limit: i32 = 0
///         buffer values: read i32 @0
///         buffer kept: output i32 @1
///         buffer count: output u32[1] @2
///         if gid.x < len(values) && values[gid.x] > limit {
///             kept[gid.x] = values[gid.x]
///             atomic.add(count, 0, 1)
///         }
///     }
/// }
///
/// # fn main() -> Result<(), BackendError> {
/// let backend = Backend::preferred()?;
/// let above = Above::compile(&backend)?; // or `compile_with`, for other values of its constants
/// let AboveOutputs { kept, count } = above.run(&[3, -1, 4])?; // an argument per input, in the order of bindings: a slice, or a `Buffer`
/// assert_eq!((kept, count), (vec![3, 0, 4], vec![2]));
///
/// let above = Above::compile_with(&backend, AboveConstants { limit: 3 })?;
/// let values = backend.buffer(&[3, -1, 4])?;
/// let kept = backend.zeroed::<i32>(3)?;
/// above.dispatch(&values).buffer("kept", &kept).grid([1, 1, 1]).run()?; // everything that a `Dispatch` has
/// assert_eq!(kept.read()?, [0, 0, 4]);
///
/// assert_eq!(Above::program().buffers().len(), 3); // `Above::TEXT` is the text
/// # Ok(())
/// # }
/// ```
///
/// An element is the Rust type of its name. What Rust has none for is an integer with the bits: `u32` for `bool`, `u16` for `f16` and
/// `bf16`, `u8` for the types of 8 and 4 bits; a vector is an array.
///
/// ```compile_fail
/// vyre::kernel! {
///     program wrong { workgroup 64
///         buffer out: output u32 @0
///         out[gid.x] = 1.5
///     }
/// }
/// ```
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! kernel {
    ($($tokens:tt)*) => { $crate::__kernel! { $crate { $($tokens)* } } };
}
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use vyre_macros::kernel as __kernel;

/// The programs of the pages are run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/promise.md")]
    struct Promise;
    #[doc = include_str!("../../../docs/first-kernel.md")]
    struct FirstKernel;
    #[doc = include_str!("../../../docs/floats.md")]
    struct Floats;
    #[doc = include_str!("../../../docs/races.md")]
    struct Races;
    #[doc = include_str!("../../../docs/backends.md")]
    struct Backends;
    #[doc = include_str!("../../../docs/conformance.md")]
    struct Conformance;
}
