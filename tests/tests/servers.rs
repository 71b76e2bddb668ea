//! The private servers themselves.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::{MySqlServer, PgServer, poll_until};

#[test]
fn postgres_databases_are_isolated() {
    let server = PgServer::shared();
    let (first, second) = (server.create_database(), server.create_database());
    assert_ne!(first, second);
    let name = first.rsplit('/').next().unwrap();
    server.sql(name, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    assert_eq!(server.sql(name, "SELECT n, 'x' FROM t"), "7\tx");
    let other = second.rsplit('/').next().unwrap();
    assert_eq!(server.sql(other, "SELECT to_regclass('t')"), "");
}

#[test]
fn postgres_keeps_what_was_committed_before_a_kill() {
    let server = PgServer::start_with(&["fsync=on", "synchronous_commit=on"]);
    assert_eq!(server.sql("postgres", "SHOW fsync"), "on");
    server.sql(
        "postgres",
        "CREATE TABLE t (n int); INSERT INTO t VALUES (7)",
    );
    server.kill();
    server.resume();
    assert_eq!(server.sql("postgres", "SELECT n FROM t"), "7");
    server.restart();
    assert_eq!(server.sql("postgres", "SELECT n FROM t"), "7");
}

#[test]
fn mysql_keeps_what_was_committed_before_a_kill() {
    let server = MySqlServer::shared();
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    server.sql(name, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    server.kill();
    server.resume();
    assert_eq!(server.sql(name, "SELECT n FROM t"), "7");
}

#[test]
fn a_dropped_server_leaves_nothing_behind() {
    let server = PgServer::start();
    let folder = server.socket_dir().to_owned();
    assert!(folder.is_dir());
    drop(server);
    assert!(!folder.exists());
}

#[test]
fn an_aborted_test_process_leaves_nothing_behind() {
    // The test runs itself a second time, as the process that aborts.
    const ROLE: &str = "OUTBOX_TEST_ABORT";
    if std::env::var_os(ROLE).is_some() {
        let server = PgServer::shared();
        println!("folder={}=", server.socket_dir().display());
        std::process::abort();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "an_aborted_test_process_leaves_nothing_behind",
            "--nocapture",
        ])
        .env(ROLE, "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let folder = Path::new(said.split('=').nth(1).unwrap());
    poll_until("the folder is gone", Duration::from_secs(20), || {
        !folder.exists()
    });
}
