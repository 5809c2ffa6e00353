vyre::kernel! {
    program scale {
        workgroup 64
        buffer x: read f32 @0
        buffer out: output f32 @1
        out[gid.x] = 2.0 * x[gid.x]
    }
}

fn main() -> Result<(), vyre::BackendError> {
    let scale = Scale::compile(&vyre::Backend::preferred()?)?;
    scale.run(&[1u32, 2])?;
    Ok(())
}

//? error[E0277]
//? --> wrong_argument.rs:12:15
