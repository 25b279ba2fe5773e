//! UPDATE (RFC 4271 §4.3, RFC 4760), with its errors handled as RFC 7606 wants: few of them end the session.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::attributes::{
    AttributeEncoding, PathAttributes, RawAttribute, UnknownAttribute, emit_head, flag, kind,
};
use super::framing::{BgpMessageType, emit_header};
use super::notification::{Notification, code};
use super::prefix::{AddressFamily, Prefix, SAFI_UNICAST};
use super::reader::Reader;

const MALFORMED_ATTRIBUTE_LIST: u8 = 1;
const UNRECOGNIZED_WELL_KNOWN: u8 = 2;
const MISSING_WELL_KNOWN: u8 = 3;
const ATTRIBUTE_FLAGS: u8 = 4;
const ATTRIBUTE_LENGTH: u8 = 5;
const INVALID_ORIGIN: u8 = 6;
const OPTIONAL_ATTRIBUTE: u8 = 9;
const INVALID_NETWORK_FIELD: u8 = 10;
const MALFORMED_AS_PATH: u8 = 11;

/// An UPDATE message: what is withdrawn, and what is announced with which attributes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Update {
    /// Withdrawn prefixes of IPv4.
    pub withdrawn_ipv4: Vec<Prefix>,
    /// Withdrawn prefixes of IPv6.
    pub withdrawn_ipv6: Vec<Prefix>,
    /// Announced prefixes of IPv4, which have `next_hop_ipv4`.
    pub announced_ipv4: Vec<Prefix>,
    /// Announced prefixes of IPv6, which have `next_hop_ipv6`.
    pub announced_ipv6: Vec<Prefix>,
    /// NEXT_HOP.
    pub next_hop_ipv4: Option<Ipv4Addr>,
    /// The global address of the next hop in MP_REACH_NLRI.
    pub next_hop_ipv6: Option<Ipv6Addr>,
    /// What the announced routes have in common.
    pub attributes: PathAttributes,
    /// The family whose End-of-RIB marker this is (RFC 4724 §2).
    pub end_of_rib: Option<AddressFamily>,
}

/// What was wrong with a message that does not end its session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateFaults {
    /// Why its announced routes count as withdrawn ("treat-as-withdraw").
    pub treated_as_withdrawn: Option<Notification>,
    /// How many attributes were ignored ("attribute discard").
    pub discarded_attributes: u32,
}

/// A session end of an UPDATE.
fn reset(subcode: u8) -> Notification {
    Notification::new(code::UPDATE_MESSAGE, subcode)
}

impl Update {
    /// The End-of-RIB marker of a family.
    pub fn end_of_rib(family: AddressFamily) -> Self {
        Self {
            end_of_rib: Some(family),
            ..Self::default()
        }
    }

    /// Appends the message with the AS path as it is, which must begin with the sender's number where the peer
    /// is external. LOCAL_PREF is always there. All of it must fit 65,535 octets.
    pub fn emit(&self, four_octet_as: bool, out: &mut Vec<u8>) {
        let mut withdrawn = Vec::new();
        self.withdrawn_ipv4
            .iter()
            .for_each(|prefix| prefix.emit(&mut withdrawn));
        let mut attributes = Vec::new();
        if !self.announced_ipv6.is_empty() {
            let next_hop = self.next_hop_ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED);
            emit_reach(next_hop, &self.announced_ipv6, &mut attributes);
        }
        if !self.withdrawn_ipv6.is_empty() || self.end_of_rib == Some(AddressFamily::Ipv6) {
            emit_unreach(&self.withdrawn_ipv6, &mut attributes);
        }
        if !self.announced_ipv4.is_empty() || !self.announced_ipv6.is_empty() {
            let encoding = AttributeEncoding {
                four_octet_as,
                external: false,
            };
            self.attributes
                .emit(encoding, self.next_hop_ipv4, &mut attributes);
        }
        let mut announced = Vec::new();
        self.announced_ipv4
            .iter()
            .for_each(|prefix| prefix.emit(&mut announced));
        let body_len = 2 + withdrawn.len() + 2 + attributes.len() + announced.len();
        emit_header(BgpMessageType::Update, body_len, out);
        out.extend_from_slice(&(withdrawn.len() as u16).to_be_bytes());
        out.extend_from_slice(&withdrawn);
        out.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
        out.extend_from_slice(&attributes);
        out.extend_from_slice(&announced);
    }

    /// Reads what stands behind the header.
    ///
    /// # Errors
    /// What ends the session: lengths that contradict each other, prefixes that cannot be read, malformed
    /// multiprotocol attributes, and well-known attributes that are not known.
    pub fn parse(body: &[u8], four_octet_as: bool) -> Result<(Self, UpdateFaults), Notification> {
        let mut reader = Reader(body);
        let mut field = || {
            let length = reader.u16()?;
            reader.bytes(length.into()).map(Reader)
        };
        let mut fields = || Some((field()?, field()?));
        let (withdrawn, attributes) = fields().ok_or_else(|| reset(MALFORMED_ATTRIBUTE_LIST))?;
        let prefixes = |reader| {
            let list = Prefix::parse_list(reader, AddressFamily::Ipv4);
            list.ok_or_else(|| reset(INVALID_NETWORK_FIELD))
        };
        let has_attributes = !attributes.is_empty();
        let mut parser = AttributeParser::new(four_octet_as);
        parser.update.withdrawn_ipv4 = prefixes(withdrawn)?;
        parser.update.announced_ipv4 = prefixes(reader)?;
        parser.parse_all(attributes)?;
        let AttributeParser {
            mut update,
            mut faults,
            seen,
            ..
        } = parser;
        update.check_well_known(&seen, &mut faults);
        if faults.treated_as_withdrawn.is_some() {
            update.withdrawn_ipv4.append(&mut update.announced_ipv4);
            update.withdrawn_ipv6.append(&mut update.announced_ipv6);
        }
        if !has_attributes && update.is_empty() {
            update.end_of_rib = Some(AddressFamily::Ipv4);
        }
        Ok((update, faults))
    }

    fn is_empty(&self) -> bool {
        let lists = [
            &self.withdrawn_ipv4,
            &self.withdrawn_ipv6,
            &self.announced_ipv4,
            &self.announced_ipv6,
        ];
        lists.iter().all(|list| list.is_empty())
    }

    /// Routes without what they must have are withdrawn (RFC 7606 §3 d).
    fn check_well_known(&self, seen: &[bool; 256], faults: &mut UpdateFaults) {
        let ipv4 = !self.announced_ipv4.is_empty();
        let any = ipv4 || !self.announced_ipv6.is_empty();
        let needed = [
            (kind::ORIGIN, any),
            (kind::AS_PATH, any),
            (kind::NEXT_HOP, ipv4),
        ];
        for (kind, is_needed) in needed {
            if is_needed && !seen[usize::from(kind)] {
                let data = vec![kind];
                let missing =
                    Notification::with_data(code::UPDATE_MESSAGE, MISSING_WELL_KNOWN, data);
                faults.treated_as_withdrawn.get_or_insert(missing);
            }
        }
    }
}

fn emit_reach(next_hop: Ipv6Addr, prefixes: &[Prefix], out: &mut Vec<u8>) {
    let lengths: usize = prefixes.iter().map(Prefix::buffer_len).sum();
    emit_head(flag::OPTIONAL, kind::MP_REACH_NLRI, 5 + 16 + lengths, out);
    out.extend_from_slice(&AddressFamily::Ipv6.afi().to_be_bytes());
    out.extend_from_slice(&[SAFI_UNICAST, 16]);
    out.extend_from_slice(&next_hop.octets());
    out.push(0);
    prefixes.iter().for_each(|prefix| prefix.emit(out));
}

fn emit_unreach(prefixes: &[Prefix], out: &mut Vec<u8>) {
    let lengths: usize = prefixes.iter().map(Prefix::buffer_len).sum();
    emit_head(flag::OPTIONAL, kind::MP_UNREACH_NLRI, 3 + lengths, out);
    out.extend_from_slice(&AddressFamily::Ipv6.afi().to_be_bytes());
    out.push(SAFI_UNICAST);
    prefixes.iter().for_each(|prefix| prefix.emit(out));
}

/// Reads attributes one after the other into an update.
pub(crate) struct AttributeParser {
    four_octet_as: bool,
    pub(crate) update: Update,
    pub(crate) faults: UpdateFaults,
    seen: [bool; 256],
}

impl AttributeParser {
    pub(crate) fn new(four_octet_as: bool) -> Self {
        Self {
            four_octet_as,
            update: Update::default(),
            faults: UpdateFaults::default(),
            seen: [false; 256],
        }
    }

    /// Reads all attributes. Those behind one that does not end in the list are lost (RFC 7606 §4).
    pub(crate) fn parse_all(&mut self, reader: Reader<'_>) -> Result<(), Notification> {
        self.parse_others(reader, |_| false)
    }

    /// Reads all attributes but those whose types are skipped.
    pub(crate) fn parse_others(
        &mut self,
        mut reader: Reader<'_>,
        is_skipped: impl Fn(u8) -> bool,
    ) -> Result<(), Notification> {
        while !reader.is_empty() {
            let Some(attribute) = RawAttribute::parse(&mut reader) else {
                self.withdraw(MALFORMED_ATTRIBUTE_LIST, &[]);
                return Ok(());
            };
            if !is_skipped(attribute.kind) {
                self.parse(&attribute)?;
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, subcode: u8, data: &[u8]) {
        let fault = Notification::with_data(code::UPDATE_MESSAGE, subcode, data.to_vec());
        self.faults.treated_as_withdrawn.get_or_insert(fault);
    }

    fn parse(&mut self, attribute: &RawAttribute<'_>) -> Result<(), Notification> {
        let is_multiprotocol =
            matches!(attribute.kind, kind::MP_REACH_NLRI | kind::MP_UNREACH_NLRI);
        let seen = &mut self.seen[usize::from(attribute.kind)];
        if *seen {
            // A second one is ignored, but for those that carry prefixes (RFC 7606 §3 g).
            if is_multiprotocol {
                return Err(reset(MALFORMED_ATTRIBUTE_LIST));
            }
            self.faults.discarded_attributes += 1;
            return Ok(());
        }
        *seen = true;
        if !attribute.has_right_flags() {
            self.withdraw(ATTRIBUTE_FLAGS, &[attribute.flags, attribute.kind]);
            // Its prefixes still have to be known, to be withdrawn.
            if !is_multiprotocol {
                return Ok(());
            }
        }
        if is_multiprotocol {
            let read = match attribute.kind {
                kind::MP_REACH_NLRI => self.parse_reach(attribute.value),
                _ => self.parse_unreach(attribute.value),
            };
            return read.ok_or_else(|| reset(OPTIONAL_ATTRIBUTE));
        }
        self.parse_value(attribute)
    }

    fn parse_value(&mut self, attribute: &RawAttribute<'_>) -> Result<(), Notification> {
        let attributes = &mut self.update.attributes;
        let wide = self.four_octet_as;
        let fault = match attribute.kind {
            kind::ORIGIN => match attribute.value {
                [octet] => super::attributes::PathOrigin::of(*octet)
                    .map(|origin| attributes.origin = origin)
                    .ok_or(INVALID_ORIGIN),
                _ => Err(ATTRIBUTE_LENGTH),
            },
            kind::AS_PATH => attribute
                .as_path(wide)
                .map(|path| attributes.as_path = path)
                .ok_or(MALFORMED_AS_PATH),
            kind::NEXT_HOP => <[u8; 4]>::try_from(attribute.value)
                .map(|octets| self.update.next_hop_ipv4 = Some(octets.into()))
                .map_err(|_| ATTRIBUTE_LENGTH),
            kind::MULTI_EXIT_DISC => attribute
                .u32()
                .map(|value| attributes.multi_exit_disc = Some(value))
                .ok_or(ATTRIBUTE_LENGTH),
            kind::LOCAL_PREF => attribute
                .u32()
                .map(|value| attributes.local_pref = Some(value))
                .ok_or(ATTRIBUTE_LENGTH),
            kind::COMMUNITIES => attribute
                .u32s(1)
                .map(|values| attributes.communities = values)
                .ok_or(OPTIONAL_ATTRIBUTE),
            kind::LARGE_COMMUNITIES => attribute
                .u32s(3)
                .map(|v| {
                    let triples = v.chunks_exact(3).map(|c| [c[0], c[1], c[2]]);
                    attributes.large_communities = triples.collect();
                })
                .ok_or(OPTIONAL_ATTRIBUTE),
            _ => return self.parse_discardable(attribute),
        };
        if let Err(subcode) = fault {
            self.withdraw(subcode, &[attribute.flags, attribute.kind]);
        }
        Ok(())
    }

    /// Attributes that are only ignored where they are wrong, and those that have no field.
    fn parse_discardable(&mut self, attribute: &RawAttribute<'_>) -> Result<(), Notification> {
        let attributes = &mut self.update.attributes;
        match attribute.kind {
            kind::ATOMIC_AGGREGATE if attribute.value.is_empty() => {
                attributes.atomic_aggregate = true;
            }
            kind::AGGREGATOR => match attribute.aggregator(self.four_octet_as) {
                Some(aggregator) => attributes.aggregator = Some(aggregator),
                None => self.faults.discarded_attributes += 1,
            },
            kind::ATOMIC_AGGREGATE => self.faults.discarded_attributes += 1,
            _ if attribute.flags & flag::OPTIONAL == 0 => {
                return Err(reset(UNRECOGNIZED_WELL_KNOWN));
            }
            kind => attributes.others.push(UnknownAttribute {
                flags: attribute.flags & !flag::EXTENDED_LENGTH,
                kind,
                value: attribute.value.to_vec(),
            }),
        }
        Ok(())
    }

    /// Takes prefixes of families that we have; others were not agreed upon, and are ignored.
    fn parse_reach(&mut self, value: &[u8]) -> Option<()> {
        let mut reader = Reader(value);
        let (afi, safi) = (reader.u16()?, reader.u8()?);
        let next_hop_len = reader.u8()?;
        let mut next_hop = Reader(reader.bytes(next_hop_len.into())?);
        reader.u8()?;
        match AddressFamily::of(afi, safi) {
            // A link-local address may stand behind the global one (RFC 2545 §3).
            Some(AddressFamily::Ipv6) if matches!(next_hop_len, 16 | 32) => {
                self.update.next_hop_ipv6 = next_hop.ipv6();
                self.update.announced_ipv6 = Prefix::parse_list(reader, AddressFamily::Ipv6)?;
            }
            Some(AddressFamily::Ipv4) if next_hop_len == 4 => {
                let prefixes = Prefix::parse_list(reader, AddressFamily::Ipv4)?;
                self.update.next_hop_ipv4 = next_hop.ipv4();
                self.seen[usize::from(kind::NEXT_HOP)] = true;
                self.update.announced_ipv4.extend(prefixes);
            }
            Some(_) => return None,
            None => {}
        }
        Some(())
    }

    fn parse_unreach(&mut self, value: &[u8]) -> Option<()> {
        let mut reader = Reader(value);
        let family = AddressFamily::of(reader.u16()?, reader.u8()?);
        let Some(family) = family else {
            return Some(());
        };
        let is_marker = reader.is_empty();
        let prefixes = Prefix::parse_list(reader, family)?;
        match family {
            AddressFamily::Ipv4 => self.update.withdrawn_ipv4.extend(prefixes),
            AddressFamily::Ipv6 => self.update.withdrawn_ipv6 = prefixes,
        }
        if is_marker && self.update.is_empty() {
            self.update.end_of_rib = Some(family);
        }
        Some(())
    }
}
