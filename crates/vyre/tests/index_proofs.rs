//! Kernels with indices at random, most of which race: what is proven of them must be clean in the checked mode.
//!
//! Two kinds: indices into a tile, made of local ids, steps of loops and variables that loops carry, with barriers here and there; and
//! indices into a buffer, made of global ids and of sizes that the launch gives, among them 0, 2³¹ and numbers whose products wrap.
//! `VYRE_INDEX_PROOFS` says how many of each; without it a thousand.

use std::fmt::Write;
use vyre::analysis::determinism::Proof;
use vyre::launch::{LaunchConfig, plan};
use vyre::reference::Options;
use vyre::reference::checked::{Effort, Kind, Verdict, check};

/// Numbers in a row that depends on a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        n ^ (n >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// An expression over these names, of which most are used as they are.
    fn expr(&mut self, names: &[&str], depth: u32) -> String {
        let numbers = ["0", "1", "2", "3", "4", "5", "7", "8", "16"];
        if depth == 0 || self.one_in(4) {
            return if self.one_in(4) { self.one_of(&numbers).into() } else { self.one_of(names).into() };
        }
        let (a, b) = (self.expr(names, depth - 1), self.expr(names, depth - 1));
        let number = self.one_of(&["1", "2", "3", "4", "8"]);
        match self.below(14) {
            0..=3 => format!("({a} + {b})"),
            4 => format!("({a} - {b})"),
            5 | 6 => format!("{a} * {number}"),
            7 => format!("{a} * {b}"),
            8 => format!("({a} ^ {b})"),
            9 => format!("({a} & {number})"),
            10 => format!("({a} >> {})", self.one_of(&["1", "2"])),
            11 => format!("({a} << {})", self.one_of(&["1", "2", "31"])),
            12 => format!("({a} % {})", if self.one_in(2) { number.into() } else { b }),
            _ => format!("({a} / {})", if self.one_in(2) { number.into() } else { b }),
        }
    }

    fn condition(&mut self, names: &[&str]) -> String {
        let (a, b) = (self.expr(names, 1), self.expr(names, 1));
        format!("{a} {} {b}", self.one_of(&["<", "<=", "==", "!=", ">="]))
    }
}

/// A kernel over a tile.
struct Tile {
    dice: Dice,
    text: String,
    vars: u32,
}

impl Tile {
    fn text(seed: u64) -> String {
        let mut dice = Dice(seed);
        let shape = dice.one_of(&["4", "8", "2 2", "4 2", "3", "2 2 2", "1"]);
        let text = format!(
            "program tile {{\n  workgroup {shape}\n  buffer n: uniform u32[2] @0\n  buffer out: output u32 @1\n  buffer tile: workgroup \
             u32[64]\n\n"
        );
        let mut tile = Tile { dice, text, vars: 0 };
        let names: Vec<String> = ["lid.x", "lid.y", "lid.x", "wid.x"].map(String::from).to_vec();
        tile.block(&names, &[], 1, true, 3);
        tile.text.push_str("}\n");
        tile.text
    }

    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(depth));
    }

    /// Statements; whether all invocations get here decides if there may be barriers. Assigned variables are uniform if that is so.
    fn block(&mut self, names: &[String], assigned: &[String], depth: usize, together: bool, more: u32) {
        let mut names = names.to_vec();
        let mut assigned = assigned.to_vec();
        for _ in 0..1 + self.dice.below(4) {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            match self.dice.below(12) {
                0..=2 => {
                    let index = self.dice.expr(&all, 2);
                    self.line(depth, &format!("tile[{index}] = gid.x"));
                }
                3 | 4 => {
                    let index = self.dice.expr(&all, 2);
                    let var = self.vars;
                    self.vars += 1;
                    self.line(depth, &format!("let v{var} = tile[{index}]"));
                    if self.dice.one_in(6) {
                        names.push(format!("v{var}"));
                    }
                }
                5 | 6 if together => self.line(depth, "barrier"),
                7 => {
                    let var = self.vars;
                    self.vars += 1;
                    let value = match self.dice.below(3) {
                        0 => "1".into(),
                        1 => "lid.x".into(),
                        _ => self.dice.expr(&all, 1),
                    };
                    self.line(depth, &format!("let v{var} = {value}"));
                    names.push(format!("v{var}"));
                    assigned.push(format!("v{var}"));
                }
                8 if !assigned.is_empty() => {
                    let var = assigned[self.dice.below(assigned.len())].clone();
                    let value = match self.dice.below(6) {
                        0 => format!("{var} * 2"),
                        1 => format!("{var} / 2"),
                        2 => format!("{var} + 1"),
                        3 | 4 => self.dice.expr(&["lid.x", "1", "3", "n[0]"], 1),
                        _ => self.dice.expr(&all, 1),
                    };
                    self.line(depth, &format!("{var} = {value}"));
                }
                9 if more > 0 => {
                    let condition = if self.dice.one_in(4) { "n[0] < n[1]".into() } else { self.dice.condition(&all) };
                    let uniform = condition == "n[0] < n[1]";
                    self.line(depth, &format!("if {condition} {{"));
                    self.block(&names, &assigned, depth + 1, together && uniform, more - 1);
                    self.line(depth, "}");
                }
                10 | 11 if more > 0 => {
                    let var = self.vars;
                    self.vars += 1;
                    let bound = self.dice.one_of(&["2", "3", "4", "n[0]", "n[1]", "lid.x"]);
                    let uniform = bound != "lid.x";
                    self.line(depth, &format!("for k{var} in 0..{bound} {{"));
                    let mut inner = names.clone();
                    inner.push(format!("k{var}"));
                    inner.push(format!("k{var}"));
                    if self.dice.one_in(4) {
                        let way = self.dice.one_of(&["break", "continue"]);
                        self.line(depth + 1, &format!("if k{var} == n[1] {{\n    {way}\n  }}"));
                    }
                    self.block(&inner, &assigned, depth + 1, together && uniform, more - 1);
                    self.line(depth, "}");
                }
                _ => {}
            }
        }
    }
}

/// A kernel over a buffer.
fn plane(seed: u64) -> String {
    let mut dice = Dice(seed);
    let shape = dice.one_of(&["4", "2 2", "4 2", "2"]);
    let mut text = format!(
        "program plane {{\n  workgroup {shape}\n  buffer n: uniform u32[2] @0\n  buffer out: output u32[256] @1\n\n  let w = n[0]\n  \
         let h = n[1]\n"
    );
    let by = dice.one_of(&["w", "h", "4", "w * h", "8"]);
    let of = dice.one_of(&["gid.x", "gid.x", "gid.y * gid_count.x + gid.x", "wid.x * 4 + lid.x", "gid.x + gid.y"]);
    let _ = writeln!(text, "  let i = {of}\n  let x = i % {by}\n  let y = i / {by}");
    let more = dice.one_of(&["w", "h", "2", "3"]);
    let _ =
        writeln!(text, "  let q = y % {more}\n  let r = y / {more}\n  let s = wid.y * 2 + lid.x\n  let t = wid.x * 4 + lid.y");
    let names = ["x", "y", "q", "r", "gid.x", "gid.y", "i", "s", "t"];
    let sizes = ["w", "h", "4", "8", "gid_count.x", "w * h", "16"];
    let bounds = ["w", "h", "4", "w * h", "8"];
    let guards: Vec<String> = (0..dice.below(3)).map(|_| format!("{} < {}", dice.one_of(&names), dice.one_of(&bounds))).collect();
    if !guards.is_empty() {
        let _ = writeln!(text, "  if {} {{", guards.join(" && "));
    }
    for _ in 0..1 + dice.below(2) {
        let index = match dice.below(4) {
            0 => format!("{} * {} + {}", dice.one_of(&names), dice.one_of(&sizes), dice.one_of(&names)),
            1 => format!(
                "({} * {} + {}) * {} + {}",
                dice.one_of(&names),
                dice.one_of(&sizes),
                dice.one_of(&names),
                dice.one_of(&sizes),
                dice.one_of(&names)
            ),
            2 => dice.one_of(&names).into(),
            _ => dice.expr(&["x", "y", "gid.x", "w", "h", "i", "s"], 2),
        };
        let _ = writeln!(text, "    out[{index}] = gid.x * 16 + gid.y");
    }
    if !guards.is_empty() {
        text.push_str("  }\n");
    }
    text.push_str("}\n");
    text
}

/// How many were proven, of how many launches, and how many launches of programs that are not proven are clean.
#[derive(Default, Debug)]
struct Tally {
    launches: u32,
    proven: u32,
    raced: u32,
}

fn hold(text: &str, sizes: [u32; 2], grid: [u32; 3], tally: &mut Tally) {
    let program = vyre::text::parse("random", text).unwrap_or_else(|report| panic!("{report}"));
    if program.validated().is_err() {
        return;
    }
    let input: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
    let mut launch = LaunchConfig { grid: Some(grid), ..LaunchConfig::default() };
    if program.buffers().iter().any(|buffer| buffer.name.as_str() == "out" && buffer.count.is_none()) {
        launch.output_counts.insert("out".into(), 8);
    }
    let planned = plan(&program, &[8], &launch).unwrap_or_else(|report| panic!("{report}"));
    tally.launches += 1;
    let holds = program.proof_for(&planned, &[&input]).expect("it is valid") == Proof::Holds;
    let options = Options { launch, fuel: 1 << 20, ..Options::default() };
    let effort = Effort { executions: 20, steps: 1 << 18, outcomes: 2, ..Effort::default() };
    // One that takes too long says nothing.
    let Ok(report) = check(&program, &[&input], &options, &effort) else { return };
    let raced = report.findings.iter().any(|finding| matches!(finding.kind, Kind::Race | Kind::Order));
    tally.raced += u32::from(raced);
    tally.proven += u32::from(holds);
    let wrong = holds && (raced || report.verdict != Verdict::Deterministic);
    assert!(
        !wrong,
        "proven for {sizes:?} on {grid:?}, and it is {}\n{text}\n{}",
        report.verdict,
        program.determinism().expect("valid")
    );
}

fn count() -> u64 {
    std::env::var("VYRE_INDEX_PROOFS").map_or(1_000, |count| count.parse().expect("VYRE_INDEX_PROOFS is a number"))
}

#[test]
fn proofs_about_random_tiles_hold() {
    let mut tally = Tally::default();
    for seed in 0..count() {
        let text = Tile::text(seed);
        for sizes in [[0, 3], [2, 1], [3, 5]] {
            hold(&text, sizes, [2, 1, 1], &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.proven > tally.launches / 50 && tally.raced > tally.launches / 5, "both kinds are there: {tally:?}");
}

#[test]
fn proofs_about_random_planes_hold() {
    let mut tally = Tally::default();
    let numbers = [0, 1, 2, 3, 4, 8, 0x10000, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF, 0x4000_0000, 0x1_0001];
    for seed in 0..count() {
        let text = plane(seed);
        let mut dice = Dice(!seed);
        for _ in 0..4 {
            let sizes = [numbers[dice.below(numbers.len())], numbers[dice.below(numbers.len())]];
            let grid = [[2, 1, 1], [1, 2, 1], [2, 2, 1], [3, 1, 1], [1, 1, 1]][dice.below(5)];
            hold(&text, sizes, grid, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.proven > tally.launches / 50 && tally.raced > tally.launches / 5, "both kinds are there: {tally:?}");
}
