//! What stands for DPDK ports in a build without the feature `dpdk`: types that have no values.

use std::io;
use std::sync::Arc;

use crate::buffers::Gauge;
use crate::description::DpdkDevice;
use crate::distribution::RxDistribution;
use crate::{Capabilities, FrameId, PortError, QueueCounts, RxQueue, TxQueue};

/// Whether this build has DPDK ports.
pub const IS_BUILT: bool = false;

/// Nothing: there are no such ports here.
#[derive(Debug)]
pub struct DpdkPort {
    /// None.
    pub tx: Vec<DpdkTx>,
    /// None.
    pub rx: Vec<DpdkRx>,
    /// None.
    pub distribution: RxDistribution,
    /// None.
    pub control: DpdkControl,
    /// None.
    pub mac: Option<[u8; 6]>,
    /// None.
    pub details: String,
}

impl DpdkPort {
    /// Says that this server was built without DPDK.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open(
        description: &DpdkDevice,
        _pci: &[String],
        _queues: QueueCounts,
    ) -> Result<DpdkPort, PortError> {
        Err(absent(description.to_string()))
    }

    /// Says the same.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open_pair(
        name: &str,
        _pci: &[String],
        _queues: [QueueCounts; 2],
    ) -> Result<[DpdkPort; 2], PortError> {
        Err(absent(format!("ring:{name}")))
    }
}

fn absent(device: String) -> PortError {
    PortError::Dpdk {
        device,
        problem: "this server was built without DPDK".to_owned(),
        remedy: "Install libdpdk-dev 22.11 or newer, then build again: `make install` finds it"
            .to_owned(),
    }
}

impl crate::Port for DpdkPort {
    type Tx = DpdkTx;
    type Rx = DpdkRx;

    fn capabilities(&self) -> Capabilities {
        match self.control {}
    }

    fn into_queues(self) -> (Vec<DpdkTx>, Vec<DpdkRx>) {
        match self.control {}
    }
}

/// Has no values.
#[derive(Debug)]
pub enum DpdkTx {}

/// Has no values.
#[derive(Debug)]
pub enum DpdkRx {}

/// Has no values.
#[derive(Debug)]
pub enum DpdkControl {}

impl DpdkControl {
    /// Never called.
    pub fn has_link(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn counters(&self) -> Vec<(String, u64)> {
        match *self {}
    }

    /// Never called.
    pub fn set_receive(&mut self, _promiscuous: bool, _multicast: bool) -> io::Result<()> {
        match *self {}
    }
}

impl DpdkTx {
    /// Never called.
    pub fn frame_bytes_max(&self) -> usize {
        match *self {}
    }

    /// Never called.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        match *self {}
    }
}

impl TxQueue for DpdkTx {
    fn slot(&mut self, _now_ns: u64, _len: usize) -> Option<&mut [u8]> {
        match *self {}
    }

    fn has_room(&mut self, _now_ns: u64, _len: usize) -> bool {
        match *self {}
    }

    fn repeat(&mut self, _now_ns: u64, _frame: FrameId, _count: u32) -> u32 {
        match *self {}
    }

    fn register(&mut self, _frame: &[u8]) -> Option<FrameId> {
        match *self {}
    }

    fn unregister(&mut self, _frame: FrameId) {
        match *self {}
    }

    fn copy_registered(&self, _frame: FrameId, _copy: &mut Vec<u8>) {
        match *self {}
    }

    fn flush(&mut self) {
        match *self {}
    }
}

impl DpdkRx {
    /// Never called.
    pub fn lost_packets(&self) -> u64 {
        match *self {}
    }

    /// Never called.
    pub fn next_look_ns(&self) -> u64 {
        match *self {}
    }
}

impl RxQueue for DpdkRx {
    fn receive(&mut self, _now_ns: u64, _budget: usize, _each: impl FnMut(u64, &[u8])) -> usize {
        match *self {}
    }
}
