vyre::kernel! {
    pub program three {
        workgroup 64
        buffer input: read f32 @0
        buffer out: output f32 @1
        let x = input[gid.x]
        out[gid.x] = 2 * x + inptu[gid.x + 1]
        input[gid.x] = 0.0
    }
}

fn main() {}

//? error: `*` needs f32 here, found u32 [E0301]
//? --> three_mistakes.rs:7:22
//? error: there is no buffer `inptu` [E0204]
//? help: did you mean: `input`
//? --> three_mistakes.rs:7:30
//? error: `input` is a `read` buffer and cannot be written [E0408]
//? --> three_mistakes.rs:8:9
