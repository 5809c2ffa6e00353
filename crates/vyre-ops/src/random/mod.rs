//! Random numbers, many generators at once, one invocation a generator.

mod pcg32;
mod philox;

pub use pcg32::{pcg32, pcg32_on_cpu};
pub use philox::{philox, philox_on_cpu};
