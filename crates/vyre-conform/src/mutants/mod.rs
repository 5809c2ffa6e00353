//! Mutants: devices with one fault each, switched on by name, that show whether the suite would notice.
//!
//! A mutant is the bulk evaluator, which is right, with something changed: the program is rewritten before it runs (`rewrite.rs`),
//! workgroups are left out, memory or code of before is taken for that of now (`state.rs`), or the device loses what should stay on it
//! (`device.rs`). What is about ops is derived from the op tables, so that a new op gets its mutants by itself; a replacement that is the
//! same on all edge values is left out.
//!
//! Every mutant has a [`Witness`]: a small program and inputs on which its bytes are wrong, so that none of them is equivalent to the
//! device it was made from. A third of them, by the hash of their names, is [`held_out`](Mutant::held_out): nothing may be tuned on these,
//! and kill rates are measured on them.

mod arithmetic;
mod atomics;
mod binding;
mod constants;
mod control;
mod conversion;
mod device;
mod fault;
pub mod flip;
mod floats;
mod geometry;
mod index;
mod kept;
mod ops;
mod rare;
mod rewrite;
mod rounding;
mod state;
mod stride;
mod subject;
mod tail;
mod witness;

pub use witness::Witness;

use fault::Fault;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use subject::MutantSubject;
use vyre_foundation::config::SpecMap;
use vyre_foundation::ir::Program;
use vyre_worker::Subject;

/// What subjects that are mutants are called: this and the mutant's name.
pub const PREFIX: &str = "mutant:";

/// Which third of the mutants is held out. It was chosen once, before anything was run on mutants, as a number with which every class
/// has about a third; another one would move mutants that somebody may have looked at.
const DRAW: u32 = 74;

macro_rules! classes {
    ($( $variant:ident $name:literal $doc:literal; )*) => {
        /// What kind of mistake a mutant makes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Class { $( #[doc = $doc] $variant, )* }

        impl Class {
            /// All of them.
            pub const ALL: &'static [Class] = &[$( Class::$variant ),*];

            /// One word for it, which stands before the `/` in the names of its mutants.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Class::$variant => $name, )* }
            }

            /// What goes wrong.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $( Class::$variant => $doc, )* }
            }
        }
    };
}

classes! {
    Operator "operator" "An op is replaced by another, or its operands are exchanged.";
    Constant "constant" "Literals have wrong values.";
    Signedness "signedness" "An op takes signed operands as unsigned, or the other way round.";
    ShiftMask "shift-mask" "Amounts of shifts and rotates are not taken modulo the width.";
    DivisionGuard "division-guard" "Division by zero, of the smallest number by -1, or of negative numbers gives something else.";
    Conversion "conversion" "Casts, loads and stores convert wrongly.";
    Nan "nan" "NaN compares, disappears or spreads where it should not.";
    Flush "flush" "Subnormal numbers become zero.";
    Fma "fma" "Products and sums are contracted, or a fused multiply-add is split.";
    Rounding "rounding" "Results are rounded twice, in another direction or from something less exact.";
    Algebra "algebra" "Floats are rearranged as if they were real numbers.";
    Comparison "comparison" "A comparison is replaced by another.";
    Index "index" "An access goes to another element.";
    Stride "stride" "Ids, counts and strides are wrong.";
    LoopBound "loop-bound" "Loops have too many, too few or wrong iterations.";
    Branch "branch" "The wrong branch runs.";
    Barrier "barrier" "A barrier does not wait.";
    Atomic "atomic" "An atomic is not atomic, or gives a wrong value.";
    LastWorkgroup "last-workgroup" "Some workgroups do not run.";
    Tail "tail" "The elements beyond a multiple of a vector's width are wrong.";
    Size "size" "Something is wrong only in workgroups of one size.";
    Stale "stale" "Data that the previous dispatch left behind is taken for that of this one.";
    Binding "binding" "Two buffers of the same type are mixed up.";
    CacheKey "cache-key" "The code of another program runs.";
    Resident "resident" "What should stay on the device between dispatches is lost or mixed up.";
    Rare "rare" "An op is wrong for a few operands in a thousand, or in a million.";
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A device with one fault.
pub struct Mutant {
    /// Its name, which never changes: the class, and what is wrong: `operator/add.i32-is-sub`.
    pub name: String,
    /// What kind of mistake it is.
    pub class: Class,
    /// Whether nothing may be tuned on it.
    pub held_out: bool,
    fault: Arc<Fault>,
    witness: Box<dyn Fn() -> Witness + Send + Sync>,
}

impl Mutant {
    /// It as a subject, which knows nothing of what others have run.
    #[must_use]
    pub fn subject(&self) -> Box<dyn Subject> {
        let name = self.subject_name();
        match &*self.fault {
            Fault::Device(fault) => device::subject(&name, *fault),
            Fault::Code(_)
            | Fault::Ordered(..)
            | Fault::Evaluator(..)
            | Fault::Groups(_)
            | Fault::AtSize(..)
            | Fault::Stale(_)
            | Fault::CacheKey(_) => Box::new(MutantSubject::new(name, self.fault.clone())),
        }
    }

    /// What the subject is called, on the command line and in worker processes.
    #[must_use]
    pub fn subject_name(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// Whether it can touch this program, with the defaults of its constants, at all. If not, it runs it right, and nobody can tell it from
    /// the device it was made from.
    #[must_use]
    pub fn applies(&self, program: &Program) -> bool {
        SpecMap::new().apply(program).is_ok_and(|program| self.fault.applies(&program))
    }

    /// Programs and inputs on which it is wrong.
    #[must_use]
    pub fn witness(&self) -> Witness {
        (self.witness)()
    }
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutant").field("name", &self.name).field("held_out", &self.held_out).finish_non_exhaustive()
    }
}

/// Every mutant there is, class by class.
#[must_use]
pub fn all() -> &'static [Mutant] {
    &made().list
}

/// The mutant with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Mutant> {
    let made = made();
    made.by_name.get(name).map(|n| &made.list[*n])
}

/// The subject with this name, if it begins with [`PREFIX`].
///
/// # Errors
///
/// What may have been meant, if no mutant has this name.
#[must_use]
pub fn subject(name: &str) -> Option<Result<Box<dyn Subject>, String>> {
    let wanted = name.strip_prefix(PREFIX)?;
    Some(named(wanted).map(Mutant::subject).ok_or_else(|| {
        match vyre_foundation::text::suggest::nearest(wanted, all().iter().map(|mutant| mutant.name.as_str())) {
            Some(meant) => format!("there is no mutant `{wanted}`; did you mean `{meant}`?"),
            None => format!("there is no mutant `{wanted}`; {} begin with one of {}", all().len(), classes()),
        }
    }))
}

fn classes() -> String {
    Class::ALL.iter().map(|class| format!("{class}/")).collect::<Vec<_>>().join(", ")
}

struct Made {
    list: Vec<Mutant>,
    by_name: HashMap<String, usize>,
}

fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut list = List::default();
        ops::add(&mut list);
        arithmetic::add(&mut list);
        constants::add(&mut list);
        conversion::add(&mut list);
        floats::add(&mut list);
        rounding::add(&mut list);
        index::add(&mut list);
        stride::add(&mut list);
        binding::add(&mut list);
        tail::add(&mut list);
        control::add(&mut list);
        atomics::add(&mut list);
        geometry::add(&mut list);
        kept::add(&mut list);
        rare::add(&mut list);
        let mut list = list.mutants;
        list.sort_by_key(|mutant| mutant.class);
        let by_name = list.iter().enumerate().map(|(n, mutant)| (mutant.name.clone(), n)).collect();
        Made { list, by_name }
    })
}

/// Mutants while they are made.
#[derive(Default)]
struct List {
    mutants: Vec<Mutant>,
}

impl List {
    fn add(
        &mut self,
        class: Class,
        name: impl fmt::Display,
        fault: Fault,
        witness: impl Fn() -> Witness + Send + Sync + 'static,
    ) {
        let name = format!("{class}/{name}");
        let held_out = is_held_out(&name);
        self.mutants.push(Mutant { name, class, held_out, fault: Arc::new(fault), witness: Box::new(witness) });
    }
}

/// Whether the mutant of this name is held out.
pub(crate) fn is_held_out(name: &str) -> bool {
    hash(&format!("{DRAW}:{name}")).is_multiple_of(3)
}

/// A number from a name, the same on every machine.
fn hash(name: &str) -> u64 {
    u64::from_le_bytes(*blake3::hash(name.as_bytes()).as_bytes().first_chunk().unwrap_or(&[0; 8]))
}
