macro_rules! doubled {
    ($name:ident) => {
        vyre::kernel! {
            program $name {
                workgroup 64
                buffer out: output u32 @0
                out[gid.x] = 1.0
            }
        }
    };
}

doubled!(first);

fn main() {}

//? error: store to `out` needs u32, found f32 [E0304]
//? --> twice.rs:7:30
