//! Small kernels around the border of what can be proven: indices that are sums of ids, guards, tiles, loops with and without barriers.
//!
//! The generator of the crate keeps its invocations apart by a discipline, and breaks it on purpose in ways that nobody would take for a
//! proof. Here most kernels almost keep apart: a factor is one too small, a barrier is missing, a product may wrap.

pub mod covering;

use std::fmt::Write;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::text;
use vyre_worker::Case;

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

struct Maker {
    rng: Rng,
    size: [u64; 2],
    /// Counters in scope, and names that were given.
    counters: Vec<String>,
    names: u32,
    out: String,
    depth: usize,
}

/// The kernel with this number, if it is a valid program.
pub fn kernel(number: u64) -> Option<Case> {
    let mut rng = Rng(number);
    let size = [[4, 1], [8, 1], [4, 2], [2, 4], [1, 1], [16, 1]][rng.below(6) as usize];
    let grid = [1 + rng.below(3) as u32, 1 + rng.below(2) as u32, 1];
    let mut maker = Maker { rng, size, counters: Vec::new(), names: 0, out: String::new(), depth: 1 };
    let _ = write!(
        maker.out,
        "program k {{\n  workgroup {} {}\n  buffer p: read u32 @0\n  buffer a: read_write u32 @1\n  buffer small: read_write u8 @2\n  \
         buffer tile: workgroup u32[64]\n\n  let w = p[0]\n  let h = p[1]\n  let s = 0\n",
        size[0], size[1]
    );
    let statements = 1 + maker.rng.below(4);
    (0..statements).for_each(|_| maker.statement(true));
    maker.out.push_str("}\n");
    let program = text::parse("kernel", &maker.out).unwrap_or_else(|report| panic!("{report}"));
    program.validated().ok()?;
    let mut number = || {
        const NUMBERS: [u32; 14] = [0, 1, 2, 3, 4, 5, 8, 12, 64, 1 << 16, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX];
        NUMBERS[maker.rng.below(NUMBERS.len() as u64) as usize]
    };
    let p: Vec<u8> = (0..8).flat_map(|_| number().to_le_bytes()).collect();
    let mut long = |elements: u64, bytes: u64| vec![3; ((elements + maker.rng.below(64)) * bytes) as usize];
    let inputs = vec![p, long(1, 4), long(1, 1)];
    let config = DispatchConfig { grid_override: Some(grid), ..DispatchConfig::default() };
    Some(Case { program, inputs, config, fuel: 1 << 20 })
}

impl Maker {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }

    fn atom(&mut self) -> String {
        let counter = self.counters.last().cloned().unwrap_or_else(|| "1".into());
        match self.rng.below(16) {
            0..=2 => "gid.x".into(),
            3 => "gid.y".into(),
            4 | 5 => "lid.x".into(),
            6 => "lid.y".into(),
            7 => "wid.x".into(),
            8 => "wid.y".into(),
            9..=11 => counter,
            12 => "w".into(),
            13 => "h".into(),
            _ => "s".into(),
        }
    }

    /// A new value for the variable that all of the kernel assigns to.
    fn assign(&mut self) -> String {
        match self.rng.below(4) {
            0 => "s = s + 1".into(),
            1 => format!("s = {}", self.rng.below(4)),
            2 => "s = w".into(),
            _ => format!("s = {}", self.counters.last().map_or("h", |counter| counter)),
        }
    }

    /// A number around those that make an index one-to-one.
    fn factor(&mut self) -> String {
        let [x, y] = self.size;
        let count = self.rng.below(14);
        match count {
            0 | 1 => x.to_string(),
            2 => y.to_string(),
            3 => (x * y).to_string(),
            4 => (x - 1).to_string(),
            5 => "w".into(),
            6 => "gid_count.x".into(),
            7 => "gid_count.y".into(),
            8 => "wid_count.x".into(),
            9 => "4294967295".into(),
            10 => "2147483648".into(),
            11 => "1073741824".into(),
            12 => "65536".into(),
            _ => self.rng.below(5).to_string(),
        }
    }

    fn index(&mut self, local: bool) -> String {
        let [x, y] = self.size;
        let whole = format!("lid.y * {x} + lid.x");
        if self.rng.chance(60) {
            let counter = self.counters.last().cloned().unwrap_or_else(|| "0".into());
            return match (local, self.rng.below(8)) {
                (true, 0..=2) => whole,
                (true, 3) => "lid.x".into(),
                (true, 4) => format!("{counter} * {} + {whole}", x * y),
                (true, 5) => format!("({whole}) * 2 + {counter}"),
                (true, 6) => format!("{} - ({whole})", x * y - 1),
                (true, _) => format!("{whole} + {counter}"),
                (false, 0 | 1) => "gid.y * gid_count.x + gid.x".into(),
                (false, 2) => "gid.y * w + gid.x".into(),
                (false, 3) => "gid.x".into(),
                (false, 4) => "(gid.y * gid_count.x + gid.x) * 3 + ".to_string() + &counter,
                (false, 5) => format!("(wid.y * wid_count.x + wid.x) * {} + {whole}", x * y),
                (false, 6) => "wid.y * wid_count.x + wid.x".into(),
                (false, 7) if self.rng.chance(30) => "gid.x + s".into(),
                (false, _) => format!("{counter} * (gid_count.x * gid_count.y) + gid.y * gid_count.x + gid.x"),
            };
        }
        let mut sum = String::new();
        for n in 0..1 + self.rng.below(3) {
            if n > 0 {
                sum.push_str(if self.rng.chance(85) { " + " } else { " - " });
            }
            let atom = self.atom();
            sum.push_str(&atom);
            if self.rng.chance(50) {
                let factor = self.factor();
                let _ = write!(sum, " * {factor}");
            }
        }
        if self.rng.chance(30) {
            let number = self.factor();
            let _ = write!(sum, " + {number}");
        }
        sum
    }

    fn value(&mut self) -> String {
        match self.rng.below(5) {
            0 => "7".into(),
            1 => self.atom(),
            2 => {
                let index = self.index(false);
                format!("a[{index}]")
            }
            3 => {
                let index = self.index(true);
                format!("tile[{index}]")
            }
            _ => "gid.x".into(),
        }
    }

    fn guard(&mut self) -> String {
        let number = self.rng.below(4);
        let counter = self.counters.last().cloned().unwrap_or_else(|| "h".into());
        match self.rng.below(13) {
            0 => "gid.x < w".into(),
            1 => "gid.x < h".into(),
            2 => "lid.x == 0".into(),
            3 => format!("lid.x < {number}"),
            4 => format!("lid.x >= {number}"),
            5 => format!("gid.x == {number}"),
            6 => "lid.x == 0 && lid.y == 0".into(),
            7 => {
                let index = self.index(false);
                format!("{index} < len(a)")
            }
            8 => format!("wid.x == {number}"),
            9 => format!("w > {number}"),
            10 | 11 => format!("{counter} == {number}"),
            _ => format!("gid.x < {number} || gid.y < w"),
        }
    }

    /// A condition that is the same for the whole workgroup.
    fn uniform_guard(&mut self) -> String {
        let number = self.rng.below(3);
        let counter = self.counters.last().cloned().unwrap_or_else(|| "w".into());
        match self.rng.below(4) {
            0 => format!("wid.x == {number}"),
            1 => format!("w > {number}"),
            _ => format!("{counter} == {number}"),
        }
    }

    fn statement(&mut self, uniform: bool) {
        match self.rng.below(24) {
            0..=4 => {
                let (index, value) = (self.index(false), self.value());
                self.line(&format!("a[{index}] = {value}"));
            }
            5..=8 => {
                let (index, value) = (self.index(true), self.value());
                self.line(&format!("tile[{index}] = {value}"));
            }
            9 => {
                let (index, value) = (self.index(false), self.value());
                self.line(&format!("small[{index}] = {value}"));
            }
            10 => {
                let op = self.rng.pick(&["add", "max", "min", "or", "exchange", "sub"]);
                let buffer = self.rng.pick(&["a", "tile"]);
                let (index, value) = (self.index(buffer == "tile"), self.value());
                self.line(&format!("atomic.{op}({buffer}, {index}, {value})"));
            }
            11..=13 if uniform => self.line("barrier"),
            14 if uniform && self.depth == 1 => self.line("barrier.grid"),
            15 | 16 if self.depth < 4 => {
                let guard = self.guard();
                self.line(&format!("if {guard} {{"));
                self.body(false);
                self.line("}");
            }
            17 | 18 if self.depth < 4 => {
                self.names += 1;
                let counter = format!("k{}", self.names);
                let (from, to, same) = match self.rng.below(6) {
                    0..=3 => ("0".to_string(), (1 + self.rng.below(3)).to_string(), true),
                    4 => ("0".into(), "w % 3".into(), true),
                    _ => ("lid.x".into(), "lid.x + 2".into(), false),
                };
                self.line(&format!("for {counter} in {from}..{to} {{"));
                self.counters.push(counter);
                self.body(uniform && same);
                self.counters.pop();
                self.line("}");
            }
            19 if !self.counters.is_empty() => {
                let guard = if uniform && self.rng.chance(70) { self.uniform_guard() } else { self.guard() };
                let way = self.rng.pick(&["break", "continue"]);
                self.line(&format!("if {guard} {{"));
                self.depth += 1;
                if self.rng.chance(50) {
                    let assign = self.assign();
                    self.line(&assign);
                }
                self.line(way);
                self.depth -= 1;
                self.line("}");
            }
            20 => {
                let guard = self.guard();
                self.line(&format!("if {guard} {{"));
                if self.rng.chance(50) {
                    self.line("} else {");
                }
                self.line("  return");
                self.line("}");
            }
            21 | 22 => {
                let assign = self.assign();
                self.line(&assign);
            }
            _ => {
                let (first, second) = (self.index(false), self.index(true));
                self.line(&format!("a[{first}] = tile[{second}]"));
            }
        }
    }

    fn body(&mut self, uniform: bool) {
        self.depth += 1;
        let statements = 1 + self.rng.below(4);
        (0..statements).for_each(|_| self.statement(uniform));
        self.depth -= 1;
    }
}
