//! The closing account: every event is accounted for.

use std::fmt;

/// What became of everything.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Accepted pushes, by the table `repositories`.
    pub(crate) pushes: u64,
    /// Events that the pushes stored.
    pub(crate) events: u64,
    /// Events that arrived.
    pub(crate) delivered: u64,
    /// Failed attempts that were made again; `None` where another process relayed.
    pub(crate) retried: Option<u64>,
    /// Webhooks that came again and changed nothing.
    pub(crate) duplicates: u64,
    /// Events that were dead letters.
    pub(crate) dead: u64,
    /// Of these: put back.
    pub(crate) replayed: u64,
    /// Builds of the CI server.
    pub(crate) builds: u64,
    /// Builds beyond the first for one webhook.
    pub(crate) repeated: u64,
    /// Builds that began elsewhere than where the one before had ended.
    pub(crate) out_of_order: u64,
    /// Events of this run that are open still.
    pub(crate) pending: u64,
    /// Events that neither arrived nor are in the outbox.
    pub(crate) lost: u64,
}

impl Summary {
    /// Whether everything arrived, once.
    pub(crate) const fn is_good(&self) -> bool {
        self.lost == 0
            && self.pending == 0
            && self.repeated == 0
            && self.builds == self.pushes
            && self.delivered == self.events
            && self.dead == self.replayed
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pushes, events, .. } = self;
        writeln!(f)?;
        writeln!(f, "pushes      {pushes} accepted, with {events} events")?;
        writeln!(f, "delivered   {}", self.delivered)?;
        match self.retried {
            Some(retried) => writeln!(f, "retried     {retried} failed attempts")?,
            None => writeln!(f, "retried     by the relay's process")?,
        }
        writeln!(
            f,
            "duplicates  {} absorbed by the receivers",
            self.duplicates
        )?;
        writeln!(f, "dead        {}", self.dead)?;
        writeln!(f, "replayed    {}", self.replayed)?;
        writeln!(
            f,
            "builds      {} started, {} of them twice, {} out of order",
            self.builds, self.repeated, self.out_of_order
        )?;
        writeln!(f, "pending     {}", self.pending)?;
        write!(f, "lost        {}", self.lost)
    }
}
