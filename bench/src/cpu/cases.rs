//! What is measured: kernels with their inputs and launches, and the same in plain Rust.

use super::plain;
use crate::kernels::{hash, thousands, unit};
use vyre::DispatchConfig;
use vyre::ir::Program;
use vyre::specialization::SpecValue;

/// A kernel as a function: inputs and output as words.
pub type Code = fn(&[&[u32]], &mut [u32]);

/// Makes a case of this name.
pub type Make = fn(&'static str) -> Case;

/// Iterations of `mandelbrot`.
pub const MANDELBROT_STEPS: u32 = 100;
/// Rows and columns of the matrices of `matmul`.
pub const MATMUL_SIDE: usize = 512;

/// Pixels of a row of the image of `blur`.
pub const IMAGE_WIDTH: usize = 2048;

const M: usize = 1 << 20;

/// A kernel and one launch of it.
pub struct Case {
    /// What it is called on the command line and in tables.
    pub name: &'static str,
    /// How much of it one run is.
    pub size: &'static str,
    /// The kernel, with its constants replaced.
    pub program: Program,
    /// The launch.
    pub config: DispatchConfig,
    /// The inputs, in words.
    pub inputs: Vec<Vec<u32>>,
    /// Words of the output.
    pub output: usize,
    /// One invocation after the other, in Rust.
    pub plain: Code,
}

impl Case {
    /// The inputs as a backend takes them.
    pub fn bytes(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(|input| bytemuck::cast_slice(input)).collect()
    }
}

/// The first six make the geometric mean that the goal is about.
pub const FIRST: usize = 6;

/// All of them by name. They are made one at a time: the inputs of all would not fit beside each other.
pub const ALL: [(&str, Make); 13] = [
    ("xor", xor),
    ("mix", mix),
    ("mandelbrot", mandelbrot),
    ("matmul", matmul),
    ("reduction", reduction),
    ("dfa", dfa),
    ("prefix_sum", prefix_sum),
    ("histogram", histogram),
    ("sha256", sha256),
    ("blur", blur),
    ("exp", exp),
    ("sin", sin),
    ("f8_dot", f8_dot),
];

fn words(count: usize, of: fn(u32) -> u32) -> Vec<u32> {
    (0..count as u32).map(of).collect()
}

fn xor(name: &'static str) -> Case {
    flat(name, "16 M", include_str!("../../kernels/xor.vyre"), plain::xor)
        .inputs(vec![words(16 * M, hash), words(16 * M, |i| hash(!i))])
        .launch(16 * M, 16 * M)
}

fn mix(name: &'static str) -> Case {
    flat(name, "1 M x 64 rounds", include_str!("../../kernels/mix.vyre"), plain::mix).inputs(vec![words(M, hash)]).launch(M, M)
}

/// A picture of 1024 x 1024.
fn mandelbrot(name: &'static str) -> Case {
    flat(name, "1 M, 100 steps", include_str!("../../kernels/mandelbrot.vyre"), plain::mandelbrot)
        .constant("limit", MANDELBROT_STEPS)
        .inputs(vec![
            words(M, |i| ((i % 1024) as f32 * (3.0 / 1024.0) - 2.0).to_bits()),
            words(M, |i| ((i / 1024) as f32 * (2.0 / 1024.0) - 1.0).to_bits()),
        ])
        .launch(M, M)
}

fn matmul(name: &'static str) -> Case {
    let area = MATMUL_SIDE * MATMUL_SIDE;
    flat(name, "512 x 512", include_str!("../../kernels/matmul.vyre"), plain::matmul)
        .constant("n", MATMUL_SIDE as u32)
        .inputs(vec![words(area, |i| unit(i).to_bits()), words(area, |i| unit(!i).to_bits())])
        .launch(area, area)
        .grid([MATMUL_SIDE as u32 / 16, MATMUL_SIDE as u32 / 16, 1])
}

fn reduction(name: &'static str) -> Case {
    flat(name, "16 M", include_str!("../../kernels/reduction.vyre"), plain::reduction)
        .inputs(vec![words(16 * M, hash)])
        .launch(16 * M, 16 * M / 256)
}

fn dfa(name: &'static str) -> Case {
    flat(name, "1 M x 64 bytes", include_str!("../../kernels/dfa.vyre"), plain::dfa)
        .inputs(vec![words(M / 4 + 16, hash), words(16 * 256, |i| hash(i) % 16)])
        .launch(M, M)
}

fn prefix_sum(name: &'static str) -> Case {
    flat(name, "16 M, by 256", include_str!("../../kernels/prefix_sum.vyre"), plain::prefix_sum)
        .inputs(vec![words(16 * M, hash)])
        .launch(16 * M, 16 * M)
}

fn histogram(name: &'static str) -> Case {
    flat(name, "16 M, 256 bins", include_str!("../../kernels/histogram.vyre"), plain::histogram)
        .inputs(vec![words(16 * M, hash)])
        .launch(16 * M, 256)
}

/// Messages of 55 bytes, which with their padding are one block.
fn sha256(name: &'static str) -> Case {
    let word = |i: u32| match i % 16 {
        13 => hash(i) & 0x00FF_FFFF | 0x8000_0000,
        14 => 0,
        15 => (55 * 8u32).swap_bytes(),
        _ => hash(i),
    };
    program(name, "1 M messages", thousands(), plain::sha256).inputs(vec![words(16 * M, word)]).launch(M, 8 * M)
}

fn blur(name: &'static str) -> Case {
    let (width, area) = (IMAGE_WIDTH as u32, IMAGE_WIDTH * IMAGE_WIDTH);
    flat(name, "2048 x 2048", include_str!("../../kernels/blur.vyre"), plain::blur)
        .inputs(vec![words(area, |i| unit(i).to_bits()), vec![width, width]])
        .launch(area, area)
        .grid([width / 16, width / 16, 1])
}

fn exp(name: &'static str) -> Case {
    flat(name, "16 M", include_str!("../../kernels/exp.vyre"), plain::exp)
        .inputs(vec![words(16 * M, |i| (unit(i) * 40.0 - 20.0).to_bits())])
        .launch(16 * M, 16 * M)
}

fn sin(name: &'static str) -> Case {
    flat(name, "16 M", include_str!("../../kernels/sin.vyre"), plain::sin)
        .inputs(vec![words(16 * M, |i| (unit(i) * 200.0 - 100.0).to_bits())])
        .launch(16 * M, 16 * M)
}

/// Weights of every value but NaN, with which all sums would be the same.
fn f8_dot(name: &'static str) -> Case {
    let bytes = |i: u32| hash(i).to_le_bytes().map(|byte| if byte & 0x7F == 0x7F { byte ^ 1 } else { byte });
    flat(name, "4096 x 4096", include_str!("../../kernels/f8_dot.vyre"), plain::f8_dot)
        .inputs(vec![
            (0..4 * M as u32).map(|i| u32::from_le_bytes(bytes(i))).collect(),
            words(4096, |i| (unit(i) + 0.5).to_bits()),
            words(4096, |i| (unit(!i) - 0.5).to_bits()),
        ])
        .launch(4096, 4096)
}

fn flat(name: &'static str, size: &'static str, text: &str, plain: Code) -> Case {
    program(name, size, vyre::text::parse(name, text).unwrap_or_else(|report| panic!("{report}")), plain)
}

fn program(name: &'static str, size: &'static str, program: Program, plain: Code) -> Case {
    Case { name, size, program, config: DispatchConfig::default(), inputs: Vec::new(), output: 0, plain }
}

impl Case {
    fn constant(mut self, name: &str, value: u32) -> Case {
        let values = [(name, &SpecValue::U32(value))];
        self.program = vyre::specialize::specialize(&self.program, values).unwrap_or_else(|report| panic!("{report}"));
        self
    }

    fn inputs(mut self, inputs: Vec<Vec<u32>>) -> Case {
        self.inputs = inputs;
        self
    }

    /// So many invocations along x and words of output.
    fn launch(mut self, invocations: usize, output: usize) -> Case {
        let group = self.program.workgroup_size()[0] as usize;
        self.config.grid_override = Some([invocations.div_ceil(group) as u32, 1, 1]);
        let unsized_output = self.program.buffers().iter().find(|buffer| buffer.access.is_output() && buffer.count.is_none());
        if let Some(buffer) = unsized_output {
            self.config.output_counts.insert(buffer.name.to_string(), output as u32);
        }
        self.output = output;
        self
    }

    fn grid(mut self, grid: [u32; 3]) -> Case {
        self.config.grid_override = Some(grid);
        self
    }
}
