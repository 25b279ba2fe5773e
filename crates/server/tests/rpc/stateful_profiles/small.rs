//! A small profile with all commands of one kind or another, to be changed.

use serde_json::{Value, json};

/// A profile of one TCP and one UDP template.
pub(crate) fn profile() -> Value {
    json!({
        "buf_list": ["R0VUIC8=", {"base": "MjAw", "size": 1000, "fill": "eA=="}],
        "ip_gen_dist_list": [
            {"ip_start": "16.0.0.1", "ip_end": "16.0.0.254", "distribution": "seq", "dir": "c",
             "ip_offset": "1.0.0.0"},
            {"ip_start": "48.0.0.1", "ip_end": "48.0.255.254", "distribution": "rand", "dir": "s",
             "ip_offset": "1.0.0.0", "per_core_distribution": "seq"},
        ],
        "program_list": [
            {"commands": [
                {"name": "connect"}, {"name": "tx_mode", "flags": 1}, {"name": "tx", "buf_index": 0},
                {"name": "rx", "min_bytes": 1000, "clear": true},
                {"name": "set_tick_var", "id": 0}, {"name": "add_tick_var", "id": 0, "duration": 0.5},
                {"name": "delay", "usec": 10.0}, {"name": "delay_rnd", "min_usec": 1, "max_usec": 2},
                {"name": "jmp_dp", "id": 0, "offset": -2, "duration": 2.0},
                {"name": "add_tick_stats", "stats_id": 3, "var_id": 0}, {"name": "reset"},
            ]},
            {"commands": [
                {"name": "rx", "min_bytes": 5}, {"name": "tx", "buf_index": 1}, {"name": "nc"},
            ]},
            {"stream": false, "commands": [
                {"name": "keepalive", "msec": 500, "rx_mode": true},
                {"name": "set_var", "id": 1, "val": 3}, {"name": "tx_msg", "buf_index": 0},
                {"name": "add_stats", "stats_id": 0, "val": 1},
                {"name": "jmp_nz", "id": 1, "offset": -2}, {"name": "add_var", "id": 1, "val": -1},
                {"name": "jmp_cmp", "offset": 1}, {"name": "rx_msg", "min_pkts": 1},
                {"name": "jmp_cmp", "id": 1, "cmp_op": "ge", "cmp_val": 1, "offset": 1},
                {"name": "set_template", "tg_id": 1}, {"name": "exec_template"},
                {"name": "close_msg"},
            ]},
            {"stream": false, "commands": [
                {"name": "rx_msg", "min_pkts": 1, "clear": 1},
                {"name": "tx_msg", "buf_index": 0, "draw": [{"offset": 1, "list": 0}]},
            ]},
        ],
        "templates": [
            {"client_template": {"program_index": 0, "port": 80, "cps": 1.5, "limit": 7, "cont": true,
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}, "cluster": {},
                "glob_info": {"tcp": {"mss": 500}}},
             "server_template": {"program_index": 1, "assoc": [
                {"port": 80, "ip_start": "48.0.0.0", "ip_end": "48.0.255.255", "l7_map": [0, 1]}]},
             "tg_id": 1},
            {"client_template": {"program_index": 2, "port": 53, "cps": 2,
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}, "cluster": {}},
             "server_template": {"program_index": 3, "assoc": [
                {"port": 53, "l7_map": {"offset": [0], "mask": [223], "value": [71]}}],
                "glob_info": {"ip": {"tos": 9, "ttl": 64}}}},
        ],
        "c_glob_info": {"scheduler": {"rampup_sec": 5}, "ipv6": {"enable": 1,
            "src_msb": [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]}},
        "s_glob_info": {"tcp": {"keepidle": 10, "no_delay": 3}},
        "tg_names": ["web"],
        "draw_lists": [{"distribution": "rand", "values": ["QQ==", "Qg=="]}],
        "client_only": "whoever wrote this field knows what it is for",
    })
}

/// What is at a path such as `templates/0/tg_id`.
pub(crate) fn place<'a>(profile: &'a mut Value, path: &str) -> &'a mut Value {
    let found = profile.pointer_mut(&format!("/{path}"));
    found.unwrap_or_else(|| panic!("the profile has {path}"))
}
