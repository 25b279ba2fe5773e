//! Texts of which each connection draws one.

use allosaur_engine::app::{
    Action, BufferIndex, BufferSpec, Buffers, DRAWN_FIRST, DrawListSpec, DrawSpec, DrawnSpec,
    DrawsSpec, Program, ProgramCommand, ProgramSpec, Surroundings, Transport, VARIANTS_MAX,
};
use allosaur_packet::network::checksum::Sum;
use proptest::prelude::*;

use crate::runner::Runner;

fn list(values: &[&str], is_random: bool) -> DrawListSpec {
    DrawListSpec {
        values: values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect(),
        is_random,
    }
}

fn drawn(buffer: u32, draws: &[(u64, u32)]) -> DrawnSpec {
    DrawnSpec {
        place: "here".to_owned(),
        buffer,
        draws: draws
            .iter()
            .map(|&(offset, list)| DrawSpec { offset, list })
            .collect(),
    }
}

fn request() -> BufferSpec {
    BufferSpec {
        base: b"GET / agent=------ host=---.".to_vec(),
        bytes: Some(40),
        fill: b"!".to_vec(),
    }
}

fn lists() -> Vec<DrawListSpec> {
    vec![
        list(&["curl  ", "wget  ", "lynx  "], false),
        list(&["abc", "xyz"], true),
    ]
}

/// A client that sends its request twice on each connection.
fn client(buffers: &Buffers, transport: Transport) -> Program {
    let buffer = DRAWN_FIRST;
    let command = match transport {
        Transport::Stream => ProgramCommand::Send { buffer },
        Transport::Datagram => ProgramCommand::SendMessage { buffer },
    };
    let spec = ProgramSpec {
        commands: vec![command, command],
        transport,
        addon: None,
    };
    let surroundings = Surroundings { buffers, groups: 0 };
    Program::compile(&spec, surroundings).expect("a right program")
}

fn text(buffers: &Buffers, buffer: BufferIndex) -> String {
    let mut bytes = vec![0; buffers.len(buffer) as usize];
    buffers.copy_to(buffer, 0, &mut bytes);
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn each_connection_draws_once_and_in_order_where_it_shall() {
    let draws = DrawsSpec {
        lists: lists(),
        buffers: vec![drawn(0, &[(12, 0), (24, 1)])],
    };
    let buffers = Buffers::with_draws(&[request()], &draws).expect("it is right");
    let program = client(&buffers, Transport::Stream);
    assert_eq!(program.sent_bytes(), 80);
    let mut runner = Runner::new(program);
    let mut hosts = [0; 2];
    for connection in 0..300 {
        runner.application = allosaur_engine::app::ProgramRun::start(&runner.program);
        let [Action::Send { buffer: first }] = runner.drain()[..] else {
            panic!("it sends");
        };
        let again = runner.after(|application| application.handle_acknowledged());
        assert_eq!(again, [Action::Send { buffer: first }]);
        let said = text(&buffers, first);
        let agent = ["curl", "wget", "lynx"][connection % 3];
        let is_abc = said.contains("host=abc");
        let host = if is_abc { "abc" } else { "xyz" };
        hosts[usize::from(is_abc)] += 1;
        assert_eq!(
            said,
            format!("GET / agent={agent}   host={host}.!!!!!!!!!!!!")
        );
        runner.application.release(&mut runner.variables);
    }
    assert!(
        hosts.iter().all(|count| (100..=200).contains(count)),
        "{hosts:?}"
    );
    assert_eq!(runner.variables.used(), 0);
}

#[test]
fn messages_draw_too_and_one_list_gives_one_text() {
    let draws = DrawsSpec {
        lists: lists(),
        buffers: vec![drawn(0, &[(0, 1), (3, 1)])],
    };
    let buffers = Buffers::with_draws(&[request()], &draws).expect("it is right");
    let mut runner = Runner::new(client(&buffers, Transport::Datagram));
    let actions = runner.drain();
    let [
        Action::SendMessage { buffer },
        Action::SendMessage { buffer: again },
        Action::Close,
    ] = actions[..]
    else {
        panic!("two messages: {actions:?}");
    };
    assert_eq!(buffer, again);
    let said = text(&buffers, buffer);
    assert!(
        said.starts_with("abcabc") || said.starts_with("xyzxyz"),
        "{said}"
    );
}

#[test]
fn too_many_combinations_are_refused() {
    let values: Vec<String> = (0..2000).map(|i| format!("{i:04}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let draws = DrawsSpec {
        lists: vec![list(&values, true), list(&values, false)],
        buffers: vec![drawn(0, &[(0, 0), (4, 1)])],
    };
    let error = Buffers::with_draws(&[request()], &draws).expect_err("four millions");
    let text = error.to_string();
    assert!(
        text.starts_with("here: what is drawn has 4000000 combinations"),
        "{text}"
    );
    assert!(text.contains(&VARIANTS_MAX.to_string()), "{text}");
    let error = Buffers::with_draws(
        &[],
        &DrawsSpec {
            lists: Vec::new(),
            ..draws
        },
    );
    assert!(
        error
            .expect_err("no buffer")
            .to_string()
            .contains("buf_index is 0")
    );
}

proptest! {
    #[test]
    fn variants_are_their_buffer_with_the_texts_over_it(
        bytes in 20_u64..3000,
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 5), 1..4),
        at in 0_u64..15,
        variant in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let plain = BufferSpec { base: b"0123456789".to_vec(), bytes: Some(bytes), fill: Vec::new() };
        let variants = texts.len();
        let draws = DrawsSpec {
            lists: vec![DrawListSpec { values: texts.clone(), is_random: false }],
            buffers: vec![drawn(1, &[(at, 0)]), drawn(0, &[(at, 0)])],
        };
        let specs = [plain, request()];
        let buffers = Buffers::with_draws(&specs, &draws).expect("they fit");
        let variant = variant.index(variants);
        // The variants of the first drawn buffer come first.
        let index = BufferIndex((2 + variants + variant) as u32);
        prop_assert_eq!(u64::from(buffers.len(index)), bytes);
        let mut whole = vec![0; bytes as usize];
        buffers.copy_to(BufferIndex(0), 0, &mut whole);
        whole[at as usize..at as usize + 5].copy_from_slice(&texts[variant]);
        let (a, b) = (from.index(whole.len() + 1), to.index(whole.len() + 1));
        let (from, to) = (a.min(b), a.max(b));
        let mut slice = vec![0; to - from];
        buffers.copy_to(index, from as u32, &mut slice);
        prop_assert!(slice == whole[from..to]);
        let header = Sum::default().and_u16(0x4500);
        let sum = buffers.sum(index, from as u32, (to - from) as u32);
        prop_assert_eq!(header.and_sum(sum).checksum(), header.and(&slice).checksum());
    }
}
