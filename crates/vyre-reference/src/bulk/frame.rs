//! A frame: the lanes that are executed together, with their columns.
//!
//! A block has one, and lanes that were compacted get another. A variable has the same columns in every frame.

use super::column::{Stack, Val, is_wide};
use vyre_foundation::ir::Builtin;
use vyre_foundation::kernel::{ExprKind, Kernel, VarId};
use vyre_spec::ValueType;

/// The columns of a variable.
#[derive(Clone, Copy)]
pub(super) struct Components {
    pub first: usize,
    pub count: usize,
    pub wide: bool,
}

#[derive(Default)]
pub(super) struct Frame {
    /// How many lanes there are.
    pub lanes: usize,
    pub narrow: Stack<u32>,
    pub wide: Stack<u64>,
    /// Columns below these belong to variables, ids and `live`.
    pub kept_narrow: usize,
    pub kept_wide: usize,
    pub components: Vec<Components>,
    pub vars: Vec<[Val; 4]>,
    /// The ids that the kernel reads and that differ between lanes, each with its column.
    pub ids: Vec<(Builtin, usize)>,
    /// The column of lanes that are not retired, and how many those are.
    pub live: usize,
    pub live_count: usize,
    /// The loops around the current statement: lanes that have left each, and whether any has.
    pub broken: Vec<(usize, bool)>,
    pub group_memory: Vec<u8>,
    /// What the lanes of one subgroup bring to an operation.
    pub brought: Vec<crate::subgroup::Lane>,
    /// Of compacted lanes: the lanes of the frame around it, and of the block. Empty where lanes are those of the block.
    pub picked: Vec<u32>,
    pub origin: Vec<u32>,
}

impl Frame {
    pub fn of(kernel: &Kernel) -> Frame {
        let mut frame = Frame::default();
        frame.layout(kernel);
        frame
    }

    #[inline]
    pub fn tops(&self) -> (usize, usize) {
        (self.narrow.top(), self.wide.top())
    }

    #[inline]
    pub fn pop_to(&mut self, (narrow, wide): (usize, usize)) {
        self.narrow.pop_to(narrow);
        self.wide.pop_to(wide);
    }

    /// Makes room for the variables of a kernel.
    fn layout(&mut self, kernel: &Kernel) {
        let (mut narrow, mut wide) = (0, 0);
        for var in &kernel.vars {
            let (scalar, count) = match var.ty {
                ValueType::Scalar(scalar) => (scalar, 1),
                ValueType::Vector(scalar, count) => (scalar, usize::from(count)),
            };
            let next = if is_wide(scalar) { &mut wide } else { &mut narrow };
            self.components.push(Components { first: *next, count, wide: is_wide(scalar) });
            *next += count;
        }
        for expr in &kernel.exprs {
            if let ExprKind::Builtin { builtin } = expr.kind
                && differs(builtin)
                && !self.ids.iter().any(|(id, _)| *id == builtin)
            {
                self.ids.push((builtin, narrow));
                narrow += 1;
            }
        }
        self.live = narrow;
        self.kept_narrow = narrow + 1;
        self.kept_wide = wide;
        self.vars = vec![[Val::Splat(0); 4]; kernel.vars.len()];
    }

    /// Makes this a frame of so many live lanes, with room for `room`.
    pub fn start(&mut self, lanes: usize, room: usize, group_memory: usize) {
        self.lanes = lanes;
        self.narrow.reset(lanes, room, self.kept_narrow);
        self.wide.reset(lanes, room, self.kept_wide);
        self.vars.fill([Val::Splat(0); 4]);
        self.narrow.column_mut(self.live).fill(1);
        self.live_count = lanes;
        self.broken.clear();
        self.clear_group_memory(group_memory);
    }

    pub fn clear_group_memory(&mut self, bytes: usize) {
        self.group_memory.clear();
        self.group_memory.resize(bytes, 0);
    }

    /// Whether a value is the column of this variable itself.
    pub fn is_own_column(&self, var: VarId, value: Val) -> bool {
        let Components { first, count, wide } = self.components[var.index()];
        match value {
            Val::Splat(_) => false,
            Val::Narrow(column) => !wide && (first..first + count).contains(&column),
            Val::Wide(column) => wide && (first..first + count).contains(&column),
        }
    }
}

/// Whether lanes of a block read different values.
fn differs(builtin: Builtin) -> bool {
    match builtin {
        Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => true,
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => false,
    }
}
