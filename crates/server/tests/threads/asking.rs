//! A test in the place of control, which waits for the answers of the receive thread.

use std::cell::RefCell;
use std::time::Duration;

use allosaur_server::control::QuestionId;
use allosaur_server::rx_taps::{Answer, Request, TapRequest};
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
    pub(crate) fn ask<R>(&self, request: R) -> Option<R::Answer>
    where
        R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>,
    {
        let mut sender = self.0.borrow_mut();
        sender.send(QuestionId(1), request.into());
        for _ in 0..600_000 {
            if let Some((_, answer)) = sender.receive() {
                return R::Answer::try_from(answer).ok();
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        None
    }
}
