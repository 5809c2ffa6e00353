//! What ops cost on a device: the time of one more op in one more invocation, with all invocations at work.
//!
//! A kernel applies the op as often as an input says to numbers from 1 to 2 that are new each time, and is run with few and with many
//! rounds; the difference has neither compilation nor copies in it.

use super::kernel::{HEADER, Job, WORKGROUP, constants};
use super::library::{FloatOp, Library};
use super::probe::Runner;
use super::profile::{FloatProfile, LadderOp, Rung};
use std::fmt;
use std::time::{Duration, Instant};
use vyre_spec::FloatMode;

/// How an op is computed, for a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As plain WGSL, with whatever the device makes of it: what the others are compared with. Ops of the ladder only.
    Plain,
    /// As kernels compute it in this mode on a device of this profile.
    Exact(FloatMode, FloatProfile),
}

/// The time of one op.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// The op.
    pub op: FloatOp,
    /// How it is computed.
    pub form: Form,
    /// Nanoseconds of the whole device for one op of one invocation.
    pub nanoseconds: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Plain => write!(f, "{}, plain: {:.3} ns", self.op, self.nanoseconds),
            Form::Exact(mode, profile) => {
                let rung = self.op.ladder().map_or(Rung::Integer, |op| profile.rung(mode, op));
                write!(f, "{} in {mode}, {}: {:.3} ns", self.op, rung.name(), self.nanoseconds)
            }
        }
    }
}

const WORKGROUPS: u32 = 64;

/// Measures an op. `None` if it has no such form.
///
/// # Errors
///
/// Those of the runner.
pub fn measure(runner: &mut dyn Runner, op: FloatOp, form: Form) -> Result<Option<Cost>, String> {
    let Some(wgsl) = shader(op, form) else { return Ok(None) };
    let mut run = |rounds: u32| -> Result<Duration, String> {
        let invocations = WORKGROUPS * WORKGROUP;
        let job = Job {
            wgsl: wgsl.clone(),
            inputs: vec![rounds],
            outputs: invocations as usize,
            constants: constants(),
            workgroups: WORKGROUPS,
        };
        let start = Instant::now();
        runner.run(&job)?;
        Ok(start.elapsed())
    };
    run(1)?;
    // Enough rounds that they take longer than everything around them, up to what drivers are known to run right.
    let few = 8;
    let mut many = 64;
    let mut best = [Duration::MAX; 2];
    loop {
        best = [best[0].min(run(few)?), run(many)?];
        if best[1] > 3 * best[0] + Duration::from_millis(5) || many >= 1 << 14 {
            break;
        }
        many *= 4;
    }
    for _ in 0..2 {
        best = [best[0].min(run(few)?), best[1].min(run(many)?)];
    }
    let ops = f64::from(many - few) * f64::from(WORKGROUPS * WORKGROUP);
    Ok(Some(Cost { op, form, nanoseconds: best[1].saturating_sub(best[0]).as_nanos() as f64 / ops }))
}

fn shader(op: FloatOp, form: Form) -> Option<String> {
    let (types, result) = op.signature()?;
    let arguments = types.iter().enumerate().map(|(index, ty)| {
        let number = format!("(0x3f800000u | ((seed * {}u) >> 9u))", 2 * index + 0x9E37_79B1);
        match *ty {
            "bool" => format!("(seed & 1u) == {index}u"),
            "vec2<u32>" => format!("vec2<u32>(seed, {number})"),
            _ => number,
        }
    });
    let arguments: Vec<String> = arguments.collect();
    let (source, call) = match form {
        Form::Plain => {
            let f: Vec<String> = arguments.iter().map(|argument| format!("bitcast<f32>({argument})")).collect();
            let value = match op.ladder().filter(|ladder| ladder.op() == op)? {
                LadderOp::Add => format!("{} + {}", f[0], f[1]),
                LadderOp::Sub => format!("{} - {}", f[0], f[1]),
                LadderOp::Mul => format!("{} * {}", f[0], f[1]),
                LadderOp::Div => format!("{} / {}", f[0], f[1]),
                LadderOp::Sqrt => format!("sqrt({})", f[0]),
                LadderOp::Fma => format!("fma({}, {}, {})", f[0], f[1], f[2]),
            };
            (String::new(), format!("bitcast<u32>({value})"))
        }
        Form::Exact(mode, profile) => {
            let mut library = Library::new(mode, profile);
            let function = library.function(op)?;
            (library.source(), format!("{function}({})", arguments.join(", ")))
        }
    };
    let word = match result {
        "bool" => format!("u32({call})"),
        "vec2<u32>" => format!("({call}).x"),
        _ => call,
    };
    Some(format!(
        "{HEADER}{source}@compute @workgroup_size({WORKGROUP})\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n  \
         var seed = id.x * 747796405u;\n  var sum = 0u;\n  for (var i = 0u; i < inputs[0u]; i += 1u) {{\n    \
         seed += 2891336453u;\n    sum += {word};\n  }}\n  outputs[id.x] = sum;\n}}\n"
    ))
}
