//! Profiles that cannot work: each is loaded, and refused when it is started, by an event whose
//! text names the place; nothing starts, nothing is lost, and a right one runs afterwards.

use serde_json::{Value, json};

use super::world::{Owned, profile, start_params};

/// What is wrong, where it is put, and what the text must say.
type Case = (&'static str, &'static str, Value, &'static [&'static str]);

const TEMPLATE: &str = "/templates/0";
const COMMANDS: [&str; 2] = ["/program_list/0/commands", "/program_list/1/commands"];

/// The list, and what else people get wrong.
fn wrong_programs() -> Vec<Case> {
    let buffer = json!([{"name": "tx", "buf_index": 7}]);
    let jump = json!([{"name": "set_var", "id": 0, "val": 2},
        {"name": "jmp_nz", "id": 0, "offset": 9}]);
    let endless =
        json!([{"name": "set_var", "id": 0, "val": 2}, {"name": "jmp_cmp", "offset": -1}]);
    vec![
        (
            "a buffer that is not there",
            COMMANDS[1],
            buffer,
            &[
                "template 0",
                "server program 1",
                "command 0 (tx)",
                "buf_index is 7",
            ],
        ),
        (
            "a jump outside of the program",
            COMMANDS[0],
            jump,
            &[
                "template 0",
                "client program 0",
                "command 1 (jmp_nz)",
                "offset 9",
            ],
        ),
        (
            "a program that never ends",
            COMMANDS[0],
            endless,
            &[
                "template 0",
                "client program 0",
                "command 1 (jmp_cmp)",
                "loop",
            ],
        ),
    ]
}

fn wrong_fields() -> Vec<Case> {
    vec![
        (
            "an empty pool",
            "/ip_gen_dist_list/0/ip_end",
            json!("15.0.0.0"),
            &["ip_gen_dist_list[0]", "ip_end is before ip_start"],
        ),
        (
            "fewer clients than cores",
            "/ip_gen_dist_list/0/ip_end",
            json!("16.0.0.0"),
            &["1 client address", "2 data cores"],
        ),
        (
            "a tunable out of range",
            "/c_glob_info",
            json!({"tcp": {"initwnd": 21}}),
            &["c_glob_info.tcp.initwnd is 21", "1 to 20"],
        ),
        (
            "a tunable of another type",
            "/c_glob_info",
            json!({"tcp": {"initwnd": "many"}}),
            &["c_glob_info.tcp.initwnd"],
        ),
        (
            "a tunable that is not there",
            "/s_glob_info",
            json!({"tcp": {"speed": 1}}),
            &["s_glob_info.tcp.speed is not known"],
        ),
        (
            "port 0",
            "/templates/0/client_template/port",
            json!(0),
            &["templates[0].client_template.port"],
        ),
        (
            "port 0 of a server",
            "/templates/0/server_template/assoc/0/port",
            json!(0),
            &["templates[0].server_template.assoc[0].port"],
        ),
    ]
}

fn wrong_places() -> Vec<Case> {
    vec![
        (
            "broken base64",
            "/buf_list/1",
            json!("?"),
            &["buf_list[1] is not base64"],
        ),
        ("no commands", COMMANDS[0], json!([]), &["program 0"]),
        (
            "a rate of nothing",
            "/templates/0/client_template/cps",
            json!(-1),
            &["templates[0].client_template.cps"],
        ),
        (
            "a program that is not there",
            "/templates/0/client_template/program_index",
            json!(5),
            &["template 0", "program"],
        ),
        (
            "a pool that is not there",
            "/templates/0/client_template/ip_gen/dist_client/index",
            json!(5),
            &["template 0"],
        ),
        (
            "a group that is not there",
            "/templates/0/tg_id",
            json!(5),
            &["template 0", "tg_"],
        ),
        (
            "a list where an object belongs",
            TEMPLATE,
            json!([]),
            &["templates[0]"],
        ),
        ("nothing", "/templates", json!([]), &["templates is empty"]),
    ]
}

/// The text of the event that says why a profile did not start.
fn reason(server: &mut Owned, what: &str, text: &str) -> String {
    server.load("bad", text);
    server.told_of();
    server.told.clear();
    server.start("bad", json!({}));
    let events = server.events();
    let states: Vec<_> = events
        .iter()
        .map(|(kind, data)| (*kind, &data["state"]))
        .collect();
    let parse_and_back = [(60, 2), (50, 2), (60, 1), (50, 1)].map(|(k, s)| (k, json!(s)));
    let expected: Vec<_> = parse_and_back
        .iter()
        .map(|(kind, state)| (*kind, state))
        .collect();
    assert_eq!(states, expected, "{what}");
    assert!(server.told.is_empty(), "no data thread heard of it");
    events[2].1["error"].as_str().expect("a reason").to_owned()
}

/// A right profile starts, and ends.
fn assert_works(server: &mut Owned) {
    server.load("good", &profile(&["web"]));
    server.start("good", json!({}));
    let run = server.newest_run();
    server.end_all(run);
    server.told_of();
}

#[test]
fn what_cannot_work_is_refused_by_name_and_nothing_starts() {
    let mut server = Owned::new(2);
    for (what, path, value, words) in wrong_programs()
        .into_iter()
        .chain(wrong_fields())
        .chain(wrong_places())
    {
        let mut wrong: Value = serde_json::from_str(&profile(&["web"])).expect("JSON");
        match wrong.pointer_mut(path) {
            Some(place) => *place = value,
            None => wrong[&path[1..]] = value,
        }
        let text = reason(&mut server, what, &wrong.to_string());
        for word in words {
            assert!(text.contains(word), "{what}: '{word}' is not in '{text}'");
        }
        assert_works(&mut server);
    }
}

#[test]
fn server_ranges_that_overlap_name_both_templates() {
    let mut wrong: Value = serde_json::from_str(&profile(&["a", "b"])).expect("JSON");
    wrong["templates"][1]["server_template"]["assoc"][0]["port"] = json!(80);
    let mut server = Owned::new(1);
    let text = reason(&mut server, "overlapping ranges", &wrong.to_string());
    assert!(
        text.contains("template 1: its server range on port 80 overlaps that of template 0"),
        "{text}"
    );
}

#[test]
fn what_is_no_json_is_refused_when_it_is_started() {
    let mut server = Owned::new(1);
    let deep = format!("{{\"templates\":{}", "[".repeat(100_000));
    for wrong in [
        "",
        "{",
        "[]",
        "NaN",
        "{\"templates\": NaN}",
        "null",
        deep.as_str(),
    ] {
        let text = reason(&mut server, wrong.get(..20).unwrap_or(wrong), wrong);
        assert!(text.starts_with("Profile parsing error: "), "{text}");
        assert!(text.len() < 2_000, "{text}");
    }
    assert_works(&mut server);
}

#[test]
fn numbers_that_are_none_are_refused() {
    let mut server = Owned::new(1);
    for number in ["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01"] {
        let wrong = profile(&["web"]).replace("\"cps\":10", &format!("\"cps\":{number}"));
        assert!(wrong.contains(number), "the profile has a rate");
        let text = reason(&mut server, number, &wrong);
        assert!(
            text.starts_with("Profile parsing error: "),
            "{number}: {text}"
        );
    }
    assert_works(&mut server);
}

#[test]
fn names_that_are_too_long_are_refused() {
    let long = "x".repeat(100_000);
    let mut server = Owned::new(1);
    let params =
        json!({"profile_id": long, "fragment": "{}", "frag_first": true, "frag_last": true});
    let (_, text) = server.refused("profile_fragment", params);
    assert!(text.len() < 1_000 && !text.is_empty(), "{text}");
    let text = reason(&mut server, "a long name", &profile(&[&long]));
    assert!(text.contains("tg_names[0]") && text.len() < 1_000, "{text}");
    let (_, text) = server.refused("start", start_params(&long, json!({})));
    assert!(text.len() < 1_000, "{text}");
    assert_works(&mut server);
}

#[test]
fn wrong_types_of_parameters_are_refused_and_start_nothing() {
    let mut server = Owned::new(1);
    server.load("good", &profile(&["web"]));
    server.told.clear();
    let wrong = [
        json!(null),
        json!("1"),
        json!([]),
        json!({}),
        json!(true),
        json!(-2.5),
        json!(1e300),
    ];
    let names = [
        "mult",
        "duration",
        "nc",
        "latency_pps",
        "ipv6",
        "client_mask",
        "e_duration",
        "t_duration",
        "dump_interval",
    ];
    for name in names {
        for value in &wrong {
            let mut others = json!({});
            others[name] = value.clone();
            let params = server_params(&server, start_params("good", others));
            let reply = server.ask_raw(&params);
            let is_refused = reply["error"].is_object();
            if is_refused {
                assert!(server.told.is_empty(), "{name} {value}");
                continue;
            }
            // Right after all: it runs, and ends.
            let run = server.newest_run();
            server.end_all(run);
            server.told.clear();
        }
    }
    for wrong in wrong.iter().filter(|value| !value.is_string()) {
        let params =
            json!({"profile_id": "x", "fragment": wrong, "frag_first": true, "frag_last": true});
        server.refused("profile_fragment", params);
    }
    assert_works(&mut server);
}

fn server_params(server: &Owned, mut params: Value) -> Value {
    params["api_h"] = json!(server.api_h);
    params["handler"] = json!(server.handler);
    json!({"jsonrpc": "2.0", "id": 1, "method": "start", "params": params})
}
