//! What a client says of itself by mDNS.

use std::net::{IpAddr, Ipv6Addr};

use allosaur_api::Error;
use serde_json::Value;

use crate::client::ClientId;
use crate::datagrams;
use crate::dns::kind::Kind;
use crate::dns::message::{Name, txt_data};
use crate::dns::query::bad_name;
use crate::params::{Params, mismatch};
use crate::plugin::Context;

/// Seconds that answers are good for, unless the init JSON says otherwise.
const TTL_S: u32 = 240;

crate::counters! {
    /// Counters of mDNS of a client.
    pub(crate) struct MdnsClientCounters: u32, "mdns" {
        invalid_init_json: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        invalid_socket: "invalidSocket", "Error creating socket", "ops", Error;
        socket_write_error: "socketWriteError", "Error writing in socket", "ops", Error;
        tx_queries: "pktTxMDnsQuery", "Num of mDNS queries transmitted", "pkts", Info, zero;
        rx_queries: "pktRxMDnsQuery", "Num of mDNS queries received", "pkts", Info, zero;
        tx_responses: "pktTxMDnsResponse", "Num of mDNS responses transmitted", "pkts", Info, zero;
        no_ipv6_to_ask: "ipv6QueryNoPlugin", "Num of Ipv6 queries that can't be sent because no IPv6", "query", Error;
        no_ipv6_to_answer: "ipv6ResponseNoPlugin", "Num of Ipv6 queries that can't be answered because no IPv6", "query", Error;
        no_aaaa: "queryAAAANoIpv6", "Num of AAAA queries that can't be answered because of no IPv6", "query", Info;
        no_ptr: "queryPTRNoDomainName", "Num of PTR queries that can't be answered because domain name unspecified", "query", Info;
        no_txt: "queryTXTNoTxtDefined", "Num of TXT queries that can't be answered because txt unspecified", "query", Info;
        unsupported: "unsupportedDnsType", "Num of queries received with an unsupported type", "query", Info;
    }
}

/// A question that a client has no answer to; it was counted.
pub(super) struct Unanswered;

/// One client.
#[derive(Debug)]
pub(super) struct MdnsClient {
    pub(super) counters: MdnsClientCounters,
    /// The names that it answers for.
    pub(super) hosts: Vec<String>,
    domain_name: Option<Name>,
    /// The data of its TXT record.
    txt: Vec<u8>,
    pub(super) ttl_s: u32,
}

impl MdnsClient {
    /// Reads the init JSON; returns the host names too, which the client may not all get.
    pub(super) fn parse(init: &Value) -> Result<(MdnsClient, Vec<String>), Error> {
        if !init.is_null() && !init.is_object() {
            return Err(mismatch(init, "mdns.MDnsClientParams"));
        }
        let params = Params::new(init);
        let hosts = params
            .strings("hosts")?
            .into_iter()
            .map(str::to_owned)
            .collect();
        let domain_name = match params.string_or("domain_name", "")? {
            "" => None,
            name => Some(Name::new(name).ok_or_else(|| bad_name(name))?),
        };
        let mut texts = Vec::new();
        if let Some(list) = params.get("txt") {
            let items = list.as_array();
            let items = items.ok_or_else(|| mismatch(list, "[]dns_utils.TxtEntries"))?;
            for item in items.iter().map(Params::new) {
                let (field, value) = (item.string_or("field", "")?, item.string_or("value", "")?);
                texts.push(format!("{field}={value}"));
            }
        }
        let client = MdnsClient {
            counters: MdnsClientCounters::default(),
            hosts: Vec::new(),
            domain_name,
            txt: txt_data(texts.iter().map(String::as_str)),
            ttl_s: params.number_or("ttl", TTL_S)?,
        };
        Ok((client, hosts))
    }

    /// The data of an answer of a type.
    pub(super) fn data(
        &mut self,
        context: &Context<'_>,
        client: ClientId,
        kind: Kind,
    ) -> Result<Vec<u8>, Unanswered> {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let (data, counter) = match kind {
            Kind::A => {
                let found = context.client(client).map(|client| client.ipv4);
                let address = found.filter(|address| !address.is_unspecified());
                return address
                    .map(|address| address.octets().to_vec())
                    .ok_or(Unanswered);
            }
            Kind::AAAA => match datagrams::source(context, client, any) {
                Some(IpAddr::V6(address)) => {
                    (address.octets().to_vec(), &mut self.counters.no_aaaa)
                }
                _ => (Vec::new(), &mut self.counters.no_aaaa),
            },
            Kind::PTR => {
                let name = self.domain_name.as_ref();
                let data = name.map(|name| name.bytes().to_vec());
                (data.unwrap_or_default(), &mut self.counters.no_ptr)
            }
            Kind::TXT => (self.txt.clone(), &mut self.counters.no_txt),
            _ => (Vec::new(), &mut self.counters.unsupported),
        };
        if data.is_empty() {
            *counter += 1;
            return Err(Unanswered);
        }
        Ok(data)
    }
}
