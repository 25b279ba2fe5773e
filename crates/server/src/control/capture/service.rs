//! Commands about what a port receives: service mode and the receive queue.

use allosaur_api::commands::ports::{
    AnnounceFeature, Feature, PortParams, QueueFeature, ReceiveFeatures, SocketFeature,
};
use allosaur_api::commands::service::{RxFeature, RxQueuePackets, Service, SetRxFeature};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::host::ANNOUNCE_INTERVAL;
use allosaur_engine::time::SECOND;

use super::packets::fetched;
use super::state::Captures;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};
use crate::rx_taps::{PortState, RxQueueAnswer, RxQueueRequest, ServiceMask, ServiceMode};

impl Captures {
    pub(in crate::control) fn service(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<Service>()?;
        let mode = match (params.filtered, params.enabled) {
            (true, _) => ServiceMode::Filtered(ServiceMask(params.mask)),
            (false, true) => ServiceMode::On,
            (false, false) => ServiceMode::Off,
        };
        control.set_service(params.port, mode)?;
        reply(&Empty {})
    }

    pub(in crate::control) fn set_rx_feature(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
    ) -> Reply {
        let params = SetRxFeature::parse(fields)?;
        let port = control.port(params.port)?;
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
            control.tell(request);
        }
        reply(&Empty {})
    }

    pub(in crate::control) fn rx_queue_packets(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
    ) -> Reply {
        let PortParams { port: id } = fields.read()?;
        if !control.port(id)?.service.is_on() {
            return Err(Error::execution(format!(
                "port {id} is not in service mode, which a receive queue needs: switch it on with \
                 'service'"
            )));
        }
        self.awaited.ask(
            control,
            RxQueueRequest::Take(id),
            move |_, _, _, answer, _| match answer {
                Some(RxQueueAnswer::Packets(packets)) => reply(&RxQueuePackets {
                    pkts: fetched(&packets, 0),
                }),
                _ => Err(Error::execution(format!(
                    "port {id} has no receive queue: switch it on with 'set_rx_feature'"
                ))),
            },
        )
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
