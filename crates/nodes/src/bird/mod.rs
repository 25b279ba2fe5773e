//! The routing daemon BIRD, versions 2 and 3, in a namespace of its own.
//!
//! The thread that [starts](Bird::start) it is taken into the namespace for good, and BIRD ends with that
//! thread. Drive it like this: when its [`exit_file`](Bird::exit_file) is readable or the time of
//! [`poll_timeout`](Bird::poll_timeout) has come, [`supervise`](Bird::supervise).

mod control_socket;
mod next_hop;

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use allosaur_netdev::child;
use allosaur_netdev::netlink_batch::NetlinkBatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use self::control_socket::{ControlSocket, Reply};
pub use self::next_hop::unreachable_next_hops;
use crate::error::NodesError;
use crate::owner::Owner;
use crate::port_nodes::{LOOPBACK, open_netlink};

/// What BIRD begins with: no routes, and interfaces that it looks at every second. Without an interface
/// it has no router id unless it is given one.
pub const EMPTY_CONFIG: &str =
    "router id 100.100.100.100;\nprotocol device {\n    scan time 1;\n}\n";

/// Where the program is, besides the folders of PATH.
const SYSTEM_FOLDERS: &str = "/usr/sbin:/usr/local/sbin:/sbin";
/// How long BIRD may take to read its configuration before it answers.
const START_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether it answers.
const START_INTERVAL: Duration = Duration::from_millis(10);
/// How long it may take to say farewell to its peers.
const END_MAX: Duration = Duration::from_secs(2);
/// The wait before the first restart, which doubles with each that fails; and the longest.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Who has run so long has not failed to start.
const SETTLED: Duration = Duration::from_secs(10);
/// After so many failures in a row the configuration is held to be the cause.
const FAILURES_MAX: u32 = 6;

/// BIRD, and how it is doing.
#[derive(Debug)]
pub struct Bird {
    program: PathBuf,
    folder: PathBuf,
    version: String,
    /// The configuration that it took last.
    config: String,
    process: Option<Process>,
    restarts: u64,
    /// Of restarts in a row.
    failures: u32,
    /// The configuration was held to be the cause of so many failures, and is the empty one.
    has_given_up: bool,
    restart_at: Option<Instant>,
}

/// The process that runs.
#[derive(Debug)]
struct Process {
    child: Child,
    exit_file: OwnedFd,
    started: Instant,
}

/// How BIRD is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BirdState {
    /// It runs with the configuration that it was given.
    Running,
    /// It has ended, and is started again.
    Restarting,
    /// So many restarts in a row failed that it has the empty configuration now, until it is given another.
    ConfigGivenUp,
}

impl BirdState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            BirdState::Running => "running",
            BirdState::Restarting => "restarting",
            BirdState::ConfigGivenUp => "config_given_up",
        }
    }
}

/// What came of a new configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configured {
    /// BIRD has it.
    Taken,
    /// BIRD keeps the one that it had; why, in its words.
    Refused(String),
}

impl Bird {
    /// Starts it in a new namespace, which `owner` has from then on; this thread is inside.
    ///
    /// # Errors
    ///
    /// It is not installed, a privilege is missing, and what else the system says.
    pub fn start(owner: &mut Owner, now: Instant) -> Result<Bird, NodesError> {
        let program = installed()?;
        let version = version_of(&program)?;
        owner.make_bird(|| {
            let mut batch = NetlinkBatch::default();
            batch.set_up(LOOPBACK);
            Ok(open_netlink()?.apply(&batch)?)
        })?;
        let folder = owner.bird_folder();
        let refused = |error| NodesError::refused("write to /run/allosaur", error);
        fs::create_dir_all(&folder).map_err(refused)?;
        if let Some(namespace) = owner.bird() {
            namespace.enter()?;
        }
        let mut bird = Bird {
            program,
            folder,
            version,
            config: EMPTY_CONFIG.to_owned(),
            process: None,
            restarts: 0,
            failures: 0,
            has_given_up: false,
            restart_at: None,
        };
        fs::write(bird.config_file(), &bird.config).map_err(refused)?;
        bird.spawn(now)?;
        Ok(bird)
    }

    /// Its version, such as `2.0.12`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The configuration that it has, or will have when it is started again.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// How often it ended and was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// How it is doing.
    pub fn state(&self) -> BirdState {
        match (self.has_given_up, &self.process) {
            (true, _) => BirdState::ConfigGivenUp,
            (false, Some(_)) => BirdState::Running,
            (false, None) => BirdState::Restarting,
        }
    }

    /// The process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// A file that is readable when it has ended; none while it is not running.
    pub fn exit_file(&self) -> Option<RawFd> {
        let process = self.process.as_ref();
        process.map(|process| process.exit_file.as_raw_fd())
    }

    /// When it is to be started again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.restart_at
    }

    /// Looks whether it has ended, and starts it again when that is due. What happened, for the log.
    pub fn supervise(&mut self, now: Instant) -> Option<String> {
        if let Some(ended) = self.take_ended(now) {
            return Some(ended);
        }
        if self.restart_at.is_none_or(|at| now < at) {
            return None;
        }
        Some(match self.restart(now) {
            Ok(()) if self.has_given_up => format!(
                "BIRD was started again ({}), with the empty configuration: with the one that it had it \
                 ended {FAILURES_MAX} times in a row",
                self.restarts
            ),
            Ok(()) => format!(
                "BIRD was started again, with the configuration that it had ({})",
                self.restarts
            ),
            Err(error) => format!("BIRD was not started again: {error}"),
        })
    }

    /// Gives it another configuration.
    ///
    /// # Errors
    ///
    /// It does not run, or does not answer. What it refuses is no error.
    pub fn configure(&mut self, text: &str, now: Instant) -> Result<Configured, NodesError> {
        let mut control = self.control(now)?;
        let new = self.folder.join("new.conf");
        let refused = |error| NodesError::refused("write to /run/allosaur", error);
        fs::write(&new, text).map_err(refused)?;
        let checked = control.ask(&format!("configure check \"{}\"", new.display()))?;
        if let Some(why) = checked.refusal() {
            let _ = fs::remove_file(&new);
            return Ok(Configured::Refused(named_simply(&why, &new)));
        }
        let file = self.config_file();
        fs::rename(&new, &file).map_err(refused)?;
        let taken = control.ask(&format!("configure \"{}\"", file.display()))?;
        if let Some(why) = taken.refusal() {
            fs::write(&file, &self.config).map_err(refused)?;
            return Ok(Configured::Refused(named_simply(&why, &file)));
        }
        text.clone_into(&mut self.config);
        self.has_given_up = false;
        Ok(Configured::Taken)
    }

    /// Its protocols, as `birdc show protocols` shows them.
    ///
    /// # Errors
    ///
    /// It does not run, or does not answer.
    pub fn protocols(&mut self, now: Instant) -> Result<String, NodesError> {
        Ok(self.control(now)?.ask("show protocols")?.text())
    }

    fn config_file(&self) -> PathBuf {
        self.folder.join("bird.conf")
    }

    fn socket_file(&self) -> PathBuf {
        self.folder.join("bird.ctl")
    }

    /// A connection to it. One that has ended is started first: who asks does not wait for its turn.
    fn control(&mut self, now: Instant) -> Result<ControlSocket, NodesError> {
        if let Ok(control) = ControlSocket::connect(&self.socket_file()) {
            return Ok(control);
        }
        if self.has_ended(now) {
            self.restart(now)?;
        }
        ControlSocket::connect(&self.socket_file())
    }

    /// Whether it is not running. One that does not listen any more is given the time to be gone.
    fn has_ended(&mut self, now: Instant) -> bool {
        let begun = Instant::now();
        while self.process.is_some() && self.take_ended(now).is_none() {
            if begun.elapsed() > END_MAX {
                return false;
            }
            thread::sleep(START_INTERVAL);
        }
        true
    }

    fn spawn(&mut self, now: Instant) -> Result<(), NodesError> {
        let refused = |error| NodesError::refused("start BIRD", error);
        let _ = fs::remove_file(self.socket_file());
        let mut command = Command::new(&self.program);
        command
            .arg("-f")
            .arg("-c")
            .arg(self.config_file())
            .arg("-s")
            .arg(self.socket_file())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = child::end_with_thread(&mut command)
            .spawn()
            .map_err(refused)?;
        let exit_file = child::watch(&child).map_err(refused)?;
        let mut process = Process {
            child,
            exit_file,
            started: now,
        };
        self.wait_until_it_answers(&mut process)?;
        self.process = Some(process);
        self.restart_at = None;
        Ok(())
    }

    fn wait_until_it_answers(&self, process: &mut Process) -> Result<(), NodesError> {
        let begun = Instant::now();
        while ControlSocket::connect(&self.socket_file()).is_err() {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(NodesError::Unfit(format!("BIRD ended at once ({status})")));
            }
            if begun.elapsed() > START_MAX {
                process.end();
                let waited = START_MAX.as_secs();
                return Err(NodesError::Unfit(format!(
                    "BIRD did not answer within {waited} s"
                )));
            }
            thread::sleep(START_INTERVAL);
        }
        Ok(())
    }

    /// Notes that it has ended, if it has; how.
    fn take_ended(&mut self, now: Instant) -> Option<String> {
        let process = self.process.as_mut()?;
        let status = process.child.try_wait().ok()??;
        if now.duration_since(process.started) >= SETTLED {
            self.failures = 0;
        }
        self.process = None;
        self.restart_at = Some(now + self.backoff());
        Some(format!("BIRD has ended ({status}): it is started again"))
    }

    fn restart(&mut self, now: Instant) -> Result<(), NodesError> {
        self.restarts += 1;
        self.failures += 1;
        if self.failures > FAILURES_MAX {
            self.config = EMPTY_CONFIG.to_owned();
            self.has_given_up = true;
        }
        let written = fs::write(self.config_file(), &self.config);
        let started = written
            .map_err(|error| NodesError::refused("write to /run/allosaur", error))
            .and_then(|()| self.spawn(now));
        if started.is_err() {
            self.restart_at = Some(now + self.backoff());
        }
        started
    }

    fn backoff(&self) -> Duration {
        (BACKOFF * 2_u32.pow(self.failures.min(FAILURES_MAX + 1))).min(BACKOFF_MAX)
    }
}

impl Process {
    /// Lets it say farewell, and ends it.
    fn end(&mut self) {
        let process = i32::try_from(self.child.id()).map(Pid::from_raw);
        if let Ok(process) = process {
            let _ = kill(process, Signal::SIGTERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < END_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(START_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The text without the folder of the file that it is about.
fn named_simply(text: &str, file: &Path) -> String {
    text.replace(&file.display().to_string(), "bird.conf")
}

/// Where BIRD is.
fn installed() -> Result<PathBuf, NodesError> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(SYSTEM_FOLDERS.split(':'));
    let mut programs = folders.map(|folder| Path::new(folder).join("bird"));
    programs.find(|program| program.is_file()).ok_or_else(|| {
        NodesError::Unfit(
            "BIRD is not installed: `sudo apt-get install bird2`, or start without --bird-server \
             ('bird_port' in the configuration)"
                .to_owned(),
        )
    })
}

fn version_of(program: &Path) -> Result<String, NodesError> {
    let output = Command::new(program).arg("--version").output();
    let Output { stdout, stderr, .. } =
        output.map_err(|error| NodesError::refused("start BIRD", error))?;
    let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    let version = text
        .trim()
        .rsplit(' ')
        .next()
        .unwrap_or_default()
        .to_owned();
    match version.starts_with(['2', '3']) {
        true => Ok(version),
        false => Err(NodesError::Unfit(format!(
            "{} is '{}', and versions 2 and 3 of BIRD are supported: install bird2 or bird3",
            program.display(),
            text.trim()
        ))),
    }
}

impl Reply {
    /// Why it was refused, if it was.
    fn refusal(&self) -> Option<String> {
        (!self.is_success()).then(|| self.text())
    }
}
