//! What clients ask of BIRD, and which of them may change it.

use std::time::Instant;

use allosaur_api::commands::bird::{
    BIRD_API, BIRD_REFUSED, BIRD_SYSTEM, BirdAcquire, BirdConnect, BirdFragment, BirdHandler,
    BirdMethod, BirdStatus, bird_command, bird_error,
};
use allosaur_api::{Empty, Error, Fields, Request};
use allosaur_nodes::NodesError;
use allosaur_nodes::bird::{Bird, Configured, EMPTY_CONFIG, unreachable_next_hops};
use serde_json::{Value, json};

use super::fragments::{Assembled, Fragments};
use crate::control::split_mix::SplitMix64;

/// The answer to a fragment that is not the last.
const MORE: &str = "send_another_frag";
/// The answers to a configuration that is in force, and to one that BIRD has taken.
const ALREADY: &str = "Already configured";
const DONE: &str = "Configured successfully";
/// Before the answer to one that was not sent as a whole, because it was sent before.
const KNOWN: &str = "Found configuration in cache. ";

/// BIRD, and who has it.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) bird: Bird,
    namespace: String,
    /// The handler of the client that has it.
    handler: Option<u32>,
    /// Where handlers come from.
    random: SplitMix64,
    fragments: Fragments,
}

impl Calls {
    /// Nobody has it yet.
    pub(super) fn new(bird: Bird, namespace: String, seed: u64) -> Calls {
        Calls {
            bird,
            namespace,
            handler: None,
            random: SplitMix64::new(seed),
            fragments: Fragments::default(),
        }
    }

    /// Does what a request asks, or refuses.
    pub(super) fn handle(&mut self, request: &Request, now: Instant) -> Result<Value, Error> {
        let Some(command) = bird_command(&request.method) else {
            return Err(Error::method_not_found(&request.method));
        };
        let fields = Fields::new(&request.params);
        match command.method {
            BirdMethod::Connect => connect(&fields.read()?),
            BirdMethod::Acquire => self.acquire(fields.read()?),
            BirdMethod::Release => self.release(fields.read()?),
            BirdMethod::Disconnect => fields
                .read::<Empty>()
                .map(|_| Value::Null)
                .map_err(Error::from),
            BirdMethod::Config => Ok(json!(self.bird.config())),
            BirdMethod::Protocols => Ok(json!(self.bird.protocols(now).map_err(failed)?)),
            BirdMethod::SetConfig => self.set_config(fields.read()?, now),
            BirdMethod::SetEmptyConfig => {
                let BirdHandler { handler } = fields.read()?;
                self.check_handler(handler)?;
                self.configure(EMPTY_CONFIG.to_owned(), "", now)
            }
            BirdMethod::Status => Ok(json!(self.status())),
        }
    }

    fn acquire(&mut self, params: BirdAcquire) -> Result<Value, Error> {
        if self.handler.is_some() && !params.force {
            return Err(refused(
                "another client has BIRD: acquire it by force (force=True) when that client is gone",
            ));
        }
        let handler = self.next_handler();
        self.handler = Some(handler);
        // Another's configuration is not gone on with.
        self.fragments.forget_begun();
        Ok(json!(handler))
    }

    fn release(&mut self, params: BirdHandler) -> Result<Value, Error> {
        self.check_handler(params.handler)?;
        self.handler = None;
        Ok(json!("Client released successfully"))
    }

    fn set_config(&mut self, part: BirdFragment, now: Instant) -> Result<Value, Error> {
        self.check_handler(part.handler)?;
        match self.fragments.add(part)? {
            Assembled::Part => Ok(json!(MORE)),
            Assembled::Whole { text, .. } if text == self.bird.config() => Ok(json!(ALREADY)),
            Assembled::Whole { text, is_known } => {
                self.configure(text, if is_known { KNOWN } else { "" }, now)
            }
        }
    }

    fn configure(&mut self, text: String, before: &str, now: Instant) -> Result<Value, Error> {
        // A refusal is an answer, as scripts for TRex expect it.
        if let Configured::Refused(why) = self.bird.configure(&text, now).map_err(failed)? {
            return Ok(json!(format!("Unable to parse the line:\"{why}\"")));
        }
        let mut reply = format!("{before}{DONE}");
        for warning in unreachable_next_hops(&text) {
            tracing::warn!("{warning}");
            reply = format!("{reply}\nwarning: {warning}");
        }
        self.fragments.keep(text);
        Ok(json!(reply))
    }

    fn status(&self) -> BirdStatus {
        BirdStatus {
            version: self.bird.version().to_owned(),
            namespace: self.namespace.clone(),
            pid: self.bird.process_id(),
            restarts: self.bird.restarts(),
            state: self.bird.state().name(),
            is_acquired: self.handler.is_some(),
        }
    }

    fn check_handler(&self, handler: u32) -> Result<(), Error> {
        match self.handler {
            Some(own) if own == handler => Ok(()),
            Some(_) => Err(refused(
                "'handler' is not that of the client that has BIRD now: acquire it first, by force \
                 (force=True) when that client is gone",
            )),
            None => Err(refused("no client has BIRD: acquire it first")),
        }
    }

    /// A number that is never 0, which clients take for none.
    fn next_handler(&mut self) -> u32 {
        ((self.random.bits() >> 32) as u32).max(1)
    }
}

fn connect(params: &BirdConnect) -> Result<Value, Error> {
    match params.version == BIRD_API {
        true => Ok(json!("Connection established")),
        false => Err(refused(format!(
            "'version' is '{}', and the server has '{BIRD_API}': use a client of that version",
            params.version
        ))),
    }
}

fn refused(text: impl std::fmt::Display) -> Error {
    bird_error(BIRD_REFUSED, text)
}

fn failed(error: NodesError) -> Error {
    bird_error(BIRD_SYSTEM, error)
}
