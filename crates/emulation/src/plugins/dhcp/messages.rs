//! What a client's messages say, made once of its init JSON: clients with the same share them.

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{DhcpHeader, HEADER_BYTES, MessageType, REQUEST, code};
use serde_json::Value;

use crate::params::{Params, byte_lists};
use crate::plugins::lease::{FromInit, Intervals, OPTION_BYTES_MAX};

const NAME: &[u8] = b"host-trexs";
/// Subnet mask, router, domain name, name server, time server, NTP server.
const WANTED: &[u8] = &[1, 3, 15, 6, 26, 42];

/// What `options` may have.
const OPTIONS: [&str; 5] = [
    "discoverDhcpClassIdOption",
    "requestDhcpClassIdOption",
    "dis",
    "req",
    "ren",
];

/// A message without what differs from client to client.
#[derive(Debug)]
pub(super) struct Template {
    options: Box<[u8]>,
    /// Where the fields of a client go.
    client: Option<u16>,
    requested: Option<u16>,
    server: Option<u16>,
}

/// The numbers of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) mac: MacAddress,
    pub(super) xid: u32,
    /// The address that it has.
    pub(super) ciaddr: Ipv4Addr,
    /// The address that it wants.
    pub(super) requested: Ipv4Addr,
    pub(super) server: Ipv4Addr,
}

impl Template {
    /// Bytes of the whole message.
    pub(super) fn bytes(&self) -> usize {
        HEADER_BYTES + self.options.len()
    }

    /// Writes a message over zeros.
    pub(super) fn write(&self, message: &mut [u8], numbers: &Numbers) {
        let header = DhcpHeader {
            ciaddr: numbers.ciaddr,
            ..DhcpHeader::new(REQUEST, numbers.mac, numbers.xid)
        };
        header.emit(message);
        let options = &mut message[HEADER_BYTES..];
        options.copy_from_slice(&self.options);
        let mut put = |at: Option<u16>, field: &[u8]| {
            if let Some(at) = at.map(usize::from) {
                options[at..at + field.len()].copy_from_slice(field);
            }
        };
        put(self.client, &numbers.mac.octets());
        put(self.requested, &numbers.requested.octets());
        put(self.server, &numbers.server.octets());
    }
}

/// All messages of a client, and its intervals.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) discover: Template,
    pub(super) request: Template,
    pub(super) renew: Template,
    pub(super) release: Template,
    pub(super) decline: Template,
    pub(super) intervals: Intervals,
}

impl FromInit for Messages {
    fn parse(init: &Value) -> Result<Messages, Error> {
        let params = Params::object(init, "dhcp.DhcpInit")?;
        let options = params.options("dhcp.DhcpOptionsT", &OPTIONS)?;
        let discover_class = options.string_or("discoverDhcpClassIdOption", "")?;
        let request_class = options.string_or("requestDhcpClassIdOption", "")?;
        let discover = Builder::new(MessageType::DISCOVER)
            .option(code::HOST_NAME, NAME)
            .option(code::REQUESTED_ADDRESS, &[0; 4])
            .option(code::PARAMETER_LIST, WANTED)
            .class(discover_class)
            .given("dis", &byte_lists(options, "dis")?)?;
        let request = Builder::new(MessageType::REQUEST)
            .field(code::REQUESTED_ADDRESS)
            .field(code::SERVER_ID)
            .option(code::PARAMETER_LIST, WANTED)
            .class(request_class)
            .given("req", &byte_lists(options, "req")?)?;
        let renew_options = byte_lists(options, "ren")?;
        let renew = Builder::new(MessageType::REQUEST).given("ren", &renew_options)?;
        // RFC 2131 table 5: who gives an address back must say to whom.
        let release = Builder::new(MessageType::RELEASE)
            .field(code::SERVER_ID)
            .given("ren", &renew_options)?;
        let decline = Builder::new(MessageType::DECLINE)
            .field(code::REQUESTED_ADDRESS)
            .field(code::SERVER_ID);
        Ok(Messages {
            discover: discover.build(),
            request: request.build(),
            renew: renew.build(),
            release: release.build(),
            decline: decline.build(),
            intervals: Intervals::parse(params)?,
        })
    }
}

/// Options of a message that is made, one of each code.
#[derive(Debug)]
struct Builder(Vec<(u8, Content)>);

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// An address that is written when the message is.
    Address,
    /// The type of hardware and the client's MAC address.
    ClientId,
}

impl Builder {
    fn new(message_type: MessageType) -> Builder {
        Builder(vec![(code::CLIENT_ID, Content::ClientId)])
            .option(code::MESSAGE_TYPE, &[message_type.0])
    }

    fn option(mut self, code: u8, data: &[u8]) -> Builder {
        self.set(code, Content::Bytes(data.to_vec()));
        self
    }

    fn field(mut self, code: u8) -> Builder {
        self.set(code, Content::Address);
        self
    }

    fn class(self, class: &str) -> Builder {
        match class {
            "" => self,
            class => self.option(code::CLASS_ID, class.as_bytes()),
        }
    }

    /// Options that the user gave, a code and data each, in place of those of the same code.
    fn given(mut self, name: &str, lists: &[Vec<u8>]) -> Result<Builder, Error> {
        for (at, list) in lists.iter().enumerate() {
            let [code, data @ ..] = &list[..] else {
                return Err(Error::execution(format!(
                    "options.{name}[{at}] is empty; give the code of the option and its data"
                )));
            };
            if matches!(*code, code::PAD | code::END) || data.len() > 255 {
                return Err(Error::execution(format!(
                    "options.{name}[{at}]: code {code} with {} bytes of data; give a code of 1 to 254 \
                     and at most 255 bytes",
                    data.len()
                )));
            }
            self.set(*code, Content::Bytes(data.to_vec()));
        }
        let bytes: usize = self.0.iter().map(|(_, content)| 2 + content.bytes()).sum();
        if bytes > OPTION_BYTES_MAX {
            return Err(Error::execution(format!(
                "options.{name}: the options of the message take {bytes} bytes; leave some out, \
                 at most {OPTION_BYTES_MAX} fit"
            )));
        }
        Ok(self)
    }

    fn set(&mut self, code: u8, content: Content) {
        match self.0.iter_mut().find(|(old, _)| *old == code) {
            Some(option) => option.1 = content,
            None => self.0.push((code, content)),
        }
    }

    fn build(mut self) -> Template {
        self.0.sort_by_key(|&(code, _)| code);
        let (mut client, mut requested, mut server) = (None, None, None);
        let mut options = Vec::new();
        for (code, content) in self.0 {
            options.extend([code, content.bytes() as u8]);
            let at = Some(options.len() as u16);
            match content {
                Content::Bytes(data) => options.extend(data),
                Content::Address => {
                    if code == code::SERVER_ID {
                        server = at;
                    } else {
                        requested = at;
                    }
                    options.extend([0; 4]);
                }
                Content::ClientId => {
                    client = at.map(|at| at + 1);
                    options.extend([1, 0, 0, 0, 0, 0, 0]);
                }
            }
        }
        options.push(code::END);
        Template {
            options: options.into(),
            client,
            requested,
            server,
        }
    }
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Content::Bytes(data) => data.len(),
            Content::Address => 4,
            Content::ClientId => 7,
        }
    }
}
