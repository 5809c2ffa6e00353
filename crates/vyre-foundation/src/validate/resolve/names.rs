//! Names: what each stands for where it is used, and what was probably meant by one that stands for nothing.
//!
//! Names do not shadow each other, so one map holds them all. A name whose scope has ended stays in it, for better advice.

use super::Resolver;
use crate::diagnostic::{Diagnostic, Fix, Location};
use crate::ir::{Item, Name, Node, NodeId, Program, SpecValue};
use crate::kernel::{BufferId, VarId};
use crate::text::code;
use crate::text::foreign::{self, Instead};
use crate::text::suggest::nearest_unordered;
use std::collections::HashMap;
use vyre_spec::{ErrorCode, ValueType};

/// What a name stands for.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    Buffer(BufferId),
    Const(u32),
    Var(VarId),
    Counter(VarId),
}

pub(super) struct Binding {
    pub(super) meaning: Meaning,
    pub(super) declared: Location,
    /// Whether its scope has ended; then it is kept for better advice only.
    pub(super) ended: bool,
}

impl<'a> Resolver<'a> {
    /// What a name stands for here.
    #[inline]
    pub(super) fn visible(&self, name: &Name) -> Option<&Binding> {
        self.names.get(name).filter(|binding| !binding.ended)
    }

    pub(super) fn declare(&mut self, name: &'a Name, meaning: Meaning, declared: Location) {
        if let Some(earlier) = self.visible(name) {
            let what = match earlier.meaning {
                Meaning::Buffer(_) => "a buffer",
                Meaning::Const(_) => "a constant",
                Meaning::Var(_) => "a variable",
                Meaning::Counter(_) => "a loop counter",
            };
            let (related, earlier_meaning) = (earlier.declared, earlier.meaning);
            self.mistake(
                Diagnostic::new(ErrorCode::E0202, format!("{name:?} is already the name of {what}"))
                    .at(declared)
                    .related(related, "declared here")
                    .help(match earlier_meaning {
                        Meaning::Var(_) => "names do not shadow each other: choose another, or assign without `let`",
                        Meaning::Buffer(_) | Meaning::Const(_) | Meaning::Counter(_) => {
                            "names do not shadow each other: choose another"
                        }
                    }),
            );
            return;
        }
        self.names.insert(name, Binding { meaning, declared, ended: false });
        self.declared.push(name);
    }

    pub(super) fn end_scope(&mut self, outer: usize) {
        for name in self.declared.drain(outer..) {
            if let Some(binding) = self.names.get_mut(name) {
                binding.ended = true;
            }
        }
    }

    /// The constant of this name, and its number. They are declared before anything else.
    pub(super) fn constant(&self, name: &Name) -> Option<(u32, &'a SpecValue)> {
        match self.visible(name)?.meaning {
            Meaning::Const(n) => Some((n, &self.parts.consts[n as usize].default)),
            Meaning::Buffer(_) | Meaning::Var(_) | Meaning::Counter(_) => None,
        }
    }

    pub(super) fn assignable(&mut self, name: &Name, place: NodeId) -> Option<(VarId, Option<ValueType>, Location)> {
        let location = Location::Head(place);
        let Some(binding) = self.visible(name) else {
            if self.poison.has_name(name) {
                return None;
            }
            let diagnostic = self.unknown(name, location);
            let diagnostic = match diagnostic.help {
                None => diagnostic.help(format!("declare it: {}", code(&format!("let {name} = …")))),
                Some(_) => diagnostic,
            };
            self.mistake(diagnostic);
            return None;
        };
        let declared = binding.declared;
        let (what, help) = match binding.meaning {
            Meaning::Var(var) => {
                let ty = self.typed[var.index()].then_some(self.kernel.vars[var.index()].ty);
                return Some((var, ty, declared));
            }
            Meaning::Counter(_) => ("a loop counter", "copy it into a variable with `let`"),
            Meaning::Const(n) if self.parts.consts[n as usize].default.literal().is_none() => {
                ("a type constant", "its value comes with the launch")
            }
            Meaning::Const(_) => ("a constant", "copy it into a variable with `let`"),
            Meaning::Buffer(_) => ("a buffer", "write one element: `name[index] = value`"),
        };
        self.mistake(
            Diagnostic::new(ErrorCode::E0203, format!("{name:?} is {what} and cannot be assigned to"))
                .at(location)
                .related(declared, "declared here")
                .help(help),
        );
        None
    }

    pub(super) fn unknown(&self, name: &Name, location: Location) -> Diagnostic {
        let diagnostic =
            Diagnostic::new(ErrorCode::E0201, format!("there is no variable or constant {name:?}")).at(location).found(name);
        if let Some(binding) = self.names.get(name) {
            let diagnostic = diagnostic.related(binding.declared, "declared in a scope that has ended");
            return diagnostic.help(match binding.meaning {
                Meaning::Counter(_) => "a counter ends with its loop: copy it into a variable that was declared before",
                Meaning::Var(_) | Meaning::Buffer(_) | Meaning::Const(_) => {
                    "declare it before the scope, and assign to it inside"
                }
            });
        }
        match foreign::value(name) {
            Some(Instead::Word(meant)) => return diagnostic.fix("write", Fix::Replace(location, meant.into())),
            Some(Instead::Help(help)) => return diagnostic.help(help),
            None => {}
        }
        let all = self.all_declared.get_or_init(|| all_declared(self.program));
        let later = all.get(name).and_then(|all| all.get(all.partition_point(|(place, _)| *place < self.statement)));
        if let Some((place, declared)) = later {
            return match *place == self.statement {
                true => diagnostic.related(*declared, "declared by this very statement").help("until then it has no value"),
                false => diagnostic.related(*declared, "declared later").help("declare it before it is used"),
            };
        }
        let is_value = |binding: &Binding| !binding.ended && !matches!(binding.meaning, Meaning::Buffer(_));
        let values = self.names.iter().filter(|(_, binding)| is_value(binding));
        let suggestion = self.suggest(|| nearest_unordered(name, values.map(|(name, _)| name.as_str())));
        with_nearest(diagnostic, suggestion, location)
    }

    /// What was probably meant, if the mistake will be shown: the search compares with every name there is.
    pub(super) fn suggest<'n>(&self, look: impl FnOnce() -> Option<&'n str>) -> Option<String> {
        if self.mistakes.is_full() { None } else { look().map(str::to_string) }
    }
}

/// Where the variables of a program are declared.
fn all_declared(program: &Program) -> HashMap<&Name, Vec<(NodeId, Location)>> {
    let mut all: HashMap<&Name, Vec<(NodeId, Location)>> = HashMap::new();
    for (n, (item, _)) in program.walk().enumerate() {
        let place = NodeId(n as u32);
        let declared = match item {
            Item::Node(Node::Let { name, .. }) => Some((name, Location::Head(place))),
            Item::Node(Node::Loop(repeat)) => Some((&repeat.var, Location::Head(place))),
            Item::Node(node) => node.result().map(|name| (name, Location::Result(place))),
            Item::Expr(_) => None,
        };
        if let Some((name, location)) = declared {
            all.entry(name).or_default().push((place, location));
        }
    }
    all
}

pub(super) fn with_nearest(diagnostic: Diagnostic, suggestion: Option<String>, location: Location) -> Diagnostic {
    match suggestion {
        Some(name) => diagnostic.fix("did you mean", Fix::Replace(location, Name::from(name).to_string())),
        None => diagnostic,
    }
}
