//! The listener's loop, over connections that a script makes fail.
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

mod sim;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use outbox_core::sql::{Listen, Listener, Patience, listen};
use outbox_core::{Error, ErrorKind, Timer, async_trait};
use sim::Sim;

/// What a connection does, in order; then it is quiet.
#[derive(Clone, Copy)]
enum Step {
    Notify,
    Close,
    /// Quiet, and answers the probe.
    Answer,
    /// Quiet, and answers nothing more.
    Hang,
}

struct Script {
    /// One entry for each attempt to connect; `None` fails. After the last one, all fail.
    connections: Mutex<VecDeque<Option<Vec<Step>>>>,
    opened: Mutex<Vec<std::time::Instant>>,
    sim: Sim,
}

#[async_trait]
impl Listen for Script {
    async fn open(&self) -> Result<Box<dyn Listener>, Error> {
        self.opened.lock().unwrap().push(self.sim.now());
        let next = self.connections.lock().unwrap().pop_front().flatten();
        let steps = next.ok_or_else(lost)?;
        Ok(Box::new(Connection(steps.into())))
    }
}

struct Connection(VecDeque<Step>);

#[async_trait]
impl Listener for Connection {
    async fn notified(&mut self) -> Result<(), Error> {
        match self.0.front() {
            Some(Step::Notify) => {
                self.0.pop_front();
                Ok(())
            }
            Some(Step::Close) => Err(lost()),
            _ => pending().await,
        }
    }

    async fn probe(&mut self) -> Result<(), Error> {
        match self.0.front() {
            Some(Step::Answer) => {
                self.0.pop_front();
                Ok(())
            }
            _ => pending().await,
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "closed")
}

/// Takes `items` wake-ups; returns the seconds at which connections were opened.
fn play(connections: Vec<Option<Vec<Step>>>, items: usize) -> Vec<f64> {
    let sim = Sim::new();
    let begun = sim.now();
    let script = Arc::new(Script {
        connections: Mutex::new(connections.into()),
        opened: Mutex::default(),
        sim: sim.clone(),
    });
    let wakes = listen(
        Arc::clone(&script) as Arc<dyn Listen>,
        Arc::new(sim.clone()),
        Patience::default(),
    );
    assert_eq!(sim.run(wakes.take(items).count()), items);
    let opened = script.opened.lock().unwrap();
    opened
        .iter()
        .map(|at| at.duration_since(begun).as_secs_f64())
        .collect()
}

#[test]
fn looks_once_after_each_connection_and_at_each_notification() {
    use Step::{Close, Notify};
    let opened = play(
        vec![Some(vec![Notify, Notify, Close]), Some(vec![Notify])],
        5,
    );
    assert_eq!(opened.len(), 2);
    assert!((0.05..=0.1).contains(&opened[1]), "{opened:?}");
}

#[test]
fn a_connection_that_answers_probes_is_kept_and_one_that_does_not_is_replaced() {
    use Step::{Answer, Hang};
    let opened = play(vec![Some(vec![Answer, Answer, Hang]), Some(vec![])], 2);
    assert_eq!(opened.len(), 2);
    // Two probes that are answered, one that waits for its time-out, and the pause.
    assert!((100.05..=100.1).contains(&opened[1]), "{opened:?}");
}

#[test]
fn tries_for_ever_at_growing_intervals() {
    let mut connections = vec![None; 40];
    connections.push(Some(vec![]));
    let opened = play(connections, 1);
    let pauses: Vec<f64> = opened.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 40);
    for (failures, pause) in (0..).zip(pauses) {
        let whole = (0.1 * f64::from(1 << i32::min(failures, 16))).min(30.0);
        assert!(
            (whole / 2.0 - 1e-6..=whole + 1e-6).contains(&pause),
            "{failures}: {pause}"
        );
    }
}

#[test]
fn connections_that_are_of_no_use_are_not_opened_in_a_tight_loop() {
    let opened = play(vec![Some(vec![Step::Close]); 12], 12);
    let last = Duration::from_secs_f64(opened[11]);
    assert!(last > Duration::from_secs(60), "{opened:?}");
}
