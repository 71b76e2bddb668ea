//! The command line.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Parser, value_parser};

/// A git host that loses no webhook.
///
/// It reads the history of a git repository and plays it back as pushes: each push updates
/// `repositories` and stores its webhook in ONE transaction. A CI server, down at first and flaky
/// after that, starts a build for each push. A second receiver answers 410 and is repaired later.
/// The exit status is 0 where every event arrived.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// How many pushes to accept.
    #[arg(long, value_name = "N", default_value = "12", value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) pushes: u32,

    /// How many forks of the repository the pushes go to. Forks are pushed to in parallel, each one
    /// in order.
    #[arg(long, value_name = "N", default_value = "4", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) forks: u32,

    /// How many relays work on the outbox at once.
    #[arg(long, value_name = "N", default_value = "2", value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) workers: u32,

    /// `postgres://…` or `sqlite:PATH`. Default: SQLite in a temporary file.
    #[arg(long, value_name = "URL", value_parser = UrlParser)]
    pub(crate) database_url: Option<DatabaseUrl>,

    /// The repository whose history is played back. Default: the one here; where there is none, a
    /// bundled sample.
    #[arg(long, value_name = "PATH")]
    pub(crate) repo: Option<PathBuf>,

    /// The share of requests that the CI server fails once it is up: half of them before the build
    /// starts, half after it, when the answer is lost.
    #[arg(long, value_name = "0..0.9", default_value = "0.25")]
    pub(crate) flaky: Share,

    /// How long the CI server is down at first.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) outage: Duration,

    /// How long to wait for the events to arrive.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) patience: Duration,

    /// Only relay, until Ctrl-C or SIGTERM: for a second process on the database of a first one.
    #[arg(long, requires = "database_url", conflicts_with = "no_relay")]
    pub(crate) relay_only: bool,

    /// All but the relay, which another process does.
    #[arg(long, requires = "database_url")]
    pub(crate) no_relay: bool,
}

/// Which database.
#[derive(Clone)]
pub(crate) enum DatabaseUrl {
    Postgres(String),
    Sqlite(String),
}

/// A URL may hold a password.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres(_) => "Postgres(…)",
            Self::Sqlite(_) => "Sqlite(…)",
        })
    }
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let expected = "expected postgres://USER@HOST/DATABASE or sqlite:PATH";
        match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url.to_owned())),
            Some(("sqlite", path)) if in_memory(path) => Err(format!(
                "each connection to SQLite in memory has a database of its own; {expected}"
            )),
            Some(("sqlite", _)) => Ok(Self::Sqlite(url.to_owned())),
            Some((scheme, rest)) if rest.starts_with("//") => {
                Err(format!("`{scheme}:` is no scheme it knows; {expected}"))
            }
            _ => Err(expected.to_owned()),
        }
    }
}

fn in_memory(path: &str) -> bool {
    let (name, options) = path.split_once('?').unwrap_or((path, ""));
    matches!(name.trim_start_matches('/'), "" | ":memory:") || options.contains("mode=memory")
}

/// clap repeats a value that it refuses; this keeps the password out of the message.
#[derive(Debug, Clone)]
struct UrlParser;

impl TypedValueParser for UrlParser {
    type Value = DatabaseUrl;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DatabaseUrl, clap::Error> {
        let url = value.to_str().ok_or("expected UTF-8".to_owned());
        url.and_then(DatabaseUrl::from_str).map_err(|problem| {
            let text = format!("invalid value for '--database-url <URL>': {problem}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

/// A share of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(share) if (0.0..=0.9).contains(&share) => Ok(Self(share)),
            _ => Err("expected a number from 0 to 0.9".to_owned()),
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let parsed: Result<f64, _> = text.parse();
    parsed
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds".to_owned())
}
