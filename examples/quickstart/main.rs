//! A git host that loses no webhook, its relay, and the CI server that it tells: in one program.
//!
//! `cargo run --example quickstart` at the workspace root needs nothing installed; `-- --help` lists
//! the options. Read `pushes.rs` (the producer), `relay.rs` (the relay) and `ci_server.rs` (the
//! receiver) first.

mod args;
mod ci_server;
mod database;
mod history;
mod host;
mod operator;
mod pushes;
mod relay;
mod signature;
mod summary;
mod timeline;

use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use outbox_core::Poke;

use args::Args;
use database::Database;
use history::History;
use host::Host;
use pushes::AnyError;
use relay::Workers;
use timeline::Timeline;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let timeline = Arc::new(Timeline::start());
    let ended = if args.relay_only {
        relay_only(&args, &timeline).await.map(|()| true)
    } else {
        tokio::select! {
            ended = everything(&args, &timeline) => ended,
            () = asked_to_stop() => Err("interrupted".into()),
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {}", chain(&*error));
            ExitCode::from(2)
        }
    }
}

/// The host, the receivers, and (unless `--no-relay`) the relay. True where all went well.
async fn everything(args: &Args, timeline: &Arc<Timeline>) -> Result<bool, AnyError> {
    let history = History::read(args.repo.as_deref())?;
    let folder = tempfile::tempdir()?;
    let database = Database::open(args.database_url.as_ref(), folder.path()).await?;
    timeline.step("database", &format!("{}, migrated", database.name()));
    let wake = Poke::new();
    let host = Host::start(args, timeline, database.clone(), folder.path(), history).await?;
    let workers = match args.no_relay {
        true => None,
        false => Some(Workers::start(&database, args.workers, &wake)?),
    };
    let tally = workers.as_ref().map(|workers| workers.tally.clone());

    let events = host.accept_pushes(&wake).await?;
    host.wait_for(events.len(), tally.as_deref()).await?;
    let repaired = operator::replay_dead_letters(&database, &host.mirror, timeline).await?;
    host.wait_for(events.len(), tally.as_deref()).await?;

    if let Some(workers) = workers {
        workers.stop().await;
        timeline.step("relay", "stopped in order");
    }
    let summary = host.summary(&events, tally.as_deref(), repaired).await?;
    timeline.text(&summary.to_string());
    database.close().await;
    Ok(summary.is_good())
}

/// Relays for another process's host until Ctrl-C or SIGTERM.
async fn relay_only(args: &Args, timeline: &Timeline) -> Result<(), AnyError> {
    let nowhere = std::path::Path::new("");
    let database = Database::open(args.database_url.as_ref(), nowhere).await?;
    let workers = Workers::start(&database, args.workers, &Poke::new())?;
    timeline.step("relay", "working; Ctrl-C stops it");
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    let mut stop = std::pin::pin!(asked_to_stop());
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = tick.tick() => timeline.progress("relay", &workers.tally.text()),
        }
    }
    let tally = workers.tally.clone();
    workers.stop().await;
    timeline.step("relay", &format!("stopped in order: {}", tally.text()));
    database.close().await;
    Ok(())
}

/// Ends at Ctrl-C and, on Unix, at the SIGTERM that service managers send.
async fn asked_to_stop() {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

/// An error with its causes, but for those that it tells itself.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}
