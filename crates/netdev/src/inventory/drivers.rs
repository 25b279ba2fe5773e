//! What is known of drivers, by name.

/// Drivers that hand a PCI device to a program such as DPDK.
pub const USERSPACE: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Whether the kernel and DPDK drive a card of this driver side by side, so that it stays as it is:
/// the guides of `mlx4`, `mlx5` and `mana` of DPDK's guide of network drivers.
pub fn is_shared(driver: &str) -> bool {
    ["mlx4_core", "mlx5_core", "mana"].contains(&driver)
}

/// Whether it hands a device to DPDK.
pub fn is_userspace(driver: &str) -> bool {
    USERSPACE.contains(&driver)
}

/// Whether AF_XDP works without a copy on interfaces of this driver, on kernels that are new enough:
/// drivers of Linux that implement `XDP_SETUP_XSK_POOL`.
pub fn has_zero_copy(driver: &str) -> bool {
    [
        "bnxt_en",
        "fsl_dpaa2_eth",
        "gve",
        "i40e",
        "ice",
        "icssg-prueth",
        "idpf",
        "igb",
        "igc",
        "ixgbe",
        "mlx5_core",
        "nfp",
        "st_gmac",
        "tsnep",
        "virtio_net",
    ]
    .contains(&driver)
}
