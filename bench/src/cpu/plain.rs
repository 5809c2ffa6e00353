//! The kernels as one would write them in Rust without a thought about vectors: one invocation after the other, as the program reads.
//! Indices are checked the way of the language: past the end loads 0. What comes out is what every other column is compared with.

use vyre::scalar::elementary;

/// The element, or 0 past the end.
fn at<T: Copy + Default>(from: &[T], i: usize) -> T {
    from.get(i).copied().unwrap_or_default()
}

pub fn xor(inputs: &[&[u32]], out: &mut [u32]) {
    let (a, b) = (inputs[0], inputs[1]);
    for (i, out) in out.iter_mut().enumerate() {
        *out = at(a, i) ^ at(b, i);
    }
}

pub fn mix(inputs: &[&[u32]], out: &mut [u32]) {
    for (i, out) in out.iter_mut().enumerate() {
        let mut v = at(inputs[0], i);
        for _ in 0..64 {
            v ^= v >> 16;
            v = v.wrapping_mul(0x85eb_ca6b);
            v ^= v >> 13;
            v = v.wrapping_mul(0xc2b2_ae35);
            v ^= v >> 15;
        }
        *out = v;
    }
}

pub fn mandelbrot(inputs: &[&[u32]], steps: &mut [u32]) {
    for (i, steps) in steps.iter_mut().enumerate() {
        let [cr, ci] = [inputs[0], inputs[1]].map(|input| f32::from_bits(at(input, i)));
        let (mut x, mut y, mut n) = (0.0f32, 0.0f32, 0);
        for _ in 0..super::cases::MANDELBROT_STEPS {
            let (xx, yy) = (x * x, y * y);
            if xx + yy > 4.0 {
                break;
            }
            y = 2.0 * x * y + ci;
            x = xx - yy + cr;
            n += 1;
        }
        *steps = n;
    }
}

/// Workgroup by workgroup, with the tiles that the kernel has.
pub fn matmul(inputs: &[&[u32]], c: &mut [u32]) {
    const N: usize = super::cases::MATMUL_SIDE;
    let load = |input: usize, i: usize| f32::from_bits(at(inputs[input], i));
    for group in 0..(N / 16) * (N / 16) {
        let (top, left) = (group / (N / 16) * 16, group % (N / 16) * 16);
        let (mut ta, mut tb, mut sum) = ([[0.0f32; 16]; 16], [[0.0f32; 16]; 16], [[0.0f32; 16]; 16]);
        for tile in 0..N / 16 {
            for y in 0..16 {
                for x in 0..16 {
                    ta[y][x] = load(0, (top + y) * N + tile * 16 + x);
                    tb[y][x] = load(1, (tile * 16 + y) * N + left + x);
                }
            }
            for y in 0..16 {
                for k in 0..16 {
                    for x in 0..16 {
                        sum[y][x] += ta[y][k] * tb[k][x];
                    }
                }
            }
        }
        for y in 0..16 {
            for x in 0..16 {
                c[(top + y) * N + left + x] = sum[y][x].to_bits();
            }
        }
    }
}

/// A tree in an array per workgroup.
pub fn reduction(inputs: &[&[u32]], sums: &mut [u32]) {
    for (group, sum) in sums.iter_mut().enumerate() {
        let mut tile: [u32; 256] = std::array::from_fn(|i| at(inputs[0], group * 256 + i));
        for step in 0..8 {
            let stride = 128 >> step;
            for i in 0..stride {
                tile[i] = tile[i].wrapping_add(tile[i + stride]);
            }
        }
        *sum = tile[0];
    }
}

pub fn dfa(inputs: &[&[u32]], states: &mut [u32]) {
    let (text, table) = (inputs[0], inputs[1]);
    for (i, out) in states.iter_mut().enumerate() {
        let mut state = 0u32;
        for k in 0..64 {
            let place = i + k;
            let byte = at(text, place >> 2) >> ((place & 3) * 8) & 255;
            state = at(table, (state.wrapping_mul(256).wrapping_add(byte)) as usize);
        }
        *out = state;
    }
}

/// Step by step in an array per workgroup.
pub fn prefix_sum(inputs: &[&[u32]], sums: &mut [u32]) {
    for (group, sums) in sums.chunks_mut(256).enumerate() {
        let mut tile: [u32; 256] = std::array::from_fn(|i| at(inputs[0], group * 256 + i));
        for step in 0..8 {
            let stride = 1 << step;
            for i in (stride..256).rev() {
                tile[i] = tile[i].wrapping_add(tile[i - stride]);
            }
        }
        sums.copy_from_slice(&tile[..sums.len()]);
    }
}

pub fn histogram(inputs: &[&[u32]], bins: &mut [u32]) {
    bins.fill(0);
    for value in inputs[0] {
        bins[(value & 255) as usize] += 1;
    }
}

pub fn sha256(inputs: &[&[u32]], digests: &mut [u32]) {
    let (start, constants) = crate::kernels::sha256_constants();
    for (i, digest) in digests.chunks_mut(8).enumerate() {
        let mut w: [u32; 64] = std::array::from_fn(|k| if k < 16 { at(inputs[0], i * 16 + k).swap_bytes() } else { 0 });
        for k in 16..64 {
            let (x, y) = (w[k - 15], w[k - 2]);
            let x = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
            let y = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
            w[k] = w[k - 16].wrapping_add(x).wrapping_add(w[k - 7]).wrapping_add(y);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
        for (constant, w) in constants.iter().zip(w) {
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let t = h.wrapping_add(s1).wrapping_add(e & f ^ !e & g).wrapping_add(*constant).wrapping_add(w);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let top = t.wrapping_add(s0).wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t), c, b, a, top);
        }
        for ((digest, state), start) in digest.iter_mut().zip([a, b, c, d, e, f, g, h]).zip(start) {
            *digest = state.wrapping_add(start).swap_bytes();
        }
    }
}

/// One pixel.
pub fn blurred(image: &[u32], size: &[u32], x: usize, y: usize) -> u32 {
    let w = size[0] as usize;
    // Rows past the edge are out of bounds and 0; before the first that takes a wrap.
    let load = |i: usize| f32::from_bits(at(image, i));
    let (up, here, down) = (y.wrapping_sub(1).wrapping_mul(w).wrapping_add(x), y * w + x, (y + 1) * w + x);
    let left = if x > 0 { 1.0 } else { 0.0 };
    let right = if x + 1 < w { 1.0 } else { 0.0 };
    let row = |at: usize| load(at.wrapping_sub(1)) * left + load(at) * 2.0 + load(at.wrapping_add(1)) * right;
    ((row(up) + row(here) * 2.0 + row(down)) / 16.0).to_bits()
}

pub fn blur(inputs: &[&[u32]], out: &mut [u32]) {
    let (w, h) = (inputs[1][0] as usize, inputs[1][1] as usize);
    for y in 0..h {
        for x in 0..w {
            out[y * w + x] = blurred(inputs[0], inputs[1], x, y);
        }
    }
}

pub fn exp(inputs: &[&[u32]], out: &mut [u32]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = elementary::exp(f32::from_bits(at(inputs[0], i))).to_bits();
    }
}

pub fn sin(inputs: &[&[u32]], out: &mut [u32]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = elementary::sin(f32::from_bits(at(inputs[0], i))).to_bits();
    }
}

/// With a table of the 256 values.
pub fn f8_dot(inputs: &[&[u32]], y: &mut [u32]) {
    let weights: &[u8] = bytemuck::cast_slice(inputs[0]);
    let values: [f32; 256] = std::array::from_fn(|code| {
        let (sign, exponent, fraction) = (code >> 7, code >> 3 & 15, code & 7);
        let magnitude = match (exponent, fraction) {
            (15, 7) => f32::NAN,
            (0, _) => fraction as f32 / 512.0,
            _ => (8 + fraction) as f32 * 2f32.powi(exponent as i32 - 10),
        };
        if sign == 1 { -magnitude } else { magnitude }
    });
    let rows = y.len();
    for (row, y) in y.iter_mut().enumerate() {
        let mut sum = 0.0f32;
        for (k, x) in inputs[2].iter().enumerate() {
            sum += values[at(weights, k * rows + row) as usize] * f32::from_bits(*x);
        }
        let value = sum * f32::from_bits(at(inputs[1], row));
        *y = if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() };
    }
}
