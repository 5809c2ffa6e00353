//! A kernel as text, checked when this file is compiled, and run on whatever device there is.

use vyre::prelude::*;

vyre::kernel! {
    program saxpy {
        workgroup 64
        const a: f32 = 2.0
        buffer x: read f32 @0
        buffer y: read f32 @1
        buffer out: output f32 @2
        if gid.x < len(out) {
            out[gid.x] = a * x[gid.x] + y[gid.x]
        }
    }
}

fn main() -> Result<(), BackendError> {
    let backend = Backend::preferred()?;
    let saxpy = Saxpy::compile(&backend)?;
    let out = saxpy.run(&[1.0, 2.0, 3.0], &[0.5, 0.5, 0.5])?.out;
    println!("{out:?} on {}", backend.id());
    Ok(())
}
