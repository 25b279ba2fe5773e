//! Applications: what a flow says, when, and what it waits for.
//!
//! | what | where |
//! |---|---|
//! | what the user wrote | `spec` |
//! | what can be said: constant bytes | `buffers`, with texts that differ by connection in `substitution` |
//! | a program, checked | `program`, `loop_check` for loops without end, `problem` |
//! | one flow that runs it | `run`, with `variables` where it uses them |
//! | what a flow runs that is no program: an application over bytes | `application`, with `app_flows` where it is a struct a flow, whose datagrams are in `datagram` where it tells its flows apart itself |
//! | what is counted | `counters`, with `http` for the classes of answers |
//!
//! An application knows nothing of packets: the flow that it belongs to tells it what happened, and
//! asks it what to do ([`ProgramRun::poll_action`]).

mod app_flows;
mod application;
mod buffers;
mod counters;
mod datagram;
mod end;
mod http;
mod loop_check;
mod problem;
mod program;
mod run;
mod spec;
mod substitution;
mod variables;
mod wakes;

pub use app_flows::{AppFlows, Application};
pub use application::{
    AppCore, AppFlow, AppFlowInfo, AppMeasures, AppRow, AppRowCounts, ApplicationContext,
    ApplicationFactory, CoreInfo, DatagramRoute, Demultiplexer, FlowEvent, Output,
};
pub use buffers::{
    BUFFER_BYTES_MAX, BUFFERS_BYTES_MAX, BUFFERS_MAX, BufferError, BufferIndex, BufferSpec,
    Buffers, SharedRun,
};
pub use counters::{ApplicationCounters, USER_COUNTERS, UdpCounters};
pub use datagram::{Datagram, DatagramBatch, EcnCodepoint};
pub use end::ProgramEnd;
pub use http::StatusClass;
pub use problem::{COMMANDS_MAX, ProgramProblem};
pub use program::{Program, ProgramError, Surroundings};
pub use run::{Action, Looked, ProgramContext, ProgramRun, TURN_COMMANDS_MAX, YIELD};
pub use spec::{Addon, Comparison, Condition, ProgramCommand, ProgramSpec, TICK, Transport};
pub use substitution::{
    DRAWN_FIRST, DrawError, DrawListSpec, DrawProblem, DrawSpec, DrawnSpec, DrawsSpec, VARIANTS_MAX,
};
pub use variables::{VARIABLES, VariablePool};
pub use wakes::FlowId;
pub(crate) use wakes::Wakes;
