//! What can be asked of emulated clients.

use allosaur_api::Error;
use allosaur_emulation::namespace::NamespaceKey;
use allosaur_emulation::ready::ReadyClients;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_engine::time::Nanos;
use serde_json::Value;

/// What can be asked of emulated clients.
#[derive(Debug)]
pub enum EmulationRequest {
    /// A request of their own RPC.
    Call {
        /// What is asked.
        call: RpcCall,
        /// Of the call that it is, or a part of, as its caller counts them. Parts behind one that went
        /// wrong are not done.
        number: u64,
        /// What the process has used, where the answer tells of it.
        usage: Option<ProcessUsage>,
    },
    /// Tell which emulated clients could send through their gateway now.
    ReadyClients {
        /// Of which namespace.
        namespace: NamespaceKey,
        /// By IPv6, else by IPv4.
        is_ipv6: bool,
    },
}

/// What emulated clients answer.
#[derive(Debug, PartialEq)]
pub enum EmulationAnswer {
    /// What comes of a request of their own RPC.
    Called(Result<Value, Error>),
    /// The emulated clients of a namespace; nothing when there is no such namespace.
    ReadyClients(Option<ReadyClients>),
}

/// Clients of one part of a long call. Between two parts the data thread looks at frames and timers,
/// and sends what these clients say when they come.
pub const PART_CLIENTS: usize = 32;

/// What this process has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// Time of CPUs, of all threads together, since it started.
    pub cpu_time: Nanos,
    /// Memory that is resident.
    pub rss_bytes: u64,
}
