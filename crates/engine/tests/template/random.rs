//! Any numbers anywhere: an error or a profile, never a panic.

use allosaur_engine::app::Transport;
use allosaur_engine::template::{
    AssociationSpec, CompiledProfile, L7Map, Layout, ProfileSpec, Server, TUNABLES,
};
use proptest::prelude::*;

use crate::profile::{profile, template, tx};

/// Small numbers, and some that are large.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..4, 1 => any::<u32>()]
}

#[derive(Clone, Debug)]
enum Change {
    Template(u32, u32, u16),
    Pool(usize, u32, u32, u32),
    ClientPool(u32),
    ServerPool(u32),
    Group(u32),
    Send(u32),
    Tunable(usize, u64),
    OwnTunable(usize, u64),
    Association(u16, u32, u32),
    Map(Vec<u8>, Vec<u8>, Option<Vec<u8>>),
    Rate(f64),
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = || prop::collection::vec(0_u8..6, 0..4);
    prop_oneof![
        (number(), number(), 79_u16..82).prop_map(|(c, s, port)| Change::Template(c, s, port)),
        (0_usize..2, any::<u32>(), any::<u32>(), any::<u32>())
            .prop_map(|(i, a, b, offset)| Change::Pool(i, a, b, offset)),
        number().prop_map(Change::ClientPool),
        number().prop_map(Change::ServerPool),
        number().prop_map(Change::Group),
        number().prop_map(Change::Send),
        (0..TUNABLES.len(), 0_u64..2000).prop_map(|(i, value)| Change::Tunable(i, value)),
        (0..TUNABLES.len(), any::<u64>()).prop_map(|(i, value)| Change::OwnTunable(i, value)),
        (79_u16..82, any::<u32>(), any::<u32>())
            .prop_map(|(port, a, b)| Change::Association(port, a, b)),
        (bytes(), bytes(), prop::option::of(bytes()))
            .prop_map(|(offsets, masks, values)| Change::Map(offsets, masks, values)),
        any::<f64>().prop_map(Change::Rate),
    ]
}

fn apply(spec: &mut ProfileSpec, change: Change) {
    let last = spec.templates.len() - 1;
    let (client, server) = {
        let template = &mut spec.templates[last];
        (&mut template.client, &mut template.server)
    };
    match change {
        Change::Template(c, s, port) => spec.templates.push(template(c, s, port)),
        Change::Pool(i, a, b, offset) => {
            (spec.pools[i].first, spec.pools[i].last) = (a.min(b), a.max(b));
            spec.pools[i].offset = offset;
        }
        Change::ClientPool(pool) => client.client_pool = pool,
        Change::ServerPool(pool) => client.server_pool = pool,
        Change::Group(group) => spec.templates[last].group = group,
        Change::Send(buffer) => spec.programs[0].commands.push(tx(buffer)),
        Change::Tunable(i, value) => spec.client.set(TUNABLES[i].tunable, value),
        Change::OwnTunable(i, value) => server.tunables.set(TUNABLES[i].tunable, value),
        Change::Association(port, first, last) => server.associations.push(AssociationSpec {
            port,
            first,
            last,
            l7_map: None,
        }),
        Change::Map(offsets, masks, values) => {
            server.associations[0].l7_map = Some(L7Map {
                offsets,
                masks,
                values,
            });
        }
        Change::Rate(rate) => client.rate_cps = rate,
    }
}

proptest! {
    #[test]
    fn any_profile_is_an_error_or_right(
        changes in prop::collection::vec(change(), 0..6),
        cores in 1_u32..5,
        pairs in 1_u32..3,
        address in any::<u32>(),
        payload in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let mut spec = profile();
        for change in changes {
            apply(&mut spec, change);
        }
        let compiled = match CompiledProfile::compile(&spec, Layout { cores, pairs }) {
            Ok(compiled) => compiled,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                return Ok(());
            }
        };
        for port in 79..82 {
            for transport in [Transport::Stream, Transport::Datagram] {
                let found = compiled.servers().find(transport, port, address);
                let by_bytes = compiled.servers().by_payload(transport, port, address, &payload);
                match found {
                    Some(Server::Template(template)) => prop_assert_eq!(by_bytes, Some(template)),
                    Some(Server::Payload(template)) => {
                        prop_assert!(usize::from(template.0) < compiled.templates().len());
                    }
                    None => prop_assert_eq!(by_bytes, None),
                }
            }
        }
    }
}
