//! Holds, policies and blocked keys.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use super::state::{Held, State};
use crate::clock::{duration_micros, from_micros};
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Hold, error_text,
};

impl State {
    pub(super) fn hold(&mut self, destination: &str, hold: &Hold) {
        let dest = self.dest(destination);
        let held = self.dests[dest].held.as_ref();
        let held = match hold {
            Hold::Free => None,
            Hold::Disabled { reason } => Some(Held {
                until: None,
                reason: error_text(reason),
            }),
            Hold::For { period, reason } => {
                let until = self.now.saturating_add(duration_micros(*period));
                match held.map(|held| held.until) {
                    Some(None) => return,
                    Some(Some(later)) if later >= until => return,
                    _ if until <= self.now => return,
                    _ => Some(Held {
                        until: Some(until),
                        reason: error_text(reason),
                    }),
                }
            }
        };
        self.set_hold(dest, held);
    }

    pub(super) fn set_policy(&mut self, destination: &str, policy: DeadHeadPolicy) {
        let dest = self.dest(destination);
        self.dests[dest].policy = policy;
        if policy == DeadHeadPolicy::Skip {
            let lanes = self.lanes.iter();
            let blocked = lanes.filter(|(_, lane)| lane.dest == dest && lane.blocked);
            let blocked: Vec<i64> = blocked.map(|(&id, _)| id).collect();
            for lane in blocked {
                self.unblock(lane);
            }
        }
    }

    pub(super) fn destinations(&self, page: &DestinationPage) -> Vec<DestinationState> {
        let after: Option<Arc<str>> = page.after.as_deref().map(Arc::from);
        let start = after.map_or(Unbounded, Excluded);
        let states = self
            .dest_index
            .range((start, Unbounded))
            .map(|(name, &dest)| {
                let dest = &self.dests[dest];
                let held = dest.held.as_ref();
                DestinationState {
                    destination: name.to_string(),
                    dead_head_policy: dest.policy,
                    held_until: held.and_then(|held| held.until).map(from_micros),
                    disabled: held.is_some_and(|held| held.until.is_none()),
                    reason: held.map(|held| held.reason.clone()),
                }
            });
        states
            .filter(|state| {
                state.reason.is_some() || state.dead_head_policy != DeadHeadPolicy::Skip
            })
            .take(page.rows.try_into().unwrap_or(usize::MAX))
            .collect()
    }

    pub(super) fn blocked_keys(&self, page: &BlockedKeyPage) -> Vec<BlockedKey> {
        let start = page.after.clone().map_or(Unbounded, Excluded);
        self.blocks
            .range((start, Unbounded))
            .take(page.rows.try_into().unwrap_or(usize::MAX))
            .map(|((destination, key), block)| {
                BlockedKey::new(destination, key, block.seq, from_micros(block.since))
            })
            .collect()
    }
}
