//! What most programs use: `use vyre::prelude::*`.

pub use crate::ir::{AtomicOp, BufferDecl, DataType, Expr, Node, Program, Scalar, SubgroupOp};
pub use crate::{Backend, BackendError, Buffer, Dispatch, DispatchConfig, Pipeline, Results, Running, Timing, VyreBackend};
