//! The main job, end to end: the quickstart of the README, with real processes and databases.

mod program;

use std::time::Duration;

use program::Program;
use sqlx::Connection;
use tests::PgServer;

/// A hundred pushes at once, of which the CI server answers every other one.
const HUNDRED: [&str; 8] = [
    "--pushes", "100", "--forks", "100", "--flaky", "0.5", "--outage", "1",
];

fn sqlite_url(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("shared.db").display())
}

#[test]
fn loses_nothing_on_sqlite() {
    let ended = Program::start(&[]).end();
    ended.assert_all_arrived(12);
    assert_eq!(ended.numbers("dead"), [4], "{}", ended.said);
    assert!(ended.numbers("retried")[0] > 0, "{}", ended.said);
}

#[test]
fn loses_nothing_on_postgres() {
    let url = PgServer::shared().create_database();
    let ended = Program::start(&["--database-url", &url]).end();
    ended.assert_all_arrived(12);
    assert_eq!(ended.numbers("dead"), [4], "{}", ended.said);
}

#[test]
fn a_hundred_pushes_at_once_start_a_build_each_on_sqlite() {
    let ended = Program::start(&HUNDRED).end();
    ended.assert_all_arrived(100);
    assert!(ended.numbers("duplicates")[0] > 0, "{}", ended.said);
}

#[test]
fn a_hundred_pushes_at_once_start_a_build_each_on_postgres() {
    let url = PgServer::shared().create_database();
    let arguments = [&HUNDRED[..], &["--database-url", &url]].concat();
    let ended = Program::start(&arguments).end();
    ended.assert_all_arrived(100);
    assert!(ended.numbers("duplicates")[0] > 0, "{}", ended.said);
}

#[test]
fn a_killed_relay_loses_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    a_killed_relay_loses_nothing(&sqlite_url(&folder));
}

#[test]
fn a_killed_relay_loses_nothing_on_postgres() {
    a_killed_relay_loses_nothing(&PgServer::shared().create_database());
}

fn a_killed_relay_loses_nothing(url: &str) {
    let database = ["--database-url", url];
    let host = [
        &database[..],
        &[
            "--no-relay",
            "--pushes",
            "100",
            "--flaky",
            "0.5",
            "--outage",
            "0",
        ],
    ];
    let mut host = Program::start(&host.concat());
    host.read_until(|line| line.contains("100 accepted"));

    let relay = [&database[..], &["--relay-only"]].concat();
    let doomed = Program::start(&relay);
    host.read_until(|line| arrived(line).is_some_and(|events| events > 0));
    doomed.kill();

    let next = Program::start(&relay);
    let ended = host.end();
    ended.assert_all_arrived(100);
    drop(next);
}

/// Of a line `… 7 of 104 events have arrived`, the 7; none once all have.
fn arrived(line: &str) -> Option<u64> {
    let (before, after) = line.split_once(" of ")?;
    let arrived = before.rsplit(' ').next()?.parse().ok()?;
    let all: u64 = after.split(' ').next()?.parse().ok()?;
    assert!(arrived < all, "too late to kill anything: {line}");
    Some(arrived)
}

/// A run that died and left its events in the database.
fn leave_events(url: &str) {
    let mut doomed = Program::start(&["--database-url", url, "--outage", "60"]);
    doomed.read_until(|line| line.contains("12 accepted"));
    doomed.kill();
}

#[test]
fn what_another_run_left_is_no_part_of_the_account() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(&folder);
    leave_events(&url);
    let ended = Program::start(&["--database-url", &url, "--outage", "0"]).end();
    ended.assert_all_arrived(12);
}

#[tokio::test]
async fn an_event_that_is_gone_is_lost_whatever_else_waits() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(&folder);
    leave_events(&url);
    let arguments = ["--no-relay", "--patience", "3", "--database-url", &url];
    let mut host = Program::start(&arguments);
    host.read_until(|line| line.contains("12 accepted"));
    let mut database = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let newest = "DELETE FROM outbox_events WHERE seq = (SELECT max(seq) FROM outbox_events)";
    sqlx::query(newest).execute(&mut database).await.unwrap();
    let ended = host.end();
    assert_eq!(ended.numbers("lost"), [1], "{}", ended.said);
    assert_eq!(ended.numbers("pending"), [15], "{}", ended.said);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
}

#[test]
fn leaves_no_file_behind_when_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start_with_temporary(folder.path(), &[]);
    program.read_until(|line| line.contains("12 accepted"));
    program.interrupt();
    let ended = program.end();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.said);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "{}", ended.said);
}

#[test]
fn a_relay_of_its_own_stops_in_order_when_it_is_terminated() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(&folder);
    let mut relay = Program::start(&["--relay-only", "--database-url", &url]);
    relay.read_until(|line| line.contains("working"));
    relay.terminate();
    let ended = relay.end();
    assert!(ended.status.success(), "{}", ended.said);
    assert!(ended.said.contains("stopped in order"), "{}", ended.said);
}

#[test]
fn a_sample_stands_in_where_there_is_no_repository() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--pushes", "3", "--outage", "0", "--flaky", "0"];
    let ended = Program::start_in(folder.path(), &arguments).end();
    ended.assert_all_arrived(3);
    assert!(!ended.said.contains("down for"), "{}", ended.said);
    assert!(ended.said.contains("bundled sample"), "{}", ended.said);
}

#[test]
fn a_folder_without_a_repository_is_named_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Program::start(&["--repo", &folder.path().display().to_string()]).end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.said.contains("not a git repository"),
        "{}",
        ended.said
    );
}

#[test]
fn a_database_that_is_not_there_ends_it_at_once() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    Program::build();
    let start = std::time::Instant::now();
    let ended = Program::start(&["--database-url", url]).end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.said.contains("error: "), "{}", ended.said);
    assert!(start.elapsed() < Duration::from_secs(40), "{}", ended.said);
    let ended = Program::start(&["--database-url", "mysql://x/y"]).end();
    assert!(
        ended.said.contains("expected postgres://"),
        "{}",
        ended.said
    );
}

#[test]
fn a_database_that_is_refused_is_named_without_its_password() {
    for (url, named) in [
        ("postgres://me:topsecret@127.0.0.1:1/none", "127.0.0.1:1"),
        (
            "postgres://me:topsecret@host:port/none",
            "invalid port number",
        ),
        ("mysql://me:topsecret@host/none", "`mysql:`"),
        ("me:topsecret@host/none", "expected postgres://"),
        ("sqlite:/nowhere/outbox.db", "/nowhere/outbox.db"),
        ("sqlite::memory:", "in memory"),
        ("sqlite:", "in memory"),
    ] {
        let ended = Program::start(&["--database-url", url]).end();
        assert_eq!(ended.status.code(), Some(2), "{url}: {}", ended.said);
        assert!(ended.said.contains("--database-url"), "{}", ended.said);
        assert_eq!(ended.said.matches(named).count(), 1, "{}", ended.said);
        assert!(!ended.said.contains("topsecret"), "{}", ended.said);
    }
}

#[test]
fn a_number_that_is_refused_is_named_with_the_allowed_ones() {
    for (option, value, allowed) in [
        ("--pushes", "0", "1..=100000"),
        ("--forks", "0", "1..=10000"),
        ("--workers", "65", "1..=64"),
        ("--flaky", "1", "from 0 to 0.9"),
    ] {
        let ended = Program::start(&[option, value]).end();
        assert_eq!(ended.status.code(), Some(2), "{}", ended.said);
        assert!(ended.said.contains(option), "{}", ended.said);
        assert!(ended.said.contains(allowed), "{}", ended.said);
    }
}

#[test]
fn explains_its_options() {
    let ended = Program::start(&["--help"]).end();
    assert!(ended.status.success());
    for option in [
        "--pushes",
        "--workers",
        "--database-url",
        "--repo",
        "--relay-only",
    ] {
        assert!(ended.said.contains(option), "{option} is not explained");
    }
}
