//! Tables in files of MRT (RFC 6396), type TABLE_DUMP_V2: what collectors and routers write of their RIB.

use std::net::Ipv4Addr;

use super::table::{RouteTable, RouteTableBuilder};
use crate::wire::attributes::{AttributeEncoding, kind};
use crate::wire::prefix::{AddressFamily, Prefix};
use crate::wire::reader::Reader;
use crate::wire::update::AttributeParser;

const TABLE_DUMP_V2: u16 = 13;
const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;
/// First octets of files that are compressed: by gzip, bzip2, xz and zstd.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];

/// Why a file gave no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MrtError {
    /// It ends within a record.
    #[error("the MRT file ends within the record at byte {at}: it was cut short; copy it again")]
    CutShort {
        /// Where the record begins.
        at: usize,
    },
    /// A record that cannot be read.
    #[error("the MRT record at byte {at} has a {what} that cannot be read")]
    Malformed {
        /// Where the record begins.
        at: usize,
        /// What is wrong in it.
        what: &'static str,
    },
    /// A compressed file.
    #[error("the MRT file is compressed: unpack it first (gunzip, bunzip2, unxz, unzstd)")]
    Compressed,
    /// No route of the family.
    #[error(
        "the MRT file has no {family:?} unicast route of a RIB (TABLE_DUMP_V2, {records} records read): take a file \
         of a whole table (rib.*, bview.*), not of updates"
    )]
    NoRoute {
        /// The family that was wanted.
        family: AddressFamily,
        /// How many records it has.
        records: usize,
    },
}

/// The routes of a family in a file: of each prefix the first path, up to `routes_max`.
///
/// # Errors
/// Where the file cannot be read to its end, or has no such route.
pub fn read(file: &[u8], family: AddressFamily, routes_max: usize) -> Result<RouteTable, MrtError> {
    if COMPRESSED.iter().any(|magic| file.starts_with(magic)) {
        return Err(MrtError::Compressed);
    }
    let wanted = match family {
        AddressFamily::Ipv4 => RIB_IPV4_UNICAST,
        AddressFamily::Ipv6 => RIB_IPV6_UNICAST,
    };
    let mut builder = RouteTableBuilder::new(family);
    let (mut records, mut routes) = (0, 0);
    let mut reader = Reader(file);
    while !reader.is_empty() && routes < routes_max {
        let at = file.len() - reader.0.len();
        let mut record = || {
            let _timestamp = reader.u32()?;
            let kind = (reader.u16()?, reader.u16()?);
            let length = reader.u32()?;
            Some((kind, Reader(reader.bytes(usize::try_from(length).ok()?)?)))
        };
        let (kind, body) = record().ok_or(MrtError::CutShort { at })?;
        records += 1;
        if kind == (TABLE_DUMP_V2, wanted) {
            let malformed = |what| MrtError::Malformed { at, what };
            routes += usize::from(read_route(body, family, &mut builder).map_err(malformed)?);
        }
    }
    if routes == 0 {
        return Err(MrtError::NoRoute { family, records });
    }
    Ok(builder.finish())
}

/// Adds the first path of a RIB entry (RFC 6396 §4.3.2). Whether it had one that could be taken.
fn read_route(
    mut body: Reader<'_>,
    family: AddressFamily,
    builder: &mut RouteTableBuilder,
) -> Result<bool, &'static str> {
    let _sequence = body.u32().ok_or("sequence number")?;
    let prefix = Prefix::parse(&mut body, family).ok_or("prefix")?;
    let entries = body.u16().ok_or("count of entries")?;
    if entries == 0 {
        return Ok(false);
    }
    let mut entry = || {
        let (_peer, _time) = (body.u16()?, body.u32()?);
        let length = body.u16()?;
        body.bytes(length.into())
    };
    let attributes = entry().ok_or("RIB entry")?;
    // AS numbers have four octets in all of them. MP_REACH_NLRI has only its next hop (§4.3.4), which is not
    // wanted.
    let mut parser = AttributeParser::new(true);
    let is_next_hop = |kind| matches!(kind, kind::MP_REACH_NLRI | kind::NEXT_HOP);
    let parsed = parser.parse_others(Reader(attributes), is_next_hop);
    if parsed.is_err() || parser.faults.treated_as_withdrawn.is_some() {
        return Err("path attribute");
    }
    builder.add(prefix, parser.update.attributes);
    Ok(true)
}

/// Writes tables as a collector with one peer would.
#[derive(Debug)]
pub struct MrtWriter {
    bytes: Vec<u8>,
    timestamp_s: u32,
    sequence: u32,
}

impl MrtWriter {
    /// A file with its table of peers: `peer_as` at 192.0.2.1.
    pub fn new(timestamp_s: u32, peer_as: u32) -> Self {
        let collector = Ipv4Addr::new(192, 0, 2, 254).octets();
        let peer = Ipv4Addr::new(192, 0, 2, 1).octets();
        let mut body = collector.to_vec();
        // No name of a view, one peer, with an IPv4 address and an AS number of four octets.
        body.extend_from_slice(&[0, 0, 0, 1, 2]);
        body.extend_from_slice(&peer);
        body.extend_from_slice(&peer);
        body.extend_from_slice(&peer_as.to_be_bytes());
        let mut writer = Self {
            bytes: Vec::new(),
            timestamp_s,
            sequence: 0,
        };
        writer.record(PEER_INDEX_TABLE, &body);
        writer
    }

    fn record(&mut self, subtype: u16, body: &[u8]) {
        self.bytes
            .extend_from_slice(&self.timestamp_s.to_be_bytes());
        self.bytes.extend_from_slice(&TABLE_DUMP_V2.to_be_bytes());
        self.bytes.extend_from_slice(&subtype.to_be_bytes());
        self.bytes
            .extend_from_slice(&(body.len() as u32).to_be_bytes());
        self.bytes.extend_from_slice(body);
    }

    /// Adds all routes of a table.
    pub fn write(&mut self, table: &RouteTable) {
        let subtype = match table.family() {
            AddressFamily::Ipv4 => RIB_IPV4_UNICAST,
            AddressFamily::Ipv6 => RIB_IPV6_UNICAST,
        };
        let encoding = AttributeEncoding {
            four_octet_as: true,
            external: false,
        };
        let (mut attributes, mut body) = (Vec::new(), Vec::new());
        for group in table.groups() {
            attributes.clear();
            let next_hop = Ipv4Addr::new(192, 0, 2, 1);
            group
                .attributes
                .emit(encoding, Some(next_hop), &mut attributes);
            for prefix in &group.prefixes {
                body.clear();
                body.extend_from_slice(&self.sequence.to_be_bytes());
                prefix.emit(&mut body);
                // One entry, of peer 0.
                body.extend_from_slice(&[0, 1, 0, 0]);
                body.extend_from_slice(&self.timestamp_s.to_be_bytes());
                body.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
                body.extend_from_slice(&attributes);
                self.record(subtype, &body);
                self.sequence += 1;
            }
        }
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
