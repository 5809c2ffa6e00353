vyre::kernel! { pub file = "wrong_file.txt" }

fn main() {}

//? error: error[E0204]: there is no buffer `input`
//? --> wrong_file.txt:5:20
//? --> wrong_file.rs:1:28
