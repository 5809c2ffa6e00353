//! A kernel as a shader module, and how it is bound.

use crate::error::EmitError;
use crate::floats::FloatProfile;
use crate::wgsl;
use std::sync::Arc;
use vyre_foundation::kernel::Kernel;

/// What a shader is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Which float ops the device has right, and how.
    pub floats: FloatProfile,
    /// Another workgroup size than the kernel's, which it cannot tell.
    pub workgroup: Option<[u32; 3]>,
    /// How deep control may nest, the shader's own included. Drivers have limits of which they say nothing.
    pub nesting: u32,
    /// How often loops may go round in all, for each invocation, if the driver stops them without a word after that.
    pub rounds: Option<Rounds>,
    /// Where loops may go round more often than that: how often the body of an innermost loop stands in one round.
    pub copies: u32,
}

/// How often a driver lets loops go round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// All loops of a shader together.
    pub most: u32,
    /// So many invocations are counted as one: a round that one of them makes counts for all.
    pub together: u32,
}

impl Default for Target {
    /// What every driver that we know of is right about; llvmpipe, the narrowest, stops counting control at 80.
    fn default() -> Target {
        Target { floats: FloatProfile::INTEGER, workgroup: None, nesting: 72, rounds: None, copies: 1 }
    }
}

/// A kernel in WGSL, valid.
pub struct Shader {
    /// The text.
    pub wgsl: String,
    /// The same as naga has it.
    pub module: naga::Module,
    /// What naga's validator knows about it.
    pub info: naga::valid::ModuleInfo,
    /// What is bound where.
    pub layout: Layout,
}

/// What is bound where, all in group 0: the block of numbers at [`Layout::BLOCK`], traps at [`Layout::TRAPS`], the kernel's buffers from
/// [`Layout::BUFFERS`] on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// By buffer of the kernel's interface, in the order of `bound`: whether the shader may write it.
    pub writable: Vec<bool>,
    /// Buffers, by their declaration, whose lengths follow the fixed numbers of the block.
    pub lengths: Vec<usize>,
    /// The tags of traps. A word of the traps' buffer each: 0, or the complement of the smallest invocation that got there.
    pub traps: Vec<u32>,
    /// Whether the last word of the traps' buffer says that loops went round more often than the driver allows: then nothing else is right.
    pub counts_rounds: bool,
    /// Whether the words of [`floats::table`](crate::floats::table) are bound.
    pub tables: bool,
    /// Bytes of workgroup memory, the shader's own included.
    pub workgroup_bytes: u32,
    /// Invocations of a workgroup.
    pub workgroup: [u32; 3],
}

impl Layout {
    /// The binding of the block: a uniform buffer.
    pub const BLOCK: u32 = 0;
    /// The binding of the traps, where there are any: a storage buffer, zero at first.
    pub const TRAPS: u32 = 1;
    /// The binding of the float library's table, where there is one: a storage buffer, read.
    pub const TABLES: u32 = 2;
    /// The binding of the first buffer: storage buffers, all of them.
    pub const BUFFERS: u32 = 3;
    /// The name of the entry point.
    pub const ENTRY: &'static str = "main";

    /// The words of the block for workgroups that begin at `base`, of a dispatch of `grid` workgroups over buffers of these lengths, by
    /// declaration.
    pub fn block(&self, base: [u32; 3], grid: [u32; 3], lengths: &[u32]) -> Vec<u32> {
        let fixed = [0, base[0], base[1], base[2], grid[0], grid[1], grid[2], 0];
        fixed.into_iter().chain(self.lengths.iter().map(|i| lengths[*i])).collect()
    }

    /// Bytes of the block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        (32 + 4 * self.lengths.len() as u64).next_multiple_of(16)
    }

    /// Words of the traps' buffer.
    #[must_use]
    pub fn trap_words(&self) -> usize {
        self.traps.len() + usize::from(self.counts_rounds)
    }

    /// Whether loops went round too often, by the words of the traps' buffer.
    #[must_use]
    pub fn is_out_of_rounds(&self, words: &[u32]) -> bool {
        self.counts_rounds && words.get(self.traps.len()).is_some_and(|word| *word != 0)
    }

    /// The trap that a dispatch ended with, by the words of the traps' buffer: its tag, and the number of the invocation.
    #[must_use]
    pub fn trap(&self, words: &[u32]) -> Option<(u32, u32)> {
        let hits = words.iter().zip(&self.traps).filter(|(word, _)| **word != 0);
        hits.max_by_key(|(word, _)| **word).map(|(word, tag)| (*tag, !*word))
    }
}

impl Shader {
    /// Lowers a kernel.
    ///
    /// # Errors
    ///
    /// [`EmitError::Unsupported`] for what no shader has; [`EmitError::Invalid`] is a mistake of ours.
    pub fn of(kernel: &Arc<Kernel>, target: &Target) -> Result<Shader, EmitError> {
        let (wgsl, layout) = wgsl::emit(kernel, target)?;
        let invalid = |message: String| EmitError::Invalid { message, text: wgsl.clone() };
        let module = naga::front::wgsl::parse_str(&wgsl).map_err(|error| invalid(error.emit_to_string(&wgsl)))?;
        let flags = naga::valid::ValidationFlags::all();
        let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::empty());
        let info = validator.validate(&module).map_err(|error| invalid(error.emit_to_string(&wgsl)))?;
        Ok(Shader { wgsl, module, info, layout })
    }
}
