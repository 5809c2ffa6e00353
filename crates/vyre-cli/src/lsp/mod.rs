//! `vyre lsp`: a language server for editors, over standard input and output.
//!
//! Diagnostics come with the fixes that the messages suggest, and formatting is that of `vyre fmt`. Hovering shows type, uniformity, range,
//! whether an access is proven to be in bounds, and what an op means. A text is read again when an answer needs it: while edits come
//! faster than they can be looked at, only the last is.

mod document;
mod hover;

use crate::Failure;
use document::{Document, Position};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vyre::diagnostic::Span;
use vyre::text::classify::{Class, classify};

/// Serve an editor: diagnostics, fixes, formatting, hover, definitions and colours.
#[derive(clap::Args)]
#[command(after_help = "\
Editors start it by themselves and speak the Language Server Protocol with it. For Neovim:
  vim.lsp.start({ name = 'vyre', cmd = { 'vyre', 'lsp' } })

For Helix, in languages.toml:
  [language-server.vyre]
  command = \"vyre\"
  args = [\"lsp\"]

editors/vyre.tmLanguage.json has the colours for editors that take a TextMate grammar.")]
pub struct Args {
    /// Standard input and output; the only way there is
    #[arg(long, hide = true)]
    stdio: bool,
    /// Says nothing more: the protocol is JSON
    #[arg(long, hide = true)]
    pub json: bool,
}

/// The kinds of words, in the order in which the protocol numbers them, with the names it has for them.
const CLASSES: [(Class, &str); 12] = [
    (Class::Comment, "comment"),
    (Class::Keyword, "keyword"),
    (Class::Type, "type"),
    (Class::Function, "function"),
    (Class::Builtin, "macro"),
    (Class::Buffer, "parameter"),
    (Class::Constant, "enumMember"),
    (Class::Variable, "variable"),
    (Class::Component, "property"),
    (Class::Number, "number"),
    (Class::String, "string"),
    (Class::Operator, "operator"),
];

fn capabilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": { "openClose": true, "change": 2 },
        "hoverProvider": true,
        "definitionProvider": true,
        "documentFormattingProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "semanticTokensProvider": {
            "legend": { "tokenTypes": CLASSES.map(|(_, name)| name), "tokenModifiers": [] },
            "full": true,
        },
    })
}

pub fn lsp(_: &Args) -> Result<(), Failure> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection);
    // Its end lets the threads end.
    drop(connection);
    served?;
    threads.join().map_err(|error| Failure::Usage(format!("standard input or output: {error}")))
}

fn serve(connection: &Connection) -> Result<(), Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::Usage(format!("the editor does not follow the protocol: {error}"));
    // Whatever is asked before is refused by the crate.
    let (id, _) = connection.initialize_start().map_err(|error| broken(&error))?;
    let info = json!({ "name": "vyre", "version": env!("CARGO_PKG_VERSION") });
    let answer = json!({ "capabilities": capabilities(), "serverInfo": info });
    connection.initialize_finish(id, answer).map_err(|error| broken(&error))?;
    let mut server = Server { connection, documents: BTreeMap::new(), changed: BTreeSet::new() };
    while let Ok(message) = connection.receiver.recv() {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|error| broken(&error))? {
                    return Ok(());
                }
                server.request(request);
            }
            Message::Notification(notification) if notification.method == "exit" => {
                return Err(broken(&"`exit` without `shutdown` before it"));
            }
            Message::Notification(notification) => server.notification(&notification),
            // Nothing is asked of the editor, so nothing is answered.
            Message::Response(_) => {}
        }
        if connection.receiver.is_empty() {
            server.publish();
        }
    }
    Ok(())
}

struct Server<'a> {
    connection: &'a Connection,
    documents: BTreeMap<String, Document>,
    /// Texts whose diagnostics the editor does not have yet.
    changed: BTreeSet<String>,
}

impl Server<'_> {
    fn send(&self, message: impl Into<Message>) {
        // An editor that is gone needs no answers.
        let _ = self.connection.sender.send(message.into());
    }

    fn notification(&mut self, Notification { method, params }: &Notification) {
        let document = &params["textDocument"];
        let Some(uri) = document["uri"].as_str().map(String::from) else { return };
        match method.as_str() {
            "textDocument/didOpen" => {
                let text = document["text"].as_str().unwrap_or_default();
                self.documents.insert(uri.clone(), Document::new(text.into(), document["version"].clone()));
                self.changed.insert(uri);
            }
            "textDocument/didChange" => {
                let Some(open) = self.documents.get_mut(&uri) else { return };
                open.version = document["version"].clone();
                params["contentChanges"].as_array().into_iter().flatten().for_each(|change| open.edit(change));
                self.changed.insert(uri);
            }
            "textDocument/didClose" => {
                self.documents.remove(&uri);
                self.changed.remove(&uri);
                self.send(Notification::new("textDocument/publishDiagnostics".into(), json!({ "uri": uri, "diagnostics": [] })));
            }
            // What is not known may be left alone.
            _ => {}
        }
    }

    fn publish(&mut self) {
        for uri in std::mem::take(&mut self.changed) {
            let Some(document) = self.documents.get_mut(&uri) else { continue };
            let diagnostics = document.diagnostics(&uri);
            let params = json!({ "uri": uri, "version": document.version, "diagnostics": diagnostics });
            self.send(Notification::new("textDocument/publishDiagnostics".into(), params));
        }
    }

    fn request(&mut self, Request { id, method, params }: Request) {
        let known = [
            "textDocument/hover",
            "textDocument/definition",
            "textDocument/formatting",
            "textDocument/codeAction",
            "textDocument/semanticTokens/full",
        ];
        let Some(method) = known.into_iter().find(|known| *known == method) else {
            return self.refuse(id, ErrorCode::MethodNotFound, format!("there is no method `{method}`"));
        };
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default().to_string();
        let Some(document) = self.documents.get_mut(&uri) else {
            return self.refuse(id, ErrorCode::InvalidParams, format!("`{uri}` is not open"));
        };
        let answer = answer(method, document, &uri, &params);
        self.send(Response::new_ok(id, answer));
    }

    fn refuse(&self, id: RequestId, code: ErrorCode, message: String) {
        self.send(Response::new_err(id, code as i32, message));
    }
}

fn answer(method: &str, document: &mut Document, uri: &str, params: &Value) -> Value {
    let offset = document.text.offset(Position::from_json(&params["position"]));
    match method {
        "textDocument/hover" => {
            let program = document.read(uri).program.clone();
            match hover::hover(program.as_ref(), &document.text, offset) {
                Some((span, text)) => {
                    json!({ "contents": { "kind": "markdown", "value": text }, "range": document.text.range(span) })
                }
                None => Value::Null,
            }
        }
        "textDocument/definition" => match hover::definition(&document.text, offset) {
            Some(span) => json!({ "uri": uri, "range": document.text.range(span) }),
            None => Value::Null,
        },
        "textDocument/formatting" => match vyre::text::format(uri, &document.text.text) {
            Ok(formatted) if formatted == document.text.text => json!([]),
            Ok(formatted) => {
                let whole = Span { start: 0, end: document.text.text.len() as u32 };
                json!([{ "range": document.text.range(whole), "newText": formatted }])
            }
            // What does not parse stays as it is; the diagnostics say why.
            Err(_) => Value::Null,
        },
        "textDocument/codeAction" => {
            let [from, to] = ["start", "end"].map(|end| document.text.offset(Position::from_json(&params["range"][end])));
            json!(document.fixes(uri, from, to))
        }
        _ => json!({ "data": tokens(&document.text) }),
    }
}

/// The words of a text as the protocol has them: five numbers each, the first two relative to the word before.
fn tokens(text: &document::Text) -> Vec<u32> {
    let (mut line, mut start) = (0, 0);
    let mut numbers = Vec::new();
    for (span, class) in classify(&text.text) {
        let at = text.position(span.start as usize);
        let length: usize = text.text[span.start as usize..span.end as usize].chars().map(char::len_utf16).sum();
        let kind = CLASSES.iter().position(|(known, _)| *known == class).unwrap_or_default();
        let before = if at.line == line { start } else { 0 };
        numbers.extend([at.line - line, at.character - before, length as u32, kind as u32, 0]);
        (line, start) = (at.line, at.character);
    }
    numbers
}
