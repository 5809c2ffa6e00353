// Division and square root from the device's own, which may be off: a guess of 24 bits, of which the residual is taken modulo 2^32
// and brought into range. Guesses of the quotient may be off by 7 units of the last place, of the root by 10; WGSL allows 2.5 for
// quotients and about 4.5 for roots. Only numbers from 1 to 4 are given to the device, so that it has no exponents to get wrong.

struct VyGuess {
  // 24 bits, rounded down.
  value: u32,
  rest: u32,
}

fn vy_take(guess: VyGuess, amount: u32, step: u32) -> VyGuess {
  let enough = guess.rest >= amount;
  return VyGuess(select(guess.value, guess.value + step, enough), select(guess.rest, guess.rest - amount, enough));
}

// The quotient of two significands, the first (twice the first if it is `less`) not below the second.
fn vy_quotient(n: u32, d: u32, less: bool) -> VyGuess {
  let twice = u32(less);
  let quotient = bitcast<f32>(0x3f000000u + n + (twice << 23u)) / bitcast<f32>(0x3f000000u + d);
  let low = bitcast<u32>(quotient) - 0x3f000008u;
  var guess = VyGuess(low, (n << (23u + twice)) - low * d);
  guess = vy_take(guess, d << 3u, 8u);
  guess = vy_take(guess, d << 2u, 4u);
  guess = vy_take(guess, d << 1u, 2u);
  return vy_take(guess, d, 1u);
}

// The root of a significand, or of twice that.
fn vy_root(n: u32, odd: bool) -> VyGuess {
  let twice = u32(odd);
  let root = sqrt(bitcast<f32>(0x3f000000u + n + (twice << 23u)));
  let low = bitcast<u32>(root) - 0x3f000010u;
  var guess = VyGuess(low, (n << (23u + twice)) - low * low);
  guess = vy_take(guess, (guess.value << 5u) + 256u, 16u);
  guess = vy_take(guess, (guess.value << 4u) + 64u, 8u);
  guess = vy_take(guess, (guess.value << 3u) + 16u, 4u);
  guess = vy_take(guess, (guess.value << 2u) + 4u, 2u);
  return vy_take(guess, (guess.value << 1u) + 1u, 1u);
}

fn vy_div_corrected(a: u32, b: u32) -> u32 {
  let s = vy_number(vy_magnitude(a));
  let t = vy_number(vy_magnitude(b));
  let less = s.significand < t.significand;
  let guess = vy_quotient(s.significand, t.significand, less);
  let half = u32((guess.rest << 1u) >= t.significand);
  let exact = (guess.rest << 1u) == half * t.significand;
  let significand = (guess.value << 7u) | (half << 6u) | u32(!exact);
  return vy_div_special(a, b, vy_pack(s.exponent - t.exponent + 126 - i32(less), significand));
}

// Without subnormals, and with results up to 2^-126 as 0.
fn vy_div_corrected_flushed(a: u32, b: u32) -> u32 {
  let x = vy_magnitude(a);
  let y = vy_magnitude(b);
  let s = (x & 0x007fffffu) | 0x00800000u;
  let t = (y & 0x007fffffu) | 0x00800000u;
  let less = s < t;
  let guess = vy_quotient(s, t, less);
  let exponent = i32(x >> 23u) - i32(y >> 23u) + 126 - i32(less);
  // There are no ties among quotients. The leading bit adds one to the exponent.
  let number = (u32(clamp(exponent, 0, 253)) << 23u) + guess.value + u32((guess.rest << 1u) > t);
  let finite = select(number, 0u, exponent < 0 || number <= 0x00800000u);
  let quotient = select(finite, VY_INF, exponent > 253);
  let zero = x == 0u || y == VY_INF;
  let infinite = y == 0u || x == VY_INF;
  let magnitude = select(select(quotient, 0u, zero), VY_INF, infinite);
  let result = magnitude | ((a ^ b) & (VY_SIGN * u32(magnitude != 0u)));
  return select(result, VY_NAN, max(x, y) > VY_INF || (zero && infinite));
}

fn vy_sqrt_corrected(a: u32) -> u32 {
  let s = vy_number(vy_magnitude(a));
  let odd = (s.exponent & 1) == 0;
  let guess = vy_root(s.significand, odd);
  let exponent = u32((s.exponent - 127 - i32(odd)) >> 1u) + 126u;
  return vy_sqrt_special(a, (exponent << 23u) + guess.value + u32(guess.rest > guess.value));
}

// Without subnormals.
fn vy_sqrt_corrected_flushed(a: u32) -> u32 {
  let field = a >> 23u;
  let odd = (field & 1u) == 0u;
  let guess = vy_root((a & 0x007fffffu) | 0x00800000u, odd);
  let exponent = (field + 125u + (field & 1u)) >> 1u;
  let root = (exponent << 23u) + guess.value + u32(guess.rest > guess.value);
  return select(select(root, a, a == 0u || a == VY_INF), VY_NAN, a > VY_INF);
}
