//! Generated programs.

use super::{Cases, Work};
use vyre_smith::generate::{Preset, VERSION, dna, generate};

/// Programs of one preset, one input each.
pub struct ProgramCases {
    preset: Preset,
    op: String,
}

impl ProgramCases {
    /// Programs about this.
    #[must_use]
    pub fn new(preset: Preset) -> ProgramCases {
        ProgramCases { preset, op: format!("programs.{}", preset.name()) }
    }

    /// One of each preset whose programs give the same bytes under every schedule.
    #[must_use]
    pub fn all() -> Vec<ProgramCases> {
        Preset::ALL.iter().filter(|preset| preset.is_deterministic()).map(|preset| ProgramCases::new(*preset)).collect()
    }
}

impl Cases for ProgramCases {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        "generated"
    }

    /// As many as fit a number; a tier takes the first of them.
    fn cases(&self) -> u64 {
        1 << 40
    }

    fn profile(&self) -> String {
        "mixed".into()
    }

    fn identity(&self) -> Vec<u8> {
        VERSION.to_le_bytes().to_vec()
    }

    fn case(&self, seed: u64, number: u64) -> Work {
        let dna = dna(seed, number);
        generate(self.preset, &dna).case(&dna).into()
    }
}
