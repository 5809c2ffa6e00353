vyre::kernel! {
    program scale {
        workgroup 64
        const k: f32 = 2.0
        buffer x: read f32 @0
        buffer out: output f32 @1
        out[gid.x] = k * x[gid.x]
    }
}

fn main() -> Result<(), vyre::BackendError> {
    let backend = vyre::Backend::preferred()?;
    let scale = Scale::compile_with(&backend, ScaleConstants { factor: 2.0 })?;
    let results = scale.run(&[1.0])?;
    println!("{:?}", results.outt);
    Ok(())
}

//? error[E0560]: struct `ScaleConstants` has no field named `factor`
//? --> wrong_names.rs:13:64
//? error[E0609]: no field `outt` on type `ScaleOutputs`
//? --> wrong_names.rs:15:30
