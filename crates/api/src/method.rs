//! What commands do, by domain.

/// In which mode of the server a command is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In each.
    Any,
    /// In stateless mode.
    Stateless,
    /// In stateful mode.
    Stateful,
}

/// What a command does, and which part of the server answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Commands of the server and its sessions.
    Server(ServerMethod),
    /// Commands of ports.
    Ports(PortMethod),
    /// Commands of what ports receive.
    Capture(CaptureMethod),
    /// Commands of Linux nodes.
    Nodes(NodeMethod),
    /// Commands of BGP speakers.
    Routes(RouteMethod),
    /// Commands of stateless traffic.
    Stateless(StatelessMethod),
    /// Commands of stateful traffic.
    Stateful(StatefulMethod),
    /// A command of emulated clients, by its name: who has the clients has its row.
    Emulation(&'static str),
}

/// What a command of the server and its sessions does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum ServerMethod {
    Ping,
    Version,
    ApiSync,
    ApiSyncV2,
    SupportedCommands,
    SystemInfo,
    Utilization,
    SetGlobalConfig,
    GlobalConfig,
    Shutdown,
    Status,
    GlobalStats,
    Metrics,
    PublishNow,
    AsyncEvents,
}

/// What a command of ports does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum PortMethod {
    PortStatus,
    Owner,
    SetPortAttribute,
    Acquire,
    Release,
    SetL2,
    SetL3,
    ConfigureIpv6,
    SetVlan,
    SetVxlan,
    PortStats,
    PortXstatsNames,
    PortXstatsValues,
}

/// What a command of what ports receive does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum CaptureMethod {
    Service,
    SetRxFeature,
    RxQueuePackets,
    Capture,
    StartCapturePort,
    StopCapturePort,
    SetCapturePortFilter,
}

/// What a command of Linux nodes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum NodeMethod {
    Batch,
    Infos,
    Results,
    Cancel,
}

/// What a command of BGP speakers does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum RouteMethod {
    AddSpeaker,
    AddSession,
    Announce,
    Withdraw,
    Flap,
    Show,
    Remove,
}

/// What a command of stateless traffic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands`.
pub enum StatelessMethod {
    PushPackets,
    ProfileList,
    StreamList,
    AllStreams,
    Stream,
    AddStream,
    RemoveStream,
    RemoveAllStreams,
    StartTraffic,
    StopTraffic,
    PushRemote,
    Validate,
    PauseTraffic,
    ResumeTraffic,
    UpdateTraffic,
    PauseStreams,
    ResumeStreams,
    UpdateStreams,
    ActivePgids,
    PgidStats,
    RemoveRxFilters,
    TpgStatus,
}

/// What a command of stateful traffic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is documented where it is described: in `commands::stateful`.
pub enum StatefulMethod {
    Acquire,
    Release,
    Sync,
    IncEpoch,
    Service,
    ProfileFragment,
    ProfileClear,
    ProfileList,
    Start,
    Stop,
    Update,
    FlowRates,
    FlowOutcomes,
    FlowInfo,
    CounterDescriptions,
    CounterValues,
    TotalCounterValues,
    DynamicDescriptions,
    DynamicValues,
    TotalDynamicValues,
    GroupNames,
    GroupStats,
    TrafficDistribution,
    StartLatency,
    StopLatency,
    UpdateLatency,
    LatencyStats,
    EnableClients,
    ClientsInfoStart,
    ClientsInfoPull,
    SetIgnoredMacs,
    IgnoredMacs,
    SetIgnoredIps,
    IgnoredIps,
    Topology,
    TopologyFragment,
    TopologyClear,
    TunnelSupported,
    ActivateTunnel,
    UpdateTunnelClient,
    TunnelTopology,
    TunnelTopologyFragment,
    TunnelTopologyClear,
}

impl Method {
    /// In which mode of the server it is there. Four names mean something else in each.
    pub fn mode(self) -> Mode {
        match self {
            Method::Stateful(_) => Mode::Stateful,
            Method::Ports(PortMethod::Acquire)
            | Method::Ports(PortMethod::Release)
            | Method::Capture(CaptureMethod::Service)
            | Method::Stateless(StatelessMethod::ProfileList) => Mode::Stateless,
            _ => Mode::Any,
        }
    }

    /// Whether a server in that mode has it; [`Mode::Any`] has all.
    pub fn is_in(self, mode: Mode) -> bool {
        let own = self.mode();
        own == Mode::Any || mode == Mode::Any || own == mode
    }
}
