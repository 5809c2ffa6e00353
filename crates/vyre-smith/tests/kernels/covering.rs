//! Small kernels around the border of what writes an output completely: grids that are a little too small, elements that are left out,
//! guards of another index, invocations that leave too early, outputs that somebody reads.

use super::Rng;
use std::fmt::Write;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::launch::plan;
use vyre_foundation::text;
use vyre_worker::Case;

/// An output: its name, its element type, and what is stored, made of `gid.x`.
const OUTPUTS: [(&str, &[(&str, &str)]); 2] = [
    ("out", &[("u32", "gid.x + 1"), ("u8", "gid.x + 1"), ("f32", "f32(gid.x) + 1.0"), ("u64", "u64(gid.x) + 1u64")]),
    ("other", &[("u32", "7"), ("u16", "gid.x + 7"), ("bool", "true")]),
];

struct Maker {
    rng: Rng,
    out: String,
    depth: usize,
    /// By output: the type that was chosen for it.
    types: [usize; 2],
    names: u32,
    /// Whether ids of workgroups may be used: then the shape of workgroups is fixed.
    local: bool,
}

/// The kernel with this number, if it is valid and its launch fits.
pub fn covering(number: u64) -> Option<Case> {
    const SIZES: [[u32; 3]; 10] =
        [[1, 1, 1], [4, 1, 1], [8, 1, 1], [3, 1, 1], [16, 1, 1], [2, 2, 1], [4, 2, 1], [1, 4, 1], [2, 2, 2], [1, 2, 3]];
    let mut rng = Rng(number ^ 0x5EED_C0DE);
    let size = SIZES[rng.below(SIZES.len() as u64) as usize];
    let grid: [u32; 3] = std::array::from_fn(|axis| 1 + rng.below([4, 3, 2][axis]) as u32);
    let types = OUTPUTS.map(|(_, types)| rng.below(types.len() as u64) as usize);
    let local = rng.chance(15);
    let mut maker = Maker { rng, out: String::new(), depth: 1, types, names: 0, local };
    let [x, y, z] = size;
    let _ = write!(maker.out, "program c {{\n  workgroup {x} {y} {z}\n  buffer p: read u32 @0\n");
    for ((name, types), (chosen, binding)) in OUTPUTS.iter().zip(types.iter().zip([1, 2])) {
        let _ = writeln!(maker.out, "  buffer {name}: output {} @{binding}", types[*chosen].0);
    }
    maker.out.push('\n');
    for _ in 0..1 + maker.rng.below(3) {
        maker.part();
    }
    maker.out.push_str("}\n");
    let program = text::parse("kernel", &maker.out).unwrap_or_else(|report| panic!("{report}\n{}", maker.out));
    program.validated().ok()?;

    let mut rng = maker.rng;
    let counts: [u64; 3] = std::array::from_fn(|axis| u64::from(size[axis]) * u64::from(grid[axis]));
    // As many as there are invocations along some axes, times what one of them may store, or nearly so.
    let mut length = || {
        let axes = 1 + rng.below(3) as usize;
        let exact = counts[..axes].iter().product::<u64>() * (1 + rng.below(4));
        match rng.below(8) {
            0 => exact.saturating_sub(1),
            1 => exact + 1,
            2 => rng.below(2),
            3 => exact.saturating_sub(rng.below(5)),
            _ => exact,
        }
    };
    let output_counts = OUTPUTS.iter().map(|(name, _)| ((*name).to_string(), length() as u32)).collect();
    let p: Vec<u8> = (0..4).flat_map(|_| (rng.below(5) as u32).to_le_bytes()).collect();
    // The same invocations along every axis, in other workgroups.
    let other = [[1, 1, 1], [2, 1, 1], [4, 1, 1], [2, 2, 1], [1, 2, 1]][rng.below(5) as usize];
    let mut config = DispatchConfig {
        grid_override: Some(grid),
        output_counts,
        workgroup_override: rng.chance(30).then_some(other),
        ..Default::default()
    };
    if plan(&program, &[16], &config.launch()).is_err() {
        config.workgroup_override = None;
    }
    plan(&program, &[16], &config.launch()).ok()?;
    Some(Case { program, inputs: vec![p], config, fuel: 1 << 20 })
}

impl Maker {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }

    fn block(&mut self, head: &str, body: impl FnOnce(&mut Maker)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    /// The number of an invocation, or nearly.
    fn number(&mut self) -> String {
        let number = match self.rng.below(if self.local { 22 } else { 18 }) {
            0..=5 => "gid.x",
            6..=9 => "gid.y * gid_count.x + gid.x",
            10..=12 => "(gid.z * gid_count.y + gid.y) * gid_count.x + gid.x",
            13 => "gid.y * gid_count.y + gid.x",
            14 => "gid.x * gid_count.y + gid.y",
            15 => "gid.y * p[0] + gid.x",
            16 => "gid.y",
            17 => "gid.z * gid_count.x + gid.x",
            18 => "lid.x",
            19 => "wid.x * lid_count.x + lid.x",
            20 => "wid.x",
            _ => "gid.y * wid_count.x + gid.x",
        };
        number.into()
    }

    /// The element of an output that is one of `per` of an invocation.
    fn index(&mut self, number: &str, per: u64, n: u64) -> String {
        let n = if self.rng.chance(4) { self.rng.below(5) } else { n };
        let factor = match self.rng.below(40) {
            0 => per + 1,
            1 => (1 << 31) + per,
            2 => u64::from(u32::MAX),
            _ => per,
        };
        match (factor, n, self.rng.below(3)) {
            (1, 0, _) => number.to_string(),
            (1, n, _) => format!("{number} + {n}"),
            (2, n, 0) => format!("(({number}) << 1) + {n}"),
            (factor, n, 1) => format!("{n} + {factor} * ({number})"),
            (factor, n, _) => format!("({number}) * {factor} + {n}"),
        }
    }

    fn store(&mut self, output: usize, index: &str) {
        let (name, types) = OUTPUTS[output];
        let value = types[self.types[output]].1;
        self.line(&format!("{name}[{index}] = {value}"));
    }

    /// A condition that keeps an index in an output, or nearly.
    fn guard(&mut self, name: &str, index: &str) -> String {
        match self.rng.below(16) {
            0..=4 => format!("{index} < len({name})"),
            5 | 6 => format!("len({name}) > {index}"),
            7 | 8 => format!("!({index} >= len({name}))"),
            9 => format!("!(len({name}) <= {index})"),
            10 => format!("{index} <= len({name})"),
            11 => format!("{index} + 1 < len({name})"),
            12 => format!("{index} < len(other)"),
            13 => format!("{index} > len({name})"),
            14 => format!("{index} < len({name}) && p[1] < 3"),
            _ => "gid.x >= p[2]".into(),
        }
    }

    /// Something that keeps invocations from what follows, or nothing.
    fn leave(&mut self, name: &str, index: &str) {
        let way = self.rng.pick(&["return", "return", "trap(3)"]);
        match self.rng.below(12) {
            0 | 1 => self.block(&format!("if {index} >= len({name})"), |maker| maker.line(way)),
            2 => self.block(&format!("if {index} < len({name})"), |maker| maker.line(way)),
            3 => self.block(&format!("if len({name}) <= {index}"), |maker| maker.line(way)),
            4 => self.block("if gid.x > p[3] + 6", |maker| maker.line(way)),
            5 => {
                let guard = self.guard(name, index);
                self.line(&format!("if {guard} {{"));
                self.line("} else {");
                self.line(&format!("  {way}"));
                self.line("}");
            }
            6 => {
                let way = self.rng.pick(&["break", "continue", "return"]);
                self.block("for k in 0..p[0]", |maker| maker.block("if k + gid.x == 3", |maker| maker.line(way)));
            }
            _ => {}
        }
    }

    /// Somebody looks at an output.
    fn read(&mut self, output: usize) {
        self.names += 1;
        let (name, names) = (OUTPUTS[output].0, self.names);
        let index = self.rng.pick(&["gid.x", "0", "gid.x + 1", "len(out) - 1"]);
        match self.types[output] {
            0 if self.rng.chance(50) => self.line(&format!("let t{names} = atomic.max({name}, {index}, 5)")),
            _ => self.line(&format!("let t{names} = {name}[{index}]")),
        }
    }

    /// Stores to one of the outputs, and what may keep them from covering it.
    fn part(&mut self) {
        let output = self.rng.below(2) as usize;
        let name = OUTPUTS[output].0;
        let number = self.number();
        let per = [1, 1, 1, 2, 2, 3, 4][self.rng.below(7) as usize];
        if self.rng.chance(4) {
            self.read(output);
        }
        if self.rng.chance(45) {
            let index = self.index(&number, per, 0);
            self.leave(name, &index);
        }
        if self.depth == 1 && self.rng.chance(8) {
            self.line("barrier.grid");
        }
        let mut elements: Vec<u64> = (0..per).collect();
        let turned = self.rng.below(per) as usize;
        elements.rotate_left(turned);
        if self.rng.chance(5) {
            elements.pop();
        }
        let guarded = self.rng.chance(50);
        let within = self.rng.below(14);
        let stores = |maker: &mut Maker| {
            for n in elements {
                let index = maker.index(&number, per, n);
                if guarded {
                    let guard = maker.guard(name, &index);
                    maker.block(&format!("if {guard}"), |maker| maker.store(output, &index));
                } else {
                    maker.store(output, &index);
                }
            }
        };
        match within {
            0 => self.block("for k in 0..p[1]", stores),
            1 => self.block("if p[2] > 1", stores),
            2 => {
                self.line("if p[2] > 1 {");
                self.line("} else {");
                self.depth += 1;
                stores(self);
                self.depth -= 1;
                self.line("}");
            }
            _ => stores(self),
        }
        if self.rng.chance(4) {
            self.read(output);
        }
    }
}
