//! The type an integer without suffix gets, seen in the printed statement, whose integers all have suffixes.

use crate::ir::{Node, Program};
use crate::text::parse;
use vyre_spec::ErrorCode;

const DECLARATIONS: &str = "
  workgroup 8
  subgroup 8
  const k: i32 = 3
  const n: u32 = 3
  const T: dtype = i8
  buffer u: read_write u32 @0
  buffer s: read_write i32 @1
  buffer f: read_write f32 @2
  buffer b: read_write i16 @3
  buffer t: read T @4
  buffer v: read_write vec2<i32> @5
  buffer w: read_write u64 @6
  let x = 1i
  let y = 1u64
";

fn program(statement: &str) -> Result<Program, Vec<ErrorCode>> {
    parse("t", &format!("program t {{{DECLARATIONS}{statement}\n}}")).map_err(|report| report.codes().collect())
}

/// What the last statement becomes.
fn last(statement: &str) -> String {
    let program = program(statement).unwrap_or_else(|codes| panic!("{statement}: {codes:?}"));
    match &program.parts().body[..] {
        [Node::Region { body, .. }] => body.last().map(ToString::to_string).unwrap_or_default(),
        _ => panic!("a program has one region"),
    }
}

#[test]
fn without_a_context_they_are_u32() {
    assert_eq!(last("let z = 1"), "let z = 1u");
    assert_eq!(last("let z = -(1) + 2"), "let z = -(1u) + 2u");
    assert_eq!(last("let z = f32(1)"), "let z = f32(1u)");
    assert_eq!(last("let z = bitcast<i32>(0xFFFFFFFF)"), "let z = bitcast<i32>(4294967295u)");
    assert_eq!(last("let z = 1 == 2"), "let z = 1u == 2u");
    assert_eq!(last("let z = -3.x"), "let z = -(3u).x");
    assert_eq!(last("let z = vec(1, 2)"), "let z = vec(1u, 2u)");
    assert_eq!(last("let z = popcount(1) + 1"), "let z = popcount(1u) + 1u");
}

#[test]
fn operands_of_one_type_follow_the_first_that_has_one() {
    assert_eq!(last("let z = x + 1"), "let z = x + 1i");
    assert_eq!(last("let z = 1 + x"), "let z = 1i + x");
    assert_eq!(last("let z = 1 * 2 + (3 - x)"), "let z = 1i * 2i + (3i - x)");
    assert_eq!(last("let z = min(1, max(2, y))"), "let z = min(1u64, max(2u64, y))");
    assert_eq!(last("let z = 1 < k"), "let z = 1i < k");
    assert_eq!(last("let z = select(1 < 2, 3, s[0])"), "let z = select(1u < 2u, 3i, s[0u])");
    assert_eq!(last("let z = vec(1, k)"), "let z = vec(1i, k)");
    assert_eq!(last("let z = 1 + i64(2) * 3"), "let z = 1i64 + i64(2u) * 3i64");
    assert_eq!(last("let z = abs_diff(1, x) + 1"), "let z = abs_diff(1i, x) + 1u");
    assert_eq!(last("let z = b[0] + 1"), "let z = b[0u] + 1i");
    assert_eq!(last("let z = t[0] + 1"), "let z = t[0u] + 1i");
    assert_eq!(last("let z = v[0].x + 1"), "let z = v[0u].x + 1i");
    assert_eq!(last("let z = gid.x + 1"), "let z = gid.x + 1u");
    assert_eq!(last("let z = vec(unknown, 1, x)"), "let z = vec(unknown, 1i, x)");
}

#[test]
fn the_table_fixes_shift_amounts_lanes_and_conditions() {
    assert_eq!(last("let z = y << 1"), "let z = y << 1u");
    assert_eq!(last("let z = 1 << x"), "let z = 1u << x");
    assert_eq!(last("y = 1 << 2"), "y = 1u64 << 2u");
    assert_eq!(last("let z = rotl(y, 1)"), "let z = rotl(y, 1u)");
    assert_eq!(last("let z = subgroup.shuffle(1, 2)"), "let z = subgroup.shuffle(1u, 2u)");
    assert_eq!(last("let z = subgroup.shuffle(x, 2)"), "let z = subgroup.shuffle(x, 2u)");
    assert_eq!(last("let q = subgroup.add(x)\nlet z = q + 1"), "let z = q + 1i");
    assert_eq!(last("let q = subgroup.ballot(true)\nlet z = q + 1"), "let z = q + 1u");
}

#[test]
fn places_that_take_a_value_fix_its_type() {
    assert_eq!(last("x = 1"), "x = 1i");
    assert_eq!(last("y = 1 + 2 * -(3)"), "y = 1u64 + 2u64 * -(3u64)");
    assert_eq!(last("s[1] = -1"), "s[1u] = -1i");
    assert_eq!(last("b[1] = -1"), "b[1u] = -1i");
    assert_eq!(last("w[1] = 1 & 2"), "w[1u] = 1u64 & 2u64");
    assert_eq!(last("v[0] = vec(1, -2)"), "v[0u] = vec(1i, -2i)");
    assert_eq!(last("v[0] = select(true, vec(1, 2), v[1])"), "v[0u] = select(true, vec(1i, 2i), v[1u])");
    assert_eq!(last("atomic.add(s, 1, -1)"), "atomic.add(s, 1u, -1i)");
    assert_eq!(last("let o = atomic.compare_exchange(s, 1, 1, 2)\nlet z = o + 1"), "let z = o + 1i");
    assert_eq!(last("for i in 1..2 {\n}"), "for i in 1u..2u {\n}");
    assert_eq!(last("for i in 1..2 {\n}\nlet z = i + 1"), "let z = i + 1u");
}

#[test]
fn variables_have_the_type_of_the_innermost_declaration() {
    let text = "if true {\n  let x = 1u64\n  x = 2\n}\nx = 3";
    assert_eq!(last(text), "x = 3i");
    let block = last(&format!("{{\n{text}\n}}"));
    assert!(block.contains("x = 2u64") && block.contains("x = 3i"), "{block}");
}

#[test]
fn where_no_integer_is_right_the_validator_decides() {
    assert_eq!(last("let z = 1.5 * 2"), "let z = 1.5 * 2u");
    assert_eq!(last("let z = 1.5 * -2"), "let z = 1.5 * -2i");
    assert_eq!(last("f[0] = 5000000000"), "f[0u] = 5000000000u64");
    assert_eq!(last("unknown = -1"), "unknown = -1i");
    assert_eq!(last("let z = unknown + 1"), "let z = unknown + 1u");
    assert_eq!(last("if 1 {\n}"), "if 1u {\n}");
}

#[test]
fn what_does_not_fit_is_refused() {
    for statement in [
        "let z = -1",
        "u[0] = -1",
        "let z = 4294967296",
        "let z = 3000000000i",
        "x = 2147483648",
        "s[-1] = 0",
        "y = -1",
        "let z = 1 << -1",
        "let z = 99999999999999999999",
        "f[0] = 99999999999999999999",
        "let z = 2147483648i",
        "let z = -(2147483648i)",
        "let z = -9223372036854775809i64",
        "let z = 1e999",
        "const big: u32 = 4294967296",
    ] {
        let declared = statement.starts_with("const");
        let text = if declared { statement.to_string() } else { format!("{DECLARATIONS}{statement}") };
        let text = format!("program t {{{}{text}\n}}", if declared { "\nworkgroup 1\n" } else { "" });
        let codes: Vec<ErrorCode> = parse("t", &text).err().map(|report| report.codes().collect()).unwrap_or_default();
        assert_eq!(codes, [ErrorCode::E0303], "{statement}");
    }
    assert_eq!(last("x = -2147483648"), "x = -2147483648i");
    assert_eq!(last("let z = -9223372036854775808i64"), "let z = -9223372036854775808i64");
    assert_eq!(last("let z = -0"), "let z = 0u");
}
