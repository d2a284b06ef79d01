//! Who makes attempts: threads of this process, or others.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use descartes_kernel::fleet::KnownOffer;

use super::attempt::Job;
use super::attempt_control::Control;
use super::order::AttemptOrder;
use super::place::Workplace;
use crate::host::message::HostMessage;
use crate::host::{HostError, HostSettings};

/// Makes attempts. What becomes of them comes as task events.
pub(super) trait Executor: Send {
    /// Starts an attempt; the control stops it.
    fn start(
        &mut self,
        order: AttemptOrder,
        control: Control,
        tx: Sender<HostMessage>,
    ) -> Result<(), HostError>;

    /// Takes back offers of earlier hosts that nobody wants any more.
    fn close_left(&mut self, left: Vec<(String, KnownOffer)>) {
        drop(left);
    }

    /// How many attempts can be under way at once; `None`: as many as are asked for.
    fn room(&self) -> Option<u32> {
        None
    }
}

/// Makes each attempt on a thread of its own.
pub(super) struct Threads {
    place: Arc<dyn Workplace>,
    settings: HostSettings,
}

impl Threads {
    pub(super) fn new(place: Arc<dyn Workplace>, settings: &HostSettings) -> Self {
        Self {
            place,
            settings: HostSettings {
                cancel: None,
                ..settings.clone()
            },
        }
    }
}

impl Executor for Threads {
    fn start(
        &mut self,
        order: AttemptOrder,
        control: Control,
        tx: Sender<HostMessage>,
    ) -> Result<(), HostError> {
        let job = Job {
            settings: of_tasks(&self.settings, &order),
            order,
            place: self.place.clone(),
            control,
            tx,
        };
        job.spawn()
    }
}

/// The surroundings of an attempt: its processes are told which tasks they are for.
pub(super) fn of_tasks(settings: &HostSettings, order: &AttemptOrder) -> HostSettings {
    let mut settings = settings.clone();
    let ids: Vec<&str> = order.tasks.iter().map(|id| &**id).collect();
    settings
        .environment
        .retain(|(key, _)| key != "DESCARTES_TASK_ID" && key != "SCUD_TASK_ID");
    settings
        .environment
        .push(("DESCARTES_TASK_ID".into(), ids.join(",").into()));
    settings
}
