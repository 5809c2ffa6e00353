//! Columns: one value per lane of a block, and the pool they live in.
//!
//! A value is either the same in all lanes (a *splat*, kept as one scalar) or a column of 32-bit or 64-bit words. Columns are handed
//! out like a stack: a statement takes what it needs and gives everything back at its end, so a warm pool never allocates. The
//! columns of variables lie below the stack and stay.

use vyre_spec::Scalar;

/// A scalar value of every lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Val {
    /// The same bits in every lane.
    Splat(u64),
    /// A column of 32-bit words: bool, u32, i32, f32.
    Narrow(usize),
    /// A column of 64-bit words: u64, i64, f64.
    Wide(usize),
}

/// Whether values of this type are 64-bit words.
pub(super) fn is_wide(scalar: Scalar) -> bool {
    match scalar {
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => false,
        Scalar::U64 | Scalar::I64 | Scalar::F64 => true,
    }
}

/// A word of a column: the bits of a value.
pub(super) trait Word: Copy + Default {
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
    /// This word if `bit` is 1, the other if it is 0; without a branch, so that it vectorises.
    fn or_else(self, bit: u32, other: Self) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn or_else(self, bit: u32, other: Self) -> Self {
        let mask = bit.wrapping_neg();
        self & mask | other & !mask
    }
}

impl Word for u64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn or_else(self, bit: u32, other: Self) -> Self {
        let mask = u64::from(bit).wrapping_neg();
        self & mask | other & !mask
    }
}

/// Columns of one width.
#[derive(Default)]
pub(super) struct Stack<W> {
    columns: Vec<Vec<W>>,
    /// Columns from here on are free.
    top: usize,
    lanes: usize,
    /// Lanes that columns have room for.
    room: usize,
}

impl<W: Word> Stack<W> {
    /// Makes all columns `lanes` long, with room for `room` lanes at least, and takes the first `kept` off the stack.
    pub fn reset(&mut self, lanes: usize, room: usize, kept: usize) {
        self.room = self.room.max(lanes).max(room);
        if self.lanes != lanes {
            self.lanes = lanes;
            for column in &mut self.columns {
                column.reserve_exact(self.room.saturating_sub(column.len()));
                column.resize(lanes, W::default());
            }
        }
        self.top = kept;
        while self.columns.len() < kept {
            self.add();
        }
    }

    fn add(&mut self) {
        let mut column = Vec::with_capacity(self.room);
        column.resize(self.lanes, W::default());
        self.columns.push(column);
    }

    /// A column of any content.
    #[inline]
    pub fn push(&mut self) -> usize {
        if self.top == self.columns.len() {
            self.add();
        }
        self.top += 1;
        self.top - 1
    }

    #[inline]
    pub fn top(&self) -> usize {
        self.top
    }

    /// Gives back everything taken since `top` was asked for.
    #[inline]
    pub fn pop_to(&mut self, top: usize) {
        self.top = top;
    }

    #[inline]
    pub fn column(&self, index: usize) -> &[W] {
        &self.columns[index]
    }

    #[inline]
    pub fn column_mut(&mut self, index: usize) -> &mut [W] {
        &mut self.columns[index]
    }

    /// Takes a column out to write it while others are read; [`Stack::put`] brings it back.
    #[inline]
    pub fn take(&mut self, index: usize) -> Vec<W> {
        std::mem::take(&mut self.columns[index])
    }

    #[inline]
    pub fn put(&mut self, index: usize, column: Vec<W>) {
        self.columns[index] = column;
    }

    #[inline]
    pub fn swap(&mut self, a: usize, b: usize) {
        self.columns.swap(a, b);
    }
}
