//! PPPoE clients against a concentrator, and against one that misbehaves.

mod peers;

use allosaur_emulation::Emulation;
use allosaur_engine::time::{Nanos, SECOND};
use peers::concentrator::{Concentrator, MAC, SESSION};
use peers::{Silence, ask, emulation, pass, sent, settle};
use proptest::prelude::*;
use serde_json::{Value, json};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 7];
const LCP: u16 = 0xc021;
const IPCP: u16 = 0x8021;

/// A client that dials for some seconds.
fn dial(concentrator: &mut Concentrator, seconds: u64) -> Emulation {
    let init = json!({"user": "u", "password": "p"});
    let mut emulation = emulation("ppp", &[(7, init)]);
    settle(&mut emulation, 0, concentrator);
    pass(&mut emulation, seconds * SECOND, concentrator);
    emulation
}

fn state(emulation: &mut Emulation, now: Nanos) -> [Value; 3] {
    [
        "ppp_c_client_session",
        "ppp_c_client_ip",
        "ppp_c_server_mac",
    ]
    .map(|method| ask(emulation, now, method, 7))
}

fn up() -> [Value; 3] {
    [
        json!(0x1234),
        json!("10.0.0.50"),
        json!("02:00:00:00:00:01"),
    ]
}

fn down() -> [Value; 3] {
    [json!(0), json!("0.0.0.0"), json!("02:00:00:00:00:01")]
}

#[test]
fn every_authentication_leads_to_an_address() {
    let pap: &[u8] = &[0xc0, 0x23];
    for authentication in [&[], pap, &[0xc2, 0x23, 5], &[0xc2, 0x23, 0x81]] {
        let mut concentrator = Concentrator::new(authentication);
        let mut emulation = dial(&mut concentrator, 2);
        assert_eq!(
            state(&mut emulation, 2 * SECOND),
            up(),
            "{authentication:?}"
        );
        assert_eq!(concentrator.verdicts, [2]);
        let (echo, magic) = (
            &concentrator.seen.last().unwrap().3,
            &concentrator.seen[..2],
        );
        let magic = magic.iter().find(|seen| seen.1 == 1).unwrap().3[6..].to_vec();
        assert_eq!(*echo, [&magic[..], b"hi"].concat());
        assert!(pass(&mut emulation, 100 * SECOND, &mut concentrator).is_empty());
    }
}

#[test]
fn a_session_ends_with_its_client_and_says_so() {
    let mut concentrator = Concentrator::new(&[0xc0, 0x23]);
    let mut emulation = dial(&mut concentrator, 2);
    let params = json!({"tun": {"vport": 1}, "macs": [CLIENT]});
    emulation
        .handle_request(2 * SECOND, "ctx_client_remove", &params)
        .unwrap();
    settle(&mut emulation, 2 * SECOND, &mut concentrator);
    assert_eq!(concentrator.ended.as_deref(), Some(&b"session closed"[..]));
}

#[test]
fn a_wrong_password_ends_it() {
    let pap: &[u8] = &[0xc0, 0x23];
    for authentication in [pap, &[0xc2, 0x23, 5], &[0xc2, 0x23, 0x81]] {
        let mut concentrator = Concentrator::new(authentication);
        concentrator.password = "another";
        let mut emulation = dial(&mut concentrator, 60);
        assert_eq!(
            state(&mut emulation, 60 * SECOND),
            down(),
            "{authentication:?}"
        );
        assert_eq!(
            concentrator.ended.as_deref(),
            Some(&b"authentication refused"[..])
        );
    }
}

#[test]
fn a_concentrator_that_does_not_know_the_password_is_left() {
    let mut concentrator = Concentrator::new(&[0xc2, 0x23, 0x81]);
    concentrator.is_impostor = true;
    let mut emulation = dial(&mut concentrator, 60);
    assert_eq!(state(&mut emulation, 60 * SECOND), down());
    assert_eq!(
        concentrator.ended.as_deref(),
        Some(&b"authentication failed"[..])
    );
}

#[test]
fn options_are_negotiated() {
    // EAP is not spoken; header compression is not known.
    let mut concentrator = Concentrator::new(&[0xc2, 0x27]);
    concentrator.options = vec![7, 2, 8, 2];
    let mut emulation = dial(&mut concentrator, 2);
    assert_eq!(concentrator.verdicts, [4, 3, 2]);
    assert_eq!(state(&mut emulation, 2 * SECOND), up());
}

#[test]
fn unknown_protocols_and_codes_come_back() {
    let mut concentrator = Concentrator::new(&[]);
    let mut emulation = dial(&mut concentrator, 2);
    let now = 2 * SECOND;
    let mut answer = |frame: Vec<u8>| {
        emulation.handle_frame(now, 1, &frame);
        let frames = sent(&mut emulation);
        frames
            .into_iter()
            .map(|(_, frame)| frame)
            .collect::<Vec<_>>()
    };
    let ipv6cp = Concentrator::session(&CLIENT, 0x8057, 1, 1, &[1, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    let [rejected] = &answer(ipv6cp)[..] else {
        panic!("one frame");
    };
    assert_eq!(rejected[20..25], [0xc0, 0x21, 8, 0, 0]);
    assert_eq!(rejected[26..30], [0x80, 0x57, 1, 1]);
    for protocol in [LCP, IPCP] {
        let [rejected] = &answer(Concentrator::session(&CLIENT, protocol, 77, 3, &[9]))[..] else {
            panic!("one frame");
        };
        assert_eq!(
            rejected[20..26],
            [&protocol.to_be_bytes()[..], &[7, 3, 0, 9]].concat()
        );
        assert_eq!(rejected[26..31], [77, 3, 0, 5, 9]);
    }
    assert!(answer(Concentrator::session(&CLIENT, 0x0021, 0x45, 0, &[0; 16])).is_empty());
}

#[test]
fn who_ends_the_session_is_believed() {
    let terminate = Concentrator::session(&CLIENT, LCP, 5, 9, &[]);
    let padt = Concentrator::discovery(&CLIENT, 0xa7, SESSION, &[]);
    for (last_word, answers) in [(terminate, 2), (padt, 0)] {
        let mut concentrator = Concentrator::new(&[0xc0, 0x23]);
        let mut emulation = dial(&mut concentrator, 2);
        for forged in [(6, 0x99), (17, 0x99)] {
            let mut frame = last_word.clone();
            frame[forged.0] = forged.1;
            emulation.handle_frame(2 * SECOND, 1, &frame);
            assert_eq!(sent(&mut emulation).len(), 0);
        }
        emulation.handle_frame(2 * SECOND, 1, &last_word);
        assert_eq!(sent(&mut emulation).len(), answers);
        assert_eq!(state(&mut emulation, 2 * SECOND), down());
        assert!(pass(&mut emulation, 100 * SECOND, &mut concentrator).is_empty());
    }
}

#[test]
fn silence_is_asked_again_and_again_at_a_steady_pace() {
    let init = json!({"timeout": 2});
    let mut emulation = emulation("ppp", &[(7, init)]);
    sent(&mut emulation);
    let frames = pass(&mut emulation, 7 * SECOND, &mut Silence);
    let times: Vec<_> = frames.iter().map(|(now, _)| now / SECOND).collect();
    assert_eq!(times, [2, 4, 6]);
}

/// LCP is asked ten times a second apart, then the host leaves and looks for a concentrator anew.
#[test]
fn a_concentrator_that_falls_silent_is_left() {
    let mut concentrator = Concentrator::new(&[0xc0, 0x23]);
    let mut emulation = emulation("ppp", &[(7, json!({}))]);
    settle(&mut emulation, 0, &mut concentrator);
    concentrator.is_silent = true;
    let pads = Concentrator::discovery(&CLIENT, 0x65, SESSION, &[]);
    emulation.handle_timeout(SECOND);
    assert_eq!(sent(&mut emulation)[0].1[15], 0x19);
    emulation.handle_frame(SECOND, 1, &pads);
    let frames = pass(&mut emulation, 15 * SECOND, &mut concentrator);
    let codes: Vec<_> = frames
        .iter()
        .map(|(_, frame)| (frame[13], frame[15]))
        .collect();
    let mut expected = vec![(0x64, 0); 10];
    expected.extend([(0x63, 0xa7), (0x63, 0x09)]);
    assert_eq!(codes, expected);
}

#[test]
fn what_is_too_long_is_refused_by_name() {
    let mut emulation = emulation("ppp", &[]);
    for (last, field) in ["user", "password"].into_iter().enumerate() {
        let init = json!({field: "x".repeat(256)});
        let clients = json!([{"mac": [2, 0, 0, 0, 0, last], "plugs": {"ppp": init}}]);
        let params = json!({"tun": {"vport": 1}, "clients": clients});
        let error = emulation
            .handle_request(0, "ctx_client_add", &params)
            .unwrap_err();
        let expected = format!("{field} has 256 bytes; it may have 255");
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert!(sent(&mut emulation).is_empty());
    }
}

/// Frames of a hostile concentrator: of the right shape, with any content.
fn hostile() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let data = prop::collection::vec(any::<u8>(), 0..40);
    let options = prop::collection::vec((1..9u8, prop::collection::vec(any::<u8>(), 0..6)), 0..5)
        .prop_map(|options| {
            let option = |(kind, value): (u8, Vec<u8>)| {
                [&[kind, 2 + value.len() as u8][..], &value].concat()
            };
            options.into_iter().flat_map(option).collect::<Vec<u8>>()
        });
    let data = prop_oneof![data, options];
    let protocol = prop::sample::select(vec![LCP, 0xc023, 0xc223, IPCP, 0x8057, 0x0021]);
    let session =
        (protocol, 0..12u8, 0..4u8, data.clone()).prop_map(|(protocol, code, id, data)| {
            Concentrator::session(&CLIENT, protocol, code, id, &data)
        });
    let code = prop::sample::select(vec![0x07, 0x65, 0xa7, 0x09]);
    let number = prop::sample::select(vec![0, SESSION]);
    let discovery = (code, number, data)
        .prop_map(|(code, number, tags)| Concentrator::discovery(&CLIENT, code, number, &tags));
    let any_bytes = prop::collection::vec(any::<u8>(), 0..60)
        .prop_map(|bytes| [&CLIENT[..], &MAC, &[0x88, 0x64], &bytes].concat());
    let frame = prop_oneof![6 => session, 2 => discovery, 1 => any_bytes];
    (0..3u8, frame)
}

proptest! {
    /// Each frame has a limited number of answers, none longer than a frame, and time brings a
    /// limited number of others.
    #[test]
    fn whatever_a_concentrator_does_a_host_stays_within_its_limits(
        dialled in 0..3u64, frames in prop::collection::vec(hostile(), 0..80),
    ) {
        let mut concentrator = Concentrator::new(&[0xc2, 0x23, 0x81]);
        let mut emulation = dial(&mut concentrator, dialled);
        let mut now = dialled * SECOND;
        for (seconds, frame) in frames {
            for (_, frame) in pass(&mut emulation, now + u64::from(seconds) * SECOND, &mut Silence) {
                prop_assert!((60..=1514).contains(&frame.len()));
            }
            now += u64::from(seconds) * SECOND;
            emulation.handle_frame(now, 1, &frame);
            let answers = sent(&mut emulation);
            prop_assert!(answers.len() <= 3, "{} answers", answers.len());
            for (_, frame) in answers {
                prop_assert!((60..=1514).contains(&frame.len()));
            }
        }
        let later = pass(&mut emulation, now + 100 * SECOND, &mut Silence);
        prop_assert!(later.len() <= 40, "{} frames", later.len());
    }
}
