//! A data thread that broke down: what it sent is over, and everybody hears of it.

use allosaur_api::events::Event as ApiEvent;
use allosaur_engine::stateless::ProfileEvent;
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::Nanos;

use super::Control;
use crate::control::ports::port::Port;

impl Control {
    /// Takes note that a data thread ended by itself. Its share of what is being sent is over;
    /// other data threads go on with theirs, and with whatever is started from now on.
    pub fn handle_lost_core(&mut self, core: usize, now_ns: Nanos) {
        let served: Vec<u8> = (0..)
            .zip(&self.ports)
            .filter(|(_, port)| port.config.cores.contains(&core))
            .map(|(id, _)| id)
            .collect();
        self.lose_flows(core, &served, now_ns);
        for id in 0..self.ports.len() as u8 {
            let port = &mut self.ports[usize::from(id)];
            port.config.cores.retain(|of_port| *of_port != core);
            for (key, profile) in sending(port, core) {
                self.tell_of_loss(id, profile, core, now_ns);
                let (port, profile, at) = (id, key, now_ns);
                let over = ProfileEvent::ProfileDone { port, profile, at };
                self.note_worker_event(core, over, now_ns);
            }
        }
        self.ring_doorbell();
    }

    fn tell_of_loss(&mut self, port: u8, profile: Option<String>, thread: usize, now_ns: Nanos) {
        if let Some(profile) = profile {
            let event = ApiEvent::ProfileError {
                port,
                profile,
                thread,
            };
            self.queue_event(event, now_ns);
        }
        self.queue_event(ApiEvent::PortError { port, thread }, now_ns);
    }
}

/// What a data thread sends on a port: profiles, or a capture, which has no name.
fn sending(port: &Port, core: usize) -> Vec<(ProfileKey, Option<String>)> {
    let runs = port.profiles.iter().filter_map(|(name, profile)| {
        let run = profile.run.as_ref()?;
        let concerned = run.running.contains(&core);
        concerned.then(|| (run.key, Some(name.clone())))
    });
    let playing = port.playing.as_ref().filter(|playing| playing.core == core);
    runs.chain(playing.map(|playing| (playing.key, None)))
        .collect()
}
