//! PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU32;

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

crate::server::server!(PgServer, "INT", "postgres");

impl PgServer {
    /// The URL of a database, by TCP.
    pub fn url(&self, database: &str) -> String {
        let port = self.daemon.port();
        format!("postgres://postgres@127.0.0.1:{port}/{database}")
    }

    /// The folder of the Unix socket.
    pub fn socket_dir(&self) -> &Path {
        self.daemon.folder()
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
