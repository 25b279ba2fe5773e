//! The init JSON of a client: where to export to, and what.

use std::net::{Ipv4Addr, SocketAddr};

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::Value;

use super::generator::Generator;
use super::link::Watermarks;
use super::record::Version;
use super::{duration, folder};
use crate::exports::{Destination, Files, Post, Udp};
use crate::field_engine::{Random, SplitMix};
use crate::params::{Params, failed_check};

/// The version that is not IPFIX.
const NETFLOW_9: u16 = 9;
/// The name of files, unless told otherwise.
const FILE_NAME: &str = "fnf_agg.ipfix";
/// When files end, how many stay, and how much may wait for them, unless told otherwise.
const FILE_BYTES: u64 = 1 << 20;
const FILE_INTERVAL: Nanos = 60 * SECOND;
const FILES: u32 = 100;
const FILE_MESSAGES: u64 = 10_000;
/// Most bytes of a file, which is in memory until it is posted.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Most messages that may wait for a file.
const FILE_MESSAGES_MAX: u64 = 1_000_000;

/// Bytes of the name of an interface (`IFNAMSIZ`, with its end).
const INTERFACE_NAME_MAX: usize = 15;
/// What the init JSON of a client may have.
const CLIENT_KEYS: &[&str] = &[
    "netflow_version",
    "dst",
    "domain_id",
    "max_data_records",
    "max_template_records",
    "max_time",
    "auto_start",
    "exporter_params",
    "generators",
];
/// What `exporter_params` may have, whatever the destination.
const EXPORTER_KEYS: &[&str] = &[
    "compress",
    "dir",
    "export_from_dir",
    "export_from_dir_params",
    "header_fields",
    "input_channel_capacity",
    "max_files",
    "max_interval",
    "max_posts",
    "max_size",
    "name",
    "raw_socket_interface_name",
    "repeats_num",
    "repeats_wait_time",
    "store_exported_files_on_disk",
    "tls_cert_file",
    "tls_key_file",
    "use_emu_client_ip_addr",
];

/// Numbers of a device that a namespace made by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceNumbers {
    pub(super) tenant: u32,
    pub(super) site: u32,
    pub(super) device: u32,
}

/// Who a client is, as names of files and addresses tell it.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Its MAC address in hexadecimal.
    pub(super) mac: String,
    /// Unspecified when it has none.
    pub(super) ipv4: Ipv4Addr,
    pub(super) device: Option<DeviceNumbers>,
    /// Of what is unique to it.
    pub(super) seed: u64,
}

/// Where a client's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// By its own stack.
    Client(SocketAddr),
    /// Out of the emulation.
    Outside(&'static str, Destination),
}

/// What a client exports.
#[derive(Debug)]
pub(super) struct ClientInit {
    pub(super) version: Version,
    pub(super) target: Target,
    pub(super) marks: Option<Watermarks>,
    pub(super) domain: Option<u32>,
    pub(super) data_records_max: u64,
    pub(super) template_records_max: u64,
    pub(super) time_max: Option<Nanos>,
    pub(super) auto_start: bool,
    pub(super) generators: Vec<Generator>,
}

impl ClientInit {
    /// Reads it.
    ///
    /// # Errors
    /// When something is missing or wrong.
    pub(super) fn parse(
        init: &Value,
        who: &Identity,
        outside_is_allowed: bool,
    ) -> Result<ClientInit, Error> {
        let params = Params::object(init, "ipfix.IPFixClientParams")?;
        params.only(CLIENT_KEYS)?;
        // As in the reference, versions that are not there are IPFIX.
        let version = match params.number_or("netflow_version", 10)? {
            NETFLOW_9 => Version::Netflow9,
            _ => Version::Ipfix,
        };
        let destination = params.string_or("dst", "")?;
        let list = params.list("generators", "[]*json.RawMessage")?;
        let exporter = params.get("exporter_params").unwrap_or(&Value::Null);
        let exporter = Params::object(exporter, "map[string]interface {}")?;
        exporter.only(EXPORTER_KEYS)?;
        let is_from_folder = exporter.bool_or("export_from_dir", false)?;
        let mut missing = Vec::new();
        if destination.is_empty() {
            missing.push(failed_check("IPFixClientParams", "Dst", "required").to_string());
        }
        if list.is_none() && !is_from_folder {
            missing.push(failed_check("IPFixClientParams", "Generators", "required").to_string());
        }
        if !missing.is_empty() {
            return Err(Error::execution(missing.join("\n")));
        }
        let time_max = params.string_or("max_time", "")?;
        let time_max = match time_max {
            "" => None,
            text => Some(duration::parse(text)?).filter(|time| *time != 0),
        };
        let target = target(destination, exporter, who)?;
        let target = match is_from_folder {
            true => from_folder(target, exporter)?,
            false => target,
        };
        if matches!(target, Target::Outside(..)) && !outside_is_allowed {
            let message = "Failed to create exporter - wrong kernel mode";
            return Err(Error::execution(message));
        }
        let capacity = exporter.number_or("input_channel_capacity", FILE_MESSAGES)?;
        let is_udp = matches!(
            target,
            Target::Outside(_, Destination::Udp(_) | Destination::FolderUdp(..))
        );
        let init = ClientInit {
            version,
            target,
            marks: (!is_udp).then(|| Watermarks::of_files(capacity.clamp(1, FILE_MESSAGES_MAX))),
            domain: params
                .get("domain_id")
                .map(|_| params.number_or("domain_id", 0))
                .transpose()?,
            data_records_max: params.number_or("max_data_records", 0)?,
            template_records_max: params.number_or("max_template_records", 0)?,
            time_max,
            auto_start: params.bool_or("auto_start", true)?,
            // Files are sent as they are: nothing is made.
            generators: match list {
                Some(list) if !is_from_folder => generators(list, version)?,
                _ => Vec::new(),
            },
        };
        Ok(init)
    }
}

fn generators(list: &[Value], version: Version) -> Result<Vec<Generator>, Error> {
    let mut generators: Vec<Generator> = Vec::with_capacity(list.len());
    for value in list {
        let next = Generator::parse(value, version)?;
        let (name, template) = (&next.name, next.template_id());
        if generators.iter().any(|other| other.name == *name) {
            return Err(Error::execution(format!("duplicate generator name {name}")));
        }
        if generators
            .iter()
            .any(|other| other.template_id() == template)
        {
            return Err(Error::execution(format!(
                "duplicate template ID {template}"
            )));
        }
        generators.push(next);
    }
    Ok(generators)
}

/// Reads a destination: a URL, or an address and a port.
fn target(text: &str, params: Params<'_>, who: &Identity) -> Result<Target, Error> {
    let text = text.replace("localhost", "127.0.0.1");
    let address = |text: &str| {
        let address: Result<SocketAddr, _> = text.parse();
        address.map(Target::Client).map_err(|_| {
            Error::execution(format!(
                "Invalid dst '{text}': write an address and a port, such as 10.0.0.1:4739 or [2001:db8::1]:4739"
            ))
        })
    };
    if let Ok(target) = address(&text) {
        return Ok(target);
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    match scheme {
        "emu-udp" => address(rest.trim_end_matches('/')),
        "udp" => udp(rest.trim_end_matches('/'), params, who),
        "file" => Ok(Target::Outside(
            "file",
            Destination::Files(files(params, Some(rest), who, true)?),
        )),
        "http" => post(&text, params, who),
        "https" => Err(Error::execution(
            "the server has no TLS: write http, and put a proxy that speaks https in front of the collector",
        )),
        other => Err(Error::execution(format!(
            "Invalid dst URL scheme '{other}' in init JSON (should be emu-udp, udp, file, http or https)"
        ))),
    }
}

fn udp(address: &str, params: Params<'_>, who: &Identity) -> Result<Target, Error> {
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none() {
        let message = format!("Invalid dst 'udp://{address}': write a host and a port");
        return Err(Error::execution(message));
    }
    let from = params.bool_or("use_emu_client_ip_addr", false)?;
    let from = from.then_some(who.ipv4);
    if from.is_some_and(|ipv4| ipv4.is_unspecified()) {
        return Err(Error::execution(
            "use_emu_client_ip_addr needs a client with an IPv4 address: give it ipv4",
        ));
    }
    let interface = params.string_or("raw_socket_interface_name", "")?;
    if interface.len() > INTERFACE_NAME_MAX {
        let message = format!(
            "raw_socket_interface_name '{interface}' is too long: write the name of an interface, \
             {INTERFACE_NAME_MAX} bytes at most"
        );
        return Err(Error::execution(message));
    }
    let udp = Udp {
        to: address.to_owned(),
        from,
        interface: (!interface.is_empty()).then(|| interface.to_owned()),
    };
    Ok(Target::Outside("udp", Destination::Udp(udp)))
}

/// The same destination, of files that are there already.
fn from_folder(target: Target, params: Params<'_>) -> Result<Target, Error> {
    let given = folder::read(params)?;
    match target {
        Target::Outside(scheme, Destination::Udp(to)) => {
            Ok(Target::Outside(scheme, Destination::FolderUdp(given, to)))
        }
        Target::Outside(scheme, Destination::Post(_, to)) => {
            Ok(Target::Outside(scheme, Destination::FolderPost(given, to)))
        }
        _ => Err(Error::execution(
            "export_from_dir needs a dst of udp or http: write udp://HOST:PORT or http://HOST/PATH",
        )),
    }
}

/// Reads how files are made. `path` is what stands in a URL of a file.
fn files(
    params: Params<'_>,
    path: Option<&str>,
    who: &Identity,
    is_on_disk: bool,
) -> Result<Files, Error> {
    let (folder, name) = path
        .and_then(|path| path.rsplit_once('/'))
        .unwrap_or(("", ""));
    let name = params.string_or("name", if name.is_empty() { FILE_NAME } else { name })?;
    if name.is_empty() || name.contains(['/', '\0']) {
        let message = format!("name '{name}' of exporter_params must be the name of a file");
        return Err(Error::execution(message));
    }
    let (prefix, extension) = name.rsplit_once('.').unwrap_or((name, "ipfix"));
    let folder = params.string_or("dir", folder)?;
    if is_on_disk && folder.is_empty() {
        return Err(Error::execution(
            "dir of exporter_params is missing: write a folder",
        ));
    }
    let interval = match params.string_or("max_interval", "")? {
        "" => FILE_INTERVAL,
        text => duration::parse(text)?,
    };
    let bytes_max = params.number_or("max_size", FILE_BYTES)?;
    Ok(Files {
        folder: if is_on_disk {
            folder.to_owned()
        } else {
            String::new()
        },
        // Clients may have one folder, so that a name tells whose file it is.
        prefix: match path {
            Some(_) => format!("{prefix}_{}", who.mac),
            None => prefix.to_owned(),
        },
        extension: extension.to_owned(),
        bytes_max: bytes_max.clamp(1, FILE_BYTES_MAX),
        interval_max_ns: interval.max(SECOND / 10),
        files_max: params.number_or("max_files", FILES)?,
        compress: params.bool_or("compress", true)?,
    })
}

fn post(url: &str, params: Params<'_>, who: &Identity) -> Result<Target, Error> {
    let is_on_disk = params.bool_or("store_exported_files_on_disk", false)?;
    let wait = match params.string_or("repeats_wait_time", "")? {
        "" => 0,
        text => duration::parse(text)?,
    };
    let fields = params.plugins("header_fields")?.into_iter().flatten();
    let fields = fields.map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), text)
    });
    let post = Post {
        url: fill_in(url, who),
        header_fields: fields.collect(),
        posts_max: params.number_or("max_posts", 0)?,
        repeats: params.number_or("repeats_num", 0)?,
        repeat_wait_ns: wait,
    };
    let files = files(params, None, who, is_on_disk)?;
    Ok(Target::Outside("http", Destination::Post(files, post)))
}

/// Writes who a client is into a URL: `%t`, `%s` and `%d` are the numbers of its tenant, site and
/// device, `%Ut`, `%Us` and `%Ud` names that are unique to them, `%u` to the client.
fn fill_in(url: &str, who: &Identity) -> String {
    let numbers = who
        .device
        .map(|it| [('t', it.tenant), ('s', it.site), ('d', it.device)]);
    let number = |letter: char| {
        let mut numbers = numbers.into_iter().flatten();
        numbers
            .find(|(other, _)| *other == letter)
            .map(|(_, number)| number)
    };
    let mut filled = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, behind)) = rest.split_once('%') {
        filled.push_str(before);
        let mut letters = behind.chars();
        rest = match (letters.next(), letters.next()) {
            (Some(letter @ ('t' | 's' | 'd')), _) => {
                let number = number(letter).map(|number| number.to_string());
                filled.push_str(&number.unwrap_or_default());
                &behind[1..]
            }
            (Some('U'), Some(letter @ ('t' | 's' | 'd'))) => {
                let seed =
                    number(letter).map_or(who.seed, |n| u64::from(letter) << 32 | u64::from(n));
                filled.push_str(&uuid(seed));
                &behind[2..]
            }
            (Some('u'), _) => {
                filled.push_str(&uuid(who.seed));
                &behind[1..]
            }
            // Something that is written in hexadecimal.
            _ => {
                filled.push('%');
                behind
            }
        };
    }
    filled + rest
}

/// A UUID of version 4 (RFC 9562, section 5.4), the same for the same seed.
fn uuid(seed: u64) -> String {
    let mut random = SplitMix::new(seed);
    let (high, low) = (random.next_u64(), random.next_u64());
    let (high, low) = (high & !0xf000 | 0x4000, low & !(3 << 62) | 1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// An IPv4 address some numbers behind another.
pub(super) fn ipv4_behind(first: Ipv4Addr, count: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first).wrapping_add(count))
}
