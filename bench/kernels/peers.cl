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
