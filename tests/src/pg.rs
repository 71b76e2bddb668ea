//! PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::binaries::{folder_of, sibling};
use crate::daemon::Daemon;
use crate::user::RunAs;

const FOLDERS: [&str; 6] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
];

const REMEDY: &str = "PostgreSQL's `initdb` and `postgres` are neither on PATH nor in a usual \
    folder. Install the server (Debian: `apt-get install postgresql`; macOS: `brew install \
    postgresql@17`) or run `scripts/test`, which does. No server needs to run: tests start their own.";

/// Quick, and able to hold what tests open at once.
const DEFAULTS: [&str; 6] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=300",
    "shared_buffers=64MB",
    "timezone=UTC",
];

/// A private PostgreSQL server.
///
/// # Panics
///
/// Every method panics where the server fails, with what to do about it: for tests, that is a
/// failure.
#[derive(Debug)]
pub struct PgServer {
    daemon: Daemon,
    programs: PathBuf,
    settings: Vec<String>,
    databases: AtomicU32,
}

impl PgServer {
    /// The one server that the tests of this process share, started at the first call.
    #[track_caller]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<PgServer, String>> = OnceLock::new();
        match SHARED.get_or_init(|| Self::try_start(&[])) {
            Ok(server) => server,
            Err(problem) => panic!("{problem}"),
        }
    }

    /// A server of the caller's own. It does without `fsync`, so it survives [`kill`](Self::kill)
    /// but not a power cut.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with more settings (`"fsync=on"`), which override the defaults of tests.
    #[track_caller]
    pub fn start_with(settings: &[&str]) -> Self {
        match Self::try_start(settings) {
            Ok(server) => server,
            Err(problem) => panic!("{problem}"),
        }
    }

    /// The URL of a database, by TCP.
    pub fn url(&self, database: &str) -> String {
        let port = self.daemon.port();
        format!("postgres://postgres@127.0.0.1:{port}/{database}")
    }

    /// The TCP port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.daemon.port()
    }

    /// The folder of the Unix socket.
    pub fn socket_dir(&self) -> &Path {
        self.daemon.folder()
    }

    /// Makes an empty database that nobody else uses and returns its URL.
    #[track_caller]
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs statements through `psql` and returns the rows: tab-separated columns, no headings.
    #[track_caller]
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let output = Command::new(sibling(&self.programs, "psql"))
            .args([
                "-XAtq",
                "-F",
                "\t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "postgres",
            ])
            .args([
                "-p",
                &self.port().to_string(),
                "-d",
                database,
                "-c",
                statements,
            ])
            .arg("-h")
            .arg(self.socket_dir())
            .output();
        match output {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned(),
            Ok(output) => panic!("{statements}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("`psql` can't be run ({error}). {REMEDY}"),
        }
    }

    /// Kills the server as a crash would: no shutdown, no checkpoint.
    pub fn kill(&self) {
        self.daemon.end("KILL");
    }

    /// Stops the server in order, closing all connections.
    pub fn stop(&self) {
        self.daemon.end("INT");
    }

    /// Starts a killed or stopped server again, on the same port.
    #[track_caller]
    pub fn resume(&self) {
        if let Err(problem) = self.run() {
            panic!("{problem}");
        }
    }

    /// Stops the server in order and starts it again.
    #[track_caller]
    pub fn restart(&self) {
        self.stop();
        self.resume();
    }

    fn try_start(settings: &[&str]) -> Result<Self, String> {
        let programs = folder_of("initdb", &FOLDERS).ok_or(REMEDY)?;
        let daemon = Daemon::prepare("pg", RunAs::unprivileged(&["postgres", "nobody"]))
            .map_err(|error| format!("no temporary folder for PostgreSQL: {error}"))?;
        let mut initdb = Command::new(sibling(&programs, "initdb"));
        initdb
            .args([
                "--no-sync",
                "--locale=C",
                "-E",
                "UTF8",
                "-A",
                "trust",
                "-U",
                "postgres",
            ])
            .arg("-D")
            .arg(daemon.folder().join("data"));
        daemon.run(initdb)?;
        let server = Self {
            daemon,
            programs,
            settings: settings.iter().map(ToString::to_string).collect(),
            databases: AtomicU32::new(0),
        };
        server.run()?;
        Ok(server)
    }

    fn run(&self) -> Result<(), String> {
        let status = self.daemon.folder().join("data/postmaster.pid");
        // A crash leaves the file of the former process behind, with its last status.
        let _ = fs::remove_file(&status);
        self.daemon.start(
            || self.command(),
            || fs::read_to_string(&status).is_ok_and(|lines| lines.contains("\nready")),
        )
    }

    fn command(&self) -> Command {
        let mut command = Command::new(sibling(&self.programs, "postgres"));
        command
            .arg("-D")
            .arg(self.daemon.folder().join("data"))
            .arg("-k")
            .arg(self.daemon.folder())
            .args(["-h", "127.0.0.1", "-p", &self.port().to_string()]);
        let own = self.settings.iter().map(String::as_str);
        for setting in DEFAULTS.into_iter().chain(own) {
            command.args(["-c", setting]);
        }
        command
    }
}
