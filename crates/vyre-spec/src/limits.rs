//! Numbers that every part of vyre enforces alike.

/// How deep statements and expressions may nest, counted together along one path from the root.
pub const MAX_NESTING: u32 = 256;

/// Invocations in one workgroup, at most.
pub const MAX_WORKGROUP_INVOCATIONS: u32 = 1024;

/// Bytes of workgroup memory, at most, each buffer rounded up to 16 bytes.
pub const MAX_WORKGROUP_BYTES: u64 = 32 * 1024;

/// The subgroup sizes a program may declare.
pub const SUBGROUP_SIZES: [u32; 4] = [4, 8, 16, 32];

/// What `vyre check --portable` warns above: the smallest devices in wide use.
pub mod portable {
    /// Invocations in one workgroup.
    pub const WORKGROUP_INVOCATIONS: u32 = 256;
    /// Bytes of workgroup memory.
    pub const WORKGROUP_BYTES: u64 = 16 * 1024;
    /// Storage buffers (`read`, `read_write`, `output`).
    pub const STORAGE_BUFFERS: usize = 6;
    /// Bytes of one storage buffer.
    pub const STORAGE_BYTES: u64 = 128 * 1024 * 1024;
}
