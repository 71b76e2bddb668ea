//! What relays, operators and jobs ask of a store, each call at least once.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    BlockedKeyPage, ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, DestinationFilter,
    DestinationPage, Destinations, Hold, Lease, LeaseToken, Maintenance, OutboxStore, Outcome,
    Page, Prune, Replay, Settlement,
};

const LEASE: Duration = Duration::from_secs(60);
const ROWS: u32 = 20;

/// Makes the calls, on events of the type `T` for the destinations `d0` to `d9`; returns how many were
/// claimed.
pub(crate) async fn works<S>(store: &S) -> usize
where
    S: OutboxStore + DeadLetters + Destinations + Maintenance,
{
    let claimed = relays(store).await;
    operates(store).await;
    claimed
}

async fn relays(store: &impl OutboxStore) -> usize {
    let mut claimed = 0;
    let here = || vec!["d1".to_owned(), "d2".to_owned()];
    for destinations in [
        DestinationFilter::All,
        DestinationFilter::Only(here()),
        DestinationFilter::Except(here()),
    ] {
        for types in [None, Some(vec!["T".to_owned()])] {
            let mut request = request();
            request.destinations = destinations.clone();
            request.event_types = types;
            let leases = claim(store, &request).await;
            claimed += leases.len();
            store.extend(&leases, LEASE).await.expect("extended");
            settle(store, &leases, |_| Outcome::Published).await;
            request.token = LeaseToken::new();
            let leases = claim(store, &request).await;
            claimed += leases.len();
            settle(store, &leases, mixed).await;
            // They are gone: what became of them is asked for.
            settle(store, &leases, mixed).await;
        }
    }
    let leases = claim(store, &request()).await;
    store.release(&leases).await.expect("released");
    let lost = request();
    claim(store, &lost).await;
    store.release_claim(lost.token).await.expect("released");
    let reason = || "429".to_owned();
    let period = LEASE;
    for hold in [
        Hold::Disabled { reason: reason() },
        Hold::Free,
        Hold::For {
            period,
            reason: reason(),
        },
    ] {
        store.hold("d3", hold).await.expect("held");
        let leases = claim(store, &request()).await;
        settle(store, &leases, mixed).await;
    }
    claimed
}

async fn operates(store: &(impl DeadLetters + Destinations + Maintenance)) {
    store.stats(100).await.expect("told");
    let mut page = Page::default();
    let letters = store.list(&DeadLetterFilter::all(), &page).await;
    let letters = letters.expect("listed");
    let one = &letters[0].event;
    store.get(one.seq).await.expect("got");
    page.after = Some(one.seq);
    page.rows = ROWS;
    for filter in filters(one) {
        store.list(&filter, &page).await.expect("listed");
        let mut replay = Replay::new(filter.clone());
        replay.rows = ROWS;
        store.replay(&replay).await.expect("replayed");
        let discarded = store.discard(&filter, ROWS, "a test").await;
        discarded.expect("discarded");
    }
    let mut prune = Prune::default();
    let age = Some(Duration::from_secs(3_600));
    (prune.published_after, prune.dead_after) = (age, age);
    prune.dedup_after = age;
    prune.rows = ROWS;
    let pruned = store.prune(&prune).await.expect("pruned");
    assert!(
        pruned.published * pruned.dead * pruned.dedup > 0,
        "{pruned:?}"
    );
    store
        .destinations(&DestinationPage::default())
        .await
        .expect("listed");
    store
        .blocked_keys(&BlockedKeyPage::default())
        .await
        .expect("listed");
}

fn filters(one: &outbox_core::Event) -> Vec<DeadLetterFilter> {
    let mut filters = vec![
        DeadLetterFilter::all(),
        DeadLetterFilter::seq(one.seq),
        DeadLetterFilter::id(one.id),
        DeadLetterFilter::destination("d1"),
    ];
    let mut typed = DeadLetterFilter::destination("d1");
    typed.event_type = Some("T".to_owned());
    typed.key = Some("1".to_owned());
    typed.reason = Some(DeathReason::Gone);
    typed.dead_for = Some(LEASE);
    filters.push(typed);
    filters
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(ROWS).expect("rows"), LEASE)
}

async fn claim(store: &impl OutboxStore, request: &ClaimRequest) -> Vec<Lease> {
    let claim = store.claim(request).await.expect("claimed");
    claim.events.iter().map(|one| one.lease).collect()
}

async fn settle(store: &impl OutboxStore, leases: &[Lease], outcome: fn(usize) -> Outcome) {
    let settlement = |(place, lease): (usize, &Lease)| Settlement::new(*lease, outcome(place));
    let batch: Vec<Settlement> = leases.iter().enumerate().map(settlement).collect();
    store.settle(&batch).await.expect("settled");
}

fn mixed(place: usize) -> Outcome {
    let (after, error) = (LEASE, "500".to_owned());
    match place % 5 {
        0 => Outcome::Published,
        1 => Outcome::Retry { after, error },
        2 => Outcome::Defer {
            after,
            reason: error,
        },
        3 => Outcome::Release,
        _ => Outcome::Dead {
            reason: DeathReason::Gone,
            error,
        },
    }
}
