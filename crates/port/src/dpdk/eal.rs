//! DPDK's environment: one for the whole process, started when the first port needs it.
//!
//! This is global state, and not ours: DPDK can be started once in a process, and it keeps its
//! memory and its list of devices for as long as the process lives.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, OnceLock};

use allosaur_netdev::inventory;

use super::ffi;

/// Memory without hugepages, in MiB; pages are taken from the system as they are used.
const PLAIN_MIB: u64 = 2048;

/// How DPDK was started.
struct Started {
    /// The PCI devices that it was allowed.
    pci: Vec<String>,
    /// Held while devices come and go, which DPDK cannot do by several threads.
    devices: Mutex<()>,
}

/// The right to add, set up and remove devices.
pub(super) struct Eal {
    _devices: MutexGuard<'static, ()>,
}

/// Why something failed: the problem, and the remedy.
pub(super) type Failure = (String, String);

impl Eal {
    /// Starts DPDK, if this is the first time in this process, with these PCI devices (their
    /// addresses in full).
    pub(super) fn start(pci: &[String]) -> Result<Eal, Failure> {
        static STARTED: OnceLock<Result<Started, Failure>> = OnceLock::new();
        let started = STARTED.get_or_init(|| start(pci)).as_ref();
        let started = started.map_err(Failure::clone)?;
        if let Some(new) = pci.iter().find(|address| !started.pci.contains(address)) {
            return Err((
                format!("DPDK was started in this process without the PCI device {new}"),
                "Start another server for it".to_owned(),
            ));
        }
        // Who panicked with the lock held left nothing half done that matters to another device.
        let devices = started.devices.lock();
        Ok(Eal {
            _devices: devices.unwrap_or_else(std::sync::PoisonError::into_inner),
        })
    }

    /// The number of a device, if there is one of this name.
    pub(super) fn find(&self, name: &CStr) -> Option<u16> {
        let mut port = 0;
        // SAFETY: the name ends with a zero, and the number is written to a place of its own.
        let result = unsafe { ffi::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut port) };
        (result == 0).then_some(port)
    }

    /// Makes a device without hardware, or takes one on the PCI bus.
    pub(super) fn add(&self, bus: &CStr, name: &CStr, arguments: &CStr) -> Result<(), String> {
        // SAFETY: all three end with a zero and are copied; the lock is held.
        let result =
            unsafe { ffi::rte_eal_hotplug_add(bus.as_ptr(), name.as_ptr(), arguments.as_ptr()) };
        check(result)
    }

    /// Removes a device that was closed.
    pub(super) fn remove(&self, bus: &CStr, name: &CStr) -> Result<(), String> {
        // SAFETY: both end with a zero; nobody uses the device any more.
        check(unsafe { ffi::rte_eal_hotplug_remove(bus.as_ptr(), name.as_ptr()) })
    }
}

/// What DPDK says of a result below zero.
pub(super) fn check(result: c_int) -> Result<(), String> {
    match result {
        0.. => Ok(()),
        // It says more in its own variable.
        -1 => Err(last_error()),
        error => Err(message(-error)),
    }
}

/// What DPDK says of what failed last on this thread.
pub(super) fn last_error() -> String {
    // SAFETY: reads a number of this thread.
    message(unsafe { ffi::allosaur_dpdk_errno() })
}

fn message(error: c_int) -> String {
    // SAFETY: gives a text that ends with a zero and stays until the next call of this thread.
    let text = unsafe { CStr::from_ptr(ffi::rte_strerror(error)) };
    text.to_string_lossy().into_owned()
}

/// Makes this thread known to DPDK, for as long as it lives. Pools then keep mbufs at hand for it;
/// a thread that DPDK has no place for (it has 128) works, only slower.
#[inline]
pub(super) fn join() {
    struct Known;
    impl Drop for Known {
        fn drop(&mut self) {
            // SAFETY: this thread was made known, and ends.
            unsafe { ffi::rte_thread_unregister() };
        }
    }
    thread_local! {
        static KNOWN: Option<Known> = {
            // SAFETY: DPDK was started before there was a queue that calls this.
            let result = unsafe { ffi::rte_thread_register() };
            (result == 0).then_some(Known)
        };
    }
    // While a thread ends it is no more to be known.
    let _ = KNOWN.try_with(|_| ());
}

fn start(pci: &[String]) -> Result<Started, Failure> {
    inventory::check_memory(pci)?;
    let arguments = arguments(pci);
    // On a thread of its own: DPDK makes the one that starts it its main thread, and binds it to
    // processors.
    let starter = std::thread::Builder::new().name("dpdk-start".to_owned());
    let thread = starter.spawn(move || init(&arguments));
    let thread = thread.map_err(|error| failed_to_start(&error.to_string()))?;
    let result = thread.join().expect("it only calls DPDK");
    result.map_err(|problem| failed_to_start(&problem))?;
    Ok(Started {
        pci: pci.to_vec(),
        devices: Mutex::new(()),
    })
}

fn failed_to_start(problem: &str) -> Failure {
    (
        format!("DPDK does not start: {problem}"),
        "See what it says above; it needs root, or a user who may lock memory".to_owned(),
    )
}

fn init(arguments: &[String]) -> Result<(), String> {
    let owned = arguments.iter().map(|text| CString::new(text.as_str()));
    let owned: Vec<CString> = owned.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let mut pointers: Vec<*mut c_char> = owned.iter().map(|a| a.as_ptr().cast_mut()).collect();
    let count = pointers.len() as c_int;
    pointers.push(std::ptr::null_mut());
    // SAFETY: as many pointers to texts as said, which DPDK reorders and copies, but does not write.
    check(unsafe { ffi::rte_eal_init(count, pointers.as_mut_ptr()) })?;
    // DPDK looks into the list later on.
    std::mem::forget((owned, pointers));
    remove_directory();
    Ok(())
}

/// Removes the directory that DPDK makes for files of its own, and then makes none (`--no-shconf`):
/// so nothing stays behind, however this process ends. Where another program of the same name keeps
/// files, it stays.
fn remove_directory() {
    // SAFETY: DPDK was started: it gives a text that ends with a zero and stays.
    let path = unsafe { CStr::from_ptr(ffi::rte_eal_get_runtime_dir()) };
    // A directory that is not there, or that is not empty, is nothing to report.
    let _ = std::fs::remove_dir(std::ffi::OsStr::from_bytes(path.to_bytes()));
}

/// DPDK's command line.
fn arguments(pci: &[String]) -> Vec<String> {
    let mut arguments = vec![
        "allosaur".to_owned(),
        // One thread of DPDK's own, on no processor in particular.
        "--lcores".to_owned(),
        format!("0@({})", processors()),
        "--file-prefix=allosaur".to_owned(),
        "--no-telemetry".to_owned(),
        "--log-level=*:error".to_owned(),
    ];
    // Either way no file stays behind, and servers share nothing by mistake.
    match inventory::hugepages().suffice() {
        true => arguments.push("--in-memory".to_owned()),
        false => {
            let plain = ["--no-huge", "--no-shconf", "-m"];
            arguments.extend(plain.map(str::to_owned));
            arguments.push(PLAIN_MIB.to_string());
        }
    }
    match pci {
        [] => arguments.push("--no-pci".to_owned()),
        _ => arguments.extend(pci.iter().flat_map(|a| ["-a".to_owned(), a.clone()])),
    }
    arguments
}

/// The processors that this process may use, as DPDK reads lists: `0,1,5`.
fn processors() -> String {
    // SAFETY: all zeros is an empty set, and the call writes as many bytes as it is told.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: the numbers are within the set.
    let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let processors = (0..libc::CPU_SETSIZE as usize).filter(is_in);
    let texts: Vec<String> = processors.map(|cpu| cpu.to_string()).collect();
    texts.join(",")
}
