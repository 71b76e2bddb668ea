//! The git host: accepts pushes, and waits until the receivers know of each.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outbox_core::{EventId, Poke};
use tokio::task::JoinSet;

use crate::args::{Args, Share};
use crate::ci_server::CiServer;
use crate::database::{Database, Held};
use crate::history::{History, Push};
use crate::operator::Repaired;
use crate::pushes::AnyError;
use crate::relay::Tally;
use crate::summary::Summary;
use crate::timeline::Timeline;

/// Between two looks at the receivers.
const LOOK: Duration = Duration::from_millis(20);

/// Everything but the relay.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) database: Database,
    /// Down at first, flaky after that.
    ci: CiServer,
    /// Answers 410 until it is repaired.
    pub(crate) mirror: CiServer,
    forks: Vec<Vec<Push>>,
    patience: Duration,
    timeline: Arc<Timeline>,
}

impl Host {
    /// Makes the forks of the history, starts the receivers.
    pub(crate) async fn start(
        args: &Args,
        timeline: &Arc<Timeline>,
        database: Database,
        folder: &Path,
        history: History,
    ) -> Result<Self, AnyError> {
        let (source, commits) = (history.source, history.commits.len());
        let (forks, pushes) = (args.forks, args.pushes);
        let forks = history.into_forks(usize::try_from(forks)?, usize::try_from(pushes)?);
        let plan = format!(
            "{commits} commits from {source} make {pushes} pushes to {} forks",
            forks.len()
        );
        timeline.step("history", &plan);
        for first in forks.iter().filter_map(|pushes| pushes.first()) {
            database.create_repository(first).await?;
        }
        let fails = format!("fails {:.0} % of the requests", args.flaky.0 * 100.0);
        let plan = if args.outage.is_zero() {
            fails
        } else {
            format!("down for {:?}; after that it {fails}", args.outage)
        };
        timeline.step("ci", &plan);
        timeline.step("mirror", "answers 410 Gone");
        let ci = CiServer::start("ci", folder, args.outage, args.flaky, timeline).await?;
        let (outage, flaky) = (Duration::ZERO, Share(0.0));
        let mirror = CiServer::start("mirror", folder, outage, flaky, timeline).await?;
        mirror.set_gone(true);
        Ok(Self {
            database,
            ci,
            mirror,
            forks,
            patience: args.patience,
            timeline: Arc::clone(timeline),
        })
    }

    /// Accepts all pushes: forks in parallel, each one's pushes in order. The first push to a fork
    /// goes to the mirror too. Returns the ids of all events.
    pub(crate) async fn accept_pushes(&self, wake: &Poke) -> Result<HashSet<String>, AnyError> {
        let mut producers = JoinSet::new();
        for pushes in self.forks.clone() {
            let (database, ci, mirror) = (self.database.clone(), self.ci.url(), self.mirror.url());
            let wake = wake.clone();
            producers.spawn(async move {
                let mut ids = Vec::new();
                for (n, push) in pushes.iter().enumerate() {
                    let both = [ci.as_str(), mirror.as_str()];
                    let hooks = if n == 0 { &both[..] } else { &both[..1] };
                    ids.extend(database.accept(push, hooks).await?);
                    wake.poke();
                }
                Ok::<_, AnyError>(ids)
            });
        }
        let mut events = HashSet::new();
        while let Some(ended) = producers.join_next().await {
            events.extend(ended??.iter().map(EventId::to_string));
        }
        let accepted = self.accepted().await?;
        let what = format!("{accepted} accepted, each in one transaction with its events");
        self.timeline.step("pushes", &what);
        Ok(events)
    }

    async fn accepted(&self) -> Result<u64, AnyError> {
        let forks = i64::try_from(self.forks.len())?;
        Ok(u64::try_from(self.database.accepted(forks).await?)?)
    }

    /// Waits until each of `events` has arrived or is dead, and the outbox knows; or until patience
    /// ends.
    pub(crate) async fn wait_for(
        &self,
        events: usize,
        tally: Option<&Tally>,
    ) -> Result<(), AnyError> {
        let start = Instant::now();
        while start.elapsed() < self.patience {
            let arrived = self.ci.builds().await?.len() + self.mirror.builds().await?.len();
            let text = match tally {
                Some(tally) => tally.text(),
                None => format!("{arrived} of {events} events have arrived"),
            };
            self.timeline.progress("relay", &text);
            let held = self.held().await?;
            if arrived + held.dead.len() >= events && held.open.is_empty() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// What the outbox still has of this run: the receivers' ports are its own.
    async fn held(&self) -> Result<Held, AnyError> {
        self.database
            .held([&self.ci.url(), &self.mirror.url()])
            .await
    }

    /// Accounts for `events`, one by one: it arrived (the receivers' own tables say so), or it is in
    /// the outbox, or it is lost.
    pub(crate) async fn summary(
        &self,
        events: &HashSet<String>,
        tally: Option<&Tally>,
        repaired: Repaired,
    ) -> Result<Summary, AnyError> {
        // First: what is not in the outbox any more has arrived by now.
        let held = self.held().await?;
        let builds = self.ci.builds().await?;
        let copies = self.mirror.builds().await?;
        let arrived: HashSet<&String> = builds.iter().chain(&copies).collect();
        let missing: Vec<&String> = events.iter().filter(|id| !arrived.contains(id)).collect();
        let lost = missing
            .iter()
            .filter(|id| !held.open.contains(**id) && !held.dead.contains(**id))
            .count();
        Ok(Summary {
            pushes: self.accepted().await?,
            events: u64::try_from(events.len())?,
            delivered: u64::try_from(events.len() - missing.len())?,
            retried: tally.map(|tally| tally.retried.load(Ordering::Relaxed)),
            duplicates: self.ci.duplicates() + self.mirror.duplicates(),
            dead: repaired.dead,
            replayed: repaired.replayed,
            builds: u64::try_from(builds.len())?,
            repeated: u64::try_from(builds.len() + copies.len() - arrived.len())?,
            out_of_order: u64::try_from(self.ci.out_of_order().await?)?,
            pending: u64::try_from(held.open.len())?,
            lost: u64::try_from(lost)?,
        })
    }
}
