//! A backend of one's own, by hand: an id and `dispatch` are enough, and everything that takes a backend takes it. This one hands programs
//! to the reference and gets one bit wrong, which a comparison finds. A real one is a `Device`: see `examples/backend`.

use vyre::prelude::*;

struct Mine {
    reference: Backend,
}

impl VyreBackend for Mine {
    fn id(&self) -> &'static str {
        "mine"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let mut outputs = self.reference.dispatch(program, inputs, config)?;
        if let Some(last) = outputs.iter_mut().flat_map(|output| output.last_mut()).next() {
            *last ^= 0x80;
        }
        Ok(outputs)
    }
}

fn main() -> Result<(), BackendError> {
    let program: Program = "program roots {
      workgroup 64
      buffer x: read f32 @0
      buffer out: output f32 @1
      out[gid.x] = sqrt(x[gid.x])
    }"
    .parse()?;
    let mine = Backend::new(Mine { reference: Backend::open("reference")? });
    let dispatch = Dispatch::new(&program).input("x", &[1.0f32, 2.0, 4.0]);
    let (right, found) = (dispatch.run(&Backend::preferred()?)?, dispatch.run(&mine)?);
    println!("{:?} on cpu, {:?} on mine", right.get::<f32>("out")?, found.get::<f32>("out")?);
    println!("the same: {}", right == found);

    // What it does not have is an error that says so.
    println!("{}", mine.buffer(&[1u32]).unwrap_err());
    Ok(())
}
