//! What holds for every program and every text.

use super::generate::{Random, expr, node, program};
use crate::diagnostic::Source;
use crate::ir::{Expr, Item, Literal, Node, Program, Walk};
use crate::text::lexer::{Kind, lex};
use crate::text::{format, names, parse, print, render};
use vyre_spec::Spelling;

/// Programs that use all of the text form.
const CORPUS: [&str; 5] = [
    "program xor {\n  workgroup 64 // x [y [z]]\n  buffer a: read u32 @0\n  buffer b: read u32 @1\n  buffer out: output u32 @2\n  buffer tile: workgroup f32[256]\n  const scale: u32 = 3 // a constant\n\n  let i = gid.x\n  if i < len(out) {\n    out[i] = (a[i] ^ b[i]) * scale\n  }\n}\n",
    "program `all of it` {\n  workgroup x 8u 0x4\n  floats canonical\n  subgroup 8\n  const x: u32 = 1_0\n  const f: f32 = -1.5\n  const b: bool = true\n  const T: dtype = bf16\n  buffer a: read T[x] @0\n  buffer s: read_write i32 @1\n  buffer c: uniform vec4<f32>[16] @2\n  buffer w: workgroup tensor<csr<coo<f16>>, 2, 3>[16]\n  buffer m: read mesh<> @3\n\n  // comment\n  let v = vec(1.5, 0x1.8p3, inf)\n  let y = v.x + f32(-3i) * -(v.y) / bitcast<f32>(0x7fc00000u) // why\n  for i in 0..len(a) {\n    if y < 1.0 && !(y == nan) || b {\n      continue\n    } else if is_nan(y) {\n      break\n    } else {\n      y = select(b, fma(y, y, f), -y)\n    }\n  }\n  let old = atomic.compare_exchange(s, lid.x, -1, 1)\n  atomic.store(s, 0, old << 1 >> 2 & 3 | 4 ^ 5)\n  let sum = subgroup.inclusive_add(old)\n  barrier\n  barrier.grid\n  region \"inner \\\"one\\\"\" {\n    {\n      trap(7)\n    }\n    return\n  }\n}\n",
    "raw {\n  workgroup 1\n\n  return\n  let `if` = 1u64 + 2u64 * 3u64 - -4i64\n}\n",
    "raw {\n  workgroup 1\n}\n",
    "program \"\" {\n  workgroup 1\n}\n",
];

#[track_caller]
fn read(text: &str) -> Program {
    parse("t", text).unwrap_or_else(|report| panic!("{report}\n{text}"))
}

/// Everything that must hold for a program.
#[track_caller]
fn check_program(program: &Program) {
    let source = print(program);
    let again = read(&source.text);
    assert!(again == *program, "reads as another program:\n{source}\n{again}", source = source.text);
    assert_eq!(print(&again), source);
    assert_eq!(program.to_string(), source.text);
    assert_eq!(
        again.source().map(|read| (&read.spans, read.tree())),
        Some((&source.spans, source.tree())),
        "noted while printing as by reading:\n{}",
        source.text
    );
    check_spans(program, &source);
    if source.text.lines().all(|line| line.chars().count() <= 100) {
        assert_eq!(format("t", &source.text).as_deref(), Ok(source.text.as_str()), "printed as it is formatted");
    }
}

/// Everything that must hold for the formatting of a text without mistakes.
#[track_caller]
fn check_format(text: &str) {
    let formatted = format("t", text).unwrap_or_else(|report| panic!("{report}\n{text}"));
    assert_eq!(format("t", &formatted).as_ref(), Ok(&formatted), "a second time");
    if let Ok(program) = parse("t", text) {
        assert!(read(&formatted) == program, "{text}\nbecame another program:\n{formatted}");
    }
    let comments = |text: &str| {
        let mut comments: Vec<String> = lex(text)
            .comments
            .iter()
            .map(|comment| text[comment.span.start as usize..comment.span.end as usize].to_string())
            .collect();
        comments.sort();
        comments
    };
    assert_eq!(comments(&formatted), comments(text), "{text}\n{formatted}");
    assert!(formatted.lines().all(|line| line.trim_end() == line), "{formatted}");
}

/// The spans point at what they are for.
#[track_caller]
fn check_spans(program: &Program, source: &Source) {
    let text = |span: crate::diagnostic::Span| &source.text[span.start as usize..span.end as usize];
    let spelled = |name: &str| {
        let mut out = String::new();
        names::write_name(&mut out, name).expect("strings take everything");
        out
    };
    let (spans, tree) = (&source.spans, source.tree());
    assert_eq!(tree.tree.len(), program.walk().count());
    assert_eq!(spans.consts.len(), program.parts().consts.len());
    assert_eq!(spans.buffers.len(), program.buffers().len());
    for (decl, span) in program.parts().consts.iter().zip(&spans.consts) {
        assert_eq!(text(*span), spelled(&decl.name));
    }
    for (decl, [whole, name, element, count, binding]) in program.buffers().iter().zip(&spans.buffers) {
        assert_eq!(text(*name), spelled(&decl.name));
        assert!(text(*whole).starts_with("buffer ") && text(*whole).contains(text(*element)));
        assert_eq!(text(*count), decl.count.as_ref().map(ToString::to_string).unwrap_or_default());
        assert_eq!(text(*binding), decl.binding.map(|binding| format!("@{binding}")).unwrap_or_default());
    }
    let mut results = tree.results.iter();
    let mut operations = tree.operations.iter();
    for (place, ((item, _), (whole, head))) in program.walk().zip(&tree.tree).enumerate() {
        assert!(whole.start <= head.start && head.end <= whole.end);
        let expected = match item {
            Item::Node(Node::Let { name, .. } | Node::Assign { name, .. }) => spelled(name),
            Item::Node(Node::Store(store)) => spelled(&store.buffer),
            Item::Node(Node::Atomic(atomic)) => spelled(&atomic.buffer),
            Item::Node(Node::Subgroup(subgroup)) => format!("subgroup.{}", subgroup.op),
            Item::Node(Node::Loop(repeat)) => spelled(&repeat.var),
            Item::Node(Node::If { .. }) => "if".into(),
            Item::Node(Node::Trap { .. }) => "trap".into(),
            Item::Node(Node::Block(_)) => "{".into(),
            Item::Node(node @ (Node::Break | Node::Continue | Node::Return | Node::Barrier { .. })) => node.to_string(),
            // The root's is the program's name.
            Item::Node(Node::Region { .. }) if place == 0 && program.is_wrapped() => text(spans.program).into(),
            Item::Node(Node::Region { generator, .. }) => {
                let mut out = String::new();
                names::write_quoted(&mut out, generator, '"').expect("strings take everything");
                out
            }
            Item::Expr(Expr::Lit(Literal::U32(_))) => text(*whole).into(),
            Item::Expr(expr @ (Expr::Lit(_) | Expr::Builtin(_) | Expr::Var(_))) => expr.to_string(),
            Item::Expr(Expr::Len(buffer)) => spelled(buffer),
            Item::Expr(Expr::Load(load)) => spelled(&load.buffer),
            Item::Expr(Expr::Unary { op, .. }) => spelling(op.info().spelling, op.mnemonic()).into(),
            Item::Expr(Expr::Binary { op, .. }) => spelling(op.info().spelling, op.mnemonic()).into(),
            Item::Expr(Expr::Ternary { op, .. }) => op.to_string(),
            Item::Expr(Expr::Cast { to, .. }) => to.to_string(),
            Item::Expr(Expr::Bitcast { .. }) => "bitcast".into(),
            Item::Expr(Expr::Vector { .. }) => "vec".into(),
            Item::Expr(Expr::Extract { component, .. }) => {
                ["x", "y", "z", "w"].get(usize::from(*component)).map_or(format!("c{component}"), ToString::to_string)
            }
        };
        assert_eq!(text(*head), expected, "the head of {}", text(*whole));
        if let Item::Node(Node::Atomic(atomic)) = item {
            let (at, span) = operations.next().expect("a span for each atomic");
            assert_eq!((at.0 as usize, text(*span)), (place, format!("atomic.{}", atomic.op).as_str()));
        }
        if let Item::Node(node) = item
            && let Some(name) = node.result()
        {
            let (at, span) = results.next().expect("a span for each result");
            assert_eq!((at.0 as usize, text(*span)), (place, spelled(name).as_str()));
        }
    }
    assert!(results.next().is_none() && operations.next().is_none());
}

fn spelling(spelling: Spelling, mnemonic: &'static str) -> &'static str {
    match spelling {
        Spelling::Prefix(token) | Spelling::Infix(token, _) => token,
        Spelling::Call => mnemonic,
    }
}

#[test]
fn the_corpus_is_read_printed_and_formatted() {
    for text in CORPUS {
        check_program(&read(text));
        check_format(text);
        assert_eq!(format("t", text).as_deref(), Ok(text));
    }
}

#[test]
fn every_program_is_read_as_it_was_printed() {
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let depth = 3 + random.below(8) as u32;
        check_program(&program(&mut random, depth));
    }
}

#[test]
fn every_expression_and_statement_is_read_as_it_is_displayed() {
    for seed in 0..3000 {
        let mut random = Random::new(seed ^ 0xABCD);
        let expr = expr(&mut random, 7);
        let again = read(&format!("raw {{\nworkgroup 1\nlet x = {expr}\n}}"));
        assert!(again.parts().body[0] == Node::let_bind("x", expr.clone()), "{expr}\n{again}");
        let node = node(&mut random, 6);
        let again = read(&format!("raw {{\nworkgroup 1\n{node}\n}}"));
        assert!(again.parts().body[..] == [node.clone()], "{node}\n{again}");
    }
}

/// A program that is exactly so deep, along a path of random kinds.
fn deep_program(random: &mut Random, depth: u32) -> Program {
    let value_depth = random.below(depth as usize - 2) as u32 + 1;
    let mut value = Expr::var("x");
    for _ in 1..value_depth {
        let leaf = expr(random, 1);
        value = match random.below(8) {
            0 => Expr::neg(value),
            1 => Expr::add(value, leaf),
            2 => Expr::mul(leaf, value),
            3 => Expr::lt(value, leaf),
            4 => Expr::load("buf", value),
            5 => Expr::extract(value, 1),
            6 => Expr::select(leaf, value, Expr::u32(1)),
            _ => Expr::vector([value, leaf]),
        };
    }
    let mut node = Node::let_bind("y", value);
    for _ in value_depth + 1..depth {
        node = match random.below(4) {
            0 => Node::block(vec![node]),
            1 => Node::if_then_else(Expr::bool(true), vec![], vec![node]),
            2 => Node::loop_for("i", Expr::u32(0), Expr::u32(1), vec![node, Node::Break]),
            _ => Node::region("r", vec![node]),
        };
    }
    Program::new(vec![], [1, 1, 1], vec![node])
}

#[test]
fn programs_up_to_the_limit_are_printed_and_deeper_ones_are_not() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let program = deep_program(&mut random, 256);
        assert_eq!(program.walk().map(|(_, depth)| depth).max(), Some(256));
        check_program(&program);
        let deeper = deep_program(&mut random, 257);
        assert!(print(&deeper).text.starts_with("// "), "{deeper}");
        assert_eq!(print(&deeper).text.lines().count(), 1);
    }
    let deep = (0..1_000_000).fold(Expr::u32(1), |expr, _| Expr::neg(expr));
    assert!(deep.to_string().len() < 100);
    assert!(Node::let_bind("x", deep).to_string().len() < 100);
}

/// The tokens of a printed program with other space and comments between them.
fn shaken(random: &mut Random, text: &str) -> String {
    let mut out = String::new();
    let mut same_line_only = false;
    for token in lex(text).tokens.iter() {
        let slice = &text[token.span.start as usize..token.span.end as usize];
        let comment = |random: &mut Random| format!("//{}\n", random.pick(&["", " a", " // b", " `c", "\t\"d  ", " é", "\r"]));
        if token.newline_before {
            same_line_only = slice == "workgroup";
            for _ in 0..random.below(3) {
                let between = match random.below(4) {
                    0 => comment(random),
                    1 => format!(" {}", comment(random)),
                    2 => "\n\n\n".into(),
                    _ => " \t\r\n".into(),
                };
                out.push_str(&between);
            }
            out.push('\n');
        } else if !same_line_only && token.kind != Kind::End && random.one_in(5) {
            let between = match random.below(4) {
                0 => format!(" {}", comment(random)),
                1 => format!("\n{}{}", comment(random), comment(random)),
                2 => "\n \n".into(),
                _ => "\t".into(),
            };
            out.push_str(&between);
        }
        out.push(' ');
        out.push_str(slice);
    }
    out
}

#[test]
fn formatting_keeps_program_and_comments_and_settles_at_once() {
    for seed in 0..1500 {
        let mut random = Random::new(seed ^ 0x5EED);
        let program = program(&mut random, 8);
        let text = shaken(&mut random, &print(&program).text);
        assert!(read(&text) == program, "{text}");
        check_format(&text);
    }
}

/// Whatever the text, reading, drawing and formatting give an answer.
fn check_any_text(text: &str) {
    match parse("t", text) {
        Ok(program) => {
            check_program(&program);
            check_format(text);
        }
        Err(report) => {
            assert!(!report.diagnostics.is_empty(), "{text}");
            for diagnostic in &report.diagnostics {
                let location = diagnostic.location.expect("syntax errors have places");
                let span = report.source.as_ref().map(|source| source.span(location)).unwrap_or_default();
                assert!(text.get(span.start as usize..span.end as usize).is_some(), "{text} {diagnostic:?}");
            }
            assert!(render(&report, false).contains("error["));
            // What can be read in full can be formatted, whatever is wrong with it.
            if format("t", text).is_ok() {
                check_format(text);
            }
        }
    }
}

#[test]
fn every_beginning_of_a_text_gives_an_answer() {
    for text in CORPUS {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            check_any_text(&text[..end]);
        }
    }
}

#[test]
fn every_text_with_one_byte_changed_gives_an_answer() {
    const BYTES: &[u8] = b"\0\n\r\t !\"#%&'()*+,-./09:;<=>@ADZ[\\]^_`adexz{|}~\x7F\xC3\xFF";
    let mut random = Random::new(1);
    for text in CORPUS {
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            match random.below(4) {
                0 => {
                    bytes.remove(at);
                }
                1 => bytes.insert(at, *random.pick(BYTES)),
                _ => bytes[at] = *random.pick(BYTES),
            }
            check_any_text(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn arbitrary_bytes_give_an_answer() {
    let mut random = Random::new(2);
    for _ in 0..3000 {
        let length = random.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8 >> random.below(2)).collect();
        check_any_text(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn arbitrary_tokens_give_an_answer() {
    let mut words: Vec<&str> = CORPUS.iter().flat_map(|text| text.split([' ', '\n'])).filter(|word| !word.is_empty()).collect();
    words.extend([
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        ";",
        "=",
        "==",
        "<",
        ">",
        ">>",
        "..",
        ".",
        "@",
        "-",
        "!",
        "let",
        "if",
        "else",
        "for",
        "in",
        "1",
        "1.5",
        "-1",
        "`",
        "\"",
        "//",
        "atomic.add(",
        "subgroup.add(",
        "gid.x",
        "vec2<",
        "bitcast<u32>(",
        "min(",
        "len(",
        "§",
        "region",
        "trap",
        "\\",
        "0x",
        "1e999",
        "99999999999999999999",
        "const",
        "buffer",
        "workgroup",
        "dtype",
        "csr<",
    ]);
    let mut random = Random::new(3);
    for _ in 0..6000 {
        let mut text = String::from(*random.pick(&[
            "",
            "program x {\nworkgroup 1\n",
            "raw {\n",
            "program x {\nworkgroup 1\nif a {\nlet x = ",
        ]));
        for _ in 0..random.below(60) {
            let (word, space) = (*random.pick(&words), *random.pick(&[" ", " ", "\n", ""]));
            text.extend([word, space]);
        }
        check_any_text(&text);
    }
}

#[test]
fn a_u32_has_a_suffix_only_where_it_needs_one() {
    let text = "program t {\n  workgroup 1\n  buffer s: read_write i32 @0\n\n  let x = 1 + 2\n  s[3] = i32(4) << 5\n}\n";
    assert_eq!(print(&read(text)).text, text);
    let wrong = Program::new(vec![], [1, 1, 1], vec![Node::let_bind("x", Expr::add(Expr::u32(1), Expr::i32(2)))]);
    assert_eq!(print(&wrong).text, "raw {\n  workgroup 1\n\n  let x = 1u + 2i\n}\n");
}

#[test]
fn walks_of_printed_programs_agree() {
    // The walk that the spans follow is the one that places are counted by.
    let program = read(CORPUS[1]);
    let depths = |program: &Program| Walk::body(&program.parts().body).map(|(_, depth)| depth).collect::<Vec<u32>>();
    assert_eq!(depths(&program), depths(&read(&print(&program).text)));
}

#[test]
fn the_deepest_programs_need_less_than_a_megabyte_of_stack() {
    let around = |open: &str, close: &str| format!("raw {{\nworkgroup 1\nlet x = {}y{}\n}}", open.repeat(254), close.repeat(254));
    let deepest = move || {
        for text in [around("-(", ")"), around("min((", "), 1)"), around("u[(", ")]"), around("1 + (", ")")] {
            if let Ok(program) = parse("t", &text) {
                check_program(&program);
            } else {
                panic!("at the limit, not above: {}", &text[..40]);
            }
        }
        for seed in 0..20 {
            check_program(&deep_program(&mut Random::new(seed), 256));
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(deepest);
    thread.expect("a thread").join().expect("no panic");
}
