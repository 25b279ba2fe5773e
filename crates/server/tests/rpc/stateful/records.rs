//! A record of a flow, as a data thread makes it.

use allosaur_engine::stateful::FlowRecord;
use allosaur_engine::tcp::{Info, Seq, TcpState};
use allosaur_engine::template::{Side, TemplateIndex};
use allosaur_engine::time::MILLISECOND;

pub(crate) fn record() -> FlowRecord {
    let address = |text: &str| text.parse().expect("an address and a port");
    FlowRecord {
        local: address("16.0.0.1:1024"),
        remote: address("48.0.0.1:80"),
        side: Side::Client,
        template: TemplateIndex(0),
        duration: 120 * MILLISECOND,
        heard_ago_ms: 3,
        tcp: Info {
            state: TcpState::Established,
            timestamps: true,
            sack: false,
            ecn: false,
            window_scales: Some((1, 2)),
            timeout_ms: 200,
            round_trip_us: 1500,
            round_trip_variation_us: 10,
            threshold_bytes: None,
            congestion_window_bytes: 14_600,
            snd_wnd_bytes: 32_768,
            rcv_wnd_bytes: 32_768,
            snd_nxt: Seq(100),
            rcv_nxt: Seq(200),
            send_mss_bytes: 1460,
            receive_mss_bytes: 1460,
            last_received_ms: 7,
            retransmitted_segments: 0,
            out_of_order_segments: 0,
            zero_windows: 0,
        },
    }
}
