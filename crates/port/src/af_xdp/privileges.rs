//! Which capabilities this process lacks.

/// What is needed, by its number (`include/uapi/linux/capability.h`).
const NEEDED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW"), (39, "CAP_BPF")];
/// It includes CAP_BPF.
const CAP_SYS_ADMIN: u32 = 21;

/// What is missing, in words.
pub(super) fn missing() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    in_words(&missing_in(&status))
}

fn missing_in(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|held| u64::from_str_radix(held.trim(), 16).ok());
    let Some(held) = held else { return Vec::new() };
    let has =
        |number: u32| held >> number & 1 == 1 || number == 39 && held >> CAP_SYS_ADMIN & 1 == 1;
    let missing = NEEDED.iter().filter(|(number, _)| !has(*number));
    missing.map(|(_, name)| *name).collect()
}

fn in_words(missing: &[&str]) -> String {
    match missing {
        [] => "the system does not allow AF_XDP here, though no capability is missing".to_owned(),
        [one] => format!("the capability {one} is missing"),
        many => format!("the capabilities {} are missing", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(held: u64) -> String {
        in_words(&missing_in(&format!(
            "Name:\tx\nCapEff:\t{held:016x}\nSeccomp:\t0\n"
        )))
    }

    #[test]
    fn what_is_missing_is_named() {
        let all = 1 << 12 | 1 << 13 | 1 << 39;
        assert_eq!(words(all & !(1 << 39)), "the capability CAP_BPF is missing");
        assert!(words(1 << 13).contains("CAP_NET_ADMIN, CAP_BPF are missing"));
        assert!(words(0).contains("CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF"));
        for enough in [all, 1 << 12 | 1 << 13 | 1 << 21, u64::MAX] {
            assert!(words(enough).contains("no capability is missing"));
        }
    }
}
