//! The text form.
pub(crate) mod suggest;
use crate::diagnostic::{Report, Source};
use crate::ir::{DataType, Expr, Node, Program, Scalar};
use std::fmt;
/// x
pub fn parse(_name: &str, _text: &str) -> Result<Program, Report> { unreachable!() }
/// x
pub fn print(_program: &Program) -> Source { Source::default() }
/// x
pub fn render(_report: &Report, _color: bool) -> String { String::new() }
/// x
pub fn format(_name: &str, _text: &str) -> Result<String, Report> { unreachable!() }
/// x
pub fn parse_value(_scalar: Scalar, _text: &str) -> Option<u64> { None }
/// x
pub fn format_value(_scalar: Scalar, _bits: u64) -> String { String::new() }
/// x
pub fn parse_data_type(_text: &str) -> Option<DataType> { None }
pub(crate) fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result { f.write_str(name) }
pub(crate) fn write_expr(_f: &mut fmt::Formatter<'_>, _expr: &Expr) -> fmt::Result { Ok(()) }
pub(crate) fn write_node(_f: &mut fmt::Formatter<'_>, _node: &Node) -> fmt::Result { Ok(()) }
