//! A test in the place of control, which waits for the answers of the receive thread.

use std::cell::RefCell;
use std::time::Duration;

use allosaur_server::control::QuestionId;
use allosaur_server::rx_taps::{Answer, Request};
use allosaur_server::threads::request_channel::{RequestReceiver, RequestSender, request_channel};
use allosaur_server::threads::waker::{Notify, Waker};

/// Asks, and waits for the answer.
#[derive(Debug)]
pub(crate) struct Asking(RefCell<RequestSender>);

/// The channel to a receive thread that `receive` wakes.
pub(crate) fn asking(receive: Waker) -> (Asking, RequestReceiver) {
    let control = Notify::new().expect("a file descriptor");
    let (sender, receiver) = request_channel(receive, control);
    (Asking(RefCell::new(sender)), receiver)
}

impl Asking {
    /// The answer; `None` when there is none in a minute.
    pub(crate) fn ask(&self, request: Request) -> Option<Answer> {
        let mut sender = self.0.borrow_mut();
        sender.send(QuestionId(1), request);
        for _ in 0..600_000 {
            if let Some((_, answer)) = sender.receive() {
                return Some(answer);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        None
    }
}
