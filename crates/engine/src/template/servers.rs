//! Which template serves a client that comes.
//!
//! As in TRex, who has rules about the first bytes is asked first; who has none takes the rest.

use super::error::{ProfileError, TemplateProblem};
use super::pool::AddressRange;
use super::spec::{AssociationSpec, L7_OFFSETS_MAX};
use super::tunables::SideTunables;
use crate::app::Transport;

/// The number of a template in its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TemplateIndex(pub u16);

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// This template.
    Template(TemplateIndex),
    /// The first bytes decide: ask [`Servers::by_payload`] when they are there. Until then TCP is
    /// that of this template; all that may be meant have the same.
    Payload(TemplateIndex),
}

/// All servers of a profile.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// In the order of their keys.
    ports: Vec<Port>,
}

/// Those of one port. No two ranges of one list overlap, and they are in ascending order.
#[derive(Clone, Debug)]
struct Port {
    key: u32,
    plain: Vec<(AddressRange, TemplateIndex)>,
    payload: Vec<PayloadRule>,
}

/// Servers of a port and a range of addresses, told apart by the same bytes.
#[derive(Clone, Debug)]
struct PayloadRule {
    range: AddressRange,
    /// Where to look, and at which bits.
    bytes: Vec<(u8, u8)>,
    /// What is found there, one byte after another, and who serves then.
    values: Vec<(u64, TemplateIndex)>,
}

/// What a server is told apart by, resolved.
#[derive(Clone, Debug, Default)]
pub(super) struct PayloadKey {
    /// Where to look, and at which bits; empty: the first bytes do not matter.
    pub(super) bytes: Vec<(u8, u8)>,
    /// What must be there.
    pub(super) value: u64,
}

impl Servers {
    /// Who serves clients that ask for a port at an address.
    pub fn find(&self, transport: Transport, port: u16, address: u32) -> Option<Server> {
        let port = self.port(transport, port)?;
        if let Some(rule) = port.rule(address) {
            return Some(Server::Payload(rule.values[0].1));
        }
        port.plain(address).map(Server::Template)
    }

    /// Who serves clients that begin with these bytes.
    pub fn by_payload(
        &self,
        transport: Transport,
        port: u16,
        address: u32,
        payload: &[u8],
    ) -> Option<TemplateIndex> {
        let port = self.port(transport, port)?;
        let found = port.rule(address).and_then(|rule| rule.find(payload));
        found.or_else(|| port.plain(address))
    }

    fn port(&self, transport: Transport, port: u16) -> Option<&Port> {
        let key = key(transport, port);
        let place = self.ports.binary_search_by_key(&key, |port| port.key);
        place.ok().map(|place| &self.ports[place])
    }

    /// Adds a server; `tunables` are those of all templates so far, this one included.
    pub(super) fn add(
        &mut self,
        template: TemplateIndex,
        transport: Transport,
        association: &AssociationSpec,
        payload: PayloadKey,
        tunables: impl Fn(TemplateIndex) -> SideTunables,
    ) -> Result<(), ProfileError> {
        let range = AddressRange {
            first: association.first,
            last: association.last,
        };
        let key = key(transport, association.port);
        let place = match self.ports.binary_search_by_key(&key, |port| port.key) {
            Ok(place) => place,
            Err(place) => {
                let port = Port {
                    key,
                    plain: Vec::new(),
                    payload: Vec::new(),
                };
                self.ports.insert(place, port);
                place
            }
        };
        let port = &mut self.ports[place];
        if transport == Transport::Stream {
            // The handshake comes before the first bytes.
            let mine = tunables(template);
            let differs = |other: &TemplateIndex| tunables(*other).tcp != mine.tcp;
            let others = port.others_told_apart(range, payload.bytes.is_empty());
            if let Some(other) = others.into_iter().find(differs) {
                return Err(refused(template, association.port, other, Clash::Tunables));
            }
        }
        let clash = if payload.bytes.is_empty() {
            port.add_plain(range, template)
        } else {
            port.add_payload(range, payload, template)
        };
        clash.map_err(|(other, clash)| refused(template, association.port, other, clash))
    }
}

/// Why two servers cannot share a port.
#[derive(Clone, Copy, Debug)]
enum Clash {
    Range,
    Bytes,
    Values,
    Tunables,
}

fn refused(template: TemplateIndex, port: u16, other: TemplateIndex, clash: Clash) -> ProfileError {
    let other = other.0.into();
    let problem = match clash {
        Clash::Range => TemplateProblem::RangesOverlap { port, other },
        Clash::Bytes => TemplateProblem::PayloadRulesDiffer { port, other },
        Clash::Values => TemplateProblem::PayloadTaken { port, other },
        Clash::Tunables => TemplateProblem::PayloadTunables { port, other },
    };
    ProfileError::Template {
        template: template.0.into(),
        problem,
    }
}

fn key(transport: Transport, port: u16) -> u32 {
    u32::from(port) << 1 | u32::from(transport == Transport::Datagram)
}

fn overlap(one: AddressRange, other: AddressRange) -> bool {
    one.first <= other.last && other.first <= one.last
}

impl Port {
    fn plain(&self, address: u32) -> Option<TemplateIndex> {
        let after = self
            .plain
            .partition_point(|(range, _)| range.first <= address);
        let (range, template) = self.plain.get(after.checked_sub(1)?)?;
        range.contains(address).then_some(*template)
    }

    fn rule(&self, address: u32) -> Option<&PayloadRule> {
        let after = self
            .payload
            .partition_point(|rule| rule.range.first <= address);
        let rule = self.payload.get(after.checked_sub(1)?)?;
        rule.range.contains(address).then_some(rule)
    }

    fn add_plain(
        &mut self,
        range: AddressRange,
        template: TemplateIndex,
    ) -> Result<(), (TemplateIndex, Clash)> {
        // Who overlaps ends at or after the beginning, and begins at or before the end.
        let place = self
            .plain
            .partition_point(|(other, _)| other.last < range.first);
        match self.plain.get(place) {
            Some((other, taken)) if overlap(*other, range) => Err((*taken, Clash::Range)),
            _ => {
                self.plain.insert(place, (range, template));
                Ok(())
            }
        }
    }

    fn add_payload(
        &mut self,
        range: AddressRange,
        PayloadKey { bytes, value }: PayloadKey,
        template: TemplateIndex,
    ) -> Result<(), (TemplateIndex, Clash)> {
        let place = self
            .payload
            .partition_point(|rule| rule.range.last < range.first);
        let rule = self.payload.get_mut(place);
        let Some(rule) = rule.filter(|rule| overlap(rule.range, range)) else {
            let rule = PayloadRule {
                range,
                bytes,
                values: vec![(value, template)],
            };
            self.payload.insert(place, rule);
            return Ok(());
        };
        let other = rule.values[0].1;
        if rule.range != range {
            return Err((other, Clash::Range));
        }
        if rule.bytes != bytes {
            return Err((other, Clash::Bytes));
        }
        if let Some((_, other)) = rule.values.iter().find(|(taken, _)| *taken == value) {
            return Err((*other, Clash::Values));
        }
        rule.values.push((value, template));
        Ok(())
    }

    /// Who shares a range with a server and is told apart from it by the first bytes only.
    fn others_told_apart(&self, range: AddressRange, is_plain: bool) -> Vec<TemplateIndex> {
        let rules = self
            .payload
            .iter()
            .filter(|rule| overlap(rule.range, range));
        let mut others: Vec<TemplateIndex> = rules.map(|rule| rule.values[0].1).collect();
        if !is_plain {
            let plain = self
                .plain
                .iter()
                .filter(|(other, _)| overlap(*other, range));
            others.extend(plain.map(|(_, template)| *template));
        }
        others
    }
}

impl PayloadRule {
    fn find(&self, payload: &[u8]) -> Option<TemplateIndex> {
        let found = value_at(&self.bytes, payload)?;
        let mut values = self.values.iter();
        let value = values.find(|(value, _)| *value == found);
        value.map(|(_, template)| *template)
    }
}

/// The bytes that count, one after another; `None` when there are not so many.
pub(super) fn value_at(bytes: &[(u8, u8)], payload: &[u8]) -> Option<u64> {
    debug_assert!(bytes.len() <= L7_OFFSETS_MAX, "they fit in 64 bits");
    bytes.iter().try_fold(0, |value, (offset, mask)| {
        let byte = payload.get(usize::from(*offset))?;
        Some(value << 8 | u64::from(byte & mask))
    })
}
