//! A client that exports: its generators in turn, the header and the sequence of its packets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use allosaur_api::Error;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use serde_json::Value;

use super::counters::IpfixCounters;
use super::generator::Generator;
use super::init::{ClientInit, Identity, Target};
use super::link::Link;
use super::record::Version;
use super::requests::{ExporterInfo, GeneratorInfos, GeneratorNames, SetGenerator, SetState};
use crate::client::ClientId;
use crate::counters::Counters;
use crate::exports::ExportReport;
use crate::field_engine::SplitMix;
use crate::pace::Pace;
use crate::plugin::Context;
use crate::read::Done;
use crate::timers::TimerId;

/// The tables of those who send messages out, in the order of the plugin's description.
const LINK_TABLES: [&str; 4] = [
    "IPFIX emu-udp exporter",
    "IPFIX udp exporter",
    "IPFIX file exporter",
    "IPFIX http exporter",
];

/// The end of a turn of all generators.
pub(super) const TURN: u32 = 0;
/// The end of `max_time`.
pub(super) const END: u32 = 1;
/// A turn that is so late is left out.
const LATE_MAX: Nanos = SECOND;
/// Records of a packet, when nobody limits them.
const NO_LIMIT: u64 = u32::MAX as u64;

/// Something to send at its time; of those at the same time the one that was planned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    due: Nanos,
    order: u64,
    generator: u16,
    is_data: bool,
}

/// A client that exports.
#[derive(Debug)]
pub(super) struct FlowExporter {
    counters: IpfixCounters,
    link: Link,
    version: Version,
    domain: u32,
    sequence: u32,
    created: Nanos,
    time_max: Option<Nanos>,
    generators: Vec<Generator>,
    random: SplitMix,
    /// Whether the user wants it to send.
    is_wanted: bool,
    /// Whether it does.
    is_running: bool,
    turns: BinaryHeap<Reverse<Turn>>,
    planned: u64,
    timer: TimerId,
    end: TimerId,
    /// The packet that is being made.
    packet: Vec<u8>,
}

impl FlowExporter {
    /// Reads a client's init JSON, and opens its way out.
    ///
    /// # Errors
    /// When something is missing or wrong.
    pub(super) fn open(
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
        who: &Identity,
    ) -> Result<FlowExporter, Error> {
        let is_allowed = context.shared.exports.is_allowed;
        let init = ClientInit::parse(init, who, is_allowed)?;
        let link = match init.target {
            Target::Client(remote) => Link::by_client(context, client, remote)?,
            Target::Outside(scheme, destination) => {
                Link::outside(context, client, scheme, destination, init.marks)
            }
        };
        let mut exporter = FlowExporter {
            counters: IpfixCounters {
                template_records_max: init.template_records_max,
                data_records_max: init.data_records_max,
                ..IpfixCounters::default()
            },
            link,
            version: init.version,
            domain: init.domain.unwrap_or_else(|| context.draw("ipfix domain")),
            sequence: context.draw("ipfix sequence"),
            created: context.now,
            time_max: init.time_max,
            generators: init.generators,
            random: SplitMix::new(who.seed),
            is_wanted: init.auto_start,
            is_running: false,
            turns: BinaryHeap::new(),
            planned: 0,
            timer: TimerId::NONE,
            end: TimerId::NONE,
            packet: Vec::new(),
        };
        exporter.start_if_ready(context, client);
        Ok(exporter)
    }

    /// Ends it.
    pub(super) fn close(&mut self, context: &mut Context<'_>, client: ClientId) {
        self.stop(context);
        self.link.close(context, client);
    }

    /// Begins to send, when it is wanted and can be; a template and data of each generator at once.
    pub(super) fn start_if_ready(&mut self, context: &mut Context<'_>, client: ClientId) {
        if !self.is_wanted || self.is_running || !self.link.is_ready(context, client) {
            return;
        }
        self.is_running = true;
        if let Some(time) = self.time_max {
            self.end = context.set_timer(time, Some(client), END);
        }
        for index in 0..self.generators.len() {
            for is_data in [false, true] {
                let turn = Turn {
                    due: context.now,
                    order: 0,
                    generator: index as u16,
                    is_data,
                };
                self.take_turn(context, client, turn);
                if !self.is_running {
                    return;
                }
            }
        }
        self.set_timer(context, client);
    }

    /// Sends no more.
    fn stop(&mut self, context: &mut Context<'_>) {
        self.is_running = false;
        self.turns.clear();
        context.cancel_timer(self.timer);
        context.cancel_timer(self.end);
    }

    /// What is due: turns of generators, or the end.
    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_>, client: ClientId, tag: u32) {
        if tag == END {
            self.is_wanted = false;
            self.stop(context);
            return;
        }
        while let Some(&Reverse(turn)) = self.turns.peek() {
            if turn.due > context.now || !self.is_running {
                break;
            }
            self.turns.pop();
            self.take_turn(context, client, turn);
        }
        if self.is_running {
            self.set_timer(context, client);
        }
    }

    fn set_timer(&mut self, context: &mut Context<'_>, client: ClientId) {
        context.cancel_timer(self.timer);
        if let Some(Reverse(turn)) = self.turns.peek() {
            let delay = turn.due.saturating_sub(context.now);
            self.timer = context.set_timer(delay, Some(client), TURN);
        }
    }

    /// Sends what a generator sends in its turn, and plans the next.
    fn take_turn(&mut self, context: &mut Context<'_>, client: ClientId, turn: Turn) {
        let tick = context.tick();
        let Some(generator) = self.generators.get_mut(usize::from(turn.generator)) else {
            return;
        };
        let is_enabled = generator.is_enabled;
        let pace = match turn.is_data {
            true => &mut generator.data,
            false => &mut generator.template,
        };
        let Some(interval) = pace.interval(tick) else {
            return;
        };
        let count = pace.count(tick);
        let late = context.now.saturating_sub(turn.due) > LATE_MAX;
        let from = if late { context.now } else { turn.due };
        let due = from.saturating_add(context.rounded(interval));
        self.plan(Turn { due, ..turn });
        if !is_enabled {
            return;
        }
        for _ in 0..count {
            if self.link.is_paused() {
                self.counters.paused += 1;
                continue;
            }
            match turn.is_data {
                true => self.send_data(context, client, usize::from(turn.generator)),
                false => self.send_template(context, client, usize::from(turn.generator)),
            }
            if self.is_over() {
                self.is_wanted = false;
                self.stop(context);
                return;
            }
        }
    }

    fn plan(&mut self, turn: Turn) {
        self.planned += 1;
        let order = self.planned;
        self.turns.push(Reverse(Turn { order, ..turn }));
    }

    /// Whether as many records were sent as the user wants of both kinds.
    fn is_over(&self) -> bool {
        let counters = &self.counters;
        let is_limited = counters.data_records_max != 0 && counters.template_records_max != 0;
        is_limited && self.data_left() == 0 && self.templates_left() == 0
    }

    fn data_left(&self) -> u64 {
        match self.counters.data_records_max {
            0 => NO_LIMIT,
            max => max.saturating_sub(self.counters.data_records),
        }
    }

    fn templates_left(&self) -> u64 {
        match self.counters.template_records_max {
            0 => NO_LIMIT,
            max => max.saturating_sub(self.counters.template_records),
        }
    }

    /// Bytes of a packet behind its header.
    fn room(&self, context: &Context<'_>, client: ClientId) -> usize {
        let header = match self.version {
            Version::Netflow9 => 20,
            Version::Ipfix => 16,
        };
        let bytes_max = self.link.bytes_max(context, client);
        bytes_max.saturating_sub(header)
    }

    fn send_template(&mut self, context: &mut Context<'_>, client: ClientId, index: usize) {
        if self.templates_left() == 0 {
            return;
        }
        let room = self.room(context, client);
        // As in the reference, the count of NetFlow 9 is that of the generator's data.
        let count = self.generators[index].records_per_packet(room);
        let at = self.begin_packet(context);
        self.generators[index].write_template(self.version, &mut self.packet);
        if self.packet.len() > at + room {
            self.counters.template_too_long += 1;
            return;
        }
        self.end_packet(count);
        if self.link.send(context, client, &self.packet, [1, 0]) {
            self.counters.tx_templates += 1;
            self.counters.template_records += 1;
        } else {
            self.counters.write_error += 1;
        }
        if self.version == Version::Netflow9 {
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    fn send_data(&mut self, context: &mut Context<'_>, client: ClientId, index: usize) {
        let limit = self.data_left().min(NO_LIMIT) as u32;
        let room = self.room(context, client);
        self.begin_packet(context);
        let generator = &mut self.generators[index];
        let count = generator.write_data(&mut self.random, room, limit, &mut self.packet);
        let missed = generator.records_missed(count, limit);
        if count == 0 {
            self.counters.records_missed += u64::from(missed);
            return;
        }
        self.end_packet(count);
        if self.link.send(context, client, &self.packet, [0, count]) {
            self.counters.tx_data += 1;
            self.counters.data_records += u64::from(count);
            self.counters.records_missed += u64::from(missed);
        } else {
            self.counters.write_error += 1;
        }
        self.sequence = self.sequence.wrapping_add(match self.version {
            Version::Netflow9 => 1,
            Version::Ipfix => count,
        });
    }

    /// Begins a packet with its header; returns how long that is.
    fn begin_packet(&mut self, context: &Context<'_>) -> usize {
        let unix_s = (context.unix_time() / SECOND) as u32;
        let uptime_ms = (context.now.saturating_sub(self.created) / MILLISECOND) as u32;
        self.packet.clear();
        let mut put = |bytes: &[u8]| self.packet.extend_from_slice(bytes);
        match self.version {
            Version::Netflow9 => {
                put(&[0, 9, 0, 0]);
                put(&uptime_ms.to_be_bytes());
            }
            Version::Ipfix => put(&[0, 10, 0, 0]),
        }
        put(&unix_s.to_be_bytes());
        put(&self.sequence.to_be_bytes());
        put(&self.domain.to_be_bytes());
        self.packet.len()
    }

    /// Writes what was not known when the packet began: its length, or how many records it has.
    fn end_packet(&mut self, records: u32) {
        let number = match self.version {
            Version::Netflow9 => records as u16,
            Version::Ipfix => self.packet.len() as u16,
        };
        self.packet[2..4].copy_from_slice(&number.to_be_bytes());
    }

    /// What the server says of packets that left the emulation.
    pub(super) fn report(&mut self, report: &ExportReport) {
        self.link.report(report);
    }

    /// Shows its tables of counters, with their places in the description of the plugin.
    pub(super) fn show_counters(&mut self, show: &mut dyn FnMut(usize, &mut dyn Counters)) {
        show(1, &mut self.counters);
        for table in self.link.counters() {
            let place = LINK_TABLES.iter().position(|name| *name == table.name());
            if let Some(place) = place {
                show(2 + place, table);
            }
        }
    }

    /// `ipfix_c_set_state`.
    pub(super) fn set_state(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: SetState,
    ) -> Result<Done, Error> {
        self.is_wanted = params.enable;
        match self.is_wanted {
            true => self.start_if_ready(context, client),
            false => self.stop(context),
        }
        Ok(Done)
    }

    /// `ipfix_c_set_gen_state`.
    pub(super) fn set_generator(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: &SetGenerator,
    ) -> Result<Done, Error> {
        let (rate, template_rate) = (params.rate.0, params.template_rate.0);
        let index = self.index_of(&params.gen_name)?;
        let (data, template) = (
            Pace::new("rate", rate)?,
            Pace::new("template_rate", template_rate)?,
        );
        let generator = &mut self.generators[index];
        // As in the reference, rates that make no sense change nothing.
        if rate > 0.0 {
            generator.data = data;
        }
        if template_rate > 0.0 {
            generator.template = template;
        }
        generator.is_enabled = params.enable.unwrap_or(generator.is_enabled);
        for (is_data, rate) in [(false, template_rate), (true, rate)] {
            if self.is_running && rate > 0.0 {
                self.plan_again(context, index as u16, is_data);
            }
        }
        if self.is_running {
            self.set_timer(context, client);
        }
        Ok(Done)
    }

    /// Plans a turn anew, as the rate is another.
    fn plan_again(&mut self, context: &Context<'_>, generator: u16, is_data: bool) {
        let is_it = |turn: &Turn| turn.generator == generator && turn.is_data == is_data;
        self.turns.retain(|Reverse(turn)| !is_it(turn));
        let of = &self.generators[usize::from(generator)];
        let pace = if is_data { &of.data } else { &of.template };
        if let Some(interval) = pace.interval(context.tick()) {
            let due = context.now.saturating_add(context.rounded(interval));
            self.plan(Turn {
                due,
                order: 0,
                generator,
                is_data,
            });
        }
    }

    fn index_of(&self, name: &str) -> Result<usize, Error> {
        let index = self.generators.iter().position(|one| one.name == name);
        index.ok_or_else(|| Error::execution(format!("Generator {name} was not found.")))
    }

    /// `ipfix_c_get_gens_info`.
    pub(super) fn generators_info(
        &self,
        context: &Context<'_>,
        client: ClientId,
        params: GeneratorNames,
    ) -> Result<GeneratorInfos, Error> {
        let room = self.room(context, client);
        let mut infos = BTreeMap::new();
        let names = params.gen_names.0;
        if names.is_empty() {
            let all = self.generators.iter();
            infos.extend(all.map(|one| (one.name.clone(), one.info(room))));
        }
        for name in names {
            let generator = &self.generators[self.index_of(&name)?];
            infos.insert(name, generator.info(room));
        }
        Ok(GeneratorInfos {
            generators_info: infos,
        })
    }

    /// `ipfix_c_get_exp_info`.
    pub(super) fn info(&self) -> ExporterInfo {
        self.link.info(self.is_wanted)
    }
}
