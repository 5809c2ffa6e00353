//! The `vyre` command with the backends of this repository.

use std::process::ExitCode;

fn main() -> ExitCode {
    vyre_cli::main()
}
