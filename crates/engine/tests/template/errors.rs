//! What is refused, and in which words.

use allosaur_engine::app::{BufferSpec, ProgramCommand};
use allosaur_engine::template::{
    CompiledProfile, L7Map, Layout, PerCore, Side, TEMPLATES_MAX, TUNABLES, Tunable,
};

use crate::profile::{compile, error, pool, profile, template, tx};

fn on(cores: u32, pairs: u32) -> Result<CompiledProfile, String> {
    let profile = CompiledProfile::compile(&profile(), Layout { cores, pairs });
    profile.map_err(|error| error.to_string())
}

#[test]
fn a_command_is_named_with_template_and_side() {
    assert_eq!(
        error(|p| p.programs[1].commands[1] = tx(7)),
        "template 0, server program 1, command 1 (tx): buf_index is 7, but buf_list has 2: use 0 to 1"
    );
    let jump = ProgramCommand::JumpNotZero {
        variable: 0,
        offset: 9,
    };
    let text = error(|p| p.programs[0].commands.push(jump));
    assert!(text.starts_with("template 0, client program 0, command 2 (jmp_nz): offset 9"));
    let text = error(|p| p.programs[3].commands.clear());
    assert!(
        text.starts_with("program 3 (no template uses it)"),
        "{text}"
    );
}

#[test]
fn a_program_that_never_ends_is_named() {
    let forever = ProgramCommand::Jump {
        offset: 0,
        condition: None,
    };
    let text = error(|p| p.programs[0].commands.push(forever));
    assert!(text.starts_with("template 0, client program 0, command 2 (jmp_cmp): the loop"));
}

#[test]
fn lists_have_something_and_not_too_much() {
    assert!(error(|p| p.templates.clear()).contains("templates is empty"));
    assert!(error(|p| p.programs.clear()).contains("program_list is empty"));
    assert!(error(|p| p.pools.clear()).contains("ip_gen_dist_list is empty"));
    let many = |p: &mut allosaur_engine::template::ProfileSpec| {
        p.templates = vec![p.templates[0].clone(); TEMPLATES_MAX + 1];
    };
    assert!(error(many).contains("the most is 20000"));
    let huge = BufferSpec {
        bytes: Some(1 << 40),
        ..BufferSpec::default()
    };
    assert!(error(|p| p.buffers.push(huge)).contains("buf_list[2] has 1099511627776 bytes"));
}

#[test]
fn pools_must_have_enough_addresses() {
    let swapped = |p: &mut allosaur_engine::template::ProfileSpec| {
        p.pools[1] = pool(9, 8, Side::Server);
    };
    let text = error(swapped);
    assert!(
        text.starts_with("ip_gen_dist_list[1]: ip_end is before ip_start"),
        "{text}"
    );
    let few = on(128, 2).expect_err("254 addresses");
    assert!(
        few.contains("ip_gen_dist_list[0]: the pool has 254 client addresses"),
        "{few}"
    );
    assert!(few.contains("256 data cores"), "{few}");
    assert!(on(127, 2).is_ok());
    let far = on(1, 250).expect_err("too many offsets");
    assert!(far.contains("beyond 255.255.255.255"), "{far}");
}

#[test]
fn servers_may_be_fewer_than_cores() {
    let mut spec = profile();
    spec.pools[1] = pool(5, 5, Side::Server);
    assert!(CompiledProfile::compile(&spec, Layout { cores: 8, pairs: 1 }).is_ok());
}

#[test]
fn cores_in_sequence_need_an_offset_between_pairs() {
    let mut spec = profile();
    spec.pools[0].per_core = PerCore::Sequence;
    spec.pools[0].offset = 100;
    let two = Layout { cores: 1, pairs: 2 };
    let text = CompiledProfile::compile(&spec, two).expect_err("they overlap");
    assert!(text.to_string().contains("ip_offset is too small"));
    assert!(compile(&spec).is_ok());
}

#[test]
fn numbers_of_templates_must_exist() {
    let text = error(|p| p.templates[0].client.program = 4);
    assert!(
        text.contains("template 0: client_template.program_index is 4"),
        "{text}"
    );
    let text = error(|p| p.templates[0].server.program = 1 << 20);
    assert!(
        text.contains("server_template.program_index is 1048576"),
        "{text}"
    );
    let text = error(|p| p.templates[0].client.client_pool = 2);
    assert!(text.contains("dist_client.index is 2"), "{text}");
    let text = error(|p| p.templates[0].client.server_pool = 0);
    assert!(
        text.contains("dist_server.index is 0, which is a pool of the other side"),
        "{text}"
    );
    let text = error(|p| p.templates[0].group = 2);
    assert!(text.contains("tg_id is 2, but the profile has 1"), "{text}");
}

#[test]
fn rates_are_numbers() {
    for rate in [f64::NAN, -1.0, f64::INFINITY] {
        let text = error(|p| p.templates[0].client.rate_cps = rate);
        assert!(text.contains("template 0: client_template.cps"), "{text}");
    }
}

#[test]
fn tcp_does_not_talk_to_udp() {
    let text = error(|p| p.templates[0].server.program = 3);
    assert!(
        text.contains("the client's program is for TCP and the server's for UDP"),
        "{text}"
    );
}

#[test]
fn groups_have_names_and_members() {
    let text = error(|p| p.groups[0] = "x".repeat(21));
    assert!(
        text.contains("tg_names[0]") && text.contains("1 to 20"),
        "{text}"
    );
    assert!(error(|p| p.groups[0].clear()).contains("tg_names[0]"));
    assert!(error(|p| p.groups.push("web".to_owned())).contains("as tg_names[0] is"));
    let choose = ProgramCommand::SetTemplate { group: 1 };
    let text = error(|p| p.programs[1].commands.push(choose));
    assert!(
        text.contains("template 0: its server program chooses template group 1"),
        "{text}"
    );
}

#[test]
fn each_tunable_says_its_range() {
    for row in &TUNABLES {
        for value in [row.min.wrapping_sub(1), row.max + 1] {
            if (row.min..=row.max).contains(&value) {
                continue;
            }
            let text = error(|p| p.server.set(row.tunable, value));
            let start = format!("s_glob_info.{}.{} is {value}; ", row.section, row.name);
            assert!(text.starts_with(&start), "{text}");
            assert!(
                text.ends_with(&format!("{} to {}", row.min, row.max)),
                "{text}"
            );
        }
    }
}

#[test]
fn some_tunables_belong_to_all() {
    let text = error(|p| p.templates[0].client.tunables.set(Tunable::KeepIdle, 10));
    assert_eq!(
        text,
        "templates[0].client_template.glob_info.tcp.keepidle is the same for all templates: set \
         it in c_glob_info"
    );
    let text = error(|p| p.templates[0].server.tunables.set(Tunable::Mss, 0));
    assert!(
        text.starts_with("templates[0].server_template.glob_info.tcp.mss is 0"),
        "{text}"
    );
}

#[test]
fn servers_do_not_share_an_address_and_a_port() {
    let text = error(|p| p.templates.push(template(0, 1, 80)));
    assert_eq!(
        text,
        "template 1: its server range on port 80 overlaps that of template 0: use another port, \
         other addresses, or an l7_map"
    );
    let mut spec = profile();
    spec.templates.push(template(2, 3, 80));
    assert!(compile(&spec).is_ok(), "one is TCP, the other UDP");
    assert!(error(|p| p.templates[0].server.associations.clear()).contains("assoc is empty"));
    let swapped = |p: &mut allosaur_engine::template::ProfileSpec| {
        p.templates[0].server.associations[0].first = 2;
        p.templates[0].server.associations[0].last = 1;
    };
    assert!(error(swapped).contains("assoc of port 80: ip_end is before ip_start"));
}

fn with_map(offsets: &[u8], values: Option<&[u8]>) -> String {
    error(|p| {
        p.templates[0].server.associations[0].l7_map = Some(L7Map {
            offsets: offsets.to_vec(),
            masks: Vec::new(),
            values: values.map(<[u8]>::to_vec),
        });
    })
}

#[test]
fn an_l7_map_makes_sense() {
    assert!(with_map(&[], None).contains("1 to 8"));
    assert!(with_map(&[0, 1, 2, 3, 4, 5, 6, 7, 8], None).contains("has 9 entries"));
    assert!(with_map(&[1, 0], None).contains("ascending"));
    assert!(with_map(&[0, 1], Some(&[7])).contains("2 offsets and 1 values"));
    assert!(
        with_map(&[0, 9], None).contains("looks at byte 9, but the client's first message has 5")
    );
    let silent = error(|p| {
        p.programs[0].commands.swap(0, 1);
        p.templates[0].server.associations[0].l7_map = Some(L7Map {
            offsets: vec![0],
            ..L7Map::default()
        });
    });
    assert!(
        silent.contains("the client does not send first"),
        "{silent}"
    );
}

#[test]
fn servers_told_apart_by_bytes_agree_on_the_rest() {
    let pair = |offsets: &[u8], values: &[u8], mss: u64| {
        error(|p| {
            let map = |offsets: &[u8], values: &[u8]| {
                Some(L7Map {
                    offsets: offsets.to_vec(),
                    masks: Vec::new(),
                    values: Some(values.to_vec()),
                })
            };
            p.templates.push(template(0, 1, 80));
            p.templates[0].server.associations[0].l7_map = map(&[0, 1], b"GE");
            p.templates[1].server.associations[0].l7_map = map(offsets, values);
            p.templates[1].server.tunables.set(Tunable::Mss, mss);
        })
    };
    assert!(pair(&[0, 1], b"GE", 1460).contains("has the same values as that of template 0"));
    assert!(pair(&[0, 2], b"GE", 1460).contains("looks at other bytes than that of template 0"));
    assert!(pair(&[0, 1], b"PO", 500).contains("tcp tunables"));
}
