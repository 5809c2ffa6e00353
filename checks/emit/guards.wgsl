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
    len_b1_b: u32,
    len_b2_out: u32,
}

@group(0) @binding(0) var<uniform> vyk_block: VykBlock;
@group(0) @binding(3) var<storage, read> b0_a: array<u32>;
@group(0) @binding(4) var<storage, read> b1_b: array<u32>;
@group(0) @binding(5) var<storage, read_write> b2_out: array<u32>;

fn b0_a_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b0_a) {
        x = b0_a[i];
    }
    return x;
}

fn b1_b_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b1_b) {
        x = b1_b[i];
    }
    return x;
}

fn vyk_div(x: u32, y: u32) -> u32 {
    return select(x, x / max(y, 1u), y != 0u);
}

@compute @workgroup_size(64, 1, 1)
fn main(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, @builtin(local_invocation_index) vyk_local: u32) {
    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);
    let vyk_gid = vyk_wid * vec3<u32>(64u, 1u, 1u) + vyk_lid;
    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>(64u, 1u, 1u);
    let v2: bool = vyk_gid.x < vyk_block.len_b2_out;
    if (v2) {
        let v3: u32 = b0_a_load(vyk_gid.x);
        let v4: u32 = b1_b_load(vyk_gid.x);
        let v5: u32 = vyk_div(v3, v4);
        let v8: u32 = v3 + v4;
        let v10: u32 = v8 + vyk_count.x;
        let v11: u32 = v5 << (v10 & 31u);
        b2_out[vyk_gid.x] = v11;
    }
}
