//! What it means that a subject said one thing and the reference another.

use crate::subject::{Failure, Outputs};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a subject is wrong about a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It gives other bytes than the reference.
    Bytes,
    /// One of the two traps, or both do, with another tag or in another invocation.
    Trap,
    /// It refuses a case that the reference runs.
    Refused,
    /// It takes more steps than the case allows, and the reference does not.
    Fuel,
    /// It panics.
    Panic,
    /// Its process dies.
    Crash,
    /// It does not end.
    Hang,
    /// Its device fails.
    Device,
    /// It writes outside of the outputs.
    WildWrite,
    /// The reference itself gives no outcome to compare with, which is a defect of the case or of the reference.
    Reference,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Bytes,
        Kind::Trap,
        Kind::Refused,
        Kind::Fuel,
        Kind::Panic,
        Kind::Crash,
        Kind::Hang,
        Kind::Device,
        Kind::WildWrite,
        Kind::Reference,
    ];

    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Trap => "trap",
            Kind::Refused => "refused",
            Kind::Fuel => "fuel",
            Kind::Panic => "panic",
            Kind::Crash => "crash",
            Kind::Hang => "hang",
            Kind::Device => "device",
            Kind::WildWrite => "wild-write",
            Kind::Reference => "reference",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What comparing a subject with the reference says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They agree.
    Agrees,
    /// The subject is wrong.
    Wrong(Kind),
    /// The subject cannot run the case, and says so. That is no agreement.
    Skipped,
    /// The case did not run; nothing was learned.
    NotRun,
}

/// Compares what a subject gave with what the reference gives.
#[must_use]
pub fn judge(expected: &Result<Outputs, Failure>, got: &Result<Outputs, Failure>) -> Verdict {
    let trapped = |outcome: &Result<Outputs, Failure>| matches!(outcome, Err(Failure::Trap { .. }));
    if expected.is_err() && !trapped(expected) {
        return Verdict::Wrong(Kind::Reference);
    }
    match got {
        _ if got == expected => Verdict::Agrees,
        Ok(_) if trapped(expected) => Verdict::Wrong(Kind::Trap),
        Ok(_) => Verdict::Wrong(Kind::Bytes),
        Err(Failure::Trap { .. }) => Verdict::Wrong(Kind::Trap),
        Err(Failure::Refused(_)) => Verdict::Wrong(Kind::Refused),
        Err(Failure::Unsupported(_)) => Verdict::Skipped,
        Err(Failure::OutOfFuel) => Verdict::Wrong(Kind::Fuel),
        Err(Failure::Panicked(_)) => Verdict::Wrong(Kind::Panic),
        Err(Failure::Crashed(_)) => Verdict::Wrong(Kind::Crash),
        Err(Failure::Hung(_)) => Verdict::Wrong(Kind::Hang),
        Err(Failure::Device(_)) => Verdict::Wrong(Kind::Device),
        Err(Failure::WildWrite { .. }) => Verdict::Wrong(Kind::WildWrite),
        Err(Failure::NotRun(_) | Failure::GivenUp(_)) => Verdict::NotRun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_verdict() {
        let bytes = |byte| Ok(vec![vec![byte]]);
        let trap = |tag| Err(Failure::Trap { tag, invocation: [0; 3] });
        let trap_in = |invocation| Err(Failure::Trap { tag: 1, invocation });
        let rows = [
            (bytes(1), bytes(1), Verdict::Agrees),
            (bytes(1), bytes(2), Verdict::Wrong(Kind::Bytes)),
            (bytes(1), trap(1), Verdict::Wrong(Kind::Trap)),
            (trap(1), bytes(1), Verdict::Wrong(Kind::Trap)),
            (trap(1), trap(1), Verdict::Agrees),
            (trap(1), trap(2), Verdict::Wrong(Kind::Trap)),
            (trap(1), trap_in([0, 0, 0]), Verdict::Agrees),
            (trap(1), trap_in([1, 0, 0]), Verdict::Wrong(Kind::Trap)),
            (trap_in([0, 1, 0]), trap_in([0, 0, 1]), Verdict::Wrong(Kind::Trap)),
            (trap(1), Err(Failure::Unsupported("f64".into())), Verdict::Skipped),
            (bytes(1), Err(Failure::NotRun("no process".into())), Verdict::NotRun),
            (bytes(1), Err(Failure::GivenUp("others hang".into())), Verdict::NotRun),
            (bytes(1), Err(Failure::Refused("no".into())), Verdict::Wrong(Kind::Refused)),
            (bytes(1), Err(Failure::OutOfFuel), Verdict::Wrong(Kind::Fuel)),
            (Err(Failure::OutOfFuel), Err(Failure::OutOfFuel), Verdict::Wrong(Kind::Reference)),
            (Err(Failure::Panicked("x".into())), bytes(1), Verdict::Wrong(Kind::Reference)),
        ];
        for (expected, got, verdict) in rows {
            assert_eq!(judge(&expected, &got), verdict, "{expected:?} {got:?}");
        }
    }
}
