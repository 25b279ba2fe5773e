//! Where a client's packets go: by its own stack, or out of the emulation.

use std::collections::VecDeque;
use std::net::SocketAddr;

use allosaur_api::Error;

use super::counters::{EmuUdpCounters, FileCounters, HttpCounters, UdpCounters};
use super::requests::{ExporterInfo, PostInfo};
use crate::client::ClientId;
use crate::counters::Counters;
use crate::datagrams;
use crate::exports::{Destination, ExportReport, ExporterId, ExporterOwner, PostReport};
use crate::plugin::Context;

/// Bytes of a datagram that the host need not cut on Ethernet.
const DATAGRAM_BYTES_MAX: usize = 1472;
/// The longest message that says its length (RFC 7011, section 3.1).
const MESSAGE_BYTES_MAX: u64 = 65_535;
/// Datagrams that wait for a socket: as many at most, generators rest above, and go on below.
const DATAGRAMS: Watermarks = Watermarks {
    most: 2000,
    high: 1600,
    low: 400,
};
/// Files that are told of.
const POSTS_MAX: usize = 30;

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermarks {
    most: u64,
    high: u64,
    low: u64,
}

impl Watermarks {
    /// Those of files, by how many messages may wait.
    pub(super) fn of_files(most: u64) -> Watermarks {
        Watermarks {
            most,
            high: most * 4 / 5,
            low: most / 5,
        }
    }
}

/// The way out of the emulation.
#[derive(Debug)]
pub(super) struct Outside {
    exporter: ExporterId,
    scheme: &'static str,
    bytes_max: usize,
    marks: Watermarks,
    waiting: u64,
    /// Whether so much waits that generators rest.
    is_paused: bool,
    udp: Option<Box<UdpCounters>>,
    files: Option<Box<FileCounters>>,
    http: Option<Box<HttpCounters>>,
    posts: VecDeque<PostReport>,
}

/// The way of a client's packets.
#[derive(Debug)]
pub(super) enum Link {
    /// By the client's own stack, from a port of its own.
    Client {
        remote: SocketAddr,
        port: u16,
        counters: EmuUdpCounters,
    },
    /// By the server.
    Outside(Box<Outside>),
}

impl Link {
    /// Opens a flow of the client.
    ///
    /// # Errors
    /// When it has no port left.
    pub(super) fn by_client(
        context: &mut Context<'_>,
        client: ClientId,
        remote: SocketAddr,
    ) -> Result<Link, Error> {
        let owner = context.this().0;
        let port = context.namespace.sockets.of(client).open(remote, owner);
        Ok(Link::Client {
            remote,
            port: port.ok_or_else(|| Error::execution("no source port is free"))?,
            counters: EmuUdpCounters::default(),
        })
    }

    /// Opens a way out of the emulation; `scheme` is what the user calls it.
    pub(super) fn outside(
        context: &mut Context<'_>,
        client: ClientId,
        scheme: &'static str,
        destination: Destination,
        marks: Option<Watermarks>,
    ) -> Link {
        let owner = ExporterOwner {
            namespace: context.index,
            client,
            plugin: context.this().0,
        };
        let (files, http) = match &destination {
            Destination::Udp(_) | Destination::FolderUdp(..) => (None, None),
            Destination::Files(files) => (Some(files), None),
            Destination::Post(files, post) => (Some(files), Some(post)),
            Destination::FolderPost(_, post) => (None, Some(post)),
        };
        let bytes_max = files.map(|files| files.bytes_max.min(MESSAGE_BYTES_MAX) as usize);
        let outside = Outside {
            scheme,
            bytes_max: bytes_max.unwrap_or(DATAGRAM_BYTES_MAX),
            marks: marks.unwrap_or(DATAGRAMS),
            waiting: 0,
            is_paused: false,
            udp: (files.is_none() && http.is_none()).then(Box::default),
            files: files.map(|_| Box::default()),
            http: http.map(|post| {
                Box::new(HttpCounters {
                    posts_max: post.posts_max,
                    ..HttpCounters::default()
                })
            }),
            posts: VecDeque::new(),
            exporter: context.shared.exports.open(owner, destination),
        };
        Link::Outside(Box::new(outside))
    }

    /// Ends it.
    pub(super) fn close(&self, context: &mut Context<'_>, client: ClientId) {
        match self {
            Link::Client { remote, port, .. } => {
                if let Some(sockets) = context.namespace.sockets.get_mut(client) {
                    sockets.close(*port, *remote);
                }
            }
            Link::Outside(outside) => context.shared.exports.close(outside.exporter),
        }
    }

    /// Whether packets can leave: the gateway of a client's own stack is known.
    pub(super) fn is_ready(&self, context: &Context<'_>, client: ClientId) -> bool {
        let Link::Client { remote, .. } = self else {
            return true;
        };
        let Some(found) = context.client(client) else {
            return false;
        };
        if datagrams::multicast_mac(remote.ip()).is_some() {
            return true;
        }
        match remote {
            SocketAddr::V4(_) => found.gateway_mac_ipv4.is_some(),
            SocketAddr::V6(_) => {
                let router = context.namespace.router;
                found.gateway_mac_ipv6.is_some() || router.is_some_and(|r| r.mac.is_some())
            }
        }
    }

    /// Whether packets are left out now, since too many wait.
    pub(super) fn is_paused(&self) -> bool {
        matches!(self, Link::Outside(outside) if outside.is_paused)
    }

    /// The most bytes of a packet.
    pub(super) fn bytes_max(&self, context: &Context<'_>, client: ClientId) -> usize {
        match self {
            Link::Client { remote, .. } => {
                datagrams::payload_bytes_max(context, client, remote.is_ipv6())
            }
            Link::Outside(outside) => outside.bytes_max,
        }
    }

    /// Sends a packet with so many records of templates and data; returns whether it left.
    pub(super) fn send(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        packet: &[u8],
        [templates, records]: [u32; 2],
    ) -> bool {
        match self {
            Link::Client {
                remote,
                port,
                counters,
            } => {
                counters.writes += 1;
                let sent = datagrams::send(context, client, *port, *remote, packet);
                if sent.is_err() {
                    counters.writes_failed += 1;
                    return false;
                }
                counters.tx_bytes += packet.len() as u64;
                counters.tx_templates += u64::from(templates);
                counters.tx_records += u64::from(records);
                true
            }
            Link::Outside(outside) => outside.send(context, packet, [templates, records]),
        }
    }

    /// Its tables of counters.
    pub(super) fn counters(&mut self) -> Vec<&mut dyn Counters> {
        match self {
            Link::Client { counters, .. } => vec![counters],
            Link::Outside(outside) => outside.counters(),
        }
    }

    /// What the server says of packets that it was given.
    pub(super) fn report(&mut self, report: &ExportReport) {
        if let Link::Outside(outside) = self {
            if outside.exporter == report.exporter {
                outside.report(report);
            }
        }
    }

    /// What `ipfix_c_get_exp_info` says of it.
    pub(super) fn info(&self, is_enabled: bool) -> ExporterInfo {
        let scheme = match self {
            Link::Client { .. } => "emu-udp",
            Link::Outside(outside) => outside.scheme,
        };
        let files = match self {
            Link::Outside(outside) if outside.http.is_some() => {
                Some(outside.posts.iter().map(post_info).collect())
            }
            _ => None,
        };
        ExporterInfo {
            exporter_type: scheme,
            enabled: is_enabled.to_string(),
            files,
        }
    }
}

impl Outside {
    fn send(
        &mut self,
        context: &mut Context<'_>,
        packet: &[u8],
        [templates, records]: [u32; 2],
    ) -> bool {
        let is_full = self.waiting >= self.marks.most;
        for writes in self.writes() {
            let [all, failed] = writes;
            *all += 1;
            *failed += u64::from(is_full);
        }
        if is_full {
            return false;
        }
        self.waiting += 1;
        if self.waiting >= self.marks.high && !self.is_paused {
            self.is_paused = true;
            self.mark(true);
        }
        if let Some(files) = &mut self.files {
            files.write_commands += 1;
        }
        self.show_waiting();
        let exports = &mut context.shared.exports;
        exports.write(self.exporter, packet, [templates, records]);
        true
    }

    /// Of each table, packets that were to be sent, and those that were not.
    fn writes(&mut self) -> impl Iterator<Item = [&mut u64; 2]> {
        let udp = self
            .udp
            .as_mut()
            .map(|c| [&mut c.writes, &mut c.writes_failed]);
        let files = self
            .files
            .as_mut()
            .map(|c| [&mut c.writes, &mut c.writes_failed]);
        let http = self
            .http
            .as_mut()
            .map(|c| [&mut c.writes, &mut c.writes_failed]);
        udp.into_iter().chain(files).chain(http)
    }

    /// Counts that generators rest, or go on.
    fn mark(&mut self, is_high: bool) {
        let udp = self
            .udp
            .as_mut()
            .map(|c| (&mut c.high_watermark, &mut c.low_watermark));
        let files = self
            .files
            .as_mut()
            .map(|c| (&mut c.high_watermark, &mut c.low_watermark));
        for (high, low) in udp.into_iter().chain(files) {
            match is_high {
                true => *high += 1,
                false => *low += 1,
            }
        }
    }

    fn show_waiting(&mut self) {
        let udp = self
            .udp
            .as_mut()
            .map(|c| (&mut c.waiting, &mut c.waiting_peak));
        let files = self
            .files
            .as_mut()
            .map(|c| (&mut c.waiting, &mut c.waiting_peak));
        for (waiting, peak) in udp.into_iter().chain(files) {
            *waiting = self.waiting;
            *peak = self.waiting.max(*peak);
        }
    }

    fn counters(&mut self) -> Vec<&mut dyn Counters> {
        let mut tables: Vec<&mut dyn Counters> = Vec::new();
        if let Some(udp) = self.udp.as_deref_mut() {
            tables.push(udp);
        }
        if let Some(files) = self.files.as_deref_mut() {
            tables.push(files);
        }
        if let Some(http) = self.http.as_deref_mut() {
            tables.push(http);
        }
        tables
    }

    fn report(&mut self, report: &ExportReport) {
        let counts = &report.counts;
        self.waiting = self.waiting.saturating_sub(counts.handled);
        if self.is_paused && self.waiting <= self.marks.low {
            self.is_paused = false;
            self.mark(false);
        }
        if let Some(udp) = &mut self.udp {
            udp.tx_writes += counts.writes + counts.writes_failed;
            udp.tx_writes_failed += counts.writes_failed;
            udp.tx_packets += counts.writes;
            udp.tx_bytes += counts.bytes;
            udp.tx_templates += counts.templates;
            udp.tx_records += counts.records;
        }
        if let Some(files) = &mut self.files {
            files.tx_writes += counts.writes + counts.writes_failed;
            files.tx_writes_failed += counts.writes_failed;
            files.tx_bytes += counts.bytes;
            files.tx_templates += counts.templates;
            files.tx_records += counts.records;
            files.rotates += counts.rotates;
            files.rotates_failed += counts.rotates_failed;
            files.interval_over += counts.interval_over;
            files.size_over += counts.size_over;
            files.files_over += counts.files_removed;
            files.files_created += counts.rotates;
            files.files_removed += counts.files_removed;
        }
        if let Some(http) = &mut self.http {
            http.posts_left_out += counts.posts_left_out;
            http.empty += counts.empty_files;
            http.retries += counts.retries;
            for post in &report.posts {
                count_post(http, post);
            }
        }
        self.show_waiting();
        self.posts.extend(report.posts.iter().cloned());
        let surplus = self.posts.len().saturating_sub(POSTS_MAX);
        self.posts.drain(..surplus);
    }
}

fn count_post(http: &mut HttpCounters, post: &PostReport) {
    http.exports += 1;
    http.tx_templates += post.templates;
    http.tx_records += post.records;
    let is_good = match &post.reply {
        Ok((status, _)) => {
            match status / 100 {
                2 => http.status_2xx += 1,
                3 => http.status_3xx += 1,
                4 => http.status_4xx += 1,
                _ => http.status_5xx += 1,
            }
            status / 100 == 2
        }
        Err(_) => {
            http.send_failed += 1;
            false
        }
    };
    match (is_good, post.will_retry) {
        (true, _) => {
            http.uploaded_bytes += post.bytes;
            http.uploaded_templates += post.templates;
            http.uploaded_records += post.records;
        }
        (false, true) => http.exports_failed_retry += 1,
        (false, false) => http.exports_failed += 1,
    }
}

fn post_info(post: &PostReport) -> PostInfo {
    let (status, transport) = match &post.reply {
        Ok((number, name)) => (format!("{number} {name}"), "success".to_owned()),
        Err(error) => (String::new(), error.clone()),
    };
    let is_good = matches!(&post.reply, Ok((200..300, _)));
    let uploaded = |number: u64| if is_good { number } else { 0 };
    PostInfo {
        name: post.name.clone(),
        time: post.time.clone(),
        status: if is_good { "success" } else { "failure" },
        http_status_code: status.trim_end().to_owned(),
        http_response_msg: post.message.clone(),
        transport_status: transport,
        bytes_uploaded: uploaded(post.bytes),
        temp_records_uploaded: uploaded(post.templates),
        data_records_uploaded: uploaded(post.records),
    }
}
