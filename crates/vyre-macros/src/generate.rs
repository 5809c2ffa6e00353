//! The Rust items of a kernel, as text.

use std::fmt::Write;
use vyre_foundation::ir::{BufferDecl, DataType, Element, Program, Scalar, SpecValue, ValueType};

/// Stands for the path of the crate `vyre` in what is written here.
pub const CRATE: &str = "__vyre";

/// The items of a valid program. `text` is an expression of its text, `source` what messages call it.
///
/// # Errors
///
/// If its name is none in Rust.
pub fn items(program: &Program, text: &str, source: &str, attributes: &str, visibility: &str) -> Result<String, String> {
    let name = program.name().map_or("", |name| name.as_str());
    let is_word =
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_word {
        return Err(format!("the kernel gives a Rust type its name, which `{name}` cannot be. Fix: use letters, digits and `_`"));
    }
    let ty = camel_case(name);
    let interface = program.interface();
    let buffers = program.buffers();
    let inputs: Vec<&BufferDecl> = interface.inputs.iter().map(|i| &buffers[*i]).collect();
    let outputs: Vec<&BufferDecl> = interface.outputs.iter().map(|i| &buffers[*i]).collect();
    let constants = &program.parts().consts;

    let mut out = String::new();
    let w = &mut out;
    let has_docs = attributes.contains("doc");
    let doc = if has_docs { String::new() } else { format!("/// The kernel `{name}`, compiled.\n") };
    line(w, &format!("{attributes}\n{doc}#[derive(Clone, Debug)]\n{visibility} struct {ty} {{ pipeline: {CRATE}::Pipeline }}"));

    line(w, &format!("/// What [`{ty}::run`] gives.\n#[derive(Clone, PartialEq, Debug)]\n{visibility} struct {ty}Outputs {{"));
    for buffer in &outputs {
        let (field, element) = (word(&buffer.name), rust_type(buffer));
        line(w, &format!("/// The buffer `{}`.\npub {field}: ::std::vec::Vec<{element}>,", buffer.name));
    }
    line(w, "}");
    line(w, &format!("impl ::core::convert::TryFrom<&{CRATE}::Results> for {ty}Outputs {{"));
    line(w, &format!("type Error = {CRATE}::BackendError;"));
    let results = if outputs.is_empty() { "_" } else { "results" };
    line(w, &format!("fn try_from({results}: &{CRATE}::Results) -> ::core::result::Result<Self, {CRATE}::BackendError> {{"));
    line(w, &format!("::core::result::Result::Ok({ty}Outputs {{"));
    for buffer in &outputs {
        let get = match buffer.element {
            Element::Type(_) => format!("results.get({:?})?", buffer.name.as_str()),
            Element::Const(_) => format!("results.bytes({:?})?.to_vec()", buffer.name.as_str()),
        };
        line(w, &format!("{}: {get},", word(&buffer.name)));
    }
    line(w, "}) } }");

    if !constants.is_empty() {
        line(w, &format!("/// The specialization constants of [`{ty}`]; the default has what the program says."));
        line(w, &format!("#[derive(Clone, PartialEq, Debug)]\n{visibility} struct {ty}Constants {{"));
        for constant in constants {
            let (kind, _) = constant_value(&constant.default);
            line(w, &format!("/// The constant `{}`.\npub {}: {kind},", constant.name, word(&constant.name)));
        }
        line(w, &format!("}}\nimpl ::core::default::Default for {ty}Constants {{ fn default() -> Self {{ {ty}Constants {{"));
        for constant in constants {
            let (_, default) = constant_value(&constant.default);
            line(w, &format!("{}: {default},", word(&constant.name)));
        }
        line(w, "} } }");
    }

    line(w, &format!("#[allow(dead_code, reason = \"not every kernel is used in every way\")]\nimpl {ty} {{"));
    line(w, &format!("/// The text of the program.\npub const TEXT: &'static str = {text};"));
    line(w, &format!("/// The program.\n#[must_use]\npub fn program() -> &'static {CRATE}::ir::Program {{"));
    line(w, &format!("static PROGRAM: ::std::sync::LazyLock<{CRATE}::ir::Program> = ::std::sync::LazyLock::new(|| {{"));
    line(w, &format!("{CRATE}::text::parse({source:?}, {ty}::TEXT).expect(\"it was read when this crate was compiled\") }});"));
    line(w, "&PROGRAM }");
    let result = format!("::core::result::Result<Self, {CRATE}::BackendError>");
    line(
        w,
        &format!(
            "/// Compiles it for a backend.\n///\n/// # Errors\n///\n/// If the backend cannot run it.\npub fn compile(backend: &{CRATE}::Backend) -> {result} {{"
        ),
    );
    line(w, &format!("::core::result::Result::Ok({ty} {{ pipeline: backend.compile(Self::program())? }}) }}"));
    if !constants.is_empty() {
        line(
            w,
            "/// Compiles it with other values of its constants.\n///\n/// # Errors\n///\n/// If they make it wrong, or the backend cannot run it.",
        );
        line(w, &format!("pub fn compile_with(backend: &{CRATE}::Backend, constants: {ty}Constants) -> {result} {{"));
        line(w, &format!("let pipeline = {CRATE}::Dispatch::new(Self::program())"));
        for constant in constants {
            line(w, &format!(".constant({:?}, constants.{})", constant.name.as_str(), word(&constant.name)));
        }
        line(w, &format!(".compile(backend)?;\n::core::result::Result::Ok({ty} {{ pipeline }}) }}"));
    }
    line(
        w,
        &format!(
            "/// It by the names of its buffers.\n#[must_use]\npub fn pipeline(&self) -> &{CRATE}::Pipeline {{ &self.pipeline }}"
        ),
    );

    let parameters: String = inputs.iter().map(|buffer| format!(", {}: {}", word(&buffer.name), parameter(buffer))).collect();
    let arguments: Vec<String> = inputs.iter().map(|buffer| word(&buffer.name)).collect();
    line(
        w,
        "/// A dispatch on these inputs, in the order of bindings: slices, or buffers. Grid, lengths and resident outputs can be added.",
    );
    line(
        w,
        &format!(
            "pub fn dispatch<'a>(&'a self{parameters}) -> {CRATE}::Dispatch<'a, &'a {CRATE}::Pipeline> {{ self.pipeline.dispatch()"
        ),
    );
    for buffer in &inputs {
        let give = if matches!(buffer.element, Element::Type(_)) { "values" } else { "input_bytes" };
        line(w, &format!(".{give}({:?}, {})", buffer.name.as_str(), word(&buffer.name)));
    }
    line(w, "}");
    line(
        w,
        "/// Runs it on these inputs, in the order of bindings.\n///\n/// # Errors\n///\n/// If lengths do not fit, or it fails.",
    );
    line(w, &format!("pub fn run<'a>(&'a self{parameters}) -> ::core::result::Result<{ty}Outputs, {CRATE}::BackendError> {{"));
    line(w, &format!("{ty}Outputs::try_from(&self.dispatch({}).run()?) }}", arguments.join(", ")));
    line(w, "}");
    Ok(out)
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String does not fail");
}

fn parameter(buffer: &BufferDecl) -> String {
    match buffer.element {
        Element::Type(_) => format!("impl ::core::convert::Into<{CRATE}::Values<'a, {}>>", rust_type(buffer)),
        // The type is known at run time.
        Element::Const(_) => "&'a [u8]".into(),
    }
}

/// The type that stands for an element: itself, or an integer with its bits.
fn rust_type(buffer: &BufferDecl) -> String {
    let Element::Type(element) = &buffer.element else { return "u8".into() };
    let scalar = |scalar: Scalar| if scalar == Scalar::Bool { "u32" } else { scalar.name() };
    match (element, element.value_type()) {
        (DataType::U8 | DataType::I8 | DataType::U16 | DataType::I16, _) => element.to_string(),
        (_, Some(ValueType::Vector(of, count))) => format!("[{}; {count}]", scalar(of)),
        (_, Some(ValueType::Scalar(of))) if element.bits() == Some(u64::from(of.bytes()) * 8) => scalar(of).into(),
        (_, Some(ValueType::Scalar(_)) | None) => if element.bits() == Some(16) { "u16" } else { "u8" }.into(),
    }
}

/// The type of a constant, and its value.
fn constant_value(value: &SpecValue) -> (&'static str, String) {
    match value {
        SpecValue::U32(value) => ("u32", format!("{value}u32")),
        SpecValue::I32(value) => ("i32", format!("{value}i32")),
        SpecValue::F32(value) => ("f32", format!("f32::from_bits({:#x}u32)", value.to_bits())),
        SpecValue::Bool(value) => ("bool", value.to_string()),
        SpecValue::DType(data_type) => (
            "__vyre::ir::DataType",
            format!("{CRATE}::text::parse_data_type(\"{data_type}\").expect(\"it was read when this crate was compiled\")"),
        ),
    }
}

/// A name as a Rust identifier.
fn word(name: &str) -> String {
    const KEYWORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum", "extern",
        "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut",
        "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe",
        "unsized", "use", "virtual", "where", "while", "yield",
    ];
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match plain.as_str() {
        "self" | "Self" | "super" | "crate" | "_" | "" => format!("{plain}_"),
        word if KEYWORDS.contains(&word) => format!("r#{word}"),
        word if word.starts_with(|c: char| c.is_ascii_digit()) => format!("_{word}"),
        _ => plain,
    }
}

fn camel_case(name: &str) -> String {
    let parts = name.split('_').filter(|part| !part.is_empty());
    let upper = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
    parts.map(upper).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        items(&text.parse().unwrap(), "TEXT", "kernel!", "", "pub")
    }

    #[test]
    fn types_stand_for_elements() {
        let elements = [
            ("u32", "u32"),
            ("i64", "i64"),
            ("f32", "f32"),
            ("f64", "f64"),
            ("bool", "u32"),
            ("i8", "i8"),
            ("u16", "u16"),
            ("f16", "u16"),
            ("bf16", "u16"),
            ("f8e4m3", "u8"),
            ("nf4", "u8"),
            ("vec3<f32>", "[f32; 3]"),
            ("vec2<u32>", "[u32; 2]"),
        ];
        for (element, rust) in elements {
            let written = of(&format!("program p {{ workgroup 1\n buffer x: read {element} @0\n}}")).unwrap();
            assert!(
                written.contains(&format!("x: impl ::core::convert::Into<__vyre::Values<'a, {rust}>>")),
                "{element}: {written}"
            );
        }
    }

    #[test]
    fn names_are_rust_names() {
        assert_eq!(["x", "in", "self", "_", "a b", "9"].map(word), ["x", "r#in", "self_", "__", "a_b", "_9"]);
        assert_eq!(["blur", "game_of_life", "sha256_", "_x"].map(camel_case), ["Blur", "GameOfLife", "Sha256", "X"]);
        let message = of("program `9 lives` { workgroup 1\n}").unwrap_err();
        assert!(message.contains("`9 lives` cannot be"), "{message}");
    }
}
