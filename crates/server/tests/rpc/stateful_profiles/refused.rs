//! What is refused, and in which words: each names the place and what would be right.

use allosaur_api::limits::STATEFUL_PROFILE_BYTES_MAX;
use allosaur_engine::template::Layout;
use allosaur_server::control::stateful::read_profile::compile;
use serde_json::{Value, json};

use super::small;

fn text(profile: &Value) -> String {
    let compiled = compile(&profile.to_string(), Layout::SMALLEST);
    compiled.expect_err("the profile is wrong").to_string()
}

/// What is wrong with the small profile when `path` has another value.
fn with(path: &str, value: Value) -> String {
    let mut profile = small::profile();
    *small::place(&mut profile, path) = value;
    text(&profile)
}

#[test]
fn what_is_no_json_is_refused() {
    let error = compile("{\"a\": ", Layout::SMALLEST).expect_err("half an object");
    assert!(
        error
            .to_string()
            .starts_with("the profile is not JSON: EOF")
    );
    for wrong in ["[]", "5", "\"s\"", "null"] {
        let error = compile(wrong, Layout::SMALLEST).expect_err("no object");
        assert!(error.to_string().contains("expecting 'object'"), "{error}");
    }
    let deep = "[".repeat(100_000);
    let error = compile(&deep, Layout::SMALLEST).expect_err("too deep");
    assert!(error.to_string().contains("recursion"), "{error}");
}

#[test]
fn a_profile_that_is_too_long_names_the_limit() {
    let long = " ".repeat(STATEFUL_PROFILE_BYTES_MAX + 1);
    let error = compile(&long, Layout::SMALLEST).expect_err("too long");
    assert!(
        error.to_string().contains("the most is 67108864"),
        "{error}"
    );
}

#[test]
fn fields_must_be_there() {
    assert_eq!(
        text(&json!({"templates": []})),
        "field 'buf_list' is missing"
    );
    let mut profile = small::profile();
    let template = small::place(&mut profile, "templates/1/client_template");
    template.as_object_mut().expect("an object").remove("port");
    assert_eq!(
        text(&profile),
        "field 'templates[1].client_template.port' is missing"
    );
    let mut profile = small::profile();
    *small::place(&mut profile, "templates") = json!([]);
    assert!(text(&profile).contains("templates is empty"));
}

#[test]
fn fields_have_types() {
    let cases = [
        (
            "program_list/0/commands/2/buf_index",
            json!("0"),
            "program_list[0].commands[2].buf_index",
        ),
        (
            "program_list/1/commands",
            json!({}),
            "program_list[1].commands",
        ),
        (
            "ip_gen_dist_list/0/ip_start",
            json!("16.0.0"),
            "ip_gen_dist_list[0].ip_start",
        ),
        (
            "ip_gen_dist_list/1/dir",
            json!("x"),
            "ip_gen_dist_list[1].dir",
        ),
        (
            "templates/0/client_template/cps",
            json!(0),
            "templates[0].client_template.cps",
        ),
        (
            "templates/0/client_template/port",
            json!(65_536),
            "templates[0].client_template.port",
        ),
        (
            "templates/0/server_template/assoc/0/port",
            json!(-1),
            "server_template.assoc[0].port",
        ),
        ("buf_list/0", json!(5), "buf_list[0]"),
        ("tg_names", json!([1]), "tg_names"),
        (
            "c_glob_info/ipv6/src_msb",
            json!([1, 2]),
            "c_glob_info.ipv6.src_msb",
        ),
        (
            "s_glob_info/tcp/keepidle",
            json!(2.5),
            "s_glob_info.tcp.keepidle",
        ),
    ];
    for (path, value, name) in cases {
        let text = with(path, value);
        assert!(text.contains(name), "{path}: {text}");
    }
}

#[test]
fn names_must_be_known() {
    let text = with("program_list/0/commands/2/name", json!("send"));
    assert!(text.starts_with("field 'program_list[0].commands[2].name' can only be one of"));
    let text = with("s_glob_info/tcp", json!({"keepidel": 5}));
    assert!(
        text.starts_with("s_glob_info.tcp.keepidel is not known; there are mss, "),
        "{text}"
    );
    let text = with("s_glob_info", json!({"http": {"x": 5}}));
    assert!(
        text.contains("there are scheduler, ip, ipv6 and tcp"),
        "{text}"
    );
    let mut profile = small::profile();
    profile["program_list"][3]["addon"] = json!("latenzy");
    assert!(self::text(&profile).contains("program_list[3].addon 'latenzy'"));
}

#[test]
fn buffers_are_base64() {
    assert!(with("buf_list/0", json!("!")).starts_with("buf_list[0] is not base64"));
    assert!(with("buf_list/1/fill", json!("=")).starts_with("buf_list[1].fill is not base64"));
    let text = with("buf_list/1/size", json!(1_u64 << 40));
    assert!(
        text.starts_with("buf_list[1] has 1099511627776 bytes"),
        "{text}"
    );
}

#[test]
fn a_buffer_that_is_not_there_names_template_and_command() {
    assert_eq!(
        with("program_list/1/commands/1/buf_index", json!(2)),
        "template 0, server program 1, command 1 (tx): buf_index is 2, but buf_list has 2: use 0 to 1"
    );
}

#[test]
fn a_jump_out_of_the_program_names_template_and_command() {
    let text = with("program_list/2/commands/4/offset", json!(-5));
    assert!(
        text.starts_with("template 1, client program 2, command 4 (jmp_nz): offset -5"),
        "{text}"
    );
}

#[test]
fn a_program_that_never_ends_names_template_and_command() {
    let text = with("program_list/2/commands/6/offset", json!(-3));
    assert!(text.starts_with("template 1, client program 2, command 6 (jmp_cmp): the loop over"));
}

#[test]
fn server_ranges_do_not_overlap() {
    let mut profile = small::profile();
    let again = profile["templates"][1].clone();
    profile["templates"][1]["server_template"]["assoc"][0] = json!({"port": 53});
    let list = profile["templates"].as_array_mut().expect("a list");
    list.push(again);
    list[2]["server_template"]["assoc"][0] = json!({"port": 53, "ip_start": "9.0.0.0"});
    let text = text(&profile);
    assert!(
        text.starts_with("template 2: its server range on port 53 overlaps that of template 1")
    );
}

#[test]
fn pools_have_addresses_for_all_cores() {
    let text = with("ip_gen_dist_list/0/ip_end", json!("16.0.0.0"));
    assert!(
        text.starts_with("ip_gen_dist_list[0]: ip_end is before ip_start"),
        "{text}"
    );
    let mut profile = small::profile();
    *small::place(&mut profile, "ip_gen_dist_list/0/ip_end") = json!("16.0.0.3");
    let four = Layout { cores: 4, pairs: 1 };
    let error = compile(&profile.to_string(), four).expect_err("three addresses");
    assert!(
        error
            .to_string()
            .contains("3 client addresses, but 4 data cores"),
        "{error}"
    );
}

#[test]
fn tunables_have_ranges() {
    let text = with("s_glob_info/tcp/keepidle", json!(1));
    assert_eq!(text, "s_glob_info.tcp.keepidle is 1; it must be 2 to 65533");
    let text = with("templates/0/client_template/glob_info/tcp/mss", json!(9217));
    assert_eq!(
        text,
        "templates[0].client_template.glob_info.tcp.mss is 9217; it must be 1 to 9216"
    );
}

#[test]
fn draws_have_lists_and_room() {
    let with = |lists: Value, draw: Value| {
        let mut profile = small::profile();
        profile["draw_lists"] = lists;
        profile["program_list"][0]["commands"][2]["draw"] = draw;
        text(&profile)
    };
    let list = json!([{"distribution": "rand", "values": ["QUI="]}]);
    let draw = |offset: u64, list: u32| json!([{"offset": offset, "list": list}]);
    let text = with(list.clone(), draw(0, 1));
    assert!(
        text.starts_with("program_list[0].commands[2].draw[0]: list is 1"),
        "{text}"
    );
    let text = with(list.clone(), draw(4, 0));
    assert!(
        text.contains("its 2 bytes from 4 on leave the buffer of 5"),
        "{text}"
    );
    let twice = json!([{"offset": 0, "list": 0}, {"offset": 1, "list": 0}]);
    assert!(with(list.clone(), twice).contains("draw[1]: it begins before the end"));
    assert!(with(list, json!([{"offset": 0}])).contains("commands[2].draw[0].list' is missing"));
    let lengths = json!([{"distribution": "seq", "values": ["QUI=", "QQ=="]}]);
    assert!(with(lengths, draw(0, 0)).starts_with("draw_lists[0]: value 1 is not as long"));
    let nothing = json!([{"distribution": "seq", "values": []}]);
    assert!(with(nothing, draw(0, 0)).contains("draw_lists[0] has no values"));
    let mut profile = small::profile();
    profile["program_list"][0]["commands"][3]["draw"] = json!([]);
    assert!(self::text(&profile).contains("can only be one of ['tx', 'tx_msg'], not 'rx'"));
}

#[test]
fn no_number_of_a_buffer_is_that_of_a_drawn_one() {
    let text = with("program_list/0/commands/2/buf_index", json!(1_u32 << 31));
    assert!(text.contains("but buf_list has 2"), "{text}");
}

#[test]
fn a_number_for_add_ons_is_a_number() {
    let mut profile = small::profile();
    profile["templates"][0]["server_template"]["assoc"][0]["assoc_id"] = json!("seven");
    assert!(self::text(&profile).contains("assoc[0].assoc_id"));
    profile["templates"][0]["server_template"]["assoc"][0]["assoc_id"] = json!(7);
    assert!(compile(&profile.to_string(), Layout::SMALLEST).is_ok());
}

/// What is wrong with the TLS of a side of the small profile's first template.
fn tls(side: &str, tls: Value) -> String {
    let mut profile = small::profile();
    let template = small::place(&mut profile, &format!("templates/0/{side}_template"));
    template["tls"] = tls;
    if let Some(rule) = template.pointer_mut("/assoc/0") {
        rule.as_object_mut().expect("an object").remove("l7_map");
    }
    text(&profile)
}

#[test]
fn fields_of_tls_are_named() {
    let path = "templates[0].client_template.tls";
    let told = tls("client", json!({"pined": "x"}));
    assert!(
        told.contains(&format!("{path}.pined' is not known; there are version")),
        "{told}"
    );
    let told = tls("client", json!({"tickets": true}));
    assert!(
        told.contains("tls.tickets' is a field of the server's side"),
        "{told}"
    );
    let told = tls("client", json!({"resume": 2}));
    assert!(told.contains("a share from 0 to 1"), "{told}");
    let told = tls("client", json!({"pinned": "x", "authorities": "y"}));
    assert!(told.contains("beside authorities"), "{told}");
    let told = tls("client", json!({"authorities": "none"}));
    assert!(
        told.starts_with(&format!("{path}.authorities: has no certificate")),
        "{told}"
    );
    let told = tls("client", json!({"key_log": ""}));
    assert!(told.contains("tls.key_log' is empty: give"), "{told}");
    let told = tls("server", json!({"key_log": "keys.log"}));
    assert_eq!(
        told,
        "templates[0].server_template.tls.key_log: keys.log: there are no files here: leave it out"
    );
    let told = tls("server", json!({"certificate_kind": "rsa2048"}));
    assert!(
        told.contains(
            "tls.certificate_kind' is rsa2048; keys of RSA are not made here: make one by"
        ) && told.contains("`openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key "),
        "{told}"
    );
    let told = tls("server", json!({"certificate": "x"}));
    assert!(told.contains("tls.key' is missing"), "{told}");
    let told = tls("server", json!({"server_name": "no name"}));
    assert!(
        told.starts_with("templates[0].server_template.tls.server_name: \"no name\" cannot be"),
        "{told}"
    );
}

#[test]
fn a_certificate_must_fit_its_key() {
    let pem = |name: &str| {
        let path = allosaur_testkit::data::workspace_root().join("tests/data/tls");
        std::fs::read_to_string(path.join(name)).expect("it is there")
    };
    let other = json!({"certificate": pem("server.pem"), "key": pem("client.key")});
    let told = tls("server", other);
    assert_eq!(
        told,
        "templates[0].server_template.tls.key: is not the key of certificate; give the one that the \
         certificate was made for"
    );
}

#[test]
fn programs_that_cannot_run_over_tls_are_named() {
    let mut profile = small::profile();
    let template = small::place(&mut profile, "templates/0/client_template");
    template["tls"] = json!({});
    let program = template["program_index"].to_string();
    let commands = small::place(&mut profile, &format!("program_list/{program}/commands"));
    let commands = commands.as_array_mut().expect("a list");
    let at = commands.len();
    commands.push(json!({"name": "set_template", "tg_id": 0}));
    commands.push(json!({"name": "exec_template"}));
    let told = text(&profile);
    let place = format!("templates[0].client_template.tls: of program_list[{program}]");
    let step = format!("command {} opens a flow of another template", at + 1);
    assert!(told.starts_with(&place) && told.contains(&step), "{told}");
    let told = {
        let mut profile = small::profile();
        let server = small::place(&mut profile, "templates/0/server_template");
        server["tls"] = json!({});
        server["assoc"][0]["l7_map"] = json!([0]);
        text(&profile)
    };
    assert!(told.contains("stands beside assoc[0].l7_map"), "{told}");
}
