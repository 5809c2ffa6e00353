//! A case and its outcome as a check file, ready to be put below `checks/`.

use std::fmt::Write;
use vyre_foundation::ir::DataType;
use vyre_foundation::{specialize, values};
use vyre_worker::{Case, Failure, Outputs};

/// The widest line that is written.
const WIDTH: usize = 120;

/// The text of a check file: what it is about, the directive that says what must come out, and the program.
///
/// `None` if a check file cannot say it: for an outcome other than outputs or a trap, and for a case that is not valid.
#[must_use]
pub fn check_file(case: &Case, expected: &Result<Outputs, Failure>, title: &str) -> Option<String> {
    let values = case.config.specialization.iter();
    let resolved = specialize(&case.program, values).ok()?;
    let kernel = resolved.validated().ok()?.kernel();
    let binding = |(i, bytes): (&usize, &Vec<u8>)| {
        let buffer = &kernel.buffers[*i];
        format!("{}={}", buffer.name, written(&buffer.element, bytes))
    };
    let interface = resolved.interface();
    let mut head = match expected {
        Ok(_) => String::from("run"),
        Err(Failure::Trap { .. }) => String::from("trap"),
        Err(
            Failure::Refused(_)
            | Failure::Unsupported(_)
            | Failure::OutOfFuel
            | Failure::Panicked(_)
            | Failure::Crashed(_)
            | Failure::Hung(_)
            | Failure::Device(_)
            | Failure::WildWrite { .. }
            | Failure::NotRun(_)
            | Failure::GivenUp(_),
        ) => return None,
    };
    for (option, size) in [("grid", case.config.grid_override), ("workgroup", case.config.workgroup_override)] {
        if let Some([x, y, z]) = size {
            let _ = write!(head, " {option}={x},{y},{z}");
        }
    }
    for (name, count) in &case.config.output_counts {
        let _ = write!(head, " len.{name}={count}");
    }
    for (name, value) in case.config.specialization.iter() {
        let _ = write!(head, " const.{name}={value}");
    }
    let mut items: Vec<String> = interface.inputs.iter().zip(&case.inputs).map(binding).collect();
    items.push("->".into());
    match expected {
        Ok(outputs) => items.extend(interface.outputs.iter().zip(outputs).map(binding)),
        Err(Failure::Trap { tag, invocation: [x, y, z] }) => items.push(format!("{tag} at {x},{y},{z}")),
        Err(_) => return None,
    }
    let mut text = String::new();
    for line in title.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "// {}", prose(line));
    }
    text.push_str(&wrapped(&format!("{head}: {}", items.join(" "))));
    let _ = write!(text, "\n{}", case.program);
    Some(text)
}

/// A line that is no directive and no mark: those begin with a small letter or `==`.
fn prose(line: &str) -> String {
    let mut letters = line.chars();
    match letters.next() {
        Some(first) if first.is_alphabetic() => first.to_uppercase().chain(letters).collect(),
        _ => format!("About {line}"),
    }
}

/// The elements as values if they have any that read back as these bytes, else the bytes.
fn written(element: &DataType, bytes: &[u8]) -> String {
    let list = values::decode(element, bytes).join(", ");
    if values::encode(element, &list).is_ok_and(|again| again == bytes) {
        return format!("[{list}]");
    }
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("bytes[{}]", hex.join(" "))
}

/// A directive as comments; a line that begins with five spaces goes on with the one above it.
fn wrapped(directive: &str) -> String {
    let mut lines = vec![String::from("//")];
    for word in directive.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH || line == "//" => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("//     {word}")),
        }
    }
    lines.join("\n") + "\n"
}
