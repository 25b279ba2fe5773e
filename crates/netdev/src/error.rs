//! Why an interface cannot be used.

use thiserror::Error;

/// Why an interface cannot be used, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("interface '{name}': {problem}. {remedy}")]
pub struct InterfaceError {
    /// Its name.
    pub name: String,
    /// What is wrong with it or missing, or who has it.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether it could be used, and cannot now: a privilege or memory is missing, it is down, or
    /// another program has it.
    pub is_temporary: bool,
}

impl InterfaceError {
    /// An interface that cannot be used as it is.
    pub fn unusable(
        name: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> InterfaceError {
        InterfaceError {
            name: name.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
            is_temporary: false,
        }
    }

    /// An interface that is right, and cannot be used now.
    pub fn unavailable(
        name: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> InterfaceError {
        InterfaceError {
            is_temporary: true,
            ..InterfaceError::unusable(name, problem, remedy)
        }
    }
}
