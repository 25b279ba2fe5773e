//! Names that a user may have meant.

/// The longest list of names that is shown whole.
const SHOWN_MAX: usize = 4;

/// What to say of a name that is not there: `did you mean eth0?`, or which names there are. Empty
/// when nothing helps.
pub fn suggestion(given: &str, names: &[String]) -> String {
    if let Some(name) = nearest(given, names.iter().map(String::as_str)) {
        return format!("did you mean {name}?");
    }
    match names.len() {
        1..=SHOWN_MAX => format!("there is {}", names.join(", ")),
        _ => String::new(),
    }
}

/// The name that was meant, as far as a few wrong letters tell.
pub fn nearest<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let tolerance = ((given.chars().count() + 1) / 3).max(1);
    let names = names.into_iter().map(|name| (distance(given, name), name));
    let near = names.filter(|(distance, _)| *distance <= tolerance).min();
    near.map(|(_, name)| name)
}

/// How many letters must be added, taken away or changed to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_before_all_names() {
        let names = ["eth0", "enp3s0f1", "br-lan"].map(str::to_owned);
        for (given, words) in [
            ("eth1", "did you mean eth0?"),
            ("ETH0", "did you mean eth0?"),
            ("enp3s0", "did you mean enp3s0f1?"),
            ("ethh0", "did you mean eth0?"),
            ("wlan7", "there is eth0, enp3s0f1, br-lan"),
        ] {
            assert_eq!(suggestion(given, &names), words);
        }
        assert_eq!(suggestion("x", &[]), "");
        let many: Vec<String> = (0..9).map(|n| format!("port-{n}")).collect();
        assert_eq!(suggestion("x", &many), "");
    }

    #[test]
    fn distances_count_changes() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected);
        }
    }
}
