//! Profiles of stateful traffic: who talks to whom, how often, and by which programs.
//!
//! | what | where |
//! |---|---|
//! | what the user asks for | `spec` |
//! | how TCP and IP behave, by names and ranges | `tunables` |
//! | which addresses a core has, and in which order | `pool` |
//! | pools of hosts with MAC addresses of their own | `hosts` |
//! | which template serves a client that comes | `servers` |
//! | all of it, checked and resolved | `compile`, with its errors in `error` |

mod compile;
mod error;
mod hosts;
mod pool;
mod servers;
mod spec;
mod tunables;

pub use compile::{
    ClientTemplate, CompiledProfile, Layout, POOLS_MAX, PROGRAMS_MAX, ProgramIndex, ServerTemplate,
    TEMPLATES_MAX, Template,
};
pub use error::{PoolProblem, ProfileError, TemplateProblem};
pub use hosts::{HostNetwork, HostPrefix, HostTable, HostTag, PoolHost};
pub use pool::{AddressRange, AddressSequence, PoolShare};
pub use servers::{Server, Servers, TemplateIndex};
pub use spec::{
    AssociationSpec, ClientSpec, Distribution, GROUP_NAME_BYTES_MAX, L7_OFFSETS_MAX, L7Map,
    PerCore, PoolSpec, ProfileSpec, ServerSpec, Side, TemplateSpec,
};
pub use tunables::{
    Blackhole, Ipv6Prefixes, SideTunables, TUNABLES, Tunable, TunableRow, TunablesSpec,
};
