//! How often pipelines were found in caches.

/// What a memory cache of pipelines has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipelineCacheSnapshot {
    /// Pipelines that were there.
    pub hits: u64,
    /// Pipelines that had to be compiled.
    pub misses: u64,
}

/// Counts hits and misses, as `cache_hit` of a build tells them.
#[derive(Clone, Debug, Default)]
pub struct PipelineCacheAudit {
    hits: u64,
    misses: u64,
    unknowns: u64,
}

/// What an audit has counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineCacheAuditReport {
    /// Pipelines that were there.
    pub hits: u64,
    /// Pipelines that had to be compiled.
    pub misses: u64,
    /// Pipelines of backends that do not say.
    pub unknowns: u64,
    /// Hits in ten thousand of hits and misses, rounded down; `None` before the first of either.
    pub hit_rate_bps: Option<u32>,
    /// Whether the rate is below the threshold that the report was asked for with.
    pub below_alarm_threshold: bool,
}

impl PipelineCacheAudit {
    /// Nothing counted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a build.
    pub fn observe(&mut self, cache_hit: Option<bool>) {
        match cache_hit {
            Some(true) => self.hits += 1,
            Some(false) => self.misses += 1,
            None => self.unknowns += 1,
        }
    }

    /// What was counted so far, with an alarm below so many hits in ten thousand.
    #[must_use]
    pub fn snapshot(&self, alarm_threshold_bps: u32) -> PipelineCacheAuditReport {
        let known = u128::from(self.hits) + u128::from(self.misses);
        let hit_rate_bps = (u128::from(self.hits) * 10_000).checked_div(known).map(|rate| rate as u32);
        PipelineCacheAuditReport {
            hits: self.hits,
            misses: self.misses,
            unknowns: self.unknowns,
            hit_rate_bps,
            below_alarm_threshold: hit_rate_bps.is_some_and(|rate| rate < alarm_threshold_bps),
        }
    }
}
