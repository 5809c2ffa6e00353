//! Ten kernels built in Rust. The file of the same name beside this one is the same program as text, says what it computes, and has a run
//! with its result and whether its bytes are proven to be the same everywhere; a test compares both.

use vyre::ir::SpecValue;
use vyre::prelude::*;

/// All of them, by name.
#[must_use]
pub fn all() -> Vec<(&'static str, Program)> {
    vec![
        ("blur", blur()),
        ("segmented_sum", segmented_sum()),
        ("histogram", histogram()),
        ("scan", scan()),
        ("matmul", matmul()),
        ("sort_pass", sort_pass()),
        ("n_body", n_body()),
        ("game_of_life", game_of_life()),
        ("sha256", sha256()),
        ("softmax", softmax()),
    ]
}

fn var(name: &str) -> Expr {
    Expr::var(name)
}

fn add_to(name: &str, value: Expr) -> Node {
    Node::assign(name, var(name) + value)
}

/// The element of a row in a matrix that is `w` wide.
fn place(x: Expr, y: Expr, w: &str) -> Expr {
    y * var(w) + x
}

/// The mean of 3 x 3 pixels.
#[must_use]
pub fn blur() -> Program {
    let near = |id: Expr, offset: &str, size: &str| ((id + var(offset)).max(1u32) - 1u32).min(var(size) - 1u32);
    let sum = vec![
        Node::let_bind("x", near(Expr::gid_x(), "dx", "w")),
        Node::let_bind("y", near(Expr::gid_y(), "dy", "h")),
        add_to("sum", Expr::load("image", place(var("x"), var("y"), "w"))),
    ];
    let inside = vec![
        Node::let_bind("sum", 0.0f32),
        Node::loop_for("dy", 0u32, 3u32, vec![Node::loop_for("dx", 0u32, 3u32, sum)]),
        Node::store("out", place(Expr::gid_x(), Expr::gid_y(), "w"), var("sum") / 9.0f32),
    ];
    Program::wrapped(
        vec![
            BufferDecl::read("image", 0, DataType::F32),
            BufferDecl::uniform("size", 1, DataType::U32).with_count(2),
            BufferDecl::output("out", 2, DataType::F32),
        ],
        [8, 8, 1],
        vec![
            Node::let_bind("w", Expr::load("size", 0u32)),
            Node::let_bind("h", Expr::load("size", 1u32)),
            Node::if_then(Expr::gid_x().lt(var("w")).and(Expr::gid_y().lt(var("h"))), inside),
        ],
    )
    .with_name("blur")
}

/// Sums of segments.
#[must_use]
pub fn segmented_sum() -> Program {
    let (from, to) = (Expr::load("starts", Expr::gid_x()), Expr::load("starts", Expr::gid_x() + 1u32));
    let inside = vec![
        Node::let_bind("sum", 0u32),
        Node::loop_for("i", from, to, vec![add_to("sum", Expr::load("values", var("i")))]),
        Node::store("sums", Expr::gid_x(), var("sum")),
    ];
    Program::wrapped(
        vec![
            BufferDecl::read("starts", 0, DataType::U32),
            BufferDecl::read("values", 1, DataType::U32),
            BufferDecl::output("sums", 2, DataType::U32),
        ],
        [64, 1, 1],
        vec![Node::if_then(Expr::gid_x().lt(Expr::len("sums")), inside)],
    )
    .with_name("segmented_sum")
}

/// Counts of values.
#[must_use]
pub fn histogram() -> Program {
    let bin = Expr::load("x", Expr::gid_x()) % 16u32;
    Program::wrapped(
        vec![
            BufferDecl::read("x", 0, DataType::U32),
            BufferDecl::output("bins", 1, DataType::U32).with_count(16),
            BufferDecl::workgroup("own", DataType::U32).with_count(16),
        ],
        [64, 1, 1],
        vec![
            Node::if_then(Expr::gid_x().lt(Expr::len("x")), vec![Node::atomic(AtomicOp::Add, "own", bin, vec![1u32.into()])]),
            Node::barrier(),
            Node::if_then(
                Expr::lid_x().lt(16u32),
                vec![Node::atomic(AtomicOp::Add, "bins", Expr::lid_x(), vec![Expr::load("own", Expr::lid_x())])],
            ),
        ],
    )
    .with_name("histogram")
}

/// Running sums, in blocks.
#[must_use]
pub fn scan() -> Program {
    let tile = |index: Expr| Expr::load("tile", index);
    let step = || 1u32 << var("step");
    let below = Expr::lid_x().ge(step()).select(tile(Expr::lid_x() - step()), 0u32);
    let steps = vec![
        Node::let_bind("below", below),
        Node::barrier(),
        Node::store("tile", Expr::lid_x(), tile(Expr::lid_x()) + var("below")),
        Node::barrier(),
    ];
    Program::wrapped(
        vec![
            BufferDecl::read("x", 0, DataType::U32),
            BufferDecl::output("out", 1, DataType::U32),
            BufferDecl::workgroup("tile", DataType::U32).with_count(64),
        ],
        [64, 1, 1],
        vec![
            Node::store("tile", Expr::lid_x(), Expr::load("x", Expr::gid_x())),
            Node::barrier(),
            Node::loop_for("step", 0u32, 6u32, steps),
            Node::store("out", Expr::gid_x(), tile(Expr::lid_x())),
        ],
    )
    .with_name("scan")
}

/// The product of two square matrices.
#[must_use]
pub fn matmul() -> Program {
    let n = || var("n");
    let term = Expr::load("a", place(var("k"), Expr::gid_y(), "n")) * Expr::load("b", place(Expr::gid_x(), var("k"), "n"));
    let inside = vec![
        Node::let_bind("sum", 0.0f32),
        Node::loop_for("k", 0u32, n(), vec![add_to("sum", term)]),
        Node::store("c", place(Expr::gid_x(), Expr::gid_y(), "n"), var("sum")),
    ];
    Program::wrapped(
        vec![
            BufferDecl::read("a", 0, DataType::F32),
            BufferDecl::read("b", 1, DataType::F32),
            BufferDecl::output("c", 2, DataType::F32),
        ],
        [8, 8, 1],
        vec![Node::if_then(Expr::gid_x().lt(n()).and(Expr::gid_y().lt(n())), inside)],
    )
    .with_name("matmul")
    .with_const("n", SpecValue::U32(2))
}

/// One pass of a bitonic sort.
#[must_use]
pub fn sort_pass() -> Program {
    let (i, j, a, b) = (var("i"), var("j"), var("a"), var("b"));
    let goes_up = (&i & var("block")).eq(0u32);
    let exchange = vec![Node::store("keys", &i, &b), Node::store("keys", &j, &a)];
    let pair = vec![
        Node::let_bind("a", Expr::load("keys", &i)),
        Node::let_bind("b", Expr::load("keys", &j)),
        Node::if_then(a.gt(b).eq(goes_up), exchange),
    ];
    Program::wrapped(
        vec![BufferDecl::uniform("pass", 0, DataType::U32).with_count(2), BufferDecl::read_write("keys", 1, DataType::U32)],
        [64, 1, 1],
        vec![
            Node::let_bind("block", Expr::load("pass", 0u32)),
            Node::let_bind("distance", Expr::load("pass", 1u32)),
            Node::let_bind("i", Expr::gid_x()),
            Node::let_bind("j", &i ^ var("distance")),
            Node::if_then(i.lt(&j).and(j.lt(Expr::len("keys"))), pair),
        ],
    )
    .with_name("sort_pass")
}

/// How bodies pull each other.
#[must_use]
pub fn n_body() -> Program {
    let square = |name: &str| var(name) * var(name);
    let difference = |component: u8| Expr::extract(var("other"), component) - Expr::extract(var("here"), component);
    let one = vec![
        Node::let_bind("other", Expr::load("bodies", var("j"))),
        Node::let_bind("dx", difference(0)),
        Node::let_bind("dy", difference(1)),
        Node::let_bind("dz", difference(2)),
        Node::let_bind("r", (square("dx") + square("dy") + square("dz")).rsqrt()),
        Node::let_bind("force", Expr::extract(var("other"), 3) * var("r") * var("r") * var("r")),
        add_to("ax", var("force") * var("dx")),
        add_to("ay", var("force") * var("dy")),
        add_to("az", var("force") * var("dz")),
    ];
    let others = vec![Node::if_then(var("j").ne(Expr::gid_x()), one)];
    let inside = vec![
        Node::let_bind("here", Expr::load("bodies", Expr::gid_x())),
        Node::let_bind("ax", 0.0f32),
        Node::let_bind("ay", 0.0f32),
        Node::let_bind("az", 0.0f32),
        Node::loop_for("j", 0u32, Expr::len("bodies"), others),
        Node::store("pull", Expr::gid_x(), Expr::vector([var("ax"), var("ay"), var("az"), 0.0f32.into()])),
    ];
    let quad = || DataType::vector(Scalar::F32, 4);
    Program::wrapped(
        vec![BufferDecl::read("bodies", 0, quad()), BufferDecl::output("pull", 1, quad())],
        [64, 1, 1],
        vec![Node::if_then(Expr::gid_x().lt(Expr::len("bodies")), inside)],
    )
    .with_name("n_body")
}

/// One generation of the game of life.
#[must_use]
pub fn game_of_life() -> Program {
    let around = |id: Expr, offset: &str, size: &str| (id + var(offset) + var(size) - 1u32) % var(size);
    let own = || place(Expr::gid_x(), Expr::gid_y(), "w");
    let sum = vec![
        Node::let_bind("x", around(Expr::gid_x(), "dx", "w")),
        Node::let_bind("y", around(Expr::gid_y(), "dy", "h")),
        add_to("around", Expr::load("cells", place(var("x"), var("y"), "w"))),
    ];
    let lives = var("around").eq(3u32).or(var("around").eq(2u32).and(var("here").eq(1u32)));
    let inside = vec![
        Node::let_bind("around", 0u32),
        Node::loop_for("dy", 0u32, 3u32, vec![Node::loop_for("dx", 0u32, 3u32, sum)]),
        Node::let_bind("here", Expr::load("cells", own())),
        Node::assign("around", var("around") - var("here")),
        Node::store("next", own(), Expr::cast(Scalar::U32, lives)),
    ];
    Program::wrapped(
        vec![
            BufferDecl::read("cells", 0, DataType::U32),
            BufferDecl::uniform("size", 1, DataType::U32).with_count(2),
            BufferDecl::output("next", 2, DataType::U32),
        ],
        [8, 8, 1],
        vec![
            Node::let_bind("w", Expr::load("size", 0u32)),
            Node::let_bind("h", Expr::load("size", 1u32)),
            Node::if_then(Expr::gid_x().lt(var("w")).and(Expr::gid_y().lt(var("h"))), inside),
        ],
    )
    .with_name("game_of_life")
}

/// What SHA-256 begins with: the square roots of the first primes, behind the point.
const BEGIN: [u32; 8] = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// The SHA-256 of short messages.
#[must_use]
pub fn sha256() -> Program {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let [a, b, c, _, e, f, g, _] = names.map(var);
    let rotations = |x: Expr, [p, q, r]: [u32; 3]| x.clone().rotr(p) ^ x.clone().rotr(q) ^ x.rotr(r);
    let small = |x: Expr, [p, q, r]: [u32; 3]| x.clone().rotr(p) ^ x.clone().rotr(q) ^ x >> r;
    let words = |index: Expr| Expr::load("words", index);
    let ahead = |steps: u32| words(var("own") + (var("t") + steps) % 16u32);
    let schedule = vec![
        Node::let_bind("x", ahead(1)),
        Node::let_bind("y", ahead(14)),
        Node::let_bind("s0", small(var("x"), [7, 18, 3])),
        Node::let_bind("s1", small(var("y"), [17, 19, 10])),
        Node::store("words", var("at"), words(var("at")) + var("s0") + ahead(9) + var("s1")),
    ];
    let choice = &e & &f ^ !&e & &g;
    let majority = &a & &b ^ &a & &c ^ &b & &c;
    let mut round = vec![
        Node::let_bind("at", var("own") + var("t") % 16u32),
        Node::if_then(var("t").ge(16u32), schedule),
        Node::let_bind("s1", rotations(e, [6, 11, 25])),
        Node::let_bind("t1", var("h") + var("s1") + choice + Expr::load("k", var("t")) + words(var("at"))),
        Node::let_bind("s0", rotations(a, [2, 13, 22])),
        Node::let_bind("t2", var("s0") + majority),
    ];
    for (to, from) in names.iter().zip(&names[1..]).rev().map(|(from, to)| (to, from)) {
        round.push(match *to {
            "e" => Node::assign("e", var("d") + var("t1")),
            to => Node::assign(to, var(from)),
        });
    }
    round.push(Node::assign("a", var("t1") + var("t2")));
    let copy = Node::store("words", var("own") + var("t"), Expr::load("blocks", Expr::gid_x() * 16u32 + var("t")));
    let mut inside = vec![Node::loop_for("t", 0u32, 16u32, vec![copy])];
    inside.extend(names.iter().zip(BEGIN).map(|(name, begin)| Node::let_bind(*name, begin)));
    inside.push(Node::loop_for("t", 0u32, 64u32, round));
    inside.extend(names.iter().zip(BEGIN).zip(0u32..).map(|((name, begin), n)| {
        let first = Expr::gid_x() * 8u32;
        Node::store("digests", if n == 0 { first } else { first + n }, var(name) + begin)
    }));
    Program::wrapped(
        vec![
            BufferDecl::uniform("k", 0, DataType::U32).with_count(64),
            BufferDecl::read("blocks", 1, DataType::U32),
            BufferDecl::output("digests", 2, DataType::U32),
            BufferDecl::workgroup("words", DataType::U32).with_count(1024),
        ],
        [64, 1, 1],
        vec![
            Node::let_bind("own", Expr::lid_x() * 16u32),
            Node::if_then((Expr::gid_x() * 16u32).lt(Expr::len("blocks")), inside),
        ],
    )
    .with_name("sha256")
}

/// The softmax of rows.
#[must_use]
pub fn softmax() -> Program {
    let x = |column: Expr| Expr::load("x", var("first") + column);
    let power = || (x(var("c")) - var("largest")).exp();
    let inside = vec![
        Node::let_bind("largest", Expr::load("x", var("first"))),
        Node::loop_for("c", 1u32, var("columns"), vec![Node::assign("largest", var("largest").max(x(var("c"))))]),
        Node::let_bind("sum", 0.0f32),
        Node::loop_for("c", 0u32, var("columns"), vec![add_to("sum", power())]),
        Node::loop_for("c", 0u32, var("columns"), vec![Node::store("y", var("first") + var("c"), power() / var("sum"))]),
    ];
    Program::wrapped(
        vec![BufferDecl::read("x", 0, DataType::F32), BufferDecl::output("y", 1, DataType::F32)],
        [64, 1, 1],
        vec![
            Node::let_bind("first", Expr::gid_x() * var("columns")),
            Node::if_then(Expr::gid_x().lt(Expr::len("x") / var("columns")), inside),
        ],
    )
    .with_name("softmax")
    .with_const("columns", SpecValue::U32(4))
}
