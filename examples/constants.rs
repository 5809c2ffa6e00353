//! Specialization constants: the same text compiled for several sizes and element types. Values are put in before anything is checked.

use vyre::prelude::*;

vyre::kernel! {
    program rows {
        workgroup size
        const size: u32 = 64
        const columns: u32 = 4
        const weight: f32 = 1.0
        const stored: dtype = f32
        buffer x: read stored @0
        buffer sums: output f32 @1
        let row = gid.x
        let sum = 0.0
        for column in 0..columns {
            sum = sum + weight * x[row * columns + column]
        }
        sums[row] = sum
    }
}

fn main() -> Result<(), BackendError> {
    let backend = Backend::preferred()?;
    let f32s: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let f16s: Vec<u8> = [0x3C00u16, 0x4000, 0x4200, 0x4400].iter().flat_map(|x| x.to_le_bytes()).collect();

    let defaults = Rows::compile(&backend)?;
    println!("{:?}", defaults.dispatch(&f32s).output_len("sums", 2).run()?.get::<f32>("sums")?);

    let constants = RowsConstants { size: 8, columns: 2, weight: 0.5, stored: DataType::F16 };
    let halves = Rows::compile_with(&backend, constants)?;
    println!("{:?}", halves.dispatch(&f16s).output_len("sums", 2).run()?.get::<f32>("sums")?);

    // A value that makes the program wrong is told like any other mistake.
    let wrong = RowsConstants { size: 4096, ..RowsConstants::default() };
    match Rows::compile_with(&backend, wrong) {
        Err(BackendError::Rejected(report)) => println!("{}", report.diagnostics[0].code),
        other => panic!("{other:?}"),
    }
    Ok(())
}
