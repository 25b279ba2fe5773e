//! The server process.

use std::process::ExitCode;

fn main() -> ExitCode {
    allosaur_server::cli::main()
}
