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
@group(0) @binding(1) var<storage, read_write> vyk_traps: array<atomic<u32>, 1>;
@group(0) @binding(3) var<storage, read> b0_a: array<u32>;
@group(0) @binding(4) var<storage, read_write> b1_out: array<u32>;
var<workgroup> b2_sum: array<atomic<u32>, 1>;
var<workgroup> vyk_votes: atomic<u32>;
var<workgroup> vyk_verdict: u32;

fn b0_a_load(i: u32) -> u32 {
    var x = u32();
    if (i < vyk_block.len_b0_a) {
        x = b0_a[i];
    }
    return x;
}

fn vyk_vote(local: u32, yes: bool) -> bool {
    if (yes) {
        atomicStore(&vyk_votes, 1u);
    }
    workgroupBarrier();
    if (local == 0u) {
        vyk_verdict = atomicExchange(&vyk_votes, 0u);
    }
    return workgroupUniformLoad(&vyk_verdict) != 0u;
}

@compute @workgroup_size(4, 1, 1)
fn main(@builtin(workgroup_id) vyk_group: vec3<u32>, @builtin(local_invocation_id) vyk_lid: vec3<u32>, @builtin(local_invocation_index) vyk_local: u32) {
    let vyk_wid = vyk_group + vec3<u32>(vyk_block.base_x, vyk_block.base_y, vyk_block.base_z);
    let vyk_gid = vyk_wid * vec3<u32>(4u, 1u, 1u) + vyk_lid;
    let vyk_count = vec3<u32>(vyk_block.grid_x, vyk_block.grid_y, vyk_block.grid_z) * vec3<u32>(4u, 1u, 1u);
    for (var vyk_i = vyk_local; vyk_i < 1u; vyk_i = vyk_i + 4u) {
        atomicStore(&b2_sum[vyk_i], 0u);
    }
    if (vyk_local == 0u) {
        atomicStore(&vyk_votes, 0u);
    }
    workgroupBarrier();
    var vyk_alive = true;
    let v1_x: u32 = b0_a_load(vyk_gid.x);
    let v3: bool = v1_x == 99u;
    loop {
        if (v3) {
            atomicMax(&vyk_traps[0], ~(vyk_gid.x + vyk_count.x * (vyk_gid.y + vyk_count.y * vyk_gid.z)));
            vyk_alive = false;
            break;
        }
        break;
    }
    var v5: bool;
    if (vyk_alive) {
        v5 = v1_x == 0u;
    }
    loop {
        if (!vyk_alive) { break; }
        if (v5) {
            vyk_alive = false;
            break;
        }
        break;
    }
    var v6: u32;
    var v9: u32;
    if (vyk_alive) {
        {
            v6 = atomicAdd(&b2_sum[0u], v1_x);
        }
        v9 = vyk_block.len_b0_a - 3u;
    }
    {
        var v10_k: u32 = 0u;
        loop {
            if (!vyk_vote(vyk_local, vyk_alive && v10_k < v9)) { break; }
            storageBarrier();
            workgroupBarrier();
            var v11: u32;
            var v12: u32;
            if (vyk_alive) {
                v11 = atomicLoad(&b2_sum[0u]);
                v12 = v11 + v10_k;
                if (vyk_gid.x < 4u) {
                    b1_out[vyk_gid.x] = v12;
                }
            }
            continuing {
                v10_k = v10_k + 1u;
            }
        }
    }
}
