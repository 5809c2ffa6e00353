//! One dispatch before it runs: how long every buffer is, how many workgroups there are, and whether the caller's bytes fit.
//!
//! Everything is counted here and nowhere else, so that every backend gives a program the same lengths and the same ids.

use crate::diagnostic::{BufferPart, Diagnostic, Location, Mistakes, Report, one_of};
use crate::ir::{Access, Program};
use crate::kernel::{Buffer, Kernel};
use crate::text::suggest::nearest;
use std::collections::{BTreeMap, HashMap, HashSet};
use vyre_scalar::memory::{byte_length, element_count};
use vyre_spec::ErrorCode;
use vyre_spec::limits::MAX_WORKGROUP_INVOCATIONS;

/// What a caller can say about a dispatch beside its inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    /// Workgroups along x, y and z.
    pub grid: Option<[u32; 3]>,
    /// Another workgroup size than the declared one, where the program cannot tell; see [`overridden_geometry`].
    pub workgroup_override: Option<[u32; 3]>,
    /// Lengths of outputs that declare none, by name.
    pub output_counts: BTreeMap<String, u32>,
    /// The bytes that all outputs may take together.
    pub max_output_bytes: u64,
}

impl Default for LaunchConfig {
    /// Nothing is said; outputs may take 1 GiB.
    fn default() -> Self {
        LaunchConfig { grid: None, workgroup_override: None, output_counts: BTreeMap::new(), max_output_bytes: 1 << 30 }
    }
}

/// The shape of one dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Invocations of one workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Workgroups along x, y and z; a zero means that nothing runs.
    pub grid: [u32; 3],
    /// By buffer, in the order of declaration: elements that the kernel sees.
    pub lengths: Vec<u32>,
    /// By buffer, in the order of declaration: bytes, including a tail that is no whole element.
    pub bytes: Vec<u64>,
}

impl Launch {
    /// Workgroups of the whole dispatch. They are numbered with x fastest.
    #[must_use]
    pub fn groups(&self) -> u32 {
        // A launch is planned so that even its invocations can be counted.
        self.grid.iter().product()
    }

    /// Invocations of the whole dispatch.
    #[must_use]
    pub fn invocations(&self) -> u64 {
        self.grid.iter().zip(self.workgroup_size).map(|(groups, size)| u64::from(*groups) * u64::from(size)).product()
    }
}

/// The shape of a dispatch of `program` with inputs of these byte lengths, in the order of the interface.
///
/// A tail of an input that is no whole element is kept and not seen by the kernel; callers that take bytes from people refuse it
/// through [`check_inputs`].
pub fn plan(program: &Program, input_bytes: &[u64], config: &LaunchConfig) -> Result<Launch, Report> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let about = |mistakes: Vec<Diagnostic>| Report::about(program, mistakes);
    let (lengths, bytes) =
        buffer_lengths(program, kernel, input_bytes, config).map_err(|mistakes| Report::about(program, mistakes))?;
    let declared = geometry(kernel, &lengths, config).map_err(about)?;
    let (workgroup_size, grid) = match config.workgroup_override {
        None => (kernel.workgroup_size, declared),
        Some(size) => (size, overridden_geometry(kernel, declared, size).map_err(about)?),
    };
    Ok(Launch { workgroup_size, grid, lengths, bytes })
}

/// Refuses inputs that [`plan`] would accept and a person cannot have meant: bytes that are no whole elements.
pub fn check_inputs(program: &Program, input_bytes: &[u64]) -> Result<(), Report> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let mut mistakes = Mistakes::default();
    for (i, bytes) in program.interface().inputs.iter().zip(input_bytes) {
        let buffer = &kernel.buffers[*i];
        let whole = element_count(&buffer.element, *bytes).and_then(|count| byte_length(&buffer.element, count));
        if whole != Some(*bytes) {
            let bits = buffer.element.bits().unwrap_or(8);
            mistakes.push(
                Diagnostic::new(
                    ErrorCode::E0704,
                    format!("`{}` got {bytes} bytes, which is not a whole number of {} elements", buffer.name, buffer.element),
                )
                .at(Location::Buffer(*i as u32, BufferPart::Element))
                .expected(format!("a multiple of {} bytes", bits.div_ceil(8)))
                .found(format!("{bytes} bytes")),
            );
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Report::about(program, mistakes)) }
}

/// Puts inputs that come by name into the order of the interface; all that is missing, unknown or given twice is an error.
pub fn inputs_by_name<'a>(program: &Program, named: &[(&str, &'a [u8])]) -> Result<Vec<&'a [u8]>, Report> {
    let buffers = program.buffers();
    let inputs = &program.interface().inputs;
    let mut by_name: HashMap<&str, usize> = HashMap::with_capacity(buffers.len());
    for (i, decl) in buffers.iter().enumerate() {
        by_name.entry(decl.name.as_str()).or_insert(i);
    }
    let mut given: HashMap<&str, &'a [u8]> = HashMap::with_capacity(named.len());
    let mut mistakes = Mistakes::default();
    let mut unknown = Vec::new();
    for (name, bytes) in named {
        let twice = given.contains_key(name);
        given.entry(name).or_insert(bytes);
        match by_name.get(name) {
            Some(i) if !buffers[*i].access.is_input() => mistakes.push(
                Diagnostic::new(
                    ErrorCode::E0702,
                    format!("`{name}` is {}, which takes no bytes from the caller", buffers[*i].access),
                )
                .at(Location::Buffer(*i as u32, BufferPart::Whole))
                .found(name)
                .expected("a read, read_write or uniform buffer"),
            ),
            Some(_) if twice => {
                mistakes.push(Diagnostic::new(ErrorCode::E0715, format!("`{name}` is given twice")).found(name));
            }
            Some(_) => {}
            None => unknown.push(*name),
        }
    }
    // A name that is nearly that of an input that is missing is one mistake, not two.
    let mut missing: Vec<usize> = inputs.iter().copied().filter(|i| !given.contains_key(buffers[*i].name.as_str())).collect();
    for name in unknown {
        mistakes.push_with(|| {
            let diagnostic = Diagnostic::new(ErrorCode::E0702, format!("the program has no input `{name}`")).found(name);
            let meant = nearest(name, missing.iter().map(|i| buffers[*i].name.as_str()));
            missing.retain(|i| meant.is_none_or(|meant| buffers[*i].name != *meant));
            let known = || one_of(inputs.iter().map(|i| buffers[*i].name.as_str()));
            match meant {
                Some(close) => diagnostic.expected(known()).help(format!("did you mean `{close}`?")),
                None if inputs.is_empty() => diagnostic.help("it takes no inputs"),
                None => diagnostic.expected(known()),
            }
        });
    }
    for i in &missing {
        let decl = &buffers[*i];
        mistakes.push_with(|| {
            Diagnostic::new(ErrorCode::E0701, format!("the input `{}` is missing", decl.name))
                .at(Location::Buffer(*i as u32, BufferPart::Whole))
                .expected(format!("bytes for a {} buffer of {}", decl.access, decl.element))
                .help(format!("give its values (`--in {0}=…`) or a file with its bytes (`--in {0}=@FILE`)", decl.name.as_str()))
        });
    }
    let ordered = inputs.iter().filter_map(|i| given.get(buffers[*i].name.as_str()).copied()).collect();
    if mistakes.is_empty() { Ok(ordered) } else { Err(Report::about(program, mistakes)) }
}

/// Elements and bytes of every buffer, in the order of declaration.
///
/// A declared count is the length, and an input must have exactly that many elements. Without one, an input has as many as its
/// bytes hold, and an output takes its length from `output_counts`, else from the longest input without a count.
fn buffer_lengths(
    program: &Program,
    kernel: &Kernel,
    input_bytes: &[u64],
    config: &LaunchConfig,
) -> Result<(Vec<u32>, Vec<u64>), Mistakes> {
    let inputs = &program.interface().inputs;
    if inputs.len() != input_bytes.len() {
        let names: Vec<&str> = inputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
        return Err(vec![
            Diagnostic::new(ErrorCode::E0701, format!("the program takes {} inputs, found {}", inputs.len(), input_bytes.len()))
                .expected(format!("{} inputs in the order of their bindings: {}", inputs.len(), names.join(", ")))
                .found(input_bytes.len()),
        ]
        .into());
    }
    let mut mistakes = useless_counts(kernel, config);
    let given: BTreeMap<usize, u64> = inputs.iter().copied().zip(input_bytes.iter().copied()).collect();
    let longest = inputs
        .iter()
        .filter(|i| kernel.buffers[**i].count.is_none())
        .filter_map(|i| element_count(&kernel.buffers[*i].element, given[i]))
        .max();
    let mut lengths = Vec::new();
    let mut bytes = Vec::new();
    let mut output_bytes = 0u64;
    for (i, buffer) in kernel.buffers.iter().enumerate() {
        let location = Location::Buffer(i as u32, BufferPart::Whole);
        let (length, size) = match (given.get(&i), buffer.count) {
            (Some(size), Some(count)) => {
                let needed = byte_length(&buffer.element, u64::from(count));
                if needed != Some(*size) {
                    mistakes.push(wrong_length(buffer, count, *size, i as u32));
                }
                (Some(u64::from(count)), *size)
            }
            (Some(size), None) => (element_count(&buffer.element, *size), *size),
            (None, count) => {
                let count = count.map(u64::from);
                let asked = config.output_counts.get(buffer.name.as_str()).copied().map(u64::from);
                let length = count.or(asked).or(longest);
                if length.is_none() {
                    mistakes.push(
                        Diagnostic::new(ErrorCode::E0705, format!("the length of the output `{}` is not known", buffer.name))
                            .at(location)
                            .help(format!(
                                "say it in the launch (`--len {}=N`), or in the program: `{}[N]`",
                                buffer.name, buffer.element
                            )),
                    );
                }
                (length, length.and_then(|length| byte_length(&buffer.element, length)).unwrap_or(0))
            }
        };
        let length = u32::try_from(length.unwrap_or(0)).unwrap_or_else(|_| {
            mistakes.push(
                Diagnostic::new(ErrorCode::E0708, format!("`{}` has more elements than a u32 can count", buffer.name))
                    .at(location)
                    .found(format!("{size} bytes")),
            );
            0
        });
        if buffer.access == Access::Output {
            output_bytes = output_bytes.saturating_add(size);
        }
        lengths.push(length);
        bytes.push(size);
    }
    if output_bytes > config.max_output_bytes {
        mistakes.push(
            Diagnostic::new(ErrorCode::E0708, format!("the outputs take {output_bytes} bytes"))
                .expected(format!("at most {} bytes", config.max_output_bytes))
                .found(format!("{output_bytes} bytes"))
                .help("raise the limit on output bytes, or ask for shorter outputs"),
        );
    }
    if mistakes.is_empty() { Ok((lengths, bytes)) } else { Err(mistakes) }
}

/// The mistakes in lengths that no output takes.
fn useless_counts(kernel: &Kernel, config: &LaunchConfig) -> Mistakes {
    if config.output_counts.is_empty() {
        return Mistakes::default();
    }
    let is_open = |buffer: &&Buffer| buffer.access == Access::Output && buffer.count.is_none();
    let open: Vec<&str> = kernel.buffers.iter().filter(is_open).map(|buffer| buffer.name.as_str()).collect();
    let known: HashSet<&str> = open.iter().copied().collect();
    let mut mistakes = Mistakes::default();
    for name in config.output_counts.keys().filter(|name| !known.contains(name.as_str())) {
        mistakes.push_with(|| {
            let message = format!("`{name}` is not an output that can be given a length");
            let diagnostic = Diagnostic::new(ErrorCode::E0702, message).found(name);
            match open.as_slice() {
                [] => diagnostic.help("every output of this program declares its count"),
                open => diagnostic.expected(one_of(open.iter().copied())),
            }
        });
    }
    mistakes
}

fn wrong_length(buffer: &Buffer, count: u32, size: u64, i: u32) -> Diagnostic {
    let needed = byte_length(&buffer.element, u64::from(count)).unwrap_or(u64::MAX);
    let how = if size < needed { "too short" } else { "too long" };
    Diagnostic::new(
        ErrorCode::E0703,
        format!("`{}` is {how}: it declares {count} elements of {}, which is {needed} bytes", buffer.name, buffer.element),
    )
    .at(Location::Buffer(i, BufferPart::Whole))
    .expected(format!("{needed} bytes"))
    .found(format!("{size} bytes"))
}

/// Workgroups along x, y and z for the declared workgroup size.
///
/// Without a grid, a 1-D program gets as many workgroups as cover the longest storage buffer it can write. If one of its inputs that
/// declares no count is longer than that, the program may be meant to go over the input: nobody guesses which.
fn geometry(kernel: &Kernel, lengths: &[u32], config: &LaunchConfig) -> Result<[u32; 3], Vec<Diagnostic>> {
    let size = kernel.workgroup_size;
    let grid = match config.grid {
        Some(grid) if grid.contains(&0) => {
            let message = format!("a grid of {} x {} x {} workgroups has none", grid[0], grid[1], grid[2]);
            let mistake = Diagnostic::new(ErrorCode::E0707, message);
            return Err(vec![mistake.expected("at least 1 workgroup along every axis").found(0)]);
        }
        Some(grid) => grid,
        None if size[1] != 1 || size[2] != 1 => {
            let mistake = Diagnostic::new(
                ErrorCode::E0706,
                "the workgroup has more than one dimension, so the grid cannot be worked out from the buffers",
            );
            let help = "say how many workgroups to run along x, y and z (`--grid 4,4,1`)";
            return Err(vec![mistake.at(Location::Workgroup).help(help)]);
        }
        None => {
            let with_lengths = || kernel.buffers.iter().zip(lengths.iter().copied());
            // The first of several that are equally long.
            let longest = |wanted: &dyn Fn(&Buffer) -> bool| {
                with_lengths().filter(|(buffer, _)| wanted(buffer)).rev().max_by_key(|(_, length)| *length)
            };
            let written = longest(&|buffer| buffer.access.is_output());
            let groups = |length: u32| length.div_ceil(size[0]);
            let covered = written.map_or(0, |(_, length)| groups(length));
            let read = longest(&|buffer| buffer.access == Access::Read && buffer.count.is_none());
            if let Some((input, length)) = read
                && u64::from(length) > u64::from(covered) * u64::from(size[0])
            {
                return Err(vec![not_covered(kernel, (input, groups(length)), length, written, covered)]);
            }
            let any = u32::from(covered > 0);
            [covered, any, any]
        }
    };
    let axes = grid.iter().zip(size).map(|(groups, size)| u64::from(*groups) * u64::from(size));
    let total = axes.clone().try_fold(1u64, |total, extent| total.checked_mul(extent));
    if axes.clone().any(|extent| extent > u64::from(u32::MAX)) || total.is_none_or(|total| total > u64::from(u32::MAX)) {
        let message = format!("a grid of {} x {} x {} workgroups has too many invocations", grid[0], grid[1], grid[2]);
        let mistake = Diagnostic::new(ErrorCode::E0708, message)
            .expected(format!("at most {} invocations", u32::MAX))
            .found(total.map_or("more than 18446744073709551615".to_string(), |total| total.to_string()));
        return Err(vec![mistake]);
    }
    Ok(grid)
}

/// An input that is longer than the default grid covers.
fn not_covered(
    kernel: &Kernel,
    (input, needed): (&Buffer, u32),
    length: u32,
    written: Option<(&Buffer, u32)>,
    covered: u32,
) -> Diagnostic {
    let place = kernel.buffers.iter().position(|buffer| std::ptr::eq(buffer, input)).unwrap_or(0);
    let groups = |n: u32| format!("{n} workgroup{} of {}", if n == 1 { "" } else { "s" }, kernel.workgroup_size[0]);
    let (covers, over) = match written {
        Some((output, count)) => (
            format!("the default grid covers `{}`, the longest buffer that is written, which has {count}", output.name),
            format!("`{}` ({})", output.name, groups(covered)),
        ),
        None => ("nothing is written, so that there is no default grid".into(), "nothing".into()),
    };
    let message = format!("`{}` has {length} elements, and {covers}", input.name);
    Diagnostic::new(ErrorCode::E0716, message)
        .at(Location::Buffer(place as u32, BufferPart::Whole))
        .expected(format!("a launch over `{}` ({}) or over {over}", input.name, groups(needed)))
        .found("no grid")
        .help(format!("say which is meant (`--over {}`), or how many workgroups there are (`--grid {needed}`)", input.name))
}

/// What a 1-D launch goes over, with one invocation per element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over<'a> {
    /// The elements of a buffer.
    Buffer(&'a str),
    /// So many.
    Invocations(u64),
}

/// The grid of the declared workgroups that covers something. The inputs have these byte lengths, in the order of the interface.
pub fn grid_over(program: &Program, input_bytes: &[u64], config: &LaunchConfig, over: Over<'_>) -> Result<[u32; 3], Report> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let refuse = |mistake: Diagnostic| Report::about(program, vec![mistake]);
    let size = kernel.workgroup_size;
    if size[1] != 1 || size[2] != 1 {
        let message = "the workgroup has more than one dimension, so the grid does not follow from a number of elements";
        let mistake = Diagnostic::new(ErrorCode::E0706, message).at(Location::Workgroup);
        return Err(refuse(mistake.help("say how many workgroups to run along x, y and z (`--grid 4,4,1`)")));
    }
    let elements = match over {
        Over::Invocations(count) => count,
        Over::Buffer(name) => {
            let (lengths, _) =
                buffer_lengths(program, kernel, input_bytes, config).map_err(|mistakes| Report::about(program, mistakes))?;
            let bound = || kernel.buffers.iter().zip(&lengths).filter(|(buffer, _)| buffer.access != Access::Workgroup);
            match bound().find(|(buffer, _)| buffer.name.as_str() == name) {
                Some((_, length)) => u64::from(*length),
                None => {
                    let mistake = Diagnostic::new(ErrorCode::E0702, format!("the program has no buffer `{name}` to go over"));
                    let mistake = mistake.found(name).expected(one_of(bound().map(|(buffer, _)| buffer.name.as_str())));
                    return Err(refuse(match nearest(name, bound().map(|(buffer, _)| buffer.name.as_str())) {
                        Some(close) => mistake.help(format!("did you mean `{close}`?")),
                        None => mistake,
                    }));
                }
            }
        }
    };
    let groups = elements.div_ceil(u64::from(size[0]));
    match u32::try_from(groups) {
        Ok(0) => Err(refuse(
            Diagnostic::new(ErrorCode::E0707, "a launch over 0 elements has no workgroups")
                .expected("at least 1 element")
                .found(0),
        )),
        Ok(groups) => Ok([groups, 1, 1]),
        Err(_) => Err(refuse(
            Diagnostic::new(ErrorCode::E0708, format!("a launch over {elements} elements has too many workgroups"))
                .expected(format!("at most {} elements", u32::MAX))
                .found(elements),
        )),
    }
}

/// The grid that gives the same invocations with another workgroup size.
///
/// Allowed only where the program cannot tell: no workgroup memory, no barrier, no subgroup operation, no local or workgroup id or
/// count; and only where the new size divides the invocations along each axis.
pub fn overridden_geometry(kernel: &Kernel, grid: [u32; 3], size: [u32; 3]) -> Result<[u32; 3], Vec<Diagnostic>> {
    let refuse = |message: String| Diagnostic::new(ErrorCode::E0711, message).at(Location::Workgroup);
    if let Some(reason) = kernel.size_matters() {
        return Err(vec![refuse(format!("the workgroup size cannot be overridden: {reason}"))]);
    }
    let total = size.iter().try_fold(1u32, |total, extent| total.checked_mul(*extent));
    if !total.is_some_and(|total| (1..=MAX_WORKGROUP_INVOCATIONS).contains(&total)) {
        let mistake = refuse(format!("a workgroup of {} x {} x {} invocations is not possible", size[0], size[1], size[2]));
        return Err(vec![mistake.expected(format!("1 to {MAX_WORKGROUP_INVOCATIONS} invocations"))]);
    }
    let mut overridden = [0; 3];
    for axis in 0..3 {
        let invocations = u64::from(grid[axis]) * u64::from(kernel.workgroup_size[axis]);
        if !invocations.is_multiple_of(u64::from(size[axis])) {
            let mistake = refuse(format!(
                "a workgroup size of {} does not divide the {invocations} invocations along {}",
                size[axis],
                ["x", "y", "z"][axis]
            ));
            return Err(vec![mistake.expected("a size that keeps the total of invocations")]);
        }
        overridden[axis] = (invocations / u64::from(size[axis])) as u32;
    }
    Ok(overridden)
}
