vyre::kernel! {
    program divergent {
        workgroup 64
        buffer out: output u32 @0
        buffer tile: workgroup u32[64]
        if gid.x < len(out) {
            tile[lid.x] = 1
            barrier
            out[gid.x] = tile[63 - lid.x]
        }
    }
}

fn main() {}

//? error: a barrier must be reached by all invocations of the workgroup together [E0501]
//? `gid.x`: this differs between invocations
//? help: move it out of the divergent `if` or loop
//? --> divergent_barrier.rs:8:13
