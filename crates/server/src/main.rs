//! The server process.

use allosaur_server::bench;
fn main() {
    for case in [
        bench::Case::Constant,
        bench::Case::Variable,
        bench::Case::Random,
        bench::Case::Imix,
        bench::Case::Streams1000,
        bench::Case::Large,
    ] {
        for receive in [false, true] {
            println!(
                "{case:?} {receive} {}",
                serde_json::to_string(&bench::run(case, receive, 1.0).unwrap()).unwrap()
            );
        }
    }
}
