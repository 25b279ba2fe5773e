//! A small profile that is right, to be made wrong.

use allosaur_engine::app::{BufferSpec, ProgramCommand, ProgramSpec, Transport};
use allosaur_engine::template::{
    AssociationSpec, ClientSpec, CompiledProfile, Distribution, Layout, PerCore, PoolSpec,
    ProfileError, ProfileSpec, ServerSpec, Side, TemplateSpec, TunablesSpec,
};

/// A request and a response over TCP, and the same over UDP by programs 2 and 3.
pub(crate) fn profile() -> ProfileSpec {
    let buffer = |base: &[u8]| BufferSpec {
        base: base.to_vec(),
        ..BufferSpec::default()
    };
    let stream = |commands: &[ProgramCommand]| ProgramSpec {
        commands: commands.to_vec(),
        transport: Transport::Stream,
        addon: None,
    };
    let messages = |commands: &[ProgramCommand]| ProgramSpec {
        transport: Transport::Datagram,
        ..stream(commands)
    };
    let (tx, rx) = (tx(0), rx(3));
    let (tx_msg, rx_msg) = (
        ProgramCommand::SendMessage { buffer: 0 },
        ProgramCommand::ReceiveMessages {
            messages: 1,
            clear: false,
        },
    );
    ProfileSpec {
        buffers: vec![buffer(b"GET /"), buffer(b"200")],
        pools: vec![
            pool(0x1000_0001, 0x1000_00fe, Side::Client),
            pool(0x3000_0001, 0x3000_00fe, Side::Server),
        ],
        programs: vec![
            stream(&[tx, rx]),
            stream(&[self::rx(5), self::tx(1)]),
            messages(&[tx_msg, rx_msg]),
            messages(&[rx_msg, tx_msg]),
        ],
        templates: vec![template(0, 1, 80)],
        client: TunablesSpec::default(),
        server: TunablesSpec::default(),
        groups: vec!["web".to_owned()],
    }
}

pub(crate) fn tx(buffer: u32) -> ProgramCommand {
    ProgramCommand::Send { buffer }
}

pub(crate) fn rx(bytes: u64) -> ProgramCommand {
    ProgramCommand::Receive {
        bytes,
        clear: false,
    }
}

pub(crate) fn pool(first: u32, last: u32, side: Side) -> PoolSpec {
    PoolSpec {
        first,
        last,
        distribution: Distribution::Sequence,
        side,
        offset: 0x0100_0000,
        per_core: PerCore::Default,
        hosts: None,
    }
}

pub(crate) fn template(client: u32, server: u32, port: u16) -> TemplateSpec {
    TemplateSpec {
        client: ClientSpec {
            program: client,
            client_pool: 0,
            server_pool: 1,
            port,
            rate_cps: 2.5,
            limit: None,
            continuous: false,
            core_base: 0,
            tunables: TunablesSpec::default(),
        },
        server: ServerSpec {
            program: server,
            associations: vec![AssociationSpec::port(port)],
            tunables: TunablesSpec::default(),
        },
        group: 0,
    }
}

/// Compiles for one core.
pub(crate) fn compile(spec: &ProfileSpec) -> Result<CompiledProfile, ProfileError> {
    CompiledProfile::compile(spec, Layout::SMALLEST)
}

/// What is wrong with the small profile after a change.
pub(crate) fn error(change: impl FnOnce(&mut ProfileSpec)) -> String {
    let mut spec = profile();
    change(&mut spec);
    compile(&spec)
        .expect_err("the profile is wrong")
        .to_string()
}

/// The small profile after a change that leaves it right.
pub(crate) fn right(change: impl FnOnce(&mut ProfileSpec)) -> CompiledProfile {
    let mut spec = profile();
    change(&mut spec);
    compile(&spec).expect("the profile is right")
}
