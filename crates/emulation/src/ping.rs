//! Pings of clients: echo requests at a pace, and what came back. Shared by ICMP and ICMPv6, which
//! write the packets.

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::client::ClientId;
use crate::counters::{self, CounterParams, CounterReport};
use crate::memory;
use crate::plugin::Context;
use crate::read::{Done, Float32, failed_check};
use crate::timers::TimerId;

/// Bytes of the mark and the time of sending, with which the data of a request begins.
pub const PAYLOAD_BYTES_MIN: u16 = 16;
/// The mark.
const MAGIC: [u8; 8] = [0xc1, 0x5c, 0x0c, 0x15, 0xc0, 0xbe, 0x5b, 0xe5];
/// The shortest time between two requests: 100,000 a second.
const GAP_MIN: Nanos = 10 * MICROSECOND;
/// Replies that took longer are not measured.
const LATENCY_MAX: Nanos = 5 * SECOND;

crate::counters! {
    /// What a ping counted.
    pub struct PingCounters: u64, "icmp_ping_stats" {
        sent: "requestsSent", "tx echo requests sent", "pkts", Info;
        left: "requestsLeft", "tx echo requests left", "pkts", Info;
        bad_identifier: "repliesBadIdentifier", "rx echo replies bad identifier", "pkts", Error;
        malformed: "repliesMalformedPkt", "rx echo replies malformed packet", "pkts", Error;
        bad_latency: "repliesBadLatency", "rx echo replies bad latency", "pkts", Error;
        unreachable: "dstUnreachable", "rx destination unreachable", "pkts", Info;
        in_order: "repliesInOrder", "rx echo replies in order", "pkts", Info;
        out_of_order: "repliesOutOfOrder", "rx echo replies out of order", "pkts", Info;
        average_us: "avgLatency", "average latency", "usec", Info, zero;
        minimum_us: "minLatency", "minimal latency", "usec", Info, zero;
        maximum_us: "maxLatency", "maximal latency", "usec", Info, zero;
    }
}

/// What a user asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PingRequest {
    /// How many requests.
    pub amount: u32,
    /// How many a second; none when it is negative.
    pub pace: f64,
    /// For how long after the last request replies count, and the counters can be read.
    pub timeout: Nanos,
    /// Bytes behind the ICMP header.
    pub payload_bytes: u16,
}

/// What both families of pings can be told.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, bound(deserialize = "A: Deserialize<'de> + Default"))]
#[schemars(rename = "Ping{A}", bound = "A: JsonSchema + Default")]
pub struct PingParams<A> {
    /// Where to; without it to the client's gateway.
    pub dst: A,
    /// From which of the client's addresses; of IPv6 only.
    pub src: A,
    /// How many requests.
    pub amount: u32,
    /// How many a second; none while it is negative.
    pub pace: Float32,
    /// For how many seconds after the last request replies count, and the counters can be read.
    pub timeout: u8,
    /// Bytes behind the ICMP header, at least 16.
    #[serde(rename = "payloadSize")]
    pub payload_bytes: u16,
}

impl<A: Default> Default for PingParams<A> {
    fn default() -> PingParams<A> {
        PingParams {
            dst: A::default(),
            src: A::default(),
            amount: 5,
            pace: Float32(1.0),
            timeout: 5,
            payload_bytes: PAYLOAD_BYTES_MIN,
        }
    }
}

impl<A> PingParams<A> {
    /// Checks what both families have; `structure` is the reference's name of the parameters.
    ///
    /// # Errors
    /// When one has a wrong value.
    pub fn check(&self, structure: &str) -> Result<PingRequest, Error> {
        let checks = [
            (self.amount == 0, "Amount", "ne"),
            (self.pace.0 == 0.0, "Pace", "ne"),
            (self.timeout == 0, "Timeout", "ne"),
            (self.payload_bytes < PAYLOAD_BYTES_MIN, "PayloadSize", "gte"),
        ];
        if let Some((_, field, check)) = checks.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            return Err(failed_check(structure, field, check));
        }
        Ok(PingRequest {
            amount: self.amount,
            pace: self.pace.0,
            timeout: Nanos::from(self.timeout) * SECOND,
            payload_bytes: self.payload_bytes,
        })
    }
}

/// One ping. `T` says whence and where to.
#[derive(Debug)]
struct Ping<T> {
    request: PingRequest,
    target: T,
    identifier: u16,
    /// The number of the first request; they go up by one.
    first: u16,
    /// Which request's reply is the next in order.
    expected: u32,
    latency_sum_us: u64,
    latencies: u64,
    counters: PingCounters,
    timer: TimerId,
}

/// A request to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoRequest<T> {
    /// Whence and where to.
    pub target: T,
    /// The identifier of its ICMP header.
    pub identifier: u16,
    /// The sequence number.
    pub sequence: u16,
    /// Bytes behind the ICMP header, which [`write_payload`] fills.
    pub payload_bytes: u16,
}

/// The pings of a namespace, one a client at a time.
#[derive(Debug)]
pub struct Pings<T> {
    pings: FxHashMap<ClientId, Ping<T>>,
    tag: u32,
}

impl<T: Copy> Pings<T> {
    /// No pings; the timers of those to come are clients' timers with this tag.
    pub fn new(tag: u32) -> Pings<T> {
        Pings {
            pings: FxHashMap::default(),
            tag,
        }
    }

    /// Bytes of the table of pings.
    pub(crate) fn table_bytes(&self) -> usize {
        memory::table(&self.pings)
    }

    /// Begins a ping; returns the first request.
    ///
    /// # Errors
    /// When the client has one already.
    pub fn start(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        target: T,
        request: PingRequest,
    ) -> Result<Option<EchoRequest<T>>, Error> {
        if self.pings.contains_key(&client) {
            return Err(Error::execution("Client is already pinging or in timeout."));
        }
        let counters = PingCounters {
            left: request.amount.into(),
            ..PingCounters::default()
        };
        let ping = Ping {
            request,
            target,
            identifier: context.draw("ping identifier") as u16,
            first: context.draw("ping sequence") as u16,
            expected: 0,
            latency_sum_us: 0,
            latencies: 0,
            counters,
            timer: TimerId::NONE,
        };
        self.pings.insert(client, ping);
        if request.pace < 0.0 {
            return Ok(None);
        }
        Ok(self.handle_timeout(context, client))
    }

    /// Ends a ping.
    ///
    /// # Errors
    /// When there is none.
    pub fn stop(&mut self, context: &mut Context<'_>, client: ClientId) -> Result<Done, Error> {
        let ping = self.pings.remove(&client);
        let ping = ping.ok_or_else(|| Error::execution("There is no active pinging."))?;
        context.cancel_timer(ping.timer);
        Ok(Done)
    }

    /// Forgets the ping of a client that goes.
    pub fn remove_client(&mut self, client: ClientId) {
        self.pings.remove(&client);
    }

    /// The timer of a client is over: returns the next request, if there is one.
    pub fn handle_timeout(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
    ) -> Option<EchoRequest<T>> {
        let ping = self.pings.get_mut(&client)?;
        if ping.counters.left == 0 {
            self.pings.remove(&client);
            return None;
        }
        let sequence = ping.first.wrapping_add(ping.counters.sent as u16);
        ping.counters.sent += 1;
        ping.counters.left -= 1;
        let delay = if ping.counters.left == 0 {
            ping.request.timeout
        } else {
            let gap = SECOND as f64 / ping.request.pace;
            (gap as Nanos).max(GAP_MIN)
        };
        ping.timer = context.set_timer(delay, Some(client), self.tag);
        Some(EchoRequest {
            target: ping.target,
            identifier: ping.identifier,
            sequence,
            payload_bytes: ping.request.payload_bytes,
        })
    }

    /// A reply arrived for a client.
    pub fn handle_reply(
        &mut self,
        now: Nanos,
        client: ClientId,
        (identifier, sequence): (u16, u16),
        payload: &[u8],
    ) {
        let Some(ping) = self.pings.get_mut(&client) else {
            return;
        };
        let Some(sent_at) = sent_at(payload) else {
            ping.counters.malformed += 1;
            return;
        };
        if identifier != ping.identifier {
            ping.counters.bad_identifier += 1;
            return;
        }
        let expected = ping.expected;
        // Numbers are 16 bits long: of all places with it, the one closest to what is expected.
        let ahead = sequence.wrapping_sub(ping.first.wrapping_add(expected as u16));
        let place = expected.wrapping_add_signed((ahead as i16).into());
        if u64::from(place) >= ping.counters.sent {
            ping.counters.out_of_order += 1;
            return;
        }
        match now
            .checked_sub(sent_at)
            .filter(|&latency| latency <= LATENCY_MAX)
        {
            None => ping.counters.bad_latency += 1,
            Some(latency) => ping.measure(latency / MICROSECOND),
        }
        if place == expected {
            ping.counters.in_order += 1;
        } else {
            ping.counters.out_of_order += 1;
        }
        ping.expected = expected.max(place + 1);
    }

    /// A router or host said that a request cannot get where it should.
    pub fn handle_unreachable(&mut self, client: ClientId, identifier: u16) {
        let ping = self.pings.get_mut(&client);
        if let Some(ping) = ping.filter(|ping| ping.identifier == identifier) {
            ping.counters.unreachable += 1;
        }
    }

    /// Answers a request for the counters of a ping.
    ///
    /// # Errors
    /// When there is no ping, or a parameter is wrong.
    pub fn report(
        &mut self,
        client: ClientId,
        params: &CounterParams,
    ) -> Result<CounterReport, Error> {
        let none = "No available ping at the moment. Expired or not started.";
        let ping = self.pings.get_mut(&client);
        let ping = ping.ok_or_else(|| Error::execution(none))?;
        let before = ping.counters.clone();
        let report = counters::report(params, &mut [&mut ping.counters]);
        if params.clear {
            // Only replies are counted anew.
            ping.counters = PingCounters {
                sent: before.sent,
                left: before.left,
                average_us: before.average_us,
                minimum_us: before.minimum_us,
                maximum_us: before.maximum_us,
                ..PingCounters::default()
            };
        }
        Ok(report)
    }
}

impl<T> Ping<T> {
    fn measure(&mut self, latency_us: u64) {
        let counters = &mut self.counters;
        self.latency_sum_us += latency_us;
        counters.minimum_us = match self.latencies {
            0 => latency_us,
            _ => counters.minimum_us.min(latency_us),
        };
        self.latencies += 1;
        counters.maximum_us = counters.maximum_us.max(latency_us);
        counters.average_us = self.latency_sum_us / self.latencies;
    }
}

/// Writes the data of a request that leaves at `now`: the mark, the time, zeros.
pub fn write_payload(now: Nanos, payload: &mut [u8]) {
    payload[..8].copy_from_slice(&MAGIC);
    payload[8..16].copy_from_slice(&now.to_be_bytes());
    payload[16..].fill(0);
}

/// When the request of a reply with this data was sent.
fn sent_at(payload: &[u8]) -> Option<Nanos> {
    let rest = payload.strip_prefix(&MAGIC)?;
    Some(Nanos::from_be_bytes(*rest.first_chunk()?))
}
