//! The language server as an editor meets it: a real process, real messages over its pipes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Server {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
}

const URI: &str = "file:///kernel.vyre";

impl Server {
    fn start() -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_vyre"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let to = process.stdin.take();
        let from = BufReader::new(process.stdout.take().expect("stdout is piped"));
        Server { process, to, from, id: 0 }
    }

    /// One that is ready for texts.
    fn ready() -> Server {
        let mut server = Server::start();
        let answer = server.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true, "{answer}");
        server.tell("initialized", json!({}));
        server
    }

    fn send(&mut self, message: Value) {
        let text = message.to_string();
        let to = self.to.as_mut().expect("the server is running");
        write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        to.flush().expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("the server writes") > 0, "the server is gone");
            match line.trim().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().expect("a length"),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.from.read_exact(&mut text).expect("a whole message");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The answer to a request; what comes in between is dropped.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The next diagnostics.
    fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let message = self.receive();
            if message["method"] == "textDocument/publishDiagnostics" {
                assert_eq!(message["params"]["uri"], URI);
                return message["params"]["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    fn open(&mut self, text: &str) -> Vec<Value> {
        let document = json!({ "uri": URI, "languageId": "vyre", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.diagnostics()
    }

    fn change(&mut self, changes: Value) -> Vec<Value> {
        self.tell("textDocument/didChange", json!({ "textDocument": { "uri": URI, "version": 2 }, "contentChanges": changes }));
        self.diagnostics()
    }

    /// The answer about a place in the text: of `needle`, the first character after `|`.
    fn ask_at(&mut self, method: &str, text: &str, needle: &str) -> Value {
        let (line, character) = place(text, needle);
        let params = json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } });
        self.ask(method, params)["result"].clone()
    }

    fn hover(&mut self, text: &str, needle: &str) -> String {
        self.ask_at("textDocument/hover", text, needle)["contents"]["value"].as_str().unwrap_or_default().to_string()
    }

    fn end(mut self) -> (Option<i32>, String) {
        let answer = self.ask("shutdown", Value::Null);
        assert_eq!(answer["result"], Value::Null, "{answer}");
        self.tell("exit", Value::Null);
        self.status()
    }

    fn status(&mut self) -> (Option<i32>, String) {
        self.to = None;
        let status = self.process.wait().expect("the server ends");
        let mut said = String::new();
        let _ = self.process.stderr.take().expect("stderr is piped").read_to_string(&mut said);
        (status.code(), said)
    }
}

/// Line and character, in units of UTF-16, of what stands after `|` in the needle.
fn place(text: &str, needle: &str) -> (usize, usize) {
    let (before, after) = needle.split_once('|').expect("a needle says where");
    let at = text.find(&format!("{before}{after}")).expect("the needle is in the text") + before.len();
    let line = text[..at].matches('\n').count();
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (line, text[start..at].encode_utf16().count())
}

const KERNEL: &str = "\
program blur {
  workgroup 64
  const scale: f32 = 0.5
  buffer x: read f32 @0
  buffer half: read f16 @1
  buffer out: output f32 @2
  buffer tile: workgroup f32[64]

  let i = gid.x
  tile[lid.x] = x[i]
  barrier
  if i < len(out) {
    let sum = max(tile[lid.x], tile[63 - lid.x])
    out[i] = sum * scale + half[i]
  }
}
";

#[test]
fn a_right_program_has_facts_definitions_and_colours() {
    let text = KERNEL;
    let mut server = Server::ready();
    assert_eq!(server.open(text), [json!(null); 0]);
    // Type, uniformity, range, bounds, and what the op means.
    let about = server.hover(text, "let |i = gid.x");
    assert!(about.contains("i: u32") && about.contains("divergent"), "{about}");
    let about = server.hover(text, "sum |* scale");
    assert!(about.contains("sum * scale: f32") && about.contains("`a * b` for T of"), "{about}");
    let about = server.hover(text, "len|(out)");
    assert!(about.contains("uniform: the same for the whole dispatch") && about.contains("buffer out: output f32 @2"), "{about}");
    let about = server.hover(text, "|tile[63 - lid.x]");
    assert!(about.contains("in bounds: proven"), "{about}");
    let about = server.hover(text, "63 |- lid.x");
    assert!(about.contains("from 0 to 63"), "{about}");
    let about = server.hover(text, "= |x[i]");
    assert!(about.contains("checked: past the end"), "{about}");
    let about = server.hover(text, "|out[i] = sum");
    assert!(about.contains("in bounds: proven"), "{about}");
    let about = server.hover(text, "+ |half[i]");
    assert!(about.contains("half[i]: f32") && about.contains("loads as f32"), "{about}");
    assert_eq!(server.hover(text, "wor|kgroup 64"), "");
    // Where names are declared.
    for (needle, declared) in
        [("sum * |scale", "const |scale"), ("out[|i] =", "let |i"), ("= |sum *", "let |sum"), ("len(|out)", "buffer |out")]
    {
        let answer = server.ask_at("textDocument/definition", text, needle);
        let (line, character) = place(text, declared);
        assert_eq!(
            (&answer["range"]["start"]["line"], &answer["range"]["start"]["character"]),
            (&json!(line), &json!(character)),
            "{needle}"
        );
    }
    assert_eq!(server.ask_at("textDocument/definition", text, "|max("), Value::Null);
    let answer = server.ask("textDocument/semanticTokens/full", json!({ "textDocument": { "uri": URI } }));
    let data: Vec<u64> = answer["result"]["data"].as_array().expect("numbers").iter().filter_map(Value::as_u64).collect();
    // `program`, a keyword, at the start; then `blur`, eight characters later.
    assert_eq!(data[..10], [0, 0, 7, 1, 0, 0, 8, 4, 7, 0]);
    assert_eq!(data.len() % 5, 0);
    assert_eq!(server.ask("textDocument/formatting", json!({ "textDocument": { "uri": URI } }))["result"], json!([]));
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn mistakes_come_with_fixes_and_go_when_they_are_mended() {
    // What stands before the mistake is not ASCII.
    let text = KERNEL.replace("  let i = gid.x\n", "  let i = gid.x // 🙂 é\n").replace("sum * scale", "2 * sum");
    let mut server = Server::ready();
    let found = server.open(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    let (line, character) = place(&text, "|2 * sum");
    assert_eq!(found[0]["code"], "E0301");
    assert_eq!(
        found[0]["range"],
        json!({ "start": { "line": line, "character": character }, "end": { "line": line, "character": character + 1 } })
    );
    assert!(found[0]["message"].as_str().is_some_and(|message| message.contains("help: write")), "{found:?}");
    assert_eq!(found[0]["relatedInformation"][0]["location"]["uri"], URI);
    let context = json!({ "textDocument": { "uri": URI }, "range": found[0]["range"], "context": { "diagnostics": found } });
    let fixes = server.ask("textDocument/codeAction", context)["result"].clone();
    let edit = &fixes[0]["edit"]["changes"][URI][0];
    assert_eq!((&fixes[0]["kind"], &edit["newText"]), (&json!("quickfix"), &json!("2.0")), "{fixes}");
    // The editor does as it is told, and all is well. Elsewhere there is nothing to mend.
    let nowhere = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let context = json!({ "textDocument": { "uri": URI }, "range": nowhere, "context": { "diagnostics": [] } });
    assert_eq!(server.ask("textDocument/codeAction", context)["result"], json!([]));
    assert_eq!(server.change(json!([{ "range": edit["range"], "text": edit["newText"] }])), [json!(null); 0]);
    // Typing behind the comment, in the middle of the line of the smiley.
    let (line, character) = place(&text, "// 🙂| é");
    let range = json!({ "start": { "line": line, "character": character }, "end": { "line": line, "character": character } });
    assert_eq!(server.change(json!([{ "range": range, "text": "\n  let j = nowhere" }])).len(), 1);
    server.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(server.diagnostics(), [json!(null); 0]);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn broken_text_is_served_too() {
    let mut server = Server::ready();
    for text in [
        "",
        "program",
        "program p {",
        "}}}}",
        "let let let",
        "\u{FEFF}\r\n\t\u{0}",
        "program p { workgroup 1 buffer",
        "🙂🙂\n\"",
        "/* x",
    ] {
        let found = server.open(text);
        assert!(!found.is_empty(), "{text}");
        for method in ["textDocument/hover", "textDocument/definition"] {
            for position in [json!({ "line": 0, "character": 0 }), json!({ "line": 9, "character": 99 }), json!({}), json!(-1)] {
                let answer = server.ask(method, json!({ "textDocument": { "uri": URI }, "position": position }));
                assert!(answer.get("error").is_none(), "{text}: {answer}");
            }
        }
        let document = json!({ "textDocument": { "uri": URI } });
        assert_eq!(server.ask("textDocument/formatting", document.clone())["result"], Value::Null);
        assert!(server.ask("textDocument/semanticTokens/full", document)["result"]["data"].is_array());
    }
    // Definitions and the meaning of functions do not need a program without mistakes.
    let text = "program p {\n  workgroup 1\n  buffer a: read u32 @0\n  let b = min(a[0],";
    assert!(!server.open(text).is_empty());
    let answer = server.ask_at("textDocument/definition", text, "min(|a[0]");
    assert_eq!(answer["range"]["start"], json!({ "line": 2, "character": 9 }));
    assert!(server.hover(text, "m|in(").contains("`min(a, b)`"));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn huge_text_is_served() {
    let lines = "  tile[lid.x] = x[i] * 2.0 // é\n".repeat(5_000);
    let text = KERNEL.replace("  barrier\n", "").replace("  if i < len", &format!("{lines}  if i < len"));
    let mut server = Server::ready();
    server.open(&text);
    // Edits that come faster than they are looked at: each is applied, and the last is what is published.
    let start = json!({ "line": 0, "character": 0 });
    for _ in 0..50 {
        let changes = json!([{ "range": { "start": start, "end": start }, "text": "// x\n" }]);
        server.tell("textDocument/didChange", json!({ "textDocument": { "uri": URI, "version": 2 }, "contentChanges": changes }));
    }
    let grown = format!("{}{text}", "// x\n".repeat(50));
    let about = server.hover(&grown, "len|(out)");
    assert!(about.contains("uniform"), "{about}");
    let answer = server.ask("textDocument/semanticTokens/full", json!({ "textDocument": { "uri": URI } }));
    assert!(answer["result"]["data"].as_array().is_some_and(|data| data.len() > 200_000));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn what_is_not_known_or_comes_too_early_is_refused() {
    let mut server = Server::start();
    let answer = server.ask("textDocument/hover", json!({}));
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    server.ask("initialize", json!({ "capabilities": {} }));
    server.tell("initialized", json!({}));
    let answer = server.ask("textDocument/references", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = server.ask("textDocument/hover", json!({ "textDocument": { "uri": "file:///other" } }));
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!("`file:///other` is not open")));
    // Notifications that are not known, or about nothing, are left alone.
    server.tell("$/nothing", json!({ "x": 1 }));
    server.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///other" }, "contentChanges": [{ "text": "" }] }),
    );
    server.tell("textDocument/didOpen", json!([]));
    assert_eq!(server.open("program p {\n  workgroup 1\n}\n"), [json!(null); 0]);
    assert_eq!(server.end(), (Some(0), String::new()));
    // An editor that is gone ends the server.
    let mut server = Server::ready();
    assert_eq!(server.status().0, Some(0));
    // One that speaks nonsense is told so.
    let mut server = Server::ready();
    server.to.as_mut().expect("it runs").write_all(b"Content-Length: 3\r\n\r\nabc").expect("it reads");
    let (status, said) = server.status();
    assert_eq!(status, Some(2), "{said}");
    assert!(said.starts_with("error: standard input or output: "), "{said}");
}
