//! The bpf(2) system call: the XDP program, its map of sockets, and its tie to an interface.
//!
//! Layouts are those of `include/uapi/linux/bpf.h`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

/// What the program is called in listings of the kernel.
const NAME: &[u8] = b"allosaur";

const BPF_MAP_CREATE: c_int = 0;
const BPF_MAP_UPDATE_ELEM: c_int = 2;
const BPF_PROG_LOAD: c_int = 5;
const BPF_PROG_GET_FD_BY_ID: c_int = 13;
const BPF_OBJ_GET_INFO_BY_FD: c_int = 15;
const BPF_LINK_CREATE: c_int = 28;

const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
/// The kind of attachment.
const BPF_XDP: u32 = 37;

/// Where `rx_queue_index` stands in `struct xdp_md`.
const QUEUE_INDEX_OFFSET: i16 = 16;
/// The frame goes on to the kernel's network stack.
const XDP_PASS: i32 = 2;
/// `bpf_redirect_map`: to the socket in the map, and if there is none what its flags say.
const REDIRECT_MAP: i32 = 51;
/// Of a load: what follows is a map's descriptor.
const PSEUDO_MAP_FD: u8 = 1;

/// One instruction: `struct bpf_insn`.
type Instruction = [u8; 8];

/// An instruction, of the registers and numbers that it has.
fn instruction(code: u8, target: u8, source: u8, offset: i16, number: i32) -> Instruction {
    let registers = match cfg!(target_endian = "little") {
        true => source << 4 | target,
        false => target << 4 | source,
    };
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = number.to_ne_bytes();
    [code, registers, a, b, c, d, e, f]
}

/// `return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)`
fn program(map: c_int) -> [Instruction; 6] {
    [
        // r2 = *(u32 *)(r1 + 16)
        instruction(0x61, 2, 1, QUEUE_INDEX_OFFSET, 0),
        // r1 = map, in two parts
        instruction(0x18, 1, PSEUDO_MAP_FD, 0, map),
        instruction(0, 0, 0, 0, 0),
        // r3 = XDP_PASS
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        // call
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        // exit
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// A name as the kernel keeps it.
fn kernel_name() -> [u8; 16] {
    let mut name = [0; 16];
    name[..NAME.len()].copy_from_slice(NAME);
    name
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    program_fd: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct FdById {
    id: u32,
    next_id: u32,
    flags: u32,
}

#[repr(C)]
struct InfoByFd {
    fd: u32,
    info_len: u32,
    info: u64,
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
struct ProgramInfo {
    before_name: [u64; 8],
    name: [u8; 16],
}

const _: () = assert!(size_of::<ProgramLoad>() == 72);
const _: () = assert!(size_of::<MapUpdate>() == 32);
const _: () = assert!(std::mem::offset_of!(ProgramInfo, name) == 64);

/// One call. Returns what the kernel answers, 0 or a descriptor.
///
/// # Safety
///
/// `A` is the kernel's layout of what `command` takes, from its start; what its fields point to
/// lives until the call returns.
unsafe fn bpf<A>(command: c_int, attributes: &mut A) -> io::Result<c_int> {
    let address = std::ptr::from_mut(attributes);
    // SAFETY: the kernel reads and writes at most as many bytes as it is told; for what they point to
    // the caller answers.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<A>()) };
    match answer {
        0.. => Ok(answer as c_int),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes over a descriptor that a call has made.
///
/// # Safety
///
/// The descriptor is new and nobody else's.
unsafe fn owned(descriptor: c_int) -> OwnedFd {
    // SAFETY: the caller answers for it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// The map from the numbers of hardware queues to sockets.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// An empty one for queues 0 to `queues - 1`.
    pub(super) fn new(queues: u32) -> io::Result<SocketMap> {
        let mut attributes = MapCreate {
            map_type: BPF_MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            map_flags: 0,
            inner_map_fd: 0,
            numa_node: 0,
            map_name: kernel_name(),
        };
        // SAFETY: the layout is that of BPF_MAP_CREATE, which points to nothing; it makes a new
        // descriptor.
        unsafe { bpf(BPF_MAP_CREATE, &mut attributes).map(|map| SocketMap(owned(map))) }
    }

    /// What arrives on a queue goes to this socket from now on.
    pub(super) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let socket = socket.as_raw_fd() as u32;
        let mut attributes = MapUpdate {
            map_fd: self.0.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&queue) as u64,
            value: std::ptr::from_ref(&socket) as u64,
            flags: 0,
        };
        // SAFETY: the layout is that of BPF_MAP_UPDATE_ELEM; key and value are as long as the map was
        // told, and outlive the call.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop) }
    }
}

/// The program, in the kernel.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads it; it looks sockets up in `map`.
    pub(super) fn load(map: &SocketMap) -> io::Result<Program> {
        let instructions = program(map.0.as_raw_fd());
        let license = c"Apache-2.0";
        let mut attributes = ProgramLoad {
            program_type: BPF_PROG_TYPE_XDP,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: kernel_name(),
            interface: 0,
            expected_attach_type: BPF_XDP,
        };
        // SAFETY: the layout is that of BPF_PROG_LOAD; instructions and license outlive the call,
        // which makes a new descriptor.
        unsafe { bpf(BPF_PROG_LOAD, &mut attributes).map(|program| Program(owned(program))) }
    }

    /// Ties it to an interface. It runs for what arrives there until the link is dropped, or this
    /// process ends, however it ends.
    pub(super) fn attach(&self, interface: c_int, flags: u32) -> io::Result<Link> {
        let mut attributes = LinkCreate {
            program_fd: self.0.as_fd().as_raw_fd() as u32,
            interface: interface as u32,
            attach_type: BPF_XDP,
            flags,
        };
        // SAFETY: the layout is that of BPF_LINK_CREATE, which points to nothing; it makes a new
        // descriptor.
        unsafe { bpf(BPF_LINK_CREATE, &mut attributes).map(|link| Link(owned(link))) }
    }
}

/// The tie of a program to an interface.
#[derive(Debug)]
pub(super) struct Link(#[expect(dead_code, reason = "it is there to be closed")] OwnedFd);

/// The name of a program that is in the kernel, if we may see it.
pub(super) fn name_of(program: u32) -> Option<String> {
    let mut attributes = FdById {
        id: program,
        next_id: 0,
        flags: 0,
    };
    // SAFETY: the layout is that of BPF_PROG_GET_FD_BY_ID, which points to nothing; it makes a new
    // descriptor.
    let program = unsafe { bpf(BPF_PROG_GET_FD_BY_ID, &mut attributes).map(|fd| owned(fd)) };
    let program = program.ok()?;
    let mut info = ProgramInfo {
        before_name: [0; 8],
        name: [0; 16],
    };
    let mut attributes = InfoByFd {
        fd: program.as_raw_fd() as u32,
        info_len: size_of::<ProgramInfo>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: the layout is that of BPF_OBJ_GET_INFO_BY_FD; the kernel writes at most `info_len` bytes
    // of numbers and letters to what outlives the call.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes) }.ok()?;
    let name = info.name.split(|letter| *letter == 0).next()?;
    let name = String::from_utf8_lossy(name).into_owned();
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_program_is_as_an_assembler_writes_it() {
        let expected: [u64; 6] = [
            0x0000_0000_0010_1261,
            0x0000_0007_0000_1118,
            0,
            0x0000_0002_0000_03b7,
            0x0000_0033_0000_0085,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(program(7).map(u64::from_le_bytes), expected);
    }
}
