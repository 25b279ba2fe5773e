//! Settings behind the name of a port: `rate=10gbps:delay=1ms`.

use crate::PortError;

/// Hands each setting to `set`, as (name, value).
///
/// # Errors
///
/// A setting that is given twice, and what `set` says: (problem, remedy).
pub(crate) fn each(
    given: &str,
    mut set: impl FnMut(&str, &str) -> Result<(), (String, String)>,
) -> Result<(), PortError> {
    let mut seen: Vec<&str> = Vec::new();
    for part in given.split(':').filter(|_| !given.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let set = if seen.contains(&name) {
            Err((
                format!("'{name}' is given twice"),
                "Give each setting once".to_owned(),
            ))
        } else {
            set(name, value)
        };
        set.map_err(|(problem, remedy)| PortError::Description {
            given: given.to_owned(),
            problem,
            remedy,
        })?;
        seen.push(name);
    }
    Ok(())
}
