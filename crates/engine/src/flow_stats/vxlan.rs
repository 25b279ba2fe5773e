//! The UDP ports that carry VXLAN.

pub use allosaur_packet::transport::vxlan::PORT as VXLAN_PORT;

/// The most ports that may be named besides.
pub const VXLAN_PORTS_MAX: usize = 8;

/// [`VXLAN_PORT`], and those that were named besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VxlanPorts {
    others: [u16; VXLAN_PORTS_MAX],
    count: u8,
}

impl VxlanPorts {
    /// Nothing but [`VXLAN_PORT`].
    pub const STANDARD: VxlanPorts = VxlanPorts {
        others: [0; VXLAN_PORTS_MAX],
        count: 0,
    };

    /// [`VXLAN_PORT`] and `others`; nothing when those are more than [`VXLAN_PORTS_MAX`].
    pub fn with(others: &[u16]) -> Option<VxlanPorts> {
        let mut ports = VxlanPorts::STANDARD;
        ports
            .others
            .get_mut(..others.len())?
            .copy_from_slice(others);
        ports.count = others.len() as u8;
        Some(ports)
    }

    /// Those that were named, in the order given.
    #[inline]
    pub fn others(&self) -> &[u16] {
        &self.others[..usize::from(self.count)]
    }

    /// Whether UDP to `port` carries VXLAN. Every frame that has no sign of its own is asked.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        port == VXLAN_PORT || (self.count > 0 && self.others().contains(&port))
    }
}
