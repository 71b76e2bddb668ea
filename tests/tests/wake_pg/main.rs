//! Wake-ups by PostgreSQL's notifications, on every adapter that has them.
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

mod cases;
mod subject;

use outbox_sqlx::PgStore as Sqlx;
use subject::Diesel;

/// One test per case, for each adapter.
macro_rules! suite {
    ($name:ident, $subject:ty: $($case:ident)+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::cases::$case::<$subject>().await;
                }
            )+
        }
    };
}

macro_rules! suites {
    ($($name:ident: $subject:ident),+) => {
        $(suite! { $name, super::$subject:
            a_call_after_the_commit_wakes_a_sleeping_relay
            the_trigger_wakes_a_sleeping_relay
            the_trigger_notifies_of_inserts_alone_and_can_be_removed
            a_listener_whose_backend_is_terminated_listens_again_and_looks_once
            a_listener_whose_backend_says_nothing_is_replaced
            a_quiet_listener_is_kept
            a_relay_outlives_a_crash_of_the_server
            a_wake_without_a_server_waits_for_one
            any_payload_wakes
            tables_of_other_names_have_another_channel
            a_relay_without_a_wake_polls
        })+
    };
}

suites! { diesel: Diesel, sqlx: Sqlx }
