struct VykBlock {
    zero: u32,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    spare: u32,
    len_b0_a: u32,
    len_b1_w: u32,
}

@group(0) @binding(0) var<uniform> vyk_block: VykBlock;
@group(0) @binding(3) var<storage, read> b0_a: array<u32>;
@group(0) @binding(4) var<storage, read> b1_w: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> b2_out: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read_write> b3_sum: array<vec2<u32>>;

fn b0_a_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b0_a) {
        x = ((b0_a[i / 4u] >> (8u * (i % 4u))) & 0xffu);
    }
    return x;
}

fn b1_w_load(i: u32) -> vec2<u32> {
    var x = vec2<u32>();
    if (i < vyk_block.len_b1_w) {
        x = b1_w[i];
    }
    return x;
}

fn vyk64_add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + u32(low < x.x));
}

@compute @workgroup_size(8, 1, 1)
fn main(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, @builtin(local_invocation_index) vyk_local: u32) {
    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);
    let vyk_gid = vyk_wid * vec3<u32>(8u, 1u, 1u) + vyk_lid;
    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>(8u, 1u, 1u);
    let v1: u32 = b0_a_load(vyk_gid.x);
    let v2: u32 = v1;
    let v3: vec2<u32> = b1_w_load(vyk_gid.x);
    let v4: u32 = v3.x;
    let v5: u32 = v2 + v4;
    if (vyk_gid.x < 5u) {
        let vyk_word1 = vyk_gid.x / 4u;
        let vyk_shift2 = 8u * (vyk_gid.x % 4u);
        atomicAnd(&b2_out[vyk_word1], ~(0xffu << vyk_shift2));
        atomicOr(&b2_out[vyk_word1], (v5 & 0xffu) << vyk_shift2);
    }
    let v7: vec2<u32> = vec2<u32>(v1, 0u);
    let v9: vec2<u32> = vyk64_add(v7, v3);
    if (vyk_gid.x < 5u) {
        b3_sum[vyk_gid.x] = v9;
    }
}
