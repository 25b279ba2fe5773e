//! Why a profile cannot run: where, what is wrong, and what would be right.

use thiserror::Error;

use super::spec::{GROUP_NAME_BYTES_MAX, L7_OFFSETS_MAX, Side};
use crate::app::{BufferError, ProgramError};

/// Why a profile cannot run. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProfileError {
    /// The constant data.
    #[error(transparent)]
    Buffers(#[from] BufferError),
    /// A list without anything in it.
    #[error("{0} is empty: a profile needs at least one")]
    Empty(&'static str),
    /// A list that is too long.
    #[error("{list} has {count} entries; the most is {max}: split the profile")]
    TooMany {
        /// Which list.
        list: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A pool.
    #[error("ip_gen_dist_list[{pool}]: {problem}")]
    Pool {
        /// Its number.
        pool: usize,
        /// What is wrong.
        problem: PoolProblem,
    },
    /// A program that a template uses.
    #[error("template {template}, {side} program {program}, {error}")]
    Program {
        /// The first template that uses it.
        template: usize,
        /// On which side.
        side: Side,
        /// The number of the program.
        program: usize,
        /// What is wrong.
        error: ProgramError,
    },
    /// A program that nobody uses.
    #[error("program {program} (no template uses it), {error}")]
    UnusedProgram {
        /// The number of the program.
        program: usize,
        /// What is wrong.
        error: ProgramError,
    },
    /// A template.
    #[error("template {template}: {problem}")]
    Template {
        /// Its number.
        template: usize,
        /// What is wrong.
        problem: TemplateProblem,
    },
    /// A tunable out of its range.
    #[error("{path} is {value}; it must be {min} to {max}")]
    Tunable {
        /// Where it is.
        path: String,
        /// The value given.
        value: u64,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A tunable that no template has for itself.
    #[error("{path} is the same for all templates: set it in {instead}")]
    TunableOfAll {
        /// Where it is.
        path: String,
        /// Where it belongs.
        instead: &'static str,
    },
    /// The name of a template group.
    #[error("tg_names[{group}] is '{name:.40}'; a name has 1 to {GROUP_NAME_BYTES_MAX} bytes")]
    GroupName {
        /// Its place in the list.
        group: usize,
        /// The name given.
        name: String,
    },
    /// Two template groups of one name.
    #[error(
        "tg_names[{second}] is '{name}', as tg_names[{first}] is: give each group its own name"
    )]
    GroupTwice {
        /// Its place in the list.
        second: usize,
        /// Where it was before.
        first: usize,
        /// The name.
        name: String,
    },
}

/// What is wrong with a pool.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PoolProblem {
    /// No addresses.
    #[error("ip_end is before ip_start, so the pool is empty: swap them")]
    Empty,
    /// Not an address for each core.
    #[error(
        "the pool has {addresses} client addresses, but {cores} data cores share it and each needs its own: add addresses, or use fewer cores"
    )]
    TooFew {
        /// How many it has.
        addresses: u64,
        /// How many cores there are.
        cores: u32,
    },
    /// Pairs of ports with the same addresses.
    #[error(
        "ip_offset is too small: {pairs} pairs of ports would have the same addresses; make it at least as large as the range"
    )]
    OffsetTooSmall {
        /// How many pairs there are.
        pairs: u32,
    },
    /// Hosts as servers.
    #[error(
        "emulation: emulated clients begin flows, they do not serve: give the servers a range of addresses (ip_start, ip_end)"
    )]
    HostsOfServers,
    /// Addresses beyond the last.
    #[error(
        "ip_offset leads beyond 255.255.255.255 on {pairs} pairs of ports: use smaller addresses"
    )]
    BeyondTheEnd {
        /// How many pairs there are.
        pairs: u32,
    },
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TemplateProblem {
    /// A program that is not there.
    #[error(
        "{side}_template.program_index is {program}, but program_list has {count}: use a lower number"
    )]
    Program {
        /// On which side.
        side: Side,
        /// The number given.
        program: u32,
        /// How many there are.
        count: usize,
    },
    /// A pool that is not there.
    #[error(
        "client_template.ip_gen.dist_{side}.index is {pool}, but ip_gen_dist_list has {count}: use a lower number"
    )]
    Pool {
        /// Whose addresses.
        side: Side,
        /// The number given.
        pool: u32,
        /// How many there are.
        count: usize,
    },
    /// A pool of the other side.
    #[error(
        "client_template.ip_gen.dist_{side}.index is {pool}, which is a pool of the other side (dir): use one of its own"
    )]
    PoolSide {
        /// Whose addresses.
        side: Side,
        /// The number given.
        pool: u32,
    },
    /// A rate that makes no sense.
    #[error("client_template.cps is {0}; it must be a number above 0, at most 1e9")]
    Rate(f64),
    /// TCP on one side, UDP on the other.
    #[error(
        "the client's program is for {client} and the server's for {server}: use programs of one kind (stream)"
    )]
    Transports {
        /// The client's.
        client: &'static str,
        /// The server's.
        server: &'static str,
    },
    /// A group that is not there.
    #[error(
        "tg_id is {group}, but the profile has {count} template groups: use 0 for none, or name it in tg_names"
    )]
    Group {
        /// The number given.
        group: u32,
        /// How many there are.
        count: usize,
    },
    /// A server that nobody reaches.
    #[error("server_template.assoc is empty: name at least one port")]
    NoAssociation,
    /// A range of addresses whose end is before its beginning.
    #[error("server_template.assoc of port {port}: ip_end is before ip_start: swap them")]
    EmptyRange {
        /// The port.
        port: u16,
    },
    /// Two servers at one address.
    #[error(
        "its server range on port {port} overlaps that of template {other}: use another port, other addresses, or an l7_map"
    )]
    RangesOverlap {
        /// The port.
        port: u16,
        /// The other template.
        other: usize,
    },
    /// Two servers that look at different bytes.
    #[error(
        "its l7_map on port {port} looks at other bytes than that of template {other}: use the same offsets and masks"
    )]
    PayloadRulesDiffer {
        /// The port.
        port: u16,
        /// The other template.
        other: usize,
    },
    /// Two servers for the same bytes.
    #[error(
        "its l7_map on port {port} has the same values as that of template {other}: use other offsets or values"
    )]
    PayloadTaken {
        /// The port.
        port: u16,
        /// The other template.
        other: usize,
    },
    /// Two servers of which the one that is meant is known too late.
    #[error(
        "it shares port {port} with template {other} by l7_map, so the tcp tunables of their servers must be the same"
    )]
    PayloadTunables {
        /// The port.
        port: u16,
        /// The other template.
        other: usize,
    },
    /// How many bytes an L7 map looks at.
    #[error(
        "server_template.assoc.l7_map.offset has {0} entries; it must have 1 to {L7_OFFSETS_MAX}"
    )]
    L7Count(usize),
    /// Offsets in disorder.
    #[error("server_template.assoc.l7_map.offset must be in ascending order")]
    L7Order,
    /// More or fewer values than offsets.
    #[error(
        "server_template.assoc.l7_map has {offsets} offsets and {values} values: give each offset its value"
    )]
    L7Values {
        /// How many offsets.
        offsets: usize,
        /// How many values.
        values: usize,
    },
    /// Nothing to compare with.
    #[error(
        "server_template.assoc.l7_map has no values, and the client does not send first: give it values"
    )]
    L7NothingSent,
    /// Too little to compare with.
    #[error(
        "server_template.assoc.l7_map looks at byte {offset}, but the client's first message has {bytes}: use a lower offset"
    )]
    L7Short {
        /// Where it looks.
        offset: u8,
        /// How many bytes there are.
        bytes: u32,
    },
    /// What an add-on writes there is no part of the program.
    #[error(
        "server_template.assoc.l7_map looks at byte {offset}, but the first {header_bytes} bytes of each message belong to the add-on: use offsets from {header_bytes} on, or give values"
    )]
    L7InHeader {
        /// Where it looks.
        offset: u8,
        /// How many bytes the add-on writes.
        header_bytes: usize,
    },
    /// Messages that differ where they should not.
    #[error(
        "server_template.assoc.l7_map: messages of the client differ in these bytes, so which server is meant would change: use other offsets"
    )]
    L7MessagesDiffer,
    /// A group without templates.
    #[error(
        "its {side} program chooses template group {group}, which no template is in: give a template this tg_id"
    )]
    EmptyGroup {
        /// On which side.
        side: Side,
        /// The group.
        group: u32,
    },
}
