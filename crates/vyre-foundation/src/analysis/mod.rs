//! What can be known about a kernel without running it: one home per fact.
//!
//! Every fact is a claim about all launches that fit the program, and code generators trust it with memory safety. So a fact is worked
//! out from what a value *is*, "not known" is always a right answer, and each is tested against what runs really did
//! (`crates/vyre-smith/tests/facts.rs`). Facts are about invocations that get there: code that lets others come along must mask
//! them. An access that is moved out from under a condition loses what the condition proved.
//!
//! Facts are about the SSA form they were made from and are vectors by its values, instructions and regions; loads, stores and atomics
//! are known by the [`AccessId`](crate::kernel::AccessId) that they have in the kernel.
//!
//! - [`Uniformity`]: what is the same for invocations that evaluate it together.
//! - [`Numbers`]: which values are equal.
//! - [`Ranges`]: which numbers a value can be.
//! - [`Bounds`]: which accesses are in bounds.
//! - [`Affine`]: indices as sums of products.
//! - [`Epochs`]: which accesses may happen between the same two barriers.
//! - [`determinism`]: whether the bytes are the same under every schedule.
//! - [`Liveness`]: how long values are needed, and how many at once; which variables a loop or a grid barrier has to keep.
//! - [`variables`]: which variables are assigned and read below an `if` or loop.
//! - [`Loops`]: how often loops run, and how they are left.
//! - [`Floats`]: whether a float can be NaN, infinite, subnormal or −0.
//! - [`Outputs`]: which outputs a launch writes completely.

mod affine;
mod bounds;
pub mod determinism;
mod epochs;
mod floats;
pub(crate) mod liveness;
mod loops;
mod numbers;
mod outputs;
mod ranges;
mod uniformity;
pub mod variables;

pub use affine::{Affine, Forms, Product, Stride};
pub use bounds::Bounds;
pub use epochs::{Beginning, Epochs};
pub use floats::{Floats, Kinds};
pub use liveness::{Liveness, LoopVariables};
pub use loops::{Loops, Trips};
pub use numbers::Numbers;
pub use outputs::Outputs;
pub use ranges::{Buffers, Range, Ranges};
pub use uniformity::{Scope, Uniformity};
