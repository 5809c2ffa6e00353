//! The elementary functions on the committed vectors of MPFR, a second opinion beside CORE-MATH: always all of them.
//!
//! `data/make_vectors.py` says how `data/vectors.txt` is made and written. The inputs are the hardest to round that exist,
//! boundary and special values, and random ones.

mod sweep;

use sweep::Report;
use vyre_scalar::{binary, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

const VECTORS: &str = include_str!("data/vectors.txt");

fn compute(name: &str, operands: &[u64]) -> u64 {
    match operands {
        [x] => {
            let op = UnaryOp::ALL.iter().find(|op| op.to_string() == name).unwrap_or_else(|| panic!("no function `{name}`"));
            unary(*op, Scalar::F32, FloatMode::Ieee, *x)
        }
        [x, y] if name == "pow" => binary(BinaryOp::Pow, Scalar::F32, FloatMode::Ieee, *x, *y),
        other => panic!("`{name}` of {} operands", other.len()),
    }
}

#[test]
fn elementary_functions_equal_mpfr_on_the_vectors() {
    let mut reports: Vec<(&str, u32, Report)> = vec![];
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        if !line.contains(' ') {
            reports.push((line, 0, Report::new(format!("{line}, vectors of MPFR"))));
            continue;
        }
        let words: Vec<u64> = line.split(' ').map(|word| u64::from_str_radix(word, 16).expect("hexadecimal words")).collect();
        let (expected, operands) = words.split_last().expect("a line has words");
        let (name, count, report) = reports.last_mut().expect("a function's name comes first");
        *count += 1;
        report.check(compute(name, operands), *expected, || format!("{name} {operands:x?}"));
    }
    let mut names = vec![];
    for (name, count, report) in reports {
        report.finish();
        assert!(count >= 1000, "{name}: {count} vectors");
        names.push(name);
    }
    assert_eq!(names, ["exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "atan", "rsqrt", "pow"]);
}
