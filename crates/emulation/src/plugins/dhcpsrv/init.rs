//! The init JSON of a server, read as the reference reads it: with its errors.

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_packet::application::dhcpv4::code;
use serde_json::Value;

use super::pool::Pool;
use crate::params::{Params, byte_list};

const DEFAULT_LEASE_S: u32 = 300;
const MIN_LEASE_S: u32 = 60;
const MAX_LEASE_S: u32 = 600;
/// The most that given options of a message may take, so that it fits into every link's packet.
const OPTION_BYTES_MAX: usize = 1024;

/// RFC 2131 table 3: what no offer and no ACK may have.
const NOT_IN_OFFER: &[u8] = &[50, 55, 57, 61];
/// What the ACK of an INFORM may not have either.
const NOT_IN_INFORM: &[u8] = &[50, 51, 55, 57, 58, 61];
/// All that a NAK may have.
const IN_NAK: &[u8] = &[43, 56, 61];

/// An option: a code and its data.
pub(super) type GivenOption = (u8, Vec<u8>);

/// Options of a message that may be in it, and how many may not.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) options: Vec<GivenOption>,
    pub(super) refused: u64,
}

impl Given {
    fn new(all: &[GivenOption], may: impl Fn(u8) -> bool) -> Given {
        let options: Vec<GivenOption> =
            all.iter().filter(|(code, _)| may(*code)).cloned().collect();
        let refused = (all.len() - options.len()) as u64;
        Given { options, refused }
    }
}

/// What a server is told.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) pools: Vec<Pool>,
    pub(super) excluded: Vec<Ipv4Addr>,
    pub(super) default_lease_s: u32,
    pub(super) min_lease_s: u32,
    pub(super) max_lease_s: u32,
    pub(super) next_server: Ipv4Addr,
    pub(super) offer: Given,
    pub(super) ack: Given,
    pub(super) inform: Given,
    pub(super) nak: Given,
}

impl Init {
    /// Reads the init JSON of a client that is a server.
    pub(super) fn parse(init: &Value) -> Result<Init, Error> {
        let params = Params::object(init, "dhcpsrv.DhcpSrvParams")?;
        let default_lease_s = params.nonzero_or("default_lease", DEFAULT_LEASE_S)?;
        let min_lease_s = params
            .nonzero_or("min_lease", MIN_LEASE_S)?
            .min(default_lease_s);
        let max_lease_s = params
            .nonzero_or("max_lease", MAX_LEASE_S)?
            .max(default_lease_s);
        let next_server = params.string_or("next_server_ip", "")?;
        let options = params.options("dhcpsrv.DhcpSrvOptions", &["offer", "ack", "nak"])?;
        let offer = given_options(options, "offer")?;
        let ack = given_options(options, "ack")?;
        let nak = given_options(options, "nak")?;
        let raw = RawPool::list(params)?;
        let next_server = match next_server {
            "" => Ipv4Addr::UNSPECIFIED,
            text => address(text, "NextServerIp")?,
        };
        let mut excluded = Vec::new();
        let mut pools = Vec::with_capacity(raw.len());
        for pool in raw {
            pools.push(pool.check()?);
            for text in pool.exclude {
                excluded.push(address(text, "pool excluded IP")?);
            }
        }
        Ok(Init {
            pools,
            excluded,
            default_lease_s,
            min_lease_s,
            max_lease_s,
            next_server,
            offer: Given::new(&offer, |code| !NOT_IN_OFFER.contains(&code)),
            ack: Given::new(&ack, |code| !NOT_IN_OFFER.contains(&code)),
            inform: Given::new(&ack, |code| !NOT_IN_INFORM.contains(&code)),
            nak: Given::new(&nak, |code| IN_NAK.contains(&code)),
        })
    }
}

/// A pool as it is written.
struct RawPool<'v> {
    min: &'v str,
    max: &'v str,
    prefix: u8,
    exclude: Vec<&'v str>,
}

impl<'v> RawPool<'v> {
    fn list(params: Params<'v>) -> Result<Vec<RawPool<'v>>, Error> {
        let items = params.list("pools", "[]dhcpsrv.Ipv4PoolParams")?;
        let Some(items) = items else {
            return Err(Error::execution(failed("Pools", "Pools", "required")));
        };
        let mut pools = Vec::with_capacity(items.len());
        let mut missing = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let fields = Params::object(item, "dhcpsrv.Ipv4PoolParams")?;
            let place = format!("pools[{at}]");
            fields.only_in(&place, &["min", "max", "prefix", "exclude"])?;
            let pool = RawPool {
                min: fields.string_or("min", "")?,
                max: fields.string_or("max", "")?,
                prefix: fields.number_or("prefix", 0)?,
                exclude: fields.strings("exclude")?,
            };
            let mut check = |is_wrong: bool, name: &str, rule: &str| {
                if is_wrong {
                    missing.push(failed(&format!("Pools[{at}].{name}"), name, rule));
                }
            };
            check(pool.min.is_empty(), "Min", "required");
            check(pool.max.is_empty(), "Max", "required");
            check(pool.prefix == 0, "Prefix", "required");
            check(pool.prefix >= 32, "Prefix", "lt");
            pools.push(pool);
        }
        match missing.is_empty() {
            true => Ok(pools),
            false => Err(Error::execution(missing.join("\n"))),
        }
    }

    fn check(&self) -> Result<Pool, Error> {
        let min = address(self.min, "pool min IP")?;
        let max = address(self.max, "pool max IP")?;
        let pool = Pool::new(min, max, self.prefix);
        if !pool.is_subnet_of(max) {
            let subnet = Ipv4Addr::from(u32::from(min) & u32::from(pool.mask()));
            return Err(Error::execution(format!(
                "Pool max {max} not in the same subnet as min {subnet}/{}",
                self.prefix
            )));
        }
        Ok(pool)
    }
}

fn failed(path: &str, name: &str, rule: &str) -> String {
    format!(
        "Key: 'DhcpSrvParams.{path}' Error:Field validation for '{name}' failed on the '{rule}' tag"
    )
}

fn address(text: &str, what: &str) -> Result<Ipv4Addr, Error> {
    let address = text.parse();
    address.map_err(|_| Error::execution(format!("Invalid {what} {text}")))
}

fn given_options(options: Params<'_>, name: &str) -> Result<Vec<GivenOption>, Error> {
    let items = options.list(name, "[]dhcpsrv.DhcpOption")?;
    let mut given = Vec::new();
    for (at, item) in items.into_iter().flatten().enumerate() {
        let fields = Params::object(item, "dhcpsrv.DhcpOption")?;
        fields.only_in(&format!("options.{name}[{at}]"), &["type", "data"])?;
        let code: u8 = fields.number_or("type", 0)?;
        let data = fields.get("data").map_or(Ok(Vec::new()), byte_list)?;
        if matches!(code, code::PAD | code::END) || data.len() > 255 {
            return Err(Error::execution(format!(
                "options.{name}[{at}]: type {code} with {} bytes of data; give a type of 1 to 254 \
                 and at most 255 bytes",
                data.len()
            )));
        }
        given.push((code, data));
    }
    let bytes: usize = given.iter().map(|(_, data)| 2 + data.len()).sum();
    if bytes > OPTION_BYTES_MAX {
        return Err(Error::execution(format!(
            "options.{name}: the options take {bytes} bytes; leave some out, at most \
             {OPTION_BYTES_MAX} fit"
        )));
    }
    Ok(given)
}
