//! `vyre run`: one dispatch on the reference, with inputs from the command line and files.

use crate::{Failure, json, load, print, read};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use vyre::ir::{DataType, Program, SpecValue};
use vyre::kernel::Kernel;
use vyre::launch::{LaunchConfig, check_inputs, inputs_by_name, plan};
use vyre::reference::{Options, Order};
use vyre::spec::ErrorCode;
use vyre::{Diagnostic, Report, specialize, values};

/// Run a kernel and show its outputs.
#[derive(clap::Args)]
#[command(after_help = "\
Inputs, one --in per read, read_write and uniform buffer:
  --in a=1,2,3              values of the buffer's element type
  --in a=u32:1,2,3          the same, and an error if the buffer holds another type
  --in 'a=0;64'             64 zeros;  --in a=0..64  counts;  --in a=#7fc00000  raw bits
  --in a=@file.bin          the bytes of a file (@- is standard input), little-endian

Outputs go to the terminal, or to files: --out out=@file.bin

The launch:
  --grid 4                  4 workgroups; --grid 4,2,1 in three dimensions. Without it a 1-D kernel gets as many as cover
                            its longest output; a 2-D or 3-D kernel needs it.
  --len out=8               the length of an output that declares none (else: that of the longest input that declares none)
  --const scale=5           a specialization constant

Examples:
  vyre run examples/xor.vyre --in a=1,2,3 --in b=7,7,7
  vyre run examples/xor.vyre --in a=@a.bin --in b=@b.bin --out out=@xor.bin
  vyre run examples/histogram.vyre --in x=3,1,3,3 --json")]
pub struct Args {
    /// A kernel in text form; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// An input: NAME=VALUES, NAME=TYPE:VALUES or NAME=@FILE
    #[arg(long = "in", value_name = "NAME=…", value_parser = assignment)]
    inputs: Vec<(String, String)>,
    /// Write an output's bytes to a file instead of showing it
    #[arg(long = "out", value_name = "NAME=@FILE", value_parser = assignment)]
    outputs: Vec<(String, String)>,
    /// Workgroups along x, y and z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    grid: Option<Triple>,
    /// Elements of an output that declares no count
    #[arg(long = "len", value_name = "NAME=N", value_parser = assignment)]
    lengths: Vec<(String, String)>,
    /// A value for a specialization constant
    #[arg(long = "const", value_name = "NAME=VALUE", value_parser = assignment)]
    constants: Vec<(String, String)>,
    /// Another workgroup size, for kernels that cannot tell
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    workgroup: Option<Triple>,
    /// Steps that all invocations may take together
    #[arg(long, default_value_t = 1 << 32)]
    fuel: u64,
    /// Bytes that all outputs may take together
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    max_output_bytes: u64,
    /// Let invocations take their turns from the last to the first
    #[arg(long)]
    reverse: bool,
    /// Show every element, however many there are
    #[arg(long)]
    full: bool,
    /// One JSON object with every element
    #[arg(long)]
    pub json: bool,
}

/// Elements that are shown of an output unless `--full` asks for all.
const SHOWN: usize = 256;

#[derive(Clone, Copy)]
struct Triple([u32; 3]);

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("write NAME=VALUE".into()),
    }
}

fn triple(text: &str) -> Result<Triple, String> {
    let mut triple = [1; 3];
    for (axis, part) in text.split([',', 'x']).enumerate() {
        *triple.get_mut(axis).ok_or("there are three dimensions")? =
            part.trim().parse().map_err(|_| format!("`{part}` is no number below 4294967296"))?;
    }
    Ok(Triple(triple))
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let program = load(&args.file)?;
    program.validated().map_err(Clone::clone)?;
    let specialization = constants(&program, &args.constants)?;
    let program = specialize(&program, specialization.iter().map(|(name, value)| (name.as_str(), value)))?;
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let files = output_files(&program, kernel, args)?;
    let inputs = inputs(kernel, &args.inputs)?;
    let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let ordered = inputs_by_name(&program, &named)?;
    let sizes: Vec<u64> = ordered.iter().map(|bytes| bytes.len() as u64).collect();
    check_inputs(&program, &sizes)?;
    let options = Options {
        launch: LaunchConfig {
            grid: args.grid.map(|grid| grid.0),
            workgroup_override: args.workgroup.map(|size| size.0),
            output_counts: lengths(&args.lengths)?,
            max_output_bytes: args.max_output_bytes,
        },
        fuel: args.fuel,
        order: if args.reverse { Order::Reverse } else { Order::Forward },
        ..Options::default()
    };
    let launch = plan(&program, &sizes, &options.launch)?;
    let outputs = vyre::reference::run(&program, &ordered, &options).map_err(|error| error.report(&program))?;
    let mut shown = String::new();
    let mut listed = Vec::new();
    for (i, bytes) in program.interface().outputs.iter().zip(&outputs) {
        let buffer = &kernel.buffers[*i];
        let file = files.get(buffer.name.as_str());
        if let Some(path) = file {
            std::fs::write(path, bytes).map_err(|error| Failure::Usage(format!("cannot write {path}: {error}")))?;
        }
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
        let object = json!({ "outputs": listed, "grid": launch.grid, "workgroup_size": launch.workgroup_size });
        print(&format!("{object}\n"));
    } else {
        print(&shown);
    }
    Ok(())
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

fn constants(program: &Program, given: &[(String, String)]) -> Result<BTreeMap<String, SpecValue>, Failure> {
    let mut values = BTreeMap::new();
    for (name, text) in given {
        let Some(decl) = program.parts().consts.iter().find(|decl| *decl.name == **name) else {
            // Specialization itself reports names it does not know.
            values.insert(name.clone(), SpecValue::U32(0));
            continue;
        };
        let value = decl.default.parse_same_kind(text).ok_or_else(|| {
            Report::single(
                Diagnostic::new(ErrorCode::E0710, format!("`{name}` needs a {}, found `{text}`", decl.default.kind()))
                    .expected(decl.default.kind())
                    .found(text),
            )
        })?;
        if values.insert(name.clone(), value).is_some() {
            return Err(given_twice(name));
        }
    }
    Ok(values)
}

fn given_twice(name: &str) -> Failure {
    Report::single(Diagnostic::new(ErrorCode::E0715, format!("`{name}` is given twice")).found(name)).into()
}

fn lengths(given: &[(String, String)]) -> Result<BTreeMap<String, u32>, Failure> {
    let mut lengths = BTreeMap::new();
    for (name, text) in given {
        let length = text.parse().map_err(|_| {
            Failure::Usage(format!("--len {name}={text}: `{text}` is no number of elements below 4294967296"))
        })?;
        if lengths.insert(name.clone(), length).is_some() {
            return Err(given_twice(name));
        }
    }
    Ok(lengths)
}

/// Where each output goes, by name.
fn output_files<'a>(program: &Program, kernel: &Kernel, args: &'a Args) -> Result<BTreeMap<&'a str, String>, Failure> {
    let mut files = BTreeMap::new();
    for (name, target) in &args.outputs {
        let Some(path) = target.strip_prefix('@') else {
            return Err(Failure::Usage(format!("--out {name}={target}: write --out {name}=@FILE")));
        };
        let names: Vec<&str> =
            program.interface().outputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
        if !names.contains(&name.as_str()) {
            let diagnostic =
                Diagnostic::new(ErrorCode::E0702, format!("the program has no output `{name}`")).found(name);
            return Err(Report::single(diagnostic.expected(format!("one of {}", names.join(", ")))).into());
        }
        if files.insert(name.as_str(), path.to_string()).is_some() {
            return Err(given_twice(name));
        }
    }
    Ok(files)
}

/// The bytes of each `--in`, by name.
fn inputs(kernel: &Kernel, given: &[(String, String)]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut inputs = Vec::new();
    for (name, text) in given {
        let bytes = match text.strip_prefix('@') {
            Some(path) => read(path)?,
            None => match kernel.buffers.iter().find(|buffer| *buffer.name == **name) {
                Some(buffer) => typed_values(name, &buffer.element, text)?,
                // Binding by name reports what it does not know.
                None => Vec::new(),
            },
        };
        inputs.push((name.clone(), bytes));
    }
    Ok(inputs)
}

fn typed_values(name: &str, element: &DataType, text: &str) -> Result<Vec<u8>, Failure> {
    let wrong = |message: String| Report::single(Diagnostic::new(ErrorCode::E0714, message).expected(element));
    let list = match text.split_once(':') {
        None => text,
        Some((ty, list)) => match vyre::text::parse_data_type(ty) {
            Some(found) if found == *element => list,
            Some(found) => {
                return Err(wrong(format!("`{name}` holds {element}, and the values are given as {found}")).into());
            }
            None => return Err(wrong(format!("`{name}`: there is no type `{ty}`")).into()),
        },
    };
    values::encode(element, list).map_err(|problem| wrong(format!("`{name}`: {problem}")).into())
}
