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
}

@group(0) @binding(0) var<uniform> vyk_block: VykBlock;
@group(0) @binding(3) var<storage, read> b0_a: array<u32>;
@group(0) @binding(4) var<storage, read_write> b1_out: array<u32>;
var<workgroup> vyk_lanes: array<u32, 8>;

fn b0_a_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b0_a) {
        x = b0_a[i];
    }
    return x;
}

@compute @workgroup_size(8, 1, 1)
fn main(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, @builtin(local_invocation_index) vyk_local: u32) {
    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);
    let vyk_gid = vyk_wid * vec3<u32>(8u, 1u, 1u) + vyk_lid;
    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>(8u, 1u, 1u);
    let v1: u32 = b0_a_load(vyk_gid.x);
    vyk_lanes[vyk_local] = v1;
    workgroupBarrier();
    var vyk_exchanged1 = 0u;
    for (var vyk_lane = 0u; vyk_lane < (vyk_local % 4u) + 1u; vyk_lane = vyk_lane + 1u) {
        vyk_exchanged1 = vyk_exchanged1 + vyk_lanes[(vyk_local - vyk_local % 4u) + vyk_lane];
    }
    let v2_sum: u32 = vyk_exchanged1;
    workgroupBarrier();
    if (vyk_gid.x < 8u) {
        b1_out[vyk_gid.x] = v2_sum;
    }
}
