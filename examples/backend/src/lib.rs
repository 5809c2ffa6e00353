//! A backend to begin with: a device that runs kernels one invocation at a time, and only simple ones.
//!
//! It is whole: it is registered, so that every command finds it as `example`; it refuses by name what it cannot run; it looks at the
//! clock. What it computes with is a few dozen lines below, where a real backend has its compiler. `docs/backends.md` walks through it.

use std::sync::Arc;
use vyre::backend::registry::BackendRegistration;
use vyre::device::{
    Bytes, Capabilities, CodeOptions, DeviceError, DeviceInfo, Execution, Generation, HostCode, HostDevice, HostKernels, Limits,
    backend,
};
use vyre::interface::Interface;
use vyre::ir::{Axis, BinaryOp, Builtin, DataType, OpId, Scalar};
use vyre::kernel::{Body, BufferId, ExprId, ExprKind, Kernel, StmtKind};

const ID: &str = "example";

/// What an op does.
type Apply = fn(u32, u32) -> u32;

/// The ops that it has, and what they do. The adapter refuses kernels with any other before anything runs.
const OPS: [(BinaryOp, Apply); 5] = [
    (BinaryOp::Add, u32::wrapping_add),
    (BinaryOp::Sub, u32::wrapping_sub),
    (BinaryOp::BitXor, |left, right| left ^ right),
    (BinaryOp::BitAnd, |left, right| left & right),
    (BinaryOp::Lt, |left, right| u32::from(left < right)),
];

inventory::submit! {
    BackendRegistration::single(ID, 950, "an example: simple kernels, one invocation at a time", || {
        Ok(backend(Arc::new(HostDevice::new(Example))))
    })
}

struct Example;

/// A kernel made ready. A compiler would have machine code here.
struct Ready {
    kernel: Arc<Kernel>,
    /// By buffer: its place among the bindings.
    places: Vec<usize>,
}

impl HostKernels for Example {
    type Code = Ready;

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            id: ID,
            name: "the example of a backend".into(),
            fingerprint: ID.into(),
            build: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities {
                ops: OPS.into_iter().map(|(op, _)| OpId::Binary(op)).collect(),
                subgroups: false,
                f16: false,
                bf16: false,
                f64: false,
                grid_sync: false,
                tensor_cores: false,
                host_memory: true,
                interruptible: true,
            },
            limits: Limits {
                workgroup_size: [1024, 1, 1],
                workgroup_invocations: 1024,
                groups_per_axis: u32::MAX,
                groups_per_call: u64::from(u32::MAX),
                buffer_bytes: u64::from(u32::MAX),
                span_alignment: 1,
                subgroup_size: None,
            },
            profiles: Vec::new(),
            generation: Generation::default(),
        }
    }

    fn compile(&self, kernel: &Arc<Kernel>, _: &CodeOptions) -> Result<HostCode<Ready>, DeviceError> {
        refuse_what_we_lack(kernel)?;
        let bound = Interface::of_kernel(kernel).bound;
        let places = (0..kernel.buffers.len()).map(|i| bound.iter().position(|other| *other == i).unwrap_or(0)).collect();
        let code = Ready { kernel: kernel.clone(), places };
        Ok(HostCode { code, bytes: 1000, lowering: Arc::from("one by one"), hash: None, ulp: None })
    }

    fn execute(&self, ready: &Ready, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        let Execution { launch, groups, bindings, stop } = execution;
        let size = launch.workgroup_size[0];
        let deadline = vyre::device::Deadline(stop.deadline);
        for group in groups {
            if deadline.is_over() {
                return Err(DeviceError::Timeout);
            }
            if stop.cancelled.is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed)) {
                return Err(DeviceError::Cancelled);
            }
            for local in 0..size {
                // Workgroups are numbered with x fastest.
                let gid = group % launch.grid[0] * size + local;
                let vars = vec![0; ready.kernel.vars.len()];
                let mut invocation = Invocation { ready, lengths: &launch.lengths, bindings, gid, vars };
                invocation.body(ready.kernel.body());
            }
        }
        Ok(1)
    }
}

/// Everything that is not listed here is refused by name: a kernel that is run must be run right.
fn refuse_what_we_lack(kernel: &Kernel) -> Result<(), DeviceError> {
    let lacks = |what: &str| Err(DeviceError::Unsupported { what: what.into() });
    for buffer in &kernel.buffers {
        if buffer.element != DataType::U32 || buffer.binding.is_none() {
            return lacks("buffers but of u32, nor workgroup memory");
        }
    }
    for stmt in &kernel.stmts {
        match stmt.kind {
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Scope { .. } => {}
            StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap { .. }
            | StmtKind::Barrier
            | StmtKind::GridSync
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. } => return lacks("loops, returns, traps, barriers, atomics or subgroups"),
        }
    }
    for expr in &kernel.exprs {
        match &expr.kind {
            ExprKind::Lit { .. } | ExprKind::Var { .. } | ExprKind::Len { .. } | ExprKind::Load { .. } => {}
            ExprKind::Binary { ty: Scalar::U32, .. } => {}
            ExprKind::Binary { .. } => return lacks("ops on other types than u32"),
            ExprKind::Builtin { builtin: Builtin::Invocation(Axis::X) } => {}
            ExprKind::Builtin { .. } => return lacks("ids but `gid.x`"),
            ExprKind::Unary { .. }
            | ExprKind::Ternary { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => return lacks("unary or ternary ops, casts or vectors"),
        }
    }
    Ok(())
}

/// One invocation on its way.
struct Invocation<'a, 'b> {
    ready: &'a Ready,
    lengths: &'a [u32],
    bindings: &'a mut [Bytes<'b>],
    gid: u32,
    vars: Vec<u32>,
}

impl Invocation<'_, '_> {
    fn body(&mut self, body: Body) {
        let ready = self.ready;
        for (_, stmt) in ready.kernel.stmts_of(body) {
            match stmt.kind {
                StmtKind::Let { var, value } | StmtKind::Assign { var, value } => self.vars[var.index()] = self.value(value),
                StmtKind::Store { buffer, index, value, .. } => {
                    let (index, value) = (self.value(index), self.value(value));
                    self.store(buffer, index, value);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let taken = if self.value(cond) != 0 { then } else { otherwise };
                    self.body(taken);
                }
                StmtKind::Scope { body } => self.body(body),
                StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return
                | StmtKind::Trap { .. }
                | StmtKind::Barrier
                | StmtKind::GridSync
                | StmtKind::Atomic { .. }
                | StmtKind::Subgroup { .. } => unreachable!("refused when it was compiled"),
            }
        }
    }

    fn value(&self, id: ExprId) -> u32 {
        match self.ready.kernel.expr(id).kind {
            ExprKind::Lit { bits } => bits as u32,
            ExprKind::Var { var } => self.vars[var.index()],
            ExprKind::Builtin { .. } => self.gid,
            ExprKind::Len { buffer } => self.lengths[buffer.index()],
            ExprKind::Load { buffer, index, .. } => self.load(buffer, self.value(index)),
            ExprKind::Binary { op, left, right, .. } => {
                let (_, apply) = OPS.iter().find(|(known, _)| *known == op).expect("the adapter refuses other ops");
                apply(self.value(left), self.value(right))
            }
            ExprKind::Unary { .. }
            | ExprKind::Ternary { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => unreachable!("refused when it was compiled"),
        }
    }

    /// An element that is not there is 0.
    fn load(&self, buffer: BufferId, index: u32) -> u32 {
        let bytes: &[u8] = match &self.bindings[self.ready.places[buffer.index()]] {
            Bytes::Read(bytes) => bytes,
            Bytes::Write(bytes) => bytes,
        };
        bytes.as_chunks::<4>().0.get(index as usize).map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// A store to an element that is not there is dropped.
    fn store(&mut self, buffer: BufferId, index: u32, value: u32) {
        if let Bytes::Write(bytes) = &mut self.bindings[self.ready.places[buffer.index()]]
            && let Some(word) = bytes.as_chunks_mut::<4>().0.get_mut(index as usize)
        {
            *word = value.to_le_bytes();
        }
    }
}
