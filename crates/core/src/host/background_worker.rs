//! Work that goes on beside the driver.

use std::sync::mpsc::{SendError, Sender, channel};
use std::thread::{self, JoinHandle};

pub(super) type BackgroundJob = Box<dyn FnOnce() + Send>;

/// A thread that does one job after the other. Dropped, it finishes what it was given.
pub(super) struct BackgroundWorker {
    jobs: Option<Sender<BackgroundJob>>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundWorker {
    /// Where no thread can be had, jobs are done by whoever gives them.
    pub(super) fn new(name: &str, begin: fn()) -> Self {
        let (jobs, given) = channel::<BackgroundJob>();
        let named = thread::Builder::new().name(name.to_owned());
        match named.spawn(move || {
            begin();
            given.into_iter().for_each(|job| job());
        }) {
            Ok(thread) => Self {
                jobs: Some(jobs),
                thread: Some(thread),
            },
            Err(_) => Self {
                jobs: None,
                thread: None,
            },
        }
    }

    pub(super) fn run(&self, job: BackgroundJob) {
        let refused = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|SendError(job)| job),
            None => Some(job),
        };
        if let Some(job) = refused {
            job();
        }
    }

    /// Does not wait for it.
    pub(super) fn leave(mut self) {
        self.thread = None;
    }
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
