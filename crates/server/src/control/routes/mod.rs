//! BGP speakers: which there are and where, and what the thread that has their sessions is asked to do.
//!
//! Tables are made by the job thread, and so are the questions to that thread: control never waits for it.

mod session;
mod tables;
mod work;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use allosaur_api::commands::routes::{
    AddBgpSession, AddSpeaker, AnnounceRoutes, FlapRoutes, RemoveRoutes, ShowRoutes, WithdrawRoutes,
};
use allosaur_api::{Empty, Error, Fields, Method, RouteMethod};

use self::session::session_spec;
use self::work::{RouteTask, RouteWork};
use super::awaited::{Awaited, Awaits};
use super::config::View;
use super::core::Core;
use super::domain::{Domain, Others};
use super::reply::{Reply, reply};
use crate::counters::BgpSessionBlock;
use crate::metrics::{Catalog, CatalogBgpSession};
use crate::routes::{RouteAnswer, RouteRequest, RouteService, SpeakerPlace, SpeakerSpec};

/// The speakers of the server.
#[derive(Debug)]
pub(in crate::control) struct Routes {
    awaited: Awaited<Routes>,
    service: Arc<RouteService>,
    speakers: BTreeMap<String, KnownSpeaker>,
}

/// What control knows of a speaker.
#[derive(Debug)]
struct KnownSpeaker {
    spec: SpeakerSpec,
    sessions: BTreeMap<IpAddr, Arc<BgpSessionBlock>>,
}

impl Awaits for Routes {
    fn awaited(&mut self) -> Option<&mut Awaited<Routes>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Routes {
    fn call(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        _view: &View<'_>,
    ) -> Option<Reply> {
        let Method::Routes(method) = method else {
            return None;
        };
        Some(match method {
            RouteMethod::AddSpeaker => self.add_speaker(control, others, fields),
            RouteMethod::AddSession => self.add_session(control, fields),
            RouteMethod::Announce => self.announce(control, fields),
            RouteMethod::Withdraw => self.withdraw(control, fields),
            RouteMethod::Flap => self.flap(control, fields),
            RouteMethod::Show => self.show(control, fields),
            RouteMethod::Remove => self.remove(control, fields),
        })
    }

    fn describe(&self, _control: &Core, _view: &View<'_>, catalog: &mut Catalog) {
        catalog.bgp_sessions = self
            .speakers
            .iter()
            .flat_map(|(name, speaker)| {
                speaker
                    .sessions
                    .iter()
                    .map(|(peer, block)| CatalogBgpSession {
                        speaker: name.clone(),
                        peer: peer.to_string(),
                        block: Arc::clone(block),
                    })
            })
            .collect();
    }
}

impl Routes {
    /// None yet. The seed spreads timers of sessions.
    pub(in crate::control) fn new(seed: u64) -> Routes {
        Routes {
            awaited: Awaited::default(),
            service: Arc::new(RouteService::new(seed)),
            speakers: BTreeMap::new(),
        }
    }

    fn add_speaker(
        &mut self,
        control: &mut Core,
        others: &Others<'_>,
        fields: &Fields<'_>,
    ) -> Reply {
        let params = AddSpeaker::parse(fields)?;
        if self.speakers.contains_key(&params.name) {
            return Err(Error::execution(format!(
                "'name' is '{}', and a speaker of that name is there: remove it first (routes_remove), or take \
                 another name",
                params.name
            )));
        }
        let spec = SpeakerSpec {
            place: place_of(control, others, &params)?,
            name: params.name.clone(),
            asn: params.asn,
            router_id: params.router_id,
            hold_time_s: params.hold_time_s,
            tcp_port: params.tcp_port,
        };
        let known = KnownSpeaker {
            spec: spec.clone(),
            sessions: BTreeMap::new(),
        };
        self.speakers.insert(params.name.clone(), known);
        let request = RouteRequest::AddSpeaker(spec);
        self.ask(control, request, move |routes| {
            routes.speakers.remove(&params.name);
        })
    }

    fn add_session(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = AddBgpSession::parse(fields)?;
        let known = self.speaker(&params.speaker)?;
        let (speaker, peer) = (params.speaker.clone(), params.peer);
        if known.sessions.contains_key(&peer) {
            return Err(Error::execution(format!(
                "'peer' is {peer}, and speaker '{speaker}' has a session with it: remove that first \
                 (routes_remove)"
            )));
        }
        let block = Arc::<BgpSessionBlock>::default();
        let session = session_spec(&known.spec, params, Arc::clone(&block), fields)?;
        known.sessions.insert(peer, block);
        let request = RouteRequest::AddSession {
            speaker: speaker.clone(),
            session: Box::new(session),
        };
        self.ask(control, request, move |routes| {
            if let Some(known) = routes.speakers.get_mut(&speaker) {
                known.sessions.remove(&peer);
            }
        })
    }

    fn announce(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = AnnounceRoutes::parse(fields)?;
        self.speaker(&params.speaker)?;
        self.begin(control, RouteTask::Announce(params), |_| {})
    }

    fn withdraw(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let WithdrawRoutes {
            speaker,
            name,
            rate,
        } = WithdrawRoutes::parse(fields)?;
        self.speaker(&speaker)?;
        let request = RouteRequest::Withdraw {
            speaker,
            name,
            rate,
        };
        self.ask(control, request, |_| {})
    }

    fn flap(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let FlapRoutes {
            speaker,
            name,
            times,
            rate,
            share,
        } = FlapRoutes::parse(fields)?;
        self.speaker(&speaker)?;
        let request = RouteRequest::Flap {
            speaker,
            name,
            times,
            rate,
            share: share / 100.0,
        };
        self.ask(control, request, |_| {})
    }

    fn show(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let ShowRoutes { speaker } = fields.read()?;
        if let Some(speaker) = &speaker {
            self.speaker(speaker)?;
        }
        self.ask(control, RouteRequest::Show { speaker }, |_| {})
    }

    fn remove(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let RemoveRoutes { speaker, peer } = fields.read()?;
        let known = self.speaker(&speaker)?;
        match peer {
            Some(peer) => {
                known.sessions.remove(&peer).ok_or_else(|| {
                    Error::execution(format!(
                        "'peer' is {peer}, and speaker '{speaker}' has no session with it: routes_show lists them"
                    ))
                })?;
            }
            None => {
                self.speakers.remove(&speaker);
            }
        }
        self.ask(control, RouteRequest::Remove { speaker, peer }, |_| {})
    }

    fn speaker(&mut self, name: &str) -> Result<&mut KnownSpeaker, Error> {
        let names: Vec<&str> = self.speakers.keys().map(String::as_str).collect();
        let there = match names.is_empty() {
            true => "there is none".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        self.speakers.get_mut(name).ok_or_else(|| {
            Error::execution(format!(
                "no speaker has the name '{name:.64}' ({there}): add it first (routes_add_speaker)"
            ))
        })
    }

    fn ask(
        &mut self,
        control: &mut Core,
        request: RouteRequest,
        undo: impl FnOnce(&mut Routes) + 'static,
    ) -> Reply {
        self.begin(control, RouteTask::Ask(request), undo)
    }

    /// Has something done; `undo` follows where it fails.
    fn begin(
        &mut self,
        control: &mut Core,
        task: RouteTask,
        undo: impl FnOnce(&mut Routes) + 'static,
    ) -> Reply {
        let work = RouteWork {
            service: Arc::clone(&self.service),
            task,
        };
        self.awaited
            .begin_job(control, work, |routes, _, done, _| match done {
                Ok(RouteAnswer::Done) => reply(&Empty {}),
                Ok(RouteAnswer::Announced(announced)) => reply(&announced),
                Ok(RouteAnswer::Shown(shown)) => reply(&shown),
                Err(problem) => {
                    undo(routes);
                    Err(Error::execution(problem))
                }
            });
        Ok(serde_json::Value::Null)
    }
}

/// Where a speaker's sockets are.
fn place_of(
    control: &Core,
    others: &Others<'_>,
    params: &AddSpeaker,
) -> Result<SpeakerPlace, Error> {
    let (Some(port), Some(node)) = (params.port, params.node) else {
        return Ok(SpeakerPlace {
            namespace: None,
            addresses: params.address.into_iter().collect(),
        });
    };
    control.port(port)?;
    let mut found = others
        .iter()
        .filter_map(|domain| domain.node_place(port, node));
    let mut place = found
        .next()
        .expect("there is a domain of nodes")
        .map_err(Error::execution)?;
    let Some(address) = params.address else {
        return Ok(place);
    };
    if !place.addresses.contains(&address) {
        let own: Vec<String> = place.addresses.iter().map(IpAddr::to_string).collect();
        let own = match own.is_empty() {
            true => "none".to_owned(),
            false => own.join(", "),
        };
        return Err(Error::execution(format!(
            "'address' is {address}, which the node has not: it has {own}; give one of these, or leave it out"
        )));
    }
    place.addresses.retain(|own| *own == address);
    Ok(place)
}
