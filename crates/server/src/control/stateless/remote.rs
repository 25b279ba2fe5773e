//! The command that sends a capture file, and what runs of it.
//!
//! One data thread sends all of a port: a capture is one sequence. While it does, the port does
//! nothing else, so a port has at most one.

use allosaur_api::commands::remote::{PushRemote, RemotePushed};
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::stateless::StatelessCommand;
use allosaur_engine::stream::recording::Pace;
use allosaur_engine::stream::replay::Macs;
use allosaur_engine::stream::{ProfileKey, Replay};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};

use super::port::{Playing, Reading, State, StreamPort, wrong_state};
use super::read_capture::ReadCapture;
use super::state::Stateless;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::pending::Wait;
use crate::control::core::port::Port;
use crate::control::core::port::check_owner;
use crate::control::reply::{Reply, reply};
use crate::control::time::START_LEAD;

impl Stateless {
    pub(super) fn push_remote(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = PushRemote::parse(fields)?;
        self.check_can_play(control, params.port, &params)?;
        let peer = self.peer_of(control, &params)?;
        let ids: Vec<u8> = [Some(params.port), peer].into_iter().flatten().collect();
        let targets = ids.iter().map(|id| {
            let port = &control.ports[usize::from(*id)];
            (port.config.clone(), macs(port, &params))
        });
        let work = ReadCapture {
            path: params.filename.to_owned(),
            pace: pace(&params),
            ports: targets.collect(),
        };
        let ports = ids.clone();
        let name = format!("{:.256}", params.filename);
        let duration = params.duration_s.map(|s| (s * SECOND as f64) as Nanos);
        let job =
            self.awaited
                .begin_job(control, work, move |stateless, control, replays, view| {
                    stateless.play_capture(control, &ports, &name, duration, replays, view)
                });
        for id in ids {
            let owner = control.ports[usize::from(id)].owner.as_ref();
            let session = owner.map_or(0, |owner| owner.session);
            self.ports[usize::from(id)].reading = Some(Reading { job, session });
        }
        reply(&Empty {})
    }

    /// A capture was read for ports that have waited for it.
    fn play_capture(
        &mut self,
        control: &mut Core,
        ports: &[u8],
        name: &str,
        duration: Option<Nanos>,
        replays: Result<Vec<Replay>, String>,
        view: &View<'_>,
    ) -> Reply {
        let mut sessions = Vec::new();
        for port in ports {
            let reading = self.ports[usize::from(*port)].reading.take();
            sessions.push(reading.map_or(0, |reading| reading.session));
        }
        let replays = replays.map_err(|problem| {
            Error::execution(format!("field 'pcap_filename' is '{name}': {problem}"))
        })?;
        for port in ports {
            control.port(*port)?.cores()?;
        }
        let keys = [self.next_key(), self.next_key()];
        let peer = ports.get(1).map(|peer| (*peer, keys[1]));
        let early_packets = replays.first().map_or(0, |replay| replay.early_packets);
        for (turn, (&port, replay)) in ports.iter().zip(replays).enumerate() {
            let cores = &control.ports[usize::from(port)].config.cores;
            let playing = Playing {
                key: keys[turn],
                session: sessions[turn],
                // The two directions run on two data threads where there are two.
                core: cores[turn % cores.len()],
                stopping: false,
                peer: peer.filter(|_| turn == 0),
            };
            self.play(
                control,
                port,
                playing,
                replay,
                duration,
                view.now_ns + START_LEAD,
            );
        }
        reply(&RemotePushed {
            early_packets: (early_packets > 0).then_some(early_packets),
        })
    }

    /// The port of the other direction, if there is to be one.
    fn peer_of(&self, control: &Core, params: &PushRemote<'_>) -> Result<Option<u8>, Error> {
        let Some(handler) = params.slave_handler else {
            return Ok(None);
        };
        let (port, peer) = (params.port, params.port ^ 1);
        let found = control.port(peer).map_err(|_| {
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
        self.check_can_play(control, peer, params)?;
        Ok(Some(peer))
    }

    fn check_can_play(&self, control: &Core, id: u8, params: &PushRemote<'_>) -> Result<(), Error> {
        let port = control.port(id)?;
        port.cores()?;
        if port.load_max_bps.is_some() {
            return Err(Error::execution(format!(
                "port {id} sends no captures: users may send so much on it and no more (load_max \
                 in the server's configuration), and the rate of a capture is not known"
            )));
        }
        let state = self.ports[usize::from(id)].state();
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
        control: &mut Core,
        port: u8,
        playing: Playing,
        replay: Replay,
        duration: Option<Nanos>,
        start_at: Nanos,
    ) {
        let core = playing.core;
        let command = StatelessCommand::StartProfile {
            port,
            profile: playing.key,
            program: Box::new(replay.into()),
            start_at,
            duration,
        };
        self.ports[usize::from(port)].playing = Some(playing);
        control.command(core, command);
        control.queue_event(ApiEvent::PortStarted { port }, start_at);
    }

    /// Forgets the capture that is read for a port, and for its peer.
    fn stop_reading(&mut self, control: &mut Core, port: u8) {
        let Some(reading) = self.ports[usize::from(port)].reading else {
            return;
        };
        for port in &mut self.ports {
            port.reading.take_if(|other| other.job == reading.job);
        }
        let error = Error::execution("the port was stopped before the capture was read");
        let wait = Wait::Job(reading.job);
        self.awaited.forget(wait);
        control.settle(wait, Some(Err(error)));
    }

    /// Stops what the port sends of a capture, and what its peer sends of the same.
    pub(super) fn stop_playing(&mut self, control: &mut Core, port: u8) {
        self.stop_reading(control, port);
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
            let core = playing.core;
            control.pendings.await_end(profile);
            let command = StatelessCommand::StopProfile { port, profile };
            control.command(core, command);
        }
    }

    /// The data thread is through with a capture; false when it is through with something else.
    pub(super) fn note_played(
        &mut self,
        control: &mut Core,
        port: u8,
        key: ProfileKey,
        now_ns: Nanos,
    ) -> bool {
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
        control.queue_event(event, now_ns);
        control.note_at_rest(port);
        true
    }
}

impl StreamPort {
    /// Refuses `command` on a profile while the port sends a capture.
    pub(super) fn check_not_playing(&self, command: &str, profile: &str) -> Result<(), Error> {
        if self.state() != State::Playing {
            return Ok(());
        }
        let remedy = "The port sends a capture (push_remote), which cannot be paused or changed: \
                      wait until it is sent, or stop the port's traffic.";
        Err(wrong_state(command, State::Playing, profile, remedy))
    }
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
