//! A barrier over all workgroups: everybody adds up a part, then everybody needs the whole. On a device without one the program runs as
//! two dispatches, and the bytes are the same.

use vyre::prelude::*;

vyre::kernel! {
    program share {
        workgroup 64
        buffer x: read u32 @0
        buffer total: output u32[1] @1
        buffer permille: output u32 @2
        if gid.x < len(x) {
            atomic.add(total, 0, x[gid.x])
        }
        barrier.grid
        if gid.x < len(x) {
            permille[gid.x] = x[gid.x] * 1000 / total[0]
        }
    }
}

fn main() -> Result<(), BackendError> {
    let x: Vec<u32> = (1..=200).collect();
    for id in ["cpu", "reference"] {
        let backend = Backend::open(id)?;
        let outputs = Share::compile(&backend)?.run(&x)?;
        println!(
            "{}: {:?} {:?} (grid barriers of its own: {})",
            id,
            outputs.total,
            &outputs.permille[195..],
            backend.supports_grid_sync()
        );
    }
    Ok(())
}
