//! PgBouncer.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::PgServer;
use crate::binaries::{folder_of, sibling};
use crate::daemon::Daemon;
use crate::user::RunAs;

const FOLDERS: [&str; 4] = [
    "/usr/sbin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
];

const REMEDY: &str = "`pgbouncer` is neither on PATH nor in a usual folder. Install it (Debian: \
    `apt-get install pgbouncer`; macOS: `brew install pgbouncer`) or run `scripts/test`, which does.";

const NEWER: &str = "OUTBOX_PGBOUNCER does not name a PgBouncer of version 1.21 or newer; \
    `scripts/pgbouncer` fetches one and sets it";

/// A private PgBouncer before a server's database, in transaction mode, with two connections to the
/// server for all its clients.
#[derive(Debug)]
pub struct PgBouncer {
    daemon: Daemon,
}

impl PgBouncer {
    /// Starts one for `database` of `server`.
    ///
    /// # Panics
    ///
    /// Where it can't be started, with what to do about it.
    #[track_caller]
    pub fn start(server: &PgServer, database: &str) -> Self {
        let program = folder_of("pgbouncer", &FOLDERS).map(|found| sibling(&found, "pgbouncer"));
        match program
            .ok_or_else(|| REMEDY.to_owned())
            .and_then(|program| Self::try_start(server, database, &program, ""))
        {
            Ok(bouncer) => bouncer,
            Err(problem) => panic!("{problem}"),
        }
    }

    /// The same with the program that `OUTBOX_PGBOUNCER` names, which knows prepared statements.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_newer(server: &PgServer, database: &str) -> Self {
        let setting = "max_prepared_statements = 100\n";
        match env::var_os("OUTBOX_PGBOUNCER")
            .ok_or_else(|| NEWER.to_owned())
            .and_then(|program| Self::try_start(server, database, program.as_ref(), setting))
        {
            Ok(bouncer) => bouncer,
            Err(problem) => panic!("{problem}"),
        }
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        let port = self.daemon.port();
        format!("postgres://postgres@127.0.0.1:{port}/{database}")
    }

    fn try_start(
        server: &PgServer,
        database: &str,
        program: &Path,
        more: &str,
    ) -> Result<Self, String> {
        let daemon = Daemon::prepare("bouncer", RunAs::unprivileged(&["postgres", "nobody"]))
            .map_err(|error| format!("no temporary folder for PgBouncer: {error}"))?;
        let settings = daemon.folder().join("pgbouncer.ini");
        let users = daemon.folder().join("users");
        let text = format!(
            "[databases]
{database} = host=127.0.0.1 port={server_port} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
{more}",
            server_port = server.port(),
            port = daemon.port(),
            users = users.display(),
        );
        let written =
            fs::write(&settings, text).and_then(|()| fs::write(&users, "\"postgres\" \"\"\n"));
        written.map_err(|error| format!("{}: {error}", settings.display()))?;
        let port = daemon.port();
        daemon.start(
            || {
                let mut command = Command::new(program);
                command.arg(&settings);
                command
            },
            || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
        )?;
        Ok(Self { daemon })
    }
}
