//! The list of cases, and the macros that make tests of it.

/// Makes one test of each case of the suite.
///
/// Takes the attribute that makes an `async fn` a test on the runtime of choice, and an async
/// function that makes a fresh [`Harness`](crate::conformance::Harness). See
/// [`conformance`](crate::conformance).
#[macro_export]
macro_rules! conformance_suite {
    ($(#[$attribute:meta])+, $new:expr $(,)?) => {
        $crate::__conformance_cases! { [$(#[$attribute])+] ($new) }
    };
}

/// Every case, by module.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ($attributes:tt $new:tt) => {
        $crate::__conformance_modules! { $attributes $new
            enqueue {
                is_seen_after_commit
                is_not_seen_before_commit
                is_gone_after_rollback
                is_gone_when_the_transaction_is_dropped
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
                rolled_back_frees_its_dedup_key
                tells_dedup_keys_apart_byte_for_byte
                in_parallel_stores_one_for_a_dedup_key
                refuses_the_id_of_an_open_event
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
                tells_what_has_expired
                tells_the_age
                tells_when_the_next_event_falls_due
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
                cut_short_loses_nothing
                reports_a_row_that_makes_no_event_and_goes_on
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_modules {
    ($attributes:tt $new:tt $($module:ident $cases:tt)+) => {
        $($crate::__conformance_module! { $attributes $new $module $cases })+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_module {
    ($attributes:tt $new:tt $module:ident { $($case:ident)+ }) => {
        mod $module {
            #[allow(unused_imports, reason = "the constructor may be given by its full path")]
            use super::*;
            $($crate::__conformance_case! { $attributes $new $module $case })+
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
}
