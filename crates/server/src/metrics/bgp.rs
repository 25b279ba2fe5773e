//! Metrics of sessions of BGP speakers.

use super::catalog::{CatalogBgpSession, Readout};
use super::row::{Label, Row, Sink, Table};
use crate::counters::BgpSessionReading as Reading;

const WHEN: &str = "there are sessions of BGP speakers";

const SESSIONS: Table<'_, Reading> = Table {
    prefix: "bgp",
    labels: &["speaker", "peer"],
    when: WHEN,
    rows: &[
        Row::gauge("established", "Whether the session is established", |all: &Reading| {
            u64::from(all.is_established)
        })
        .sparse(WHEN),
        Row::gauge(
            "queued_tables",
            "Tables that wait to be sent, announcements and withdrawals together",
            |all: &Reading| all.queued,
        )
        .sparse(WHEN),
        Row::counter(
            "sessions_established",
            "How often the session came to be established",
            |all: &Reading| all.counters.established,
        )
        .sparse(WHEN),
        Row::counter("routes_announced", "Routes announced to the peer", |all: &Reading| {
            all.counters.announced
        })
        .sparse(WHEN),
        Row::counter("routes_withdrawn", "Routes withdrawn from the peer", |all: &Reading| {
            all.counters.withdrawn
        })
        .sparse(WHEN),
        Row::counter("sent_bytes", "Bytes that the kernel took", |all: &Reading| {
            all.counters.bytes_sent
        })
        .sparse(WHEN),
        Row::counter("received_bytes", "Bytes received", |all: &Reading| {
            all.counters.bytes_received
        })
        .sparse(WHEN),
        Row::counter("updates_received", "UPDATE messages received", |all: &Reading| {
            all.counters.updates_received
        })
        .sparse(WHEN),
        Row::counter(
            "routes_received",
            "Routes that the peer announced",
            |all: &Reading| all.counters.announcements_received,
        )
        .sparse(WHEN),
        Row::counter(
            "looped_routes_received",
            "Routes of the peer that were ignored, since their path has the speaker's own AS number",
            |all: &Reading| all.counters.looped_received,
        )
        .sparse(WHEN),
        Row::counter(
            "withdrawals_received",
            "Routes that the peer withdrew",
            |all: &Reading| all.counters.withdrawals_received,
        )
        .sparse(WHEN),
        Row::counter(
            "updates_treated_as_withdrawn",
            "UPDATE messages whose routes counted as withdrawn for an error in them (RFC 7606)",
            |all: &Reading| all.counters.treated_as_withdrawn,
        )
        .error()
        .sparse(WHEN),
        Row::counter(
            "attributes_discarded",
            "Attributes that were ignored for an error in them (RFC 7606)",
            |all: &Reading| all.counters.discarded_attributes,
        )
        .error()
        .sparse(WHEN),
        Row::counter(
            "notifications_sent",
            "NOTIFICATION messages sent",
            |all: &Reading| all.counters.notifications_sent,
        )
        .error()
        .sparse(WHEN),
        Row::counter(
            "notifications_received",
            "NOTIFICATION messages received",
            |all: &Reading| all.counters.notifications_received,
        )
        .error()
        .sparse(WHEN),
        Row::counter(
            "connections_failed",
            "Connections that could not be opened",
            |all: &Reading| all.counters.connections_failed,
        )
        .error()
        .sparse(WHEN),
    ],
};

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let sessions = match sink.wants("bgp_") {
        true => &readout.catalog.bgp_sessions[..],
        false => &[],
    };
    let labels = |one: &'_ CatalogBgpSession| [one.speaker.clone(), one.peer.clone()];
    let read: Vec<_> = sessions
        .iter()
        .map(|one| (labels(one), one.block.read()))
        .collect();
    let series = read
        .iter()
        .map(|([speaker, peer], reading)| ([Label::Text(speaker), Label::Text(peer)], reading));
    SESSIONS.show(sink, series);
}
