//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use outbox_core::Stats;

use crate::breaker::Circuits;

/// The store's gauges, under names that end in `_now`, so that they stand beside those that a job
/// exports through the `metrics` facade.
pub(super) fn stats(text: &mut String, stats: &Stats) {
    gauge(
        text,
        "outbox_store_answers",
        "1 where the store answered this scrape.",
        1,
    );
    let counts = [
        ("outbox_pending_now", "Open events.", stats.pending),
        (
            "outbox_claimed_now",
            "Open events under a lease.",
            stats.claimed,
        ),
        (
            "outbox_due_now",
            "Open events that could be claimed.",
            stats.due,
        ),
        (
            "outbox_parked_now",
            "Open events of held destinations.",
            stats.parked,
        ),
        ("outbox_dead_letters_now", "Dead letters.", stats.dead),
        (
            "outbox_blocked_keys_now",
            "Keys that wait for a dead head.",
            stats.blocked_keys,
        ),
    ];
    for (name, help, count) in counts {
        gauge(text, name, help, count.value);
    }
    let age = stats.oldest_due.unwrap_or_default().as_secs_f64();
    let help = "How long the oldest due event has been due.";
    gauge(text, "outbox_oldest_due_seconds_now", help, age);
}

pub(super) fn down(text: &mut String) {
    gauge(
        text,
        "outbox_store_answers",
        "1 where the store answered this scrape.",
        0,
    );
}

pub(super) fn circuits(text: &mut String, stacks: &[(String, Circuits)]) {
    if stacks.is_empty() {
        return;
    }
    let name = "outbox_circuits_tripped";
    header(text, name, "Circuits that are open or half-open.");
    for (stack, circuits) in stacks {
        let stack = label(stack);
        line(
            text,
            format_args!("{name}{{stack=\"{stack}\"}} {}", circuits.tripped()),
        );
    }
}

fn gauge(text: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    header(text, name, help);
    line(text, format_args!("{name} {value}"));
}

fn header(text: &mut String, name: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}"));
    line(text, format_args!("# TYPE {name} gauge"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{line}");
}

fn label(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}
