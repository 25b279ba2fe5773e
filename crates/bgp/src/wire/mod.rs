//! Messages and what is in them: each has `parse` and `emit`, and `parse` reads any bytes without panic.
//! What is wrong with a message is told as the [`Notification`](notification::Notification) that answers it.

pub mod attributes;
pub mod framing;
pub mod header;
pub mod notification;
pub mod open;
pub mod prefix;
pub mod reader;
pub mod refresh;
pub mod update;
