// The kernels as WGSL, for Vulkan on the CPU: what people write, one module below each line that names its kernel. Workgroups that do not
// fit into one row of the grid lie in several.

// kernel: xor
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * groups.x * 256u + id.x;
  out[i] = a[i] ^ b[i];
}

// kernel: mix
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var v = x[id.x];
  for (var round = 0u; round < 64u; round++) {
    v ^= v >> 16u;
    v *= 0x85ebca6bu;
    v ^= v >> 13u;
    v *= 0xc2b2ae35u;
    v ^= v >> 15u;
  }
  out[id.x] = v;
}

// kernel: mandelbrot
@group(0) @binding(0) var<storage, read> re: array<f32>;
@group(0) @binding(1) var<storage, read> im: array<f32>;
@group(0) @binding(2) var<storage, read_write> steps: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let cr = re[id.x];
  let ci = im[id.x];
  var x = 0.0;
  var y = 0.0;
  var n = 0u;
  for (var step = 0u; step < 100u; step++) {
    let xx = x * x;
    let yy = y * y;
    if (xx + yy > 4.0) {
      break;
    }
    y = 2.0 * x * y + ci;
    x = xx - yy + cr;
    n++;
  }
  steps[id.x] = n;
}

// kernel: matmul
const n = 512u;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> ta: array<f32, 256>;
var<workgroup> tb: array<f32, 256>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
  var sum = 0.0;
  for (var tile = 0u; tile < n / 16u; tile++) {
    ta[l.y * 16u + l.x] = a[id.y * n + tile * 16u + l.x];
    tb[l.y * 16u + l.x] = b[(tile * 16u + l.y) * n + id.x];
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      sum = sum + ta[l.y * 16u + k] * tb[k * 16u + l.x];
    }
    workgroupBarrier();
  }
  c[id.y * n + id.x] = sum;
}

// kernel: reduction
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> tile: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let group = id.y * groups.x + id.x;
  tile[l] = x[group * 256u + l];
  workgroupBarrier();
  for (var stride = 128u; stride > 0u; stride >>= 1u) {
    if (l < stride) {
      tile[l] += tile[l + stride];
    }
    workgroupBarrier();
  }
  if (l == 0u) {
    sums[group] = tile[0];
  }
}

// kernel: dfa
@group(0) @binding(0) var<storage, read> text: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> states: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var state = 0u;
  for (var k = 0u; k < 64u; k++) {
    let at = id.x + k;
    let byte = text[at >> 2u] >> ((at & 3u) * 8u) & 255u;
    state = table[state * 256u + byte];
  }
  states[id.x] = state;
}

// kernel: prefix_sum
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> tile: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let i = (id.y * groups.x + id.x) * 256u + l;
  var sum = x[i];
  tile[l] = sum;
  workgroupBarrier();
  for (var stride = 1u; stride < 256u; stride <<= 1u) {
    if (l >= stride) {
      sum += tile[l - stride];
    }
    workgroupBarrier();
    tile[l] = sum;
    workgroupBarrier();
  }
  sums[i] = sum;
}

// kernel: blur
@group(0) @binding(0) var<storage, read> image: array<f32>;
@group(0) @binding(1) var<storage, read> size: array<u32>;
@group(0) @binding(2) var<storage, read_write> blurred: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let w = size[0];
  let left = select(0.0, 1.0, id.x > 0u);
  let right = select(0.0, 1.0, id.x + 1u < w);
  var rows: array<f32, 3>;
  for (var d = 0u; d < 3u; d++) {
    let row = id.y + d - 1u;
    rows[d] = 0.0;
    if (row < size[1]) {
      let at = row * w + id.x;
      rows[d] = image[max(at, 1u) - 1u] * left + image[at] * 2.0 + image[at + 1u] * right;
    }
  }
  blurred[id.y * w + id.x] = (rows[0] + rows[1] * 2.0 + rows[2]) / 16.0;
}

// kernel: exp
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * groups.x * 256u + id.x;
  out[i] = exp(x[i]);
}

// kernel: sin
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * groups.x * 256u + id.x;
  out[i] = sin(x[i]);
}

// kernel: f8_dot
@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn of_f8e4m3(code: u32) -> f32 {
  let magnitude = code & 0x7fu;
  let value = select(bitcast<f32>((magnitude << 20u) + (120u << 23u)), f32(magnitude) * 0x1p-9, magnitude < 8u);
  return select(value, -value, code > 0x7fu);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let rows = arrayLength(&y);
  var sum = 0.0;
  for (var k = 0u; k < 4096u; k++) {
    let at = k * rows + id.x;
    sum = sum + of_f8e4m3(weights[at >> 2u] >> ((at & 3u) * 8u) & 255u) * x[k];
  }
  y[id.x] = sum * scales[id.x];
}
