//! MariaDB.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU32;

use crate::binaries::{folder_of, sibling};
use crate::daemon::Daemon;
use crate::user::RunAs;

const FOLDERS: [&str; 5] = [
    "/usr/sbin",
    "/usr/local/sbin",
    "/usr/libexec",
    "/opt/homebrew/opt/mariadb/bin",
    "/usr/local/opt/mariadb/bin",
];

const REMEDY: &str = "MariaDB's `mariadbd` is neither on PATH nor in a usual folder. Install the \
    server (Debian: `apt-get install mariadb-server`; macOS: `brew install mariadb`) or run \
    `scripts/test`, which does. No server needs to run: tests start their own.";

/// A private MariaDB server.
///
/// # Panics
///
/// Every method panics where the server fails, with what to do about it: for tests, that is a
/// failure.
#[derive(Debug)]
pub struct MariaServer {
    daemon: Daemon,
    programs: PathBuf,
    settings: Vec<String>,
    databases: AtomicU32,
}

crate::server::server!(MariaServer, "TERM", "mysql");

impl MariaServer {
    /// The URL of a database, by TCP.
    pub fn url(&self, database: &str) -> String {
        let port = self.daemon.port();
        format!("mysql://test:test@127.0.0.1:{port}/{database}")
    }

    /// Runs statements through the client and returns the rows: tab-separated columns, no headings.
    #[track_caller]
    pub fn sql(&self, database: &str, statements: &str) -> String {
        match self.client(database, statements).output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned(),
            Ok(output) => panic!("{statements}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("`mariadb` can't be run ({error}). {REMEDY}"),
        }
    }

    fn try_start(settings: &[&str]) -> Result<Self, String> {
        let programs = folder_of("mariadbd", &FOLDERS).ok_or(REMEDY)?;
        let daemon = Daemon::prepare("maria", RunAs::unprivileged(&["mysql", "nobody"]))
            .map_err(|error| format!("no temporary folder for MariaDB: {error}"))?;
        let server = Self {
            daemon,
            programs,
            settings: settings.iter().map(ToString::to_string).collect(),
            databases: AtomicU32::new(0),
        };
        server.install()?;
        server.run()?;
        server.sql(
            "mysql",
            "CREATE USER test@'%' IDENTIFIED BY 'test'; GRANT ALL ON *.* TO test@'%' WITH GRANT OPTION",
        );
        Ok(server)
    }

    fn install(&self) -> Result<(), String> {
        let folder = folder_of("mariadb-install-db", &FOLDERS).ok_or(REMEDY)?;
        let mut install = Command::new(folder.join("mariadb-install-db"));
        install
            .arg("--no-defaults")
            .arg(self.datadir())
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]);
        self.daemon.run(install)
    }

    fn run(&self) -> Result<(), String> {
        self.daemon.start(
            || self.command(),
            || {
                let mut ping = self.client("mysql", "SELECT 1");
                ping.stdout(Stdio::null()).stderr(Stdio::null());
                ping.status().is_ok_and(|status| status.success())
            },
        )
    }

    fn command(&self) -> Command {
        let mut command = Command::new(sibling(&self.programs, "mariadbd"));
        command
            .arg("--no-defaults")
            .arg(self.datadir())
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!(
                "--pid-file={}",
                self.daemon.folder().join("own-pid").display()
            ))
            .arg(format!("--port={}", self.port()))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args([
                "--innodb-flush-log-at-trx-commit=2",
                "--skip-log-bin",
                "--max-connections=300",
            ]);
        for setting in &self.settings {
            command.arg(format!("--{setting}"));
        }
        command
    }

    fn client(&self, database: &str, statements: &str) -> Command {
        let mut command = Command::new(sibling(&self.programs, "mariadb"));
        command
            .args(["--no-defaults", "-u", "root", "-N", "-B", "-e", statements])
            .arg(format!("--socket={}", self.socket().display()))
            .arg(database);
        command
    }

    fn datadir(&self) -> String {
        format!("--datadir={}", self.daemon.folder().join("data").display())
    }

    fn socket(&self) -> PathBuf {
        self.daemon.folder().join("socket")
    }
}
