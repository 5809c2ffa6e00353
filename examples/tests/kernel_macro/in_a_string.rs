vyre::kernel! {
    "program text {
       workgroup 64
       buffer out: output u32 @0
       out[gid.x] = 0x1.8p3
     }"
}

fn main() {}

//? error: error[E0304]: store to `out` needs u32, found f32
//? --> kernel!:4:21
//? help: write: `12u`
//? --> in_a_string.rs:2:5
