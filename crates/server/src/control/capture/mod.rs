//! Commands that capture packets, and what all watching of frames has in common.

mod packets;
pub(in crate::control) mod service;
mod state;

use allosaur_api::commands::captures::{
    Capture, CaptureFilter, CaptureMode, CapturePortFilter, CaptureStarted, CaptureStatus,
    CaptureStopped, FetchedPackets, StartCapture, StartCapturePort,
};
use allosaur_api::commands::ports::PortParams;
use allosaur_api::{CaptureMethod, Empty, Error, Fields, Method};
use allosaur_engine::capture::{CaptureSettings, Overflow};

use self::packets::{fetched, seconds};
pub(in crate::control) use self::state::Captures;
use crate::control::awaited::{Awaited, Awaits};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::domain::{Domain, Others, Scope};
use crate::control::reply::{Reply, reply};
use crate::rx_taps::filter::Filter;
use crate::rx_taps::{
    CAPTURE_MEMORY_MAX, CaptureAnswer, CaptureRequest, CaptureState, Endpoint, Format,
    SocketAnswer, SocketRequest,
};

/// Limits that are written twice, because `allosaur_api` knows nothing of this crate.
const _: () = {
    use allosaur_api::limits;
    assert!(limits::CAPTURES_MAX == crate::rx_taps::CAPTURES_MAX);
    assert!(limits::CAPTURE_PACKETS_MAX == allosaur_engine::capture::CAPTURE_PACKETS_MAX);
};

impl Awaits for Captures {
    fn awaited(&mut self) -> Option<&mut Awaited<Captures>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Captures {
    fn call(
        &mut self,
        control: &mut Core,
        _others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        let Method::Capture(method) = method else {
            return None;
        };
        Some(match method {
            CaptureMethod::Service => self.service(control, fields),
            CaptureMethod::SetRxFeature => self.set_rx_feature(control, fields),
            CaptureMethod::RxQueuePackets => self.rx_queue_packets(control, fields),
            CaptureMethod::Capture => self.capture(control, fields, view),
            CaptureMethod::StartCapturePort => self.start_capture_port(control, fields, view),
            CaptureMethod::StopCapturePort => self.stop_capture_port(control, fields),
            CaptureMethod::SetCapturePortFilter => self.set_capture_port_filter(control, fields),
        })
    }

    fn halt(&mut self, control: &mut Core, scope: Scope, session: u32, _view: &View<'_>) {
        let ports = match scope {
            Scope::Port(port) => vec![port],
            Scope::Mode => control.stateful_ports(),
        };
        for port in ports {
            control.end_service_of(port, session);
        }
    }
}

impl Captures {
    pub(super) fn capture(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match Capture::parse(fields)? {
            Capture::Start(params) => self.start_capture(control, &params, view),
            Capture::Stop { capture } => self.awaited.ask(
                control,
                CaptureRequest::Stop(capture),
                move |_, _, _, answer, _| match answer {
                    Some(CaptureAnswer::Stopped { pending, endpoint }) => reply(&CaptureStopped {
                        pkt_count: pending,
                        endpoint,
                    }),
                    _ => Err(unknown_capture(capture)),
                },
            ),
            Capture::Fetch {
                capture,
                packets_max,
                snap_bytes,
            } => self.fetch_capture(control, capture, packets_max, snap_bytes),
            Capture::Remove { capture } => self.awaited.ask(
                control,
                CaptureRequest::Remove(capture),
                move |_, _, _, answer, _| match answer {
                    Some(CaptureAnswer::Done) => reply(&Empty {}),
                    _ => Err(unknown_capture(capture)),
                },
            ),
            Capture::Status => self.awaited.ask(
                control,
                CaptureRequest::List,
                |_, _, _, answer, _| match answer {
                    Some(CaptureAnswer::Captures(states)) => {
                        reply(&states.iter().map(status).collect::<Vec<_>>())
                    }
                    _ => reply(&Vec::<CaptureStatus>::new()),
                },
            ),
        }
    }

    fn start_capture(
        &mut self,
        control: &mut Core,
        params: &StartCapture,
        view: &View<'_>,
    ) -> Reply {
        if params.transmit_ports.is_empty() && params.receive_ports.is_empty() {
            return Err(Error::execution(
                "fields 'tx' and 'rx' name no port: name those whose packets to capture",
            ));
        }
        let settings = CaptureSettings {
            transmit_ports: self.port_mask(control, &params.transmit_ports)?,
            receive_ports: self.port_mask(control, &params.receive_ports)?,
            packets_max: params.limit,
            overflow: match params.cyclic {
                true => Overflow::KeepLast,
                false => Overflow::KeepFirst,
            },
            snap_bytes: params.snap_bytes,
            memory_max: CAPTURE_MEMORY_MAX,
        };
        let filter = filter(&params.filter, "filter")?;
        let endpoint = match params.endpoint.as_str() {
            "" => None,
            text => {
                let endpoint = endpoint(text);
                let sink = view.endpoints.open_endpoint(&endpoint, params.snap_bytes);
                let sink = sink.map_err(|problem| Error::execution(format!("endpoint: {problem}")));
                Some((endpoint, sink?))
            }
        };
        let request = CaptureRequest::Start {
            settings,
            filter,
            endpoint,
        };
        let asked_at = view.now_ns;
        self.awaited
            .ask(control, request, move |_, _, _, answer, _| match answer {
                Some(CaptureAnswer::Started { capture }) => reply(&CaptureStarted {
                    capture_id: capture,
                    start_ts: seconds(asked_at),
                }),
                _ => Err(Error::execution(format!(
                    "there are {} captures, which is the most: remove one first",
                    crate::rx_taps::CAPTURES_MAX
                ))),
            })
    }

    fn port_mask(&self, control: &Core, ports: &[u8]) -> Result<u64, Error> {
        let mut mask = 0;
        for &port in ports {
            control.port(port)?;
            mask |= 1 << port;
        }
        Ok(mask)
    }

    pub(super) fn start_capture_port(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<StartCapturePort>()?;
        let port = params.port;
        control.port(port)?;
        let filter = filter(&params.filter, "bpf_filter")?;
        let wire = view.endpoints.open_wire(&params.endpoint);
        let wire = wire.map_err(|problem| Error::execution(format!("endpoint: {problem}")))?;
        let request = SocketRequest::Open {
            port,
            endpoint: params.endpoint,
            filter,
            wire,
        };
        self.awaited
            .ask(control, request, move |_, _, _, answer, _| match answer {
                Some(SocketAnswer::Joined { endpoint }) => Err(Error::execution(format!(
                    "port {port} is joined to {endpoint} already: stop_capture_port first"
                ))),
                _ => reply(&Empty {}),
            })
    }

    pub(super) fn stop_capture_port(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let PortParams { port } = fields.read()?;
        control.port(port)?;
        control.tell(SocketRequest::Close(port));
        reply(&Empty {})
    }

    pub(super) fn set_capture_port_filter(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
    ) -> Reply {
        let params = fields.read::<CapturePortFilter>()?;
        let port = params.port;
        control.port(port)?;
        let filter = filter(&params.filter, "bpf_filter")?;
        let request = SocketRequest::SetFilter { port, filter };
        self.awaited
            .ask(control, request, move |_, _, _, answer, _| match answer {
                Some(SocketAnswer::Unknown) => Err(Error::execution(format!(
                    "port {port} is joined to no socket: start_capture_port first"
                ))),
                _ => reply(&Empty {}),
            })
    }

    fn fetch_capture(
        &mut self,
        control: &mut Core,
        capture: u32,
        packets_max: u32,
        snap_bytes: usize,
    ) -> Reply {
        let packets_max = (packets_max as usize).min(allosaur_api::limits::FETCHED_PACKETS_MAX);
        let request = CaptureRequest::Fetch {
            capture,
            packets_max,
        };
        self.awaited
            .ask(control, request, move |_, _, _, answer, _| match answer {
                Some(CaptureAnswer::Packets {
                    packets,
                    pending,
                    started_at,
                }) => reply(&FetchedPackets {
                    pending,
                    start_ts: seconds(started_at),
                    pkts: fetched(&packets, snap_bytes),
                }),
                _ => Err(unknown_capture(capture)),
            })
    }
}

fn status(state: &CaptureState) -> CaptureStatus {
    let settings = &state.settings;
    let endpoint = state.endpoint.as_ref();
    CaptureStatus {
        id: state.number,
        state: if state.is_active { "ACTIVE" } else { "STOPPED" },
        matched: state.matched,
        fetched: state.fetched,
        filter: CaptureFilter {
            tx: settings.transmit_ports,
            rx: settings.receive_ports,
            bpf: state.filter.clone(),
        },
        count: state.count,
        bytes: state.bytes,
        lost: state.lost,
        limit: settings.packets_max,
        snaplen: settings.snap_bytes,
        mode: match settings.overflow {
            Overflow::KeepFirst => CaptureMode::Fixed,
            Overflow::KeepLast => CaptureMode::Cyclic,
        },
        endpoint: endpoint.map(|endpoint| endpoint.text.clone()),
        format: endpoint.map(|endpoint| endpoint.format.name()),
    }
}

/// Its form follows from its end, which for a socket is no part of the address.
fn endpoint(given: &str) -> Endpoint {
    let (text, form) = match given.split_once('?') {
        Some((text, form)) if !given.starts_with("file:") => (text, form),
        _ => (given, given.rsplit('.').next().unwrap_or_default()),
    };
    Endpoint {
        text: text.to_owned(),
        format: match form.to_ascii_lowercase().as_str() {
            "pcap" | "cap" => Format::Pcap,
            _ => Format::PcapNg,
        },
    }
}

fn filter(text: &str, field: &str) -> Result<Filter, Error> {
    Filter::compile(text).map_err(|error| Error::bad_params(format!("field '{field}': {error}")))
}

fn unknown_capture(capture: u32) -> Error {
    Error::execution(format!(
        "capture ID {capture} does not exist: the command 'status' names those that do"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_endpoint_says_its_form() {
        for (given, text, format) in [
            ("file:///tmp/a.pcap", "file:///tmp/a.pcap", Format::Pcap),
            ("file:///tmp/a?b.PCAP", "file:///tmp/a?b.PCAP", Format::Pcap),
            ("file:///tmp/a", "file:///tmp/a", Format::PcapNg),
            (
                "tcp://10.0.0.1:5001?pcap",
                "tcp://10.0.0.1:5001",
                Format::Pcap,
            ),
            (
                "tcp://10.0.0.1:5001?pcapng",
                "tcp://10.0.0.1:5001",
                Format::PcapNg,
            ),
            ("ipc:///tmp/x", "ipc:///tmp/x", Format::PcapNg),
        ] {
            let found = endpoint(given);
            assert_eq!(
                (found.text.as_str(), found.format),
                (text, format),
                "{given}"
            );
        }
    }
}
