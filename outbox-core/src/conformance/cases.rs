//! The list of cases, and the macros that make tests of it.

/// Makes one test of each case of the suite.
///
/// Takes the attribute that makes an `async fn` a test on the runtime of choice, or a function that
/// runs a future to its end, and an async function that makes a fresh
/// [`Harness`](crate::conformance::Harness). See [`conformance`](crate::conformance).
///
/// ```ignore
/// outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread")], MyHarness::new);
/// outbox_core::conformance_suite!(smol::block_on, MyHarness::new);
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($(#[$attribute:meta])+, $new:expr $(,)?) => {
        $crate::__conformance_cases! { [$(#[$attribute])+] ($new) }
    };
    ($block_on:path, $new:expr $(,)?) => {
        $crate::__conformance_cases! { ($block_on) ($new) }
    };
}

/// Makes one test of each case about idempotency keys, inbox ids and locks.
///
/// Takes what [`conformance_suite!`](crate::conformance_suite) takes, with a
/// [`ReceivingHarness`](crate::conformance::ReceivingHarness).
#[macro_export]
macro_rules! receiving_suite {
    ($(#[$attribute:meta])+, $new:expr $(,)?) => {
        $crate::__receiving_cases! { [$(#[$attribute])+] ($new) }
    };
    ($block_on:path, $new:expr $(,)?) => {
        $crate::__receiving_cases! { ($block_on) ($new) }
    };
}

/// Every case of a receiver's store, by module.
#[doc(hidden)]
#[macro_export]
macro_rules! __receiving_cases {
    ($runner:tt $new:tt) => {
        $crate::__conformance_modules! { $runner $new
            keys {
                start_one_of_many
                keep_the_answer_byte_for_byte
                are_apart_by_scope_and_byte_for_byte
                begun_again_by_the_same_run_renew_its_lease
                of_a_crashed_run_are_taken_over
                refuse_another_request
                are_forgotten_when_their_retention_has_passed
                abandoned_are_free_for_any_request
                that_are_done_are_neither_abandoned_nor_extended
                under_an_expired_lease_still_complete_and_extend
                that_do_not_exist_are_unknown
                are_pruned_when_over_and_never_in_flight
                are_as_the_repeat_says_where_a_call_was_cut_short
                cut_short_prunes_take_what_is_over_alone
            }
            inbox {
                commits_and_rolls_back_with_the_transaction
                notices_an_id_with_another_content
                tells_sources_and_ids_apart_byte_for_byte
                never_calls_a_duplicate_what_may_yet_roll_back
                takes_an_id_for_new_when_its_retention_has_passed
                cut_short_accepts_nothing_after_rollback
            }
            locks {
                are_held_by_one_of_many
                are_held_until_their_lease_ends
                are_open_once_given_back
                stay_closed_while_they_cool_down
                are_apart_byte_for_byte
                refuse_names_that_stores_cannot_keep
                are_as_the_repeat_says_where_a_call_was_cut_short
            }
        }
    };
}

/// Every case, by module.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ($runner:tt $new:tt) => {
        $crate::__conformance_modules! { $runner $new
            enqueue {
                is_seen_after_commit
                is_not_seen_before_commit
                is_gone_after_rollback
                is_gone_when_the_transaction_is_dropped
                is_gone_where_the_producer_panics
                cut_short_leaves_nothing_after_rollback
                keeps_every_field
                keeps_what_is_not_set_unset
                keeps_payloads_byte_for_byte
                numbers_ascend_in_the_order_given
                numbers_are_never_reused
                stores_thousands_at_once
                stores_nothing_for_an_empty_list
                refuses_what_breaks_a_limit_and_leaves_the_transaction_usable
                refuses_all_of_a_list_where_one_breaks_a_limit
                of_a_known_dedup_key_stores_nothing
                of_several_with_one_dedup_key_stores_the_first
                of_a_list_answers_in_its_order
                of_thousands_stores_each_dedup_key_once
                rolled_back_frees_its_dedup_key
                tells_dedup_keys_apart_byte_for_byte
                in_parallel_stores_one_for_a_dedup_key
                refuses_the_id_of_an_open_event
                refused_for_its_id_takes_no_dedup_key
                accepts_the_id_of_a_published_event
                with_a_delay_is_due_after_it
                bears_any_delay_and_lifetime
            }
            claim {
                gives_events_by_ascending_number
                gives_no_more_than_asked_for
                never_hands_one_event_to_two_relays
                and_settle_deliver_all_once_under_contention
                counts_the_attempt
                counts_attempts_that_kill_the_relay
                leaves_leased_events_alone_until_the_lease_ends
                gives_one_event_however_large
                stops_at_the_limit_of_bytes
                takes_only_the_types_asked_for
                takes_only_the_destinations_asked_for
                leaves_out_destinations_however_much_waits_for_them
                tells_destinations_apart_byte_for_byte
                tells_types_apart_byte_for_byte
                tells_what_has_expired
                tells_the_age
                tells_when_the_next_event_falls_due
                tells_that_nothing_will_fall_due
                tells_whether_a_death_would_block_the_key
                finds_what_commits_late
                finds_what_came_back_behind_the_front
                finds_due_events_among_far_future_ones
                takes_every_open_event_in_the_end
                starves_no_retry_behind_fresh_events
                starves_no_fresh_event_behind_retries
                starves_no_event_without_a_key_behind_a_hot_key
                starves_no_key_behind_a_hot_key
                starves_no_key_behind_events_without_one
                starves_nothing_when_it_takes_one_event_at_a_time
                cut_short_loses_nothing
                reports_a_row_that_makes_no_event_and_goes_on
            }
            settle {
                as_published_ends_an_event
                as_retry_keeps_the_attempt_and_waits
                as_retry_measures_from_now
                as_defer_refunds_the_attempt_and_waits
                as_release_refunds_the_attempt_at_once
                as_dead_keeps_the_event_with_its_reason
                ignores_a_lost_lease
                is_fenced_by_the_token_and_not_by_attempts
                accepts_an_expired_lease_that_nobody_took_over
                answers_unknown_for_what_is_gone
                repeated_changes_nothing_and_is_not_called_lost
                answers_in_the_order_of_the_batch
                publishes_events_of_several_claims_at_once
                of_nothing_answers_nothing
                takes_thousands_at_once
                cannot_fail_on_text
                bears_any_delay
                cut_short_loses_nothing
                in_parallel_ends_each_event_once
                races_with_a_takeover_and_one_wins
            }
            lease {
                extended_keeps_the_event
                extended_counts_from_now
                extension_ignores_a_lost_lease
                extension_revives_an_ended_lease_of_an_event_without_a_key
                extension_of_an_ended_lease_of_a_key_is_refused
                extension_bears_any_period
                released_is_due_at_once_and_uncharged
                release_ignores_a_lost_lease
                released_twice_is_refunded_once
                of_a_whole_claim_is_released_by_its_token
                of_other_claims_is_left_alone
                of_a_stale_token_is_not_released
                answers_in_the_order_of_the_leases
                shorter_than_the_work_hands_the_event_over
            }
            order {
                is_that_of_the_enqueues
                gives_a_key_by_runs
                lets_one_run_of_a_key_be_in_flight
                is_held_while_the_tail_of_a_run_is_in_flight
                is_held_by_a_head_that_waits_for_its_retry
                is_held_by_a_delayed_head
                is_kept_where_a_delayed_event_cuts_a_run
                starts_over_where_a_lease_expired
                goes_on_past_a_dead_head_under_skip
                stops_at_a_dead_head_under_block
                is_kept_where_the_tail_of_a_run_goes_back
                is_of_each_destination_alone
                of_one_key_holds_no_other
                tells_keys_apart_byte_for_byte
                is_not_overtaken_by_a_filter_of_types
                is_kept_where_the_limit_of_bytes_cuts_a_run
                takes_in_a_late_commit_by_its_number
                lets_one_run_be_in_flight_however_many_events_come_back_before_it
                lets_one_run_be_in_flight_however_many_late_commits_come_before_it
                is_kept_under_contention
                survives_a_stale_relay
                lets_no_run_come_back_beside_one_that_began_when_its_lease_had_ended
            }
            dead_letters {
                keep_the_whole_event
                keep_every_reason
                that_do_not_exist_are_none
                are_listed_by_pages
                are_found_by_each_filter
                are_found_byte_for_byte
                replayed_keep_their_identity
                replayed_may_get_a_new_lifetime
                replayed_at_a_pace_fall_due_one_after_another
                replayed_by_batches_all_come_back
                replayed_by_batches_pass_over_ids_that_are_open
                replayed_are_not_swallowed_by_their_dedup_key
                replayed_twice_at_once_come_back_once
                replayed_and_discarded_at_once_go_one_way
                replayed_that_fail_again_are_dead_again
                replayed_leave_other_open_events_alone
                discarded_are_gone
                that_make_no_event_go_the_way_of_others
                replayed_under_block_head_their_key
                discarded_free_their_key
                block_their_key_until_the_last_is_gone
                block_no_key_for_events_without_one
                block_keys_that_are_listed_by_pages
                no_longer_block_once_the_policy_is_skip
            }
            holds {
                keep_events_back_uncharged
                end_by_themselves
                keep_the_later_end
                set_in_parallel_keep_the_latest_end
                of_the_disabling_kind_last_until_freed
                of_the_disabling_kind_replace_a_timed_one
                are_lifted_by_free
                let_what_is_in_flight_end
                bear_any_period_and_text
                hide_no_other_destination
                of_many_keys_shorten_no_run_of_others
                that_end_let_no_backlog_starve_others
                and_policies_are_listed
                that_ended_leave_no_reason
                are_told_to_an_idle_relay
            }
            cut_short {
                replays_bring_each_letter_back_once
                discards_take_each_letter_and_free_its_key
                prunes_take_what_is_old_alone
                extensions_are_as_the_repeat_says
                releases_refund_an_attempt_once
                holds_are_as_the_repeat_says
                policies_are_as_the_repeat_says
                stats_are_those_of_the_call_that_asks
                lists_are_those_of_the_call_that_asks
            }
            histories {
                of_many_workers_match_the_model
            }
            maintenance {
                counts_what_is_there
                counts_up_to_a_limit
                tells_how_long_the_oldest_due_event_waits
                prunes_what_was_published_long_ago
                prunes_by_batches
                prunes_published_events_and_dedup_keys_by_batches
                prunes_count_no_discarded_letters
                prunes_no_open_event
                prunes_dead_letters_only_when_asked
                prunes_a_dead_letter_and_frees_its_key
                prunes_dedup_keys_once_nothing_needs_them
                prunes_dedup_keys_behind_batches_that_must_stay
                goes_on_beside_the_relay
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_modules {
    ($runner:tt $new:tt $($module:ident $cases:tt)+) => {
        $($crate::__conformance_module! { $runner $new $module $cases })+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_module {
    ($runner:tt $new:tt $module:ident { $($case:ident)+ }) => {
        mod $module {
            #[allow(unused_imports, reason = "the constructor may be given by its full path")]
            use super::*;
            $($crate::__conformance_case! { $runner $new $module $case })+
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_case {
    ([$(#[$attribute:meta])+] ($new:expr) $module:ident $case:ident) => {
        $(#[$attribute])+
        async fn $case() {
            let harness = ::std::sync::Arc::new($new().await);
            $crate::conformance::$module::$case(&harness).await;
        }
    };
    (($block_on:path) ($new:expr) $module:ident $case:ident) => {
        #[test]
        fn $case() {
            $block_on(async {
                let harness = ::std::sync::Arc::new($new().await);
                $crate::conformance::$module::$case(&harness).await;
            });
        }
    };
}
