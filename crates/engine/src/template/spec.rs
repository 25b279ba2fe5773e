//! A profile as the user asks for it.

use std::fmt;

use super::hosts::HostNetwork;
use super::tunables::TunablesSpec;
use crate::app::{BufferSpec, ProgramCommand, ProgramSpec, Transport};

/// Longest name of a template group, in bytes.
pub const GROUP_NAME_BYTES_MAX: usize = 20;
/// Most bytes of a first message that choose a server.
pub const L7_OFFSETS_MAX: usize = 8;

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who begins.
    Client,
    /// Who is asked.
    Server,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}

/// A profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileSpec {
    /// What programs send.
    pub buffers: Vec<BufferSpec>,
    /// Addresses.
    pub pools: Vec<PoolSpec>,
    /// What flows say.
    pub programs: Vec<ProgramSpec>,
    /// Which flows there are; at least one.
    pub templates: Vec<TemplateSpec>,
    /// How all clients behave.
    pub client: TunablesSpec,
    /// How all servers behave.
    pub server: TunablesSpec,
    /// The names of the template groups; the first has number 1.
    pub groups: Vec<String>,
}

impl ProfileSpec {
    /// A profile of one template on port 80: clients of the first pool run the first program, servers
    /// of the second pool the second, without tunables.
    pub fn single(
        transport: Transport,
        programs: [Vec<ProgramCommand>; 2],
        buffers: Vec<BufferSpec>,
        pools: [PoolSpec; 2],
        rate_cps: f64,
    ) -> ProfileSpec {
        let program = |commands| ProgramSpec {
            commands,
            transport,
            addon: None,
        };
        ProfileSpec {
            buffers,
            pools: pools.to_vec(),
            programs: programs.map(program).to_vec(),
            templates: vec![TemplateSpec {
                client: ClientSpec {
                    program: 0,
                    client_pool: 0,
                    server_pool: 1,
                    port: 80,
                    rate_cps,
                    limit: None,
                    continuous: false,
                    core_base: 0,
                    tunables: TunablesSpec::default(),
                },
                server: ServerSpec {
                    program: 1,
                    associations: vec![AssociationSpec::port(80)],
                    tunables: TunablesSpec::default(),
                },
                group: 0,
            }],
            ..ProfileSpec::default()
        }
    }

    /// The profile of the paper's benchmark (Section IV): over TCP, each client asks so many bytes,
    /// and is answered so many.
    pub fn request_response(bytes: [u64; 2], pools: [PoolSpec; 2], rate_cps: f64) -> ProfileSpec {
        let [request, response] = bytes;
        let receive = |bytes| ProgramCommand::Receive {
            bytes,
            clear: false,
        };
        let send = |buffer| ProgramCommand::Send { buffer };
        let programs = [
            vec![send(0), receive(response)],
            vec![receive(request), send(1)],
        ];
        let buffers = bytes.map(|bytes| BufferSpec {
            base: b"HTTP/1.1".to_vec(),
            bytes: Some(bytes),
            fill: b"0123456789abcdef".to_vec(),
        });
        ProfileSpec::single(
            Transport::Stream,
            programs,
            buffers.to_vec(),
            pools,
            rate_cps,
        )
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// In which order they are used.
    pub distribution: Distribution,
    /// Whose they are.
    pub side: Side,
    /// Added for each further pair of ports.
    pub offset: u32,
    /// How cores share them.
    pub per_core: PerCore,
    /// Its addresses are those of the hosts of a network, who are known when the profile starts; then
    /// `first`, `last`, `offset` and `per_core` say nothing.
    pub hosts: Option<HostNetwork>,
}

impl PoolSpec {
    /// Addresses that are used one after another, the same by each pair of ports.
    pub fn new(side: Side, first: u32, last: u32) -> PoolSpec {
        PoolSpec {
            first,
            last,
            distribution: Distribution::Sequence,
            side,
            offset: 0,
            per_core: PerCore::Default,
            hosts: None,
        }
    }
}

impl PoolSpec {
    /// How many addresses it has; 0 when the last is before the first.
    pub fn count(&self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(u64::from(self.first))
    }
}

/// In which order addresses are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// One after another, over and over.
    #[default]
    Sequence,
    /// Any, all alike.
    Random,
}

/// How cores share a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerCore {
    /// Each core of all ports has a part; pairs of ports then differ by the offset too.
    #[default]
    Default,
    /// The cores of a pair of ports share the whole range, each a part in a row.
    Sequence,
}

/// One kind of flows: what clients do, and what servers that they reach do.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateSpec {
    /// The client's side.
    pub client: ClientSpec,
    /// The server's side.
    pub server: ServerSpec,
    /// The number of its group; 0 is none.
    pub group: u32,
}

/// What clients of a template do.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSpec {
    /// What they say.
    pub program: u32,
    /// Where their addresses come from.
    pub client_pool: u32,
    /// Where their servers' addresses come from.
    pub server_pool: u32,
    /// Which port they ask for.
    pub port: u16,
    /// Connections per second at a multiplier of 1; 0 makes flows only by `exec_template`.
    pub rate_cps: f64,
    /// Flows in all; `None` is without limit.
    pub limit: Option<u32>,
    /// With a limit: a flow that ends is replaced.
    pub continuous: bool,
    /// Which core's share of the limit is the larger one.
    pub core_base: u32,
    /// How they behave, where it differs from the profile.
    pub tunables: TunablesSpec,
}

/// What servers of a template do.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// What they say.
    pub program: u32,
    /// Whom they answer; at least one.
    pub associations: Vec<AssociationSpec>,
    /// How they behave, where it differs from the profile.
    pub tunables: TunablesSpec,
}

/// Whom a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationSpec {
    /// Who asks for this port.
    pub port: u16,
    /// And for an address from here.
    pub first: u32,
    /// To here.
    pub last: u32,
    /// And begins with these bytes.
    pub l7_map: Option<L7Map>,
}

impl AssociationSpec {
    /// Whoever asks for a port.
    pub fn port(port: u16) -> AssociationSpec {
        AssociationSpec {
            port,
            first: 0,
            last: u32::MAX,
            l7_map: None,
        }
    }
}

/// Bytes of a first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L7Map {
    /// Where they are, in ascending order; 1 to [`L7_OFFSETS_MAX`].
    pub offsets: Vec<u8>,
    /// Which bits of each count; where it is shorter, all.
    pub masks: Vec<u8>,
    /// What they are; `None` is what the template's own client begins with.
    pub values: Option<Vec<u8>>,
}
