//! `vyre run`: one dispatch on a backend, with inputs from the command line and files.

use crate::launch::{LaunchArgs, Launched, given_twice};
use crate::style::Style;
use crate::trace::{Outcome, Trace, trace};
use crate::{Failure, in_file, json, not_over_input, print, read, warn, write_file};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use vyre::backend::registry::acquire;
use vyre::files::is_same;
use vyre::ir::{DataType, Program};
use vyre::kernel::Kernel;
use vyre::launch::{Launch, plan};
use vyre::pipeline::{self, PipelineReproManifest};
use vyre::reference::{Options, RunError, Schedule};
use vyre::spec::ErrorCode;
use vyre::{BackendError, Diagnostic, Report, values};

/// An invocation: its `gid`.
#[derive(Clone, Copy)]
struct Invocation([u32; 3]);

fn invocation(text: &str) -> Result<Invocation, String> {
    let mut id = [0; 3];
    for (axis, part) in text.split([',', 'x']).enumerate() {
        *id.get_mut(axis).ok_or("an invocation has only three ids")? =
            part.trim().parse().map_err(|_| format!("`{part}` in `{text}` is not a number below 4294967296"))?;
    }
    Ok(Invocation(id))
}

/// Run a kernel and show its outputs.
#[derive(clap::Args)]
#[command(after_help = "\
Inputs, one --in per read, read_write and uniform buffer:
  --in a=1,2,3              values of the buffer's element type
  --in a=u32:1,2,3          the same, and an error if the buffer holds another type
  --in 'a=0;64'             64 zeros;  --in a=0..64  counts;  --in a=#7fc00000  raw bits
  --in a=@file.bin          the bytes of a file (@- is standard input), little-endian

Outputs go to the terminal, or as bytes to files:
  --out file.bin            the only output;  --out out=file.bin  the output `out`

The launch:
  --over x                  one invocation per element of `x`; --over 1000: 1000 invocations
  --grid 4                  4 workgroups; --grid 4,2,1 in three dimensions. Without either, a 1-D kernel gets enough workgroups
                            to cover the longest buffer that it writes, and an input that is longer is an error; a 2-D or 3-D
                            kernel needs a grid.
  --len out=8               the length of an output that declares none (default: that of the longest input that declares none)
  --const scale=5           a specialization constant

Where it runs:
  --backend bulk            a device that `vyre devices` lists. Without it, the first that fits; --explain says why others do
                            not. `reference` is the interpreter that defines the language; only it takes --schedule and --fuel
  --timed                   show how long it took, on which backend, with which grid
  --trace 5,0,0             show every value that invocation 5,0,0 computed, beside the lines of the program; the reference
                            runs the kernel for this, whichever backend ran it before: both give the same bytes
  --save-manifest k.json    write everything that is needed to run the same elsewhere: vyre run --manifest k.json --in …

Examples:
  vyre run examples/xor.vyre --in a=1,2,3 --in b=7,7,7
  vyre run examples/xor.vyre --in a=@a.bin --in b=@b.bin --out xor.bin
  vyre run examples/histogram.vyre --in x=3,1,3,3 --over x --json")]
pub struct Args {
    /// A kernel in text or wire form; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "manifest")]
    file: Option<String>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// The file to write an output's bytes to, instead of showing it; a program with one output needs no NAME
    #[arg(long = "out", value_name = "[NAME=]FILE")]
    outputs: Vec<String>,
    /// The order in which invocations take their steps: forward, reverse, stride:N, random:SEED, groups:SEED, interleave,
    /// interleave:SEED, late or atomics:A,B,…
    #[arg(long, default_value_t)]
    schedule: Schedule,
    /// The backend to run on, or `auto`
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Say how long it took
    #[arg(long)]
    timed: bool,
    /// Say why backends were passed over
    #[arg(long)]
    explain: bool,
    /// Run the pipeline that a manifest describes
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    manifest: Option<String>,
    /// Write the manifest of this pipeline
    #[arg(long, value_name = "FILE")]
    save_manifest: Option<String>,
    /// Show every value that one invocation computed, beside the lines of the program
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = invocation)]
    trace: Option<Invocation>,
    /// Show every element and every step of a trace, however many there are
    #[arg(long)]
    full: bool,
    /// One JSON object with every element
    #[arg(long)]
    pub json: bool,
}

/// Elements that are shown of an output unless `--full` asks for all.
const SHOWN: usize = 256;

/// The definition, which alone takes schedules and fuel.
const REFERENCE: &str = "reference";

/// Steps in which the reference may look for the statement that trapped: less than a second.
const TRAP_FUEL: u64 = 1 << 24;

/// The first backend that fits: what `vyre run` takes unless one is named.
const AUTO: &str = "auto";

pub fn run(args: &Args) -> Result<(), Failure> {
    let manifest = args.manifest.as_deref().map(read_manifest).transpose()?;
    let mut launched = match (&manifest, &args.file) {
        (Some(manifest), _) => {
            let program = manifest.program().map_err(|error| error.report(None))?;
            args.launch.over(&manifest.config).launch(program)?
        }
        (None, Some(file)) => args.launch.load(file)?,
        (None, None) => return Err(Failure::Usage("name a kernel".into())),
    };
    launched.options.schedule = args.schedule.clone();
    let Launched { program, options, .. } = &launched;
    let kernel = launched.kernel()?;
    let files = output_files(program, kernel, args)?;
    let ordered = launched.inputs();
    let sizes: Vec<u64> = ordered.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(program, &sizes, &options.launch)?;
    let said = manifest.as_ref().map(|manifest| manifest.backend_id.as_str());
    let own_flags = args.schedule != Schedule::Forward || args.launch.fuel().is_some();
    let name = args.backend.as_deref().or(said).unwrap_or(if own_flags { REFERENCE } else { AUTO });
    // The reference itself knows the statement that trapped, and takes schedules and fuel.
    let asks_backend = args.timed || args.explain || args.save_manifest.is_some() || manifest.is_some();
    if own_flags && (name != REFERENCE || asks_backend) {
        return Err(Failure::Usage(
            "--schedule and --fuel work only on the reference, and not with --timed, --explain, --manifest or --save-manifest"
                .into(),
        ));
    }
    let ran = match name == REFERENCE && !asks_backend {
        true => vyre::reference::run(program, &ordered, options)
            .map(|outputs| Run { outputs, time: None, backend: REFERENCE.into() })
            .map_err(|error| error.report(program).into()),
        false => on_backend(args, name, &launched, &ordered),
    };
    // How a kernel came to trap is what a trace is wanted for.
    let traced = args.trace.map(|invocation| traced(args, invocation, &launched, &ordered, &launch)).transpose()?;
    if let Some((trace, _)) = &traced
        && !args.json
    {
        print(&format!("{}\n", trace.drawn(Style::of_stdout())));
    }
    let Run { outputs, time, backend } = ran?;
    if let Some((_, Ok(expected))) = &traced
        && *expected != outputs
    {
        warn(&format!(
            "warning: {backend} gives other bytes than the reference, which made the trace: either the result depends on the order of \
             invocations (`vyre check --checked` finds that), or the backend is wrong (`vyre conform` finds that)\n"
        ));
    }
    let written: Vec<(&Path, &[u8])> = program
        .interface()
        .outputs
        .iter()
        .zip(&outputs)
        .filter_map(|(i, bytes)| Some((Path::new(files.get(kernel.buffers[*i].name.as_str())?), bytes.as_slice())))
        .collect();
    vyre::files::replace_all(&written).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut shown = String::new();
    let mut listed = Vec::new();
    for (i, bytes) in program.interface().outputs.iter().zip(&outputs) {
        let buffer = &kernel.buffers[*i];
        let file = files.get(buffer.name.as_str());
        if args.json {
            let values = if file.is_some() { json!(null) } else { json!(json::elements(&buffer.element, bytes)) };
            listed.push(json!({
                "name": buffer.name.as_str(),
                "type": buffer.element.to_string(),
                "count": launch.lengths[*i],
                "values": values,
                "file": file,
            }));
        } else {
            let full = if args.full { usize::MAX } else { SHOWN };
            show(&mut shown, &buffer.name, &buffer.element, launch.lengths[*i], bytes, file, full);
        }
    }
    if args.json {
        let mut object = json!({
            "outputs": listed,
            "backend": backend,
            "grid": launch.grid,
            "workgroup_size": launch.workgroup_size,
        });
        if let Some(time) = time {
            object["wall_ns"] = json!(time);
        }
        if let Some((trace, _)) = &traced {
            object["trace"] = trace.json();
        }
        print(&format!("{object}\n"));
    } else {
        if let Some(time) = time {
            let [[x, y, z], size] = [launch.grid, launch.workgroup_size];
            let [sx, sy, sz] = size;
            let grid = format!("a grid of {x} x {y} x {z} workgroups of {sx} x {sy} x {sz}");
            let _ = writeln!(shown, "took {:.1} µs on {backend}, {grid}", time as f64 / 1e3);
        }
        print(&shown);
    }
    Ok(())
}

/// What one invocation does on the reference, and what the reference gives.
fn traced(
    args: &Args,
    Invocation(id): Invocation,
    launched: &Launched,
    inputs: &[&[u8]],
    launch: &Launch,
) -> Result<(Trace, Outcome), Failure> {
    let [x, y, z] = id;
    for (axis, name) in ["x", "y", "z"].iter().enumerate() {
        let count = launch.grid[axis] * launch.workgroup_size[axis];
        if id[axis] >= count {
            let there = if count == 0 { "there are none".into() } else { format!("they are 0 to {}", count - 1) };
            return Err(Failure::Usage(format!("--trace {x},{y},{z}: there is no such invocation along {name}: {there}")));
        }
    }
    let (trace, result) = trace(&launched.program, inputs, &launched.options, launch, id, args.full)?;
    match result {
        Ok(_) | Err(RunError::Trap { .. }) => Ok((trace, result)),
        Err(error) => Err(error.report(&launched.program).into()),
    }
}

/// What a run gave.
struct Run {
    outputs: Vec<Vec<u8>>,
    /// The nanoseconds it took, if that was asked for.
    time: Option<u64>,
    /// Where it ran.
    backend: String,
}

fn on_backend(args: &Args, name: &str, launched: &Launched, inputs: &[&[u8]]) -> Result<Run, Failure> {
    let program = &launched.program;
    let config = launched.dispatch_config();
    let failed = |error: BackendError| {
        // Only the reference knows the statement that trapped. It is asked if it takes little time, and believed if it means the same.
        if let BackendError::Trap { tag, invocation } = error
            && let options = (Options { fuel: TRAP_FUEL, ..launched.options.clone() })
            && let Err(found @ RunError::Trap { tag: of, invocation: by, .. }) = vyre::reference::run(program, inputs, &options)
            && (of, by) == (tag, invocation)
        {
            return found.report(program);
        }
        error.report(Some(program))
    };
    let chosen = match name {
        AUTO => {
            let route = vyre::route::route(program, &config).map_err(failed)?;
            if args.explain {
                route.tried.iter().for_each(|tried| warn(&format!("{tried}\n")));
            }
            route.backend
        }
        name => {
            let backend = acquire(name).map_err(|error| match matches!(error, BackendError::UnknownBackend { .. }) {
                true => Failure::Usage(error.message()),
                false => failed(error).into(),
            })?;
            if args.explain {
                let reasons = vyre::route::misfits(&*backend, program, &config);
                warn(&format!("{}\n", vyre::route::Tried { id: name.into(), reasons }));
            }
            backend
        }
    };
    let backend = chosen.id().to_string();
    if let Some(path) = &args.save_manifest {
        let build = pipeline::compile_with_telemetry(Arc::from(chosen), program, &config).map_err(failed)?;
        let document = build.manifest.to_json().map_err(failed)?;
        write_file(path, document.as_bytes(), &[])?;
        let timed = build.pipeline.dispatch_borrowed_timed(inputs, &config).map_err(failed)?;
        return Ok(Run { outputs: timed.outputs, time: args.timed.then_some(timed.wall_ns), backend });
    }
    let timed = chosen.dispatch_borrowed_timed(program, inputs, &config).map_err(failed)?;
    Ok(Run { outputs: timed.outputs, time: args.timed.then_some(timed.wall_ns), backend })
}

fn read_manifest(path: &str) -> Result<PipelineReproManifest, Failure> {
    let bytes = read(path)?;
    let text = vyre::diagnostic::utf8(path, &bytes)?;
    Ok(PipelineReproManifest::from_json(text).map_err(|error| in_file(path, error.report(None)))?)
}

fn show(
    out: &mut String,
    name: &vyre::ir::Name,
    element: &DataType,
    length: u32,
    bytes: &[u8],
    file: Option<&String>,
    full: usize,
) {
    let _ = write!(out, "{name}: {element}[{length}]");
    if let Some(path) = file {
        let _ = writeln!(out, " -> {path}, {} bytes", bytes.len());
        return;
    }
    let shown_bytes = vyre::scalar::memory::byte_length(element, full as u64).unwrap_or(u64::MAX);
    let part = &bytes[..bytes.len().min(usize::try_from(shown_bytes).unwrap_or(usize::MAX))];
    let values = values::decode(element, part);
    let _ = write!(out, " = {}", values.join(" "));
    if part.len() < bytes.len() {
        let _ = write!(out, " … (--full shows all)");
    }
    out.push('\n');
}

/// The files that a run reads.
fn reads(args: &Args) -> Vec<&str> {
    args.file.as_deref().into_iter().chain(args.manifest.as_deref()).chain(args.launch.files()).collect()
}

/// Where each output goes, by name.
fn output_files(program: &Program, kernel: &Kernel, args: &Args) -> Result<BTreeMap<String, String>, Failure> {
    let mut files = BTreeMap::new();
    let reads = reads(args);
    if let Some(path) = &args.save_manifest {
        not_over_input(Path::new(path), &reads)?;
    }
    let names: Vec<&str> = program.interface().outputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
    for given in &args.outputs {
        let usage = |what: &str| Err(Failure::Usage(format!("--out {given}: {what}")));
        let (name, target) = match (given.split_once('='), names.as_slice()) {
            (Some(("", _)), _) => return usage("write --out NAME=FILE"),
            (Some((name, target)), _) => (name, target),
            (None, [only]) => (*only, given.as_str()),
            (None, []) => return usage("the program has no outputs"),
            (None, [first, ..]) => {
                return usage(&format!(
                    "say which output it is, such as --out {first}={given}; the outputs are {}",
                    names.join(", ")
                ));
            }
        };
        // As inputs are written.
        let path = target.strip_prefix('@').unwrap_or(target);
        if path.is_empty() || path == "-" {
            return usage("name a file to write the bytes to; to see the values, omit --out");
        }
        not_over_input(Path::new(path), &reads)?;
        if files.values().any(|other| is_same(other, path)) {
            return usage("another output goes to that file");
        }
        if args.save_manifest.as_ref().is_some_and(|other| is_same(other, path)) {
            return usage("the manifest goes to that file");
        }
        let Some(name) = names.iter().find(|known| **known == name) else {
            let diagnostic = Diagnostic::new(ErrorCode::E0702, format!("the program has no output `{name}`")).found(name);
            return Err(Report::single(diagnostic.expected(format!("one of {}", names.join(", ")))).into());
        };
        if files.insert((*name).to_string(), path.to_string()).is_some() {
            return Err(given_twice(name));
        }
    }
    Ok(files)
}
