//! What inner methods of tunnels have in common.

/// Who logs in, and the random bytes for this message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'l> {
    pub(super) user: &'l str,
    pub(super) password: &'l str,
    /// The peer's challenge of MS-CHAPv2.
    pub(super) challenge: [u8; 16],
}

/// What a message inside the tunnel means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing is decided.
    Open,
    /// The server lets the user in, and knows the password where the method proves that.
    Passed,
    /// The server does not let the user in.
    Refused,
    /// The server says that it lets the user in, but has not proven that it knows the password.
    NotProven,
    /// A message of no known form.
    Unreadable,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const LOGIN: Login<'static> = Login {
        user: "alice",
        password: "secret",
        challenge: [7; 16],
    };
}
