//! The TextMate grammar: made from the tables of the language, so that an op that is added is coloured. `VYRE_BLESS=1` writes it.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use vyre::ir::{Access, AtomicOp, Builtin, DataType, SubgroupOp};
use vyre::text::classify::{functions, keywords, value_words};

/// Any of these words, whole.
fn any<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: BTreeSet<&str> = words.into_iter().collect();
    format!("\\b(?:{})\\b", words.into_iter().collect::<Vec<_>>().join("|"))
}

fn grammar() -> Value {
    let rule = |name: &str, pattern: String| json!({ "name": format!("{name}.vyre"), "match": pattern });
    let builtins = Builtin::ALL.iter().map(|builtin| builtin.to_string().replace('.', "\\.")).collect::<Vec<_>>();
    let types =
        DataType::KERNEL_SCALARS.into_iter().map(|ty| ty.to_string()).chain(["vec2".into(), "vec3".into(), "vec4".into()]);
    let types: Vec<String> = types.collect();
    let atomics = AtomicOp::ALL.iter().map(|op| format!("atomic\\.{}", op.mnemonic()));
    let subgroups = SubgroupOp::ALL.iter().map(|op| format!("subgroup\\.{}", op.mnemonic()));
    let operations: Vec<String> = atomics.chain(subgroups).collect();
    let accesses = Access::ALL.iter().map(|access| access.name());
    json!({
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "vyre",
        "scopeName": "source.vyre",
        "fileTypes": ["vyre"],
        "patterns": [
            rule("comment.line.double-slash", "//.*$".into()),
            json!({
                "name": "string.quoted.double.vyre",
                "begin": "\"",
                "end": "\"|$",
                "patterns": [rule("constant.character.escape", "\\\\.".into())],
            }),
            rule("variable.other.quoted", "`(?:[^`\\\\]|\\\\.)*`".into()),
            rule("constant.numeric", "\\b(?:0x[0-9a-fA-F_]+(?:\\.[0-9a-fA-F_]*)?(?:p[+-]?[0-9]+)?|[0-9][0-9_]*(?:\\.[0-9][0-9_]*)?(?:e[+-]?[0-9]+)?)(?:u64|i64|u|i|d)?\\b".into()),
            rule("constant.language", any(value_words())),
            rule("support.variable", any(builtins.iter().map(String::as_str))),
            rule("support.function", any(operations.iter().map(String::as_str))),
            json!({
                "match": "\\b(buffer|const|let|for|program)\\s+([A-Za-z_][A-Za-z0-9_]*)",
                "captures": { "1": { "name": "keyword.control.vyre" }, "2": { "name": "entity.name.variable.vyre" } },
            }),
            json!({
                "match": format!(":\\s*({})", any(accesses)),
                "captures": { "1": { "name": "storage.modifier.vyre" } },
            }),
            rule("keyword.control", any(keywords())),
            rule("support.function", format!("{}(?=\\s*[(<])", any(functions()))),
            rule("storage.type", any(types.iter().map(String::as_str))),
            rule("keyword.operator", "[-+*/%&|^!<>=.]+".into()),
        ],
    })
}

#[test]
fn the_grammar_is_that_of_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vyre.tmLanguage.json");
    let wanted = format!("{:#}\n", grammar());
    if std::env::var_os("VYRE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, &wanted).expect("the grammar can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "editors/vyre.tmLanguage.json is stale; run VYRE_BLESS=1 cargo test -p vyre-cli --test grammar");
}
