vyre::kernel! {
    fn scale(x: f32) -> f32 {
        2.0 * x
    }
}

vyre::kernel! {}

fn main() {}

//? error: expected `program name { … }`, `file = "path"` or a string with the text of a program
//? --> not_a_program.rs:2:5
//? error: expected `program name { … }`
//? --> not_a_program.rs:7:1
