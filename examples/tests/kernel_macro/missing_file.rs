vyre::kernel! { file = "nowhere.vyre" }

fn main() {}

//? error: cannot read nowhere.vyre: No such file or directory
//? --> missing_file.rs:1:24
