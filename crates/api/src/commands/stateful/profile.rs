//! The JSON of a stateful profile, as `profile_fragment` carries it.
//!
//! Fields that nobody knows are left alone, as TRex does: clients write some for themselves. Names
//! of commands and tunables that nobody knows are errors: TRex ends a program there, or goes on
//! without.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::command::ProgramCommand;
use super::http::HttpFields;
use super::tls::{TlsClientFields, TlsServerFields};
use super::tunables::Tunables;
use super::values::{bytes, flag, flag_or_no, number, number32, objects, strings};
use crate::fields::{FieldError, Fields};

/// A profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile<'a> {
    /// `buf_list`.
    pub buffers: Vec<Buffer<'a>>,
    /// `ip_gen_dist_list`.
    pub pools: Vec<Pool>,
    /// `program_list`.
    pub programs: Vec<Program<'a>>,
    /// `templates`.
    pub templates: Vec<Template>,
    /// `c_glob_info`.
    pub client: Tunables,
    /// `s_glob_info`.
    pub server: Tunables,
    /// `tg_names`.
    pub groups: Vec<&'a str>,
    /// `draw_lists`: texts of which each connection draws one. Allosaur's own.
    pub draw_lists: Vec<DrawList<'a>>,
}

/// Texts of one length, of which a connection draws one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawList<'a> {
    /// `values`, in base64.
    pub values: Vec<&'a str>,
    /// `distribution`: random (`rand`), else one after another (`seq`).
    pub is_random: bool,
}

/// Where a command that sends draws texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The number of the command in its program.
    pub command: usize,
    /// `draw`: the offset of each text in the buffer, and the number of its list.
    pub draws: Vec<(u64, u32)>,
}

/// Constant bytes: a string, or an object that describes a longer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer<'a> {
    /// The bytes that it begins with, in base64.
    pub base: &'a str,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// What fills the rest, in base64.
    pub fill: Option<&'a str>,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// `ip_start`.
    pub start: Ipv4Addr,
    /// `ip_end`.
    pub end: Ipv4Addr,
    /// `ip_offset`: added for each further pair of ports.
    pub offset: Ipv4Addr,
    /// `distribution`: random (`rand`), else one after another (`seq`).
    pub is_random: bool,
    /// `dir`: clients (`c`), else servers (`s`).
    pub is_client: bool,
    /// `per_core_distribution` is `seq`.
    pub is_sequential_per_core: bool,
    /// `emulation`: its clients are the emulated ones of a namespace that are ready when the profile
    /// starts, in the place of a range (`ip_start`, `ip_end`, `ip_offset`). Allosaur's own.
    pub emulation: Option<PoolEmulation>,
}

/// Which emulated clients a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolEmulation {
    /// `vport`: their port.
    pub port: u16,
    /// `tpid` and `tci`: the type and the number of each VLAN tag of theirs, outer first; 0 is no
    /// tag.
    pub tags: [(u16, u16); 2],
    /// `ready_min`: how many must be ready.
    pub ready_min: u32,
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program<'a> {
    /// `commands`.
    pub commands: Vec<ProgramCommand>,
    /// What is drawn in them, in their order.
    pub drawn: Vec<Drawn>,
    /// `stream`: TCP, else UDP.
    pub is_stream: bool,
    /// `addon`.
    pub addon: Option<&'a str>,
    /// `http_client` or `http_server`: what it speaks in the place of commands. Allosaur's own.
    pub http: Option<HttpFields>,
}

/// A template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// `client_template`.
    pub client: Client,
    /// `server_template`.
    pub server: Server,
    /// `tg_id`; 0 is none.
    pub group: u32,
}

/// The client's side of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// `program_index`.
    pub program: u32,
    /// `ip_gen.dist_client.index`.
    pub client_pool: u32,
    /// `ip_gen.dist_server.index`.
    pub server_pool: u32,
    /// `port`.
    pub port: u16,
    /// `cps`: connections per second; missing for flows that only programs make.
    pub cps: Option<f64>,
    /// `limit`: flows in all.
    pub limit: Option<u32>,
    /// `cont`: with a limit, a flow that ends is replaced.
    pub cont: bool,
    /// `core_base`: where the shares of a limit begin.
    pub core_base: u8,
    /// `glob_info`.
    pub tunables: Tunables,
    /// `tls`: its program runs over TLS. Allosaur's own.
    pub tls: Option<TlsClientFields>,
}

/// The server's side of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// `program_index`.
    pub program: u32,
    /// `assoc`.
    pub associations: Vec<Association>,
    /// `glob_info`.
    pub tunables: Tunables,
    /// `tls`: its program runs over TLS. Allosaur's own.
    pub tls: Option<TlsServerFields>,
}

/// Whom a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// `port`.
    pub port: u16,
    /// `ip_start`.
    pub start: Option<Ipv4Addr>,
    /// `ip_end`.
    pub end: Option<Ipv4Addr>,
    /// `l7_map`.
    pub l7_map: Option<L7Map>,
}

/// Bytes of the first message that choose a server: a list of offsets, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L7Map {
    /// `offset`.
    pub offsets: Vec<u8>,
    /// `mask`.
    pub masks: Vec<u8>,
    /// `value`.
    pub values: Option<Vec<u8>>,
}

impl<'a> Profile<'a> {
    /// Reads a profile.
    pub fn parse(value: &'a Value) -> Result<Profile<'a>, FieldError> {
        let map = value.as_object().ok_or(FieldError::Type {
            name: "profile".to_owned(),
            found: "something else",
            expected: "object",
        })?;
        let fields = Fields::new(map);
        Ok(Profile {
            buffers: buffers(&fields)?,
            pools: objects(&fields, "ip_gen_dist_list", "ip_gen_dist_list", pool)?,
            programs: programs(&fields)?,
            templates: objects(&fields, "templates", "templates", template)?,
            client: Tunables::parse(&fields, "c_glob_info")?,
            server: Tunables::parse(&fields, "s_glob_info")?,
            groups: strings(&fields, "tg_names")?,
            draw_lists: match fields.is_missing("draw_lists") {
                true => Vec::new(),
                false => objects(&fields, "draw_lists", "draw_lists", draw_list)?,
            },
        })
    }
}

fn buffers<'a>(fields: &Fields<'a>) -> Result<Vec<Buffer<'a>>, FieldError> {
    let values = fields.array("buf_list")?.iter().enumerate();
    let buffer = |(i, value): (usize, &'a Value)| match value {
        Value::String(base) => Ok(Buffer {
            base,
            size: None,
            fill: None,
        }),
        _ => {
            let fields = Fields::of(value, &format!("buf_list[{i}]"))?;
            Ok(Buffer {
                base: fields.optional("base", Fields::string)?.unwrap_or(""),
                size: fields.optional("size", number)?,
                fill: fields.optional("fill", Fields::string)?,
            })
        }
    };
    values.map(buffer).collect()
}

fn address(fields: &Fields<'_>, name: &str) -> Result<Ipv4Addr, FieldError> {
    let text = fields.string(name)?;
    text.parse().map_err(|_| {
        let problem = format!("is '{text:.40}'; it must be an IPv4 address such as 16.0.0.1");
        fields.bad(name, problem)
    })
}

fn pool(fields: &Fields<'_>) -> Result<Pool, FieldError> {
    let per_core = |fields: &Fields<'_>, name: &str| fields.one_of(name, &["default", "seq"]);
    let per_core = fields.optional("per_core_distribution", per_core)?;
    let emulation = fields.optional("emulation", emulation)?;
    let address = |name: &str| match emulation {
        None => address(fields, name),
        Some(_) if fields.is_missing(name) => Ok(Ipv4Addr::UNSPECIFIED),
        Some(_) => {
            let problem = "stands beside emulation: the addresses of emulated clients are their own, \
                           so leave one of the two out";
            Err(fields.bad(name, problem))
        }
    };
    Ok(Pool {
        start: address("ip_start")?,
        end: address("ip_end")?,
        offset: address("ip_offset")?,
        is_random: fields.one_of("distribution", &["seq", "rand"])? == "rand",
        is_client: fields.one_of("dir", &["c", "s"])? == "c",
        is_sequential_per_core: per_core == Some("seq"),
        emulation,
    })
}

/// The type of a VLAN tag that is given without one.
const DEFAULT_TPID: u16 = 0x8100;
const VLAN_MAX: u64 = 4095;

fn emulation(fields: &Fields<'_>, name: &str) -> Result<PoolEmulation, FieldError> {
    let fields = fields.object(name)?;
    let tpids = two(&fields, "tpid", u16::MAX.into())?;
    let vlans = two(&fields, "tci", VLAN_MAX)?;
    let tag = |at: usize| match (tpids[at], vlans[at]) {
        (_, 0) => (0, 0),
        (0, vlan) => (DEFAULT_TPID, vlan),
        tag => tag,
    };
    if vlans[0] == 0 && vlans[1] != 0 {
        return Err(fields.bad(
            "tci",
            "has an inner tag without an outer one: exchange them",
        ));
    }
    let ready_min = fields.optional("ready_min", number32)?.unwrap_or(1);
    if ready_min == 0 {
        return Err(fields.bad(
            "ready_min",
            "is 0; a start needs one client that is ready: give 1 or more",
        ));
    }
    Ok(PoolEmulation {
        port: fields.uint16("vport")?,
        tags: [tag(0), tag(1)],
        ready_min,
    })
}

/// Up to two numbers; those that are not given are 0.
fn two(fields: &Fields<'_>, name: &str, max: u64) -> Result<[u16; 2], FieldError> {
    if fields.is_missing(name) {
        return Ok([0; 2]);
    }
    let given = fields.uint_array(name, max, "number of a VLAN tag")?;
    if given.len() > 2 {
        return Err(fields.bad(
            name,
            format!("has {} entries; a frame has two tags at most", given.len()),
        ));
    }
    let mut numbers = [0; 2];
    for (one, given) in numbers.iter_mut().zip(given) {
        *one = given as u16;
    }
    Ok(numbers)
}

fn programs<'a>(fields: &Fields<'a>) -> Result<Vec<Program<'a>>, FieldError> {
    let values = fields.array("program_list")?.iter().enumerate();
    let program = |(i, value): (usize, &'a Value)| {
        let path = format!("program_list[{i}]");
        let fields = Fields::of(value, &path)?;
        let commands = format!("{path}.commands");
        let is_stream = fields.optional("stream", flag)?.unwrap_or(true);
        if let Some(http) = HttpFields::parse(&fields)? {
            return http_program(&fields, http, is_stream);
        }
        Ok(Program {
            commands: objects(&fields, "commands", &commands, ProgramCommand::parse)?,
            drawn: drawn(&fields, &commands)?,
            is_stream,
            addon: fields.optional("addon", Fields::string)?,
            http: None,
        })
    };
    values.map(program).collect()
}

/// A program that speaks HTTP has no commands; flows wait for what comes.
fn http_program<'a>(
    fields: &Fields<'a>,
    http: HttpFields,
    is_stream: bool,
) -> Result<Program<'a>, FieldError> {
    for name in ["commands", "addon"] {
        if !fields.is_missing(name) {
            return Err(fields.bad(
                name,
                "stands beside HTTP, which takes its place: leave it out",
            ));
        }
    }
    if !is_stream {
        return Err(fields.bad(
            "stream",
            "is false (UDP), and HTTP/1.1 runs over TCP: leave it out",
        ));
    }
    let waits = ProgramCommand::Rx {
        min_bytes: 1,
        clear: false,
    };
    Ok(Program {
        commands: vec![waits],
        drawn: Vec::new(),
        is_stream: true,
        addon: None,
        http: Some(http),
    })
}

fn template(fields: &Fields<'_>) -> Result<Template, FieldError> {
    Ok(Template {
        client: client(&fields.object("client_template")?)?,
        server: server(&fields.object("server_template")?)?,
        group: fields.optional("tg_id", number32)?.unwrap_or(0),
    })
}

fn client(fields: &Fields<'_>) -> Result<Client, FieldError> {
    let ip_gen = fields.object("ip_gen")?;
    let pool = |name| number32(&ip_gen.object(name)?, "index");
    Ok(Client {
        program: number32(fields, "program_index")?,
        client_pool: pool("dist_client")?,
        server_pool: pool("dist_server")?,
        port: port(fields)?,
        cps: fields.optional("cps", rate)?,
        limit: fields.optional("limit", number32)?,
        cont: flag_or_no(fields, "cont")?,
        core_base: fields.optional("core_base", Fields::byte)?.unwrap_or(0),
        tunables: Tunables::parse(fields, "glob_info")?,
        tls: fields.optional("tls", TlsClientFields::parse)?,
    })
}

fn port(fields: &Fields<'_>) -> Result<u16, FieldError> {
    match fields.uint16("port")? {
        0 => Err(fields.bad("port", "is 0; it must be 1 to 65535".to_owned())),
        port => Ok(port),
    }
}

fn rate(fields: &Fields<'_>, name: &str) -> Result<f64, FieldError> {
    let rate = fields.double(name)?;
    if rate > 0.0 {
        return Ok(rate);
    }
    Err(fields.bad(name, format!("is {rate}; it must be above 0")))
}

fn server(fields: &Fields<'_>) -> Result<Server, FieldError> {
    let values = fields.array("assoc")?.iter().enumerate();
    let association = |(i, value)| {
        let path = fields.full(&format!("assoc[{i}]"));
        association(&Fields::of(value, &path)?)
    };
    Ok(Server {
        program: number32(fields, "program_index")?,
        associations: values.map(association).collect::<Result<_, _>>()?,
        tunables: Tunables::parse(fields, "glob_info")?,
        tls: fields.optional("tls", TlsServerFields::parse)?,
    })
}

fn association(fields: &Fields<'_>) -> Result<Association, FieldError> {
    // A number for add-ons; the one that there is finds flows by numbers of its own.
    fields.optional("assoc_id", Fields::uint64)?;
    Ok(Association {
        port: port(fields)?,
        start: fields.optional("ip_start", address)?,
        end: fields.optional("ip_end", address)?,
        l7_map: fields.optional("l7_map", l7_map)?,
    })
}

fn l7_map(fields: &Fields<'_>, name: &str) -> Result<L7Map, FieldError> {
    if fields.value(name)?.is_array() {
        return Ok(L7Map {
            offsets: bytes(fields, name)?,
            masks: Vec::new(),
            values: None,
        });
    }
    let map = fields.object(name)?;
    Ok(L7Map {
        offsets: bytes(&map, "offset")?,
        masks: map.optional("mask", bytes)?.unwrap_or_default(),
        values: map.optional("value", bytes)?,
    })
}

fn draw_list<'a>(fields: &Fields<'a>) -> Result<DrawList<'a>, FieldError> {
    fields.array("values")?;
    Ok(DrawList {
        values: strings(fields, "values")?,
        is_random: fields.one_of("distribution", &["seq", "rand"])? == "rand",
    })
}

/// The draws of all commands, which were read before.
fn drawn(fields: &Fields<'_>, path: &str) -> Result<Vec<Drawn>, FieldError> {
    let mut drawn = Vec::new();
    for (command, value) in fields.array("commands")?.iter().enumerate() {
        if value.get("draw").is_none_or(Value::is_null) {
            continue;
        }
        let path = format!("{path}[{command}]");
        let fields = Fields::of(value, &path)?;
        fields.one_of("name", &["tx", "tx_msg"])?;
        let draw = |fields: &Fields<'_>| Ok((number(fields, "offset")?, number32(fields, "list")?));
        let draws = objects(&fields, "draw", &format!("{path}.draw"), draw)?;
        drawn.push(Drawn { command, draws });
    }
    Ok(drawn)
}
