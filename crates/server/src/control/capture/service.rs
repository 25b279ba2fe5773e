//! Commands about what a port receives: service mode and the receive queue.

use allosaur_api::commands::ports::{
    AnnounceFeature, Feature, PortParams, QueueFeature, ReceiveFeatures, SocketFeature,
};
use allosaur_api::commands::service::{RxFeature, RxQueuePackets, Service, SetRxFeature};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::host::ANNOUNCE_INTERVAL;
use allosaur_engine::time::SECOND;

use crate::control::capture::fetched;
use crate::control::ports::layers::answers_echo;
use crate::control::{Control, Reply, reply};
use crate::rx_taps::{
    HostRequest, PortRequest, PortState, RxQueueAnswer, RxQueueRequest, ServiceMask, ServiceMode,
};

impl Control {
    pub(in crate::control) fn service(&mut self, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<Service>()?;
        let mode = match (params.filtered, params.enabled) {
            (true, _) => ServiceMode::Filtered(ServiceMask(params.mask)),
            (false, true) => ServiceMode::On,
            (false, false) => ServiceMode::Off,
        };
        self.set_service(params.port, mode)?;
        reply(&Empty {})
    }

    pub(in crate::control) fn set_service(
        &mut self,
        id: u8,
        mode: ServiceMode,
    ) -> Result<(), Error> {
        let port = self.port_mut(id)?;
        let answers_echo = answers_echo(port.is_stateful(), mode);
        let settings = port.layers.host(port.config.hw_mac, answers_echo);
        port.service = mode;
        port.service_session = port.owner.as_ref().map(|owner| owner.session);
        self.tell(PortRequest::SetService { port: id, mode });
        self.tell(HostRequest::Set { port: id, settings });
        Ok(())
    }

    /// Ends the service mode that a session switched on.
    pub(in crate::control) fn end_service_of(&mut self, id: u8, session: u32) {
        let port = &self.ports[usize::from(id)];
        if port.service == ServiceMode::Off || port.service_session != Some(session) {
            return;
        }
        let ended = self.set_service(id, ServiceMode::Off);
        ended.expect("the port is there");
    }

    pub(in crate::control) fn set_rx_feature(&mut self, fields: &Fields<'_>) -> Reply {
        let params = SetRxFeature::parse(fields)?;
        let port = self.port(params.port)?;
        let is_queue = params.feature == RxFeature::Queue;
        if params.enabled && !is_queue {
            return Err(Error::execution(format!(
                "the receive feature '{}' is not supported: leave 'enabled' false",
                params.feature.name()
            )));
        }
        if params.enabled && !port.service.is_on() {
            return Err(Error::execution(format!(
                "a receive queue needs service mode on port {}: switch it on with 'service'",
                params.port
            )));
        }
        if is_queue {
            let request = RxQueueRequest::Set {
                port: params.port,
                packets_max: params.size,
            };
            self.tell(request);
        }
        reply(&Empty {})
    }

    pub(in crate::control) fn rx_queue_packets(&mut self, fields: &Fields<'_>) -> Reply {
        let PortParams { port: id } = fields.read()?;
        if !self.port(id)?.service.is_on() {
            return Err(Error::execution(format!(
                "port {id} is not in service mode, which a receive queue needs: switch it on with \
                 'service'"
            )));
        }
        self.ask(RxQueueRequest::Take(id), move |_, answer, _| match answer {
            Some(RxQueueAnswer::Packets(packets)) => reply(&RxQueuePackets {
                pkts: fetched(&packets, 0),
            }),
            _ => Err(Error::execution(format!(
                "port {id} has no receive queue: switch it on with 'set_rx_feature'"
            ))),
        })
    }
}

/// What watches a port, as `get_port_status` shows it.
pub(in crate::control) fn receive_features(state: &PortState, announces: bool) -> ReceiveFeatures {
    let feature = |is_active| Feature { is_active };
    ReceiveFeatures {
        latency: feature(false),
        queue: QueueFeature {
            is_active: state.queue.is_some(),
            size: state.queue.map(|(size, _)| size),
            count: state.queue.map(|(_, count)| count),
        },
        stack: feature(true),
        grat_arp: AnnounceFeature {
            is_active: announces,
            interval_sec: announces.then_some(ANNOUNCE_INTERVAL / SECOND),
        },
        capture_port: match &state.wire {
            None => SocketFeature::default(),
            Some((endpoint, filter)) => SocketFeature {
                is_active: true,
                endpoint: Some(endpoint.clone()),
                bpf_filter: Some(filter.clone()),
                socket_open: Some(true),
            },
        },
        capwap_proxy: feature(false),
    }
}
