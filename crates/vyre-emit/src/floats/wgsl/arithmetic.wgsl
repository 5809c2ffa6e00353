// f32 arithmetic in integers: IEEE 754, nearest even, subnormals kept, one NaN.
//
// Values are bit patterns. Signs are put on last, as a bit: no `select` has the sign bit of something in an arm, because a driver
// in use folds `select(c, -1.0, x & sign)` wrongly. No shift is by 32 or more.

const VY_NAN = 0x7fc00000u;
const VY_INF = 0x7f800000u;
const VY_ONE = 0x3f800000u;
const VY_SIGN = 0x80000000u;

fn vy_magnitude(a: u32) -> u32 {
  return a & 0x7fffffffu;
}

// Any pattern as a value: the one NaN.
fn vy_canonicalize(a: u32) -> u32 {
  return select(a, VY_NAN, vy_magnitude(a) > VY_INF);
}

// A value as a value of `floats canonical`.
fn vy_flush(a: u32) -> u32 {
  return select(a, 0u, vy_magnitude(a) <= 0x00800000u);
}

// Shifted right by any amount; the last bit also says whether anything but zeros was cut off.
fn vy_shift_sticky(a: u32, n: u32) -> u32 {
  let s = min(n, 31u);
  let kept = a >> s;
  return kept | u32((kept << s) != a);
}

// The nearest float to significand * 2^(exponent - 156), a magnitude. The leading bit of the significand is bit 30, so that there
// are seven bits below the last place; `exponent` is one less than the exponent field. A significand of 0 is not allowed.
fn vy_pack(exponent: i32, significand: u32) -> u32 {
  let s = vy_shift_sticky(significand, u32(max(-exponent, 0)));
  // A carry out of the fraction goes into the exponent field, where it belongs.
  let magnitude = (u32(max(exponent, 0)) << 23u) + ((s + 0x3fu + ((s >> 7u) & 1u)) >> 7u);
  return select(magnitude, VY_INF, exponent > 253);
}

struct VyNumber {
  // Of 1 <= s < 2; 127 for numbers from 1 to 2. Below 1 for subnormals.
  exponent: i32,
  // From 2^23 to 2^24 - 1.
  significand: u32,
}

// The parts of a finite magnitude other than 0.
fn vy_number(a: u32) -> VyNumber {
  let up = (countLeadingZeros(a) - 8u) & 31u;
  let subnormal = a < 0x00800000u;
  let significand = select((a & 0x007fffffu) | 0x00800000u, a << up, subnormal);
  return VyNumber(select(i32(a >> 23u), 1 - i32(up), subnormal), significand);
}

// The product, low word first.
fn vy_mul_wide(a: u32, b: u32) -> vec2<u32> {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let middle = ah * bl + (low >> 16u);
  let carry = al * bh + (middle & 0xffffu);
  return vec2<u32>((carry << 16u) | (low & 0xffffu), ah * bh + (middle >> 16u) + (carry >> 16u));
}

fn vy_neg(a: u32) -> u32 {
  return a ^ (VY_SIGN * u32(a != VY_NAN));
}

fn vy_abs(a: u32) -> u32 {
  return vy_magnitude(a);
}

fn vy_copysign(a: u32, b: u32) -> u32 {
  return select(vy_magnitude(a) | (b & VY_SIGN), VY_NAN, a == VY_NAN);
}

fn vy_sign(a: u32) -> u32 {
  return select(VY_ONE | (a & VY_SIGN), a, vy_magnitude(a) == 0u || a == VY_NAN);
}

fn vy_add(a: u32, b: u32) -> u32 {
  let swap = vy_magnitude(a) < vy_magnitude(b);
  let large = select(a, b, swap);
  let x = vy_magnitude(large);
  let y = vy_magnitude(select(b, a, swap));
  let differ = ((a ^ b) >> 31u) != 0u;
  let ex = max(x >> 23u, 1u);
  let ey = max(y >> 23u, 1u);
  let mx = ((x & 0x007fffffu) | (u32(x >= 0x00800000u) << 23u)) << 6u;
  let my = ((y & 0x007fffffu) | (u32(y >= 0x00800000u) << 23u)) << 6u;
  let aligned = vy_shift_sticky(my, ex - ey);
  let sum = select(mx + aligned, mx - aligned, differ);
  let up = (countLeadingZeros(sum) - 1u) & 31u;
  let magnitude = select(vy_pack(i32(ex) - i32(up), sum << up), 0u, sum == 0u);
  // What cancels is +0.
  let sign = large & select(VY_SIGN, 0u, differ && sum == 0u);
  let finite = select(magnitude | sign, large, x == VY_INF);
  return select(finite, VY_NAN, x > VY_INF || (differ && y == VY_INF));
}

fn vy_sub(a: u32, b: u32) -> u32 {
  return vy_add(a, vy_neg(b));
}

fn vy_mul(a: u32, b: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  let s = vy_number(x);
  let t = vy_number(y);
  let product = vy_mul_wide(s.significand << 8u, t.significand << 7u);
  let short = product.y < 0x40000000u;
  let high = select(product.y, (product.y << 1u) | (product.x >> 31u), short);
  let rest = select(product.x, product.x << 1u, short);
  let magnitude = vy_pack(s.exponent + t.exponent - 127 - i32(short), high | u32(rest != 0u));
  let zero = x == 0u || y == 0u;
  let infinite = max(x, y) == VY_INF;
  let result = select(select(magnitude, 0u, zero), VY_INF, infinite) | ((a ^ b) & VY_SIGN);
  return select(result, VY_NAN, max(x, y) > VY_INF || (infinite && zero));
}

// The quotient, given its magnitude where both operands are finite and not 0.
fn vy_div_special(a: u32, b: u32, quotient: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  let zero = x == 0u || y == VY_INF;
  let infinite = y == 0u || x == VY_INF;
  let result = select(select(quotient, 0u, zero), VY_INF, infinite) | ((a ^ b) & VY_SIGN);
  return select(result, VY_NAN, max(x, y) > VY_INF || (zero && infinite));
}

fn vy_div(a: u32, b: u32) -> u32 {
  let s = vy_number(vy_magnitude(a));
  // Divisions by 0 are decided later, but take place.
  let t = vy_number(max(vy_magnitude(b), 1u));
  let divisor = t.significand;
  let less = s.significand < divisor;
  // A first digit of 1, then three of eight bits each.
  var rest = select(s.significand, s.significand << 1u, less) - divisor;
  var quotient = 1u;
  for (var i = 0u; i < 3u; i += 1u) {
    let digit = (rest << 8u) / divisor;
    rest = (rest << 8u) - digit * divisor;
    quotient = (quotient << 8u) | digit;
  }
  let significand = (quotient << 6u) | u32(rest != 0u);
  return vy_div_special(a, b, vy_pack(s.exponent - t.exponent + 126 - i32(less), significand));
}

// The square root, given that of a positive number.
fn vy_sqrt_special(a: u32, root: u32) -> u32 {
  let x = vy_magnitude(a);
  return select(select(root, a, x == 0u || a == VY_INF), VY_NAN, x > VY_INF || a > VY_SIGN);
}

fn vy_sqrt(a: u32) -> u32 {
  let s = vy_number(vy_magnitude(a));
  let odd = (s.exponent & 1) == 0;
  // Two bits at a time of significand * 2^25, or twice that, whose root has 25 bits.
  var left = select(s.significand, s.significand << 1u, odd) << 7u;
  var rest = 0u;
  var root = 0u;
  for (var i = 0u; i < 25u; i += 1u) {
    rest = (rest << 2u) | (left >> 30u);
    left = left << 2u;
    let digit = u32(rest >= ((root << 2u) | 1u));
    rest -= digit * ((root << 2u) | 1u);
    root = (root << 1u) | digit;
  }
  let significand = (root << 6u) | u32(rest != 0u);
  return vy_sqrt_special(a, vy_pack(((s.exponent - 127 - i32(odd)) >> 1u) + 126, significand));
}

// Of 64 bits, low word first: shifted left by less than 64.
fn vy_shift_left64(a: vec2<u32>, n: u32) -> vec2<u32> {
  let words = select(a, vec2<u32>(0u, a.x), (n & 32u) != 0u);
  let s = n & 31u;
  return vec2<u32>(words.x << s, (words.y << s) | ((words.x >> 1u) >> (31u - s)));
}

// Shifted right by any amount; the last bit also says whether anything but zeros was cut off.
fn vy_shift_sticky64(a: vec2<u32>, amount: u32) -> vec2<u32> {
  let n = min(amount, 63u);
  let far = (n & 32u) != 0u;
  let words = select(a, vec2<u32>(a.y, 0u), far);
  let s = n & 31u;
  let cut = ((words.x << 1u) << (31u - s)) | select(0u, a.x, far);
  return vec2<u32>((words.x >> s) | ((words.y << 1u) << (31u - s)) | u32(cut != 0u), words.y >> s);
}

fn vy_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

fn vy_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

fn vy_less64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn vy_leading_zeros64(a: vec2<u32>) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

// The magnitude of an integer of 64 bits other than 0, times 2^scale, rounded once.
fn vy_pack64(a: vec2<u32>, scale: i32) -> u32 {
  let up = vy_leading_zeros64(a) & 63u;
  let n = vy_shift_left64(a, up);
  return vy_pack(189 - i32(up) + scale, (n.y >> 1u) | u32((n.x | (n.y & 1u)) != 0u));
}

fn vy_fma(a: u32, b: u32, c: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  let z = vy_magnitude(c);
  let s = vy_number(x);
  let t = vy_number(y);
  let u = vy_number(z);
  let no_product = x == 0u || y == 0u;
  let no_addend = z == 0u;
  // Both with the leading bit at 61 (the product: or 60) of 64, so that the sum has room and the product is exact. A zero is far
  // below everything.
  let product = select(vy_mul_wide(s.significand << 7u, t.significand << 7u), vec2<u32>(), no_product);
  let addend = vec2<u32>(0u, select(u.significand << 6u, 0u, no_addend));
  let ep = select(s.exponent + t.exponent - 126, -1000, no_product);
  let ec = select(u.exponent, -1000, no_addend);
  let p = vy_shift_sticky64(product, u32(max(ec - ep, 0)));
  let q = vy_shift_sticky64(addend, u32(max(ep - ec, 0)));
  let negative_product = (a ^ b) >> 31u;
  let negative_addend = c >> 31u;
  let differ = negative_product != negative_addend;
  let less = vy_less64(p, q);
  let distance = vy_sub64(select(p, q, less), select(q, p, less));
  let sum = select(vy_add64(p, q), distance, differ);
  let zero = (sum.x | sum.y) == 0u;
  let magnitude = select(vy_pack64(sum, max(ep, ec) - 188), 0u, zero);
  // What cancels is +0.
  let negative = select(select(negative_product, negative_addend, less), negative_product & negative_addend, zero);
  let infinite = max(x, y) == VY_INF;
  let finite = select(magnitude | (negative << 31u), c, z == VY_INF);
  let result = select(finite, VY_INF | (negative_product << 31u), infinite);
  let undefined = (infinite && no_product) || (infinite && z == VY_INF && differ);
  return select(result, VY_NAN, max(max(x, y), z) > VY_INF || undefined);
}

// Exact: the dividend's integer is moved up to the divisor's power of two a few bits at a time, reduced after each step.
fn vy_rem(a: u32, b: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  let divisor = max((y & 0x007fffffu) | (u32(y >= 0x00800000u) << 23u), 1u);
  let exponent = max(y >> 23u, 1u) - 1u;
  var rest = ((x & 0x007fffffu) | (u32(x >= 0x00800000u) << 23u)) % divisor;
  var left = max(x >> 23u, 1u) - 1u;
  left = select(0u, left - exponent, x >= y && x < VY_INF);
  for (; left != 0u && rest != 0u; left -= min(left, 8u)) {
    rest = (rest << min(left, 8u)) % divisor;
  }
  let up = min((countLeadingZeros(rest) - 8u) & 31u, exponent);
  let magnitude = select(((exponent - up) << 23u) + (rest << up), 0u, rest == 0u);
  let result = select(magnitude | (a & VY_SIGN), a, x < y);
  return select(result, VY_NAN, x >= VY_INF || y > VY_INF || y == 0u);
}

// An integer whose order is that of the numbers; NaN is above all, and -0 is next below +0.
fn vy_order(a: u32) -> i32 {
  return bitcast<i32>(a ^ (u32(bitcast<i32>(a) >> 31u) >> 1u));
}

fn vy_min(a: u32, b: u32) -> u32 {
  return select(b, a, vy_order(a) < vy_order(b));
}

fn vy_max(a: u32, b: u32) -> u32 {
  return select(select(b, a, vy_order(a) > vy_order(b)), select(a, b, a == VY_NAN), a == VY_NAN || b == VY_NAN);
}

// The same with zeros equal.
fn vy_place(a: u32) -> i32 {
  return select(bitcast<i32>(a), bitcast<i32>(VY_SIGN - a), a >= VY_SIGN);
}

fn vy_eq(a: u32, b: u32) -> bool {
  return vy_place(a) == vy_place(b) && a != VY_NAN;
}

fn vy_ne(a: u32, b: u32) -> bool {
  return !vy_eq(a, b);
}

fn vy_lt(a: u32, b: u32) -> bool {
  return vy_place(a) < vy_place(b) && b != VY_NAN;
}

fn vy_le(a: u32, b: u32) -> bool {
  return vy_place(a) <= vy_place(b) && b != VY_NAN;
}

fn vy_gt(a: u32, b: u32) -> bool {
  return vy_lt(b, a);
}

fn vy_ge(a: u32, b: u32) -> bool {
  return vy_le(b, a);
}

fn vy_is_nan(a: u32) -> bool {
  return a == VY_NAN;
}

fn vy_is_inf(a: u32) -> bool {
  return vy_magnitude(a) == VY_INF;
}

// How many bits of the pattern are below the point, of a magnitude from 1 to 2^23; 0 above.
fn vy_fraction_bits(a: u32) -> u32 {
  return u32(clamp(150 - i32((a >> 23u) & 0xffu), 0, 23));
}

fn vy_trunc(a: u32) -> u32 {
  let x = vy_magnitude(a);
  return select((x >> vy_fraction_bits(a)) << vy_fraction_bits(a), 0u, x < VY_ONE) | (a & VY_SIGN);
}

// The integer part, one further from zero if there is a fraction and `up` says so.
fn vy_trunc_or_next(a: u32, up: bool) -> u32 {
  let x = vy_magnitude(a);
  let whole = vy_magnitude(vy_trunc(a));
  // At 2^23 there are no fractions, so one more is always a bit of the pattern.
  let next = select(whole + (1u << vy_fraction_bits(a)), VY_ONE, x < VY_ONE);
  return select(whole, next, up && whole != x) | (a & VY_SIGN);
}

fn vy_floor(a: u32) -> u32 {
  return vy_trunc_or_next(a, a >= VY_SIGN);
}

fn vy_ceil(a: u32) -> u32 {
  return vy_trunc_or_next(a, a < VY_SIGN);
}

fn vy_round(a: u32) -> u32 {
  let x = vy_magnitude(a);
  let bits = vy_fraction_bits(a);
  let half = (1u << bits) >> 1u;
  let odd = (x >> bits) & u32(bits != 0u);
  let nearest = ((x + half - u32(bits != 0u) + odd) >> bits) << bits;
  // Up to 1/2 it is 0, and above 1.
  return select(nearest, select(0u, VY_ONE, x > 0x3f000000u), x < VY_ONE) | (a & VY_SIGN);
}
