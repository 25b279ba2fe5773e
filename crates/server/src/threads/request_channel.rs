//! The request channel: what control asks the receive thread, or others a data thread about emulated
//! clients, and what it answers, a ring each way.
//!
//! Nobody waits. What the ring has no room for is kept by control and offered again; control never
//! has more questions under way than the ring of answers holds.

use std::collections::VecDeque;
use std::fmt::Debug;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::control::QuestionId;
use crate::rx_taps::{Answer, Request};
use crate::threads::waker::{Notify, Waker};

/// Questions that may be under way.
const QUESTIONS: usize = 16;
/// Questions that wait for that. Beyond them the receive thread has stood still for long.
const BACKLOG_MAX: usize = 4096;

/// The end of control, or of who else asks.
#[derive(Debug)]
pub struct RequestSender<Q = Request, A = Answer> {
    questions: Producer<(QuestionId, Q)>,
    answers: Consumer<(QuestionId, A)>,
    under_way: usize,
    backlog: VecDeque<(QuestionId, Q)>,
    receive: Waker,
}

/// The end of the receive thread, or of who else answers.
#[derive(Debug)]
pub struct RequestReceiver<Q = Request, A = Answer> {
    questions: Consumer<(QuestionId, Q)>,
    answers: Producer<(QuestionId, A)>,
    control: Notify,
}

/// The two ends; `receive` wakes the thread that answers, and `control` the one that asks.
pub fn request_channel<Q, A>(
    receive: Waker,
    control: Notify,
) -> (RequestSender<Q, A>, RequestReceiver<Q, A>) {
    let (questions_in, questions) = RingBuffer::new(QUESTIONS);
    let (answers, answers_out) = RingBuffer::new(QUESTIONS);
    let sender = RequestSender {
        questions: questions_in,
        answers: answers_out,
        under_way: 0,
        backlog: VecDeque::new(),
        receive,
    };
    let receiver = RequestReceiver {
        questions,
        answers,
        control,
    };
    (sender, receiver)
}

impl<Q: Debug, A> RequestSender<Q, A> {
    /// Asks, now or when there is room.
    pub fn send(&mut self, question: QuestionId, request: Q) {
        if self.backlog.len() >= BACKLOG_MAX {
            tracing::error!("a thread stands still: it is not asked {request:?}");
            return;
        }
        self.backlog.push_back((question, request));
        self.flush();
    }

    /// The next answer, if there is one; they come in the order of the questions.
    pub fn receive(&mut self) -> Option<(QuestionId, A)> {
        let answer = self.answers.pop().ok()?;
        self.under_way -= 1;
        self.flush();
        Some(answer)
    }

    fn flush(&mut self) {
        while self.under_way < QUESTIONS {
            let Some(question) = self.backlog.pop_front() else {
                return;
            };
            let pushed = self.questions.push(question);
            debug_assert!(pushed.is_ok(), "fewer are under way than there is room for");
            self.under_way += 1;
            self.receive.wake();
        }
    }
}

impl<Q, A> RequestReceiver<Q, A> {
    /// The question that [`answer`](RequestReceiver::answer) answers next.
    pub fn question(&self) -> Option<&Q> {
        self.questions.peek().ok().map(|(_, request)| request)
    }

    /// Answers the next question, if there is one. What follows from it is done before the one after
    /// it is answered: who has stopped something and then reads its counters shall have them all.
    /// Returns whether there was one.
    pub fn answer(&mut self, answer: impl FnOnce(Q) -> A) -> bool {
        let Some((question, request)) = self.take_question() else {
            return false;
        };
        self.give_answer(question, answer(request));
        true
    }

    /// Takes the next question, which [`give_answer`](RequestReceiver::give_answer) is for.
    pub fn take_question(&mut self) -> Option<(QuestionId, Q)> {
        self.questions.pop().ok()
    }

    /// Gives the answer to the question that was taken.
    pub fn give_answer(&mut self, question: QuestionId, answer: A) {
        let answered = self.answers.push((question, answer));
        debug_assert!(answered.is_ok(), "there is room for all that are under way");
        self.control.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rx_taps::{CaptureAnswer, CaptureRequest};

    fn channel() -> (RequestSender, RequestReceiver) {
        let receive = Waker::new().expect("a file descriptor");
        request_channel(receive, Notify::new().expect("a file descriptor"))
    }

    #[test]
    fn more_questions_than_the_ring_holds_are_answered_in_order() {
        let (mut sender, mut receiver) = channel();
        let questions = 3 * QUESTIONS as u64;
        for question in 0..questions {
            sender.send(QuestionId(question), CaptureRequest::List.into());
        }
        let mut answered = 0;
        let mut received = Vec::new();
        while received.len() < questions as usize {
            while receiver.answer(|_| CaptureAnswer::Started { capture: answered }.into()) {
                answered += 1;
            }
            while let Some((question, answer)) = sender.receive() {
                let capture = question.0 as u32;
                assert_eq!(answer, CaptureAnswer::Started { capture }.into());
                received.push(question.0);
            }
        }
        assert_eq!(received, (0..questions).collect::<Vec<_>>());
    }

    #[test]
    fn a_receiver_that_stands_still_does_not_fill_the_memory() {
        let (mut sender, _receiver) = channel();
        for question in 0..2 * BACKLOG_MAX as u64 {
            sender.send(QuestionId(question), CaptureRequest::List.into());
        }
        assert!(sender.backlog.len() <= BACKLOG_MAX);
    }
}
