//! Supplicants against an authenticator, and what their users are told.

mod peers;

use allosaur_engine::time::SECOND;
use peers::authenticator::Authenticator;
use peers::{Silence, ask, emulation, frame, pass, sent, settle};
use proptest::prelude::*;
use serde_json::{Value, json};

fn info(state: u8, method: u8) -> Value {
    json!([{"state": state, "method": method, "eap_version": 2}])
}

#[test]
fn both_methods_let_in_who_knows_the_password() {
    for (methods, method) in [(&[4, 26], 4), (&[26, 4], 26)] {
        let mut switch = Authenticator::new(methods, &[("u1", "pass1"), ("u2", "pass2")]);
        let clients = [
            (1, json!({"user": "u1", "password": "pass1"})),
            (2, json!({"user": "u2", "password": "wrong"})),
            (3, json!({"user": "nobody", "password": "pass1"})),
        ];
        let mut emulation = emulation("dot1x", &clients);
        settle(&mut emulation, 0, &mut switch);
        for (client, state) in [(1, 4), (2, 5), (3, 5)] {
            let told = ask(&mut emulation, 0, "dot1x_client_info", client);
            assert_eq!(told, info(state, method), "{client}");
        }
        assert!(pass(&mut emulation, 100 * SECOND, &mut switch).is_empty());
    }
}

#[test]
fn a_method_that_is_off_is_changed_for_the_other() {
    for (methods, flags, used) in [(&[4, 26], 1, 26), (&[26, 4], 2, 4)] {
        let mut switch = Authenticator::new(methods, &[("u", "p")]);
        let init = json!({"user": "u", "password": "p", "flags": flags});
        let mut emulation = emulation("dot1x", &[(1, init)]);
        settle(&mut emulation, 0, &mut switch);
        assert_eq!(
            ask(&mut emulation, 0, "dot1x_client_info", 1),
            info(4, used)
        );
        let counters = ask(&mut emulation, 0, "dot1x_client_cnt", 1);
        assert_eq!(
            counters,
            json!({"dot1x": {"pktTxIdentity": 1, "pktTxNack": 1}})
        );
    }
}

#[test]
fn what_is_said_to_the_group_is_heard_by_all_and_to_others_by_none() {
    let init = json!({"user": "u", "password": "p"});
    let mut emulation = emulation("dot1x", &[(1, init.clone()), (2, init)]);
    assert_eq!(sent(&mut emulation).len(), 2);
    let identity = [2, 0, 0, 5, 1, 1, 0, 5, 1];
    let from = [2, 0, 0, 0, 0xff, 1];
    for (to, answers) in [
        ([1, 0x80, 0xc2, 0, 0, 3], 2),
        ([2, 0, 0, 0, 0, 2], 1),
        ([2; 6], 0),
    ] {
        emulation.handle_frame(0, 1, &frame(&to, &from, 0x888e, &[&identity, &[0; 37]]));
        assert_eq!(sent(&mut emulation).len(), answers, "{to:?}");
    }
}

#[test]
fn what_is_too_long_is_refused_by_name() {
    let mut emulation = emulation("dot1x", &[]);
    for (last, (field, limit)) in [("user", 253), ("password", 256)].into_iter().enumerate() {
        let init = json!({field: "x".repeat(limit + 1)});
        let clients = json!([{"mac": [2, 0, 0, 0, 0, last], "plugs": {"dot1x": init}}]);
        let params = json!({"tun": {"vport": 1}, "clients": clients});
        let error = emulation
            .handle_request(0, "ctx_client_add", &params)
            .unwrap_err();
        let expected = format!("{field} has {} bytes; it may have {limit}", limit + 1);
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert!(sent(&mut emulation).is_empty());
    }
}

#[test]
fn a_client_that_goes_takes_its_timers_with_it() {
    let mut emulation = emulation("dot1x", &[(1, json!({"user": "u"}))]);
    assert_eq!(sent(&mut emulation).len(), 1);
    let params = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 0, 1]]});
    emulation
        .handle_request(SECOND, "ctx_client_remove", &params)
        .unwrap();
    assert!(pass(&mut emulation, 100 * SECOND, &mut Silence).is_empty());
}

proptest! {
    #[test]
    fn any_bytes_behind_the_type_have_at_most_one_answer(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..20),
    ) {
        let mut emulation = emulation("dot1x", &[(1, json!({"user": "u", "password": "p"}))]);
        sent(&mut emulation);
        for bytes in frames {
            let frame = frame(&[2, 0, 0, 0, 0, 1], &[2; 6], 0x888e, &[&bytes]);
            emulation.handle_frame(0, 1, &frame);
            prop_assert!(sent(&mut emulation).len() <= 1);
        }
    }
}
