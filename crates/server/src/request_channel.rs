//! The request channel: control asks the receive thread, and waits for the answer.

use std::cell::RefCell;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::observe::{Answer, Request};
use crate::waker::Waker;

/// How long control waits for an answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Questions that may be under way: one, and those that control gave up.
const QUESTIONS: usize = 16;

/// The end of control.
#[derive(Debug)]
pub struct RequestSender {
    line: RefCell<Line>,
    receive: Waker,
}

#[derive(Debug)]
struct Line {
    questions: Producer<(u64, Request)>,
    answers: Consumer<(u64, Answer)>,
    asked: u64,
}

/// The end of the receive thread.
#[derive(Debug)]
pub struct RequestReceiver {
    questions: Consumer<(u64, Request)>,
    answers: Producer<(u64, Answer)>,
    control: Thread,
}

/// The two ends; `receive` wakes the receive thread. Control is the thread that calls this.
pub fn request_channel(receive: Waker) -> (RequestSender, RequestReceiver) {
    let (questions_in, questions) = RingBuffer::new(QUESTIONS);
    let (answers, answers_out) = RingBuffer::new(QUESTIONS);
    let asking = RequestSender {
        line: RefCell::new(Line {
            questions: questions_in,
            answers: answers_out,
            asked: 0,
        }),
        receive,
    };
    let answering = RequestReceiver {
        questions,
        answers,
        control: thread::current(),
    };
    (asking, answering)
}

impl RequestSender {
    /// Asks and waits; nothing when there is no answer in time.
    pub fn ask(&self, request: Request) -> Option<Answer> {
        let mut line = self.line.borrow_mut();
        line.asked += 1;
        let number = line.asked;
        // When the ring is full the receive thread has stood still for many questions.
        line.questions.push((number, request)).ok()?;
        self.receive.wake();
        let until = Instant::now() + ANSWER_MAX;
        loop {
            match line.answers.pop() {
                Ok((answered, answer)) if answered == number => return Some(answer),
                // To a question that was given up.
                Ok(_) => {}
                Err(_) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    thread::park_timeout(left);
                }
            }
        }
    }
}

impl RequestReceiver {
    /// The question that [`answer`](RequestReceiver::answer) answers next.
    pub fn question(&self) -> Option<&Request> {
        self.questions.peek().ok().map(|(_, request)| request)
    }

    /// Answers the next question, if there is one. What follows from it is done before the one after
    /// it is answered: who has stopped something and then reads its counters shall have them all.
    /// Returns whether there was one.
    pub fn answer(&mut self, answer: impl FnOnce(Request) -> Answer) -> bool {
        if self.answers.is_full() {
            return false;
        }
        let Ok((number, request)) = self.questions.pop() else {
            return false;
        };
        let answered = self.answers.push((number, answer(request)));
        debug_assert!(answered.is_ok(), "there was room");
        self.control.unpark();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_by_another_thread() {
        let (asking, mut answering) = request_channel(Waker::new().expect("a file descriptor"));
        let receive = thread::spawn(move || {
            let mut left = 2;
            while left > 0 {
                thread::park_timeout(Duration::from_millis(1));
                answering.answer(|_| {
                    left -= 1;
                    Answer::Started { capture: left }
                });
            }
        });
        let answers = [(); 2].map(|()| asking.ask(Request::ListCaptures));
        assert_eq!(
            answers,
            [1, 0].map(|capture| Some(Answer::Started { capture }))
        );
        receive.join().expect("no panic");
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_another() {
        let (asking, mut answering) = request_channel(Waker::new().expect("a file descriptor"));
        assert_eq!(asking.ask(Request::ListCaptures), None);
        answering.answer(|_| Answer::Unknown);
        let answers = thread::spawn(move || {
            let mut answered = false;
            while !answered {
                answering.answer(|_| {
                    answered = true;
                    Answer::Done
                });
                thread::yield_now();
            }
        });
        assert_eq!(asking.ask(Request::ListCaptures), Some(Answer::Done));
        answers.join().expect("no panic");
    }
}
