//! Static routes that BIRD takes and never announces.
//!
//! A route whose next hop is the BGP neighbor itself would send the neighbor's packets back to it, so BGP
//! does not announce it there (RFC 4271, section 5.1.3); BIRD says nothing of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// The warnings of that kind that a configuration deserves, one for each neighbor.
pub fn unreachable_next_hops(config: &str) -> Vec<String> {
    let words: Vec<&str> = config.lines().flat_map(words_of).collect();
    let after = |keyword: &str| -> BTreeSet<IpAddr> {
        let pairs = words.windows(2).filter(|pair| pair[0] == keyword);
        pairs.filter_map(|pair| pair[1].parse().ok()).collect()
    };
    let (neighbors, next_hops) = (after("neighbor"), after("via"));
    let both = neighbors.intersection(&next_hops);
    let warnings = both.map(|address| {
        format!(
            "static routes 'via {address}' are not announced to the BGP neighbor {address}: it would \
             send its packets to itself. Write 'via' with the address of BIRD's own node ('local')"
        )
    });
    warnings.collect()
}

/// The words of a line, without its comment.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('#').next().unwrap_or_default();
    let ends = |c: char| c.is_whitespace() || ";{}".contains(c);
    code.split(ends).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_by_the_neighbor_itself_is_found() {
        let config = "protocol bgp { local 1.1.1.3 as 1; neighbor 1.1.1.1 as 1; }\n\
                      protocol static { route 42.42.42.0/32 via 1.1.1.1; route 42.42.42.1/32 via 1.1.1.1; }";
        let warnings = unreachable_next_hops(config);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("'via 1.1.1.1'"), "{warnings:?}");
        let right = config.replace("via 1.1.1.1", "via 1.1.1.3 # not via 1.1.1.1");
        assert_eq!(unreachable_next_hops(&right), Vec::<String>::new());
    }
}
