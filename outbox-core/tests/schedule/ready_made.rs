//! The jobs that come with the library.

use super::*;
use outbox_core::jobs::{
    ExportStats, PruneIdempotencyKeys, PruneStore, RotateSecrets, SecretRotation,
};
use outbox_core::{
    Enqueue, MemoryStore, MockIdempotencyKeys, MockMaintenance, NewEvent, Prune, Pruned, Stats,
};

fn once(job: impl Job + 'static) -> JobEnd {
    let sim = Sim::new();
    let job = ScheduledJob::new("j", every(1), job);
    let scheduler = scheduler(&sim).job(job).build().unwrap();
    sim.run(scheduler.run_now("j")).unwrap()
}

#[test]
fn prune_goes_on_while_batches_are_full() {
    let mut left = vec![(3, 0), (0, 10), (10, 2)];
    let mut store = MockMaintenance::new();
    store.expect_prune().times(3).returning(move |_| {
        let (published, dead) = left.pop().unwrap();
        let mut pruned = Pruned::default();
        (pruned.published, pruned.dead) = (published, dead);
        Ok(pruned)
    });
    let mut prune = Prune::default();
    prune.rows = 10;
    assert_eq!(once(PruneStore::new(store, prune)), JobEnd::Finished);
}

#[test]
fn prune_ends_at_a_shutdown_however_much_is_left() {
    let sim = Sim::new();
    let mut store = MockMaintenance::new();
    store.expect_prune().returning(|prune| {
        let mut pruned = Pruned::default();
        pruned.published = prune.rows.into();
        Ok(pruned)
    });
    struct Slow(Sim, MockMaintenance);
    #[async_trait]
    impl outbox_core::Maintenance for Slow {
        async fn stats(&self, limit: u32) -> Result<Stats, Error> {
            self.1.stats(limit).await
        }
        async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
            self.0.sleep(SECOND).await;
            self.1.prune(prune).await
        }
    }
    let prune = PruneStore::new(Slow(sim.clone(), store), Prune::default());
    let jobs = scheduler(&sim).job(ScheduledJob::new("prune", every(1), prune));
    assert_eq!(run_for(&sim, jobs, 20).jobs[0].finished, 1);
}

#[test]
fn prune_of_idempotency_keys_goes_on_until_none_is_left() {
    let mut left = vec![0, 7, 1_000];
    let mut keys = MockIdempotencyKeys::new();
    keys.expect_prune_keys()
        .times(3)
        .returning(move |_| Ok(left.pop().unwrap()));
    assert_eq!(once(PruneIdempotencyKeys::new(keys)), JobEnd::Finished);
}

#[test]
fn stats_are_told_to_the_observer() {
    struct Pending(Arc<Mutex<Vec<u64>>>);
    impl Observer for Pending {
        fn on(&self, transition: &Transition<'_>) {
            if let Transition::Stats { stats } = transition {
                self.0.lock().unwrap().push(stats.pending.value);
            }
        }
    }
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let event = NewEvent::bytes("T", "x").to("somewhere");
    store
        .enqueue(&mut tx, event)
        .now_or_never()
        .unwrap()
        .unwrap();
    tx.commit();
    let seen = Arc::default();
    let job = ExportStats::new(store, Pending(Arc::clone(&seen)));
    assert_eq!(once(job), JobEnd::Finished);
    assert_eq!(*seen.lock().unwrap(), [1]);
}

#[test]
fn rotation_calls_the_seam_and_reports_its_error() {
    struct Vault;
    #[async_trait]
    impl SecretRotation for Vault {
        async fn rotate(&self) -> Result<(), Error> {
            Err(Error::new(
                outbox_core::ErrorKind::Unavailable,
                "vault is sealed",
            ))
        }
    }
    let sealed = JobEnd::Failed("vault is sealed".into());
    assert_eq!(once(RotateSecrets::new(Vault)), sealed);
}
