//! Inputs and launch from the command line, for the commands that run a kernel.

use crate::{Failure, load, read_at_most};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use vyre::ir::{ConstDecl, DataType, Program, SpecValue};
use vyre::kernel::{Buffer, Kernel};
use vyre::launch::{Over, check_inputs, grid_over, inputs_by_name};
use vyre::reference::Options;
use vyre::spec::ErrorCode;
use vyre::specialization::SpecMap;
use vyre::{Diagnostic, DispatchConfig, Report, values};
use vyre_worker::Case;

#[derive(clap::Args, Clone)]
pub struct LaunchArgs {
    /// An input: NAME=VALUES, NAME=TYPE:VALUES or NAME=@FILE
    #[arg(long = "in", value_name = "NAME=…", value_parser = assignment)]
    inputs: Vec<(String, String)>,
    /// Workgroups along x, y and z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    grid: Option<Triple>,
    /// One invocation per element of a buffer, or this many invocations, instead of a grid
    #[arg(long, value_name = "NAME|N", conflicts_with = "grid")]
    over: Option<String>,
    /// Elements of an output that declares no count
    #[arg(long = "len", value_name = "NAME=N", value_parser = assignment)]
    lengths: Vec<(String, String)>,
    /// A value for a specialization constant
    #[arg(long = "const", value_name = "NAME=VALUE", value_parser = assignment)]
    constants: Vec<(String, String)>,
    /// Another workgroup size; allowed only if results cannot depend on it
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    workgroup: Option<Triple>,
    /// Steps that all invocations may take together [default: 4294967296]
    #[arg(long, value_name = "STEPS")]
    fuel: Option<u64>,
    /// Bytes that all outputs may take together [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    max_output_bytes: Option<u64>,
    /// Bytes that all inputs from files may take together [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    max_input_bytes: Option<u64>,
    /// What else is said about the dispatch, by a manifest.
    #[arg(skip)]
    said: DispatchConfig,
}

/// A program and what to run it on.
pub struct Launched {
    /// Its constants are replaced.
    pub program: Program,
    /// Its constants are not.
    pub declared: Program,
    /// Everything that is said about the dispatch, values for the constants included.
    pub config: DispatchConfig,
    /// In the order of the interface.
    pub inputs: Vec<Vec<u8>>,
    pub options: Options,
}

impl Launched {
    /// The launch as backends take it; constants are already in the program.
    pub fn dispatch_config(&self) -> DispatchConfig {
        self.config.without_specialization()
    }

    pub fn inputs(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    pub fn kernel(&self) -> Result<&Kernel, Failure> {
        Ok(self.program.validated().map_err(Clone::clone)?.kernel())
    }
}

impl LaunchArgs {
    /// Reads the program and its inputs and checks that they fit each other.
    pub fn load(&self, path: &str) -> Result<Launched, Failure> {
        self.launch(load(path)?)
    }

    /// Reads the inputs and checks that they fit the program.
    pub fn launch(&self, declared: Program) -> Result<Launched, Failure> {
        declared.validated().map_err(Clone::clone)?;
        let constants = constants(&declared, &self.constants)?;
        let program = constants.apply(&declared)?;
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        let given = inputs(kernel, &self.inputs, self.max_input_bytes.unwrap_or(INPUT_BYTES))?;
        let named: Vec<(&str, &[u8])> = given.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let inputs: Vec<Vec<u8>> = inputs_by_name(&program, &named)?.into_iter().map(<[u8]>::to_vec).collect();
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        check_inputs(&program, &sizes)?;
        let mut config = DispatchConfig {
            grid_override: self.grid.map(|grid| grid.0),
            workgroup_override: self.workgroup.map(|size| size.0),
            output_counts: lengths(&self.lengths)?,
            max_output_bytes: self.max_output_bytes,
            specialization: constants,
            ..self.said.clone()
        };
        if let Some(over) = &self.over {
            let over = over.parse().map_or(Over::Buffer(over), Over::Invocations);
            config.grid_override = Some(grid_over(&program, &sizes, &config.launch(), over)?);
        }
        let defaults = Options::default();
        let options = Options { launch: config.launch(), fuel: self.fuel.unwrap_or(defaults.fuel), ..defaults };
        Ok(Launched { program, declared, config, inputs, options })
    }

    /// The flags, and what a config says where they say nothing.
    pub fn over(&self, config: &DispatchConfig) -> LaunchArgs {
        let mut whole = LaunchArgs { said: config.clone(), ..self.clone() };
        whole.grid = self.grid.or(config.grid_override.map(Triple).filter(|_| self.over.is_none()));
        whole.workgroup = self.workgroup.or(config.workgroup_override.map(Triple));
        whole.max_output_bytes = self.max_output_bytes.or(config.max_output_bytes);
        let said = |list: &[(String, String)], name: &str| list.iter().any(|(known, _)| known == name);
        let lengths = config.output_counts.iter().filter(|(name, _)| !said(&self.lengths, name));
        whole.lengths.extend(lengths.map(|(name, count)| (name.clone(), count.to_string())));
        let constants = config.specialization.iter().filter(|(name, _)| !said(&self.constants, name));
        whole.constants.extend(constants.map(|(name, value)| (name.to_string(), value.to_string())));
        whole
    }

    /// The files that inputs come from.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().filter_map(|(_, value)| value.strip_prefix('@'))
    }

    /// The steps that were asked for.
    pub fn fuel(&self) -> Option<u64> {
        self.fuel
    }

    /// The flags as one writes them in a shell, each after a space; empty if there are none.
    pub fn written(&self) -> String {
        let mut out = String::new();
        for (flag, values) in [("in", &self.inputs), ("len", &self.lengths), ("const", &self.constants)] {
            for (name, value) in values {
                let _ = write!(out, " --{flag} {}", quoted(&format!("{name}={value}")));
            }
        }
        if let Some(over) = &self.over {
            let _ = write!(out, " --over {}", quoted(over));
        }
        for (flag, triple) in [("grid", self.grid), ("workgroup", self.workgroup)] {
            if let Some(Triple([x, y, z])) = triple {
                let _ = write!(out, " --{flag} {x},{y},{z}");
            }
        }
        let limits = [("max-output-bytes", self.max_output_bytes), ("max-input-bytes", self.max_input_bytes)];
        for (flag, number) in [("fuel", self.fuel)].into_iter().chain(limits) {
            if let Some(number) = number {
                let _ = write!(out, " --{flag} {number}");
            }
        }
        out
    }
}

/// The flags of a launch but for its inputs, each after a space.
pub fn launch_flags(case: &Case) -> String {
    let mut flags = String::new();
    for (flag, size) in [("grid", case.config.grid_override), ("workgroup", case.config.workgroup_override)] {
        if let Some([x, y, z]) = size {
            let _ = write!(flags, " --{flag} {x},{y},{z}");
        }
    }
    for (name, count) in &case.config.output_counts {
        let _ = write!(flags, " --len {}", quoted(&format!("{name}={count}")));
    }
    for (name, value) in case.config.specialization.iter() {
        let _ = write!(flags, " --const {}", quoted(&format!("{name}={value}")));
    }
    flags
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[derive(Clone, Copy)]
pub struct Triple([u32; 3]);

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("write NAME=VALUE".into()),
    }
}

fn triple(text: &str) -> Result<Triple, String> {
    let mut triple = [1; 3];
    for (axis, part) in text.split([',', 'x']).enumerate() {
        *triple.get_mut(axis).ok_or("there are only three dimensions")? =
            part.trim().parse().map_err(|_| format!("`{part}` in `{text}` is not a number below 4294967296"))?;
    }
    Ok(Triple(triple))
}

fn constants(program: &Program, given: &[(String, String)]) -> Result<SpecMap, Failure> {
    let known: HashMap<&str, &ConstDecl> = program.parts().consts.iter().map(|decl| (decl.name.as_str(), decl)).collect();
    let mut values = SpecMap::new();
    for (name, text) in given {
        let Some(decl) = known.get(name.as_str()) else {
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
        if values.get(name).is_some() {
            return Err(given_twice(name));
        }
        values.insert(name, value);
    }
    Ok(values)
}

pub fn given_twice(name: &str) -> Failure {
    Report::single(Diagnostic::new(ErrorCode::E0715, format!("`{name}` is given twice")).found(name)).into()
}

fn lengths(given: &[(String, String)]) -> Result<BTreeMap<String, u32>, Failure> {
    let mut lengths = BTreeMap::new();
    for (name, text) in given {
        let length = text
            .parse()
            .map_err(|_| Failure::Usage(format!("--len {name}={text}: `{text}` is not a number of elements below 4294967296")))?;
        if lengths.insert(name.clone(), length).is_some() {
            return Err(given_twice(name));
        }
    }
    Ok(lengths)
}

/// Bytes that inputs from files may take, if nothing else is said: as many as outputs.
const INPUT_BYTES: u64 = 1 << 30;

/// The bytes of each `--in`, by name.
fn inputs(kernel: &Kernel, given: &[(String, String)], limit: u64) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let known: HashMap<&str, &Buffer> = kernel.buffers.iter().map(|buffer| (buffer.name.as_str(), buffer)).collect();
    let mut inputs = Vec::new();
    let mut left = limit;
    for (name, text) in given {
        let bytes = match text.strip_prefix('@') {
            Some(path) => {
                let bytes = read_at_most(path, left)?.ok_or_else(|| too_long(name, path, limit))?;
                left -= bytes.len() as u64;
                bytes
            }
            None => match known.get(name.as_str()) {
                Some(buffer) => typed_values(name, &buffer.element, text)?,
                // Binding by name reports what it does not know.
                None => Vec::new(),
            },
        };
        inputs.push((name.clone(), bytes));
    }
    Ok(inputs)
}

fn too_long(name: &str, path: &str, limit: u64) -> Report {
    let message = format!("with `{name}` from {path} the inputs take more than {limit} bytes");
    let diagnostic = Diagnostic::new(ErrorCode::E0708, message).expected(format!("at most {limit} bytes"));
    Report::single(diagnostic.help("raise the limit with --max-input-bytes, or give a shorter input"))
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
