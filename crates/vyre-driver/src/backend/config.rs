//! What a caller can say about a dispatch beside program and inputs.

use super::BackendError;
use crate::specialization::SpecMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use vyre_foundation::determinism::Determinism;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::LaunchConfig;

/// What a caller can say about a dispatch. `None` and empty mean that nothing is said.
///
/// A pipeline is compiled with one and dispatched with another: per field, what the call says wins. What changes compiled code
/// cannot change from call to call; see [`DispatchConfig::over`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DispatchConfig {
    /// Workgroups along x, y and z.
    pub grid_override: Option<[u32; 3]>,
    /// Another workgroup size than the declared one, where the program cannot tell. Changes compiled code.
    pub workgroup_override: Option<[u32; 3]>,
    /// Lengths of outputs that declare none, by name.
    pub output_counts: BTreeMap<String, u32>,
    /// Bytes that all outputs may take together; 1 GiB if nothing is said.
    pub max_output_bytes: Option<u64>,
    /// Values for specialization constants. Changes compiled code.
    pub specialization: SpecMap,
    /// Permission to be off by so many units in the last place in elementary functions. Changes compiled code; never used silently.
    pub ulp_budget: Option<u8>,
    /// When to give up. A dispatch whose time is already over does not start.
    pub timeout: Option<Duration>,
    /// Refuse a program whose bytes are not proven the same under every schedule.
    pub require_deterministic: Option<bool>,
    /// Which tuning of the backend to use; backends ignore names they do not know.
    pub profile: Option<String>,
    /// A name for traces.
    pub label: Option<String>,
}

impl DispatchConfig {
    /// The part that lengths and geometry follow from.
    #[must_use]
    pub fn launch(&self) -> LaunchConfig {
        let defaults = LaunchConfig::default();
        LaunchConfig {
            grid: self.grid_override,
            workgroup_override: self.workgroup_override,
            output_counts: self.output_counts.clone(),
            max_output_bytes: self.max_output_bytes.unwrap_or(defaults.max_output_bytes),
        }
    }

    /// Refuses a program, its constants replaced, whose bytes are not proven the same under every schedule, if
    /// [`DispatchConfig::require_deterministic`] says so. A proof may hold for some grids only; without a grid these are not known yet.
    pub fn check_determinism(&self, program: &Program, grid: Option<[u32; 3]>) -> Result<(), BackendError> {
        if self.require_deterministic != Some(true) {
            return Ok(());
        }
        let determinism = program.determinism().map_err(Clone::clone)?;
        let reason = match determinism {
            Determinism::CrossBackend { .. } if grid.is_none_or(|grid| determinism.holds_for(grid)) => return Ok(()),
            Determinism::CrossBackend { .. } => "the grid has extents that its indices leave out",
            Determinism::Unproven(reason) => &reason.message,
        };
        Err(BackendError::InvalidProgram {
            fix: format!(
                "the bytes of this program are not proven the same under every schedule: {reason}. \
                 Fix: write where only one invocation writes, or do without `require_deterministic`"
            ),
        })
    }

    /// What holds for a call with this config of a pipeline that was compiled with `compiled`. Nothing is copied where one of them
    /// says nothing.
    ///
    /// # Errors
    ///
    /// If the call says something else than the pipeline was compiled with, and that changes code.
    pub fn over<'a>(&'a self, compiled: &'a DispatchConfig) -> Result<Cow<'a, DispatchConfig>, BackendError> {
        static NOTHING: std::sync::OnceLock<DispatchConfig> = std::sync::OnceLock::new();
        let nothing = NOTHING.get_or_init(DispatchConfig::default);
        if self == nothing || self == compiled {
            return Ok(Cow::Borrowed(compiled));
        }
        fixed("workgroup override", self.workgroup_override.is_some() && self.workgroup_override != compiled.workgroup_override)?;
        fixed("ulp budget", self.ulp_budget.is_some() && self.ulp_budget != compiled.ulp_budget)?;
        fixed("specialization", !self.specialization.is_empty() && self.specialization != compiled.specialization)?;
        if compiled == nothing {
            return Ok(Cow::Borrowed(self));
        }
        Ok(Cow::Owned(DispatchConfig {
            grid_override: self.grid_override.or(compiled.grid_override),
            workgroup_override: compiled.workgroup_override,
            output_counts: if self.output_counts.is_empty() { &compiled.output_counts } else { &self.output_counts }.clone(),
            max_output_bytes: self.max_output_bytes.or(compiled.max_output_bytes),
            specialization: compiled.specialization.clone(),
            ulp_budget: compiled.ulp_budget,
            timeout: self.timeout.or(compiled.timeout),
            require_deterministic: self.require_deterministic.or(compiled.require_deterministic),
            profile: self.profile.clone().or_else(|| compiled.profile.clone()),
            label: self.label.clone().or_else(|| compiled.label.clone()),
        }))
    }

    /// This without values for constants, for a pipeline whose constants were replaced by `values`: a call may repeat these.
    pub(crate) fn without_values(&self, values: &SpecMap) -> Result<Cow<'_, DispatchConfig>, BackendError> {
        if self.specialization.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        fixed("specialization", self.specialization != *values)?;
        Ok(Cow::Owned(DispatchConfig { specialization: SpecMap::new(), ..self.clone() }))
    }
}

/// Refuses what differs from what a pipeline was compiled with.
fn fixed(what: &str, differs: bool) -> Result<(), BackendError> {
    match differs {
        true => Err(BackendError::InvalidProgram {
            fix: format!("the pipeline was compiled with another {what}. Fix: compile it again with the {what} of this call"),
        }),
        false => Ok(()),
    }
}
