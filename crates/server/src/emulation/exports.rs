//! The way between emulated clients and the thread that writes, sends and posts for them: it takes no lock that anybody
//! holds for long, and never waits.

use std::sync::mpsc::{Receiver, Sender, channel};

use allosaur_emulation::Emulation;
use allosaur_emulation::exports::{Export, ExportReport};
use allosaur_engine::time::Nanos;

/// What the thread is told.
#[derive(Debug)]
pub enum ExportJob {
    /// Something that clients want done; of this emulation, by its number.
    Do(u32, Export),
    /// The emulation ended; another may follow.
    Reset,
}

/// What tells the thread, as far as emulated clients see it. False when it has ended.
pub type TellExports = Box<dyn FnMut(ExportJob) -> bool + Send>;

/// The end of the emulated clients.
pub struct ExportChannel {
    tell: TellExports,
    reports: Receiver<(u32, ExportReport)>,
    /// Of the emulation.
    number: u32,
}

impl ExportChannel {
    /// A way to the thread that `tell` tells, and where it says what came of it.
    pub fn new(tell: TellExports) -> (ExportChannel, Sender<(u32, ExportReport)>) {
        let (sender, reports) = channel();
        let own = ExportChannel {
            tell,
            reports,
            number: 0,
        };
        (own, sender)
    }

    /// Gives what clients want done to the thread, and what came of it to them.
    pub(super) fn exchange(&mut self, emulation: &mut Emulation, now: Nanos) {
        while let Ok((number, report)) = self.reports.try_recv() {
            if number == self.number {
                emulation.handle_export_report(now, report);
            }
        }
        while let Some(export) = emulation.poll_export() {
            if !(self.tell)(ExportJob::Do(self.number, export)) {
                tracing::debug!("the thread for exports has ended");
            }
        }
    }

    /// The emulation ended: what it had open is finished.
    pub(super) fn reset(&mut self) {
        self.number = self.number.wrapping_add(1);
        (self.tell)(ExportJob::Reset);
    }
}
