//! The supervisor: order, budgets, faults, and two runtimes.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod sim;

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use outbox_core::{
    Budgets, Observer, OnFailure, ShutdownCause, Spawn, Supervisor, SupervisorBuilder, TaskEnd,
    Timer, Transition,
};
use sim::Sim;

const SECOND: Duration = Duration::from_secs(1);

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Log {
    fn on(&self, transition: &Transition<'_>) {
        match transition {
            Transition::TaskEnded { name, end } => self.note(format!("{name} {}", end.as_str())),
            Transition::ShutdownBegan => self.note("begin"),
            Transition::ShutdownFinished { took, abandoned } => {
                self.note(format!("end {took:?} {abandoned}"));
            }
            _ => {}
        }
    }
}

fn fault(text: &str) {
    panic!("{text}");
}

fn supervisor(sim: &Sim) -> SupervisorBuilder {
    Supervisor::builder(sim.clone(), sim.clone())
}

mod order {
    use super::*;

    #[test]
    fn is_readiness_then_work_then_servers_then_hooks_one_by_one() {
        let (sim, log) = (Sim::new(), Log::default());
        let (work, server, broker, pool) = (log.clone(), log.clone(), log.clone(), log.clone());
        let (work_sim, server_sim, broker_sim) = (sim.clone(), sim.clone(), sim.clone());
        let supervisor = supervisor(&sim)
            .task("relay", move |stop| async move {
                stop.await;
                work.note("relay stops");
                work_sim.sleep(3 * SECOND).await;
            })
            .drain("http", move || async move {
                server.note("http drains");
                server_sim.sleep(2 * SECOND).await;
            })
            .close("broker", move || async move {
                broker_sim.sleep(SECOND).await;
                broker.note("broker closes");
            })
            .close("pool", move || async move { pool.note("pool closes") })
            .observer(log.clone())
            .build()
            .unwrap();
        let readiness = supervisor.readiness();
        assert!(!readiness.is_ready());

        let (asked, signal_log) = (readiness.clone(), log.clone());
        let shutdown_sim = sim.clone();
        let report = sim.run(supervisor.run(async move {
            shutdown_sim.sleep(10 * SECOND).await;
            signal_log.note(format!("signal, ready: {}", asked.is_ready()));
        }));

        let expected = [
            "signal, ready: true",
            "begin",
            "relay stops",
            "http drains",
            "http finished",
            "relay finished",
            "broker closes",
            "broker finished",
            "pool closes",
            "pool finished",
            "end 4s 0",
        ];
        assert_eq!(log.all(), expected);
        assert!(report.is_clean());
        assert!(!readiness.is_ready());
        assert_eq!(report.cause, ShutdownCause::Signal);
        assert_eq!(report.took, 4 * SECOND);
        assert_eq!(report.task("relay").unwrap().took, 3 * SECOND);
        assert_eq!(report.task("http").unwrap().took, 2 * SECOND);
    }

    #[test]
    fn readiness_is_false_for_the_notice_before_anything_stops() {
        let sim = Sim::new();
        let mut budgets = Budgets::default();
        budgets.notice = 5 * SECOND;
        let (timer, began) = (sim.clone(), sim.now());
        let stopped = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&stopped);
        let supervisor = supervisor(&sim)
            .task("relay", move |stop| async move {
                stop.await;
                *seen.lock().unwrap() = Some(timer.now() - began);
            })
            .budgets(budgets)
            .build()
            .unwrap();
        let readiness = supervisor.readiness();
        let probed = Arc::new(Mutex::new(None));
        let (prober, answer) = (sim.clone(), Arc::clone(&probed));
        let probe = async move {
            prober.sleep(SECOND).await;
            *answer.lock().unwrap() = Some(readiness.is_ready());
        };
        sim.spawn(probe.boxed());
        let report = sim.run(supervisor.run(async {}));
        assert_eq!(*probed.lock().unwrap(), Some(false));
        assert_eq!(*stopped.lock().unwrap(), Some(5 * SECOND));
        assert!(report.is_clean());
    }
}

mod budget {
    use super::*;

    #[test]
    fn of_twenty_seconds_bounds_work_that_ignores_its_signal() {
        let sim = Sim::new();
        let supervisor = supervisor(&sim)
            .task("deaf", |_| pending::<()>())
            .task("polite", |stop| stop)
            .close("pool", || async {})
            .build()
            .unwrap();
        let report = sim.run(supervisor.run(async {}));
        assert_eq!(report.took, 25 * SECOND);
        assert_eq!(report.task("deaf").unwrap().end, TaskEnd::Abandoned);
        assert_eq!(report.task("polite").unwrap().end, TaskEnd::Finished);
        assert_eq!(report.task("pool").unwrap().end, TaskEnd::Finished);
        assert_eq!(report.abandoned(), 1);
    }

    #[test]
    fn lets_a_task_leave_by_its_abort_signal_before_it_is_dropped() {
        let (sim, log) = (Sim::new(), Log::default());
        let note = log.clone();
        let supervisor = supervisor(&sim)
            .task("relay", move |stop| async move {
                stop.aborted().await;
                note.note("leaves");
            })
            .build()
            .unwrap();
        let report = sim.run(supervisor.run(async {}));
        assert_eq!(log.all(), ["leaves"]);
        assert_eq!(report.task("relay").unwrap().end, TaskEnd::Abandoned);
        assert_eq!(report.took, 20 * SECOND);
    }

    #[test]
    fn of_the_whole_bounds_everything_however_many_hooks_hang() {
        let sim = Sim::new();
        let mut builder = supervisor(&sim)
            .task("deaf", |_| pending::<()>())
            .server("http", |_| pending::<()>());
        for hook in 0..20 {
            builder = builder.close(format!("hook {hook}"), pending::<()>);
        }
        let report = sim.run(builder.build().unwrap().run(async {}));
        assert_eq!(report.took, 60 * SECOND);
        assert_eq!(report.abandoned(), 22);
    }

    #[test]
    fn that_cannot_be_kept_is_refused() {
        let mut budgets = Budgets::default();
        budgets.work = 61 * SECOND;
        let error = supervisor(&Sim::new())
            .budgets(budgets)
            .build()
            .unwrap_err();
        let text = "setting `budgets.work` ends 61s after the begin; the total is 60s";
        assert_eq!(error.to_string(), text);
        let mut budgets = Budgets::default();
        budgets.close = 90 * SECOND;
        let builder = supervisor(&Sim::new()).budgets(budgets);
        let text = "setting `budgets.close` is 90s; use at most the total, which is 60s";
        assert_eq!(builder.build().unwrap_err().to_string(), text);
        let twice = supervisor(&Sim::new())
            .task("a", |s| s)
            .close("a", || async {});
        assert!(twice.build().unwrap_err().to_string().contains("unique"));
    }
}

mod abort {
    use super::*;

    #[test]
    fn by_a_second_signal_ends_the_patience_and_leaves_hooks_out() {
        let (sim, log) = (Sim::new(), Log::default());
        let note = log.clone();
        let supervisor = supervisor(&sim)
            .task("deaf", |_| pending::<()>())
            .close("pool", move || async move { note.note("closed") })
            .build()
            .unwrap();
        let second = sim.sleep(2 * SECOND);
        let report = sim.run(supervisor.run_until(async {}, second));
        assert!(report.aborted);
        assert_eq!(report.took, 7 * SECOND);
        assert_eq!(report.abandoned(), 2);
        assert_eq!(log.all(), [""; 0]);
    }

    #[test]
    fn during_a_hook_ends_it() {
        let sim = Sim::new();
        let builder = supervisor(&sim).close("pool", pending::<()>);
        let second = sim.sleep(2 * SECOND);
        let report = sim.run(builder.build().unwrap().run_until(async {}, second));
        assert!(report.aborted);
        assert_eq!(report.took, 2 * SECOND);
    }

    #[test]
    fn without_a_shutdown_before_it_stops_all_the_same() {
        let sim = Sim::new();
        let builder = supervisor(&sim).task("relay", |stop| stop);
        let report = sim.run(builder.build().unwrap().run_until(pending(), async {}));
        assert_eq!(report.cause, ShutdownCause::Abort);
        assert!(report.aborted);
    }
}

mod fault {
    use super::*;

    fn faulty(sim: &Sim, log: &Log) -> SupervisorBuilder {
        let timer = sim.clone();
        supervisor(sim)
            .task("panics", move |_| async move {
                timer.sleep(SECOND).await;
                fault("out of ideas");
            })
            .task("panics at once", |_| -> std::future::Ready<()> {
                panic!("no future")
            })
            .task("fails", |_| async { Err::<(), _>("no such table") })
            .task("lives", |stop| stop)
            .observer(log.clone())
    }

    #[test]
    fn in_one_task_is_reported_and_kills_no_other() {
        let (sim, log) = (Sim::new(), Log::default());
        let supervisor = faulty(&sim, &log).build().unwrap();
        let readiness = supervisor.readiness();
        let shutdown = sim
            .sleep(60 * SECOND)
            .map(move |()| assert!(readiness.is_ready()));
        let report = sim.run(supervisor.run(shutdown));
        let end = |name| report.task(name).unwrap().end.clone();
        assert_eq!(end("panics"), TaskEnd::Panicked("out of ideas".into()));
        assert_eq!(end("panics at once"), TaskEnd::Panicked("no future".into()));
        assert_eq!(end("fails"), TaskEnd::Failed("no such table".into()));
        assert_eq!(end("lives"), TaskEnd::Finished);
        assert_eq!(report.took, Duration::ZERO);
        let expected = [
            "panics at once panicked",
            "fails failed",
            "panics panicked",
            "begin",
        ];
        assert_eq!(log.all()[..4], expected);
    }

    #[test]
    fn takes_readiness_or_the_process_down_where_asked_to() {
        let (sim, log) = (Sim::new(), Log::default());
        let supervisor = faulty(&sim, &log)
            .on_failure(OnFailure::Unready)
            .build()
            .unwrap();
        let readiness = supervisor.readiness();
        let shutdown = sim
            .sleep(60 * SECOND)
            .map(move |()| assert!(!readiness.is_ready()));
        assert_eq!(
            sim.run(supervisor.run(shutdown)).cause,
            ShutdownCause::Signal
        );

        let supervisor = faulty(&sim, &log)
            .on_failure(OnFailure::Shutdown)
            .build()
            .unwrap();
        let report = sim.run(supervisor.run(pending()));
        assert_eq!(report.cause, ShutdownCause::Task("panics at once".into()));
    }

    #[test]
    fn of_an_observer_or_a_hook_has_no_effect() {
        struct Broken;
        impl Observer for Broken {
            fn on(&self, _: &Transition<'_>) {
                panic!("observer");
            }
        }
        let sim = Sim::new();
        let supervisor = supervisor(&sim)
            .close("first", || async { fault("hook") })
            .close("second", || async {})
            .observer(Broken)
            .build()
            .unwrap();
        let report = sim.run(supervisor.run(async {}));
        assert_eq!(
            report.task("first").unwrap().end,
            TaskEnd::Panicked("hook".into())
        );
        assert_eq!(report.task("second").unwrap().end, TaskEnd::Finished);
    }
}

mod drop {
    use super::*;

    struct OnDrop(Log);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.note("dropped");
        }
    }

    fn with_guard(builder: SupervisorBuilder, log: &Log) -> Supervisor {
        let guard = OnDrop(log.clone());
        let builder = builder.task("deaf", move |_| async move {
            let _guard = guard;
            pending::<()>().await;
        });
        builder.build().unwrap()
    }

    #[test]
    fn of_the_future_takes_the_tasks_with_it() {
        let (sim, log) = (Sim::new(), Log::default());
        let supervisor = with_guard(supervisor(&sim), &log);
        let readiness = supervisor.readiness();
        let timer = sim.clone();
        sim.run(async {
            let run = std::pin::pin!(supervisor.run(pending()));
            let later = timer.sleep(SECOND);
            futures::future::select(run, later).await;
        });
        sim.run(sim.sleep(SECOND));
        assert_eq!(log.all(), ["dropped"]);
        assert!(!readiness.is_ready());
    }

    #[test]
    fn of_a_supervisor_that_never_ran_drops_its_tasks() {
        let (sim, log) = (Sim::new(), Log::default());
        std::mem::drop(with_guard(supervisor(&sim), &log));
        assert_eq!(log.all(), ["dropped"]);
    }

    #[test]
    fn of_the_runtimes_tasks_is_reported() {
        let (sim, log) = (Sim::new(), Log::default());
        let supervisor = with_guard(supervisor(&sim), &log);
        let killer = sim.clone();
        let shutdown = async move {
            killer.sleep(SECOND).await;
            killer.kill_tasks();
        };
        let report = sim.run(supervisor.run(shutdown));
        assert_eq!(report.task("deaf").unwrap().end, TaskEnd::Abandoned);
        assert_eq!(report.took, Duration::ZERO);
    }
}

mod relay {
    use super::*;
    use outbox_core::{
        Clock, Delivery, DeliveryError, Enqueue, Maintenance, MemoryStore, NewEvent, Receipt,
        Relay, Schedule, ScheduledJob, Scheduler, Transport, async_trait,
    };
    use std::time::SystemTime;

    struct SimClock(Sim, std::time::Instant);

    impl Clock for SimClock {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + (self.0.now() - self.1)
        }
    }

    /// Takes its time.
    struct Slow(Sim, Duration);

    #[async_trait]
    impl Transport for Slow {
        async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
            self.0.sleep(self.1).await;
            Ok(Receipt::new())
        }
    }

    fn shut_down_amid_a_delivery_of(
        period: Duration,
    ) -> (outbox_core::ShutdownReport, MemoryStore) {
        let sim = Sim::new();
        let store = MemoryStore::with_clock(SimClock(sim.clone(), sim.now()));
        let mut tx = store.begin();
        let event = NewEvent::bytes("T", "x").to("somewhere");
        store
            .enqueue(&mut tx, event)
            .now_or_never()
            .unwrap()
            .unwrap();
        tx.commit();
        let transport = Slow(sim.clone(), period);
        let relay = Relay::builder(store.clone(), transport, sim.clone())
            .build()
            .unwrap();
        let job = ScheduledJob::new(
            "tidy",
            Schedule::every(SECOND),
            |_: outbox_core::JobRun| async {},
        );
        let scheduler = Scheduler::builder(sim.clone()).job(job).build().unwrap();
        let supervisor = supervisor(&sim)
            .relay("relay", relay)
            .scheduler("jobs", scheduler)
            .build()
            .unwrap();
        (sim.run(supervisor.run(sim.sleep(5 * SECOND))), store)
    }

    #[test]
    fn finishes_what_it_delivers_before_the_pools_close() {
        let (report, store) = shut_down_amid_a_delivery_of(15 * SECOND);
        assert!(report.is_clean());
        assert!(report.task("relay").unwrap().took >= 10 * SECOND);
        assert_eq!(report.task("jobs").unwrap().took, Duration::ZERO);
        assert_eq!(store.published().len(), 1);
    }

    #[test]
    fn ends_within_the_default_budget_though_a_delivery_hangs() {
        let (report, store) = shut_down_amid_a_delivery_of(29 * SECOND);
        assert!(report.is_clean());
        assert_eq!(report.took, 15 * SECOND);
        let stats = store.stats(10).now_or_never().unwrap().unwrap();
        assert_eq!((stats.pending.value, store.published().len()), (1, 0));
    }
}

mod runtime {
    use super::*;
    use outbox_core::{TokioSpawn, TokioTimer};

    fn tasks(builder: SupervisorBuilder) -> Supervisor {
        let builder = builder
            .task("relay", |stop| stop)
            .task("panics", |_| async { fault("out of ideas") })
            .drain("http", || async {})
            .close("pool", || async {});
        builder.build().unwrap()
    }

    fn check(report: &outbox_core::ShutdownReport) {
        assert_eq!(report.abandoned(), 0);
        let panicked = TaskEnd::Panicked("out of ideas".into());
        assert_eq!(report.task("panics").unwrap().end, panicked);
        assert_eq!(report.task("relay").unwrap().end, TaskEnd::Finished);
    }

    #[tokio::test]
    async fn tokio_with_one_thread_runs_it() {
        check(
            &tasks(Supervisor::builder(TokioSpawn, TokioTimer))
                .run(async {})
                .await,
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tokio_with_two_threads_runs_it() {
        check(
            &tasks(Supervisor::builder(TokioSpawn, TokioTimer))
                .run(async {})
                .await,
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_close_hook_that_blocks_its_thread_breaks_no_budget() {
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let mut budgets = Budgets::default();
        budgets.close = Duration::from_millis(10);
        let supervisor = Supervisor::builder(TokioSpawn, TokioTimer)
            .budgets(budgets)
            .close("blocks", || async move {
                let _ = blocked.recv_timeout(5 * SECOND);
            })
            .close("next", || async {})
            .build()
            .unwrap();
        // On a thread of the runtime, where a new task is next in line: it must not be the one that
        // the timer would be looked after by.
        let (send, receive) = futures::channel::oneshot::channel();
        let run = supervisor.run(TokioTimer.sleep(Duration::from_millis(10)));
        TokioSpawn.spawn(run.map(|report| send.send(report).unwrap()).boxed());
        let report = receive.await.unwrap();
        drop(release);
        assert_eq!(report.task("blocks").unwrap().end, TaskEnd::Abandoned);
        assert_eq!(report.task("next").unwrap().end, TaskEnd::Finished);
        assert!(report.took < 5 * SECOND, "{report:?}");
    }

    #[test]
    fn a_server_can_hold_the_readiness_of_its_own_supervisor() {
        let (sim, log) = (Sim::new(), Log::default());
        let builder = supervisor(&sim);
        let (ready, note) = (builder.readiness(), log.clone());
        let builder = builder.server("http", move |stop| async move {
            note.note(format!("ready: {}", ready.is_ready()));
            stop.await;
            note.note(format!("ready: {}", ready.is_ready()));
        });
        sim.run(builder.build().unwrap().run(sim.sleep(SECOND)));
        assert_eq!(log.all(), ["ready: true", "ready: false"]);
    }

    #[test]
    fn the_reports_of_a_relay_and_a_scheduler_are_outputs_of_tasks() {
        let sim = Sim::new();
        let supervisor = supervisor(&sim)
            .task("relay", |_| async { outbox_core::Report::default() })
            .task("jobs", |_| async {
                outbox_core::SchedulerReport::default()
            })
            .build()
            .unwrap();
        assert!(sim.run(supervisor.run(async {})).is_clean());
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_keeps_the_budgets_by_its_own_clock() {
        let builder = Supervisor::builder(TokioSpawn, TokioTimer).task("deaf", |_| pending::<()>());
        let report = builder.build().unwrap().run(async {}).await;
        assert!(report.took >= 25 * SECOND && report.took < 26 * SECOND);
    }

    #[test]
    fn smol_runs_it() {
        struct SmolSpawn;
        impl Spawn for SmolSpawn {
            fn spawn(&self, task: futures::future::BoxFuture<'static, ()>) {
                smol::spawn(task).detach();
            }
        }
        struct SmolTimer;
        impl Timer for SmolTimer {
            #[expect(clippy::disallowed_methods, reason = "a timer is the seam")]
            fn now(&self) -> std::time::Instant {
                std::time::Instant::now()
            }
            fn sleep(&self, d: Duration) -> futures::future::BoxFuture<'static, ()> {
                smol::Timer::after(d).map(std::mem::drop).boxed()
            }
        }
        let supervisor = tasks(Supervisor::builder(SmolSpawn, SmolTimer));
        check(&smol::block_on(supervisor.run(async {})));
    }
}
