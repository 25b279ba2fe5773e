//! The words of packet scripts: segments and settings as text, both ways.
//!
//! Numbers are relative: our SYN and theirs have number 0, and so has the clock's first
//! millisecond. The real ones begin just before they go round, so every script passes there.

use allosaur_engine::tcp::{CongestionAlgorithm, Ecn, Segment, Seq, Tunables};
use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_packet::transport::tcp_options::{SackBlock, SackBlocks};

/// What our numbers begin with, theirs, and the clock.
pub(super) const OURS: u32 = u32::MAX - 1_499;
pub(super) const THEIRS: u32 = u32::MAX - 499;
pub(super) const CLOCK_MS: u32 = u32::MAX - 149;

/// Flags as letters, in the order in which they are written.
const LETTERS: [(char, TcpFlags); 7] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('.', TcpFlags::ACK),
];

/// A segment as a script tells it; what is `None` is not said.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) segment: Segment,
    pub(super) has_ack: bool,
    pub(super) has_window: bool,
    pub(super) has_options: bool,
}

/// Reads `S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK> ce`.
pub(super) fn parse_segment(text: &str, is_ours: bool) -> Result<Told, String> {
    let (seq_base, ack_base) = if is_ours {
        (OURS, THEIRS)
    } else {
        (THEIRS, OURS)
    };
    let mut told = Told::default();
    let (text, options) = cut_options(text)?;
    let mut words = text.split_whitespace();
    let letters = words.next().ok_or("a segment needs flags")?;
    told.segment.flags = parse_flags(letters)?;
    let range = words
        .next()
        .ok_or("a segment needs its numbers: FROM:TO(BYTES)")?;
    let (from, len) = parse_range(range)?;
    told.segment.seq = Seq(from.wrapping_add(seq_base));
    told.segment.len = len;
    while let Some(word) = words.next() {
        let mut number = || -> Result<u32, String> {
            let text = words.next().ok_or(format!("`{word}` needs a number"))?;
            parse(text)
        };
        match word {
            "ack" => {
                told.has_ack = true;
                told.segment.ack = Seq(number()?.wrapping_add(ack_base));
            }
            "win" => {
                told.has_window = true;
                told.segment.window = number()? as u16;
            }
            "ce" | "ect" => told.segment.ecn = true,
            other => return Err(format!("`{other}` is no word of a segment")),
        }
    }
    if let Some(options) = options {
        told.has_options = true;
        for option in options.split(',').filter(|option| !option.is_empty()) {
            parse_option(&mut told.segment, option.trim(), is_ours)?;
        }
    }
    Ok(told)
}

/// Cuts `<...>` out; what follows it belongs to the rest.
fn cut_options(text: &str) -> Result<(String, Option<&str>), String> {
    let Some((before, after)) = text.split_once('<') else {
        return Ok((text.to_owned(), None));
    };
    let (options, after) = after.split_once('>').ok_or("`<` without `>`")?;
    Ok((format!("{before} {after}"), Some(options)))
}

fn parse_flags(letters: &str) -> Result<TcpFlags, String> {
    let mut flags = TcpFlags::NONE;
    for letter in letters.chars().filter(|letter| *letter != '-') {
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        flags |= known.ok_or(format!("`{letter}` is no flag"))?.1;
    }
    Ok(flags)
}

/// `1:1001(1000)`. Where the two do not agree the script is wrong.
fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let (from, rest) = text
        .split_once(':')
        .ok_or(format!("`{text}` is no range"))?;
    let (to, len) = rest
        .split_once('(')
        .ok_or(format!("`{text}` has no length"))?;
    let len = len.strip_suffix(')').ok_or("`(` without `)`")?;
    let (from, to, len): (u32, u32, u32) = (parse(from)?, parse(to)?, parse(len)?);
    if to.wrapping_sub(from) != len {
        return Err(format!("`{text}` is not {len} bytes long"));
    }
    Ok((from, len))
}

fn parse_option(segment: &mut Segment, text: &str, is_ours: bool) -> Result<(), String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let numbers: Vec<&str> = words.collect();
    match (name, numbers.as_slice()) {
        ("mss", [bytes]) => segment.mss = Some(parse(bytes)?),
        ("ws", [shift]) => segment.window_scale = Some(parse(shift)?),
        ("sackOK", []) => segment.sack_permitted = true,
        ("TS", [value, echo]) => {
            let (value, echo): (u32, u32) = (parse(value)?, parse(echo)?);
            // Only our clock is relative; 0 as an echo is nothing.
            segment.timestamps = Some(if is_ours {
                (value.wrapping_add(CLOCK_MS), echo)
            } else {
                (value, echo.wrapping_add(CLOCK_MS))
            });
        }
        ("sack", ranges) => {
            let base = if is_ours { THEIRS } else { OURS };
            let mut blocks = Vec::new();
            for range in ranges {
                let (left, right) = range.split_once(':').ok_or("a block is LEFT:RIGHT")?;
                let (left, right): (u32, u32) = (parse(left)?, parse(right)?);
                blocks.push(SackBlock {
                    left: left.wrapping_add(base),
                    right: right.wrapping_add(base),
                });
            }
            segment.sack = SackBlocks::new(&blocks);
        }
        _ => return Err(format!("`{text}` is no option")),
    }
    Ok(())
}

/// A segment of ours as a script would write it.
pub(super) fn write_segment(segment: &Segment) -> String {
    let mut text: String = LETTERS
        .iter()
        .filter(|(_, flag)| segment.has(*flag))
        .map(|(letter, _)| *letter)
        .collect();
    let from = segment.seq.0.wrapping_sub(OURS);
    let to = from.wrapping_add(segment.len);
    text += &format!(" {from}:{to}({})", segment.len);
    if segment.has(TcpFlags::ACK) {
        text += &format!(" ack {}", segment.ack.0.wrapping_sub(THEIRS));
    }
    text += &format!(" win {}", segment.window);
    let options = write_options(segment);
    if !options.is_empty() {
        text += &format!(" <{options}>");
    }
    if segment.ecn {
        text += " ect";
    }
    text
}

/// The options, in one order.
pub(super) fn write_options(segment: &Segment) -> String {
    let mut options = Vec::new();
    options.extend(segment.mss.map(|bytes| format!("mss {bytes}")));
    options.extend(segment.sack_permitted.then(|| "sackOK".to_owned()));
    options.extend(segment.timestamps.map(|(value, echo)| {
        let value = value.wrapping_sub(CLOCK_MS);
        format!("TS {value} {echo}")
    }));
    options.extend(segment.window_scale.map(|shift| format!("ws {shift}")));
    if !segment.sack.as_slice().is_empty() {
        let blocks = segment.sack.as_slice().iter().map(|block| {
            let (left, right) = (
                block.left.wrapping_sub(THEIRS),
                block.right.wrapping_sub(THEIRS),
            );
            format!(" {left}:{right}")
        });
        options.push(format!("sack{}", blocks.collect::<String>()));
    }
    options.join(",")
}

/// `NAME=VALUE` of a `set` line.
pub(super) fn set(tunables: &mut Tunables, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').ok_or("set NAME=VALUE")?;
    match name {
        "mss" => tunables.mss_bytes = parse(value)?,
        "initial_window" => tunables.initial_window_segments = parse(value)?,
        "receive_buffer" => tunables.receive_buffer_bytes = parse(value)?,
        "transmit_buffer" => tunables.transmit_buffer_bytes = parse(value)?,
        "no_delay" => tunables.no_delay = parse::<u8>(value)? == 1,
        "always_push" => tunables.always_push = parse::<u8>(value)? == 1,
        "acknowledge" => tunables.acknowledge_bytes = parse(value)?,
        "duplicates" => tunables.duplicates_max = parse(value)?,
        "rfc1323" => tunables.rfc1323 = parse::<u8>(value)? == 1,
        "sack" => tunables.sack = parse::<u8>(value)? == 1,
        "reassembly" => tunables.reassembly_pieces_max = parse(value)?,
        "connect_timeout" => tunables.connect_timeout_ms = parse_ms(value)?,
        "keepalive_idle" => tunables.keepalive_idle_ms = parse_ms(value)?,
        "keepalive_interval" => tunables.keepalive_interval_ms = parse_ms(value)?,
        "keepalive_probes" => tunables.keepalive_probes_max = parse(value)?,
        "delayed_ack" => tunables.delayed_ack_ms = parse_ms(value)?,
        "time_wait" => tunables.time_wait_ms = parse_ms(value)?,
        "congestion" => {
            tunables.congestion = match value {
                "newreno" => CongestionAlgorithm::NewReno,
                "cubic" => CongestionAlgorithm::Cubic,
                _ => return Err(format!("`{value}` is no congestion control")),
            }
        }
        "ecn" => {
            tunables.ecn = match value {
                "off" => Ecn::Off,
                "active" => Ecn::Active,
                "passive" => Ecn::Passive,
                _ => return Err(format!("`{value}` is no kind of ECN")),
            }
        }
        _ => return Err(format!("`{name}` cannot be set")),
    }
    Ok(())
}

/// `200ms`, `3s`.
pub(super) fn parse_ms(text: &str) -> Result<u32, String> {
    if let Some(number) = text.strip_suffix("ms") {
        return parse(number);
    }
    let number = text
        .strip_suffix('s')
        .ok_or(format!("`{text}`: say ms or s"))?;
    Ok(parse::<u32>(number)? * 1_000)
}

pub(super) fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is no such number"))
}
