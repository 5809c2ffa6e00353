struct VykBlock {
    zero: u32,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    spare: u32,
    len_b0_x: u32,
    len_b1_y: u32,
}

@group(0) @binding(0) var<uniform> vyk_block: VykBlock;
@group(0) @binding(3) var<storage, read> b0_x: array<u32>;
@group(0) @binding(4) var<storage, read> b1_y: array<u32>;
@group(0) @binding(5) var<storage, read_write> b2_out: array<u32>;

fn b0_x_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b0_x) {
        x = vy_canonicalize(b0_x[i]);
    }
    return x;
}

fn b1_y_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b1_y) {
        x = vy_canonicalize(b1_y[i]);
    }
    return x;
}
const VY_INF = 0x7f800000u;
const VY_NAN = 0x7fc00000u;
const VY_SIGN = 0x80000000u;
struct VyNumber {
  exponent: i32,
  significand: u32,
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
  let sign = large & select(VY_SIGN, 0u, differ && sum == 0u);
  let finite = select(magnitude | sign, large, x == VY_INF);
  return select(finite, VY_NAN, x > VY_INF || (differ && y == VY_INF));
}
fn vy_canonicalize(a: u32) -> u32 {
  return select(a, VY_NAN, vy_magnitude(a) > VY_INF);
}
fn vy_magnitude(a: u32) -> u32 {
  return a & 0x7fffffffu;
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
fn vy_number(a: u32) -> VyNumber {
  let up = (countLeadingZeros(a) - 8u) & 31u;
  let subnormal = a < 0x00800000u;
  let significand = select((a & 0x007fffffu) | 0x00800000u, a << up, subnormal);
  return VyNumber(select(i32(a >> 23u), 1 - i32(up), subnormal), significand);
}
fn vy_pack(exponent: i32, significand: u32) -> u32 {
  let s = vy_shift_sticky(significand, u32(max(-exponent, 0)));
  let magnitude = (u32(max(exponent, 0)) << 23u) + ((s + 0x3fu + ((s >> 7u) & 1u)) >> 7u);
  return select(magnitude, VY_INF, exponent > 253);
}
fn vy_shift_sticky(a: u32, n: u32) -> u32 {
  let s = min(n, 31u);
  let kept = a >> s;
  return kept | u32((kept << s) != a);
}

@compute @workgroup_size(4, 1, 1)
fn main(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, @builtin(local_invocation_index) vyk_local: u32) {
    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);
    let vyk_gid = vyk_wid * vec3<u32>(4u, 1u, 1u) + vyk_lid;
    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>(4u, 1u, 1u);
    let v1: u32 = b0_x_load(vyk_gid.x);
    let v2: u32 = b1_y_load(vyk_gid.x);
    let v3: u32 = vy_mul(v1, v2);
    let v5: u32 = vy_add(v3, 0x3fc00000u);
    if (vyk_gid.x < 3u) {
        b2_out[vyk_gid.x] = v5;
    }
}
