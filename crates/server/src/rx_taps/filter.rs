//! Filters: which frames somebody wants, in the language of tcpdump.

use std::fmt;

use pcap::{BpfProgram, Linktype};
use thiserror::Error;

/// Longest text of a filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 4096;

/// A filter of frames; the empty one takes all.
pub struct Filter {
    text: String,
    program: Option<BpfProgram>,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// The text is too long.
    #[error("the filter has {0} bytes; the most is {FILTER_BYTES_MAX}")]
    TooLong(usize),
    /// The compiler does not understand it.
    #[error(
        "the filter '{text}' does not compile: {problem}. Write it as for tcpdump, for example \
         'udp and dst port 53'"
    )]
    Syntax {
        /// The filter.
        text: String,
        /// What the compiler says.
        problem: String,
    },
}

impl Filter {
    /// Compiles a text for Ethernet frames.
    pub fn compile(text: &str) -> Result<Filter, FilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::TooLong(text.len()));
        }
        let program = match text.trim() {
            "" => None,
            text => Some(compile(text).map_err(|problem| FilterError::Syntax {
                text: text.to_owned(),
                problem,
            })?),
        };
        Ok(Filter {
            text: text.to_owned(),
            program,
        })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it takes a frame.
    pub fn matches(&self, frame: &[u8]) -> bool {
        let program = self.program.as_ref();
        program.is_none_or(|program| program.filter(frame))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

fn compile(text: &str) -> Result<BpfProgram, String> {
    let text_of = |error: pcap::Error| match error {
        pcap::Error::PcapError(text) => text,
        other => other.to_string(),
    };
    let ethernet = pcap::Capture::dead(Linktype::ETHERNET).map_err(text_of)?;
    ethernet.compile(text, true).map_err(text_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from port 1025 to port 12, without payload, perhaps with a VLAN tag.
    fn udp(vlan: Option<u16>) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if let Some(tag) = vlan {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0]);
        frame.extend([16, 0, 0, 1, 48, 0, 0, 1, 4, 1, 0, 12, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn filters_take_what_tcpdump_takes() {
        for (text, plain, tagged) in [
            ("", true, true),
            ("  ", true, true),
            ("udp and dst port 12", true, false),
            ("udp or (vlan and udp)", true, true),
            ("vlan 7", false, true),
            ("src host 16.0.0.1", true, false),
            ("tcp", false, false),
            ("udp[8:4] = 0x7fc18d7e", false, false),
            ("ip[4:2] = 1", true, false),
        ] {
            let filter = Filter::compile(text).expect("a good filter");
            let found = (filter.matches(&udp(None)), filter.matches(&udp(Some(7))));
            assert_eq!(found, (plain, tagged), "{text}");
            assert_eq!(filter.text(), text);
        }
    }

    #[test]
    fn a_short_frame_is_no_harm() {
        let filter = Filter::compile("udp[100:4] = 5 or ip6").expect("a good filter");
        for len in 0..udp(None).len() {
            assert!(!filter.matches(&udp(None)[..len]));
        }
    }

    #[test]
    fn a_bad_filter_says_what_is_wrong() {
        let error = Filter::compile("udp and prot 12").expect_err("a bad filter");
        let text = error.to_string();
        assert!(
            text.contains("'udp and prot 12' does not compile"),
            "{text}"
        );
        assert!(text.contains("syntax error"), "{text}");
        let long = Filter::compile(&"(".repeat(5000)).expect_err("too long");
        assert_eq!(long, FilterError::TooLong(5000));
        Filter::compile(&"(".repeat(4000)).expect_err("open to the end");
        Filter::compile("udp\0tcp").expect_err("a zero byte");
    }
}
