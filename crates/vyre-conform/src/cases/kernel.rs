//! A kernel of the user's over inputs that are worth trying.

use super::{Cases, Work};
use crate::plan::profile;
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_smith::generate::{Generated, dna};

/// The launch shapes that cases go through: invocations along x.
const INVOCATIONS: [u32; 8] = [1, 2, 37, 64, 100, 256, 300, 1000];

/// One program, with values that go wrong, lengths around its launch, and launches of several sizes.
pub struct KernelCases {
    op: String,
    program: Program,
    config: DispatchConfig,
    cases: u64,
}

impl KernelCases {
    /// A valid program under a name; `config` has the values of its constants.
    ///
    /// # Errors
    ///
    /// If nothing can be launched: no case of the first thousand has a plan.
    pub fn new(name: &str, program: Program, config: DispatchConfig, cases: u64) -> Result<KernelCases, String> {
        let made = KernelCases { op: format!("kernel.{name}"), program, config, cases };
        let launches = (0..1000).any(|number| made.try_case(0, number).is_ok());
        if launches { Ok(made) } else { Err(made.try_case(0, 0).err().unwrap_or_default()) }
    }

    /// The case of a number, if such a dispatch can be planned.
    fn try_case(&self, seed: u64, number: u64) -> Result<Case, String> {
        let kernel = self.program.validated().map_err(ToString::to_string)?.kernel();
        let [x, y, z] = kernel.workgroup_size;
        let wanted = INVOCATIONS[(number % INVOCATIONS.len() as u64) as usize];
        let grid = [wanted.div_ceil(x), 1, 1];
        let invocations = grid[0] * x * y * z;
        let generated =
            Generated { program: self.program.clone(), config: self.config.clone(), fuel: 1 << 34, invocations, grid };
        let mut case = generated.case(&dna(seed, number));
        if case.plan().is_err() {
            // Outputs without a count, or a program in two dimensions: nothing but an explicit launch fits.
            case.config.grid_override = Some(grid);
            for i in &self.program.interface().outputs {
                let buffer = &kernel.buffers[*i];
                if !buffer.access.is_input() && buffer.count.is_none() {
                    case.config.output_counts.insert(buffer.name.as_str().into(), invocations);
                }
            }
        }
        case.plan().map_err(|report| report.to_string())?;
        Ok(case)
    }
}

impl Cases for KernelCases {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        "inputs"
    }

    fn cases(&self) -> u64 {
        self.cases
    }

    fn profile(&self) -> String {
        profile(&self.program)
    }

    fn identity(&self) -> Vec<u8> {
        self.program.fingerprint().to_vec()
    }

    fn case(&self, seed: u64, number: u64) -> Work {
        // A draw that cannot be launched is replaced by the next one that can; `new` has seen that there are some.
        let draws = (0..1000).map(|attempt| self.try_case(seed ^ (attempt << 48), number + attempt * 8));
        let first = draws.flat_map(Result::ok).next();
        first.unwrap_or_else(|| Case { config: self.config.clone(), ..Case::new(self.program.clone(), Vec::new()) }).into()
    }
}
