//! Which backend can run a program, and why the others cannot.

use crate::backend::registry::registered_devices;
use crate::backend::{BackendError, DispatchConfig, VyreBackend};
use std::fmt;
use vyre_foundation::ir::{Access, DataType, OpId, Program};
use vyre_foundation::kernel::{Buffer, ExprKind, Kernel, StmtKind};

/// The backend that was chosen, and those that were passed over before it.
pub struct Route {
    /// The first backend that fits, open.
    pub backend: Box<dyn VyreBackend>,
    /// What was found out about each that was tried, the chosen one last.
    pub tried: Vec<Tried>,
}

/// What was found out about a backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tried {
    /// Its id.
    pub id: String,
    /// Why it does not fit; empty if it does.
    pub reasons: Vec<String>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reasons.as_slice() {
            [] => write!(f, "{}: fits", self.id),
            reasons => write!(f, "{}: {}", self.id, reasons.join("; ")),
        }
    }
}

/// Opens the first backend whose capabilities and limits fit the program, in the order of [`registered_devices`].
pub fn route(program: &Program, config: &DispatchConfig) -> Result<Route, BackendError> {
    let specialized = config.specialization.apply(program)?;
    specialized.validated().map_err(Clone::clone)?;
    let mut tried = Vec::new();
    for (registration, device) in registered_devices() {
        let (backend, reasons) = match registration.open(&device.id) {
            Ok(backend) => {
                let reasons = misfits(&*backend, &specialized, config);
                (Some(backend), reasons)
            }
            Err(error) => (None, vec![error.message()]),
        };
        let fits = reasons.is_empty();
        tried.push(Tried { id: device.id, reasons });
        if let Some(backend) = backend
            && fits
        {
            return Ok(Route { backend, tried });
        }
    }
    let passed_over = tried.into_iter().map(|tried| (tried.id, tried.reasons.join("; "))).collect();
    Err(BackendError::NoBackend { passed_over })
}

/// Everything about a valid program, its constants replaced, that a backend cannot do. Lengths that only the inputs know are not
/// judged here: the backend refuses them at dispatch.
#[must_use]
pub fn misfits(backend: &dyn VyreBackend, program: &Program, config: &DispatchConfig) -> Vec<String> {
    let kernel = match program.validated() {
        Ok(validated) => validated.kernel(),
        Err(report) => return vec![report.to_string()],
    };
    let mut reasons = Vec::new();
    let mut lacks = |applies: bool, reason: String| {
        if applies {
            reasons.push(reason);
        }
    };
    let uses = kernel.uses;
    let stores = |wanted: DataType| kernel.buffers.iter().any(|buffer| buffer.element == wanted);
    lacks(uses.subgroup && !backend.supports_subgroup_ops(), "it has no subgroup operations".into());
    lacks(uses.f64 && !backend.supports_f64(), "it has no f64".into());
    lacks(stores(DataType::F16) && !backend.supports_f16(), "it has no f16".into());
    lacks(stores(DataType::BF16) && !backend.supports_bf16(), "it has no bf16".into());
    lacks(
        uses.grid_sync && !backend.supports_grid_sync() && !backend.allows_host_grid_sync_split(),
        "it has no grid barriers".into(),
    );
    let size = config.workgroup_override.unwrap_or(kernel.workgroup_size);
    let invocations = size.iter().map(|extent| u64::from(*extent)).product::<u64>();
    let limit = backend.max_compute_invocations_per_workgroup();
    lacks(
        invocations > u64::from(limit),
        format!("its workgroups have at most {limit} invocations, and this program's have {invocations}"),
    );
    for ((axis, extent), limit) in ["x", "y", "z"].iter().zip(size).zip(backend.max_workgroup_size()) {
        lacks(
            extent > limit,
            format!("its workgroups have at most {limit} invocations along {axis}, and this program's {extent}"),
        );
    }
    let limit = backend.max_compute_workgroups_per_dimension();
    for ((axis, invocations), extent) in ["x", "y", "z"].iter().zip(known_invocations(kernel, config)).zip(size) {
        let groups = invocations.div_ceil(u64::from(extent.max(1)));
        lacks(
            groups > u64::from(limit),
            format!("its grids have at most {limit} workgroups along {axis}, and this dispatch {groups}"),
        );
    }
    let limit = backend.max_storage_buffer_bytes();
    for (buffer, count) in known_lengths(kernel, config) {
        let bytes = (u128::from(count) * u128::from(buffer.element.bits().unwrap_or(0))).div_ceil(8);
        lacks(
            bytes > u128::from(limit) && buffer.access != Access::Workgroup,
            format!("its buffers have at most {limit} bytes, and `{}` has {bytes}", buffer.name),
        );
    }
    let missing: Vec<&str> = {
        let supported = backend.supported_ops();
        let mut missing: Vec<&str> =
            ops(kernel).into_iter().filter(|op| !supported.contains(op)).map(|op| op.info().mnemonic).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    };
    lacks(!missing.is_empty(), format!("it has no {}", missing.join(", ")));
    reasons
}

/// Buffers whose lengths are known without inputs, with their elements.
fn known_lengths<'a>(kernel: &'a Kernel, config: &'a DispatchConfig) -> impl Iterator<Item = (&'a Buffer, u32)> {
    let asked = |buffer: &Buffer| config.output_counts.get(buffer.name.as_str()).copied();
    kernel.buffers.iter().filter_map(move |buffer| {
        let asked = if buffer.access == Access::Output { asked(buffer) } else { None };
        Some((buffer, buffer.count.or(asked)?))
    })
}

/// Invocations along x, y and z, or as many as there are at least if inputs can make them more.
fn known_invocations(kernel: &Kernel, config: &DispatchConfig) -> [u64; 3] {
    let size = kernel.workgroup_size.map(u64::from);
    match config.grid_override {
        Some(grid) => std::array::from_fn(|axis| u64::from(grid[axis]) * size[axis]),
        None => {
            let writable = known_lengths(kernel, config).filter(|(buffer, _)| buffer.access.is_output());
            let longest = writable.map(|(_, count)| u64::from(count)).max().unwrap_or(0);
            [longest.div_ceil(size[0].max(1)) * size[0], size[1], size[2]]
        }
    }
}

/// The ops of a kernel.
fn ops(kernel: &Kernel) -> Vec<OpId> {
    let mut ops: Vec<OpId> = Vec::new();
    for expr in &kernel.exprs {
        match &expr.kind {
            ExprKind::Unary { op, .. } => ops.push(OpId::Unary(*op)),
            ExprKind::Binary { op, .. } => ops.push(OpId::Binary(*op)),
            ExprKind::Ternary { op, .. } => ops.push(OpId::Ternary(*op)),
            ExprKind::Lit { .. }
            | ExprKind::Var { .. }
            | ExprKind::Builtin { .. }
            | ExprKind::Len { .. }
            | ExprKind::Load { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => {}
        }
    }
    kernel.stmts.iter().for_each(|stmt| match &stmt.kind {
        StmtKind::Atomic { op, .. } => ops.push(OpId::Atomic(*op)),
        StmtKind::Subgroup { op, .. } => ops.push(OpId::Subgroup(*op)),
        StmtKind::Let { .. }
        | StmtKind::Assign { .. }
        | StmtKind::Store { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return
        | StmtKind::Barrier
        | StmtKind::GridSync
        | StmtKind::Trap { .. }
        | StmtKind::Scope { .. } => {}
    });
    ops
}
