//! Profiles as they come: in parts, known already, known elsewhere, too long, and with wrong parts.

use allosaur_api::limits::{STATEFUL_PROFILE_BYTES_MAX, STATEFUL_PROFILES_MAX};
use serde_json::{Value, json};

use super::world::{Owned, profile, start_params};

/// The parts of a text, as clients send them: the first is short.
fn parts(name: &str, text: &str, md5: &str) -> Vec<Value> {
    let (first, rest) = text.split_at(100);
    let (second, third) = rest.split_at(rest.len() / 2);
    vec![
        json!({"profile_id": name, "fragment": first, "frag_first": true, "md5": md5}),
        json!({"profile_id": name, "fragment": second}),
        json!({"profile_id": name, "fragment": third, "frag_last": true}),
    ]
}

/// The digest of the profile without groups, by another program.
fn md5_of(text: &str) -> String {
    // The server says what it has when it is told something else.
    let mut server = Owned::new(1);
    let wrong = json!({"fragment": text, "frag_first": true, "frag_last": true, "md5": "no"});
    let (_, text) = server.refused("profile_fragment", wrong);
    let md5 = text
        .split("their md5 is ")
        .nth(1)
        .and_then(|rest| rest.get(..32));
    md5.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_profile_comes_in_parts_and_is_not_sent_again() {
    let text = profile(&["one", "two"]);
    let md5 = md5_of(&text);
    let mut server = Owned::new(1);
    for part in parts("p", &text, &md5) {
        assert_eq!(server.ok("profile_fragment", part), Value::Null);
    }
    assert_eq!(server.told_of(), ["60 p 0", "60 p 1", "50 1"]);
    let again = parts("p", &text, &md5.to_uppercase());
    let matches = json!({"matches_loaded": true});
    assert_eq!(server.ok("profile_fragment", again[0].clone()), matches);
    // While it runs, too.
    server.start("p", json!({}));
    server.told_of();
    assert_eq!(server.ok("profile_fragment", again[0].clone()), matches);
    assert_eq!(server.told_of(), [] as [&str; 0]);
    let (_, told) = server.refused("profile_fragment", parts("q", &text, &md5)[0].clone());
    assert!(
        told.starts_with("Fragment already added on other profile_id"),
        "{told}"
    );
    assert!(told.contains("'p'"), "{told}");
    // Its name is known all the same, as with TRex: a client that goes on with it finds it.
    assert_eq!(server.told_of(), ["60 q 0"]);
    assert_eq!(
        server.ok("get_profile_list", json!({})),
        json!(["_", "p", "q"])
    );
    server.ok("stop", json!({"profile_id": "q"}));
    server.ok("profile_clear", json!({"profile_id": "q"}));
    assert_eq!(server.told_of(), ["61 q"]);
    // Another text has to wait for its end.
    let other = parts("p", &profile(&["x"]), "00");
    let (_, told) = server.refused("profile_fragment", other[0].clone());
    assert!(
        told.contains("profile_id p: it runs; stop it first"),
        "{told}"
    );
    let run = server.runs()[0];
    server.end_all(run);
    server.told_of();
    assert_eq!(server.ok("profile_fragment", other[0].clone()), Value::Null);
    assert_eq!(server.told_of(), ["60 p 0", "50 0"]);
    let (_, told) = server.refused("start", start_params("p", json!({})));
    assert!(told.contains("nothing is loaded"), "{told}");
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let mut server = Owned::new(1);
    let text = profile(&[]);
    let mut wrong = parts("_", &text, &md5_of(&text));
    wrong[1]["fragment"] = json!("spoilt");
    server.ok("profile_fragment", wrong[0].clone());
    server.ok("profile_fragment", wrong[1].clone());
    let (code, told) = server.refused("profile_fragment", wrong[2].clone());
    assert_eq!(code, -32000);
    assert!(
        told.contains("md5") && told.contains("from the first on"),
        "{told}"
    );
    let (_, told) = server.refused("profile_fragment", wrong[1].clone());
    assert!(told.contains("frag_first"), "{told}");
    let unknown = json!({"profile_id": "nobody", "fragment": "x"});
    let (_, told) = server.refused("profile_fragment", unknown);
    assert!(told.starts_with("Invalid profile : nobody"), "{told}");
    let no_md5 = json!({"fragment": "x", "frag_first": true});
    let (code, told) = server.refused("profile_fragment", no_md5);
    assert_eq!(
        (code, told.contains("'md5' is missing")),
        (-32602, true),
        "{told}"
    );
    assert_eq!(server.ok("sync", json!({}))["state"], 0);
}

#[test]
fn texts_have_an_end() {
    let mut server = Owned::new(1);
    let part = "x".repeat(900_000);
    server.ok(
        "profile_fragment",
        json!({"fragment": part, "frag_first": true, "md5": "0"}),
    );
    let mut sent = part.len();
    let told = loop {
        let reply = server.call("profile_fragment", json!({"fragment": part}));
        if let Some(told) = reply["error"]["specific_err"].as_str() {
            break told.to_owned();
        }
        sent += part.len();
        assert!(
            sent <= STATEFUL_PROFILE_BYTES_MAX,
            "{sent} bytes were taken"
        );
    };
    assert!(sent > STATEFUL_PROFILE_BYTES_MAX - part.len());
    assert!(told.contains("base, size and fill"), "{told}");
    // The server is as well as before.
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    assert_eq!(server.ok("sync", json!({}))["state"], 4);
}

#[test]
fn profiles_have_names_and_there_are_not_too_many() {
    let mut server = Owned::new(1);
    for name in ["", "*", &"n".repeat(200)] {
        let params = json!({"profile_id": name, "fragment": "{}", "frag_first": true,
            "frag_last": true});
        let (_, told) = server.refused("profile_fragment", params);
        assert!(told.contains("cannot be used"), "{told}");
    }
    for number in 1..STATEFUL_PROFILES_MAX {
        server.load(&format!("p{number}"), "{}");
    }
    let one_more = json!({"profile_id": "more", "fragment": "{}", "frag_first": true,
        "frag_last": true});
    let (_, told) = server.refused("profile_fragment", one_more.clone());
    assert!(told.contains("clear one first"), "{told}");
    server.ok("profile_clear", json!({"profile_id": "p1"}));
    server.settle();
    server.ok("profile_fragment", one_more);
}

#[test]
fn what_is_wrong_in_a_profile_is_named_and_nothing_is_started() {
    let good: Value = serde_json::from_str(&profile(&["g"])).expect("JSON");
    let cases = [
        (
            "/program_list/0/commands/0/buf_index",
            json!(9),
            "buf_index",
        ),
        (
            "/templates/0/client_template/program_index",
            json!(9),
            "template 0",
        ),
        (
            "/ip_gen_dist_list/0/ip_end",
            json!("1.0.0.0"),
            "ip_gen_dist_list[0]",
        ),
        ("/templates/0/tg_id", json!(9), "tg_id"),
        ("/templates", json!([]), "templates"),
        ("/buf_list", json!("x"), "buf_list"),
    ];
    for (place, value, named) in cases {
        let mut server = Owned::new(1);
        let mut wrong = good.clone();
        *wrong.pointer_mut(place).expect("the place is there") = value;
        server.load("_", &wrong.to_string());
        server.start("_", json!({}));
        let events = server.events();
        let error = events.iter().find_map(|(_, data)| data["error"].as_str());
        let error = error.unwrap_or_else(|| panic!("{place} was accepted"));
        assert!(error.starts_with("Profile parsing error: "), "{error}");
        assert!(error.contains(named), "{place}: {error}");
        assert!(server.told.is_empty());
        // The same name takes a better one.
        server.load("_", &good.to_string());
        server.start("_", json!({}));
        assert_eq!(server.ok("sync", json!({}))["state"], 4, "{place}");
    }
}
