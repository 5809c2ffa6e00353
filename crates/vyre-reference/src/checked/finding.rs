//! What the checked mode finds, and how it says so.

use crate::schedule::Schedule;
use vyre_foundation::ir::{Name, NodeId};
use vyre_foundation::kernel::AccessKind;
use vyre_foundation::{Diagnostic, Location};
use vyre_spec::ErrorCode;

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// W0501: conflicting accesses that no barrier orders.
    Race,
    /// W0502: the result depends on the order of two atomics.
    Order,
    /// W0503: a plain load of an element that nobody has written.
    Unwritten,
    /// W0504: an access past the end of its buffer.
    OutOfBounds,
}

impl Kind {
    /// Its code.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Kind::Race => ErrorCode::W0501,
            Kind::Order => ErrorCode::W0502,
            Kind::Unwritten => ErrorCode::W0503,
            Kind::OutOfBounds => ErrorCode::W0504,
        }
    }
}

/// One access of one invocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessSite {
    /// The load expression, the store or the atomic.
    pub place: NodeId,
    /// The `gid` of the invocation.
    pub invocation: [u32; 3],
    /// What it does.
    pub how: AccessKind,
}

/// One finding: the same thing at the same places is one, however often it happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// The access; of two, the one that stands first in the program.
    pub access: AccessSite,
    /// The other access of a race, or of two atomics whose order shows.
    pub other: Option<AccessSite>,
    /// The buffer.
    pub buffer: Name,
    /// The element, in the first case that was seen.
    pub element: u32,
    /// Elements of the buffer.
    pub length: u32,
    /// A schedule that shows it.
    pub schedule: Schedule,
    /// How often it was seen under that schedule.
    pub count: u64,
    /// For an order that shows: an output under `forward` and under `schedule`.
    pub difference: Option<Difference>,
}

/// Where two schedules give different results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The schedule that gives other results than `forward`.
    pub schedule: Schedule,
    /// The first element that differs, if both have outputs.
    pub element: Option<(Name, u32)>,
    /// What `forward` gives: a value, or a trap.
    pub forward: String,
    /// What the other schedule gives.
    pub other: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((name, element)) = &self.element {
            write!(f, "`{name}[{element}]` is ")?;
        }
        write!(f, "{} under forward, {} under {}", self.forward, self.other, self.schedule)
    }
}

impl Finding {
    /// The finding as something to draw.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let Finding { kind, access, buffer, element, length, count, .. } = self;
        let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
        let (who, verb) = (id(access.invocation), verb(access.how));
        let message = match kind {
            Kind::Race => format!("data race on `{buffer}[{element}]`: no barrier orders these accesses{times}"),
            Kind::Order => format!("the result depends on the order of atomics on `{buffer}[{element}]`"),
            Kind::Unwritten => format!("invocation {who} {verb} `{buffer}[{element}]`, which was never written{times}"),
            Kind::OutOfBounds => format!("invocation {who} {verb} `{buffer}[{element}]`, which is past the end{times}"),
        };
        let said = |touch: &AccessSite| format!("{} by invocation {}", noun(touch.how), id(touch.invocation));
        let mut diagnostic = Diagnostic::new(kind.code(), message).at(Location::Tree(access.place));
        match &self.other {
            // A statement that is in its own way is marked once.
            Some(other) if other.place == access.place => {
                let both = format!("{} by invocations {who} and {}", noun(access.how), id(other.invocation));
                diagnostic = diagnostic.related(Location::Tree(access.place), both);
            }
            Some(other) => {
                let places = [access, other].map(|touch| (Location::Tree(touch.place), said(touch)));
                diagnostic.related.extend(places);
            }
            None if *kind == Kind::OutOfBounds => {
                diagnostic = diagnostic.expected(format!("an index below {length}")).found(*element);
            }
            None => {}
        }
        diagnostic.help(self.help())
    }

    fn help(&self) -> String {
        let advice = match self.kind {
            Kind::Race => {
                "put a `barrier` between them (`barrier.grid` between workgroups), make all of them atomic, or give each invocation \
                 its own element"
            }
            Kind::Order => {
                "use atomics of one kind and not their results, or let invocations compute their places from their ids"
            }
            Kind::Unwritten => "it is zero; write it first, with a `barrier` in between if another invocation does",
            Kind::OutOfBounds => "loads give 0 and writes are dropped; guard it if that is not meant",
        };
        match &self.difference {
            Some(difference) => format!("{difference}; {advice}"),
            None if self.schedule == Schedule::Forward => advice.into(),
            None => format!("seen under {}; {advice}", self.schedule),
        }
    }
}

fn noun(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Load => "a load",
        AccessKind::Store => "a store",
        AccessKind::AtomicLoad => "an atomic load",
        AccessKind::Atomic => "an atomic",
    }
}

fn verb(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Load => "reads",
        AccessKind::Store => "writes",
        AccessKind::AtomicLoad => "atomically reads",
        AccessKind::Atomic => "atomically changes",
    }
}

fn id([x, y, z]: [u32; 3]) -> String {
    format!("{x},{y},{z}")
}
