//! A table encoded once into UPDATE messages, for any number of sessions.
//!
//! All that sessions do not share stands at offsets that are kept: the next hop, and the AS number in front of
//! the path. A message is filled with prefixes of one group up to its limit.

use std::net::Ipv4Addr;

use crate::routes::table::{RouteGroup, RouteTable};
use crate::wire::attributes::{AttributeEncoding, emit_mp_head, kind};
use crate::wire::framing::{BgpMessageType, HEADER_LEN, emit_header};
use crate::wire::prefix::{AddressFamily, Prefix, SAFI_UNICAST};

/// What sessions must have in common to share a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamEncoding {
    /// How attributes are written.
    pub attributes: AttributeEncoding,
    /// Most octets of a message.
    pub message_len_max: usize,
}

/// Why a table was not encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// No message has room for the attributes and a prefix.
    #[error(
        "routes: the attributes of {prefix} take {length} octets, and with a prefix do not fit a message of \
         {message_len_max}; shorten its AS path or communities, or let both ends take extended messages"
    )]
    AttributesTooLong {
        /// The first prefix with these attributes.
        prefix: Prefix,
        /// Their length.
        length: usize,
        /// The most octets of a message.
        message_len_max: usize,
    },
}

/// A message of a stream: where it ends, and what is patched in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamMessage {
    pub(crate) end: usize,
    /// From the begin of the message; 0 for none.
    pub(crate) next_hop: u16,
    pub(crate) first_as: u16,
    pub(crate) routes: u16,
}

/// UPDATE messages that announce or withdraw a table.
#[derive(Debug)]
pub struct RouteStream {
    family: AddressFamily,
    four_octet_as: bool,
    bytes: Vec<u8>,
    messages: Vec<StreamMessage>,
    routes: usize,
}

impl RouteStream {
    /// Messages that announce all routes of `table`.
    ///
    /// # Errors
    /// Where the attributes of a route fill a message.
    pub fn announce(table: &RouteTable, encoding: StreamEncoding) -> Result<Self, EncodeError> {
        let mut stream = Self::new(table.family(), encoding);
        let mut scratch = Vec::new();
        for group in table.groups() {
            stream.add_group(group, encoding, &mut scratch)?;
        }
        stream.bytes.shrink_to_fit();
        stream.messages.shrink_to_fit();
        Ok(stream)
    }

    /// Messages that withdraw all routes of `table`.
    pub fn withdraw(table: &RouteTable, encoding: StreamEncoding) -> Self {
        let mut stream = Self::new(table.family(), encoding);
        let mut prefixes = table
            .groups()
            .iter()
            .flat_map(|group| &group.prefixes)
            .peekable();
        let head_len = match table.family() {
            AddressFamily::Ipv4 => HEADER_LEN + 4,
            AddressFamily::Ipv6 => HEADER_LEN + 4 + REACH_HEAD_LEN + 3,
        };
        let room = encoding.message_len_max - head_len;
        while prefixes.peek().is_some() {
            let mut nlri = Vec::with_capacity(room);
            let mut routes = 0;
            while let Some(prefix) = prefixes.next_if(|p| nlri.len() + p.buffer_len() <= room) {
                prefix.emit(&mut nlri);
                routes += 1;
            }
            stream.add_withdrawal(&nlri, routes);
        }
        stream
    }

    fn new(family: AddressFamily, encoding: StreamEncoding) -> Self {
        Self {
            family,
            four_octet_as: encoding.attributes.four_octet_as,
            bytes: Vec::new(),
            messages: Vec::new(),
            routes: 0,
        }
    }

    /// The family of its routes.
    pub fn family(&self) -> AddressFamily {
        self.family
    }

    /// Whether AS numbers have four octets.
    pub(crate) fn has_four_octet_as(&self) -> bool {
        self.four_octet_as
    }

    /// How many routes it announces or withdraws.
    pub fn routes(&self) -> usize {
        self.routes
    }

    /// How many messages it has.
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// All messages, with zeros where a session's own values belong.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn messages(&self) -> &[StreamMessage] {
        &self.messages
    }

    /// Octets that it holds, for who accounts for memory.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.messages.capacity() * size_of::<StreamMessage>()
    }

    fn add_group(
        &mut self,
        group: &RouteGroup,
        encoding: StreamEncoding,
        scratch: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let Some(first) = group.prefixes.first() else {
            return Ok(());
        };
        scratch.clear();
        let placeholder = (self.family == AddressFamily::Ipv4).then_some(Ipv4Addr::UNSPECIFIED);
        let offsets = group
            .attributes
            .emit(encoding.attributes, placeholder, scratch);
        let head_len = HEADER_LEN + 4 + scratch.len() + self.reach_len();
        let longest = 1 + self.family.octets();
        if head_len + longest > encoding.message_len_max {
            return Err(EncodeError::AttributesTooLong {
                prefix: *first,
                length: scratch.len(),
                message_len_max: encoding.message_len_max,
            });
        }
        let room = encoding.message_len_max - head_len;
        let mut prefixes = group.prefixes.as_slice();
        while !prefixes.is_empty() {
            let mut nlri_len = 0;
            let fits = |prefix: &&Prefix| {
                nlri_len += prefix.buffer_len();
                nlri_len <= room
            };
            let (now, later) = prefixes.split_at(prefixes.iter().take_while(fits).count());
            prefixes = later;
            let begin = self.bytes.len();
            let shared_at = self.emit_announcement(now, scratch);
            let at = |offset: Option<usize>| offset.map_or(0, |o| (shared_at + o) as u16);
            let next_hop = match self.family {
                AddressFamily::Ipv4 => at(offsets.next_hop),
                AddressFamily::Ipv6 => NEXT_HOP_IPV6_AT as u16,
            };
            self.finish_message(begin, next_hop, at(offsets.first_as), now.len());
        }
        Ok(())
    }

    /// What MP_REACH_NLRI needs besides its prefixes.
    fn reach_len(&self) -> usize {
        match self.family {
            AddressFamily::Ipv4 => 0,
            AddressFamily::Ipv6 => REACH_HEAD_LEN + 5 + 16,
        }
    }

    /// Appends a message with `prefixes` and the attributes in `shared`; gives where in it these begin.
    fn emit_announcement(&mut self, prefixes: &[Prefix], shared: &[u8]) -> usize {
        let nlri_len: usize = prefixes.iter().map(Prefix::buffer_len).sum();
        let reach_len = self.reach_len();
        let out = &mut self.bytes;
        let begin = out.len();
        emit_header(
            BgpMessageType::Update,
            4 + reach_len + shared.len() + nlri_len,
            out,
        );
        let attributes_len = match self.family {
            AddressFamily::Ipv4 => shared.len(),
            AddressFamily::Ipv6 => reach_len + nlri_len + shared.len(),
        };
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(attributes_len as u16).to_be_bytes());
        if self.family == AddressFamily::Ipv6 {
            // First of all attributes, so that who finds a fault in others knows the prefixes (RFC 7606 §5.1).
            emit_mp_head(kind::MP_REACH_NLRI, 5 + 16 + nlri_len, out);
            out.extend_from_slice(&AddressFamily::Ipv6.afi().to_be_bytes());
            out.extend_from_slice(&[SAFI_UNICAST, 16]);
            out.extend_from_slice(&[0; 16 + 1]);
            prefixes.iter().for_each(|prefix| prefix.emit(out));
        }
        let shared_at = out.len() - begin;
        out.extend_from_slice(shared);
        if self.family == AddressFamily::Ipv4 {
            prefixes.iter().for_each(|prefix| prefix.emit(out));
        }
        shared_at
    }

    fn add_withdrawal(&mut self, nlri: &[u8], routes: usize) {
        let begin = self.bytes.len();
        let out = &mut self.bytes;
        match self.family {
            AddressFamily::Ipv4 => {
                emit_header(BgpMessageType::Update, 4 + nlri.len(), out);
                out.extend_from_slice(&(nlri.len() as u16).to_be_bytes());
                out.extend_from_slice(nlri);
                out.extend_from_slice(&[0, 0]);
            }
            AddressFamily::Ipv6 => {
                let length = REACH_HEAD_LEN + 3 + nlri.len();
                emit_header(BgpMessageType::Update, 4 + length, out);
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&(length as u16).to_be_bytes());
                emit_mp_head(kind::MP_UNREACH_NLRI, 3 + nlri.len(), out);
                out.extend_from_slice(&AddressFamily::Ipv6.afi().to_be_bytes());
                out.push(SAFI_UNICAST);
                out.extend_from_slice(nlri);
            }
        }
        self.finish_message(begin, 0, 0, routes);
    }

    fn finish_message(&mut self, begin: usize, next_hop: u16, first_as: u16, routes: usize) {
        debug_assert!(self.bytes.len() - begin <= usize::from(u16::MAX));
        self.messages.push(StreamMessage {
            end: self.bytes.len(),
            next_hop,
            first_as,
            routes: routes as u16,
        });
        self.routes += routes;
    }
}

/// Flags, type and a length of two octets: the head that multiprotocol attributes always have here, so that
/// the next hop is always at the same place.
const REACH_HEAD_LEN: usize = 4;
/// Where the next hop of IPv6 is in a message: behind lengths, the head, AFI, SAFI and its own length.
const NEXT_HOP_IPV6_AT: usize = HEADER_LEN + 4 + REACH_HEAD_LEN + 4;
