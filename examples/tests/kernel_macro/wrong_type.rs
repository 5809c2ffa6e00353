vyre::kernel! {
    program scale {
        workgroup 64
        buffer x: read f32 @0
        buffer out: output f32 @1
        out[gid.x] = 2 * x[gid.x]
    }
}

fn main() {}

//? error: `*` needs f32 here, found u32 [E0301]
//? help: write: `2.0`
//? --> wrong_type.rs:6:22
