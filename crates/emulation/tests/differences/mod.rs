//! What differs on purpose from the recorded conversations: in which replies, what of them, and why.
//! All else of such a reply is equal, and what is said to differ does, so that nothing stays here that
//! is not true any more.

use serde_json::{Value, json};

/// What differs of a reply.
pub(crate) enum What {
    /// These fields of the result, as pointers into it.
    Fields(&'static [&'static str]),
    /// The order of the list that the result is.
    Order,
    /// Our error goes on behind theirs.
    Longer,
    /// Our result is this JSON.
    Result(&'static str),
    /// Our error begins so.
    Error(&'static str),
}

use What::{Error, Fields, Longer, Order, Result};

/// Conversations, the numbers of their requests, what differs, and why. Several rows may be of a reply.
pub(crate) const DIFFERENCES: &[(&str, &[u64], What, &str)] = &[
    (
        "03_ctx_add_remove",
        &[66],
        Error("could not create plugin 'igmp', error: json: cannot unmarshal string"),
        "a wrong init JSON of igmp is refused, not ignored",
    ),
    (
        "03_ctx_add_remove",
        &[67],
        Fields(&["0/plug_names"]),
        "the same",
    ),
    (
        "21_icmp",
        &[68],
        Fields(&[
            "parser/errIcmpv4Cse",
            "parser/errParser",
            "parser/icmpBytes",
            "parser/icmpPkts",
            "veth/RxBytes",
            "veth/RxPkts",
            "veth/TxBytes",
            "veth/TxPkts",
        ]),
        "echo requests that were not recorded",
    ),
    (
        "21_icmp",
        &[69, 70, 72],
        Fields(&[
            "icmp/pktRxErrMulticastB",
            "icmp/pktRxIcmpQuery",
            "icmp/pktRxNoClientUnhandled",
            "icmp/pktTxIcmpResponse",
        ]),
        "the same",
    ),
    (
        "23_ipv6",
        &[158, 159],
        Fields(&["pingv6/pktRxIcmpResponse"]),
        "their peer's last echo reply was late, and not counted",
    ),
    (
        "27_dns",
        &[16, 19],
        Order,
        "domains come by name, there in any order",
    ),
    (
        "28_mdns",
        &[29],
        Result("true"),
        "a list of nothing is true, as every other reply of nothing",
    ),
    (
        "31_transport",
        &[9, 90, 91],
        Fields(&[
            "ft/ft_lookup_foundv4",
            "ft/ft_lookupv4",
            "tcp/already_closed",
            "tcp/preddat",
            "tcp/rcvackpack",
            "tcp/rcvoopackdrop",
            "tcp/rcvpack",
            "tcp/rttupdated",
            "tcp/sndacks",
            "tcp/sndpack",
            "tcp/sndtotal",
        ]),
        "how the kernel's TCP cut and acknowledged its echoes",
    ),
    (
        "31_transport",
        &[93],
        Fields(&["ft/ft_lookup_foundv4", "ft/ft_lookupv4"]),
        "the same",
    ),
    (
        "31_transport",
        &[10],
        Fields(&[
            "ft/ft_activev4",
            "ft/ft_lookup_foundv4",
            "ft/ft_lookupv4",
            "ft/ft_removev4",
            "ft/src_port_active",
            "ft/src_port_free",
            "tcp/preddat",
            "tcp/rcvackbyte",
            "tcp/rcvackbyte_of",
            "tcp/rcvackpack",
            "tcp/rcvbyte",
            "tcp/rcvpack",
            "tcp/rttupdated",
            "tcp/segstimed",
            "tcp/sndacks",
            "tcp/sndbyte_ok",
            "tcp/sndctrl",
            "tcp/sndpack",
            "tcp/sndtotal",
        ]),
        "an initial window of two segments, there of two bytes: it stood still",
    ),
    (
        "31_transport",
        &[12, 104, 105, 107],
        Fields(&[
            "transe/pktClient",
            "transe/pktRxEvent",
            "transe/pktTxEvent",
            "transe/rxByteTotal",
            "transe/txByteTotal",
        ]),
        "the same",
    ),
    (
        "31_transport",
        &[13],
        Fields(&["0/dgw/rmac"]),
        "the kernel's MAC address",
    ),
    (
        "31_transport",
        &[77],
        Error("could not create plugin 'transport', error: json: unknown field \"unknown\""),
        "a key that nobody knows is refused, not ignored",
    ),
    (
        "31_transport",
        &[78],
        Error("Error there is no valid plugin transport for this client"),
        "the same",
    ),
    (
        "35_appsim",
        &[67],
        Error("could not create plugin 'appsim', error: json: unknown field \"extra\" in data.a"),
        "the same",
    ),
    (
        "35_appsim",
        &[68],
        Error("Error there is no valid plugin appsim for this client"),
        "the same",
    ),
    (
        "35_appsim",
        &[113],
        Error("could not create plugin 'appsim', error: json: unknown field \"extra\""),
        "the same",
    ),
    (
        "35_appsim",
        &[73],
        Result("true"),
        "programs are compared with how many programs there are, there with buffers",
    ),
    (
        "35_appsim",
        &[89],
        Error("could not create plugin 'appsim', error: buf_list.0 is not base64"),
        "the same; and what is wrong is the buffer",
    ),
    (
        "32_ipfix_emu_udp",
        &[20],
        Fields(&[
            "IPFIX emu-udp exporter/apiWrites",
            "IPFIX emu-udp exporter/txBytes",
            "IPFIX emu-udp exporter/txDataRecords",
            "IPFIX emu-udp exporter/txTempRecords",
            "ipfix/pktDataSent",
            "ipfix/pktTempSent",
            "ipfix/recordsDataSent",
            "ipfix/recordsTempSent",
        ]),
        "timers are exact, there a tick late: a template and data more",
    ),
    (
        "32_ipfix_emu_udp",
        &[105],
        Longer,
        "the error of a key that nobody knows says which there are",
    ),
    ("33_ipfix_kernel", &[50], Longer, "the same"),
    (
        "33_ipfix_kernel",
        &[11, 13],
        Fields(&[
            "IPFIX udp exporter/apiWrites",
            "IPFIX udp exporter/txBytes",
            "IPFIX udp exporter/txDataRecords",
            "IPFIX udp exporter/txPackets",
            "IPFIX udp exporter/txTempRecords",
            "IPFIX udp exporter/txWrites",
            "IPFIX udp exporter/writeChanLen",
            "IPFIX udp exporter/writeChanPeakLen",
            "ipfix/pktDataSent",
            "ipfix/pktTempSent",
            "ipfix/recordsDataSent",
            "ipfix/recordsTempSent",
        ]),
        "timers are exact, there a tick late; and no server here sends",
    ),
    (
        "33_ipfix_kernel",
        &[16, 18, 21, 23],
        Fields(&[
            "IPFIX file exporter/apiWrites",
            "IPFIX file exporter/cmdChanLen",
            "IPFIX file exporter/cmdChanPeakLen",
            "IPFIX file exporter/cmdWrite",
            "IPFIX file exporter/evFileCreated",
            "IPFIX file exporter/fileRotates",
            "IPFIX file exporter/maxIntervalTimerExpired",
            "IPFIX file exporter/txBytes",
            "IPFIX file exporter/txDataRecords",
            "IPFIX file exporter/txTempRecords",
            "IPFIX file exporter/txWrites",
            "ipfix/pktDataSent",
            "ipfix/pktTempSent",
            "ipfix/recordsDataSent",
            "ipfix/recordsTempSent",
        ]),
        "the same; and no server here writes files",
    ),
    (
        "33_ipfix_kernel",
        &[19],
        Fields(&["files"]),
        "no server here posts files",
    ),
    (
        "33_ipfix_kernel",
        &[21, 23],
        Fields(&[
            "IPFIX http exporter/apiWrites",
            "IPFIX http exporter/bytesUploaded",
            "IPFIX http exporter/dataRecordsUploaded",
            "IPFIX http exporter/filesExport",
            "IPFIX http exporter/httpStatus2xx",
            "IPFIX http exporter/tempRecordsUploaded",
            "IPFIX http exporter/txDataRecords",
            "IPFIX http exporter/txTempRecords",
        ]),
        "no server here posts files",
    ),
    (
        "33_ipfix_kernel",
        &[24],
        Result("true"),
        "packets go by clients' own stacks beside files and the server's sockets",
    ),
    (
        "33_ipfix_kernel",
        &[25],
        Error("could not create plugin 'ipfix', error: json: unknown field \"unknown\""),
        "a key that nobody knows is refused, in the parameters of an exporter, too",
    ),
    (
        "40_profile_plugs_emu",
        &[24],
        Fields(&["parser/errParser", "veth/TxBytes"]),
        "a RELEASE says which address it means: 28 bytes more, of each of 15 clients; and what \
         comes for clients that are gone is no error of the parser",
    ),
    (
        "40_profile_plugs_emu_2ns_600c",
        &[24],
        Fields(&["veth/TxBytes", "veth/TxPkts"]),
        "a router solicitation left a moment later here",
    ),
    (
        "40_profile_plugs_emu_2ns_600c",
        &[45],
        Fields(&["parser/errParser", "veth/TxBytes", "veth/TxPkts"]),
        "the same, and as with 15 clients",
    ),
    (
        "40_profile_plugs_emu_2ns_600c",
        &[41],
        Result(r#"{"data": null, "empty": true, "stopped": false}"#),
        "clients left their groups 11 ms ago, there that takes one more tick of 10 ms",
    ),
    (
        "40_profile_plugs_emu_2ns_600c",
        &[42],
        Result(r#"{"data": null, "empty": false, "stopped": true}"#),
        "the same",
    ),
    (
        "40_profile_simple_appsim",
        &[13, 24],
        Fields(&["veth/TxBytes", "veth/TxPkts"]),
        "flows begin once the gateway answered, there a second later",
    ),
    (
        "40_profile_simple_ipfix",
        &[13, 24],
        Fields(&["veth/TxBytes", "veth/TxPkts"]),
        "packets leave once the gateway answered, there a second later",
    ),
    (
        "40_profile_simple_dhcp",
        &[23],
        Fields(&["veth/TxBytes"]),
        "a RELEASE says which server it means: six bytes more",
    ),
];

/// What newer clients call, and the reference does not have.
const NEWER: &str = "ctx_stop_autotriggers";

/// Makes a reply and the recorded one equal where they may differ; says what is wrong with that.
pub(crate) fn adjust(
    (name, number): (&str, u64),
    method: &Value,
    ours: &mut Value,
    theirs: &mut Value,
) -> Option<String> {
    let is_of_it =
        |(of, numbers, ..): &&(&str, &[u64], What, &str)| *of == name && numbers.contains(&number);
    let rows = DIFFERENCES.iter().filter(is_of_it);
    let mut rows = rows.map(|(_, _, what, _)| what).peekable();
    if rows.peek().is_none() && method == NEWER {
        return adjust_by(&Result("true"), ours, theirs);
    }
    rows.find_map(|what| adjust_by(what, ours, theirs))
}

/// Makes them equal in what a row says, which must still differ.
fn adjust_by(what: &What, ours: &mut Value, theirs: &mut Value) -> Option<String> {
    if ours == theirs {
        return Some("it is equal now: take it from the list".to_owned());
    }
    match what {
        Fields(fields) => fields.iter().find_map(|field| take(field, ours, theirs)),
        Order => {
            for reply in [ours, theirs] {
                if let Some(list) = reply["result"].as_array_mut() {
                    list.sort_by_key(Value::to_string);
                }
            }
            None
        }
        Longer => {
            let [ours, theirs] = [ours, theirs].map(|reply| &mut reply["error"]["message"]);
            let goes_on = match (ours.as_str(), theirs.as_str()) {
                (Some(ours), Some(theirs)) => ours.starts_with(theirs),
                _ => false,
            };
            if goes_on {
                *ours = theirs.take();
                *theirs = ours.clone();
            }
            None
        }
        Result(result) => {
            let result: Value = serde_json::from_str(result).expect("a result is JSON");
            *theirs = json!({"jsonrpc": "2.0", "result": result, "id": theirs["id"]});
            None
        }
        Error(begins) => {
            let message = ours["error"]["message"].as_str().unwrap_or_default();
            if !message.starts_with(begins) {
                return Some(format!("our error does not begin with {begins:?}"));
            }
            *theirs = ours.clone();
            None
        }
    }
}

/// Takes a field away from both replies; an error when it does not differ.
fn take(field: &str, ours: &mut Value, theirs: &mut Value) -> Option<String> {
    let (object, name) = match field.rsplit_once('/') {
        Some((object, name)) => (format!("/result/{object}"), name),
        None => ("/result".to_owned(), field),
    };
    let [ours, theirs] = [ours, theirs].map(|reply| {
        let object = reply.pointer_mut(&object).and_then(Value::as_object_mut);
        object.and_then(|object| object.remove(name))
    });
    (ours == theirs).then(|| format!("{field} is equal now: take it from the list"))
}
