//! What processes used of the CPU, from `/proc`; zero where there is none.

use std::fs;
use std::time::Instant;

use outbox_sqlx::sqlx::{self, PgPool};

/// What a tick of `/proc` stands for on Linux.
const TICK_MICROS: f64 = 10_000.0;
/// The fields after a process's name that are its parent, and its ticks in user and kernel mode.
const PARENT: usize = 1;
const TICKS: std::ops::RangeInclusive<usize> = 11..=12;

/// Whose time is taken: this process, the receiver, all of the database server's.
#[derive(Clone, Copy)]
pub(crate) struct Processes {
    receiver: u32,
    server: u32,
}

/// CPU time in µs, from a moment on or between two.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    here: f64,
    receiver: f64,
    server: f64,
    at: Instant,
}

impl Processes {
    pub(crate) async fn of(pool: &PgPool, receiver: u32) -> Self {
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(pool)
            .await
            .expect("a process");
        let pid = u32::try_from(pid).expect("a process");
        let server = stat(pid).map_or(0, |fields| number(&fields[PARENT]));
        Self { receiver, server }
    }

    pub(crate) fn now(self) -> Used {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = pids.filter_map(stat).filter(|fields| {
            let parent: u32 = number(&fields[PARENT]);
            self.server > 0 && parent == self.server
        });
        Used {
            here: stat(std::process::id()).map_or(0.0, |fields| micros(&fields)),
            receiver: stat(self.receiver).map_or(0.0, |fields| micros(&fields)),
            server: children.map(|fields| micros(&fields)).sum(),
            at: Instant::now(),
        }
    }

    /// What was used since, for each of so many events.
    pub(crate) fn since(self, before: Used, events: u32) -> String {
        let now = self.now();
        let each = |now: f64, before: f64| (now - before) / f64::from(events);
        let here = each(now.here, before.here);
        let receiver = each(now.receiver, before.receiver);
        let server = each(now.server, before.server);
        let sum = here + receiver + server;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = f64::from(u32::try_from(cores).unwrap_or(1));
        let had = (now.at - before.at).as_secs_f64() * 1e6 * cores / f64::from(events);
        let idle = 100.0 * (1.0 - sum / had);
        format!(
            "{sum:5.1} = {here:4.1} here + {receiver:4.1} receiver + {server:4.1} server, {idle:2.0} % idle"
        )
    }
}

/// The fields of `/proc/<pid>/stat` that follow the name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(fields.map(str::to_owned).collect())
}

fn micros(fields: &[String]) -> f64 {
    let ticks = fields[TICKS].iter().map(|field| number(field));
    ticks.map(f64::from).sum::<f64>() * TICK_MICROS
}

fn number(field: &str) -> u32 {
    field.parse().unwrap_or(0)
}
