vyre::kernel! {
    program syntax {
        workgroup 64
        buffer out: output u32 @0
        let i = gid.x +
        out[i] = 1
    }
}

fn main() {}

//? error: expected an operand after `+`, found the end of the line [E0104]
//? --> syntax.rs:5:23
