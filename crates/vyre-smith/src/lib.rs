//! Programs out of bytes, smaller programs under a predicate, and the loop that looks for programs on which a subject is wrong.

pub mod coverage;
mod dna;
pub mod fuzz;
pub mod generate;
pub mod inputs;
pub mod metamorphic;
pub mod reduce;
pub mod subjects;
mod values;
