//! A failing program with its inputs and outputs by name: of programs that were generated one that was made small, of an op its own.

use super::{HexDiff, Lane, lane};
use serde::{Deserialize, Serialize};
use vyre_foundation::case::{Case, bytes};
use vyre_foundation::ir::DataType;
use vyre_foundation::values;
use vyre_worker::{Failure, Outputs};

/// Elements of an input that are written down.
const ELEMENTS: usize = 32;

/// The smallest program that was found to fail like one of a section, or the section's own on the one case, with all that shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReducedFailure {
    /// The program, as text.
    pub program: String,
    /// Statements and expressions of the program that failed first; 0, and below too, if nobody made it smaller.
    pub from_nodes: u64,
    /// Those of this one.
    pub nodes: u64,
    /// Its inputs: name, and values as text.
    pub inputs: Vec<(String, String)>,
    /// The output that is wrong first: name and element type; `None` if the dispatch gave none.
    pub output: Option<(String, String)>,
    /// What was expected there.
    #[serde(with = "bytes")]
    pub expected: Vec<u8>,
    /// What the device gave.
    #[serde(with = "bytes")]
    pub found: Vec<u8>,
    /// What is wrong, for people.
    pub message: String,
    /// The command that shows it again, if it was kept in a file.
    pub again: Option<String>,
}

impl ReducedFailure {
    /// A case that fails, with what was expected of it and found; `nodes` of the program before and now.
    pub(crate) fn new(
        case: &Case,
        expected: &Result<Outputs, Failure>,
        found: &Result<Outputs, Failure>,
        message: String,
        nodes: (u64, u64),
    ) -> ReducedFailure {
        let interface = case.program.interface();
        // Reduced programs are valid: whoever reduced them has looked.
        let specialized = case.specialized().ok();
        let kernel = specialized.as_ref().and_then(|program| Some(program.validated().ok()?.kernel()));
        let buffer = |at: usize| kernel.map(|kernel| (kernel.buffers[at].name.to_string(), kernel.buffers[at].element.clone()));
        let input = |(at, bytes): (&usize, &Vec<u8>)| {
            let (name, element) = buffer(*at)?;
            let values = values::decode(&element, bytes);
            let more = if values.len() > ELEMENTS { " …" } else { "" };
            Some((name, values[..values.len().min(ELEMENTS)].join(" ") + more))
        };
        let mut reduced = ReducedFailure {
            program: case.program.to_string(),
            from_nodes: nodes.0,
            nodes: nodes.1,
            inputs: interface.inputs.iter().zip(&case.inputs).filter_map(input).collect(),
            output: None,
            expected: Vec::new(),
            found: Vec::new(),
            message,
            again: None,
        };
        if let (Ok(expected), Ok(found)) = (expected, found) {
            let mut outputs = interface.outputs.iter().zip(expected.iter().zip(found));
            if let Some((at, (expected, found))) = outputs.find(|(_, (expected, found))| expected != found) {
                reduced.output = buffer(*at).map(|(name, element): (String, DataType)| (name, element.to_string()));
                (reduced.expected, reduced.found) = (expected.clone(), found.clone());
            }
        }
        reduced
    }

    /// The first wrong element of the output.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        let (_, of) = self.output.as_ref()?;
        lane(std::slice::from_ref(of), &self.expected, &self.found)
    }

    /// Where the bytes of the output differ.
    #[must_use]
    pub fn diff(&self) -> HexDiff {
        HexDiff::of(&self.expected, &self.found)
    }
}
