// Elementary functions in fixed point, to about 60 bits of the result, so that rounding it gives the correctly rounded one.
//
// No f32 but the exact cases has a result that is closer to the middle between two floats than that: the tests try the hardest that
// there are, and in their long form all operands. Fractions of 64 bits are vec2, of 96 bits with an integer part vec4, the lowest word first.

// The upper half of the product, or one less.
fn vy_mulhi64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let p = vy_mul_wide(a.x, b.y);
  let q = vy_mul_wide(a.y, b.x);
  let middle = vy_add64(vec2<u32>(p.y, 0u), vec2<u32>(q.y + u32(p.x + q.x < q.x), 0u));
  return vy_add64(vy_mul_wide(a.y, b.y), middle);
}

// A polynomial in x from the table, with all signs positive, or with alternating ones.
fn vy_poly(first: u32, terms: u32, x: vec2<u32>, alternating: bool) -> vec2<u32> {
  var sum = vec2<u32>();
  for (var i = 0u; i < terms; i += 1u) {
    let at = first + 2u * i;
    let coefficient = vec2<u32>(vy_table(at), vy_table(at + 1u));
    let rest = vy_mulhi64(sum, x);
    sum = select(vy_add64(coefficient, rest), vy_sub64(coefficient, rest), alternating);
  }
  return sum;
}

fn vy_add128(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let low = vy_add64(a.xy, b.xy);
  let high = vy_add64(a.zw, b.zw);
  return vec4<u32>(low, vy_add64(high, vec2<u32>(u32(vy_less64(low, a.xy)), 0u)));
}

// The negative if `negative` is 1.
fn vy_negate128(a: vec4<u32>, negative: u32) -> vec4<u32> {
  return vy_add128(a ^ vec4<u32>(0u - negative), vec4<u32>(negative, 0u, 0u, 0u));
}

// Shifted right by less than 128.
fn vy_shift_right128(a: vec4<u32>, n: u32) -> vec4<u32> {
  var v = select(a, vec4<u32>(a.zw, 0u, 0u), (n & 64u) != 0u);
  v = select(v, vec4<u32>(v.yzw, 0u), (n & 32u) != 0u);
  let s = n & 31u;
  return (v >> vec4<u32>(s)) | ((vec4<u32>(v.yzw, 0u) << vec4<u32>(1u)) << vec4<u32>(31u - s));
}

// Shifted left by less than 128.
fn vy_shift_left128(a: vec4<u32>, n: u32) -> vec4<u32> {
  var v = select(a, vec4<u32>(0u, 0u, a.xy), (n & 64u) != 0u);
  v = select(v, vec4<u32>(0u, v.xyz), (n & 32u) != 0u);
  let s = n & 31u;
  return (v << vec4<u32>(s)) | ((vec4<u32>(0u, v.xyz) >> vec4<u32>(1u)) >> vec4<u32>(31u - s));
}

fn vy_leading_zeros128(a: vec4<u32>) -> u32 {
  return select(vy_leading_zeros64(a.zw), 64u + vy_leading_zeros64(a.xy), (a.z | a.w) == 0u);
}

// The low 128 bits of the product with a word.
fn vy_mul_word(a: vec4<u32>, b: u32) -> vec4<u32> {
  let p = vy_mul_wide(a.x, b);
  let q = vy_mul_wide(a.y, b);
  let r = vy_mul_wide(a.z, b);
  return vy_add128(vec4<u32>(p, r), vec4<u32>(0u, q, a.w * b));
}

// The magnitude of a number other than 0 with 96 bits after the point, rounded.
fn vy_pack128(a: vec4<u32>) -> u32 {
  let up = vy_leading_zeros128(a);
  let v = vy_shift_left128(a, up & 127u);
  let rest = u32((v.x | v.y) != 0u);
  return vy_pack64(vec2<u32>(v.z | rest, v.w), -32 - i32(up));
}

// a * 2^scale with 96 bits after the point; scale is from -159 to -32.
fn vy_fixed(a: vec2<u32>, scale: i32) -> vec4<u32> {
  return vy_shift_right128(vec4<u32>(0u, 0u, a), u32(-32 - scale));
}

// a / b, both with the leading bit set, as a quotient of so many bits whose first is 1 or the next is; rounded down.
fn vy_ratio(a: vec2<u32>, b: vec2<u32>, bits: u32) -> vec2<u32> {
  let divisor = vy_shift_sticky64(b, 1u);
  var rest = vy_shift_sticky64(a, 1u);
  var quotient = vec2<u32>();
  for (var i = 0u; i < bits; i += 1u) {
    let less = vy_less64(rest, divisor);
    let left = select(vy_sub64(rest, divisor), rest, less);
    rest = vec2<u32>(left.x << 1u, (left.y << 1u) | (left.x >> 31u));
    quotient = vec2<u32>((quotient.x << 1u) | u32(!less), (quotient.y << 1u) | (quotient.x >> 31u));
  }
  return quotient;
}

// 2^(f - 1) for a fraction f.
fn vy_exp2_fraction(f: vec2<u32>) -> vec2<u32> {
  let at = VY_AT_EXP + 2u * (f.y >> 27u);
  let base = vec2<u32>(vy_table(at), vy_table(at + 1u));
  let w = vec2<u32>(f.x << 5u, (f.y << 5u) | (f.x >> 27u));
  let power = vy_mulhi64(vy_poly(VY_AT_EXP_POLY, 9u, w, false), w);
  return vy_add64(base, vy_mulhi64(base, power));
}

// 2^x for x with 64 bits after the point, rounded; the third word is the integer part.
fn vy_exp2_fixed(x: vec4<u32>) -> u32 {
  return vy_pack64(vy_exp2_fraction(x.xy), bitcast<i32>(x.z) - 63);
}

// |x| log2(e) * 2^scale with 64 bits after the point, for 2^-26 <= |x| * 2^scale < 128.
fn vy_times_log2e(x: u32, scale: i32) -> vec4<u32> {
  let at = VY_AT_LOG2E_HALF;
  let significand = (x & 0x007fffffu) | 0x00800000u;
  let product = vy_mul_word(vec4<u32>(vy_table(at), vy_table(at + 1u), vy_table(at + 2u), 0u), significand);
  return vy_shift_right128(product, u32(clamp(181 - scale - i32(x >> 23u), 48, 80)));
}

fn vy_exp(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let negative = a >> 31u;
  let power = vy_exp2_fixed(vy_negate128(vy_times_log2e(x, 0), negative));
  // From 104 up it is out of range; below 2^-26 it rounds to 1.
  let ranged = select(power, VY_INF * (1u - negative), x >= 0x42d00000u);
  return select(select(ranged, VY_ONE, x < 0x32800000u), VY_NAN, a == VY_NAN);
}

fn vy_exp2(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let negative = a >> 31u;
  let significand = (x & 0x007fffffu) | 0x00800000u;
  let fixed = vy_shift_right128(vec4<u32>(0u, 0u, 0u, significand), u32(clamp(182 - i32(x >> 23u), 48, 81)));
  let power = vy_exp2_fixed(vy_negate128(fixed, negative));
  // From 152 up it is out of range; below 2^-26 it rounds to 1.
  let ranged = select(power, VY_INF * (1u - negative), x >= 0x43180000u);
  return select(select(ranged, VY_ONE, x < 0x32800000u), VY_NAN, a == VY_NAN);
}

// The logarithm of the base that the section of the table is for.
//
// x = 2^e m, and with r the reciprocal of a number close to m, and z = m r - 1: log x = e log 2 - log r + log(1 + z). Around 1, on
// either side, e log 2 - log r is 0, so that there the result has a small relative error.
fn vy_log_of(a: u32, at: u32) -> u32 {
  let s = vy_number(a);
  let j = ((s.significand & 0x007fffffu) + 0x00020000u) >> 18u;
  let product = vy_mul_wide(s.significand, vy_table(VY_AT_RECIPROCAL + j));
  let below = product.y < 128u;
  let one = vec2<u32>(0u, 128u);
  // |z| as an integer in units of 2^-39, and with its leading bit first.
  let z = select(vy_sub64(product, one), vy_sub64(one, product), below);
  let up = vy_leading_zeros64(z) & 63u;
  let fraction = vec2<u32>(z.x << 25u, (z.y << 25u) | (z.x >> 7u));
  let series = vy_poly(at + 103u, 12u, fraction, !below);
  let small = vy_fixed(vy_mulhi64(vy_shift_left64(z, up), series), -38 - i32(up));

  let exponent = s.exponent - 127 + i32(j == 32u);
  let two = vec4<u32>(vy_table(at), vy_table(at + 1u), vy_table(at + 2u), vy_table(at + 3u));
  let whole = vy_negate128(vy_mul_word(two, u32(abs(exponent))), u32(exponent < 0));
  let near = at + 4u + 3u * j;
  let large = vy_add128(whole, vec4<u32>(vy_table(near), vy_table(near + 1u), vy_table(near + 2u), 0u));
  let sum = vy_add128(large, vy_negate128(small, u32(below)));
  let negative = sum.w >> 31u;
  let logarithm = vy_pack128(vy_negate128(sum, negative)) | (negative << 31u);

  let ranged = select(select(logarithm, 0u, a == VY_ONE), VY_INF, a == VY_INF);
  return select(select(ranged, VY_NAN, a > VY_INF), VY_INF | VY_SIGN, vy_magnitude(a) == 0u);
}

fn vy_log(a: u32) -> u32 {
  return vy_log_of(a, VY_AT_LOG);
}

fn vy_log2(a: u32) -> u32 {
  return vy_log_of(a, VY_AT_LOG2);
}

struct VyAngle {
  quadrant: u32,
  // Whether the angle is what is missing to the quadrant's beginning, 1 or 0.
  negative: u32,
  // The angle, up to pi/4, is this times 2^scale; the leading bit is the first or the second.
  angle: vec2<u32>,
  scale: i32,
  // The angle with 64 bits after the point.
  fraction: vec2<u32>,
}

// A finite magnitude from 2^-12 up, in quarter turns.
//
// It is m 2^k with an integer m of 24 bits. Bits of 2/pi that times 2^k are 4 or more make whole turns and are left out; the 128 bits
// after those, times m, are the quadrant and its fraction, off by less than 2^-102.
fn vy_reduce(x: u32) -> VyAngle {
  let start = u32(clamp(i32(x >> 23u) - 88, 0, 166));
  let word = VY_AT_TWO_OVER_PI + (start >> 5u);
  let s = start & 31u;
  let high = vec4<u32>(vy_table(word + 3u), vy_table(word + 2u), vy_table(word + 1u), vy_table(word));
  let next = vy_table(word + 4u);
  let bits = (high << vec4<u32>(s)) | ((vec4<u32>(next, high.xyz) >> vec4<u32>(1u)) >> vec4<u32>(31u - s));
  let turns = vy_mul_word(bits, (x & 0x007fffffu) | 0x00800000u);
  // To the nearest multiple of a quarter turn.
  let negative = (turns.w >> 29u) & 1u;
  let quadrant = ((turns.w >> 30u) + negative) & 3u;
  let rest = vy_negate128(turns, negative);
  let distance = vec4<u32>(rest.xyz, rest.w & 0x3fffffffu);
  let up = vy_leading_zeros128(distance) & 127u;
  let quarter = vec2<u32>(vy_table(VY_AT_PI_OVER_4), vy_table(VY_AT_PI_OVER_4 + 1u));
  let angle = vy_mulhi64(vy_shift_left128(distance, up).zw, quarter);
  let fraction = vy_shift_sticky64(angle, max(up, 3u) - 3u);
  return VyAngle(quadrant, negative, angle, -61 - i32(up), fraction);
}

struct VyProduct {
  value: vec2<u32>,
  scale: i32,
}

// The sine, or the cosine, of an angle that is not negative.
fn vy_sine(a: VyAngle, cosine: bool) -> VyProduct {
  let square = vy_mulhi64(a.fraction, a.fraction);
  let half = vy_poly(select(VY_AT_SIN_POLY, VY_AT_COS_POLY, cosine), 12u, square, true);
  let sine = vy_mulhi64(a.angle, half);
  return VyProduct(select(sine, half, cosine), select(a.scale + 1, -63, cosine));
}

// The sine of an angle so many quarter turns further on.
fn vy_sine_from(a: u32, quarters: u32) -> u32 {
  let angle = vy_reduce(vy_magnitude(a));
  let quadrant = angle.quadrant + quarters;
  let cosine = (quadrant & 1u) != 0u;
  let value = vy_sine(angle, cosine);
  let negative = (quadrant >> 1u) ^ (angle.negative & u32(!cosine));
  return vy_pack64(value.value, value.scale) | ((negative & 1u) << 31u);
}

fn vy_sin(a: u32) -> u32 {
  let x = vy_magnitude(a);
  // Below 2^-12 it rounds to the angle.
  let sine = select(vy_sine_from(a, 0u) ^ (a & VY_SIGN), a, x < 0x39800000u);
  return select(sine, VY_NAN, x >= VY_INF);
}

fn vy_cos(a: u32) -> u32 {
  let x = vy_magnitude(a);
  return select(select(vy_sine_from(a, 1u), VY_ONE, x < 0x39800000u), VY_NAN, x >= VY_INF);
}

// a / b, rounded.
fn vy_pack_ratio(a: VyProduct, b: VyProduct) -> u32 {
  let up = vy_leading_zeros64(a.value) & 63u;
  let over = vy_leading_zeros64(b.value) & 63u;
  let ratio = vy_ratio(vy_shift_left64(a.value, up), vy_shift_left64(b.value, over), 32u);
  // A quotient is never exact.
  return vy_pack64(vec2<u32>(ratio.x | 1u, ratio.y), a.scale - b.scale - i32(up) + i32(over) - 31);
}

fn vy_tan(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let angle = vy_reduce(x);
  let sine = vy_sine(angle, false);
  let cosine = vy_sine(angle, true);
  let odd = (angle.quadrant & 1u) != 0u;
  var above = sine;
  var below = cosine;
  if odd {
    above = cosine;
    below = sine;
  }
  let sign = ((angle.negative ^ angle.quadrant) << 31u) ^ (a & VY_SIGN);
  // Below 2^-12 it rounds to the angle.
  let tangent = select(vy_pack_ratio(above, below) | sign, a, x < 0x39800000u);
  return select(tangent, VY_NAN, x >= VY_INF);
}

fn vy_tanh(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let significand = (x & 0x007fffffu) | 0x00800000u;
  let field = i32(x >> 23u);
  // Below 1/8 from the series, else (1 - t) / (1 + t) with t = e^(-2x), all of these with 63 bits after the point.
  let square = vy_fixed(vy_mul_wide(significand, significand), clamp(2 * field - 300, -159, -54));
  let series = vy_mulhi64(vec2<u32>(0u, significand << 8u), vy_poly(VY_AT_TANH_POLY, 10u, square.yz, true));
  let power = vy_negate128(vy_times_log2e(x, 1), 1u);
  let t = vy_shift_sticky64(vy_exp2_fraction(power.xy), u32(-bitcast<i32>(power.z)));
  let one = vec2<u32>(0u, VY_SIGN);
  let ratio = vy_pack_ratio(VyProduct(vy_sub64(one, t), 0), VyProduct(vy_add64(one, t), 0));
  let value = select(ratio, vy_pack64(series, field - 189), x < 0x3e000000u);
  // Below 2^-12 it rounds to its operand; from 9.1 up to 1.
  let ranged = select(select(value, x, x < 0x39800000u), VY_ONE, x >= 0x4111999au);
  return select(ranged | (a & VY_SIGN), VY_NAN, a == VY_NAN);
}

// With t = |x|, or its reciprocal if that is less, a quotient n / d, and j / 16 close to it:
// atan t = atan(j / 16) + atan((16 n - j d) / (16 d + j n)).
fn vy_atan(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let significand = (x & 0x007fffffu) | 0x00800000u;
  let field = clamp(i32(x >> 23u), 114, 152);
  let large = field >= 127;
  let n = vec2<u32>(select(significand, 0x00800000u, large), 0u);
  let shift = u32(select(150 - field, field - 127, large));
  let d = vy_shift_left64(vec2<u32>(select(1u, significand, large), 0u), shift);
  let thirty_seconds = select(significand >> (u32(145 - field) & 31u), (0x10000000u / significand) >> (shift & 31u), large);
  let j = (thirty_seconds + 1u) >> 1u;

  let above = vy_shift_left64(n, 4u);
  let jd = vy_mul_word(vec4<u32>(d, 0u, 0u), j).xy;
  let negative = vy_less64(above, jd);
  let numerator = select(vy_sub64(above, jd), vy_sub64(jd, above), negative);
  let denominator = vy_add64(vy_shift_left64(d, 4u), vy_mul_wide(n.x, j));
  let up = vy_leading_zeros64(numerator) & 63u;
  let over = vy_leading_zeros64(denominator) & 63u;
  let ratio = vy_ratio(vy_shift_left64(numerator, up), vy_shift_left64(denominator, over), 64u);
  let scale = i32(over) - i32(up) - 63;
  // It is at most 1/31.
  let fraction = vy_shift_sticky64(ratio, u32(clamp(-64 - scale, 0, 63)));
  let half = vy_poly(VY_AT_ATAN_POLY, 8u, vy_mulhi64(fraction, fraction), true);
  let small = vy_fixed(vy_mulhi64(ratio, half), clamp(scale + 1, -159, -32));

  let at = VY_AT_ATAN + 3u * j;
  let near = vec4<u32>(vy_table(at), vy_table(at + 1u), vy_table(at + 2u), 0u);
  let angle = vy_add128(near, vy_negate128(small, u32(negative && (numerator.x | numerator.y) != 0u)));
  let right = vec4<u32>(
    vy_table(VY_AT_PI_OVER_2), vy_table(VY_AT_PI_OVER_2 + 1u), vy_table(VY_AT_PI_OVER_2 + 2u), vy_table(VY_AT_PI_OVER_2 + 3u));
  let sum = select(angle, vy_add128(right, vy_negate128(angle, 1u)), large);
  // Below 2^-13 it rounds to its operand; from 2^26 up to pi/2.
  let ranged = select(select(vy_pack128(sum), x, x < 0x39000000u), 0x3fc90fdbu, x >= 0x4c800000u);
  return select(ranged | (a & VY_SIGN), VY_NAN, a == VY_NAN);
}

// The root of the reciprocal of the significand, of which rounding down takes nothing that rounding would look at.
fn vy_rsqrt(a: u32) -> u32 {
  let s = vy_number(vy_magnitude(a));
  let odd = (s.exponent & 1) == 0;
  // 2^62 / m with 1 <= m < 4, so from 2^60 to 2^62; two bits at a time of its upper 56.
  let ratio = vy_ratio(vec2<u32>(0u, VY_SIGN), vec2<u32>(0u, s.significand << 8u), 63u);
  var left = select(ratio, vy_shift_sticky64(ratio, 1u), odd);
  var rest = 0u;
  var root = 0u;
  for (var i = 0u; i < 28u; i += 1u) {
    rest = (rest << 2u) | (left.y >> 30u);
    left = vy_shift_left64(left, 2u);
    let trial = (root << 2u) | 1u;
    let less = rest < trial;
    rest = select(rest - trial, rest, less);
    root = (root << 1u) | u32(!less);
  }
  let exponent = (s.exponent - 127 - i32(odd)) >> 1u;
  let value = vy_pack64(vec2<u32>((root << 4u) | 1u, 0u), -31 - exponent);
  let ranged = select(value, 0u, a == VY_INF);
  return select(select(ranged, VY_NAN, a > VY_INF), VY_INF | (a & VY_SIGN), vy_magnitude(a) == 0u);
}

fn vy_less128(a: vec4<u32>, b: vec4<u32>) -> bool {
  return vy_less64(a.zw, b.zw) || (all(a.zw == b.zw) && vy_less64(a.xy, b.xy));
}

// (a b + more) / 2^32, rounded down: one step of a long multiplication.
fn vy_mul_add(a: vec4<u32>, b: u32, more: vec4<u32>) -> vec4<u32> {
  let p = vy_mul_wide(a.x, b);
  let q = vy_mul_wide(a.y, b);
  let r = vy_mul_wide(a.z, b);
  let s = vy_mul_wide(a.w, b);
  let low = vy_add128(more, vec4<u32>(p.x, q.x, r.x, s.x));
  return vy_add128(vec4<u32>(p.y, q.y, r.y, s.y), vec4<u32>(low.yzw, u32(vy_less128(low, more))));
}

// The product with a fraction of so many words, which come first in its vector.
fn vy_times(a: vec4<u32>, fraction: vec4<u32>, words: u32) -> vec4<u32> {
  var sum = vec4<u32>();
  var left = fraction;
  for (var i = 0u; i < words; i += 1u) {
    sum = vy_mul_add(a, left.x, sum);
    left = left.yzww;
  }
  return sum;
}

fn vy_table4(at: u32) -> vec4<u32> {
  return vec4<u32>(vy_table(at), vy_table(at + 1u), vy_table(at + 2u), vy_table(at + 3u));
}

// A polynomial in x, of so many words, from the table, of coefficients of 128 bits, on top of one that has the higher powers.
fn vy_poly128(first: u32, terms: u32, x: vec4<u32>, words: u32, higher: vec2<u32>, alternating: bool) -> vec4<u32> {
  var sum = vec4<u32>(0u, 0u, higher);
  for (var i = 0u; i < terms; i += 1u) {
    let rest = vy_times(sum, x, words);
    sum = vy_add128(vy_table4(first + 4u * i), vy_negate128(rest, u32(alternating)));
  }
  return sum;
}

struct VyLong {
  // With its leading bit set.
  value: vec4<u32>,
  scale: i32,
  negative: u32,
}

// log2 of a positive number other than 1, off by less than 2^-118 of itself; as vy_log_of, with twice the words.
fn vy_log2_long(a: u32) -> VyLong {
  let s = vy_number(a);
  let j = ((s.significand & 0x007fffffu) + 0x00020000u) >> 18u;
  let product = vy_mul_wide(s.significand, vy_table(VY_AT_RECIPROCAL + j));
  let below = product.y < 128u;
  let one = vec2<u32>(0u, 128u);
  let z = select(vy_sub64(product, one), vy_sub64(one, product), below);
  let up = vy_leading_zeros64(z) & 63u;
  let fraction = vec2<u32>(z.x << 25u, (z.y << 25u) | (z.x >> 7u));
  let higher = vy_poly(VY_AT_POW_LOG_HIGHER, 10u, fraction, !below);
  let series = vy_poly128(VY_AT_POW_LOG, 10u, vec4<u32>(fraction, 0u, 0u), 2u, higher, !below);
  // Times 2^(26 - up), a fraction.
  let small = vy_times(series, vec4<u32>(vy_shift_left64(z, up), 0u, 0u), 2u);

  let exponent = s.exponent - 127 + i32(j == 32u);
  let near = vy_table4(VY_AT_POW_RECIPROCALS + 4u * j);
  let added = vy_shift_right128(small, clamp(up, 26u, 153u) - 26u);
  let sum = vy_add128(near, vy_negate128(added, u32(below)));
  let carry = select(i32(vy_less128(sum, near)), -i32(vy_less128(near, added)), below);
  let negative = u32(exponent + carry < 0);
  let rest = vy_negate128(sum, negative);
  // Of a negative number the integer part is rounded up, unless there is no fraction.
  let missing = negative & u32(any(sum != vec4<u32>()));
  let whole = u32(abs(exponent + carry)) - missing;
  let down = 32u - countLeadingZeros(whole);
  let left = vy_leading_zeros128(rest) & 127u;
  let joined = vy_shift_right128(rest, down) | vec4<u32>(0u, 0u, 0u, (whole << 1u) << (31u - (down & 31u)));
  let large = select(joined, vy_shift_left128(rest, left), whole == 0u);
  let scale = select(i32(down), -i32(left), whole == 0u) - 128;

  // Around 1 there is nothing but the small part.
  let alone = exponent == 0 && (j & 31u) == 0u;
  let shift = vy_leading_zeros128(small) & 127u;
  return VyLong(
    select(large, vy_shift_left128(small, shift), alone),
    select(scale, -102 - i32(up) - i32(shift), alone),
    select(negative, u32(below), alone));
}

// a to the power of b, of finite numbers with a > 0, a != 1, b != 0.
//
// The exponent b log2 a is off by less than 2^-110, and the power by less than 2^-105 of itself. Powers that are floats or lie in the
// middle between two are taken for such if they are within 2^-100; the others are hardly ever that close: if the 2^62 pairs whose
// power is in range are spread like random numbers, the closest to a middle is 2^-86 away from it.
fn vy_pow_positive(a: u32, b: u32) -> u32 {
  let l = vy_log2_long(a);
  let y = vy_number(vy_magnitude(b));
  let low = l.value.x * y.significand;
  let high = vy_mul_add(l.value, y.significand, vec4<u32>());
  // The product has 151 or 152 bits, of which so many are shifted out to leave 128 after the point.
  let n = 22 - l.scale - y.exponent;
  let far = n >= 32;
  let s = u32(n) & 31u;
  let upper = select(high, vec4<u32>(high.yzw, 0u), far);
  let lower = select(vec4<u32>(low, high.xyz), high, far);
  let fraction = (lower >> vec4<u32>(s)) | ((upper << vec4<u32>(1u)) << vec4<u32>(31u - s));
  let whole = i32(upper.w >> s);
  let negative = l.negative ^ (b >> 31u);
  let f = vy_negate128(fraction, negative);
  let exponent = select(whole, -whole - i32(any(fraction != vec4<u32>())), negative != 0u);

  let x = vec4<u32>(f.xyz, f.w & 0x07ffffffu);
  let higher = vy_poly(VY_AT_POW_EXP_HIGHER, 8u, x.zw, false);
  let series = vy_times(vy_poly128(VY_AT_POW_EXP, 8u, x, 4u, higher, false), x, 4u);
  let base = vy_table4(VY_AT_POW_POWERS + 4u * (f.w >> 27u));
  let power = vy_add128(base, vy_times(base, series, 4u));

  // To a number of 25 bits if there is one that close.
  let moved = vy_add128(power, vec4<u32>(1u << 27u, 0u, 0u, 0u));
  let close = moved.x < (1u << 28u) && (moved.y | moved.z | (moved.w & 127u)) == 0u;
  let over = vy_less128(moved, power);
  let exact = vec2<u32>(0u, select(moved.w, VY_SIGN, over));
  let inexact = vec2<u32>(power.z | 1u, power.w);
  let value = vy_pack64(select(inexact, exact, close), exponent - 63 + i32(close && over));
  // Out of range, or within 2^-40 of 1.
  let ranged = select(value, VY_INF * (1u - negative), n < 14 || whole > 151);
  return select(ranged, VY_ONE, n >= 64);
}

fn vy_pow(a: u32, b: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  // All floats from 2^24 up are even integers.
  let whole = vy_trunc(b) == b;
  let unit = (y >> vy_fraction_bits(b)) & u32(y >= VY_ONE && y < 0x4b800000u);
  // From 1 to 2 the last place before the point is the one that is not stored.
  let odd = whole && ((unit & 1u) == 1u || y == VY_ONE);
  let grows = (x > VY_ONE) == (b < VY_SIGN);
  let end = VY_INF * u32(grows);
  let regular = x != 0u && x < VY_INF && y < VY_INF && x != VY_ONE;
  let magnitude = select(select(end, VY_ONE, x == VY_ONE), vy_pow_positive(x, b), regular);
  let sign = VY_SIGN * u32(a >= VY_SIGN && odd && y < VY_INF);
  let undefined = a == VY_NAN || b == VY_NAN || (a > VY_SIGN && x < VY_INF && !whole);
  return select(select(magnitude | sign, VY_NAN, undefined), VY_ONE, y == 0u || a == VY_ONE);
}
