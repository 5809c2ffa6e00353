//! Memory that reading and walking programs takes, at its peak, in proportion to what is read.

use vyre_foundation::ir::{BufferDecl, DataType, Expr, Item, Name, Node, Program};
use vyre_foundation::text;
use vyre_foundation::wire::{self, checksum};

/// What a file or a walk may take that has nothing to do with its size.
const SMALL: u64 = 16 * 1024;

fn peak<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(work()));
    (info.bytes_max, result.expect("the work was done"))
}

fn many(node: impl Fn() -> Node) -> Program {
    Program::new(vec![], [1, 1, 1], (0..200_000).map(|_| node()).collect())
}

/// Statements of all kinds, with and without mistakes.
fn programs() -> Vec<(&'static str, Program)> {
    let all = |node: &dyn Fn(u32) -> Node| {
        Program::wrapped(vec![BufferDecl::output("out", 0, DataType::U32)], [1, 1, 1], (0..60_000).map(node).collect())
    };
    let store = |value: Expr| Node::store("out", Expr::u32(0), value);
    vec![
        ("return", all(&|_| Node::Return)),
        ("block", all(&|_| Node::block(vec![]))),
        ("block of a block", all(&|_| Node::block(vec![Node::block(vec![Node::block(vec![])])]))),
        ("let", all(&|n| Node::let_bind(format!("v{n}"), Expr::u32(n)))),
        ("let of long names", all(&|n| Node::let_bind(format!("variable{n}"), Expr::u32(n)))),
        ("store", all(&|n| store(Expr::u32(n)))),
        ("store of a sum", all(&|n| store(Expr::add(Expr::u32(1), Expr::u32(n))))),
        ("store of a load", all(&|n| store(Expr::load("out", Expr::u32(n))))),
        ("if", all(&|_| Node::if_then(Expr::bool(true), vec![Node::Return]))),
        ("loop", all(&|_| Node::loop_for("i", Expr::u32(0), Expr::u32(1), vec![Node::Break]))),
        ("barrier", all(&|_| Node::barrier())),
        ("unknown name", all(&|n| store(Expr::var(format!("unknown{n}"))))),
        ("unknown names", all(&|n| store(Expr::add(Expr::var(format!("a{n}")), Expr::var(format!("b{n}")))))),
        ("wrong type", all(&|_| store(Expr::bool(true)))),
        ("break outside", all(&|_| Node::Break)),
    ]
}

/// The densest statements, in bytes of the wire form.
fn dense() -> Vec<Program> {
    vec![
        many(Node::return_),
        many(|| Node::block(vec![])),
        many(|| Node::block(vec![Node::Break])),
        many(|| Node::store("", Expr::gid_x(), Expr::gid_x())),
        many(|| Node::if_then_else(Expr::gid_x(), vec![Node::Return], vec![Node::Return])),
        many(|| Node::let_bind("", Expr::vector([Expr::gid_x(), Expr::gid_x()]))),
    ]
}

#[test]
fn decoding_takes_at_most_32_times_the_file() {
    for program in dense() {
        let bytes = wire::to_wire(&program).unwrap_or_else(|error| panic!("{error}"));
        let (taken, decoded) = peak(|| wire::from_wire(&bytes));
        assert!(decoded.is_ok_and(|decoded| decoded == program));
        println!("{:6.1} x", taken as f64 / bytes.len() as f64);
        assert!(taken <= 32 * bytes.len() as u64, "{taken} bytes for a file of {}", bytes.len());
    }
}

/// A wire file as `check` takes it: decoded and validated.
#[test]
fn checking_a_wire_file_takes_at_most_128_bytes_for_each_statement_and_expression() {
    for (what, program) in programs() {
        let bytes = wire::to_wire(&program).unwrap_or_else(|error| panic!("{error}"));
        let items = program.walk().count() as u64;
        let text: u64 = program.walk().filter_map(|(item, _)| long_name(item)).map(|name| 16 + name.len() as u64).sum();
        let (taken, _) = peak(|| {
            let decoded = wire::from_wire(&bytes).unwrap_or_else(|error| panic!("{error}"));
            decoded.validated().is_ok()
        });
        println!("{what:20} {:6} bytes", taken / items);
        assert!(taken <= 128 * items + text + SMALL, "{what}: {taken} bytes for {items}");
    }
}

/// A name that does not fit in the statement or expression that has it.
fn long_name(item: Item<'_>) -> Option<&Name> {
    match item {
        Item::Node(Node::Let { name, .. }) | Item::Expr(Expr::Var(name)) => Some(name).filter(|name| name.len() > 7),
        Item::Node(_) | Item::Expr(_) => None,
    }
}

#[test]
fn reading_a_text_takes_at_most_32_times_its_size() {
    let arguments = format!("let x = vec({})", vec!["1"; 10_000].join(","));
    let calls = format!("let x = f({})", vec!["g(1)"; 10_000].join(","));
    let deep = format!("{}{}", "{".repeat(200), "}".repeat(200));
    let names = format!("{{\nlet {} = 1\n}}", "n".repeat(200));
    let chain = (0..200).map(|n| format!("let v{n} = {}", if n == 0 { "1".into() } else { format!("v{}", n - 1) }));
    let chain = format!("{{\n{}\n}}", chain.collect::<Vec<_>>().join("\n"));
    let sums = format!("let z = vec({})", vec!["1+1+1+1+1+1+1+1+1+1+1"; 100_000].join(","));
    let mut missed = Vec::new();
    for (what, line) in [
        ("blocks", "{}"),
        ("nested blocks", "{\n{\n{\n}}}"),
        ("deep blocks", deep.as_str()),
        ("returns", "return"),
        ("stores", "out[0] = 1 + 2"),
        ("tight stores", "out[0]=1"),
        ("assignments", "x=1"),
        ("lets", "{\nlet x = 1\n}"),
        ("chain of lets", &chain),
        ("long names", &names),
        ("branches", "if true {}"),
        ("loops", "for i in 0..1 {}"),
        ("atomics", "atomic.add(out,0,1)"),
        ("atomics with results", "{\nlet a=atomic.add(out,0,1)\n}"),
        ("unknown names", "out[0] = abc"),
        ("two errors", "out[0] = abc + xyz"),
        ("syntax errors", "out[0] = ) = )"),
        ("dangling operators", "out[0] = 1 +"),
        ("wrong characters", "§ $"),
        ("comments", "//"),
        ("parentheses", "out[0]=((((((((((((((((1))))))))))))))))"),
        ("loads", "out[0]=out[out[out[out[out[0]]]]]"),
        ("calls", "out[0]=min(max(1,2),min(3,4))"),
        ("vectors", "let x=vec(1,2,3,4).x"),
        ("long lists", &arguments),
        ("unknown functions", &calls),
        ("sums", "out[0]=1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1"),
        ("sums of variables", "x=y+y+x+x+y+y+x+x+y+y+x+x+y+y+x+x+y"),
        ("sums in one list", &sums),
        ("signs", "out[0]=!!!!!!!!!!!!!!!!!!!!!!!1"),
        ("signs that do not fit", "out[0]=-----------------------1"),
    ] {
        let lines = vec![line; (400_000 / line.len()).max(1)].join("\n");
        // By itself, and with a mistake in another line.
        for (what, first) in [(what.to_string(), ""), (format!("{what}, and )"), ")\nx = 1")] {
            let declared = "workgroup 1\nbuffer out: output u32 @0\nlet x = 1\nlet y = 2";
            let text = format!("program p {{\n{declared}\n{first}\n{lines}\n}}\n");
            let (taken, _) = peak(|| text::parse("p", &text).is_ok());
            println!("{what:30} {:6.1} x", taken as f64 / text.len() as f64);
            if taken > 32 * text.len() as u64 {
                missed.push(format!("{what}: {taken} bytes for a text of {}", text.len()));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn lengths_that_promise_the_same_bytes_again_and_again_reserve_them_once() {
    // Each block says that all bytes behind it are statements of its own; so does each branch of an `if`.
    for opening in [&[0x0D][..], &[0x06, 0x00]] {
        let program = Program::new(vec![], [1, 1, 1], vec![Node::Return; 1_000_000]);
        let mut bytes = wire::to_wire(&program).unwrap_or_else(|error| panic!("{error}"));
        bytes.truncate(bytes.len() - 32);
        let mut at = bytes.len() - 1_000_000;
        for _ in 0..100 {
            bytes[at..at + opening.len()].copy_from_slice(opening);
            at += opening.len();
            let claim = bytes.len() - at - 8;
            let number = [(claim & 0x7F) as u8 | 0x80, (claim >> 7 & 0x7F) as u8 | 0x80, (claim >> 14) as u8];
            bytes[at..at + 3].copy_from_slice(&number);
            at += 3;
            if opening.len() > 1 {
                // The condition.
                bytes[at..at + 2].copy_from_slice(&[0x03, 0x00]);
                at += 2;
            }
        }
        bytes.extend(checksum(&bytes));
        let (taken, decoded) = peak(|| wire::from_wire(&bytes));
        let error = decoded.expect_err("the bytes cannot be those of all of them");
        assert_eq!(error.code.name(), "E0603", "{error}");
        assert!(taken <= 32 * bytes.len() as u64, "{taken} bytes for a file of {}", bytes.len());
    }
}

#[test]
fn a_walk_takes_memory_with_the_depth_and_not_with_the_width() {
    for program in dense() {
        let (taken, items) = peak(|| program.walk().count());
        assert!(items >= 200_000 && taken <= SMALL, "{taken} bytes for a walk over {items}");
    }
    let wide = Program::new(vec![], [1, 1, 1], vec![Node::let_bind("v", Expr::vector((0..200_000).map(Expr::u32)))]);
    let (taken, items) = peak(|| wide.walk().count());
    assert!(items == 200_002 && taken <= SMALL, "{taken} bytes for a walk over {items}");
}
