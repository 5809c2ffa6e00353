//! The kernels as one would write them in Rust without a thought about vectors: one invocation after the other, as the program reads.
//! Indices are checked the way of the language: past the end loads 0. What comes out is what every other column is compared with.

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
