//! Every command of `vyre`, with one backend more.

use std::process::ExitCode;
use vyre_example_backend as _;

fn main() -> ExitCode {
    vyre_cli::main()
}
