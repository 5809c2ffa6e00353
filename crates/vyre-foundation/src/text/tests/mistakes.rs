//! Which mistakes are reported, where, and that one mistake is reported once.

use crate::diagnostic::{Diagnostic, Fix, Report, Source};
use crate::text::{parse, render};

/// What the reader finds in a text, the validator aside.
fn found(text: &str) -> (Source, Vec<Diagnostic>) {
    let (lowered, mut mistakes) = crate::text::read(text);
    let (spans, misfits) = lowered.map(|lowered| (lowered.spans, lowered.misfits)).unwrap_or_default();
    let source = Source::new("t", text.into(), spans);
    mistakes.append(misfits.mistakes(&source));
    let report = Report::in_source(source.clone().into(), mistakes);
    (source, report.diagnostics)
}

/// The codes of a text's mistakes, each with the text it points at; what points between characters is shown as a `|` behind its line.
fn mistakes(text: &str) -> Vec<(String, String)> {
    let (source, mistakes) = found(text);
    let found = mistakes.iter().map(|diagnostic| {
        let span = diagnostic.location.map(|location| source.span(location)).unwrap_or_default();
        let (start, end) = (span.start as usize, span.end as usize);
        let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let shown = if start == end { format!("{}|", &text[line..start]) } else { text[start..end].to_string() };
        (diagnostic.code.to_string(), shown)
    });
    found.collect()
}

/// As [`mistakes`], for statements in a program; as one string.
fn in_body(statements: &str) -> String {
    let text = format!("program t {{\nworkgroup 1\nbuffer u: read_write u32 @0\n{statements}\n}}");
    let found: Vec<String> = mistakes(&text).into_iter().map(|(code, at)| format!("{code} {at}")).collect();
    found.join("; ")
}

fn help(statements: &str) -> String {
    let text = format!("program t {{\nworkgroup 1\n{statements}\n}}");
    found(&text).1.into_iter().next().and_then(|diagnostic| diagnostic.help).unwrap_or_default()
}

/// The text after the first mistake's fix, be it the reader's or the validator's.
fn fixed(text: &str) -> String {
    let (source, mut mistakes) = found(text);
    if mistakes.is_empty() {
        let program = parse("t", text).expect("nothing is wrong with the text");
        mistakes = program.validated().err().map(|report| report.diagnostics.clone()).unwrap_or_default();
    }
    let diagnostic = mistakes.first().expect("a mistake");
    let (location, before, after) = match diagnostic.fix.clone() {
        Some(Fix::Replace(location, new)) => {
            let span = source.span(location);
            return format!("{}{new}{}", &text[..span.start as usize], &text[span.end as usize..]);
        }
        Some(Fix::Wrap(location, before, after)) => (location, before, after),
        Some(Fix::InsertAfter(location, after)) => (location, String::new(), after),
        None => panic!("no fix: {diagnostic:?}"),
    };
    let (start, end) = (source.span(location).start as usize, source.span(location).end as usize);
    format!("{}{before}{}{after}{}", &text[..start], &text[start..end], &text[end..])
}

#[test]
fn statements_without_mistakes() {
    for statement in [
        "let x = 1",
        "let `if` = 1\n`if` = 2",
        "let min = min(1, 2)\nlet f32 = f32(min)\nlet len = len(u)\nlet vec = vec(len, 1).x",
        "u[0] =\n1 +\n2\n- 3",
        "if true { u[0] = 1 } else if false { } else { return }",
        "if true\n{\n}\nelse\n{\n}",
        "for i in 0 .. 4 { break }",
        "barrier\nbarrier.grid\nbarrier.seqcst",
        "trap(0xff)",
        "{ }",
        "region \"a \\\"b\" { }",
        "let old = atomic.add(u, 0, 1)\natomic.store(u, old, 1)",
        "let s = subgroup.add(1)\nlet l = subgroup.lane + subgroup.size\nsubgroup.add(l)",
        "let x = bitcast<f32>(1) < 2.0",
        "let x = -3i - -3i\nlet y = - 3i",
        "let x = a[0].x.y.c255",
        "let x = (((1)))",
        "let x = a < b && b < c || !(c == d)",
        "let x = 0x1.8p3 + 1e5 + inf - nan\nlet y = 1.5d + infd + nand + 0x1p-1074d",
    ] {
        assert_eq!(in_body(statement), "", "{statement}");
    }
}

#[test]
fn each_mistake_is_found_where_it_is() {
    for (statements, expected) in [
        ("let x = a § b", "E0101 §"),
        ("let x = `abc", "E0102 `abc"),
        ("let `abc = 1\nlet y = 2", "E0102 `abc = 1"),
        ("region \"a b {\nlet x = 1 +\n}", "E0102 \"a b; E0104 +"),
        ("region \"a { x = § } \\q", "E0102 \"a; E0101 §; E0101 \\"),
        ("if `a b {\nlet x = 1 +\n}", "E0102 `a b; E0104 +"),
        ("for `i in 0..2 {\nx = 1\n}", "E0102 `i in 0..2"),
        ("let x = 12f", "E0103 12f"),
        ("let = 1", "E0104 ="),
        ("let if = 1", "E0104 if"),
        ("let if = 1\nif = if + 2\nif if == 3 {\n}", "E0104 if"),
        ("let if x == 1 {\n}", "E0104 if"),
        ("for in in 0..2 {\nu[in] = in\n}", "E0104 in"),
        ("buffer floats: read f32 @1\nfloats[0] = floats[1] + f32(len(floats))\nfloats canonical", "E0104 floats; E0108 floats"),
        ("let gid = 1\nu[gid] = gid.x + gid", "E0104 gid"),
        ("buffer `floats`: read f32 @1\nfloats[0] = 1.0", "E0104 floats"),
        ("buffer `trap`: read f32 @1\nu[0] = trap[0]", "E0104 trap"),
        ("workgroup = 64", "E0104 ="),
        ("let x 1", "E0104 1"),
        ("let x: u32 = 1", "E0104 :"),
        ("let x =\nlet y = 1", "E0104 let x =|"),
        ("let x = // later\n\nlet y = 1", "E0104 let x =|"),
        ("let x = min(1\n2)", "E0104 let x = min(1|"),
        ("const\nlet y = 1", "E0104 const|"),
        ("const T: dtype =\nlet y = 1", "E0104 const T: dtype =|"),
        ("barrier.\nreturn", "E0104 barrier.|"),
        ("let x = v.\nlet y = 1", "E0104 let x = v.|"),
        ("if true\nx = 1", "E0104 if true|"),
        ("let x = (1 + 2\nlet y = 1", "E0104 let x = (1 + 2|"),
        ("let x = 1 + * 2", "E0104 *"),
        ("let x = 1 +\nlet y = 2", "E0104 +"),
        ("let x = 1 +\nu[0] = 2", "E0104 +"),
        ("let x = 1 +\n2 *\nu[0] = foo(1) = 2", "E0104 *; E0205 foo; E0106 ="),
        ("let x = -\nu[0] = 2", "E0104 -"),
        ("u[0] = (foo(1) +\nu[1] = 2\nlet = 3", "E0205 foo; E0104 +; E0104 ="),
        ("x", "E0104 x|"),
        ("x += 1", "E0104 +"),
        ("u[0 = 1", "E0104 ="),
        ("u[0]", "E0104 u[0]|"),
        ("while x { }", "E0104 while"),
        ("else { }", "E0104 else"),
        ("for i in 0 { }", "E0104 {"),
        ("for i of 0..1 { }", "E0104 of"),
        ("for i in 0..=1 {\nx = +\n}", "E0104 =; E0104 +"),
        ("for (i = 0; i < 3; i++) {\nx = 1\n}", "E0104 ("),
        ("if { }", "E0104 {"),
        ("barrier.global", "E0104 global"),
        ("if a b\n{\n}\nelse\n{\n}", "E0104 b"),
        ("if a = b {\nx = +\n} else {\ny = *\n}", "E0104 =; E0104 +; E0104 *"),
        ("region name {\nx = +\n}", "E0104 name; E0104 +"),
        ("region x { }", "E0104 x"),
        ("trap(x)", "E0104 x"),
        ("let x = gid", "E0104 let x = gid|"),
        ("let x = gid.w", "E0104 w"),
        ("let x = min(1, 2,)", "E0104 )"),
        ("let x = min(1 2)", "E0104 2"),
        ("let x = len(1)", "E0104 1"),
        ("let x = 1 < 2 < 3", "E0105 <"),
        ("let x = a == b != c == d", "E0105 !="),
        ("let x = 1 let y = 2", "E0106 let"),
        ("let x = 1; let y = 2", "E0106 ;"),
        ("let x = a b", "E0106 b"),
        ("if x { } return", "E0106 return"),
        ("return 1", "E0104 1"),
        ("return\nbuffer late: read u32 @1", "E0108 buffer"),
        ("if x {\nconst late: u32 = 1\n}", "E0108 const"),
        ("workgroup 2", "E0109 workgroup 2"),
        ("floats ieee\nfloats canonical", "E0109 floats canonical"),
        ("subgroup 4\nsubgroup 8", "E0109 subgroup 8"),
        ("let x = 1 + atomic.add(u, 0, 1)", "E0110 atomic.add"),
        ("x = subgroup.add(1)", "E0110 subgroup.add"),
        ("let x = atomic.add(u, 0, 1) + 1", "E0110 atomic.add(u, 0, 1)"),
        ("let x = subgroup.add(1).x", "E0110 subgroup.add(1)"),
        ("let x = foo(1) + (2)", "E0205 foo"),
        ("let x = add(1, 2)", "E0205 add"),
        ("atomic.inc(u, 0)", "E0205 inc"),
        ("let x = subgroup.sum(1)", "E0205 sum"),
        ("let x = bitcast<u16>(1)", "E0207 u16"),
        ("const T: dtype = u33", "E0207 u33"),
        ("let x = 1.5.q", "E0312 q"),
        ("let x = v.c3", "E0312 c3"),
        ("let x = v.c256", "E0312 c256"),
        ("let x = min(1)", "E0313 min"),
        ("let x = fma(1.0, 2.0)", "E0313 fma"),
        ("let x = f32(1, 2)", "E0313 f32"),
        ("let x = bitcast<u32>()", "E0313 bitcast"),
        ("atomic.load(u)", "E0313 atomic.load"),
        ("const c: f32 = 3", "E0310 3"),
        ("const c: u32 = true", "E0310 true"),
        ("const c: u32 = -1", "E0303 -1"),
        ("const c: f64 = 1.0d", "E0104 f64"),
        ("buffer c: write u32 @1", "E0104 write"),
        ("buffer c: read u32 @x", "E0104 x"),
        ("buffer c: read u32[] @1", "E0104 ]"),
        ("buffer c: read vec2<u32>> @1", "E0106 >>"),
        ("floats fast", "E0104 fast"),
        ("subgroup 4294967296", "E0303 4294967296"),
    ] {
        assert_eq!(in_body(statements), expected, "{statements}");
    }
}

#[test]
fn the_frame_of_a_program() {
    let first = |text: &str| mistakes(text).into_iter().map(|(code, at)| format!("{code} {at}")).collect::<Vec<_>>().join("; ");
    assert_eq!(first(""), "E0104 |");
    assert_eq!(first("// nothing\n"), "E0104 |");
    assert_eq!(first("kernel x { }"), "E0104 kernel");
    assert_eq!(first("program { }"), "E0104 {");
    assert_eq!(first("program if { workgroup 1 }"), "E0104 if");
    assert_eq!(first("program x {\nworkgroup 1"), "E0104 workgroup 1|");
    assert_eq!(first("program x {\nworkgroup 1\nif a {\nif b {"), "E0104 if b {|");
    assert_eq!(first("program x {\n}"), "E0411 x");
    assert_eq!(first("raw {\n}"), "E0411 raw");
    assert_eq!(first("program x {\nworkgroup\n}"), "E0104 workgroup|");
    assert_eq!(first("program x {\nworkgroup 1 2 3 4\n}"), "E0106 4");
    assert_eq!(first("program x { workgroup 1 }\n}"), "E0104 }");
    assert_eq!(first("program x { workgroup 1 }\nprogram y { workgroup 1 }"), "E0104 program");
    assert_eq!(first("program x { workgroup 1 }\nraw"), "E0104 raw");
    for fine in [
        "program `a b` { workgroup 1 }",
        "program \"a b\" { workgroup 1 }",
        "raw { workgroup n 2 `k` }",
        "\u{FEFF}raw{workgroup 1}",
    ] {
        assert_eq!(first(fine), "", "{fine}");
    }
}

#[test]
fn one_run_reports_all_mistakes_and_each_once() {
    let text = "\
let a = foo(1)
let b = (1 + ]) * (2
if a < b < c {
  let d = 1 2
  u[0] == 3
} else if ) {
  x = §
}
let e = min(1,
  2 3,
  4)
for i in *..5 {
  y =
}
let f = 1
z += 1";
    let expected = "E0205 foo; E0104 ]; E0105 <; E0106 2; E0104 ==; E0104 ); E0101 §; E0104 3; E0104 *; E0104   y =|; E0104 +";
    assert_eq!(in_body(text), expected);
}

#[test]
fn a_text_of_nothing_but_mistakes_is_read_to_its_end() {
    let text = format!("program x {{\nworkgroup 1\n{}}}", "let x = +\n".repeat(100_000));
    assert_eq!(crate::text::read(&text).1.count(), 100_000);
}

#[test]
fn helpful_words() {
    assert_eq!(help("let x = add(1, 2)"), "write `a + b`");
    assert_eq!(help("let x = neg(1)"), "write `-a`");
    assert!(help("let x = u16(1)").contains("u32"));
    assert!(help("let x = 1 + atomic.add(u, 0, 1)").contains("let result = atomic.add(…)"));
}

/// What [`help`] gives for each of these is found in it.
#[test]
fn words_from_other_languages() {
    for (statement, word) in [
        ("while a {\n}", "`for i in 0..n { … }`"),
        ("for (;;) {\n}", "`for i in 0..n { … }`"),
        ("for i in 0..=3 {\n}", "not part of the range"),
        ("# comment", "comments begin with"),
        ("let x = a ? b : c", "`select(condition, a, b)`"),
        ("const c: u32 = -1", "a constant of type i32"),
        ("const c: i32 = 3000000000", "a constant of type u32"),
    ] {
        assert!(help(statement).contains(word), "{statement}: {}", help(statement));
    }
    assert_eq!(help("const c: u32 = 5000000000"), "");
    assert_eq!(help("buffer u: output u32 @0\nu[0] = 5000000000"), "");
}

#[test]
fn fixes_mend_what_they_are_for() {
    let in_body = |statement: &str| format!("program x {{\nworkgroup 1\nbuffer u: output u32 @0\n{statement}\n}}");
    for (wrong, right) in [
        ("if u[0] = 1 {\n}", "if u[0] == 1 {\n}"),
        ("let x = 0o17", "let x = 0xf"),
        ("let x = 0X1F", "let x = 0x1f"),
        ("let x = 1u32", "let x = 1u"),
        ("let x = 0xffi32", "let x = 0xffi"),
        ("let x = 12f", "let x = 12.0"),
        ("let x = 1_2f64", "let x = 1_2.0d"),
        ("let x = 1.5f32", "let x = 1.5"),
        ("let x = 1.5f64", "let x = 1.5d"),
        ("let x = 1E5", "let x = 1e5"),
        ("let x = gid + 1", "let x = gid.x + 1"),
        ("let a = 1\nlet x = a == 1 == true", "let a = 1\nlet x = (a == 1) == true"),
        ("let a = 1\nlet x = true == a < 2", "let a = 1\nlet x = true == (a < 2)"),
        ("let a = 1\nlet x = a < 2 != false", "let a = 1\nlet x = (a < 2) != false"),
        ("let a = 1\nlet x = a == a == a", "let a = 1\nlet x = a == a && a == a"),
        ("let x = -1", "let x = -1i"),
        ("let x = 3000000000i", "let x = 3000000000i64"),
        ("let x = -1u64", "let x = -1i64"),
        ("u[0] = -1", "u[0] = u32(-1i)"),
        ("region name {\n}", "region \"name\" {\n}"),
        ("region \"name {\n}", "region \"name\" {\n}"),
        ("u == 4", "u = 4"),
        ("var x = 4", "let x = 4"),
        ("let x = true and false", "let x = true && false"),
        ("if true or false {\n}", "if true || false {\n}"),
        ("let x = float(4)", "let x = f32(4)"),
        ("let x = 1\nx++", "let x = 1\nx = x + 1"),
        ("let x = 1\nx += 2", "let x = 1\nx = x + 2"),
        ("let x = 1\nx *= 2 + x", "let x = 1\nx = x * (2 + x)"),
        ("u[1] -= 2", "u[1] = u[1] - 2"),
        ("u[0] <<= 2", "u[0] = u[0] << 2"),
        ("let `a b` = 1\n`a b` += 2", "let `a b` = 1\n`a b` = `a b` + 2"),
        ("for (int i = 0; i < 3; i++) {\n}", "for i in 0..3 {\n}"),
        ("if true {\n}\nelif true {\n}", "if true {\n}\nelse if true {\n}"),
        ("let mut x = 1", "let x = 1"),
        ("let x: u32 = y", "let x = y"),
        ("uint x = 4", "let x = 4"),
        ("let x = u[0] as f32", "let x = f32(u[0])"),
        ("let x = (float)u[0]", "let x = f32(u[0])"),
        ("let x = u.len()", "let x = len(u)"),
        ("if true return", "if true { return }"),
        ("/* comment */", "// comment"),
        ("let x = 1.", "let x = 1.0"),
        ("let x = .5", "let x = 0.5"),
        ("let x = bitcast<uint>(4)", "let x = bitcast<u32>(4)"),
        ("const T: dtype = half", "const T: dtype = f16"),
        ("let x = u[`if]", "let x = u[`if]`"),
    ] {
        assert_eq!(fixed(&in_body(wrong)), in_body(right));
    }
    for (wrong, right) in [
        ("program x {\nworkgroup 8 widht\nconst width: u32 = 8\n}", "program x {\nworkgroup 8 width\nconst width: u32 = 8\n}"),
        ("program x {\nworkgroup 1\nlet y = a < b < c\n}", "program x {\nworkgroup 1\nlet y = a < b && b < c\n}"),
        ("program x {\nworkgroup 1\nlet y = mni(1, 2)\n}", "program x {\nworkgroup 1\nlet y = min(1, 2)\n}"),
        ("program x {\nworkgroup 1\nlet if = 1\n}", "program x {\nworkgroup 1\nlet `if` = 1\n}"),
        ("program x {\nworkgroup 1\nreturn;\n}", "program x {\nworkgroup 1\nreturn\n}"),
        ("program x {\nworkgroup 1\nlet y = 1e999d\n}", "program x {\nworkgroup 1\nlet y = infd\n}"),
        ("program x {\nworkgroup 1\nconst c: f32 = -3\n}", "program x {\nworkgroup 1\nconst c: f32 = -3.0\n}"),
        ("program x {\nworkgroup 1\natomic.ad(u, 0, 1)\n}", "program x {\nworkgroup 1\natomic.add(u, 0, 1)\n}"),
        ("program x {\nworkgroup 1\nlet y = bitcast<u23>(1)\n}", "program x {\nworkgroup 1\nlet y = bitcast<u32>(1)\n}"),
        ("program x {\nworkgroup 1\nbarrier.gird\n}", "program x {\nworkgroup 1\nbarrier.grid\n}"),
        ("program x {\nworkgroup 1\nlte y = 1\n}", "program x {\nworkgroup 1\nlet y = 1\n}"),
        ("program x {\nworkgroup 1\nbuffer b: raed u32 @0\n}", "program x {\nworkgroup 1\nbuffer b: read u32 @0\n}"),
        ("program x {\n}", "program x {\n  workgroup 64\n}"),
        ("program x {\nworkgroup 1\nlet y =\u{A0}1\n}", "program x {\nworkgroup 1\nlet y = 1\n}"),
        ("progam x {\nworkgroup 1\n}", "program x {\nworkgroup 1\n}"),
        ("program x {\nworkgroup 1\nlet y = `a b\n}", "program x {\nworkgroup 1\nlet y = `a b`\n}"),
    ] {
        assert_eq!(fixed(wrong), right);
        assert_eq!(mistakes(right), [], "{right}");
    }
}

#[test]
fn what_nests_too_deep_is_one_mistake_wherever_it_is() {
    let many = 100_000;
    let around = |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(many), close.repeat(many));
    for (what, statement) in [
        ("parentheses", format!("let x = {}", around("(", "1", ")"))),
        ("open parentheses", format!("let x = {}", "(".repeat(many))),
        ("minuses", format!("let x = {}y", "-".repeat(many))),
        ("nots", format!("let x = {}y", "! ".repeat(many))),
        ("calls", format!("let x = {}", around("abs(", "1", ")"))),
        ("arguments", format!("let x = {}", around("min(1, ", "1", ")"))),
        ("casts", format!("let x = {}", around("f32(", "1", ")"))),
        ("bitcasts", format!("let x = {}", around("bitcast<u32>(", "1", ")"))),
        ("vectors", format!("let x = {}", around("vec(", "1", ")"))),
        ("loads", format!("let x = {}", around("u[", "1", "]"))),
        ("components", format!("let x = v{}", ".x".repeat(many))),
        ("a sum", format!("let x = 1{}", " + 1".repeat(1_000_000))),
        ("a sum over lines", format!("let x = 1{}", "\n+ 1".repeat(many))),
        ("a product in a sum", format!("let x = 1{}", " + 1 * 2".repeat(many))),
        ("right operands", format!("let x = {}", around("1 - (", "1", ")"))),
        ("misplaced operations", format!("let x = {}", around("1 + vec(", "1", ")"))),
        ("ifs", around("if true {\n", "return\n", "}\n")),
        ("ifs on one line", around("if true { ", "return", " }")),
        ("else ifs", format!("if a {{\n}}{}", " else if a {\n}".repeat(many))),
        ("elses", around("if a {\n} else {\n", "return\n", "}\n")),
        ("loops", around("for i in 0..1 {\n", "return\n", "}\n")),
        ("blocks", around("{\n", "return\n", "}\n")),
        ("regions", around("region \"x\" {\n", "return\n", "}\n")),
        ("types", format!("const T: dtype = {}", around("csr<", "u8", ">"))),
    ] {
        let found = in_body(&statement);
        assert!(found.starts_with("E0107 ") && !found.contains("; "), "{what}: {}", found.chars().take(100).collect::<String>());
    }
    // Not closing them is another mistake.
    assert_eq!(in_body(&"{\n".repeat(many)), "E0107 {; E0104 }|");
    // Stray ends at the right depth are as many mistakes as the parser has patience for.
    assert!(in_body(&"}".repeat(many)).starts_with("E0104 }"));
    assert!(!in_body(&")".repeat(many)).contains("; "));
}

#[test]
fn each_nest_that_is_too_deep_is_reported() {
    let deep = |inner: &str| format!("{}{inner}{}", "{\n".repeat(254), "}\n".repeat(254));
    let sum = format!("x = y{}\n", " + y".repeat(300));
    assert_eq!(in_body(&deep("x = 1\ny = 2\nif z {\nx = 3\n}\n")), "E0107 1");
    assert_eq!(in_body(&(deep("x = 1\n") + &deep("y = 2\n"))), "E0107 1; E0107 2");
    assert_eq!(in_body(&format!("if true {{\n{sum}{sum}}}\n{sum}")), "E0107 +; E0107 +; E0107 +");
}

#[test]
fn the_limit_is_the_one_of_the_walk() {
    // In a program a statement is at depth 2 and its value at depth 3.
    let sum = |terms: usize| format!("let x = y{}", " + y".repeat(terms - 1));
    assert_eq!(in_body(&sum(254)), "");
    assert_eq!(in_body(&sum(255)), "E0107 +");
    let minus = |count: usize| format!("let x = {}y", "-".repeat(count));
    assert_eq!(in_body(&minus(253)), "");
    assert_eq!(in_body(&minus(254)), "E0107 y");
    let blocks = |count: usize, inner: &str| format!("{}{inner}{}", "{\n".repeat(count), "}\n".repeat(count));
    assert_eq!(in_body(&blocks(254, "return\n")), "");
    assert_eq!(in_body(&blocks(255, "return\n")), "E0107 return");
    assert_eq!(in_body(&blocks(255, "")), "");
    assert_eq!(in_body(&blocks(253, "x = 1\n")), "");
    assert_eq!(in_body(&blocks(254, "x = 1\n")), "E0107 1");
    // Parentheses leave nothing in the tree, and have the same limit for themselves.
    assert_eq!(in_body(&format!("let x = {}y{}", "(".repeat(256), ")".repeat(256))), "");
    assert_eq!(in_body(&format!("let x = {}y{}", "(".repeat(257), ")".repeat(257))), "E0107 (");
    let raw = |text: &str| mistakes(&format!("raw {{\nworkgroup 1\n{text}\n}}"));
    assert_eq!(raw(&sum(255)), []);
    assert_eq!(raw(&sum(256)).len(), 1);
}

#[test]
fn a_report_can_be_read() {
    let text = "program t {\n  workgroup 64\n  let x = 1 < 2 < 3\n}\n";
    let Err(report) = parse("t.vyre", text) else { panic!("comparisons do not chain") };
    let expected = "\
error[E0105]: comparisons do not chain
 --> t.vyre:3:17
  |
3 |   let x = 1 < 2 < 3
  |             -   ^
  |             |
  |             the first comparison
  |
  = help: join them with `&&`: `1 < 2 && 2 < 3`";
    assert_eq!(render(&report, false), expected);
}

#[test]
fn too_large_a_text_is_refused_unread() {
    assert!(crate::text::is_too_large(u32::MAX as usize));
    assert!(!crate::text::is_too_large(u32::MAX as usize - 1));
    assert_eq!(crate::text::too_large("x").codes().collect::<Vec<_>>(), [vyre_spec::ErrorCode::E0112]);
}

/// The codes of all mistakes of a program with these statements, the validator's too, with their lines from the first statement on.
fn all(statements: &str) -> String {
    let text = format!("program t {{\nworkgroup 64\nbuffer u: read_write u32 @0\n{statements}\n}}");
    let report = match parse("t", &text) {
        Ok(program) => program.validated().expect_err("there are mistakes").clone(),
        Err(report) => report,
    };
    let source = report.source.clone().expect("the mistakes are in the text");
    let found = report.diagnostics.iter().map(|diagnostic| {
        let (line, _) = source.line_column(source.span(diagnostic.location.expect("a place")).start);
        format!("{} {}", diagnostic.code, line as i64 - 3)
    });
    found.collect::<Vec<String>>().join("; ")
}

#[test]
fn what_cannot_be_read_hides_no_other_mistakes() {
    assert_eq!(all("let a = +\nu[0] = b\nu[0] = 1.5"), "E0104 1; E0201 2; E0304 3");
    assert_eq!(all("if {\nu[c] = 1\n}\nbreak"), "E0104 1; E0201 2; E0505 4");
    assert_eq!(all("u[0] = 1 2\nu[1] = 1.5"), "E0106 1; E0304 2");
    assert_eq!(all("}\nu[0] = b"), "E0104 2", "where braces do not match nothing else is looked at");
    assert_eq!(all("if true {\nu[0] = b"), "E0104 3", "where braces do not match nothing else is looked at");
}

#[test]
fn what_only_a_line_declares_that_cannot_be_read_is_not_missed() {
    for line in ["let a = +", "lett a = 1", "const a u32 = 1", "buffer a: red u32", "let a = 1 and 2"] {
        let uses = "u[a] = a\na = a + 1\na[0] = a[1]\nlet b = a\nu[0] = b\nu[1] = atomic_(a, len(a))";
        assert_eq!(all(&format!("{line}\n{uses}")).split("; ").count(), 2, "{line}");
    }
    // What is declared as in another language is a variable, of a type that is not known.
    for line in ["let a: u32 = 1", "u32 a = 1", "var a = 1", "a := 1", "float a = 1.0;", "int b, a;"] {
        assert_eq!(all(&format!("{line}\nu[a] = a\na = a + 1\nu[0] = c")), "E0104 1; E0201 4", "{line}");
    }
    assert_eq!(all("for i in 0 8 {\nlet a = 1\n}\nu[i] = a"), "E0104 1");
    assert_eq!(all("subgroup x\nlet s = subgroup.add(1)"), "E0104 1");
    // What is declared by others is known, and what is declared by none is not.
    assert_eq!(all("let a = 1\nlet b = a + )\nu[a] = 1.5 + a\nu[0] = c"), "E0104 2; E0301 3; E0201 4");
    // Nothing is known about a condition that goes on where the block should begin, or about what is left of a statement.
    assert_eq!(all("let n = 1\nif n = 2 {\nu[n] = 1.5\n}"), "E0104 2; E0304 3");
    assert_eq!(all("let n = 1\nlet t = n and true\nif t {\nu[n] = 1.5\n}"), "E0106 2; E0304 4");
    // A declaration that follows is not taken for the one that cannot be read.
    assert_eq!(all("buffer a: read u32[99999999999] @ x\nbuffer b: workgroup u32[0]"), "E0303 1; E0104 1; E0405 2");
}
