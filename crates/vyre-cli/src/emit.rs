//! `vyre emit`: a program in another form, as it is or after passes.

use crate::{Failure, load, print, print_bytes, write_file};
use clap::ValueEnum;
use serde_json::json;
use std::io::IsTerminal;
use vyre::analysis::Bounds;
use vyre::ir::Program;
use vyre::passes::{PASSES, Pass, optimize};
use vyre::text::suggest::nearest;

/// Write a kernel in wire, text or JSON form, in the SSA form that passes and compilers read, or as machine code.
///
/// Every command that takes a file in text form also takes wire form. Passes give a program like any other, which can be run; in it the
/// specialization constants are replaced by their defaults.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  vyre emit kernel.vyre --to wire --out kernel.vyreb
  vyre emit kernel.vyreb --to text
  vyre emit kernel.vyre --to text --passes all
  vyre emit kernel.vyre --to ssa --passes fold,dead
  vyre emit kernel.vyre --to asm")]
pub struct Args {
    /// A kernel in text or wire form; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The form to write
    #[arg(long, value_enum)]
    to: Form,
    /// Optimise first: `all`, or names of passes separated by commas, in the order in which to run them
    #[arg(long, value_name = "all|NAME,…", value_parser = passes)]
    passes: Option<Passes>,
    /// The file to write; standard output without it
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// One JSON object that says what was written
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// Bytes, for programs
    Wire,
    /// Text, for people and for `vyre run`
    Text,
    /// JSON, for tools: one flat list of nodes; docs/workers.md specifies it
    Json,
    /// Every value defined once; accesses that need no bounds check are marked
    Ssa,
    /// The decisions of the compiler for CPUs: lanes, scalars and vectors, how memory is accessed
    #[cfg(feature = "cpu")]
    Spmd,
    /// Machine code of this CPU, with the statement above its code
    #[cfg(feature = "cpu")]
    Asm,
    /// The shader for devices behind wgpu, with floats computed in integers, which is right on all of them
    #[cfg(feature = "wgpu")]
    Wgsl,
    /// The same as SPIR-V
    #[cfg(feature = "wgpu")]
    Spirv,
}

/// What is done before the program is written.
#[derive(Clone)]
enum Passes {
    /// All of them, until nothing changes.
    All,
    /// Each of these once, in this order.
    Named(Vec<&'static Pass>),
}

fn passes(text: &str) -> Result<Passes, String> {
    if text == "all" {
        return Ok(Passes::All);
    }
    let named = |name: &str| {
        Pass::named(name).ok_or_else(|| {
            let known = || PASSES.iter().map(|pass| pass.name);
            match nearest(name, known()) {
                Some(meant) => format!("there is no pass `{name}`; did you mean `{meant}`?"),
                None => format!(
                    "there is no pass `{name}`; the passes are {}, and `all` means all of them",
                    known().collect::<Vec<_>>().join(", ")
                ),
            }
        })
    };
    text.split(',').map(|name| named(name.trim())).collect::<Result<_, _>>().map(Passes::Named)
}

/// The program after the passes.
fn passed(program: Program, passes: Option<&Passes>) -> Program {
    match passes {
        None => program,
        Some(Passes::All) => optimize(&program),
        Some(Passes::Named(passes)) => passes.iter().fold(program, |program, pass| pass.apply(&program)),
    }
}

/// The form after the passes, with what is known about its accesses.
fn ssa(program: &Program, passes: Option<&Passes>) -> Result<String, Failure> {
    let mut ssa = program.validated().map_err(Clone::clone)?.ssa().clone();
    match passes {
        None => {}
        Some(Passes::All) => {
            ssa.optimize();
        }
        Some(Passes::Named(passes)) => passes.iter().for_each(|pass| {
            pass.run_on(&mut ssa);
        }),
    }
    let bounds = Bounds::of(&ssa);
    Ok(ssa.with_notes(|access| if bounds.is_proven(access) { "in bounds" } else { "" }).to_string())
}

/// The program with its constants at their defaults, as code is made from it.
#[cfg(any(feature = "cpu", feature = "wgpu"))]
fn specialized(program: Program) -> Result<Program, Failure> {
    Ok(vyre::specialize(&program, [])?)
}

/// The shader of a program.
#[cfg(feature = "wgpu")]
fn shader(program: Program, passes: Option<&Passes>) -> Result<vyre::emit::Shader, Failure> {
    let program = passed(specialized(program)?, passes);
    let kernel = program.validated().map_err(Clone::clone)?.kernel().clone();
    vyre::emit::Shader::of(&kernel, &vyre::emit::Target::default()).map_err(|error| Failure::Data(error.to_string()))
}

pub fn emit(args: &Args) -> Result<(), Failure> {
    let program = load(&args.file)?;
    program.validated().map_err(Clone::clone)?;
    let bytes = match args.to {
        Form::Wire => vyre::wire::to_wire(&passed(program, args.passes.as_ref())).map_err(vyre::Report::from)?,
        Form::Text => passed(program, args.passes.as_ref()).to_string().into_bytes(),
        Form::Json => {
            let mut bytes =
                serde_json::to_vec(&passed(program, args.passes.as_ref())).map_err(|error| Failure::Usage(error.to_string()))?;
            bytes.push(b'\n');
            bytes
        }
        Form::Ssa => ssa(&program, args.passes.as_ref())?.into_bytes(),
        #[cfg(feature = "cpu")]
        Form::Spmd => vyre::cpu::decisions(&passed(specialized(program)?, args.passes.as_ref()))?.into_bytes(),
        #[cfg(feature = "cpu")]
        Form::Asm => vyre::cpu::machine_code(&passed(specialized(program)?, args.passes.as_ref()))?.into_bytes(),
        #[cfg(feature = "wgpu")]
        Form::Wgsl => shader(program, args.passes.as_ref())?.wgsl.into_bytes(),
        #[cfg(feature = "wgpu")]
        Form::Spirv => {
            let words = shader(program, args.passes.as_ref())?.spirv().map_err(|error| Failure::Data(error.to_string()))?;
            words.into_iter().flat_map(u32::to_le_bytes).collect()
        }
    };
    match &args.out {
        Some(path) => {
            write_file(path, &bytes, &[&args.file])?;
            if args.json {
                print(&format!("{}\n", json!({ "file": path, "bytes": bytes.len() })));
            }
        }
        None if args.json => {
            return Err(Failure::Usage("--json needs --out: otherwise the program goes to standard output".into()));
        }
        None if matches!(args.to, Form::Wire) && std::io::stdout().is_terminal() => {
            return Err(Failure::Usage("the wire form is not for terminals: add --out FILE".into()));
        }
        None => print_bytes(&bytes),
    }
    Ok(())
}
