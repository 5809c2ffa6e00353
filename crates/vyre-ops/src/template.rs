//! Kernels that are kept as text, and programs made of them.
//!
//! The files in `kernels/` are whole kernels whose parameters are specialization constants; a builder replaces them by its arguments, so
//! that nothing of them is left in the program. What several kernels need is in `kernels/parts/`, also whole kernels, so that each can be
//! read and checked alone. Where a kernel has an empty region, the statements of the part of that name are put; they see the variables and
//! buffers around them by name, and what stands for those in the part, constants and buffers, is left behind.

use std::sync::OnceLock;
use vyre_foundation::ir::{Body, Expr, Name, Node, Program, SpecValue};
use vyre_foundation::{specialize, text};

/// What stands in a region of a name.
enum Part {
    /// The statements of this kernel.
    Text(&'static str),
    /// Statements that are made of other parts.
    Made(fn() -> Vec<Node>),
}

/// By name.
const PARTS: [(&str, Part); 8] = [
    ("count digits", Part::Text(include_str!("../kernels/parts/count_digits.vyre"))),
    ("max lanes", Part::Text(include_str!("../kernels/parts/max_lanes.vyre"))),
    ("radix pass", Part::Text(include_str!("../kernels/parts/radix_pass.vyre"))),
    ("radix passes", Part::Made(crate::sort::radix_passes)),
    ("scan segments of tile", Part::Text(include_str!("../kernels/parts/scan_segments.vyre"))),
    ("scan tile", Part::Text(include_str!("../kernels/parts/scan_tile.vyre"))),
    ("scan totals", Part::Text(include_str!("../kernels/parts/scan_totals.vyre"))),
    ("sum lanes", Part::Text(include_str!("../kernels/parts/sum_lanes.vyre"))),
];

/// A kernel with constants for its parameters. It has one for its workgroup size, which is called `size`.
pub(crate) struct Template {
    text: &'static str,
    names: &'static [(&'static str, &'static str)],
    program: OnceLock<Program>,
}

impl Template {
    /// The kernel that is written so.
    pub(crate) const fn new(text: &'static str) -> Template {
        Template { text, names: &[], program: OnceLock::new() }
    }

    /// The same; what is called so in its parts, first, is called so in the kernel, second.
    pub(crate) const fn renaming(text: &'static str, names: &'static [(&'static str, &'static str)]) -> Template {
        Template { text, names, program: OnceLock::new() }
    }

    /// The program for workgroups of so many invocations, in a row, and for these values of the other constants.
    pub(crate) fn program(&self, workgroup: [u32; 3], values: &[(&str, SpecValue)]) -> Program {
        let whole = self.program.get_or_init(|| parse(self.text).edit(|parts| fill(&mut parts.body, self.names)));
        let size = SpecValue::U32(in_a_row(workgroup));
        let values = values.iter().map(|(name, value)| (*name, value)).chain([("size", &size)]);
        specialize(whole, values).unwrap_or_else(|report| panic!("builders know the constants of their kernels: {report}"))
    }
}

/// How many invocations a workgroup of this size has. Where kernels are one-dimensional, workgroups are too.
pub(crate) fn in_a_row(workgroup: [u32; 3]) -> u32 {
    workgroup.into_iter().fold(1, u32::saturating_mul)
}

/// The statements of a part, its own parts filled in.
pub(crate) fn part(name: &str, names: &[(&str, &str)]) -> Vec<Node> {
    let (_, part) =
        PARTS.iter().find(|(part, _)| *part == name).unwrap_or_else(|| panic!("there is a part for the region `{name}`"));
    let mut nodes = match part {
        Part::Text(text) => match &parse(text).parts().body[..] {
            [Node::Region { body, .. }] => body.clone().into_inner(),
            _ => Vec::new(),
        },
        Part::Made(nodes) => return nodes(),
    };
    rename(&mut nodes, names);
    fill(&mut nodes, names);
    nodes
}

fn parse(kernel: &str) -> Program {
    text::parse("kernel", kernel).unwrap_or_else(|report| panic!("the kernels of this crate can be read: {report}"))
}

fn fill(nodes: &mut [Node], names: &[(&str, &str)]) {
    for node in nodes {
        if let Node::Region { generator, body } = node
            && body.is_empty()
        {
            *body = Body::from(part(generator.as_str(), names));
        } else {
            node.bodies_mut().for_each(|body| fill(body, names));
        }
    }
}

fn rename(nodes: &mut [Node], names: &[(&str, &str)]) {
    let change = |name: &mut Name| {
        if let Some((_, new)) = names.iter().find(|(old, _)| name.as_str() == *old) {
            *name = (*new).into();
        }
    };
    for node in nodes {
        node.names_mut().for_each(change);
        let mut exprs: Vec<&mut Expr> = node.exprs_mut().collect();
        while let Some(expr) = exprs.pop() {
            expr.name_mut().into_iter().for_each(change);
            exprs.extend(expr.children_mut().map(|child| &mut **child));
        }
        node.bodies_mut().for_each(|body| rename(body, names));
    }
}
