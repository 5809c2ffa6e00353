//! UTF-8.

use crate::template::Template;
use vyre_foundation::ir::Program;

static KERNEL: Template = Template::new(include_str!("../../kernels/utf8.vyre"));

/// Whether a text is UTF-8, and if not, up to where.
///
/// | buffer | | |
/// |---|---|---|
/// | `text` @0 | read u8 | |
/// | `rest` @1 | output u32, 1 element | how many bytes there are from the first that begins no character, and is not part of one, to the end; 0 if there is none |
///
/// Launch: any grid along x. At most seven bytes are looked at for each; an atomic for each that is wrong.
#[must_use]
pub fn utf8_rest(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[])
}

/// What [`utf8_rest`] gives: what the standard library says.
#[must_use]
pub fn utf8_rest_on_cpu(text: &[u8]) -> u32 {
    std::str::from_utf8(text).map_or_else(|error| (text.len() - error.valid_up_to()) as u32, |_| 0)
}
