//! Kernels as people write them, beside straightforward Rust that the compiler may make AVX2 of: what takes more than twice as long there
//! is something that the backend should learn.
//!
//! Both run in turn on one core, as in the table of the first kernels. The Rust is one loop over the invocations, as the kernel reads;
//! indices are checked as slices check them. Both have to give the same bytes.

use super::cases::Case;
use super::{clock, compiled, interleaved};
use crate::kernels::{hash, unit};
use bytemuck::{cast_slice, cast_slice_mut};
use std::arch::x86_64::{_mm256_add_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_mul_ps, _mm256_set1_ps};
use std::num::NonZero;
use std::sync::Arc;
use vyre::cpu::{Options, cpu_device};
use vyre::device::backend;
use vyre::ir::Element;
use vyre::scalar::memory::byte_length;
use vyre::scalar::{elementary, small};
use vyre::{DispatchConfig, OutputBuffers};

/// A kernel as a function: inputs and the output as bytes.
type Plain = fn(&[&[u8]], &mut [u8]);

const M: usize = 1 << 20;

/// Columns of the rows of `softmax`.
const COLUMNS: usize = 64;

/// A kernel with its launch and the same in Rust.
struct Written {
    name: &'static str,
    text: &'static str,
    inputs: fn() -> Vec<Vec<u8>>,
    grid: [usize; 3],
    /// Bytes.
    output: usize,
    plain: Plain,
}

/// Bytes of numbers that are made of their places.
fn of<T: bytemuck::NoUninit>(count: usize, make: impl Fn(u32) -> T) -> Vec<u8> {
    cast_slice(&(0..count as u32).map(make).collect::<Vec<T>>()).to_vec()
}

fn wide(i: u32) -> u64 {
    u64::from(hash(i)) << 32 | u64::from(hash(!i))
}

/// Every number below a power of two once, in no order.
fn shuffled(count: usize) -> Vec<u8> {
    of(count, |i| (i.wrapping_mul(0x9E37_79B1) ^ i >> 7) & (count as u32 - 1))
}

macro_rules! written {
    ($($name:ident [$x:expr, $y:expr] $output:expr; $inputs:expr; |$from:ident, $to:ident| $body:block)*) => {
        $(
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn $name($from: &[&[u8]], $to: &mut [u8]) $body
        )*

        const ALL: &[Written] = &[$(Written {
            name: stringify!($name),
            text: include_str!(concat!("../../kernels/written/", stringify!($name), ".vyre")),
            inputs: || $inputs,
            grid: [$x, $y, 1],
            output: $output,
            // SAFETY: `figures` has looked for the features.
            plain: |from, to| unsafe { $name(from, to) },
        }),*];
    };
}

fn floats(bytes: &[u8]) -> &[f32] {
    cast_slice(bytes)
}

fn numbers(bytes: &[u8]) -> &[u32] {
    cast_slice(bytes)
}

written! {
    saxpy [4 * M / 256, 1] 16 * M; vec![of(4 * M, unit), of(4 * M, |i| unit(!i))]; |from, to| {
        for ((to, x), y) in cast_slice_mut::<_, f32>(to).iter_mut().zip(floats(from[0])).zip(floats(from[1])) {
            *to = 2.5 * x + y;
        }
    }
    dot [256, 1] 65536 * 4; vec![of(4 * M, unit), of(4 * M, |i| unit(!i))]; |from, to| {
        let (a, b) = (floats(from[0]), floats(from[1]));
        let sums: &mut [f32] = cast_slice_mut(to);
        sums.fill(0.0);
        for (a, b) in a.chunks_exact(65536).zip(b.chunks_exact(65536)) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum += a * b;
            }
        }
    }
    transpose [128, 128] 16 * M; vec![of(4 * M, hash)]; |from, to| {
        let (from, to) = (numbers(from[0]), cast_slice_mut::<_, u32>(to));
        for y in 0..2048 {
            for x in 0..2048 {
                to[x * 2048 + y] = from[y * 2048 + x];
            }
        }
    }
    transpose_tiled [128, 128] 16 * M; vec![of(4 * M, hash)]; |from, to| {
        let (from, to) = (numbers(from[0]), cast_slice_mut::<_, u32>(to));
        for top in (0..2048).step_by(16) {
            for left in (0..2048).step_by(16) {
                for y in 0..16 {
                    for x in 0..16 {
                        to[(left + y) * 2048 + top + x] = from[(top + x) * 2048 + left + y];
                    }
                }
            }
        }
    }
    gather [4 * M / 256, 1] 16 * M; vec![of(4 * M, hash), shuffled(4 * M)]; |from, to| {
        let (x, order) = (numbers(from[0]), numbers(from[1]));
        for (to, i) in cast_slice_mut::<_, u32>(to).iter_mut().zip(order) {
            *to = x[*i as usize];
        }
    }
    scatter [4 * M / 256, 1] 16 * M; vec![of(4 * M, hash), shuffled(4 * M)]; |from, to| {
        let to = cast_slice_mut::<_, u32>(to);
        for (x, i) in numbers(from[0]).iter().zip(numbers(from[1])) {
            to[*i as usize] = *x;
        }
    }
    n_body [64, 1] 4096 * 4; vec![of(4096, unit), of(4096, |i| unit(!i)), of(4096, |i| unit(i ^ 77))]; |from, to| {
        let [x, y, m] = [0, 1, 2].map(|n| floats(from[n]));
        for (i, to) in cast_slice_mut::<_, f32>(to).iter_mut().enumerate() {
            let mut sum = 0.0;
            for ((xj, yj), m) in x.iter().zip(y).zip(m) {
                let (dx, dy) = (xj - x[i], yj - y[i]);
                let d = dx * dx + dy * dy + 0.01;
                sum += m * dx / (d * d.sqrt());
            }
            *to = sum;
        }
    }
    life [64, 64] M; vec![of(M, |i| (hash(i) & 1) as u8), of(2, |_| 1024u32)]; |from, to| {
        let (cells, w) = (from[0], numbers(from[1])[0] as usize);
        for y in 0..w {
            for x in 0..w {
                let mut around = 0;
                for dy in 0..3 {
                    for dx in 0..3 {
                        around += cells[(y + dy + w - 1) % w * w + (x + dx + w - 1) % w];
                    }
                }
                let here = cells[y * w + x];
                around -= here;
                to[y * w + x] = u8::from(around == 3 || around == 2 && here == 1);
            }
        }
    }
    segmented_sum [M / 4 / 64, 1] M; vec![of(M / 4 + 1, |i| i * 16 - if i == 0 { 0 } else { hash(i) % 16 }), of(4 * M, hash)]; |from, to| {
        let (starts, values) = (numbers(from[0]), numbers(from[1]));
        for (to, pair) in cast_slice_mut::<_, u32>(to).iter_mut().zip(starts.windows(2)) {
            *to = values[pair[0] as usize..pair[1] as usize].iter().fold(0, |sum: u32, x| sum.wrapping_add(*x));
        }
    }
    sort_pass [4 * M / 64, 1] 16 * M; vec![of(2, |i| [1024u32, 64][i as usize]), of(4 * M, hash)]; |from, to| {
        to.copy_from_slice(from[1]);
        let (pass, keys) = (numbers(from[0]), cast_slice_mut::<_, u32>(to));
        for i in 0..keys.len() {
            let j = i ^ pass[1] as usize;
            if i < j && j < keys.len() && (keys[i] > keys[j]) == (i & pass[0] as usize == 0) {
                keys.swap(i, j);
            }
        }
    }
    brighten [16 * M / 256, 1] 16 * M; vec![of(4 * M, hash)]; |from, to| {
        for (to, x) in to.iter_mut().zip(from[0]) {
            *to = (u32::from(*x) * 5 / 4 + 10).min(255) as u8;
        }
    }
    gray [4 * M / 256, 1] 4 * M; vec![of(3 * M, hash)]; |from, to| {
        for (to, rgb) in to.iter_mut().zip(from[0].as_chunks::<3>().0) {
            let [r, g, b] = rgb.map(u32::from);
            *to = ((r * 77 + g * 150 + b * 29) >> 8) as u8;
        }
    }
    halves [4 * M / 256, 1] 8 * M;
    vec![of(4 * M, |i| small::narrow(&small::F16, unit(i))), of(4 * M, |i| small::narrow(&small::F16, unit(!i)))]; |from, to| {
        let (x, y): (&[u16], &[u16]) = (cast_slice(from[0]), cast_slice(from[1]));
        let widen = |x: &[u16; 8]| _mm256_cvtph_ps(bytemuck::cast(*x));
        let eights = x.as_chunks::<8>().0.iter().zip(y.as_chunks::<8>().0);
        for (to, (x, y)) in cast_slice_mut::<_, u16>(to).as_chunks_mut::<8>().0.iter_mut().zip(eights) {
            let value = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(1.5), widen(x)), widen(y));
            *to = bytemuck::cast(_mm256_cvtps_ph::<0>(value));
        }
    }
    brains [4 * M / 256, 1] 8 * M; vec![of(4 * M, |i| small::narrow(&small::BF16, unit(i) - 0.5))]; |from, to| {
        let x: &[u16] = cast_slice(from[0]);
        for (to, x) in cast_slice_mut::<_, u16>(to).iter_mut().zip(x) {
            let bits = (f32::from_bits(u32::from(*x) << 16) * 0.5).max(0.0).to_bits();
            *to = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16;
        }
    }
    hash64 [2 * M / 256, 1] 16 * M; vec![of(2 * M, wide)]; |from, to| {
        for (to, x) in cast_slice_mut::<_, u64>(to).iter_mut().zip(cast_slice::<_, u64>(from[0])) {
            let h = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let h = (h ^ h >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let h = (h ^ h >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            *to = h ^ h >> 31;
        }
    }
    mum [M / 256, 1] 8 * M; vec![of(M, wide)]; |from, to| {
        for (to, x) in cast_slice_mut::<_, u64>(to).iter_mut().zip(cast_slice::<_, u64>(from[0])) {
            let mut h = *x;
            for _ in 0..4 {
                let (a, b) = (h ^ 0xA076_1D64_78BD_642F, h.wrapping_add(0xE703_7ED1_A0B4_28DB));
                let product = u128::from(a) * u128::from(b);
                h = product as u64 ^ (product >> 64) as u64;
            }
            *to = h;
        }
    }
    rem64 [M / 256, 1] 8 * M; vec![of(M, wide), of(M, |i| wide(i ^ 0x5555) >> (hash(i) % 60) | 1)]; |from, to| {
        let (x, y): (&[u64], &[u64]) = (cast_slice(from[0]), cast_slice(from[1]));
        for ((to, x), y) in cast_slice_mut::<_, u64>(to).iter_mut().zip(x).zip(y) {
            *to = x.checked_rem(*y).unwrap_or(0);
        }
    }
    digits [M / 256, 1] 4 * M; vec![of(M, hash)]; |from, to| {
        for (to, x) in cast_slice_mut::<_, u32>(to).iter_mut().zip(numbers(from[0])) {
            let (mut rest, mut sum) = (*x, 0);
            for _ in 0..10 {
                sum += rest % 10;
                rest /= 10;
            }
            *to = sum;
        }
    }
    divide [4 * M / 256, 1] 16 * M; vec![of(4 * M, hash), of(4 * M, |i| hash(!i) >> (hash(i) % 28) | 1)]; |from, to| {
        for ((to, x), y) in cast_slice_mut::<_, u32>(to).iter_mut().zip(numbers(from[0])).zip(numbers(from[1])) {
            *to = x.checked_div(*y).unwrap_or(*x).wrapping_add(x.checked_rem(*y).unwrap_or(0));
        }
    }
    divide_signed [4 * M / 256, 1] 16 * M; vec![of(4 * M, hash)]; |from, to| {
        for (to, x) in cast_slice_mut::<_, i32>(to).iter_mut().zip(cast_slice::<_, i32>(from[0])) {
            *to = x / 7 + x % 16;
        }
    }
    softmax [32768 / 64, 1] 8 * M; vec![of(2 * M, |i| unit(i) * 8.0)]; |from, to| {
        let rows = floats(from[0]).chunks_exact(COLUMNS);
        for (to, x) in cast_slice_mut::<_, f32>(to).chunks_exact_mut(COLUMNS).zip(rows) {
            let largest = x.iter().fold(x[0], |largest, x| largest.max(*x));
            let sum: f32 = x.iter().fold(0.0, |sum, x| sum + elementary::exp(x - largest));
            for (to, x) in to.iter_mut().zip(x) {
                *to = elementary::exp(x - largest) / sum;
            }
        }
    }
    matvec [2048 / 64, 1] 2048 * 4; vec![of(4 * M, unit), of(2048, unit)]; |from, to| {
        let x = floats(from[1]);
        for (to, row) in cast_slice_mut::<_, f32>(to).iter_mut().zip(floats(from[0]).chunks_exact(x.len())) {
            *to = row.iter().zip(x).fold(0.0, |sum, (a, x)| sum + a * x);
        }
    }
    matmul [32, 32] 65536 * 4; vec![of(65536, unit), of(65536, |i| unit(!i))]; |from, to| {
        let (a, b) = (floats(from[0]), floats(from[1]));
        for (to, a) in cast_slice_mut::<_, f32>(to).chunks_exact_mut(256).zip(a.chunks_exact(256)) {
            to.fill(0.0);
            for (a, b) in a.iter().zip(b.chunks_exact(256)) {
                for (to, b) in to.iter_mut().zip(b) {
                    *to += a * b;
                }
            }
        }
    }
    mean [128, 128] 4 * M; vec![of(M, unit), of(2, |_| 1024u32)]; |from, to| {
        let (image, w) = (floats(from[0]), numbers(from[1])[0] as usize);
        let to: &mut [f32] = cast_slice_mut(to);
        for y in 0..w {
            for x in 0..w {
                let mut sum = 0.0;
                for dy in 0..3 {
                    for dx in 0..3 {
                        let x = ((x + dx).max(1) - 1).min(w - 1);
                        let y = ((y + dy).max(1) - 1).min(w - 1);
                        sum += image[y * w + x];
                    }
                }
                to[y * w + x] = sum / 9.0;
            }
        }
    }
    look_up [4 * M / 256, 1] 4 * M; vec![of(M, hash), of(256, |i| hash(i) as u8)]; |from, to| {
        let table: &[u8; 256] = from[1].try_into().expect("256 bytes");
        for (to, x) in to.iter_mut().zip(from[0]) {
            *to = table[usize::from(*x)];
        }
    }
    points [M / 256, 1] 16 * M; vec![of(4 * M, unit), of(16, unit)]; |from, to| {
        let m = floats(from[1]);
        let points = floats(from[0]).as_chunks::<4>().0;
        for (to, p) in cast_slice_mut::<_, f32>(to).as_chunks_mut::<4>().0.iter_mut().zip(points) {
            for (to, m) in to.iter_mut().zip(m.as_chunks::<4>().0) {
                *to = m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3] * p[3];
            }
        }
    }
    collatz [M / 4 / 256, 1] M; vec![of(M / 4, |i| hash(i) >> 12 | 1)]; |from, to| {
        for (to, x) in cast_slice_mut::<_, u32>(to).iter_mut().zip(numbers(from[0])) {
            let (mut n, mut count) = (*x, 0);
            for _ in 0..256 {
                if n <= 1 {
                    break;
                }
                n = if n % 2 == 0 { n / 2 } else { n.wrapping_mul(3).wrapping_add(1) };
                count += 1;
            }
            *to = count;
        }
    }
    doubles [2 * M / 256, 1] 16 * M; vec![of(2 * M, |i| f64::from(unit(i))), of(2 * M, |i| f64::from(unit(!i)))]; |from, to| {
        let (x, y): (&[f64], &[f64]) = (cast_slice(from[0]), cast_slice(from[1]));
        for ((to, x), y) in cast_slice_mut::<_, f64>(to).iter_mut().zip(x).zip(y) {
            *to = 2.5 * x + y;
        }
    }
    pi [M / 4 / 256, 1] M; vec![of(M / 4, |i| hash(i) | 1)]; |from, to| {
        for (to, seed) in cast_slice_mut::<_, u32>(to).iter_mut().zip(numbers(from[0])) {
            let (mut s, mut count) = (*seed, 0);
            for _ in 0..64 {
                s ^= s << 13;
                s ^= s >> 17;
                s ^= s << 5;
                let (x, y) = ((s >> 16) as f32 / 65536.0, (s & 0xFFFF) as f32 / 65536.0);
                count += u32::from(x * x + y * y < 1.0);
            }
            *to = count;
        }
    }
    heat [2 * M / 128, 1] 8 * M; vec![of(2 * M, unit)]; |from, to| {
        let (from, to) = (floats(from[0]), cast_slice_mut::<_, f32>(to));
        to.fill(0.0);
        for z in 1..127 {
            for y in 1..127 {
                for i in z * 16384 + y * 128 + 1..z * 16384 + y * 128 + 127 {
                    let near = from[i - 1] + from[i + 1] + from[i - 128] + from[i + 128] + from[i - 16384] + from[i + 16384];
                    to[i] = from[i] + 0.1 * (near - 6.0 * from[i]);
                }
            }
        }
    }
    quantize [4 * M / 256, 1] 4 * M; vec![of(4 * M, |i| unit(i) * 2.0 - 1.0)]; |from, to| {
        for (to, x) in to.iter_mut().zip(floats(from[0])) {
            *to = (x * 127.0).clamp(-127.0, 127.0).round_ties_even() as i8 as u8;
        }
    }
    crc [M / 4 / 64, 1] M; vec![of(4 * M, hash), of(256, hash)]; |from, to| {
        let table: &[u32; 256] = numbers(from[1]).try_into().expect("256 words");
        for (to, x) in cast_slice_mut::<_, u32>(to).iter_mut().zip(numbers(from[0]).as_chunks::<16>().0) {
            let mut crc = u32::MAX;
            for mut word in *x {
                for _ in 0..4 {
                    crc = table[((crc ^ word) & 255) as usize] ^ crc >> 8;
                    word >>= 8;
                }
            }
            *to = !crc;
        }
    }
    sum_rows [4 * M / 256, 1] 4 * M / 256 * 4; vec![of(4 * M, unit)]; |from, to| {
        for (to, row) in cast_slice_mut::<_, f32>(to).iter_mut().zip(floats(from[0]).as_chunks::<256>().0) {
            let mut part = [0.0f32; 64];
            for row in row.as_chunks::<64>().0 {
                for (part, x) in part.iter_mut().zip(row) {
                    *part += x;
                }
            }
            let mut stride = 32;
            while stride > 0 {
                for i in 0..stride {
                    part[i] += part[i + stride];
                }
                stride /= 2;
            }
            *to = part[0];
        }
    }
}

impl Written {
    /// Milliseconds in Rust and on the backend, and how the backend ran it.
    fn measure(&self, seconds: f64) -> Result<[f64; 2], String> {
        let program = vyre::text::parse(self.name, self.text).map_err(|report| report.to_string())?;
        let inputs = (self.inputs)();
        let bytes: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut config =
            DispatchConfig { grid_override: Some(self.grid.map(|groups| groups as u32)), ..DispatchConfig::default() };
        for buffer in program.buffers().iter().filter(|buffer| !buffer.access.is_input() && buffer.access.is_output()) {
            let Element::Type(ty) = &buffer.element else { return Err("an output without a type".into()) };
            let size = byte_length(ty, 1).ok_or("an output without a size")?;
            config.output_counts.insert(buffer.name.to_string(), (self.output as u64 / size) as u32);
        }
        let case = Case { name: self.name, size: "", program, config, inputs: Vec::new(), output: 0, plain: |_, _| {} };
        let cpu = compiled(&case, Arc::from(backend(cpu_device(Options { threads: NonZero::new(1), portable: false }))));
        let nothing = DispatchConfig::default();
        let mut expected = vec![0; self.output];
        (self.plain)(&bytes, &mut expected);
        let mut outputs: OutputBuffers = vec![vec![0xA5; self.output]];
        let run = |outputs: &mut OutputBuffers| cpu.dispatch_borrowed_into(&bytes, &nothing, outputs).expect("it runs");
        run(&mut outputs);
        if outputs[0] != expected {
            let n = outputs[0].iter().zip(&expected).position(|(found, expected)| found != expected);
            return Err(format!("byte {n:?} differs from plain Rust, of {} and {}", outputs[0].len(), expected.len()));
        }
        let plain = |outputs: &mut OutputBuffers| (self.plain)(&bytes, &mut outputs[0]);
        let best = interleaved(&mut [Ok(Box::new(plain)), Ok(Box::new(run))], &mut outputs, seconds);
        let milliseconds = |n: usize| best[n].seconds().unwrap_or(f64::NAN) * 1e3;
        Ok([milliseconds(0), milliseconds(1)])
    }
}

/// `vyre-bench written [NAME…]`.
pub fn command(names: &[String]) {
    let features = ["avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt"];
    let found = [
        std::is_x86_feature_detected!("avx2"),
        std::is_x86_feature_detected!("fma"),
        std::is_x86_feature_detected!("f16c"),
        std::is_x86_feature_detected!("bmi1"),
        std::is_x86_feature_detected!("bmi2"),
        std::is_x86_feature_detected!("lzcnt"),
        std::is_x86_feature_detected!("popcnt"),
    ];
    if found != [true; 7] {
        println!("written: this processor does not have all of {features:?}");
        return;
    }
    let _pinned = clock::pin();
    println!("{:<16} {:>9} {:>9}  cpu/Rust", "written", "Rust, ms", "cpu, ms");
    for written in ALL.iter().filter(|written| names.is_empty() || names.iter().any(|name| name == written.name)) {
        match written.measure(0.3) {
            Ok([plain, cpu]) => println!("{:<16} {plain:>9.3} {cpu:>9.3}  x{:.2}", written.name, cpu / plain),
            Err(why) => println!("{:<16} {why}", written.name),
        }
    }
}
