//! What a client's messages say, made once of its init JSON: clients with the same share them.

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv6::{Dhcpv6MessageType, HEADER_BYTES, LeasedAddress, code};
use serde_json::Value;

use crate::params::{Params, byte_lists};
use crate::plugins::lease::{FromInit, Intervals, OPTION_BYTES_MAX};

/// Vendor options, recursive name servers, the domain search list, the name of the client.
const WANTED: &[u8] = &[0, 17, 0, 23, 0, 24, 0, 39];
/// An enterprise (RFC 8415 section 21.16), and one class of its devices.
const VENDOR_CLASS: &[u8] = &[
    0, 0, 1, 55, 0, 8, b'M', b'S', b'F', b'T', b' ', b'5', b'.', b'0',
];
/// The DUID of a link-layer address on Ethernet (RFC 8415 section 11.4), before the address.
const DUID: [u8; 4] = [0, 3, 0, 1];
/// Bytes of an IA_NA without options.
const IA_NA_BYTES: usize = 12;

/// The DUID of a client.
pub(super) fn duid(mac: MacAddress) -> [u8; 10] {
    let mut duid = [0; 10];
    duid[..4].copy_from_slice(&DUID);
    duid[4..].copy_from_slice(&mac.octets());
    duid
}

/// A message without what differs from client to client.
#[derive(Debug)]
pub(super) struct Template {
    message_type: Dhcpv6MessageType,
    options: Box<[u8]>,
    /// Where the fields of a client go.
    duid: Option<u16>,
    iaid: Option<u16>,
    elapsed: Option<u16>,
    /// Where the leased address goes, in messages that give it back.
    address: Option<u16>,
}

/// The numbers of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers<'n> {
    pub(super) mac: MacAddress,
    pub(super) xid: u32,
    pub(super) iaid: u32,
    /// How long the client has been trying, in hundredths of a second.
    pub(super) elapsed: u16,
    pub(super) address: [u8; 16],
    /// The server's DUID, in messages to one server.
    pub(super) server: Option<&'n [u8]>,
}

impl Template {
    /// Bytes of the whole message.
    pub(super) fn bytes(&self, numbers: &Numbers<'_>) -> usize {
        let server = numbers.server.map_or(0, |server| 4 + server.len());
        HEADER_BYTES + self.options.len() + server
    }

    /// Writes a message over zeros.
    pub(super) fn write(&self, message: &mut [u8], numbers: &Numbers<'_>) {
        message[..HEADER_BYTES].copy_from_slice(&numbers.xid.to_be_bytes());
        message[0] = self.message_type.0;
        let (options, rest) = message[HEADER_BYTES..].split_at_mut(self.options.len());
        options.copy_from_slice(&self.options);
        let mut put = |at: Option<u16>, field: &[u8]| {
            if let Some(at) = at.map(usize::from) {
                options[at..at + field.len()].copy_from_slice(field);
            }
        };
        put(self.duid, &duid(numbers.mac));
        put(self.iaid, &numbers.iaid.to_be_bytes());
        put(self.elapsed, &numbers.elapsed.to_be_bytes());
        put(self.address, &numbers.address);
        if let Some(server) = numbers.server {
            let length = server.len() as u16;
            rest[..2].copy_from_slice(&code::SERVER_ID.to_be_bytes());
            rest[2..4].copy_from_slice(&length.to_be_bytes());
            rest[4..].copy_from_slice(server);
        }
    }
}

/// All messages of a client, and its intervals.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) solicit: Template,
    pub(super) request: Template,
    pub(super) renew: Template,
    pub(super) rebind: Template,
    pub(super) release: Template,
    pub(super) intervals: Intervals,
}

impl FromInit for Messages {
    fn parse(init: &Value) -> Result<Messages, Error> {
        let params = Params::object(init, "dhcpv6.DhcpInit")?;
        let known = ["sol", "req", "ren", "reb", "rel", "rm_or", "rm_vc"];
        let options = params.options("dhcpv6.DhcpOptionsT", &known)?;
        let without_request = options.bool_or("rm_or", false)?;
        let without_class = options.bool_or("rm_vc", false)?;
        let message = |message_type, name| {
            let mut builder = Builder::new(message_type);
            if !without_request {
                builder.set(code::OPTION_REQUEST, Content::Bytes(WANTED.to_vec()));
            }
            if !without_class {
                builder.set(code::VENDOR_CLASS, Content::Bytes(VENDOR_CLASS.to_vec()));
            }
            builder.given(name, byte_lists(options, name)?)?;
            Ok::<Template, Error>(builder.build())
        };
        Ok(Messages {
            solicit: message(Dhcpv6MessageType::SOLICIT, "sol")?,
            request: message(Dhcpv6MessageType::REQUEST, "req")?,
            renew: message(Dhcpv6MessageType::RENEW, "ren")?,
            rebind: message(Dhcpv6MessageType::REBIND, "reb")?,
            release: message(Dhcpv6MessageType::RELEASE, "rel")?,
            intervals: Intervals::parse(params)?,
        })
    }
}

/// Options of a message that is made, one of each code.
struct Builder {
    message_type: Dhcpv6MessageType,
    options: Vec<(u16, Content)>,
}

enum Content {
    Bytes(Vec<u8>),
    /// The DUID, the association and the time, which are written when the message is.
    ClientId,
    Association,
    Elapsed,
}

impl Builder {
    fn new(message_type: Dhcpv6MessageType) -> Builder {
        let options = vec![
            (code::CLIENT_ID, Content::ClientId),
            (code::IA_NA, Content::Association),
            (code::ELAPSED_TIME, Content::Elapsed),
        ];
        Builder {
            message_type,
            options,
        }
    }

    /// Options that the user gave, a code of two bytes and data each, in place of those of the same
    /// code.
    fn given(&mut self, name: &str, lists: Vec<Vec<u8>>) -> Result<(), Error> {
        let mut bytes = 0;
        for (at, list) in lists.iter().enumerate() {
            let [high, low, data @ ..] = &list[..] else {
                return Err(Error::execution(format!(
                    "options.{name}[{at}] has {} bytes; give the code of the option in two bytes, \
                     and its data",
                    list.len()
                )));
            };
            bytes += 4 + data.len();
            let code = u16::from_be_bytes([*high, *low]);
            self.set(code, Content::Bytes(data.to_vec()));
        }
        if bytes > OPTION_BYTES_MAX {
            return Err(Error::execution(format!(
                "options.{name}: the options take {bytes} bytes; leave some out, at most \
                 {OPTION_BYTES_MAX} fit"
            )));
        }
        Ok(())
    }

    fn set(&mut self, code: u16, content: Content) {
        match self.options.iter_mut().find(|(old, _)| *old == code) {
            Some(option) => option.1 = content,
            None => self.options.push((code, content)),
        }
    }

    fn build(mut self) -> Template {
        self.options.sort_by_key(|&(code, _)| code);
        let mut template = Template {
            message_type: self.message_type,
            options: Box::default(),
            duid: None,
            iaid: None,
            elapsed: None,
            address: None,
        };
        let mut options: Vec<u8> = Vec::new();
        for (code, content) in self.options {
            let at = Some(options.len() as u16 + 4);
            let data = match content {
                Content::Bytes(data) => data,
                Content::ClientId => {
                    template.duid = at;
                    vec![0; duid(MacAddress::ZERO).len()]
                }
                Content::Elapsed => {
                    template.elapsed = at;
                    vec![0; 2]
                }
                Content::Association => {
                    template.iaid = at;
                    let mut data = vec![0; IA_NA_BYTES];
                    // RFC 8415 section 18.2.7: who gives addresses back must name them.
                    if self.message_type == Dhcpv6MessageType::RELEASE {
                        data.extend(code::IA_ADDRESS.to_be_bytes());
                        data.extend((LeasedAddress::BYTES as u16).to_be_bytes());
                        template.address = at.map(|at| at + data.len() as u16);
                        data.extend([0; LeasedAddress::BYTES]);
                    }
                    data
                }
            };
            options.extend(code.to_be_bytes());
            options.extend((data.len() as u16).to_be_bytes());
            options.extend(data);
        }
        template.options = options.into();
        template
    }
}
