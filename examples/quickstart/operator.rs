//! The operator: lists dead letters, repairs the cause, replays them.

use outbox_core::{DeadLetterFilter, Page, Replay};

use crate::ci_server::CiServer;
use crate::database::Database;
use crate::pushes::AnyError;
use crate::timeline::Timeline;

/// As many dead letters are shown one by one.
const SHOWN: usize = 3;

/// What an operator did.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    pub(crate) dead: u64,
    pub(crate) replayed: u64,
}

/// Lists the dead letters of one receiver, makes it answer again, and puts them back.
pub(crate) async fn replay_dead_letters(
    database: &Database,
    receiver: &CiServer,
    timeline: &Timeline,
) -> Result<Repaired, AnyError> {
    let store = database.store();
    let filter = DeadLetterFilter::destination(receiver.url());
    let mut repaired = Repaired::default();
    let mut page = Page::default();
    loop {
        let letters = store.list(&filter, &page).await?;
        let Some(last) = letters.last() else { break };
        page = Page::after(last.event.seq, page.rows);
        if repaired.dead == 0 {
            for letter in letters.iter().take(SHOWN) {
                let (event, error) = (&letter.event, letter.event.last_error.as_deref());
                let line = format!(
                    "{} of repository {}: {} ({})",
                    event.event_type,
                    event.aggregate_id.as_deref().unwrap_or("?"),
                    letter.reason,
                    error.unwrap_or("no error kept"),
                );
                timeline.step("dead", &line);
            }
        }
        repaired.dead += u64::try_from(letters.len())?;
    }
    receiver.set_gone(false);
    loop {
        let batch = Replay::new(filter.clone());
        let replayed = store.replay(&batch).await?;
        repaired.replayed += replayed;
        if replayed < u64::from(batch.rows) {
            break;
        }
    }
    let what = format!(
        "{} dead letters listed, their receiver repaired, {} replayed",
        repaired.dead, repaired.replayed
    );
    timeline.step("operator", &what);
    Ok(repaired)
}
