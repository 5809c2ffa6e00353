//! The data contracts of vyre: what types, ops, error codes and limits there are, and nothing about how they are computed.
//!
//! Every list that two parts of vyre must agree on has its home here and is a table: the enum, the printer, the parser, the type
//! check, the wire form, the program generator and the tables in `docs/ir.md` are all read off the same rows. Nothing of vyre is
//! below this crate.

pub mod data_type;
pub mod error_code;
pub mod limits;
pub mod nibble;
pub mod op;
pub mod scalar;

pub use data_type::{DataType, Storage, TypeFamily, TypeId};
pub use error_code::ErrorCode;
pub use op::{
    AtomicClass, AtomicOp, Axis, BinaryOp, Builtin, Effect, Law, OpFamily, OpId, OpInfo, Operand, Precedence, ReduceOp,
    ResultRule, ShuffleFrom, Spelling, SubgroupOp, SubgroupShape, TernaryOp, UnaryOp, Vote,
};
pub use scalar::{FloatMode, Scalar, TypeSet, ValueType};
