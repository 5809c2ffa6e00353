//! Data that stays on the device through a chain of kernels: nothing comes back before the end, and nobody waits in between.

use vyre::prelude::*;

vyre::kernel! {
    program smooth {
        workgroup 64
        buffer from: read f32 @0
        buffer to: output f32 @1
        let i = gid.x
        let last = len(from) - 1
        if i <= last {
            to[i] = (from[max(i, 1) - 1] + 2.0 * from[i] + from[min(i + 1, last)]) / 4.0
        }
    }
}

fn main() -> Result<(), BackendError> {
    let backend = Backend::preferred()?;
    let smooth = Smooth::compile(&backend)?;
    let mut spike = vec![0.0f32; 16];
    spike[8] = 1.0;
    let (a, b) = (backend.buffer(&spike)?, backend.zeroed::<f32>(16)?);

    // There and back, four times, as one batch.
    let there = smooth.dispatch(&a).buffer("to", &b);
    let back = smooth.dispatch(&b).buffer("to", &a);
    backend.run_batch(&[there.clone(), back.clone(), there.clone(), back.clone(), there.clone(), back.clone(), there, back])?;
    println!("{:?}", a.slice(4..13)?.read()?);

    // Parts of buffers are buffers: the middle becomes the beginning, without leaving the device.
    a.slice(4..12)?.copy_to(&b.slice(..8)?)?;
    println!("{:?}", b.slice(..8)?.read()?);
    Ok(())
}
