// Conversions: integers of 32 bits (signed ones as their patterns), of 64 bits (low word first), and the small formats of memory.

// The integer part of a magnitude below 2^64.
fn vy_whole64(a: u32) -> vec2<u32> {
  let significand = (a & 0x007fffffu) | 0x00800000u;
  let shift = i32((a >> 23u) & 0xffu) - 150;
  let up = vy_shift_left64(vec2<u32>(significand, 0u), u32(clamp(shift, 0, 40)));
  return select(up, vec2<u32>(significand >> u32(clamp(-shift, 0, 31)), 0u), shift < 0);
}

fn vy_u32_from_f32(a: u32) -> u32 {
  // From 2^32 up all bits; a negative pattern is above all of these.
  let whole = select(vy_whole64(a).x, 0xffffffffu, a >= 0x4f800000u);
  return select(whole, 0u, a >= VY_SIGN || a == VY_NAN);
}

fn vy_i32_from_f32(a: u32) -> u32 {
  let negative = a >> 31u;
  let whole = select(vy_whole64(a).x, 0x7fffffffu + negative, vy_magnitude(a) >= 0x4f000000u);
  return select((whole ^ (0u - negative)) + negative, 0u, a == VY_NAN);
}

fn vy_u64_from_f32(a: u32) -> vec2<u32> {
  let whole = select(vy_whole64(a), vec2<u32>(0xffffffffu), a >= 0x5f800000u);
  return select(whole, vec2<u32>(), a >= VY_SIGN || a == VY_NAN);
}

// The negative of an integer of 64 bits if `negative` is 1.
fn vy_negate64(a: vec2<u32>, negative: u32) -> vec2<u32> {
  return vy_add64(a ^ vec2<u32>(0u - negative), vec2<u32>(negative, 0u));
}

fn vy_i64_from_f32(a: u32) -> vec2<u32> {
  let negative = a >> 31u;
  let end = vec2<u32>(0xffffffffu + negative, 0x7fffffffu + negative);
  let whole = select(vy_whole64(a), end, vy_magnitude(a) >= 0x5f000000u);
  return select(vy_negate64(whole, negative), vec2<u32>(), a == VY_NAN);
}

fn vy_f32_from_u64(a: vec2<u32>) -> u32 {
  return select(vy_pack64(a, 0), 0u, (a.x | a.y) == 0u);
}

fn vy_f32_from_i64(a: vec2<u32>) -> u32 {
  let negative = a.y >> 31u;
  return vy_f32_from_u64(vy_negate64(a, negative)) | (negative << 31u);
}

fn vy_f32_from_u32(a: u32) -> u32 {
  let up = countLeadingZeros(a) & 31u;
  let n = a << up;
  return select(vy_pack(157 - i32(up), (n >> 1u) | (n & 1u)), 0u, a == 0u);
}

fn vy_f32_from_i32(a: u32) -> u32 {
  let negative = a >> 31u;
  return vy_f32_from_u32((a ^ (0u - negative)) + negative) | (negative << 31u);
}

fn vy_f32_from_bool(a: bool) -> u32 {
  return select(0u, VY_ONE, a);
}

// The value of a pattern of so many bits: its stored significand bits, the exponent field of 1, the largest finite pattern, and that
// of the infinity (above all patterns if there is none).
fn vy_widen(a: u32, bits: u32, fraction: u32, bias: u32, largest: u32, infinity: u32) -> u32 {
  let magnitude = a & ((1u << (bits - 1u)) - 1u);
  let fields = magnitude << (23u - fraction);
  let up = (countLeadingZeros(fields) - 8u) & 31u;
  // Subnormals are normal in f32, except where the exponents are the same.
  let subnormal = magnitude < (1u << fraction) && bias < 127u;
  let number = select(fields + ((127u - bias) << 23u), ((127u - bias - up) << 23u) + (fields << up), subnormal);
  let value = select(select(number, 0u, magnitude == 0u), VY_INF, magnitude == infinity);
  let sign = (a >> (bits - 1u)) << 31u;
  return select(value | sign, VY_NAN, magnitude > largest && magnitude != infinity);
}

// The nearest pattern, with what is stored past the largest, and for NaN.
fn vy_narrow(a: u32, bits: u32, fraction: u32, bias: u32, largest: u32, overflow: u32, nan: u32) -> u32 {
  let x = vy_magnitude(a);
  let field = max(x >> 23u, 1u);
  let significand = (x & 0x007fffffu) | (u32(x >= 0x00800000u) << 23u);
  // The field there, where values below field 1 keep its exponent and lose bits instead.
  let target_field = u32(max(i32(field + bias) - 127, 1));
  let cut = 23u - fraction + (target_field + 127u - bias - field);
  // From 25 bits up less than half a unit is left.
  let s = min(cut, 25u);
  let kept = significand >> s;
  let rest = significand - (kept << s);
  let half = (1u << s) >> 1u;
  let nearest = kept + u32(rest > half || (rest == half && (kept & 1u) == 1u));
  let pattern = ((target_field - 1u) << fraction) + nearest;
  let stored = select(pattern, overflow, pattern > largest || x >= VY_INF);
  return select(stored | ((a >> 31u) << (bits - 1u)), nan, a == VY_NAN);
}
