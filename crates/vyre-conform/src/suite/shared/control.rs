//! Control flow under divergence: branches, loops, `break`, `continue`, `return`.

use super::{finish, text};
use crate::cpu::Meaning;
use crate::spec::OpSpec;
use vyre_foundation::ir::DataType;

/// A body that computes `r` from `a` and `b`, and the same in Rust.
struct Flow {
    name: &'static str,
    body: &'static str,
    meaning: fn(u32, u32) -> u32,
}

pub(super) fn control() -> Vec<OpSpec> {
    flows().into_iter().map(spec).collect()
}

fn spec(flow: Flow) -> OpSpec {
    let Meaning { one, many } = Meaning::binary::<u32, u32, u32>(flow.meaning);
    let program = |before: &str, after: &str| {
        text(format!(
            "program p {{\nworkgroup SIZE\nbuffer x: read u32 @0\nbuffer y: read u32 @1\nbuffer out: output u32 @2\nlet i = gid.x\n\
             if i < len(out) {{\nlet a = x[i]\nlet b = y[i]\nlet r = 0\n{before}{}{after}out[i] = r\n}}\n}}",
            flow.body
        ))
    };
    let spec = OpSpec::builder(format!("control.{}:u32", flow.name)).signature([DataType::U32, DataType::U32], DataType::U32);
    // The same again inside a loop and an `if` that some lanes do not enter.
    let spec =
        spec.program(program("", "")).alternative("inside", program("for outer in 0..2 {\nif outer == i % 2 {\n", "}\n}\n"));
    finish(spec.cpu_fn(move |case| one(case)).cpu_batch(move |columns, out| many(columns, out)))
}

#[rustfmt::skip]
fn flows() -> Vec<Flow> {
    vec![
        Flow {
            name: "if_else",
            body: "if a < b {\nr = a * 3 + b\n} else {\nr = a ^ b\n}\n",
            meaning: |a, b| if a < b { a.wrapping_mul(3).wrapping_add(b) } else { a ^ b },
        },
        Flow {
            name: "else_if",
            body: "if a % 3 == 0 {\nr = b\nif b % 2 == 0 {\nr = r + 1\n}\n} else if a % 3 == 1 {\nr = b / 3\n} else {\nif b > a {\nr = 5\n} else {\nr = a - b\n}\n}\n",
            meaning: |a, b| match a % 3 {
                0 => b.wrapping_add(u32::from(b % 2 == 0)),
                1 => b / 3,
                _ => if b > a { 5 } else { a - b },
            },
        },
        Flow {
            name: "trip_count",
            body: "r = b\nfor k in 0..a % 33 {\nr = r * 1664525 + k\n}\n",
            meaning: |a, b| (0..a % 33).fold(b, |r, k| r.wrapping_mul(1_664_525).wrapping_add(k)),
        },
        Flow {
            name: "long_trip_count",
            // Few of the lanes, so that it costs little: more iterations than fit in 16 bits, and what is left of the largest numbers.
            body: "r = b\nlet n = a % 5\nif a >= 0xffff_fff0 {\nn = 65600 + (a & 15)\n}\nfor k in 0..n {\nr = (r ^ k) * 1664525 + 7\n}\n",
            meaning: |a, b| {
                let n = if a >= 0xffff_fff0 { 65_600 + (a & 15) } else { a % 5 };
                (0..n).fold(b, |r, k| (r ^ k).wrapping_mul(1_664_525).wrapping_add(7))
            },
        },
        Flow {
            name: "bounds",
            // Also where the upper bound wraps around, which makes the loop empty.
            body: "for k in a..a + b % 17 {\nr = r * 31 + k\n}\n",
            meaning: |a, b| (a..a.wrapping_add(b % 17)).fold(0, |r: u32, k| r.wrapping_mul(31).wrapping_add(k)),
        },
        Flow {
            name: "bounds_once",
            body: "let n = a % 16\nfor k in 0..n {\nn = n + b % 5\nr = r + k\n}\nr = r * 1000 + n\n",
            meaning: |a, b| {
                let n = a % 16;
                (0..n).sum::<u32>() * 1000 + n + n * (b % 5)
            },
        },
        Flow {
            name: "break",
            body: "let x_now = a | 1\nfor k in 0..64 {\nif x_now == 1 {\nbreak\n}\nr = r + 1\nif x_now % 2 == 0 {\nx_now = x_now / 2\n} else {\nx_now = x_now * 3 + b % 2 + 1\n}\n}\n",
            meaning: |a, b| {
                let (mut x, mut r) = (a | 1, 0);
                while x != 1 && r < 64 {
                    r += 1;
                    x = if x % 2 == 0 { x / 2 } else { x.wrapping_mul(3).wrapping_add(b % 2 + 1) };
                }
                r
            },
        },
        Flow {
            name: "continue",
            body: "r = b\nfor k in 0..32 {\nif (a >> k) % 2 == 0 {\ncontinue\n}\nr = r * 31 + k\n}\n",
            meaning: |a, b| (0..32).filter(|k| (a >> k) % 2 == 1).fold(b, |r: u32, k| r.wrapping_mul(31).wrapping_add(k)),
        },
        Flow {
            name: "nested",
            body: "for u in 0..a % 8 {\nfor v in 0..b % 8 {\nif u * v > 12 {\nbreak\n}\nif (u + v) % 2 == 1 {\ncontinue\n}\nr = r * 7 + u * 8 + v\n}\nif r > 1000000 {\nbreak\n}\n}\n",
            meaning: |a, b| {
                let mut r = 0_u32;
                for u in 0..a % 8 {
                    let inner = (0..b % 8).take_while(|v| u * v <= 12).filter(|v| (u + v) % 2 == 0);
                    r = inner.fold(r, |r, v| r.wrapping_mul(7).wrapping_add(u * 8 + v));
                    if r > 1_000_000 {
                        break;
                    }
                }
                r
            },
        },
        Flow {
            name: "return",
            // What was stored before stays.
            body: "out[i] = a\nif a % 2 == 1 {\nreturn\n}\nr = b\n",
            meaning: |a, b| if a % 2 == 1 { a } else { b },
        },
        Flow {
            name: "return_in_loop",
            body: "for u in 0..4 {\nfor v in 0..4 {\nout[i] = u * 4 + v\nif (a ^ b) % 16 == u * 4 + v {\nreturn\n}\n}\n}\nr = 99\n",
            meaning: |a, b| (a ^ b) % 16,
        },
        Flow {
            name: "gcd",
            body: "let u = a\nlet v = b\nfor k in 0..48 {\nif v == 0 {\nbreak\n}\nlet rest = u % v\nu = v\nv = rest\n}\nr = u\n",
            meaning: |a, b| {
                let (mut u, mut v) = (a, b);
                while v != 0 {
                    (u, v) = (v, u % v);
                }
                u
            },
        },
        Flow {
            name: "unreached",
            body: "if a == a + 1 {\nr = 1 / (b - b)\n}\nfor k in 5..5 {\nr = 9\n}\nfor k in 9..a % 9 {\nr = 8\n}\n",
            meaning: |_, _| 0,
        },
    ]
}
