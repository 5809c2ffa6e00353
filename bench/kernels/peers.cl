// The kernels as OpenCL C, for PoCL: without checks of indices, which these launches do not need. Floats are kept strict.
#pragma OPENCL FP_CONTRACT OFF

__kernel void xor_(__global const uint *a, __global const uint *b, __global uint *out) {
  size_t i = get_global_id(0);
  out[i] = a[i] ^ b[i];
}

__kernel void mix_(__global const uint *x, __global uint *out) {
  size_t i = get_global_id(0);
  uint v = x[i];
  for (uint round = 0; round < 64; round++) {
    v ^= v >> 16;
    v *= 0x85ebca6bu;
    v ^= v >> 13;
    v *= 0xc2b2ae35u;
    v ^= v >> 15;
  }
  out[i] = v;
}

__kernel void mandelbrot(__global const float *re, __global const float *im, __global uint *steps) {
  size_t i = get_global_id(0);
  float cr = re[i], ci = im[i], x = 0.0f, y = 0.0f;
  uint n = 0;
  for (uint step = 0; step < 100; step++) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f)
      break;
    y = 2.0f * x * y + ci;
    x = xx - yy + cr;
    n++;
  }
  steps[i] = n;
}

__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void matmul(__global const float *a, __global const float *b,
                                                                        __global float *c) {
  const uint n = 512;
  __local float ta[256], tb[256];
  uint lx = get_local_id(0), ly = get_local_id(1), gx = get_global_id(0), gy = get_global_id(1);
  float sum = 0.0f;
  for (uint tile = 0; tile < n / 16; tile++) {
    ta[ly * 16 + lx] = a[gy * n + tile * 16 + lx];
    tb[ly * 16 + lx] = b[(tile * 16 + ly) * n + gx];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < 16; k++)
      sum = sum + ta[ly * 16 + k] * tb[k * 16 + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[gy * n + gx] = sum;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void reduction(__global const uint *x, __global uint *sums) {
  __local uint tile[256];
  uint l = get_local_id(0);
  tile[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint stride = 128; stride > 0; stride >>= 1) {
    if (l < stride)
      tile[l] += tile[l + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0)
    sums[get_group_id(0)] = tile[0];
}

__kernel void dfa(__global const uint *text, __global const uint *table, __global uint *states) {
  uint i = get_global_id(0);
  uint state = 0;
  for (uint k = 0; k < 64; k++) {
    uint at = i + k;
    uint byte = text[at >> 2] >> (at & 3) * 8 & 255;
    state = table[state * 256 + byte];
  }
  states[i] = state;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void prefix_sum(__global const uint *x, __global uint *sums) {
  __local uint tile[256];
  uint l = get_local_id(0), sum = x[get_global_id(0)];
  tile[l] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint stride = 1; stride < 256; stride <<= 1) {
    if (l >= stride)
      sum += tile[l - stride];
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sums[get_global_id(0)] = sum;
}

__kernel void blur(__global const float *image, __global const uint *size, __global float *blurred) {
  uint w = size[0], h = size[1], x = get_global_id(0), y = get_global_id(1);
  float rows[3];
  for (int d = 0; d < 3; d++) {
    int row = (int)y + d - 1;
    int inside = row >= 0 && row < (int)h;
    uint at = row * w + x;
    float l = inside && x > 0 ? image[at - 1] : 0.0f, m = inside ? image[at] : 0.0f;
    float r = inside && x + 1 < w ? image[at + 1] : 0.0f;
    rows[d] = l + m * 2.0f + r;
  }
  blurred[y * w + x] = (rows[0] + rows[1] * 2.0f + rows[2]) / 16.0f;
}

__kernel void exp_(__global const float *x, __global float *out) {
  size_t i = get_global_id(0);
  out[i] = exp(x[i]);
}

__kernel void sin_(__global const float *x, __global float *out) {
  size_t i = get_global_id(0);
  out[i] = sin(x[i]);
}

float of_f8e4m3(uint code) {
  uint magnitude = code & 0x7f;
  float value = magnitude < 8 ? magnitude * 0x1p-9f : as_float((magnitude << 20) + (120u << 23));
  value = magnitude == 0x7f ? NAN : value;
  return code >> 7 ? -value : value;
}

__kernel void f8_dot(__global const uchar *weights, __global const float *scales, __global const float *x, __global float *y) {
  size_t i = get_global_id(0), rows = get_global_size(0);
  float sum = 0.0f;
  for (uint k = 0; k < 4096; k++)
    sum = sum + of_f8e4m3(weights[k * rows + i]) * x[k];
  y[i] = sum * scales[i];
}

__constant uint rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
__constant uint start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

uint rotr(uint x, uint n) { return x >> n | x << (32 - n); }
uint swap_bytes(uint x) { return as_uint(as_uchar4(x).wzyx); }

__kernel void sha256(__global const uint *blocks, __global uint *digests) {
  size_t i = get_global_id(0);
  uint w[64];
  for (uint k = 0; k < 16; k++)
    w[k] = swap_bytes(blocks[i * 16 + k]);
  for (uint k = 16; k < 64; k++) {
    uint x = w[k - 15], y = w[k - 2];
    w[k] = w[k - 16] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[k - 7] + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
  }
  uint a = start[0], b = start[1], c = start[2], d = start[3], e = start[4], f = start[5], g = start[6], h = start[7];
  for (uint k = 0; k < 64; k++) {
    uint t = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + rounds[k] + w[k];
    uint top = t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t, d = c, c = b, b = a, a = top;
  }
  uint state[8] = {a, b, c, d, e, f, g, h};
  for (uint k = 0; k < 8; k++)
    digests[i * 8 + k] = swap_bytes(state[k] + start[k]);
}
