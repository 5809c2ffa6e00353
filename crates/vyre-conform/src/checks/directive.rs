//! What a check file says must hold: the directives in its comments.
//!
//! `checks/readme.vyre` explains the format to people.

use std::collections::BTreeMap;
use std::ops::Range;
use vyre_foundation::ir::{DataType, Element, Program, SpecValue};
use vyre_foundation::{specialize, values};
use vyre_reference::Options;
use vyre_spec::ErrorCode;

/// One thing that must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directive {
    /// The lines of the file that it stands on, from 0.
    pub lines: Range<usize>,
    /// What must hold.
    pub kind: Kind,
}

/// What must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Run it; these outputs must come out.
    Run(Launch, Vec<Binding>),
    /// Run it; it must trap with this tag in this invocation.
    Trap(Launch, u32, [u32; 3]),
    /// Run it; it must be refused with this code, and the message must name this buffer or constant.
    Refuse(Launch, ErrorCode, Option<String>),
    /// Run it in the checked mode; it must find exactly this.
    Checked(Launch, Verdict),
    /// The validator must find exactly the errors of all such directives.
    Error(ErrorCode, (usize, usize)),
    /// `check --portable` must find exactly the warnings of all such directives.
    Warn(ErrorCode, (usize, usize)),
    /// The static answer: `unproven` and why, or `cross-backend` and its conditions.
    Determinism(String),
    /// Which accesses are proven to be in bounds, in source order: `a[i] proven, out[i] unproven`.
    Bounds(String),
    /// This pass must change nothing.
    LeavesAlone(String),
    /// This pass must give the program of this text; the lines are those of the text.
    After(String, String),
    /// Printing the program must give this text.
    Printed(String),
    /// Formatting the text must give this text, comments above the program aside; `None` is the text itself.
    Formatted(Option<String>),
    /// The program's wire form with bytes changed; decoding must stop with this code at this byte.
    Corrupt(Corruption, ErrorCode, usize),
}

/// What the checked mode must say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Each as written: `W0501 at 7:3 with 8:16`, `W0503 at 9:5`; sorted.
    pub findings: Vec<String>,
    /// Whether not every schedule is accounted for. Only where the verdict is about them: a race is a race.
    pub sampled: bool,
    /// How many legal outcomes there are.
    pub outcomes: Option<usize>,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = self.findings.clone();
        if words.is_empty() {
            words.push("clean".into());
        }
        if self.sampled {
            words.push("sampled".into());
        }
        words.extend(self.outcomes.map(|outcomes| format!("{outcomes} outcomes")));
        f.write_str(&words.join(", "))
    }
}

/// What is done to the bytes of a wire form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Corruption {
    /// New values of bytes.
    pub bytes: Vec<(usize, u8)>,
    /// How many bytes are left.
    pub cut: Option<usize>,
    /// Whether the checksum is made right again.
    pub resealed: bool,
}

/// A dispatch as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// `grid=4`, `len.out=3`, `const.scale=10`, `fuel=1000`, `workgroup=2`.
    pub options: Vec<(String, String)>,
    /// The inputs.
    pub inputs: Vec<Binding>,
}

/// `name=[…]` as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The buffer.
    pub name: String,
    /// What stands behind `=`.
    pub text: String,
}

const WORDS: [&str; 11] =
    ["run", "trap", "refuse", "checked", "error", "warn", "determinism", "corrupt", "bounds", "pass", "format"];

/// What the text below this line is, if it is another text than the program's.
fn mark(line: &str) -> Option<&str> {
    line.strip_prefix("// == ")?.strip_suffix(" ==")
}

/// The text of the program that a file is about: all of it, or what is above the first other text.
pub fn program_text(bytes: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\n// == ";
    let end = bytes.windows(MARK.len()).position(|window| window == MARK);
    &bytes[..end.map_or(bytes.len(), |end| end + 1)]
}

/// All directives of a text. A comment line that begins with five spaces or more continues the directive above it. What is below a
/// line `// == after NAME ==` is the result of a pass, up to the next such line; below `// == printed ==` and `// == formatted ==` is
/// what the program looks like then.
///
/// # Errors
///
/// The line, and what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Directive>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut directives = Vec::new();
    let marks: Vec<usize> = (0..lines.len()).filter(|n| mark(lines[*n]).is_some()).collect();
    for (n, line) in marks.iter().enumerate() {
        let range = line + 1..marks.get(n + 1).copied().unwrap_or(lines.len());
        let text = lines[range.clone()].join("\n");
        let kind = match mark(lines[*line]).unwrap_or("") {
            "printed" => Kind::Printed(text),
            "formatted" => Kind::Formatted(Some(text)),
            other => match other.strip_prefix("after ") {
                Some(name) => Kind::After(name.to_string(), text),
                None => return Err(format!("line {}: a text is `after NAME`, `printed` or `formatted`", line + 1)),
            },
        };
        directives.push(Directive { lines: range, kind });
    }
    let lines = &lines[..marks.first().copied().unwrap_or(lines.len())];
    let mut i = 0;
    while i < lines.len() {
        let start = i;
        i += 1;
        let Some(comment) = lines[start].trim_start().strip_prefix("// ") else { continue };
        let word_end = comment.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(comment.len());
        if !WORDS.contains(&&comment[..word_end]) || !comment.contains(": ") {
            continue;
        }
        let mut whole = comment.to_string();
        while let Some(more) = lines.get(i).and_then(|line| line.trim_start().strip_prefix("//     ")) {
            whole.push(' ');
            whole.push_str(more.trim());
            i += 1;
        }
        let kind = parse_one(&whole).map_err(|problem| format!("line {}: {problem}", start + 1))?;
        directives.push(Directive { lines: start..i, kind });
    }
    Ok(directives)
}

fn parse_one(text: &str) -> Result<Kind, String> {
    let (head, rest) = text.split_once(": ").ok_or("a directive needs a colon and a space")?;
    let mut words = head.split_whitespace();
    let word = words.next().unwrap_or("");
    let options = words
        .map(|option| option.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())))
        .collect::<Option<Vec<_>>>()
        .ok_or("options are written name=value")?;
    match word {
        "error" | "warn" => {
            let (code, place) = rest.split_once(" at ").ok_or("write `E0301 at 4:9`")?;
            // The message may follow.
            let place = place.split_once(", ").map_or(place, |(place, _)| place);
            let code = ErrorCode::from_name(code.trim()).ok_or_else(|| format!("no error code {code}"))?;
            let (line, column) = place.trim().split_once(':').ok_or("write line:column")?;
            let place = (
                line.parse().map_err(|_| format!("bad line {line}"))?,
                column.parse().map_err(|_| format!("bad column {column}"))?,
            );
            Ok(if word == "error" { Kind::Error(code, place) } else { Kind::Warn(code, place) })
        }
        "determinism" => Ok(Kind::Determinism(rest.split_whitespace().collect::<Vec<_>>().join(" "))),
        "bounds" => Ok(Kind::Bounds(rest.split_whitespace().collect::<Vec<_>>().join(" "))),
        "pass" => match rest.trim().strip_suffix(" leaves it alone") {
            Some(name) => Ok(Kind::LeavesAlone(name.to_string())),
            None => Err("write `pass: NAME leaves it alone`, or put the result below `// == after NAME ==`".into()),
        },
        "format" => match rest.trim() {
            "leaves it alone" => Ok(Kind::Formatted(None)),
            _ => Err("write `format: leaves it alone`, or put the result below `// == formatted ==`".into()),
        },
        "corrupt" => {
            let (left, right) = rest.split_once("->").ok_or("bytes and expectation are separated by ->")?;
            let mut corruption = Corruption { resealed: options.iter().any(|(key, _)| key == "reseal"), ..Default::default() };
            for item in left.split_whitespace() {
                let (at, value) = item.split_once('=').ok_or("write offset=byte or cut=length")?;
                match at {
                    "cut" => corruption.cut = Some(value.parse().map_err(|_| format!("bad length {value}"))?),
                    at => corruption.bytes.push((
                        at.parse().map_err(|_| format!("bad offset {at}"))?,
                        u8::from_str_radix(value, 16).map_err(|_| format!("bad byte {value}"))?,
                    )),
                }
            }
            let (code, offset) = right.split_once(" at ").ok_or("write `E0605 at 12`")?;
            let code = ErrorCode::from_name(code.trim()).ok_or_else(|| format!("no error code {code}"))?;
            Ok(Kind::Corrupt(corruption, code, offset.trim().parse().map_err(|_| format!("bad offset {offset}"))?))
        }
        _ => {
            let (left, right) = rest.split_once("->").ok_or("inputs and expectation are separated by ->")?;
            let launch = Launch { options, inputs: bindings(left)? };
            let right = right.trim();
            match word {
                "run" => Ok(Kind::Run(launch, bindings(right)?)),
                "checked" => Ok(Kind::Checked(launch, verdict(right)?)),
                "trap" => {
                    let (tag, id) = right.split_once(" at ").ok_or("write `7 at 3,0,0`")?;
                    let id: Vec<u32> = id.split(',').map_while(|part| part.trim().parse().ok()).collect();
                    let id = id.try_into().map_err(|_| "an invocation has three numbers")?;
                    Ok(Kind::Trap(launch, tag.trim().parse().map_err(|_| format!("bad tag {tag}"))?, id))
                }
                _ => {
                    let (code, about) = match right.split_once(" about ") {
                        Some((code, about)) => (code, Some(about.trim().to_string())),
                        None => (right, None),
                    };
                    let code = ErrorCode::from_name(code.trim()).ok_or_else(|| format!("no error code {code}"))?;
                    Ok(Kind::Refuse(launch, code, about))
                }
            }
        }
    }
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let mut verdict = Verdict { findings: Vec::new(), sampled: false, outcomes: None };
    for item in text.split(',').map(str::trim) {
        if let Some(number) = item.strip_suffix(" outcomes") {
            verdict.outcomes = Some(number.parse().map_err(|_| format!("bad number {number}"))?);
        } else if item == "sampled" {
            verdict.sampled = true;
        } else if item.starts_with('W') {
            let code = item.split(' ').next().unwrap_or(item);
            ErrorCode::from_name(code).ok_or_else(|| format!("no code {code}"))?;
            verdict.findings.push(item.split_whitespace().collect::<Vec<_>>().join(" "));
        } else if item != "clean" {
            return Err(format!("`{item}` is not a finding"));
        }
    }
    if text.starts_with("clean") != verdict.findings.is_empty() {
        return Err("write `clean`, or findings".into());
    }
    verdict.findings.sort();
    Ok(verdict)
}

fn bindings(text: &str) -> Result<Vec<Binding>, String> {
    let mut rest = text.trim();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| format!("expected name=[values] at `{rest}`"))?;
        let end = after.find(']').ok_or_else(|| format!("the list of `{name}` does not end"))?;
        all.push(Binding { name: name.trim().to_string(), text: after[..=end].trim().to_string() });
        rest = after[end + 1..].trim_start();
    }
    Ok(all)
}

/// The bytes of `[1, 2, 0;5, 3..6]` or `bytes[00 ff]` as elements of a buffer.
///
/// # Errors
///
/// What is not a value of the type.
pub fn encode(element: &DataType, text: &str) -> Result<Vec<u8>, String> {
    let inner = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(']'));
    if let Some(hex) = inner("bytes[") {
        let byte = |byte| u8::from_str_radix(byte, 16).map_err(|_| format!("bad byte {byte}"));
        return hex.split_whitespace().map(byte).collect();
    }
    let list = inner("[").ok_or_else(|| format!("expected [values], found {text}"))?;
    values::encode(element, list)
}

/// The inverse of [`encode`], for bless mode and messages. Bytes that no written values stand for are shown as such.
pub fn decode(element: &DataType, bytes: &[u8]) -> String {
    let list = format!("[{}]", values::decode(element, bytes).join(", "));
    if encode(element, &list).is_ok_and(|again| again == bytes) {
        return list;
    }
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("bytes[{}]", hex.join(" "))
}

/// The bytes of an input, by name.
pub type Named = (String, Vec<u8>);

impl Launch {
    /// The options of the run, and the inputs' bytes by name.
    ///
    /// # Errors
    ///
    /// What does not read as it should.
    pub fn resolve(&self, program: &Program) -> Result<(Options, Vec<Named>), String> {
        let mut options = Options { fuel: 100_000_000, ..Options::default() };
        for (key, value) in &self.options {
            let number = || value.parse::<u64>().map_err(|_| format!("{key}={value} is not a number"));
            let size = || -> Result<[u32; 3], String> {
                let mut size = [1; 3];
                for (axis, part) in value.split(',').enumerate() {
                    *size.get_mut(axis).ok_or("more than three dimensions")? =
                        part.parse().map_err(|_| format!("{key}={value} is not a size"))?;
                }
                Ok(size)
            };
            match key.split_once('.') {
                None if key == "grid" => options.launch.grid = Some(size()?),
                None if key == "workgroup" => options.launch.workgroup_override = Some(size()?),
                None if key == "fuel" => options.fuel = number()?,
                Some(("len", name)) => {
                    options.launch.output_counts.insert(name.to_string(), number()? as u32);
                }
                Some(("const", name)) => {
                    let value = spec_value(program, name, value)?;
                    options.specialization.insert(name.to_string(), value);
                }
                _ => return Err(format!("no option {key}")),
            }
        }
        let specialized = specialize(program, options.specialization.iter().map(|(name, value)| (name.as_str(), value)));
        let elements = elements(specialized.as_ref().unwrap_or(program));
        let mut inputs = Vec::new();
        for Binding { name, text } in &self.inputs {
            let element = elements.get(name).cloned().unwrap_or(DataType::U8);
            inputs.push((name.clone(), encode(&element, text).map_err(|problem| format!("{name}: {problem}"))?));
        }
        Ok((options, inputs))
    }
}

/// A value for a constant; one that does not read as the constant's type is passed as u32, i32 or f32 so that it can be refused.
fn spec_value(program: &Program, name: &str, text: &str) -> Result<SpecValue, String> {
    let declared = program.parts().consts.iter().find(|decl| decl.name == *name);
    let guesses =
        [SpecValue::U32(0), SpecValue::I32(0), SpecValue::F32(0.0), SpecValue::Bool(false), SpecValue::DType(DataType::U32)];
    declared
        .and_then(|decl| decl.default.parse_same_kind(text))
        .or_else(|| guesses.iter().find_map(|guess| guess.parse_same_kind(text)))
        .ok_or_else(|| format!("`{text}` is not a value"))
}

/// The element type of every buffer, constants at their defaults.
pub fn elements(program: &Program) -> BTreeMap<String, DataType> {
    let program = specialize(program, []).unwrap_or_else(|_| program.clone());
    program
        .buffers()
        .iter()
        .filter_map(|decl| match &decl.element {
            Element::Type(data_type) => Some((decl.name.to_string(), data_type.clone())),
            Element::Const(_) => None,
        })
        .collect()
}
