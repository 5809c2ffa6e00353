//! A shader as SPIR-V: what naga writes, and on top of it what it has no words for.
//!
//! naga gives a driver leave to rewrite floats. The words are gone over once more: every float result is decorated `NoContraction`, which
//! forbids to fuse and to reorder, and `!=` becomes the comparison that is true of NaN. Execution modes for signed zeros, infinities and
//! rounding are for whoever knows that the device has them.

use crate::error::EmitError;
use crate::module::{Layout, Shader};
use naga::back::spv;

const OP_EXT_INST: u32 = 12;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;
const OP_F_NEGATE: u32 = 127;
const OP_F_ADD: u32 = 129;
const OP_F_SUB: u32 = 131;
const OP_F_MUL: u32 = 133;
const OP_F_DIV: u32 = 136;
const OP_F_ORD_NOT_EQUAL: u32 = 182;
const OP_F_UNORD_NOT_EQUAL: u32 = 183;
const NO_CONTRACTION: u32 = 42;

/// Words before the first instruction.
const HEADER: usize = 5;

impl Shader {
    /// The module in words.
    ///
    /// # Errors
    ///
    /// [`EmitError::Invalid`], a mistake of ours.
    pub fn spirv(&self) -> Result<Vec<u32>, EmitError> {
        let invalid = |error: spv::Error| EmitError::Invalid { message: error.to_string(), text: self.wgsl.clone() };
        let mut options = spv::Options { lang_version: (1, 3), force_loop_bounding: false, ..spv::Options::default() };
        options.flags.remove(spv::WriterFlags::DEBUG);
        // The shader clears its memory itself, and its guards are its own.
        options.zero_initialize_workgroup_memory = spv::ZeroInitializeWorkgroupMemoryMode::None;
        options.emit_int_div_checks = false;
        let pipeline = spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: Layout::ENTRY.into() };
        let words = spv::write_vec(&self.module, &self.info, &options, Some(&pipeline)).map_err(invalid)?;
        Ok(strict(&words))
    }
}

/// The instructions of a module: op and words.
fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut rest = &words[HEADER.min(words.len())..];
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        // A length of 0 would be no module.
        let (this, after) = rest.split_at(((first >> 16) as usize).clamp(1, rest.len()));
        rest = after;
        Some((first & 0xffff, this))
    })
}

/// The same module, with floats that a driver must leave as they are.
fn strict(words: &[u32]) -> Vec<u32> {
    let is_float = |op: u32| matches!(op, OP_F_NEGATE | OP_F_ADD | OP_F_SUB | OP_F_MUL | OP_F_DIV | OP_EXT_INST);
    let floats: Vec<u32> = instructions(words).filter(|(op, _)| is_float(*op)).map(|(_, words)| words[2]).collect();
    let mut out = words[..HEADER].to_vec();
    let mut decorated = false;
    for (op, instruction) in instructions(words) {
        if matches!(op, OP_DECORATE | OP_MEMBER_DECORATE) && !decorated {
            decorated = true;
            out.extend(floats.iter().flat_map(|id| [3 << 16 | OP_DECORATE, *id, NO_CONTRACTION]));
        }
        let at = out.len();
        out.extend(instruction);
        if op == OP_F_ORD_NOT_EQUAL {
            out[at] = out[at] & 0xffff_0000 | OP_F_UNORD_NOT_EQUAL;
        }
    }
    out
}
