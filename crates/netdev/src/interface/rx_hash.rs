//! How a network card shares out over its queues what arrives (RSS), as ethtool tells.
//!
//! Layouts and numbers are those of `include/uapi/linux/ethtool.h`.

use std::io;

use super::{Interface, InterfaceQuery};

/// The question which fields of a kind of packet are hashed.
const ETHTOOL_GRXFH: u32 = 0x29;
/// The question for the indirection table, the key and the function.
const ETHTOOL_GRSSH: u32 = 0x46;

/// Kinds of packets: TCP and UDP over IPv4, and over IPv6.
const FLOW_TYPES: [(&str, u32); 4] = [("tcp4", 1), ("udp4", 2), ("tcp6", 5), ("udp6", 6)];
/// Both addresses, and both ports: the four bytes where TCP and UDP begin.
const ADDRESSES_AND_PORTS: u64 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;

/// Most entries of a table, and most bytes of a key, that are asked for.
const ENTRIES_MAX: usize = 1 << 16;
const KEY_BYTES_MAX: usize = 1 << 10;
/// Numbers of an answer in front of the table.
const HEAD_WORDS: usize = 6;

/// How a card shares out what arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RxHash {
    /// The queue of each value of the low bits of the hash.
    pub table: Vec<u32>,
    /// The key.
    pub key: Vec<u8>,
    /// `ETH_RSS_HASH_TOP` and others.
    pub function: u8,
    /// What is done to the packet's fields before (`RXH_XFRM_SYM_XOR`).
    pub transformation: u8,
    /// The kinds of packets, as ethtool calls them, that are not hashed by both addresses and both ports
    /// and nothing else, as far as the driver tells.
    pub without_ports: Vec<&'static str>,
}

/// By Toeplitz's method (`ETH_RSS_HASH_TOP`).
pub const FUNCTION_TOEPLITZ: u8 = 1;
/// Both addresses, and both ports, are replaced by the XOR of both (`RXH_XFRM_SYM_XOR`).
pub const TRANSFORMATION_XOR: u8 = 1;

/// `struct ethtool_rxnfc`, as far as that question has it.
#[repr(C)]
struct EthtoolFields {
    command: u32,
    flow_type: u32,
    fields: u64,
}

impl Interface {
    /// How the card shares out what arrives.
    ///
    /// # Errors
    ///
    /// When its driver does not tell.
    pub fn rx_hash(&self) -> io::Result<RxHash> {
        let query = InterfaceQuery::new(&self.name)?;
        let mut hash = query.rx_hash()?;
        let has_ports = |flow_type| {
            let fields = query.hashed_fields(flow_type);
            fields.is_ok_and(|fields| fields == ADDRESSES_AND_PORTS)
        };
        let without = FLOW_TYPES.into_iter().filter(|(_, kind)| !has_ports(*kind));
        hash.without_ports = without.map(|(name, _)| name).collect();
        Ok(hash)
    }
}

impl InterfaceQuery {
    fn hashed_fields(&self, flow_type: u32) -> io::Result<u64> {
        let mut question = EthtoolFields {
            command: ETHTOOL_GRXFH,
            flow_type,
            fields: 0,
        };
        // SAFETY: of a question of this kind the kernel reads and writes the first three members.
        unsafe { self.ethtool(&mut question)? };
        Ok(question.fields)
    }

    fn rx_hash(&self) -> io::Result<RxHash> {
        // How long both are is told when there is no room for either.
        let mut sizes = [ETHTOOL_GRSSH, 0, 0, 0, 0, 0];
        // SAFETY: the kernel reads and writes one `ethtool_rxfh` of 24 bytes, and no table and no key.
        unsafe { self.ethtool(&mut sizes)? };
        let (entries, key_bytes) = (sizes[2] as usize, sizes[3] as usize);
        if entries == 0 || entries > ENTRIES_MAX || key_bytes > KEY_BYTES_MAX {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut answer = vec![0; HEAD_WORDS + entries + key_bytes.div_ceil(4)];
        answer[..HEAD_WORDS].copy_from_slice(&[ETHTOOL_GRSSH, 0, sizes[2], sizes[3], 0, 0]);
        // SAFETY: the kernel writes what it was told there is room for, and refuses if that is not as
        // much as it has.
        unsafe { self.ethtool(&mut answer[..])? };
        Ok(read(&answer))
    }
}

/// What stands in an answer: `struct ethtool_rxfh`, the table and the key.
fn read(answer: &[u32]) -> RxHash {
    let (head, rest) = answer.split_at(HEAD_WORDS);
    let (table, rest) = rest.split_at(head[2] as usize);
    let key = rest.iter().flat_map(|word| word.to_ne_bytes());
    let [function, transformation, ..] = head[4].to_ne_bytes();
    RxHash {
        table: table.to_vec(),
        key: key.take(head[3] as usize).collect(),
        function,
        transformation,
        without_ports: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_table_and_its_key() {
        let words = |bytes: [u8; 4]| u32::from_ne_bytes(bytes);
        let head = [ETHTOOL_GRSSH, 0, 2, 6, words([1, 1, 0, 0]), 0];
        let rest = [3, 5, words([10, 11, 12, 13]), words([14, 15, 0, 0])];
        let expected = RxHash {
            table: vec![3, 5],
            key: vec![10, 11, 12, 13, 14, 15],
            function: FUNCTION_TOEPLITZ,
            transformation: TRANSFORMATION_XOR,
            without_ports: Vec::new(),
        };
        assert_eq!(read(&[&head[..], &rest].concat()), expected);
    }

    #[test]
    fn a_loopback_has_no_hash() {
        let loopback = Interface::find("lo", None).expect("a loopback that is up");
        assert!(loopback.rx_hash().is_err());
    }
}
