//! What a caller can say about a dispatch beside program and inputs.

use super::BackendError;
use crate::specialization::SpecMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use vyre_foundation::launch::LaunchConfig;

/// What a caller can say about a dispatch. `None` and empty mean that nothing is said.
///
/// A pipeline is compiled with one and dispatched with another: per field, and per name where names have values, what the call says
/// wins. What changes compiled code cannot change from call to call; see [`DispatchConfig::over`].
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
    /// Which tuning of the backend to use. A device refuses names it does not know; a hand-written backend gets them as they are. A
    /// tuning changes how fast code is and never what it gives, so that a pipeline that was compiled with another one keeps that;
    /// [`Ran::profile`](crate::device::Ran::profile) says which ran.
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

    /// The same without values for constants, for a program in which they are replaced. Names are not copied only to be dropped.
    pub(crate) fn without_specialization(&self) -> DispatchConfig {
        DispatchConfig {
            grid_override: self.grid_override,
            workgroup_override: self.workgroup_override,
            output_counts: self.output_counts.clone(),
            max_output_bytes: self.max_output_bytes,
            specialization: SpecMap::new(),
            ulp_budget: self.ulp_budget,
            timeout: self.timeout,
            require_deterministic: self.require_deterministic,
            profile: self.profile.clone(),
            label: self.label.clone(),
        }
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
        let fixed = |what: &str, differs: bool| if differs { Err(other_than_compiled(what)) } else { Ok(()) };
        fixed("workgroup override", self.workgroup_override.is_some() && self.workgroup_override != compiled.workgroup_override)?;
        fixed("ulp budget", self.ulp_budget.is_some() && self.ulp_budget != compiled.ulp_budget)?;
        self.specialization.check_within(&compiled.specialization)?;
        if compiled == nothing {
            return Ok(Cow::Borrowed(self));
        }
        Ok(Cow::Owned(DispatchConfig {
            grid_override: self.grid_override.or(compiled.grid_override),
            workgroup_override: compiled.workgroup_override,
            output_counts: compiled.output_counts.iter().chain(&self.output_counts).map(|(name, n)| (name.clone(), *n)).collect(),
            max_output_bytes: self.max_output_bytes.or(compiled.max_output_bytes),
            specialization: compiled.specialization.clone(),
            ulp_budget: compiled.ulp_budget,
            timeout: self.timeout.or(compiled.timeout),
            require_deterministic: self.require_deterministic.or(compiled.require_deterministic),
            profile: self.profile.clone().or_else(|| compiled.profile.clone()),
            label: self.label.clone().or_else(|| compiled.label.clone()),
        }))
    }
}

/// The error of a call that says something else than its pipeline was compiled with.
fn other_than_compiled(what: &str) -> BackendError {
    BackendError::InvalidProgram {
        fix: format!("the pipeline was compiled with another {what}. Fix: compile it again with the {what} of this call"),
    }
}
