//! Anything as frames, headers and capture files: the checks that the fuzz targets make too, with
//! the inputs that they begin with.

mod frame;
mod headers;
mod pcap;
mod pcapng;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Runs a check with each of the inputs that its fuzz target begins with.
fn with_each_seed(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        println!("{}", path.display());
        check(&fs::read(path).expect("a seed can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn seeds_are_right() {
    with_each_seed("frame", frame::check);
    with_each_seed("headers", headers::check);
    with_each_seed("pcap", pcap::check);
    with_each_seed("pcapng", pcapng::check);
}

proptest! {
    #[test]
    fn any_bytes_are_right(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        frame::check(&bytes);
        headers::check(&bytes);
        pcap::check(&bytes);
        pcapng::check(&bytes);
    }
}
