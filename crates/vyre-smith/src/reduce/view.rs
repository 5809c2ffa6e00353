//! A case that can be run, with what validation found out about it; and the same taken apart, to be changed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use vyre_foundation::Report;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::{Name, Parts, Program, ValueType};
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::{Launch, plan};
use vyre_worker::Case;

/// A valid case.
pub(super) struct View {
    pub(super) case: Case,
    /// The program with its constants replaced; places are the same in both.
    resolved: Program,
    /// The shape of the dispatch.
    pub(super) launch: Launch,
    /// By place: the type of an expression; `None` for statements.
    pub(super) types: Vec<Option<ValueType>>,
}

impl View {
    /// Validates program, constants, inputs and launch.
    pub(super) fn of(case: Case) -> Result<View, Report> {
        case.program.validated().map_err(Clone::clone)?;
        let resolved = case.specialized()?;
        let kernel = resolved.validated().map_err(Clone::clone)?.kernel();
        let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let launch = plan(&resolved, &sizes, &case.config.launch())?;
        let mut types = vec![None; resolved.walk().count()];
        for expr in &kernel.exprs {
            if let Some(slot) = types.get_mut(expr.node.0 as usize) {
                *slot = Some(expr.ty);
            }
        }
        Ok(View { case, resolved, launch, types })
    }

    /// The program with its constants replaced.
    pub(super) fn resolved(&self) -> &Program {
        &self.resolved
    }

    /// The kernel of [`View::resolved`].
    pub(super) fn kernel(&self) -> &Kernel {
        self.resolved.validated().expect("a view is made of valid programs").kernel()
    }
}

/// A case taken apart: inputs go by name, so that buffers can come and go.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) parts: Parts,
    pub(super) inputs: BTreeMap<Name, Vec<u8>>,
    pub(super) config: DispatchConfig,
    fuel: u64,
}

impl Draft {
    pub(super) fn of(case: &Case) -> Draft {
        let buffers = case.program.buffers();
        let names = case.program.interface().inputs.iter().map(|i| buffers[*i].name.clone());
        Draft {
            parts: case.program.parts().clone(),
            inputs: names.zip(case.inputs.iter().cloned()).collect(),
            config: case.config.clone(),
            fuel: case.fuel,
        }
    }

    /// Put together again; an input without bytes is empty.
    pub(super) fn into_case(mut self) -> Case {
        let inputs = Interface::of(&self.parts).inputs;
        let inputs = inputs.iter().map(|i| match self.inputs.entry(self.parts.buffers[*i].name.clone()) {
            Entry::Occupied(bytes) => bytes.remove(),
            Entry::Vacant(_) => Vec::new(),
        });
        Case { inputs: inputs.collect(), program: Program::from_parts(self.parts), config: self.config, fuel: self.fuel }
    }
}
