vyre::kernel! {
    program add {
        workgroup 64
        buffer a: read f32 @0
        buffer b: read f32 @1
        buffer out: output f32 @2
        out[gid.x] = a[gid.x] + b[gid.x]
    }
}

fn main() -> Result<(), vyre::BackendError> {
    let add = Add::compile(&vyre::Backend::preferred()?)?;
    add.run(&[1.0])?;
    Ok(())
}

//? error[E0061]: this method takes 2 arguments but 1 argument was supplied
//? --> missing_argument.rs:13:9
