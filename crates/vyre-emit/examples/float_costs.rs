//! Prints the profile of each device that tests run on, and what its ops cost: `cargo run --release -p vyre-emit --example float_costs`.

#[path = "../tests/floats/device.rs"]
mod device;

use device::{DEVICES, Gpu};
use vyre_emit::floats::cost::{Form, measure};
use vyre_emit::floats::kernel::Job;
use vyre_emit::floats::probe::{self, Depth, Runner};
use vyre_emit::floats::{FloatOp, FloatProfile, LadderOp, Library, Rung};
use vyre_spec::FloatMode;

struct Device(Gpu);

impl Runner for Device {
    fn run(&mut self, job: &Job) -> Result<Vec<u32>, String> {
        Ok(self.0.run(job))
    }
}

fn main() -> Result<(), String> {
    for name in DEVICES {
        let mut device = Device(Gpu::open(name));
        let start = std::time::Instant::now();
        let profile = probe::profile(&mut device, Rung::Protected, Depth::Short).profile;
        println!("{}: probed in {:.2?}", device.0.name, start.elapsed());
        for op in LadderOp::ALL {
            let Some(plain) = measure(&mut device, op.op(), Form::Plain)? else { continue };
            println!("  {:5} plain               {:8.3} ns", op.name(), plain.nanoseconds);
            for mode in FloatMode::ALL {
                for rung in Rung::ALL.into_iter().filter(|rung| op.has(*rung) && *rung != Rung::Native) {
                    let mut forced = FloatProfile::INTEGER;
                    forced.set(mode, op, rung);
                    let Some(cost) = measure(&mut device, op.op(), Form::Exact(mode, forced))? else { continue };
                    let ratio = cost.nanoseconds / plain.nanoseconds;
                    let chosen = if profile.rung(mode, op) == rung { "chosen" } else { "" };
                    println!("  {:5} {mode:9} {:9} {:8.3} ns {ratio:6.1} x {chosen}", op.name(), rung.name(), cost.nanoseconds);
                }
            }
        }
        for op in FloatOp::all().filter(|op| op.ladder().is_none()) {
            let Some(cost) = measure(&mut device, op, Form::Exact(FloatMode::Ieee, profile))? else { continue };
            let name = Library::new(FloatMode::Ieee, profile).function(op).unwrap_or_default();
            println!("  {name:16} {:8.3} ns", cost.nanoseconds);
        }
    }
    Ok(())
}
