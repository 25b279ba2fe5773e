//! What the parts of a call ask a shard about its clients before they are given to where the clients are.

use allosaur_api::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::address_conflict::check_client;
use super::call::Query;

use crate::emulation::{Emulation, are_of_clients};
use crate::read;
use crate::target::{TunnelParams, reply};

/// The answer to [`Query::Conflict`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Conflict {
    /// The first that cannot be added, by its place in the list, and why.
    pub(crate) first: Option<(usize, String)>,
    /// Whether clients that name no plugins may stand on any shard.
    pub(crate) defaults_of_clients: bool,
}

impl Emulation {
    /// Answers a question about the namespace of a call.
    pub(super) fn query(&mut self, params: &Value, query: &Query) -> Result<Value, Error> {
        if let Query::IsEmpty = query {
            let TunnelParams { tun } = read::params(params)?;
            self.check_empty(&tun.unwrap_or_default().key())?;
            return Ok(Value::Null);
        }
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get(index).expect("it was found");
        let clients = &entry.namespace.clients;
        Ok(match query {
            Query::Conflict(list) => {
                let defaults = entry.client_defaults.iter();
                let names = defaults.flat_map(|defaults| defaults.keys());
                let mut all = list.iter().enumerate();
                let first = all.find_map(|(place, new)| {
                    let error = check_client(clients, &new.client).err()?;
                    Some((place, error.to_string()))
                });
                reply(&Conflict {
                    first,
                    defaults_of_clients: are_of_clients(names.map(String::as_str)),
                })
            }
            Query::Located(macs) => {
                let are_here = macs.iter().map(|mac| clients.by_mac(*mac).is_some());
                reply(&are_here.collect::<Vec<_>>())
            }
            Query::IsEmpty => Value::Null,
        })
    }
}
