//! Faults that a device on the way makes: it looks into frames, loses them, changes them, and
//! makes up others.
//!
//! | what | where |
//! |---|---|
//! | the names of faults | here |
//! | the device | `device` |

mod device;

use std::fmt;
use std::str::FromStr;

pub(super) use device::Device;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The first SYN of a flow is lost.
    SynLost,
    /// The first answer to a SYN is lost.
    SynAckLost,
    /// SYNs are answered by a reset, and go nowhere.
    SynRefused,
    /// Each SYN is answered by a reset that is for another one; it is to be ignored.
    SynBlindReset,
    /// A flow goes to port 1 of the server.
    WrongPort,
    /// Both sides are told in the middle that the other one has reset the flow.
    ResetMiddle,
    /// Only the client is told.
    ResetClient,
    /// Only the server is told.
    ResetServer,
    /// Both sides get resets with a number that is only near; they are to be ignored.
    BlindReset,
    /// The first FIN of each side is lost.
    FinLost,
    /// From some segment on, nothing arrives any more.
    Silence,
    /// Frames are cut short.
    Truncate,
    /// A bit of a frame behind the Ethernet header is wrong.
    Corrupt,
    /// Frames have bytes behind their packet.
    Pad,
}

/// A row of the table of faults.
struct Row {
    fault: Fault,
    name: &'static str,
    /// How often, when nobody says.
    share: f64,
}

const fn row(fault: Fault, name: &'static str, share: f64) -> Row {
    Row { fault, name, share }
}

const ROWS: [Row; Fault::COUNT] = [
    row(Fault::SynLost, "syn-lost", 1.0),
    row(Fault::SynAckLost, "syn-ack-lost", 1.0),
    row(Fault::SynRefused, "syn-refused", 1.0),
    row(Fault::SynBlindReset, "syn-blind-reset", 1.0),
    row(Fault::WrongPort, "wrong-port", 1.0),
    row(Fault::ResetMiddle, "reset-middle", 1.0),
    row(Fault::ResetClient, "reset-client", 1.0),
    row(Fault::ResetServer, "reset-server", 1.0),
    row(Fault::BlindReset, "blind-reset", 1.0),
    row(Fault::FinLost, "fin-lost", 1.0),
    row(Fault::Silence, "silence", 1.0),
    row(Fault::Truncate, "truncate", 0.01),
    row(Fault::Corrupt, "corrupt", 0.01),
    row(Fault::Pad, "pad", 1.0),
];

impl Fault {
    /// How many there are.
    pub const COUNT: usize = 14;
    /// All of them.
    pub const ALL: [Fault; Fault::COUNT] = {
        let mut all = [Fault::SynLost; Fault::COUNT];
        let mut i = 0;
        while i < all.len() {
            all[i] = ROWS[i].fault;
            i += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        let row = &ROWS[self as usize];
        debug_assert!(row.fault == self, "rows are in the order of faults");
        row
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is a matter of single frames, and not of flows.
    pub fn is_of_frames(self) -> bool {
        matches!(self, Fault::Truncate | Fault::Corrupt | Fault::Pad)
    }

    /// Whether flows may end by it that would not have ended without.
    pub fn may_cut(self) -> bool {
        use Fault::*;
        matches!(
            self,
            SynRefused | WrongPort | ResetMiddle | ResetClient | ResetServer | Silence
        )
    }
}

/// A fault, and how often: a share of flows, or of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultShare {
    /// Which.
    pub fault: Fault,
    /// From 0 to 1.
    pub share: f64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FaultShare {
    type Err = String;

    /// `NAME`, or `NAME:SHARE`.
    fn from_str(text: &str) -> Result<FaultShare, String> {
        let (name, share) = match text.split_once(':') {
            Some((name, share)) => (name, Some(share)),
            None => (text, None),
        };
        let row = ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            format!("'{name}' is no fault; there are {}", names.join(", "))
        })?;
        let share = match share {
            None => Some(row.share),
            Some(share) => share
                .parse()
                .ok()
                .filter(|share| (0.0..=1.0).contains(share)),
        };
        let share =
            share.ok_or_else(|| format!("'{text}': write a share of 0 to 1 behind {name}:"))?;
        Ok(FaultShare {
            fault: row.fault,
            share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_names_and_shares() {
        for fault in Fault::ALL {
            let read: FaultShare = fault.name().parse().expect("a name");
            assert_eq!(
                (read.fault, fault.to_string()),
                (fault, read.fault.to_string())
            );
        }
        let read: FaultShare = "reset-middle:0.25".parse().expect("name and share");
        assert_eq!((read.fault, read.share), (Fault::ResetMiddle, 0.25));
        let error = "reset-midle".parse::<FaultShare>().expect_err("mistyped");
        assert!(error.contains("syn-lost, syn-ack-lost"), "{error}");
        for wrong in ["pad:", "pad:2", "pad:-1", "pad:x", "pad:nan"] {
            let error = wrong.parse::<FaultShare>().expect_err("no share");
            assert!(error.contains("a share of 0 to 1"), "{error}");
        }
    }
}
