//! MariaDB, or MySQL.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU32;

use crate::binaries::{folder_of, sibling};
use crate::clock;
use crate::daemon::Daemon;
use crate::user::RunAs;

/// The variable that names MySQL's `mysqld`, for a run on MySQL instead of MariaDB.
const MYSQLD: &str = "OUTBOX_MYSQLD";

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

/// A private server that speaks MySQL's protocol: MariaDB, or MySQL where the variable
/// `OUTBOX_MYSQLD` names its `mysqld`. MariaDB's client is needed for both.
///
/// # Panics
///
/// Every method panics where the server fails, with what to do about it: for tests, that is a
/// failure.
#[derive(Debug)]
pub struct MySqlServer {
    daemon: Daemon,
    programs: Programs,
    settings: Vec<String>,
    /// How far its clock is ahead of the application's.
    hours: i32,
    databases: AtomicU32,
}

/// Where the server's programs are.
#[derive(Debug)]
enum Programs {
    /// MariaDB's, in this folder.
    MariaDb(PathBuf),
    /// MySQL's `mysqld`.
    MySql(PathBuf),
}

crate::server::server!(MySqlServer, "TERM", "mysql");

impl MySqlServer {
    /// A server whose clock is so many hours ahead of the application's, or behind where it is negative,
    /// with more settings.
    #[track_caller]
    pub fn start_with_clock(hours: i32, settings: &[&str]) -> Self {
        match Self::try_start_with_clock(hours, settings) {
            Ok(server) => server,
            Err(problem) => panic!("{problem}"),
        }
    }

    /// The URL of a database, by TCP.
    pub fn url(&self, database: &str) -> String {
        let (port, password) = (self.daemon.port(), self.programs.password());
        format!("mysql://test:{password}@127.0.0.1:{port}/{database}")
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
        Self::try_start_with_clock(0, settings)
    }

    fn try_start_with_clock(hours: i32, settings: &[&str]) -> Result<Self, String> {
        let programs = Programs::found()?;
        let daemon = Daemon::prepare("mysql", RunAs::unprivileged(&["mysql", "nobody"]))
            .map_err(|error| format!("no temporary folder for the server: {error}"))?;
        let server = Self {
            daemon,
            programs,
            settings: settings.iter().map(ToString::to_string).collect(),
            hours,
            databases: AtomicU32::new(0),
        };
        let mut install = server.programs.install()?;
        install.args(server.own_folders());
        server.daemon.run(install)?;
        server.run()?;
        let password = server.programs.password();
        server.sql(
            "mysql",
            &format!(
                "CREATE USER test@'%' IDENTIFIED BY '{password}'; \
                 GRANT ALL ON *.* TO test@'%' WITH GRANT OPTION"
            ),
        );
        server.check_clock()?;
        Ok(server)
    }

    /// A library that can't be preloaded is no error to a program.
    fn check_clock(&self) -> Result<(), String> {
        let there = self.sql("mysql", "SELECT UNIX_TIMESTAMP()");
        let expected = clock::shifted(self.hours);
        match there.parse::<i64>() {
            Ok(there) if there.abs_diff(expected) <= 60 => Ok(()),
            _ => Err(format!(
                "the server's clock is at {there}, not at {expected}. {}",
                clock::REMEDY
            )),
        }
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
        let mut command = self.programs.server();
        command
            .args(self.own_folders())
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!(
                "--pid-file={}",
                self.daemon.folder().join("own-pid").display()
            ))
            .arg(format!("--port={}", self.port()))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            // Written at each commit, not flushed: a killed server loses nothing.
            .args([
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-flush-method=nosync",
                "--skip-log-bin",
                "--max-connections=300",
            ]);
        for setting in &self.settings {
            command.arg(format!("--{setting}"));
        }
        if self.hours != 0 {
            clock::shift(&mut command, self.hours);
        }
        command
    }

    fn client(&self, database: &str, statements: &str) -> Command {
        let mut command = self.programs.client();
        command
            .args(["--no-defaults", "-u", "root", "-N", "-B", "-e", statements])
            .arg(format!("--socket={}", self.socket().display()))
            .arg(database);
        command
    }

    /// For its data, and for its temporary tables: a server that starts deletes all such tables that it
    /// finds there, those of others too.
    fn own_folders(&self) -> [String; 2] {
        let folder = self.daemon.folder();
        [
            format!("--datadir={}", folder.join("data").display()),
            format!("--tmpdir={}", folder.display()),
        ]
    }

    fn socket(&self) -> PathBuf {
        self.daemon.folder().join("socket")
    }
}

impl Programs {
    fn found() -> Result<Self, String> {
        if let Some(mysqld) = env::var_os(MYSQLD) {
            return Ok(Self::MySql(mysqld.into()));
        }
        let folder = folder_of("mariadbd", &FOLDERS);
        Ok(Self::MariaDb(folder.ok_or(REMEDY)?))
    }

    /// Makes the system's tables.
    fn install(&self) -> Result<Command, String> {
        let (program, settings): (_, &[&str]) = match self {
            Self::MariaDb(_) => {
                let folder = folder_of("mariadb-install-db", &FOLDERS).ok_or(REMEDY)?;
                let settings = &[
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    "--skip-name-resolve",
                    "--innodb-flush-log-at-trx-commit=0",
                ];
                (folder.join("mariadb-install-db"), settings)
            }
            Self::MySql(mysqld) => {
                let settings = &["--initialize-insecure", "--secure-file-priv=NULL"];
                (mysqld.clone(), settings)
            }
        };
        let mut command = Command::new(program);
        command.arg("--no-defaults").args(settings);
        Ok(command)
    }

    fn server(&self) -> Command {
        let (program, settings): (_, &[&str]) = match self {
            Self::MariaDb(folder) => (sibling(folder, "mariadbd"), &[]),
            Self::MySql(mysqld) => (mysqld.clone(), &["--mysqlx=OFF", "--secure-file-priv=NULL"]),
        };
        let mut command = Command::new(program);
        command.arg("--no-defaults").args(settings);
        command
    }

    fn client(&self) -> Command {
        Command::new(match self {
            Self::MariaDb(folder) => sibling(folder, "mariadb"),
            Self::MySql(_) => "mariadb".into(),
        })
    }

    /// MySQL asks for one over TLS or RSA, which tests do without.
    const fn password(&self) -> &'static str {
        match self {
            Self::MariaDb(_) => "test",
            Self::MySql(_) => "",
        }
    }
}
