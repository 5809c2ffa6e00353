// Integer ops that WGSL has not, or not with our meaning: division that is defined for every divisor, upper halves of products,
// saturation, and everything on 64 bits. A 64-bit number is a vec2<u32>, the low word first. Signed numbers are bits too: `_s` in a name
// says that an op takes them as such. A function is taken into a module only if something there uses it.

fn vyk_lit(x: u32) -> u32 {
    return x;
}

fn vyk_div(x: u32, y: u32) -> u32 {
    return select(x, x / max(y, 1u), y != 0u);
}

fn vyk_rem(x: u32, y: u32) -> u32 {
    return select(0u, x % max(y, 1u), y != 0u);
}

fn vyk_abs(x: u32) -> u32 {
    return select(x, ~x + 1u, (x >> 31u) != 0u);
}

// By magnitudes, so that MIN / -1 is MIN without asking.
fn vyk_div_s(x: u32, y: u32) -> u32 {
    let q = vyk_abs(x) / max(vyk_abs(y), 1u);
    return select(x, select(q, ~q + 1u, ((x ^ y) >> 31u) != 0u), y != 0u);
}

fn vyk_rem_s(x: u32, y: u32) -> u32 {
    let r = vyk_abs(x) % max(vyk_abs(y), 1u);
    return select(0u, select(r, ~r + 1u, (x >> 31u) != 0u), y != 0u);
}

fn vyk_mulhi(x: u32, y: u32) -> u32 {
    let xl = x & 0xffffu;
    let xh = x >> 16u;
    let yl = y & 0xffffu;
    let yh = y >> 16u;
    let low = xl * yl;
    let mid = xh * yl + (low >> 16u);
    let mid2 = xl * yh + (mid & 0xffffu);
    return xh * yh + (mid >> 16u) + (mid2 >> 16u);
}

fn vyk_mulhi_s(x: u32, y: u32) -> u32 {
    return vyk_mulhi(x, y) - select(0u, y, (x >> 31u) != 0u) - select(0u, x, (y >> 31u) != 0u);
}

fn vyk_rotl(x: u32, n: u32) -> u32 {
    return (x << (n & 31u)) | (x >> ((0u - n) & 31u));
}

fn vyk_rotr(x: u32, n: u32) -> u32 {
    return (x >> (n & 31u)) | (x << ((0u - n) & 31u));
}

fn vyk_abs_diff(x: u32, y: u32) -> u32 {
    return select(y - x, x - y, x >= y);
}

fn vyk_abs_diff_s(x: u32, y: u32) -> u32 {
    return select(y - x, x - y, bitcast<i32>(x) >= bitcast<i32>(y));
}

fn vyk_sat_add(x: u32, y: u32) -> u32 {
    let sum = x + y;
    return select(sum, 0xffffffffu, sum < x);
}

fn vyk_sat_sub(x: u32, y: u32) -> u32 {
    return select(0u, x - y, x >= y);
}

fn vyk_sat_add_s(x: u32, y: u32) -> u32 {
    let sum = x + y;
    return select(sum, (x >> 31u) + 0x7fffffffu, ((~(x ^ y) & (x ^ sum)) >> 31u) != 0u);
}

fn vyk_sat_sub_s(x: u32, y: u32) -> u32 {
    let difference = x - y;
    return select(difference, (x >> 31u) + 0x7fffffffu, (((x ^ y) & (x ^ difference)) >> 31u) != 0u);
}

fn vyk_swap_bytes(x: u32) -> u32 {
    return (x << 24u) | ((x & 0xff00u) << 8u) | ((x >> 8u) & 0xff00u) | (x >> 24u);
}

fn vyk64_add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + u32(low < x.x));
}

fn vyk64_sub(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(x.x - y.x, x.y - y.y - u32(x.x < y.x));
}

fn vyk64_neg(x: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(0u - x.x, 0u - x.y - u32(x.x != 0u));
}

fn vyk64_negative(x: vec2<u32>) -> bool {
    return (x.y >> 31u) != 0u;
}

fn vyk64_abs(x: vec2<u32>) -> vec2<u32> {
    return select(x, vyk64_neg(x), vyk64_negative(x));
}

fn vyk64_mul(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(x.x * y.x, vyk_mulhi(x.x, y.x) + x.x * y.y + x.y * y.x);
}

fn vyk64_mulhi(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let middle = vyk64_add(vec2<u32>(x.y * y.x, vyk_mulhi(x.y, y.x)), vec2<u32>(vyk_mulhi(x.x, y.x), 0u));
    let middle2 = vyk64_add(vec2<u32>(x.x * y.y, vyk_mulhi(x.x, y.y)), vec2<u32>(middle.x, 0u));
    let high = vec2<u32>(x.y * y.y, vyk_mulhi(x.y, y.y));
    return vyk64_add(vyk64_add(high, vec2<u32>(middle.y, 0u)), vec2<u32>(middle2.y, 0u));
}

fn vyk64_mulhi_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let none = vec2<u32>(0u, 0u);
    let high = vyk64_sub(vyk64_mulhi(x, y), select(none, y, vyk64_negative(x)));
    return vyk64_sub(high, select(none, x, vyk64_negative(y)));
}

fn vyk64_lt(x: vec2<u32>, y: vec2<u32>) -> bool {
    return x.y < y.y || (x.y == y.y && x.x < y.x);
}

fn vyk64_lt_s(x: vec2<u32>, y: vec2<u32>) -> bool {
    return vyk64_lt(x ^ vec2<u32>(0u, 0x80000000u), y ^ vec2<u32>(0u, 0x80000000u));
}

fn vyk64_shl(x: vec2<u32>, amount: u32) -> vec2<u32> {
    let n = amount & 63u;
    let s = n & 31u;
    // Shifted by 1 and then by 31 - s: a shift by 32 is none.
    let carried = (x.x >> 1u) >> (31u - s);
    return select(vec2<u32>(x.x << s, (x.y << s) | carried), vec2<u32>(0u, x.x << s), n >= 32u);
}

fn vyk64_shr(x: vec2<u32>, amount: u32) -> vec2<u32> {
    let n = amount & 63u;
    let s = n & 31u;
    let carried = (x.y << 1u) << (31u - s);
    return select(vec2<u32>((x.x >> s) | carried, x.y >> s), vec2<u32>(x.y >> s, 0u), n >= 32u);
}

fn vyk64_shr_s(x: vec2<u32>, amount: u32) -> vec2<u32> {
    let flip = vec2<u32>(0u - (x.y >> 31u));
    return vyk64_shr(x ^ flip, amount) ^ flip;
}

fn vyk64_rotl(x: vec2<u32>, n: u32) -> vec2<u32> {
    return vyk64_shl(x, n) | vyk64_shr(x, 0u - n);
}

fn vyk64_rotr(x: vec2<u32>, n: u32) -> vec2<u32> {
    return vyk64_shr(x, n) | vyk64_shl(x, 0u - n);
}

fn vyk64_clz(x: vec2<u32>) -> u32 {
    return select(countLeadingZeros(x.y), 32u + countLeadingZeros(x.x), x.y == 0u);
}

fn vyk64_ctz(x: vec2<u32>) -> u32 {
    return select(countTrailingZeros(x.x), 32u + countTrailingZeros(x.y), x.x == 0u);
}

fn vyk64_popcount(x: vec2<u32>) -> u32 {
    return countOneBits(x.x) + countOneBits(x.y);
}

fn vyk64_reverse_bits(x: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(reverseBits(x.y), reverseBits(x.x));
}

fn vyk64_swap_bytes(x: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(vyk_swap_bytes(x.y), vyk_swap_bytes(x.x));
}

// The quotient of a number of two words by one that has its highest bit, and the remainder; the high word is below the divisor. In halves of
// words, as Knuth has it (algorithm D), without loops.
fn vyk64_div_word(high: u32, low: u32, y: u32) -> vec2<u32> {
    let y1 = y >> 16u;
    let y0 = y & 0xffffu;
    var q1 = high / max(y1, 1u);
    var r1 = high - q1 * y1;
    if (q1 >= 0x10000u || q1 * y0 > ((r1 << 16u) | (low >> 16u))) {
        q1 = q1 - 1u;
        r1 = r1 + y1;
        if (r1 < 0x10000u && (q1 >= 0x10000u || q1 * y0 > ((r1 << 16u) | (low >> 16u)))) {
            q1 = q1 - 1u;
        }
    }
    let rest = ((high << 16u) | (low >> 16u)) - q1 * y;
    var q0 = rest / max(y1, 1u);
    var r0 = rest - q0 * y1;
    if (q0 >= 0x10000u || q0 * y0 > ((r0 << 16u) | (low & 0xffffu))) {
        q0 = q0 - 1u;
        r0 = r0 + y1;
        if (r0 < 0x10000u && (q0 >= 0x10000u || q0 * y0 > ((r0 << 16u) | (low & 0xffffu)))) {
            q0 = q0 - 1u;
        }
    }
    return vec2<u32>((q1 << 16u) + q0, ((rest << 16u) | (low & 0xffffu)) - q0 * y);
}

// Quotient (x, y) and remainder (z, w); the divisor is not 0.
fn vyk64_div_rem(x: vec2<u32>, y: vec2<u32>) -> vec4<u32> {
    if (y.y == 0u) {
        // Two digits by one.
        let s = countLeadingZeros(y.x) & 31u;
        let d = y.x << s;
        let n = vyk64_shl(vec2<u32>(x.x, x.y % max(y.x, 1u)), s);
        let digit = vyk64_div_word(n.y, n.x, d);
        return vec4<u32>(digit.x, x.y / max(y.x, 1u), digit.y >> s, 0u);
    }
    // The quotient is one digit: guessed with the upper words, and one too large at most after the guess was lowered.
    let s = countLeadingZeros(y.y) & 31u;
    let d = vyk64_shl(y, s);
    let half = vyk64_shr(x, 1u);
    let guess = vyk64_div_word(half.y, half.x, d.y).x >> (31u - s);
    let q = guess - u32(guess != 0u);
    let r = vyk64_sub(x, vyk64_mul(vec2<u32>(q, 0u), y));
    if (vyk64_lt(r, y)) {
        return vec4<u32>(q, 0u, r.x, r.y);
    }
    let less = vyk64_sub(r, y);
    return vec4<u32>(q + 1u, 0u, less.x, less.y);
}

fn vyk64_or_one(y: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(y.x | u32((y.x | y.y) == 0u), y.y);
}

fn vyk64_div(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    // By 1 if by 0: x / 0 is x.
    return vyk64_div_rem(x, vyk64_or_one(y)).xy;
}

fn vyk64_rem(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    // By 1 if by 0: x % 0 is 0.
    return vyk64_div_rem(x, vyk64_or_one(y)).zw;
}

fn vyk64_div_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let q = vyk64_div(vyk64_abs(x), vyk64_abs(y));
    return select(q, vyk64_neg(q), ((x.y ^ y.y) >> 31u) != 0u);
}

fn vyk64_rem_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let r = vyk64_rem(vyk64_abs(x), vyk64_abs(y));
    return select(r, vyk64_neg(r), vyk64_negative(x));
}

fn vyk64_min(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(y, x, vyk64_lt(x, y));
}

fn vyk64_max(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(x, y, vyk64_lt(x, y));
}

fn vyk64_min_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(y, x, vyk64_lt_s(x, y));
}

fn vyk64_max_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(x, y, vyk64_lt_s(x, y));
}

fn vyk64_abs_diff(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(vyk64_sub(x, y), vyk64_sub(y, x), vyk64_lt(x, y));
}

fn vyk64_abs_diff_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(vyk64_sub(x, y), vyk64_sub(y, x), vyk64_lt_s(x, y));
}

fn vyk64_sat_add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sum = vyk64_add(x, y);
    return select(sum, vec2<u32>(0xffffffffu), vyk64_lt(sum, x));
}

fn vyk64_sat_sub(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return select(vyk64_sub(x, y), vec2<u32>(0u), vyk64_lt(x, y));
}

fn vyk64_end(x: vec2<u32>) -> vec2<u32> {
    return vec2<u32>((x.y >> 31u) - 1u, (x.y >> 31u) + 0x7fffffffu);
}

fn vyk64_sat_add_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sum = vyk64_add(x, y);
    return select(sum, vyk64_end(x), ((~(x.y ^ y.y) & (x.y ^ sum.y)) >> 31u) != 0u);
}

fn vyk64_sat_sub_s(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let difference = vyk64_sub(x, y);
    return select(difference, vyk64_end(x), (((x.y ^ y.y) & (x.y ^ difference.y)) >> 31u) != 0u);
}

