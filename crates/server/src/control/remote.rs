//! The command that sends a capture file, and what runs of it.
//!
//! One data thread sends all of a port: a capture is one sequence. While it does, the port does
//! nothing else, so a port has at most one.

use allosaur_api::commands::remote::PushRemote;
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::limits::CAPTURE_FILE_BYTES_MAX;
use allosaur_api::{Error, Fields};
use allosaur_engine::stateless::Command;
use allosaur_engine::stream::recording::{Pace, both_ways, one_way};
use allosaur_engine::stream::replay::Macs;
use allosaur_engine::stream::{ProfileKey, Replay};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use serde_json::json;

use super::port::{Port, State, wrong_state};
use super::traffic::START_LEAD;
use super::{Action, Control, Reply, View, check_owner};

/// A capture that is being sent.
#[derive(Clone, Debug)]
pub(super) struct Playing {
    pub(super) key: ProfileKey,
    /// Who started it.
    pub(super) session: u32,
    /// The data thread that sends it.
    pub(super) core: usize,
    /// It was told to stop.
    stopping: bool,
    /// Somebody waits for it to stop.
    pub(super) awaited: bool,
    /// The port that sends the other direction, and by which key: stopped together with this one.
    peer: Option<(u8, ProfileKey)>,
}

impl Control {
    pub(super) fn push_remote(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = PushRemote::parse(fields)?;
        self.check_can_play(params.port, &params)?;
        let peer = self.peer_of(&params)?;
        let refused = |problem: &dyn std::fmt::Display| {
            let name = params.filename;
            Error::execution(format!("field 'pcap_filename' is '{name:.256}': {problem}"))
        };
        let bytes = view.files.read(params.filename, CAPTURE_FILE_BYTES_MAX);
        let bytes = bytes.map_err(|error| refused(&error))?;
        let pace = pace(&params);
        let macs = macs(self.port(params.port)?, &params);
        let keys = [self.next_key(), self.next_key()];
        match peer {
            None => {
                let replay = one_way(&bytes, &pace, macs);
                let replay = replay.map_err(|error| refused(&error))?;
                self.check_replay(params.port, &replay)
                    .map_err(|problem| refused(&problem))?;
                self.play(params.port, keys[0], replay, None, &params, start_at(view));
            }
            Some(peer) => {
                let macs = [macs, self::macs(self.port(peer)?, &params)];
                let both = both_ways(&bytes, &pace, macs);
                let [first, second] = both.map_err(|error| refused(&error))?;
                for (port, replay) in [(params.port, &first), (peer, &second)] {
                    self.check_replay(port, replay)
                        .map_err(|problem| refused(&problem))?;
                }
                let other = Some((peer, keys[1]));
                let start_at = start_at(view);
                self.play(params.port, keys[0], first, other, &params, start_at);
                self.play(peer, keys[1], second, None, &params, start_at);
            }
        }
        Ok(json!({}))
    }

    /// The port of the other direction, if there is to be one.
    fn peer_of(&self, params: &PushRemote<'_>) -> Result<Option<u8>, Error> {
        let Some(handler) = params.slave_handler else {
            return Ok(None);
        };
        let (port, peer) = (params.port, params.port ^ 1);
        let found = self.port(peer).map_err(|_| {
            Error::execution(format!(
                "field 'is_dual' is true, and port {port} has no peer: there is no port {peer}. \
                 Set it to false, or use another port"
            ))
        })?;
        check_owner(found, handler).map_err(|_| {
            Error::execution(format!(
                "field 'slave_handler' does not prove that port {peer} is yours: acquire it, and \
                 give what acquire answered"
            ))
        })?;
        self.check_can_play(peer, params)?;
        Ok(Some(peer))
    }

    /// What a port sends of a capture fits its interface.
    fn check_replay(&self, id: u8, replay: &Replay) -> Result<(), String> {
        let config = &self.ports[usize::from(id)].config;
        replay
            .packets()
            .try_for_each(|frame| config.check_frame(frame))
    }

    fn check_can_play(&self, id: u8, params: &PushRemote<'_>) -> Result<(), Error> {
        let port = self.port(id)?;
        port.cores()?;
        if port.load_max_bps.is_some() {
            return Err(Error::execution(format!(
                "port {id} sends no captures: users may send so much on it and no more (load_max \
                 in the server's configuration), and the rate of a capture is not known"
            )));
        }
        let state = port.state();
        if state > State::Streams {
            let state = state.name();
            return Err(Error::execution(format!(
                "command 'push_remote' cannot be executed on current state: '{state} on port \
                 {id}. Stop its traffic first."
            )));
        }
        match port.layers.unresolved_gateway() {
            Some(gateway) if !params.capture_destination_mac => Err(Error::execution(format!(
                "the MAC address of {gateway}, the gateway of port {id}, is not known yet: \
                 resolve it (set_l3 with resolved_mac), or keep the destination MACs of the \
                 capture (2^30 in 'count')"
            ))),
            _ => Ok(()),
        }
    }

    /// Tells a data thread, and everybody else.
    fn play(
        &mut self,
        port: u8,
        key: ProfileKey,
        replay: Replay,
        peer: Option<(u8, ProfileKey)>,
        params: &PushRemote<'_>,
        start_at: Nanos,
    ) {
        let found = &mut self.ports[usize::from(port)];
        // The two directions run on two data threads where there are two.
        let session = found.owner.as_ref().map_or(0, |owner| owner.session);
        let cores = &found.config.cores;
        let turn = usize::from(port != params.port);
        let core = cores[turn % cores.len()];
        found.playing = Some(Playing {
            key,
            session,
            core,
            stopping: false,
            awaited: false,
            peer,
        });
        let command = Command::StartProfile {
            port,
            profile: key,
            program: Box::new(replay.into()),
            start_at,
            duration: params.duration_s.map(|s| (s * SECOND as f64) as Nanos),
        };
        self.actions.push_back(Action::Command { core, command });
        self.queue_event(ApiEvent::PortStarted { port }, start_at);
    }

    /// Stops what the port sends of a capture, and what its peer sends of the same.
    pub(super) fn stop_playing(&mut self, port: u8) {
        let playing = self.ports[usize::from(port)].playing.as_ref();
        let Some(playing) = playing else {
            return;
        };
        let both = [Some((port, playing.key)), playing.peer];
        for (port, profile) in both.into_iter().flatten() {
            let found = &mut self.ports[usize::from(port)].playing;
            let Some(playing) = found.as_mut().filter(|playing| playing.key == profile) else {
                continue;
            };
            playing.stopping = true;
            playing.awaited = true;
            let core = playing.core;
            let command = Command::StopProfile { port, profile };
            self.actions.push_back(Action::Command { core, command });
        }
    }

    /// The data thread is through with a capture; false when it is through with something else.
    pub(super) fn note_played(&mut self, port: u8, key: ProfileKey, now_ns: Nanos) -> bool {
        let found = self.ports.get_mut(usize::from(port));
        let ended = found.and_then(|found| found.playing.take_if(|playing| playing.key == key));
        let Some(playing) = ended else {
            return false;
        };
        let event = if playing.stopping {
            ApiEvent::PortStopped { port }
        } else {
            ApiEvent::PortFinished { port }
        };
        self.queue_event(event, now_ns);
        self.release_at_rest(port, now_ns);
        true
    }
}

impl Port {
    /// Refuses `command` on a profile while the port sends a capture.
    pub(super) fn check_not_playing(&self, command: &str, profile: &str) -> Result<(), Error> {
        if self.playing.is_none() {
            return Ok(());
        }
        let remedy = "The port sends a capture (push_remote), which cannot be paused or changed: \
                      wait until it is sent, or stop the port's traffic.";
        Err(wrong_state(command, State::Playing, profile, remedy))
    }
}

/// Reading a large file takes longer than the usual lead.
fn start_at(view: &View<'_>) -> Nanos {
    view.time.now_ns() + START_LEAD
}

fn pace(params: &PushRemote<'_>) -> Pace {
    let ns = |us: f64| us * MICROSECOND as f64;
    Pace {
        gap_ns: params.gap_us.map(ns),
        gap_min_ns: ns(params.gap_min_us),
        speedup: params.speedup,
        rounds: params.rounds,
    }
}

/// What the frames get in place of their own addresses.
fn macs(port: &Port, params: &PushRemote<'_>) -> Macs {
    Macs {
        source: Some(port.config.hw_mac).filter(|_| !params.capture_source_mac),
        destination: Some(port.layers.destination_mac())
            .filter(|_| !params.capture_destination_mac),
    }
}
