//! The rules of the language, and the proof that a program keeps them.
//!
//! All mistakes of a program are reported in one run. An expression whose type cannot be known because of one mistake is not
//! reported again where it is used. The rules, with the code each breaks:
//!
//! Shape
//!  1. Statements, expressions and types nest at most 256 deep (E0507).
//!
//! Names
//!  2. Buffers, constants and variables have different names wherever both can be seen (E0202).
//!  3. A variable is declared before it is used, in the same or an enclosing scope (E0201); the same holds for buffers (E0204).
//!  4. A buffer is indexed, measured or used by an atomic, never read as a value, and a value is never indexed (E0206).
//!  5. Only variables that a `let` or a result declared are assigned to (E0203).
//!
//! Types
//!  6. Operands have the types of the op's table row: one type where the row says T (E0301), among those it ranges over (E0302).
//!  7. Conditions are bool (E0305), indices (E0306) and loop bounds (E0307) u32.
//!  8. A stored value has the buffer's value type (E0304), an assigned value the variable's type (E0310).
//!  9. A cast goes from scalar to scalar and not from float to bool (E0308); a bitcast keeps the width and is not for bool (E0309).
//! 10. A vector has 2 to 4 components of one type: u32, i32 or f32 (E0311); a component that is taken exists (E0312).
//! 11. Atomic and subgroup ops get as many operands as their row has (E0313), and an op without a value declares no variable (E0314).
//!
//! Buffers and limits
//! 12. Storage and uniform buffers have a binding (E0402) of their own (E0401); workgroup buffers have none (E0403).
//! 13. Element types are ones that kernels can use (E0404); those that can only be loaded are not in buffers that are written (E0409).
//! 14. A workgroup buffer has a count of at least 1 (E0405), all of them fit in 32 KiB (E0406), each buffer fits in 4 GiB (E0416).
//! 15. A workgroup has 1 to 1024 invocations (E0407).
//! 16. Sizes and counts name u32 constants, element types name type constants, and a type constant stands nowhere else (E0412).
//! 17. Stores go to buffers that can be written (E0408), atomics to u32 or i32 buffers that can be written (E0410).
//! 18. A declared subgroup size is 4, 8, 16 or 32 and divides the workgroup (E0414); subgroup ops and ids need one (E0415).
//!
//! Control
//! 19. `break` and `continue` stand in a loop (E0505).
//! 20. A barrier orders something (E0504).
//! 21. A grid barrier stands at the top level, inside blocks and regions only (E0503).
//! 22. Barriers (E0501) and subgroup ops (E0502) are reached uniformly.
//! 23. A loop that synchronises is left, and its iterations are cut short, uniformly (E0506).
//! 24. The lane of a broadcast is uniform (E0508).

mod resolve;
mod uniformity;

use crate::analysis::Uniformity;
use crate::analysis::determinism::{self, Determinism, Known, Proof};
use crate::diagnostic::{BufferPart, Diagnostic, Location, Mistakes, Poison, Report};
use crate::ir::{Access, Program};
use crate::kernel::{BufferId, Kernel};
use crate::launch::Launch;
use crate::ssa::Ssa;
use std::sync::{Arc, OnceLock};
use vyre_host_floats::with_default_state;
use vyre_spec::ErrorCode;
use vyre_spec::limits::{MAX_NESTING, portable};

/// The proof that a program keeps all rules, with what was found out on the way. Only [`Program::validated`] makes one.
#[derive(Debug)]
pub struct Validated {
    kernel: Arc<Kernel>,
    ssa: OnceLock<Ssa>,
    uniformity: OnceLock<Uniformity>,
    determinism: OnceLock<Determinism>,
}

impl Validated {
    /// The resolved program.
    #[must_use]
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The resolved program in SSA form.
    #[must_use]
    pub fn ssa(&self) -> &Ssa {
        self.ssa.get_or_init(|| Ssa::of(&self.kernel))
    }

    /// Which values are the same for invocations that evaluate them together.
    #[must_use]
    pub fn uniformity(&self) -> &Uniformity {
        self.uniformity.get_or_init(|| Uniformity::of(self.ssa()))
    }

    /// Whether the program's bytes are the same under every schedule, as far as can be told without running it.
    #[must_use]
    pub fn determinism(&self) -> &Determinism {
        self.determinism.get_or_init(|| with_default_state(|| determinism::of_form(self.ssa(), self.uniformity())))
    }
}

impl Program {
    /// Whether the program's bytes are the same on every backend and under every schedule, as far as can be told without running
    /// it; see [`crate::analysis::determinism`]. An invalid program has no bytes to speak of, and the report says why.
    pub fn determinism(&self) -> Result<&Determinism, &Report> {
        self.validated().map(Validated::determinism)
    }

    /// Whether that is proven for one launch, which was planned for this program and these inputs, in the order of the interface. An
    /// input whose bytes are not at hand is given as empty; a condition that needs it is then not met.
    pub fn proof_for(&self, launch: &Launch, inputs: &[&[u8]]) -> Result<Proof<'_>, &Report> {
        let validated = self.validated()?;
        let order = self.interface().inputs.iter().map(|n| BufferId(*n as u32));
        let Launch { workgroup_size, grid, lengths, .. } = launch;
        let inputs = order.zip(inputs.iter().copied()).collect();
        let known = Known { ssa: validated.ssa(), workgroup_size: *workgroup_size, grid: *grid, lengths, inputs };
        Ok(with_default_state(|| validated.determinism().for_launch(&known, false)))
    }

    /// The same as far as it can be told before lengths and inputs are known: what is refused here is refused for all of them.
    pub fn proof_for_grid(&self, grid: [u32; 3]) -> Result<Proof<'_>, &Report> {
        let validated = self.validated()?;
        let workgroup_size = validated.kernel().workgroup_size;
        let known = Known { ssa: validated.ssa(), workgroup_size, grid, lengths: &[], inputs: Vec::new() };
        Ok(with_default_state(|| validated.determinism().for_launch(&known, true)))
    }
}

/// Checks every rule.
pub(crate) fn validate(program: &Program) -> Result<Validated, Report> {
    match check(program, &Poison::default(), Wanted::Kernel) {
        Ok(kernel) => Ok(Validated {
            kernel: kernel.into(),
            ssa: OnceLock::new(),
            uniformity: OnceLock::new(),
            determinism: OnceLock::new(),
        }),
        Err(mistakes) => Err(Report::about(program, mistakes)),
    }
}

/// Every mistake against the rules, except in poisoned parts, where one was reported already.
pub(crate) fn mistakes_beside(program: &Program, poison: &Poison) -> Mistakes {
    check(program, poison, Wanted::Mistakes).err().unwrap_or_default()
}

/// What a program is checked for.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Kernel,
    /// Only mistakes, because there are some already.
    Mistakes,
}

fn check(program: &Program, poison: &Poison, wanted: Wanted) -> Result<Kernel, Mistakes> {
    let counts = program.count().map_err(|location| vec![nested_too_deep(location)])?;
    // Whether a literal could be written in another type is found out by float arithmetic.
    let (kernel, mut mistakes) = with_default_state(|| resolve::resolve(program, &counts, poison, wanted));
    uniformity::check(&kernel, &mut mistakes);
    if mistakes.is_empty() { Ok(kernel) } else { Err(mistakes) }
}

/// A breach of rule 1. Once there is none, every later step may recurse.
fn nested_too_deep(location: Location) -> Diagnostic {
    let diagnostic =
        Diagnostic::new(ErrorCode::E0507, format!("the program is nested more than {MAX_NESTING} deep")).at(location);
    match location {
        Location::Const(_) | Location::Buffer(..) => diagnostic.help("use a type that has fewer others inside"),
        Location::Text(_)
        | Location::Program
        | Location::Workgroup
        | Location::WorkgroupAxis(_)
        | Location::Subgroup
        | Location::Tree(_)
        | Location::Head(_)
        | Location::Result(_)
        | Location::Operation(_) => diagnostic.help("give parts of the expression names with `let`, or split the statement"),
    }
}

/// What of a valid program is above what the smallest devices in wide use offer.
#[must_use]
pub fn portable_warnings(validated: &Validated) -> Vec<Diagnostic> {
    let kernel = validated.kernel();
    let warn = |message: String, location: Location| Diagnostic::new(ErrorCode::W0401, message).at(location);
    let mut warnings = Vec::new();
    let invocations = kernel.workgroup_invocations();
    if invocations > portable::WORKGROUP_INVOCATIONS {
        warnings.push(
            warn(
                format!(
                    "a workgroup of {invocations} invocations; small devices have at most {}",
                    portable::WORKGROUP_INVOCATIONS
                ),
                Location::Workgroup,
            )
            .expected(format!("at most {}", portable::WORKGROUP_INVOCATIONS))
            .found(invocations),
        );
    }
    if let Some((n, bytes)) = resolve::exceeds(kernel, portable::WORKGROUP_BYTES) {
        warnings.push(
            warn(
                format!(
                    "with this buffer the workgroup memory takes {bytes} bytes; small devices have {}",
                    portable::WORKGROUP_BYTES
                ),
                Location::Buffer(n, BufferPart::Whole),
            )
            .expected(format!("at most {}", portable::WORKGROUP_BYTES))
            .found(bytes),
        );
    }
    let storage: Vec<usize> = (0..kernel.buffers.len())
        .filter(|i| match kernel.buffers[*i].access {
            Access::Read | Access::ReadWrite | Access::Output => true,
            Access::Uniform | Access::Workgroup => false,
        })
        .collect();
    if let Some(extra) = storage.get(portable::STORAGE_BUFFERS) {
        warnings.push(
            warn(
                format!("{} storage buffers; small devices have at most {}", storage.len(), portable::STORAGE_BUFFERS),
                Location::Buffer(*extra as u32, BufferPart::Whole),
            )
            .expected(format!("at most {}", portable::STORAGE_BUFFERS))
            .found(storage.len()),
        );
    }
    for i in storage {
        let buffer = &kernel.buffers[i];
        let bytes = buffer.count.and_then(|count| vyre_scalar::memory::byte_length(&buffer.element, u64::from(count)));
        if let Some(bytes) = bytes.filter(|bytes| *bytes > portable::STORAGE_BYTES) {
            warnings.push(
                warn(
                    format!("`{}` takes {bytes} bytes; small devices bind at most {}", buffer.name, portable::STORAGE_BYTES),
                    Location::Buffer(i as u32, BufferPart::Count),
                )
                .expected(format!("at most {}", portable::STORAGE_BYTES))
                .found(bytes),
            );
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program of the check files, also with a name or a type that is wrong, has the same mistakes whether its kernel is wanted or
    /// not.
    #[test]
    fn mistakes_beside_others_are_those_of_the_whole_program() {
        let mut pending = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../checks"))];
        let mut wrong = 0;
        while let Some(path) = pending.pop() {
            if let Ok(entries) = path.read_dir() {
                pending.extend(entries.map(|entry| entry.expect("the check files can be listed").path()));
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for text in [text.clone(), text.replace("gid.x", "gid_x"), text.replace("let i = ", "let i = lid.x + ")] {
                let Ok(program) = crate::text::parse("t", &text) else { continue };
                let expected = check(&program, &Poison::default(), Wanted::Kernel).err().unwrap_or_default();
                wrong += usize::from(!expected.is_empty());
                assert_eq!(mistakes_beside(&program, &Poison::default()), expected, "{}", path.display());
            }
        }
        assert!(wrong > 500, "{wrong}");
    }
}
