//! Litmus tests: several outcomes are right, and one that the language forbids is a failure.

use super::{Allowed, Cases, Judge, Work};
use crate::litmus::{LITMUS, Litmus, Stress};
use crate::plan::profile;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Dispatches of one litmus test, each of thousands of copies, under one kind of stress after the other.
pub struct LitmusCases {
    litmus: &'static Litmus,
    op: String,
    stress: Vec<Stress>,
}

impl LitmusCases {
    /// One for every litmus test.
    #[must_use]
    pub fn all() -> Vec<LitmusCases> {
        let of =
            |litmus: &'static Litmus| LitmusCases { litmus, op: format!("litmus.{}", litmus.name), stress: Stress::several() };
        LITMUS.iter().map(of).collect()
    }

    fn stress(&self, number: u64) -> &Stress {
        &self.stress[(number % self.stress.len() as u64) as usize]
    }
}

impl Cases for LitmusCases {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        "stress"
    }

    /// As often as somebody has the patience for; a tier takes the first of them.
    fn cases(&self) -> u64 {
        1 << 40
    }

    fn profile(&self) -> String {
        self.litmus.case(self.stress(0)).map_or_else(|_| "core".into(), |case| profile(&case.program))
    }

    fn identity(&self) -> Vec<u8> {
        format!("{:?} {:?}", self.litmus, self.stress).into_bytes()
    }

    fn is_order_dependent(&self) -> bool {
        true
    }

    fn case(&self, _: u64, number: u64) -> Work {
        self.litmus.case(self.stress(number)).unwrap_or_else(|error| panic!("the litmus test {}: {error}", self.op)).into()
    }

    fn judge(&self, _: u64, number: u64) -> Judge {
        let (litmus, stress) = (self.litmus, self.stress(number).clone());
        let allowed = litmus.allowed().unwrap_or_else(|error| panic!("the litmus test {}: {error}", self.op));
        let check = move |outputs: &[Vec<u8>]| {
            let seen = litmus.seen(&stress, outputs).map_err(|error| error.to_string())?;
            let seen: BTreeSet<_> = seen.into_iter().collect();
            match seen.difference(&allowed).next() {
                Some(outcome) => Err(format!("{outcome}, which the language forbids: {}", litmus.about)),
                None => Ok(()),
            }
        };
        // The highest bit of `x` of the first copy: values are small.
        Judge::Allowed(Allowed { check: Arc::new(check), never_set: (0, 3) })
    }
}
