//! What other languages have and this one does not: loops without bounds, functions, structs, heads of shaders, braces left out.
//!
//! Each is told once, with what to write here, and read as far as that lets the rest of the text be checked: the body of a `while` is
//! read as the body of a loop, the body of a kernel's function as statements, and names that such a thing declares are poisoned.
//! Nothing here runs for a text without such a mistake. The words are in [`super::foreign`].

use super::ast::{Built, Reading};
use super::foreign::{self, Begins};
use super::lexer::Kind;
use super::parser::{Parsed, Parser, Skip};
use super::types::{is_type_word, parse_data_type};
use super::{code, names};
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Expr, Loop, Name, Node, NodeId};
use vyre_spec::ErrorCode;

/// What to write instead of the loops of other languages.
pub(super) const LOOP: &str = "a loop has bounds: `for i in 0..n { … }`, and `break` leaves it";

/// What the head of a kernel in another language says, as far as it matters here.
#[derive(Default)]
struct Head {
    /// The sizes of a workgroup.
    workgroup: Option<String>,
    binding: Option<String>,
    /// Whether it says that this is a kernel.
    kernel: bool,
}

/// The declarations that are shown for a text in another language.
const SHOWN: usize = 12;

impl<'a> Parser<'a> {
    /// Tells a mistake at this span. A `;` that follows belongs to it.
    fn tell(&mut self, span: Span, message: impl Into<String>, advise: impl FnOnce(Diagnostic) -> Diagnostic) {
        let diagnostic = advise(Diagnostic::new(ErrorCode::E0104, message).at(Location::Text(span)));
        if self.quiet == 0 && self.last_mistake != Some(self.at) {
            self.mistake(diagnostic);
        }
        self.was_told();
    }

    /// The same at the next token.
    fn tell_here(&mut self, message: impl Into<String>, advise: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.tell(self.span(), message, advise);
    }

    fn replace(&self, from: Span, new: impl Into<String>) -> Fix {
        Fix::Replace(Location::Text(from.to(self.previous())), new.into())
    }

    /// The text from there to before the next token.
    fn written(&self, from: Span) -> &'a str {
        self.slice(from.to(self.previous()))
    }

    // What begins where a statement stands.

    /// A statement of another language, if one begins here. What leaves nothing in the tree is an error that was told.
    #[cold]
    #[inline(never)]
    pub(super) fn foreign_statement(&mut self, depth: u32, place: NodeId) -> Option<Parsed<(Node, Span)>> {
        if self.kind() == Kind::Bad {
            return self.slice(self.span()).starts_with('#').then(|| Err(self.directive()));
        }
        let Some(word) = self.word() else {
            return match (self.punct(), self.punct_ahead(1)) {
                (Some("@"), _) | (Some("["), _) if self.head_ahead() => Some(self.head(depth)),
                (Some(step @ ("+" | "-")), Some(again)) if step == again => Some(Err(self.step_before(step))),
                (Some("*"), _) if self.word_ahead(1).is_some() => {
                    self.tell_here("there are no pointers", |told| {
                        told.help("write one element of a buffer: `name[index] = value`")
                    });
                    Some(Err(self.rest_of_line()))
                }
                _ => None,
            };
        };
        let next_is_word = self.word_ahead(1).is_some() && !self.tokens.newline_before(self.at + 1);
        let next = self.punct_ahead(1);
        if self.told_names.contains(&word) && (next_is_word || next == Some("(")) {
            return Some(Err(self.rest_of_line()));
        }
        match foreign::begins(word) {
            Some(Begins::Variable) if next == Some("<") => Some(Err(self.address_space())),
            Some(Begins::Variable) if next_is_word => Some(self.variable_of(depth, place)),
            Some(Begins::Workgroup) if next_is_word => Some(Err(self.workgroup_memory())),
            Some(Begins::Loop) if next != Some(".") => Some(self.unbounded(word, depth)),
            Some(Begins::Switch) => {
                self.tell_here(format!("there is no `{word}`"), |told| {
                    told.help("write `if x == 0 { … } else if x == 1 { … } else { … }`")
                });
                Some(Err(self.rest_of_construct()))
            }
            Some(Begins::Function) if next_is_word || matches!(next, Some("<" | "(")) => Some(self.head(depth)),
            Some(Begins::Type) if next_is_word || next == Some("{") => Some(Err(self.type_of_another_language(word))),
            Some(Begins::Import) if next != Some("(") => {
                self.is_head = true;
                self.tell_here(format!("there is nothing to `{word}`"), |told| {
                    told.help("a program is complete in itself: leave the line out")
                });
                Some(Err(self.rest_of_line()))
            }
            Some(Begins::Buffer) if next_is_word || matches!(next, Some("<" | "(")) => Some(self.head(depth)),
            Some(Begins::Constant) if next_is_word => Some(Err(self.constant_of_the_host())),
            Some(Begins::ElseIf) => {
                self.tell_here(format!("there is no `{word}`"), |told| told.help("write `} else if … {`"));
                Some(Err(self.rest_of_construct()))
            }
            Some(Begins::Nothing(help)) if !matches!(next, Some("=" | "[")) => {
                self.tell_here(format!("there is no `{word}`"), |told| told.help(help));
                Some(Err(self.rest_of_line()))
            }
            Some(_) | None if self.is_type_here(word) && (next_is_word || next == Some("*")) => {
                Some(self.typed_first(depth, place))
            }
            Some(_) | None => match (next, self.punct_ahead(2)) {
                (Some(":"), Some("=")) => Some(self.variable_of(depth, place)),
                (Some(":"), None) if self.word_ahead(2).is_some() => Some(self.variable_of(depth, place)),
                _ => None,
            },
        }
    }

    /// Whether the word is a type, here or elsewhere.
    pub(super) fn is_type_here(&self, word: &str) -> bool {
        is_type_word(word) || foreign::data_type(word).is_some() || word == "const"
    }

    /// Leaves out the line, and what its brackets and braces hold.
    fn rest_of_line(&mut self) -> Skip {
        let mut open = 0u32;
        let start = self.at;
        while !self.at_end() {
            match self.punct() {
                Some("(" | "[" | "{") => open += 1,
                Some("}") if open == 0 => break,
                Some(")" | "]" | "}") => open = open.saturating_sub(1),
                _ => {}
            }
            if self.at > start && open == 0 && self.line_ended() {
                break;
            }
            let ended = self.is(";") && open == 0;
            self.at += 1;
            if ended {
                break;
            }
        }
        self.left_out()
    }

    /// The same up to the end of the braces that open on the line or on the next.
    fn rest_of_construct(&mut self) -> Skip {
        while !self.at_end() && !matches!(self.punct(), Some("{" | "}" | ";")) {
            self.at += 1;
        }
        if self.is("{") {
            self.bump();
            self.skip_body();
            self.bump();
            // `} name;`
            if self.word().is_some() && self.punct_ahead(1) == Some(";") && !self.line_ended() {
                self.bump();
            }
        }
        if self.is(";") {
            self.bump();
        }
        self.left_out()
    }

    fn poison(&mut self, name: &str) {
        self.header.poison.add_name(name.into());
    }

    /// `#define N 64` and the like, which the lexer told.
    fn directive(&mut self) -> Skip {
        self.is_head = true;
        let line = self.slice(self.span());
        if let Some(rest) = line.strip_prefix("#define ") {
            let name = rest.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            self.poison(name);
            self.note_told(name);
        }
        self.bump();
        self.left_out()
    }

    /// Notes that something which is not there was declared under this name, which was told.
    fn note_told(&mut self, name: &'a str) {
        if !self.told_names.contains(&name) && self.told_names.len() < 1000 {
            self.told_names.push(name);
        }
    }

    /// `++x`
    fn step_before(&mut self, step: &str) -> Skip {
        let start = self.span();
        self.bump();
        self.bump();
        let from = self.span();
        while !self.at_end() && !self.line_ended() && !matches!(self.punct(), Some(";" | "}")) {
            self.bump();
        }
        let target = self.written(from);
        let fix = self.replace(start, format!("{target} = {target} {step} 1"));
        self.tell(start, format!("there is no `{step}{step}`"), |told| told.fix("write", fix));
        self.left_out()
    }

    // Variables.

    /// `var x = …`, `auto x = …`, `x := …`, `x: u32 = …`, with a type or without.
    fn variable_of(&mut self, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        let start = self.span();
        while self.word_ahead(1).is_some() && !self.tokens.newline_before(self.at + 1) {
            self.bump();
        }
        let name = self.slice(self.span());
        self.let_of(start, name, depth, place)
    }

    /// `float x = …`, `const uint i = …`, `unsigned int n;`, `float f(float x) { … }`, `float tile[4];`.
    fn typed_first(&mut self, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        let start = self.span();
        let first = self.at;
        while self.word_ahead(1).is_some() && !self.tokens.newline_before(self.at + 1) {
            self.bump();
        }
        if self.punct_ahead(1) == Some("*") {
            self.tell(start, "there are no pointers", |told| {
                told.help("data are in buffers: `buffer a: read_write f32 @0`, `a[i]`")
            });
            return Err(self.rest_of_line());
        }
        let name = self.slice(self.span());
        match self.punct_ahead(1) {
            Some("(") => {
                self.at = first;
                self.head(depth)
            }
            Some("[") => {
                self.poison(name);
                self.tell(start, "an invocation has no arrays of its own", |told| {
                    told.help("use variables, a `vec` of 2 to 4 components, or a buffer of the workgroup: `buffer tile: workgroup f32[64]`")
                });
                Err(self.rest_of_line())
            }
            _ => self.let_of(start, name, depth, place),
        }
    }

    /// The variable that is next, declared from `start` on in another way than by `let`.
    fn let_of(&mut self, start: Span, name: &'a str, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        let head = self.bump();
        if self.is(":") {
            self.bump();
            self.type_name();
        }
        self.poison(name);
        if !self.is("=") {
            let line = (self.at..self.tokens.len()).take_while(|at| !self.tokens.newline_before(*at));
            for at in line.collect::<Vec<_>>() {
                if self.tokens.kind(at) == Kind::Word {
                    self.poison(self.slice(self.tokens.get(at).span));
                }
            }
            self.tell(start, "variables are declared by `let`, with a value", |told| {
                told.help(format!("write {}", code(&format!("let {name} = 0"))))
            });
            return Err(self.rest_of_line());
        }
        let fix = self.replace(start, format!("let {name} "));
        self.tell(start.to(head), "variables are declared by `let`", |told| match fix {
            Fix::Replace(at, new) => told.fix("write", Fix::Replace(at, new.trim_end().into())),
            fix @ (Fix::Wrap(..) | Fix::InsertAfter(..)) => told.fix("write", fix),
        });
        self.bump();
        self.value_of_unknown_type(name.into(), head, depth, place)
    }

    /// The value of a variable whose type another language would decide.
    pub(super) fn value_of_unknown_type(&mut self, name: Name, head: Span, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        if let Some(family) = self.operation_ahead() {
            return self.operation(Some((name, head)), family, depth, place);
        }
        let begin = self.begin();
        let Built { expr, outer, height } = self.expr(depth + 2)?;
        let value = self.list(vec![expr.into()], Reading::Unknown, height, begin, [outer; 2], depth + 1)?.expr;
        Ok((Node::Let { name, value: value.into() }, head))
    }

    /// Goes over the name of a type with its parameters.
    pub(super) fn type_name(&mut self) {
        let mut angles = 0u32;
        while !self.at_end() && !self.line_ended() {
            match self.punct() {
                Some("<") => angles += 1,
                Some(close @ (">" | ">>")) => {
                    angles = angles.saturating_sub(close.len() as u32);
                    if angles == 0 {
                        self.at += 1;
                        return;
                    }
                }
                Some("," | "*" | "&") if angles > 0 => {}
                Some(_) => return,
                None if matches!(self.kind(), Kind::Word | Kind::Number) => {}
                None => return,
            }
            self.at += 1;
        }
    }

    /// `let mut x`, told; the next token is the name then.
    #[cold]
    #[inline(never)]
    pub(super) fn let_mut(&mut self) {
        if self.word_ahead(1).is_some() && !self.tokens.newline_before(self.at + 1) {
            let span = self.span();
            let rest = Span { start: span.start, end: self.ahead(1).span.start };
            self.tell_here("every variable can be assigned to", |told| {
                told.fix("leave out `mut`", Fix::Replace(Location::Text(rest), String::new()))
            });
            self.bump();
        }
    }

    /// `let x: T = …`, told at the colon.
    #[cold]
    #[inline(never)]
    pub(super) fn let_with_type(&mut self, name: Name, head: Span, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        let colon = self.bump();
        let from = self.span();
        self.type_name();
        let written = self.written(from);
        let after = Span { start: head.end, end: head.end };
        let remove = Fix::Replace(Location::Text(after.to(self.previous())), String::new());
        const TYPE: &str = "a variable has the type of its value";
        if !self.is("=") {
            self.tell(colon, TYPE, |told| told.help(format!("give it a value: {}", code(&format!("let {name} = 0")))));
            self.poison(&name);
            return Err(self.rest_of_line());
        }
        self.bump();
        let suffix = match written {
            "i32" | "int" => "3i",
            "u64" => "3u64",
            "i64" => "3i64",
            "f32" | "float" => "3.0",
            "f64" | "double" => "3.0d",
            _ => "",
        };
        let literal = self.kind() == Kind::Number && self.slice(self.span()).bytes().all(|byte| byte.is_ascii_digit());
        self.tell(colon, TYPE, |told| match literal && !suffix.is_empty() {
            true => told.help(format!("write the number so that it has this type, as `{suffix}` has, and leave out the type")),
            false => told.fix("leave out the type", remove),
        });
        self.value_of_unknown_type(name, head, depth, place)
    }

    // Memory, constants and types.

    /// `shared float tile[64];`, `var<workgroup> tile: array<f32, 64>;`
    fn workgroup_memory(&mut self) -> Skip {
        self.is_head = true;
        let start = self.span();
        self.bump();
        let ty = self.word().and_then(own_type);
        while self.word_ahead(1).is_some() && !self.tokens.newline_before(self.at + 1) {
            self.bump();
        }
        let name = self.slice(self.span());
        let ty = ty.unwrap_or_else(|| "f32".into());
        self.bump();
        let mut counts = Vec::new();
        while self.is("[") {
            self.bump();
            let from = self.span();
            while !self.at_end() && !matches!(self.punct(), Some("]" | ";" | "}")) {
                self.bump();
            }
            counts.push(self.written(from));
            if self.is("]") {
                self.bump();
            }
        }
        self.poison(name);
        let count = if counts.is_empty() { "1".into() } else { counts.join(" * ") };
        let line = format!("buffer {name}: workgroup {ty}[{count}]");
        self.told_declaration(start, line);
        self.rest_of_line()
    }

    /// `var<storage, read> a: array<u32>;` and other variables with an address space.
    fn address_space(&mut self) -> Skip {
        self.storage_variable(self.span(), None)
    }

    /// The same behind the attributes that begin at `start`.
    fn storage_variable(&mut self, start: Span, binding: Option<&str>) -> Skip {
        self.is_head = true;
        self.bump();
        let from = self.span();
        self.type_name();
        let space = self.written(from);
        let name = self.slice(self.span());
        self.poison(name);
        self.bump();
        let mut line = String::new();
        if self.is(":") {
            self.bump();
            let from = self.span();
            self.type_name();
            let (element, count) = element_of(self.written(from));
            let ty = own_type(element).unwrap_or_else(|| element.into());
            let access = match space {
                _ if space.contains("workgroup") => "workgroup",
                _ if space.contains("uniform") => "uniform",
                _ if space.contains("write") => "read_write",
                _ => "read",
            };
            let count = match count {
                Some(count) => format!("[{count}]"),
                None if matches!(access, "workgroup" | "uniform") => "[1]".into(),
                None => String::new(),
            };
            let binding = match access {
                "workgroup" => String::new(),
                _ => format!(" @{}", binding.unwrap_or("0")),
            };
            line = format!("buffer {name}: {access} {ty}{count}{binding}");
        }
        if space.contains("private") || space.contains("function") || line.is_empty() {
            self.tell(start, "variables are declared by `let`", |told| {
                told.help(format!("where it is first used, write {}", code(&format!("let {name} = 0"))))
            });
        } else {
            self.told_declaration(start, line);
        }
        self.rest_of_line()
    }

    /// Tells what a declaration of another language is here.
    fn told_declaration(&mut self, start: Span, line: String) {
        if self.translated.len() < SHOWN {
            self.translated.push(line.clone());
        }
        let end = self
            .tokens
            .get(
                (self.at..self.tokens.len())
                    .find(|at| self.tokens.newline_before(at + 1) || self.punct_at(*at) == Some(";"))
                    .unwrap_or(self.at),
            )
            .span;
        let fix = Fix::Replace(Location::Text(start.to(end)), line);
        self.tell(start, "a buffer is declared by `buffer`", |told| told.fix("write at the top", fix));
    }

    /// `override n: u32 = 3;`
    fn constant_of_the_host(&mut self) -> Skip {
        self.is_head = true;
        let start = self.bump();
        let from = self.span();
        let name = self.slice(from);
        self.poison(name);
        while !self.at_end() && !matches!(self.punct(), Some(";" | "}")) && (self.at_name(from) || !self.line_ended()) {
            self.bump();
        }
        let line = format!("const {}", self.written(from));
        let fix = self.replace(start, line.clone());
        self.translated.push(line);
        self.tell(start, "a constant that a launch can change is declared by `const`", |told| told.fix("write", fix));
        self.rest_of_line()
    }

    fn at_name(&self, span: Span) -> bool {
        self.span().start == span.start
    }

    fn type_of_another_language(&mut self, word: &str) -> Skip {
        self.is_head = true;
        let help = match word {
            "struct" | "class" | "union" => "there are no structs: one buffer for each field",
            "enum" => "write numbers, or a constant for each: `const red: u32 = 0`",
            "type" | "typedef" => "write the type itself; a constant can stand for one: `const T: dtype = f32`",
            _ => "a program has buffers, constants and statements",
        };
        self.tell_here(format!("there is no `{word}`"), |told| told.help(help));
        if let Some(name) = self.word_ahead(1) {
            self.note_told(name);
            self.poison(name);
        }
        self.rest_of_construct()
    }

    // Heads of kernels.

    /// Whether an attribute begins here: `@compute`, `[numthreads(64, 1, 1)]`, `[[kernel]]`.
    fn head_ahead(&self) -> bool {
        match self.punct() {
            Some("@") => self.word_ahead(1).is_some(),
            _ => self.word_ahead(1).is_some() || self.punct_ahead(1) == Some("["),
        }
    }

    /// What is between the parentheses that open here, which are gone over.
    fn in_parentheses(&mut self) -> &'a str {
        let open = self.bump();
        let mut depth = 1u32;
        while !self.at_end() && depth > 0 {
            match self.punct() {
                Some("(" | "[") => depth += 1,
                Some(")" | "]") => depth -= 1,
                Some("{" | "}" | ";") => break,
                _ => {}
            }
            self.at += 1;
        }
        let whole = self.written(open);
        whole.get(1..whole.len().saturating_sub(1)).unwrap_or_default()
    }

    /// Attributes before a head: what they say.
    fn attributes(&mut self) -> Head {
        let mut head = Head::default();
        loop {
            let hlsl = self.is("[") && self.head_ahead();
            if self.is("@") || hlsl {
                self.bump();
                while self.is("[") {
                    self.bump();
                }
            } else if self.word() != Some("layout") {
                return head;
            }
            let word = self.word().unwrap_or_default();
            self.bump();
            let says = if self.is("(") { self.in_parentheses() } else { "" };
            match word {
                "workgroup_size" | "numthreads" => head.workgroup = Some(says.replace(',', " ")),
                "compute" | "kernel" | "shader" => head.kernel = true,
                "binding" => head.binding = Some(says.into()),
                "layout" => {
                    let value = |key: &str| {
                        let at = says.find(key)?;
                        says[at + key.len()..].split('=').nth(1)?.split(',').next().map(|value| value.trim().to_string())
                    };
                    let [binding, sizes @ ..] = ["binding", "local_size_x", "local_size_y", "local_size_z"].map(value);
                    head.binding = binding;
                    let sizes: Vec<String> = sizes.into_iter().flatten().collect();
                    head.workgroup = (!sizes.is_empty()).then(|| sizes.join(" "));
                }
                _ => {}
            }
            while self.is("]") {
                self.bump();
            }
        }
    }

    /// The head of a buffer or a function in a shading language, and the body of a kernel.
    fn head(&mut self, depth: u32) -> Parsed<(Node, Span)> {
        let start = self.span();
        self.is_head = true;
        let mut head = self.attributes();
        if let Some(size) = head.workgroup.as_ref() {
            head.kernel = true;
            self.broken_workgroup = true;
            let line = format!("workgroup {}", size.split_whitespace().collect::<Vec<_>>().join(" "));
            self.translated.insert(0, line);
        }
        let word = self.word().unwrap_or_default();
        match word {
            // `layout(local_size_x = 64) in;`
            "in" | "out" => {
                let fix =
                    self.translated.first().map(|line| Fix::Replace(Location::Text(start.to(self.ahead(1).span)), line.clone()));
                self.tell(start, "the workgroup size is declared by `workgroup`", |told| match fix {
                    Some(fix) => told.fix("write", fix),
                    None => told.help("write `workgroup 64`"),
                });
                Err(self.rest_of_line())
            }
            "var" => Err(self.storage_variable(start, head.binding.as_deref())),
            "override" => Err(self.constant_of_the_host()),
            "struct" => Err(self.type_of_another_language("struct")),
            "buffer" | "readonly" | "writeonly" | "uniform" | "coherent" | "restrict" | "cbuffer" => {
                Err(self.interface_block(start, &head))
            }
            _ if word.ends_with("Buffer") => Err(self.structured_buffer(start)),
            "for" | "if" | "while" | "loop" | "do" if start != self.span() => {
                self.tell(start, "there are no attributes of statements", |told| told.help("leave it out"));
                Err(self.rest_of_construct())
            }
            _ => self.function(start, head, depth),
        }
    }

    /// `buffer A { uint a[]; };`, `uniform Params { uint n; };`, `uniform uint n;`
    fn interface_block(&mut self, start: Span, head: &Head) -> Skip {
        let mut access = "read_write";
        while let Some(word) = self.word() {
            match word {
                "readonly" => access = "read",
                "writeonly" => access = "output",
                "uniform" | "cbuffer" => access = "uniform",
                _ => {}
            }
            if matches!(self.punct_ahead(1), Some("{" | ";" | ":" | "[")) {
                break;
            }
            self.bump();
        }
        let mut name = self.slice(self.span());
        let mut ty = self.tokens.get(self.at.saturating_sub(1)).span;
        let end = (self.at..self.tokens.len()).find(|at| matches!(self.punct_at(*at), Some("{" | "}" | ";"))).unwrap_or(self.at);
        if self.punct_at(end) == Some("{") {
            let close = (end..self.tokens.len()).find(|at| self.punct_at(*at) == Some("}")).unwrap_or(end);
            for at in end + 1..close {
                if matches!(self.punct_at(at + 1), Some(";" | "[")) && self.tokens.kind(at) == Kind::Word {
                    name = self.slice(self.tokens.get(at).span);
                    ty = self.tokens.get(at - 1).span;
                    self.poison(name);
                }
            }
            // `} data;`
            if self.tokens.kind((close + 1).min(self.tokens.len() - 1)) == Kind::Word {
                let instance = self.slice(self.tokens.get(close + 1).span);
                self.poison(instance);
            }
        }
        self.poison(name);
        let ty = own_type(self.slice(ty)).unwrap_or_else(|| "u32".into());
        let count = if access == "uniform" { "[1]" } else { "" };
        let line = format!("buffer {name}: {access} {ty}{count} @{}", head.binding.as_deref().unwrap_or("0"));
        if self.translated.len() < SHOWN {
            self.translated.push(line.clone());
        }
        self.tell(start, "a buffer is declared by `buffer`", |told| told.help(format!("write at the top {}", code(&line))));
        self.rest_of_construct()
    }

    /// `RWStructuredBuffer<uint> a : register(u0);`
    fn structured_buffer(&mut self, start: Span) -> Skip {
        let word = self.slice(self.span());
        self.bump();
        let element = self.word_ahead(1).unwrap_or_default();
        self.type_name();
        let name = self.slice(self.span());
        self.poison(name);
        let access = match word {
            _ if word.starts_with("RW") => "read_write",
            "ConstantBuffer" => "uniform",
            _ => "read",
        };
        let line_end = self.text[self.span().start as usize..].split('\n').next().unwrap_or_default();
        let register = line_end.split("register(").nth(1).unwrap_or_default();
        let binding: String = register.chars().skip(1).take_while(char::is_ascii_digit).collect();
        let ty = own_type(element).unwrap_or_else(|| "u32".into());
        let binding = if binding.is_empty() { "0".into() } else { binding };
        self.told_declaration(start, format!("buffer {name}: {access} {ty} @{binding}"));
        self.rest_of_line()
    }

    /// A function: the statements of a kernel are read as statements of the program, others are left out.
    fn function(&mut self, start: Span, head: Head, depth: u32) -> Parsed<(Node, Span)> {
        let mut kernel = head.kernel;
        while !self.at_end() && self.punct_ahead(1) != Some("(") && !matches!(self.punct(), Some("{" | "}" | ";")) {
            kernel |= matches!(self.word(), Some("kernel" | "__kernel" | "__global__"));
            self.at += 1;
        }
        let (name, name_span) = (self.slice(self.span()), self.span());
        if self.punct_ahead(1) != Some("(") {
            self.tell(start, "this is not a statement", |told| told.help("a program has buffers, constants and statements"));
            return Err(self.rest_of_construct());
        }
        kernel |= matches!(name, "main" | "kernel");
        self.bump();
        let from = self.at;
        let parameters = self.in_parentheses();
        for at in from..self.at {
            let token = self.tokens.get(at);
            if token.kind == Kind::Word && !names::is_reserved(self.slice(token.span)) {
                self.poison(self.slice(token.span));
            }
        }
        if kernel {
            self.translate_parameters(parameters);
        }
        self.note_told(name);
        loop {
            let ends_head = match self.punct() {
                Some("{" | "}" | ";") => true,
                Some(":") => self.tokens.newline_before(self.at + 1),
                Some(_) | None => self.at_end(),
            };
            if ends_head {
                break;
            }
            self.at += 1;
        }
        let (message, help) = match kernel {
            true => {
                let lines = self.translated.iter().map(|line| code(line)).collect::<Vec<_>>().join(", ");
                let declare = if lines.is_empty() { String::new() } else { format!("; declared at the top: {lines}") };
                (
                    "a program is the body of its kernel",
                    format!("leave out the function, and write its statements in the program{declare}"),
                )
            }
            false => {
                ("there are no functions", "write its statements where it is called, or generate the program from Rust".into())
            }
        };
        self.tell(start.to(name_span), message, |told| told.help(help));
        match kernel && self.is("{") {
            true => Ok((Node::Block(self.block(depth + 1)?.into()), start)),
            false if self.is("{") => Err(self.rest_of_construct()),
            false => {
                self.bump();
                self.indented_body(start, None);
                Err(self.left_out())
            }
        }
    }

    /// What the parameters of a kernel are here.
    fn translate_parameters(&mut self, parameters: &str) {
        for (binding, parameter) in parameters.split(',').filter(|parameter| !parameter.contains('@')).enumerate() {
            let words: Vec<&str> = parameter
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty() && !matches!(*word, "__restrict__" | "restrict" | "struct"))
                .collect();
            let own = parameter.split("[[").next().unwrap_or_default();
            let name = own
                .trim()
                .trim_end_matches("[]")
                .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default();
            let Some(ty) = words.iter().find_map(|word| own_type(word)) else { continue };
            if name.is_empty() || self.translated.len() >= SHOWN || parameter.contains("SV_") || parameter.contains("_in_") {
                continue;
            }
            let pointer = parameter.contains('*');
            let line = match (pointer, words.contains(&"const") || words.contains(&"constant")) {
                (true, true) => format!("buffer {name}: read {ty} @{binding}"),
                (true, false) => format!("buffer {name}: read_write {ty} @{binding}"),
                (false, _) if parameter.contains('&') => format!("buffer {name}: uniform {ty}[1] @{binding}"),
                (false, _) => format!("const {name}: {ty} = 0{}", if ty == "f32" { ".0" } else { "" }),
            };
            self.translated.push(line);
        }
    }

    /// A whole text in another language: what its head is here.
    #[cold]
    #[inline(never)]
    pub(super) fn foreign_text(&mut self) -> Option<String> {
        let (start, mistakes) = (self.at, self.mistakes.count());
        let foreign = |parser: &Self| match parser.word() {
            Some(word) => foreign::begins(word).is_some() || parser.is_type_here(word) || word == "const",
            None => parser.is("@") || parser.is("[") || parser.kind() == Kind::Bad,
        };
        let word_first =
            self.word().is_some_and(|word| self.punct_ahead(1) == Some("{") && foreign::begins(word) != Some(Begins::Type));
        if !foreign(self)
            || word_first
            || self.word_ahead(1).is_some() && self.punct_ahead(2) == Some("{") && self.word() == Some("kernel")
        {
            return None;
        }
        while !self.at_end() {
            let before = self.at;
            if foreign(self) {
                let place = NodeId(0);
                // A kernel's body would be read as statements.
                let begin = self.begin();
                let _ = self.foreign_statement(2, place);
                self.back_to(begin);
            }
            if self.word() == Some("program") && self.line_ended() {
                break;
            }
            if self.at == before {
                self.at += 1;
            }
        }
        self.mistakes.truncate(mistakes);
        let own = self.word() == Some("program");
        self.at = if own { self.at } else { start };
        self.last_mistake = None;
        let lines = std::mem::take(&mut self.translated);
        let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
        Some(match own {
            true => "leave out what is before `program`".into(),
            false => format!(
                "here it would begin like this:\n  program name {{{}{lines}",
                if lines.contains("workgroup ") { "" } else { "\n    workgroup 64" }
            ),
        })
    }

    // Loops.

    /// `while c { … }`, `loop { … }`, `do { … } while (c);`
    fn unbounded(&mut self, word: &str, depth: u32) -> Parsed<(Node, Span)> {
        let head = self.span();
        self.tell_here(format!("there is no `{word}`: every loop has bounds"), |told| {
            told.help("write `for i in 0..n { … }` with the most iterations there can be; `break` leaves it")
        });
        self.bump();
        let begin = self.begin();
        let bare = self.is("{") || self.is(":");
        let (cond, below) = match bare {
            true => (Vec::new(), 0),
            false => {
                let built = self.expr(depth + 2).or_else(|skip| {
                    self.resume_at_body(skip)?;
                    self.back_to(begin);
                    Ok(self.stand_in(head))
                })?;
                (vec![built.expr.into()], built.height)
            }
        };
        let from = self.list(cond, Reading::Unknown, below, begin, [head; 2], depth + 1)?.expr;
        let (var, to) = (self.hidden_counter(word), self.stand_in(head).expr);
        let body = self.block(depth + 1)?.into();
        if word == "do" && self.word() == Some("while") {
            self.rest_of_line();
        }
        Ok((Loop { var, from, to, body }.into(), head))
    }

    /// A name that no text has.
    fn hidden_counter(&self, word: &str) -> Name {
        format!("{word} at {}", self.at).into()
    }

    /// `for (int i = 0; i < n; i++) { … }`, from the `(` on.
    #[cold]
    #[inline(never)]
    pub(super) fn counted_in_parentheses(&mut self, depth: u32) -> Parsed<(Node, Span)> {
        let open = self.span();
        let close = self.closing_parenthesis();
        let inside = self.slice(Span { start: open.end, end: self.tokens.get(close).span.start });
        let parts: Vec<&str> = inside.split(';').map(str::trim).collect();
        let fix = header(&parts);
        let whole = open.to(self.tokens.get(close).span);
        self.tell_here("the head of a loop is `for i in 0..n`", |told| match fix {
            Some(head) => told.fix("write", Fix::Replace(Location::Text(whole), head)),
            None => told.help(LOOP),
        });
        let counter = parts.first().and_then(|first| first.split('=').next()).and_then(|first| first.split_whitespace().last());
        let counter = counter.map(|counter| counter.trim_end_matches(':')).filter(|counter| super::lexer::is_word(counter));
        if let Some(counter) = counter {
            self.poison(counter);
        }
        self.resume(close + 1);
        let var = self.hidden_counter("for");
        let (from, to) = (self.stand_in(open).expr, self.stand_in(open).expr);
        Ok((Loop { var, from, to, body: self.block(depth + 1)?.into() }.into(), open))
    }

    /// The token that closes the parenthesis which is next; the last one if there is none.
    fn closing_parenthesis(&self) -> usize {
        let mut open = 0u32;
        for at in self.at..self.tokens.len() - 1 {
            match self.punct_at(at) {
                Some("(") => open += 1,
                Some(")") if open == 1 => return at,
                Some(")") => open -= 1,
                Some("{" | "}") => return at.saturating_sub(1),
                _ => {}
            }
        }
        self.tokens.len() - 2
    }

    /// `range(n)` or `range(a, b)` where the bounds of a loop stand.
    #[cold]
    #[inline(never)]
    pub(super) fn range_call(&mut self, depth: u32) -> Parsed<[Expr; 2]> {
        let start = self.span();
        let begin = self.begin();
        self.bump();
        let from = self.span();
        let (arguments, below) = self.arguments(depth + 1)?;
        let inside = self.written(from);
        let inside = inside.get(1..inside.len().saturating_sub(1)).unwrap_or_default();
        let bounds: Vec<&str> = inside.split(',').map(str::trim).collect();
        let fix = match bounds[..] {
            [to] => Some(format!("0..{to}")),
            [from, to] => Some(format!("{from}..{to}")),
            _ => None,
        };
        let whole = start.to(self.previous());
        self.tell(start, "the bounds of a loop are written `0..n`", |told| match fix {
            Some(fix) => told.fix("write", Fix::Replace(Location::Text(whole), fix)),
            None => told.help("a loop counts by one: `for k in 0..n / 2 { let i = k * 2 … }`"),
        });
        let first = self.list(arguments, Reading::Unknown, below, begin, [whole; 2], depth)?.expr;
        Ok([first, self.stand_in(whole).expr])
    }

    /// Whether another word for `else if` is here, which is told then. Before it is `}`.
    #[cold]
    #[inline(never)]
    pub(super) fn else_if(&mut self, word: &str) -> bool {
        if foreign::begins(word) != Some(Begins::ElseIf) {
            return false;
        }
        let fix = Fix::Replace(Location::Text(self.span()), "else if".into());
        self.tell_here(format!("there is no `{word}`"), |told| told.fix("write", fix));
        true
    }

    // Bodies without braces.

    /// The body of an `if` or a loop that is not in braces: the lines that stand further to the right behind a `:`, or the one
    /// statement on the line. `None` if there is neither.
    #[cold]
    #[inline(never)]
    pub(super) fn body_without_braces(&mut self, depth: u32) -> Option<Vec<Node>> {
        let mut body = Vec::new();
        if self.is(":") && !self.line_ended() {
            let colon = self.span();
            self.tell_here("a body is written in braces", |told| told.help("`{` stands before the body, and `}` after it"));
            self.bump();
            if self.line_ended() {
                self.indented_body(colon, Some((depth, &mut body)));
            } else {
                self.one_statement(depth, &mut body);
            }
            return Some(body);
        }
        if self.line_ended() || !self.statement_ahead() {
            return None;
        }
        let start = self.span();
        let first = self.at;
        // Only what is on this line.
        let end = (first..self.tokens.len()).find(|at| *at > first && self.tokens.newline_before(*at)).unwrap_or(first) - 1;
        let end = if self.punct_at(end) == Some(";") { end - 1 } else { end };
        let last = self.tokens.get(end.max(first)).span;
        self.tell_here("a body is written in braces", |told| {
            told.fix("write", Fix::Wrap(Location::Text(start.to(last)), "{ ".into(), " }".into()))
        });
        self.last_mistake = None;
        self.one_statement(depth, &mut body);
        Some(body)
    }

    /// Whether a statement begins here, as far as can be seen.
    fn statement_ahead(&self) -> bool {
        match self.word() {
            Some("break" | "continue" | "return" | "let" | "barrier" | "trap" | "atomic" | "if" | "for" | "while") => true,
            Some(_) => matches!(self.punct_ahead(1), Some("=" | "[" | "(")) || self.compound_ahead(1),
            None => false,
        }
    }

    /// Whether `+=`, `++` or the like stands that many places ahead.
    fn compound_ahead(&self, places: usize) -> bool {
        let (one, two) = (self.punct_ahead(places), self.punct_ahead(places + 1));
        let operator = one.is_some_and(|one| "+-*/%&|^<<>>&&||".contains(one));
        operator && (two == Some("=") || one == two) && self.ahead(places).span.end == self.ahead(places + 1).span.start
    }

    /// The lines below that stand further to the right than the one that `header` is on: read as statements, or gone over.
    fn indented_body(&mut self, header: Span, mut into: Option<(u32, &mut Vec<Node>)>) {
        let line = self.text[..header.start as usize].rfind('\n').map_or(0, |newline| newline + 1);
        let indent = |text: &str| text.len() - text.trim_start().len();
        let column = indent(&self.text[line..]);
        let start = self.at;
        while !self.at_end() && !self.is("}") {
            let at = self.span().start as usize;
            let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            if self.line_ended() && at - line <= column {
                break;
            }
            match into.as_mut() {
                Some((depth, body)) => {
                    let before = self.at;
                    if !self.one_statement(*depth, body) {
                        break;
                    }
                    if self.at == before {
                        self.at += 1;
                    }
                }
                None if self.is("{") => {
                    self.bump();
                    self.skip_body();
                    self.bump();
                }
                None => self.at += 1,
            }
        }
        if into.is_none() {
            self.leave_out(start..self.at);
        }
    }

    // Statements with operators of other languages.

    /// `x += 1`, `x++`, `x[i] <<= 2`: told at the operator, and read as an assignment of something unknown.
    #[cold]
    #[inline(never)]
    pub(super) fn compound(&mut self, target: Span, index: Option<Expr>, name: &Name, depth: u32) -> Option<Parsed<Node>> {
        let operator = self.punct().filter(|_| !self.line_ended())?;
        let written = self.slice(target);
        let start = self.span();
        let touches = self.ahead(1).span.start == start.end;
        let node = |index: Option<Expr>, value: Expr| match index {
            Some(index) => Node::store(name.clone(), index, value),
            None => Node::Assign { name: name.clone(), value: value.into() },
        };
        if matches!(operator, "+" | "-") && touches && self.punct_ahead(1) == Some(operator) {
            let end = self.ahead(1).span;
            let fix = Fix::Replace(Location::Text(target.to(end)), format!("{written} = {written} {operator} 1"));
            self.tell_here(format!("there is no `{operator}{operator}`"), |told| told.fix("write", fix));
            self.bump();
            self.bump();
            let value = self.stand_in(start).expr;
            return Some(Ok(node(index, value)));
        }
        let doubled = operator == "*" && self.punct_ahead(1) == Some("*");
        if !(touches && self.punct_ahead(1 + usize::from(doubled)) == Some("=") && self.infix().is_some()) {
            return None;
        }
        let told_at = self.at;
        for _ in 0..2 + usize::from(doubled) {
            self.bump();
        }
        let begin = self.begin();
        let from = self.span();
        let operand = match self.expr(depth + 2) {
            Ok(operand) => operand,
            Err(skip) => return Some(Err(skip)),
        };
        let text = self.slice(operand.outer);
        let simple = matches!(operand.expr, Expr::Lit(_) | Expr::Var(_) | Expr::Load(_) | Expr::Builtin(_) | Expr::Len(_));
        let right = if simple || text.starts_with('(') { text.to_string() } else { format!("({text})") };
        let new = match doubled {
            true => format!("{written} = pow({written}, {text})"),
            false => format!("{written} = {written} {operator} {right}"),
        };
        let shown = if doubled { "**" } else { operator };
        let fix = Fix::Replace(Location::Text(target.to(from.to(operand.outer))), new);
        let at = std::mem::replace(&mut self.at, told_at);
        self.tell_here(format!("there is no `{shown}=`"), |told| told.fix("write", fix));
        self.at = at;
        let spans = [operand.outer; 2];
        let value = self.list(vec![operand.expr.into()], Reading::Unknown, operand.height, begin, spans, depth + 1);
        Some(value.map(|built| node(index, built.expr)))
    }

    /// A `return` with a value.
    #[cold]
    #[inline(never)]
    pub(super) fn returned_value(&mut self, depth: u32) -> Parsed<()> {
        let begin = self.begin();
        self.tell_here("`return` ends the invocation and gives no value", |told| {
            told.help("store the value first: `out[i] = …`")
        });
        self.expr(depth + 1)?;
        self.back_to(begin);
        Ok(())
    }

    /// The parentheses of `barrier()`.
    #[cold]
    #[inline(never)]
    pub(super) fn barrier_call(&mut self, barrier: Span) {
        let open = self.at;
        self.in_parentheses();
        let whole = barrier.to(self.previous());
        let at = std::mem::replace(&mut self.at, open);
        self.tell_here("`barrier` is a statement without parentheses", |told| {
            told.fix("write", Fix::Replace(Location::Text(whole), "barrier".into()))
        });
        self.at = at;
    }

    // Expressions.

    /// A conversion `x as f32` behind its operand, or what else a word there is in other languages.
    #[cold]
    #[inline(never)]
    pub(super) fn word_behind(&mut self, left: Built, begin: super::parser::Begin, depth: u32) -> Parsed<Built> {
        let start = left.outer;
        match self.word() {
            Some("as") if self.word_ahead(1).is_some() => {
                let operand = self.slice(start);
                let inner = operand
                    .strip_prefix('(')
                    .and_then(|inner| inner.strip_suffix(')'))
                    .filter(|inner| !inner.contains(['(', ')']));
                let at = self.span();
                let name = self.word_ahead(1).unwrap_or_default();
                let ty = own_type(name);
                let whole = start.to(self.ahead(1).span);
                let new = ty.as_ref().map(|ty| format!("{ty}({})", inner.unwrap_or(operand)));
                self.tell(at, "a conversion is written as a call", |told| match new {
                    Some(new) => told.fix("write", Fix::Replace(Location::Text(whole), new)),
                    None => told.help("write `f32(x)`, with the name of the type"),
                });
                self.bump();
                self.bump();
                let scalar = ty.and_then(|ty| vyre_spec::Scalar::ALL.into_iter().find(|scalar| scalar.name() == ty));
                let (value, below) = (left.expr.into(), left.height);
                match scalar {
                    Some(to) => self.node(Expr::Cast { to, value }, below, begin, [whole, at], depth),
                    None => self.list(vec![value], Reading::Unknown, below, begin, [whole, at], depth),
                }
            }
            Some("if") if !self.line_ended() => {
                let value = self.slice(start);
                let at = self.bump();
                let cond = self.expr(depth + 1)?;
                let mut new = None;
                if self.word() == Some("else") {
                    self.bump();
                    let other = self.expr(depth + 1)?;
                    new = Some((
                        start.to(other.outer),
                        format!("select({}, {value}, {})", self.slice(cond.outer), self.slice(other.outer)),
                    ));
                }
                self.tell(at, "a choice is written `select(condition, a, b)`", |told| match new {
                    Some((whole, new)) => told.fix("write", Fix::Replace(Location::Text(whole), new)),
                    None => told,
                });
                self.back_to(begin);
                Ok(self.stand_in(start))
            }
            // `not x`
            Some(_) if matches!(&left.expr, Expr::Var(name) if **name == *"not") && self.slice(start) == "not" => {
                let fix = Fix::Replace(Location::Text(Span { start: start.start, end: self.span().start }), "!".into());
                self.tell(start, "`not` is written `!`", |told| told.fix("write", fix));
                self.back_to(begin);
                let Built { expr, outer, height } = self.unary(depth + 1)?;
                self.list(vec![expr.into()], Reading::Unknown, height, begin, [start.to(outer), start], depth)
            }
            _ => Ok(left),
        }
    }

    /// Whether the next parenthesis holds a type, as in `(float)x`.
    pub(super) fn c_cast_ahead(&self) -> bool {
        let Some(word) = self.word_ahead(1) else { return false };
        if self.punct_ahead(2) != Some(")") || !self.is_type_here(word) {
            return false;
        }
        let operand = self.ahead(3);
        let begins = match operand.kind {
            Kind::Word | Kind::Number | Kind::Quoted => true,
            Kind::Punct => self.punct_ahead(3) == Some("("),
            Kind::String | Kind::Bad | Kind::End => false,
        };
        begins && !operand.newline_before
    }

    /// `(float)x`
    #[cold]
    #[inline(never)]
    pub(super) fn c_cast(&mut self, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let start = self.bump();
        let ty = self.word().and_then(own_type);
        self.bump();
        self.bump();
        let Built { expr, outer, height } = self.unary(depth + 1)?;
        let whole = start.to(outer);
        let operand = self.slice(outer);
        let operand = operand
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
            .filter(|inner| !inner.contains(['(', ')']))
            .unwrap_or(operand);
        let new = ty.as_ref().map(|ty| format!("{ty}({operand})"));
        self.tell(start, "a conversion is written as a call", |told| match new {
            Some(new) => told.fix("write", Fix::Replace(Location::Text(whole), new)),
            None => told.help("write `f32(x)`, with the name of the type"),
        });
        self.list(vec![expr.into()], Reading::Unknown, height, begin, [whole, start], depth)
    }

    /// Whether a path or parameters of a type follow the word: `f32::MAX`, `vec4<f32>(…)`.
    pub(super) fn path_ahead(&self) -> bool {
        match self.punct_ahead(1) {
            Some(":") => self.punct_ahead(2) == Some(":") && self.ahead(1).span.end == self.ahead(2).span.start,
            Some("<") => {
                self.word_ahead(2).is_some_and(|word| self.is_type_here(word))
                    && (matches!(self.punct_ahead(3), Some(">" | ">>" | "," | "<" | "*")))
            }
            _ => false,
        }
    }

    /// `std::max(a, b)`, `u32::MAX`, `vec4<f32>(x, y, z, w)`, `static_cast<float>(x)`.
    #[cold]
    #[inline(never)]
    pub(super) fn path(&mut self, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let start = self.span();
        let first = self.slice(start);
        let mut last = first;
        let mut parameter = "";
        self.bump();
        loop {
            if self.is(":") && self.punct_ahead(1) == Some(":") {
                self.bump();
                self.bump();
                if let Some(word) = self.word() {
                    last = word;
                    self.bump();
                }
            } else if self.is("<") {
                self.bump();
                parameter = self.word().unwrap_or_default();
                let mut angles = 1i32;
                while !self.at_end() && !self.line_ended() && angles > 0 {
                    angles += match self.punct() {
                        Some("<") => 1,
                        Some(">") => -1,
                        Some(">>") => -2,
                        _ => 0,
                    };
                    self.at += 1;
                }
            } else {
                break;
            }
        }
        let whole = start.to(self.previous());
        if !self.is("(") {
            let meant = match (first, last) {
                ("u32", "MAX") => Some("0xffff_ffff"),
                ("u32" | "u64" | "usize", "MIN") => Some("0"),
                ("i32", "MAX") => Some("2147483647i"),
                ("i32", "MIN") => Some("-2147483648i"),
                ("f32", "MAX") => Some("3.40282347e38"),
                ("f32", "MIN") => Some("-3.40282347e38"),
                ("f32", "EPSILON") => Some("1.1920929e-7"),
                ("f32", "INFINITY") => Some("inf"),
                ("f32", "NEG_INFINITY") => Some("-inf"),
                ("f32", "NAN") => Some("nan"),
                ("f64", "INFINITY") => Some("infd"),
                ("f64", "NAN") => Some("nand"),
                (_, "PI") => Some("3.14159265"),
                _ => None,
            };
            self.tell(whole, "there are no paths", |told| match meant {
                Some(meant) => told.fix("write", Fix::Replace(Location::Text(whole), meant.into())),
                None => told.help("write the value itself"),
            });
            return Ok(self.stand_in(whole));
        }
        let to = own_type(parameter).unwrap_or_else(|| parameter.into());
        let (message, meant) = match first {
            "static_cast" | "convert" | "saturate_cast" => ("a conversion is written as a call", Some(to)),
            "reinterpret_cast" | "as_type" | "bit_cast" | "transmute" => {
                ("bits are kept by `bitcast`", Some(format!("bitcast<{to}>")))
            }
            "bitcast" => ("there are no paths", Some(format!("bitcast<{to}>"))),
            _ if last == first && (foreign::is_vector(first) || first.starts_with("vec")) => {
                ("vectors are made by `vec`", Some("vec".into()))
            }
            "array" | "Array" => ("an expression is a number, a bool or a vector", None),
            _ if last == first => ("functions have no parameters in `<…>`", Some(last.into())),
            _ => ("there are no paths", super::expressions::is_function(last).then(|| last.into())),
        };
        let elsewhere = foreign::function(last);
        self.tell(whole, message, |told| match (meant, elsewhere) {
            (Some(meant), _) => told.fix("write", Fix::Replace(Location::Text(whole), meant)),
            (None, Some(foreign::Instead::Word(word))) => told.fix("write", Fix::Replace(Location::Text(whole), word.into())),
            (None, Some(foreign::Instead::Help(help))) => told.help(help),
            (None, None) if first.eq_ignore_ascii_case("array") => told.help("use a `vec` of 2 to 4 components, or a buffer"),
            (None, None) => told.help("write the function by its name alone"),
        });
        self.quiet += 1;
        let arguments = self.arguments(depth + 1);
        self.quiet -= 1;
        let (arguments, below) = arguments?;
        self.list(arguments, Reading::Unknown, below, begin, [start.to(self.previous()), whole], depth)
    }

    /// A method or a field behind the point: `x.len()`, `x.sqrt()`, `v.xy`; the next token is its name.
    #[cold]
    #[inline(never)]
    pub(super) fn member(&mut self, built: Built, start: Span, begin: super::parser::Begin, depth: u32) -> Parsed<Built> {
        let word = self.word().unwrap_or_default();
        let receiver = self.slice(start.to(built.outer));
        let name = if let Expr::Var(name) = &built.expr { Some(name.clone()) } else { None };
        let at = self.bump();
        let call = self.is("(");
        let length = matches!(word, "len" | "length" | "size" | "count" | "Length" | "GetDimensions");
        let is_length = length && name.is_some();
        if !call && !is_length {
            self.field(word, receiver, at);
            let spans = [start.to(at), at];
            return self.list(vec![built.expr.into()], Reading::Unknown, built.height, begin, spans, depth);
        }
        let mut inside = "";
        if call {
            let from = self.span();
            let before = self.begin();
            self.quiet += 1;
            let arguments = self.arguments(depth + 1);
            self.quiet -= 1;
            arguments?;
            self.back_to(before);
            let written = self.written(from);
            inside = written.get(1..written.len().saturating_sub(1)).unwrap_or_default().trim();
        }
        let whole = start.to(self.previous());
        let others = if inside.is_empty() { String::new() } else { format!(", {inside}") };
        if let (true, Some(name)) = (length, name) {
            let new = format!("len({receiver})");
            self.tell(at, "there are no methods", |told| told.fix("write", Fix::Replace(Location::Text(whole), new)));
            self.back_to(begin);
            return Ok(self.leaf(Expr::Len(name), None, whole, start));
        }
        let function = if super::expressions::is_function(word) { Some(word) } else { None };
        let known = match (function, foreign::function(word)) {
            (Some(function), _) | (None, Some(foreign::Instead::Word(function))) => Ok(format!("{function}({receiver}{others})")),
            (None, Some(foreign::Instead::Help(help))) => Err(help),
            (None, None) => Err("a function is called with its arguments in parentheses: `min(a, b)`"),
        };
        self.tell(at, "there are no methods", |told| match known {
            Ok(new) => told.fix("write", Fix::Replace(Location::Text(whole), new)),
            Err(help) => told.help(help),
        });
        self.back_to(begin);
        Ok(self.stand_in(whole))
    }

    /// A component that is not one.
    fn field(&mut self, word: &str, receiver: &str, at: Span) {
        let index = |letter: char| "xyzw".find(letter).or("rgba".find(letter)).or("stpq".find(letter));
        let letters: Option<Vec<usize>> = word.chars().map(index).collect();
        let named = |index: &usize| super::expressions::COMPONENTS[*index];
        let diagnostic = Diagnostic::new(ErrorCode::E0312, format!("`{word}` is not a component"))
            .at(Location::Text(at))
            .expected("`x`, `y`, `z` or `w`");
        let diagnostic = match letters.as_deref() {
            Some([one]) => diagnostic.fix("write", Fix::Replace(Location::Text(at), named(one).into())),
            Some(several) if (2..=4).contains(&several.len()) => {
                let parts: Vec<String> = several.iter().map(|index| format!("{receiver}.{}", named(index))).collect();
                diagnostic.help(format!("components are taken one by one: {}", code(&format!("vec({})", parts.join(", ")))))
            }
            _ => diagnostic.help("a component of a vector is taken by `.x`, `.y`, `.z` or `.w`"),
        };
        if self.quiet == 0 {
            self.mistake(diagnostic);
        }
    }

    /// An operator or bracket of another language where an expression begins; `None` if it is none of those.
    #[cold]
    #[inline(never)]
    pub(super) fn foreign_expression(&mut self, depth: u32) -> Option<Parsed<Built>> {
        let start = self.span();
        let begin = self.begin();
        if self.kind() == Kind::Bad && self.slice(start) == "~" {
            self.bump();
            return Some(self.unary(depth + 1).and_then(|Built { expr, outer, height }| {
                self.list(vec![expr.into()], Reading::Unknown, height, begin, [start.to(outer), start], depth)
            }));
        }
        let (punct, previous) = (self.punct()?, self.punct_at(self.at.saturating_sub(1)));
        if self.line_ended() {
            return None;
        }
        let touches = self.previous().end == start.start;
        match punct {
            "." if self.ahead(1).kind == Kind::Number => {
                let end = self.ahead(1).span;
                let fix = Fix::Replace(Location::Text(start.to(end)), format!("0.{}", self.slice(end)));
                self.tell_here("digits stand on both sides of a point", |told| told.fix("write", fix));
                self.bump();
                self.bump();
                Some(Ok(self.stand_in(start.to(end))))
            }
            "=" if touches && matches!(previous, Some("==" | "!=")) => {
                let operator = previous.unwrap_or_default();
                let whole = self.previous().to(start);
                self.tell(whole, format!("there is no `{operator}=`"), |told| {
                    told.fix("write", Fix::Replace(Location::Text(whole), operator.into()))
                });
                self.bump();
                Some(self.unary(depth))
            }
            "*" if touches && previous == Some("*") => {
                self.tell_here("there is no operator for powers", |told| told.help("write `pow(a, b)`, or `a * a`"));
                self.bump();
                Some(self.unary(depth))
            }
            ">" if touches && previous == Some(">>") => {
                self.tell_here("there is no `>>>`", |told| told.help("`>>` of a u32 fills with zeros: `u32(x) >> n`"));
                self.bump();
                Some(self.unary(depth))
            }
            ">" if touches && previous == Some("-") => {
                self.tell_here("there is no `->`", |told| {
                    told.help("there are no pointers and no structs: one buffer for each field")
                });
                self.bump();
                self.bump();
                self.back_to(begin);
                Some(Ok(self.stand_in(start)))
            }
            "+" if touches && previous == Some("+") || self.sign_ahead() => {
                let same = touches && previous == Some("+");
                self.tell_here(if same { "there is no `++`" } else { "there is no sign `+`" }, |told| match same {
                    true => told.help("an expression changes nothing: write `i = i + 1` on a line of its own"),
                    false => told.fix("leave it out", Fix::Replace(Location::Text(start), String::new())),
                });
                self.bump();
                if same && !self.operand_ahead() {
                    return Some(Ok(self.stand_in(start)));
                }
                Some(self.unary(depth))
            }
            "&" | "*" if self.word_ahead(1).is_some() => {
                self.tell_here("there are no pointers", |told| {
                    told.help("a buffer is named, and an element of it is `name[index]`")
                });
                self.bump();
                if matches!(self.word(), Some("mut")) {
                    self.bump();
                }
                let operand = self.unary(depth);
                self.back_to(begin);
                Some(operand.map(|built| self.stand_in(start.to(built.outer))))
            }
            "|" | "||" => {
                self.tell_here("there are no closures", |told| told.help("write the expression where it is used"));
                Some(Err(self.rest_of_line()))
            }
            "[" | "{" if punct == "[" || previous == Some("=") => {
                self.tell_here("an expression is a number, a bool or a vector", |told| {
                    told.help("use a `vec` of 2 to 4 components, or a buffer")
                });
                Some(Err(self.rest_of_line()))
            }
            _ => None,
        }
    }

    /// Whether an operand begins behind the next token, on its line.
    fn sign_ahead(&self) -> bool {
        let next = self.ahead(1);
        matches!(next.kind, Kind::Word | Kind::Number | Kind::Quoted) && !next.newline_before
    }

    /// Whether an operand begins here.
    pub(super) fn operand_ahead(&self) -> bool {
        match self.kind() {
            Kind::Word => !self.word().is_some_and(names::is_reserved) || self.word().is_some_and(names::is_builtin_base),
            Kind::Quoted | Kind::Number => true,
            Kind::Punct => matches!(self.punct(), Some("(" | "-" | "!")),
            Kind::String | Kind::Bad | Kind::End => false,
        }
    }

    /// `if c { a } else { b }` and the like where an expression stands.
    #[cold]
    #[inline(never)]
    pub(super) fn statement_as_expression(&mut self, word: &str) -> Option<Skip> {
        let help = match word {
            "if" => "a choice between values is written `select(condition, a, b)`",
            "for" | "let" => "statements stand on lines of their own",
            _ => return None,
        };
        self.tell_here(format!("`{word}` is not an expression"), |told| told.help(help));
        self.last_mistake = Some(self.at);
        Some(self.left_out())
    }

    /// A second index: `a[i][j]`.
    #[cold]
    #[inline(never)]
    pub(super) fn second_index(&mut self, name: &str) -> Parsed<()> {
        let begin = self.begin();
        self.tell_here("a buffer has one dimension", |told| {
            told.help(format!("write {}", code(&format!("{name}[y * width + x]"))))
        });
        while self.is("[") {
            self.bump();
            self.expr(1)?;
            self.expect("]")?;
        }
        self.back_to(begin);
        Ok(())
    }
}

/// The head of a loop that counts as one in C does.
fn header(parts: &[&str]) -> Option<String> {
    let [first, condition, step] = parts else { return None };
    let (declared, from) = first.split_once('=')?;
    let counter = declared.split(':').next()?.split_whitespace().last()?;
    let by_one = [format!("{counter}++"), format!("++{counter}"), format!("{counter}+=1"), format!("{counter}={counter}+1")];
    let step: String = step.chars().filter(|c| !c.is_whitespace()).collect();
    let rest = condition.strip_prefix(counter)?.trim_start();
    let (to, more) = match rest.strip_prefix("<=") {
        Some(to) => (to, " + 1"),
        None => (rest.strip_prefix('<').or(rest.strip_prefix("!="))?, ""),
    };
    by_one
        .iter()
        .any(|form| step == *form || step == format!("{form}u"))
        .then(|| format!("{counter} in {}..{}{more}", from.trim(), to.trim()))
}

/// The element of an array type, and how many there are.
fn element_of(ty: &str) -> (&str, Option<&str>) {
    match ty.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) {
        Some(inside) => match inside.rsplit_once(',') {
            Some((element, count)) if !count.contains('>') => (element_of_atomic(element), Some(count.trim())),
            _ => (element_of_atomic(inside), None),
        },
        None => (element_of_atomic(ty), None),
    }
}

fn element_of_atomic(ty: &str) -> &str {
    let ty = ty.trim();
    ty.strip_prefix("atomic<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(ty).trim()
}

/// The type that is written so, here or elsewhere, as it is written here.
fn own_type(word: &str) -> Option<String> {
    match parse_data_type(word) {
        Some(own) => Some(own.to_string()),
        None => foreign::data_type(word),
    }
}
