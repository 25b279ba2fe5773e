//! The build of the C shim that DPDK ports need; without the feature `dpdk` it does nothing.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::Command;

    const SHIM: &str = "src/dpdk/shim.c";
    /// The oldest DPDK that the shim fits.
    const NEEDED: &str = "libdpdk >= 22.11";
    /// The libraries that the shim and its caller use.
    const LIBRARIES: [&str; 6] = [
        "rte_eal",
        "rte_ethdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
        "rte_net_ring",
    ];

    /// Compiles the shim.
    pub(super) fn build() {
        println!("cargo:rerun-if-changed={SHIM}");
        let mut shim = cc::Build::new();
        shim.file(SHIM);
        for flag in pkg_config("--cflags") {
            shim.flag(&flag);
        }
        shim.compile("allosaur_dpdk_shim");
        for flag in pkg_config("--libs-only-L") {
            println!("cargo:rustc-link-search=native={}", &flag[2..]);
        }
        for library in LIBRARIES {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }

    fn pkg_config(what: &str) -> Vec<String> {
        let output = Command::new("pkg-config").args([what, NEEDED]).output();
        let output = output.expect("the feature `dpdk` needs pkg-config: install it");
        assert!(
            output.status.success(),
            "the feature `dpdk` needs {NEEDED}: install libdpdk-dev. {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().map(str::to_owned).collect()
    }
}
