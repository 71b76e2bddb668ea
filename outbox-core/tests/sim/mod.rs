//! A runtime for tests: one thread, a clock that jumps to the next timer when nothing can run, and
//! an order of tasks that a seed decides. Nothing sleeps, and every run with one seed is the same.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use outbox_core::{Spawn, Timer};

/// Timer, spawner and executor. Clones are the same.
#[derive(Clone)]
pub(crate) struct Sim(Arc<Mutex<State>>);

struct State {
    now: Instant,
    timers: BTreeMap<(Instant, u64), Waker>,
    next_timer: u64,
    tasks: BTreeMap<u64, Option<BoxFuture<'static, ()>>>,
    next_task: u64,
    ready: VecDeque<u64>,
    random: Random,
    shuffled: bool,
}

impl Sim {
    /// Tasks run in the order in which they were woken.
    #[expect(
        clippy::disallowed_methods,
        reason = "an instant can only be made from the clock"
    )]
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Instant::now(),
            timers: BTreeMap::new(),
            next_timer: 0,
            tasks: BTreeMap::new(),
            next_task: 1,
            ready: VecDeque::new(),
            random: Random::new(0),
            shuffled: false,
        })))
    }

    /// Tasks run in an order that the seed decides.
    pub(crate) fn seeded(seed: u64) -> Self {
        let sim = Self::new();
        sim.state().random = Random::new(seed);
        sim.state().shuffled = true;
        sim
    }

    /// Runs the future and everything that was spawned, until the future ends.
    ///
    /// Panics where nothing can ever run again.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = Box::pin(future);
        let main = self.waker(0);
        main.wake_by_ref();
        loop {
            match self.next() {
                Some(0) => {
                    if let Poll::Ready(out) = future.as_mut().poll(&mut Context::from_waker(&main))
                    {
                        return out;
                    }
                }
                Some(task) => self.poll_task(task),
                None => assert!(self.jump(), "stuck: no task can run and no timer is set"),
            }
        }
    }

    /// Drops every task, as a process does that dies. Timers of dropped tasks mean nothing.
    pub(crate) fn kill_tasks(&self) {
        let tasks = std::mem::take(&mut self.state().tasks);
        drop(tasks);
    }

    /// Lets time pass inside of a test.
    pub(crate) async fn pass(&self, period: Duration) {
        self.sleep(period).await;
    }

    /// The whole process stands still for so long: time goes on, nothing runs.
    pub(crate) fn freeze(&self, period: Duration) {
        self.state().now += period;
    }

    /// A number below `bound`, from the seed.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.state().random.below(bound)
    }

    /// True once in `times`, from the seed.
    pub(crate) fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn next(&self) -> Option<u64> {
        let mut state = self.state();
        if state.shuffled && state.ready.len() > 1 {
            let len = u64::try_from(state.ready.len()).unwrap();
            let pick = usize::try_from(state.random.below(len)).unwrap();
            state.ready.swap(0, pick);
        }
        state.ready.pop_front()
    }

    fn poll_task(&self, id: u64) {
        let waker = self.waker(id);
        let Some(mut task) = self.state().tasks.get_mut(&id).and_then(Option::take) else {
            return;
        };
        // A runtime contains panics of tasks.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            task.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        let mut state = self.state();
        if matches!(polled, Ok(Poll::Pending)) {
            if let Some(slot) = state.tasks.get_mut(&id) {
                *slot = Some(task);
            }
        } else {
            state.tasks.remove(&id);
        }
    }

    /// To the next timer.
    fn jump(&self) -> bool {
        let mut state = self.state();
        let Some(entry) = state.timers.first_entry() else {
            return false;
        };
        let at = entry.key().0;
        state.now = state.now.max(at);
        let mut due = Vec::new();
        while let Some(entry) = state
            .timers
            .first_entry()
            .filter(|entry| entry.key().0 <= at)
        {
            due.push(entry.remove());
        }
        drop(state);
        due.iter().for_each(Waker::wake_by_ref);
        true
    }

    fn waker(&self, id: u64) -> Waker {
        Waker::from(Arc::new(TaskWaker {
            sim: self.clone(),
            id,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TaskWaker {
    sim: Sim,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.sim.state();
        if !state.ready.contains(&self.id) {
            state.ready.push_back(self.id);
        }
    }
}

impl Timer for Sim {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn sleep(&self, period: Duration) -> BoxFuture<'static, ()> {
        let at = self.now() + period.min(Duration::from_secs(1_000_000_000));
        let sleep = Sleep {
            sim: self.clone(),
            at,
            key: None,
        };
        sleep.boxed()
    }
}

struct Sleep {
    sim: Sim,
    at: Instant,
    key: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sim = self.sim.clone();
        let mut state = sim.state();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        let key = *self.key.get_or_insert(state.next_timer);
        state.next_timer += 1;
        state.timers.insert((self.at, key), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.sim.state().timers.remove(&(self.at, key));
        }
    }
}

impl Spawn for Sim {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.state();
        let id = state.next_task;
        state.next_task += 1;
        state.tasks.insert(id, Some(task));
        state.ready.push_back(id);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough to vary tests.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Lets every other task run first.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
