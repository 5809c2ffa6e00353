//! How invocations become lanes.

/// Lanes of one vector register of 32-bit values.
pub(crate) const WIDTH: u32 = 8;

/// How the invocations of a workgroup are divided into blocks, which code runs at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// Invocations of a workgroup along x, y and z.
    pub size: [u32; 3],
    /// Vectors of a block.
    pub parts: u32,
    /// Whether workgroups that follow each other along x are one range of invocations, or one for each of their rows: nothing in the kernel
    /// can tell them apart.
    pub flat: bool,
    /// Whether the lanes of a block follow each other along x.
    pub rows: bool,
}

impl Geometry {
    pub fn new(size: [u32; 3], parts: u32, may_be_flat: bool) -> Geometry {
        let one_row = size[1] == 1 && size[2] == 1;
        let flat = may_be_flat && (one_row || size[0].is_multiple_of(WIDTH));
        Geometry { size, parts, flat, rows: flat || one_row || size[0].is_multiple_of(parts * WIDTH) }
    }

    /// Lanes of a block.
    pub fn lanes(&self) -> u32 {
        self.parts * WIDTH
    }

    /// Invocations of a workgroup.
    pub fn total(&self) -> u32 {
        self.size.iter().product()
    }

    /// Rows of a workgroup.
    pub fn row_count(&self) -> u32 {
        self.size[1] * self.size[2]
    }

    /// Blocks of a workgroup, the last of which may be partial.
    pub fn blocks(&self) -> u32 {
        self.total().div_ceil(self.lanes())
    }

    /// Whether the last block has lanes that are nobody.
    pub fn has_tail(&self) -> bool {
        let range = if self.flat { self.size[0] } else { self.total() };
        !range.is_multiple_of(self.lanes())
    }
}
