//! A server process in a temporary folder that never outlives the test process.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::poll::try_until;
use crate::user::RunAs;

/// Waits for the end of its input, which is the end of the test process or of the daemon; then
/// stops the server and deletes the folder. It has a process group of its own, so that neither
/// Ctrl-C nor a killed test leaves anything behind.
const JANITOR: &str = r#"
trap '' HUP INT TERM
cat >/dev/null
pid=$(cat "$1/pid" 2>/dev/null)
if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2>/dev/null
    n=0
    while [ $n -lt 30 ] && kill -0 "$pid" 2>/dev/null; do
        case $(cat "/proc/$pid/stat" 2>/dev/null) in *') Z '*) break ;; esac
        sleep 0.1
        n=$((n + 1))
    done
    kill -KILL "$pid" 2>/dev/null
    # Of a shifted clock, where the server could not.
    rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid"
fi
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
"#;

/// Crash recovery included.
const START_WITHIN: Duration = Duration::from_secs(60);

/// A server's folder, port and process.
#[derive(Debug)]
pub(crate) struct Daemon {
    folder: PathBuf,
    port: u16,
    user: RunAs,
    server: Mutex<Option<Child>>,
    janitor: Child,
}

impl Daemon {
    /// A folder for a server, with a janitor for it. Nothing runs yet.
    pub(crate) fn prepare(name: &str, user: RunAs) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("outbox-{name}-"))
            .tempdir_in(short_temp_dir())?
            .keep();
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        user.own(&folder)?;
        Ok(Self {
            folder,
            port: free_port()?,
            user,
            server: Mutex::new(None),
            janitor,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Runs a program of the server's to its end, as the server's user.
    pub(crate) fn run(&self, mut command: Command) -> Result<(), String> {
        self.user.apply(&mut command);
        let shown = format!("{command:?}");
        let output = command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{shown}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{shown}: {}\n{said}", output.status))
    }

    /// Starts the server and waits until `ready`. Where it ends at once (the port was taken, or an
    /// earlier incarnation is still going down), it is started again.
    pub(crate) fn start(
        &self,
        command: impl Fn() -> Command,
        ready: impl Fn() -> bool,
    ) -> Result<(), String> {
        let mut server = self.lock();
        let started = try_until(START_WITHIN, || {
            let ended = !server
                .as_mut()
                .is_some_and(|child| matches!(child.try_wait(), Ok(None)));
            if ended {
                *server = self.spawn(command()).ok();
            }
            ready().then_some(())
        });
        started.ok_or_else(|| {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            format!("{:?} did not start; its log:\n{log}", command())
        })
    }

    /// Sends `signal` and waits for the end. Nothing happens where nothing runs.
    pub(crate) fn end(&self, signal: &str) {
        let Some(mut child) = self.lock().take() else {
            return;
        };
        let _ = Command::new("sh")
            .args(["-c", "kill -\"$1\" \"$2\"", "kill", signal])
            .arg(child.id().to_string())
            .status();
        let ended = try_until(START_WITHIN, || child.try_wait().ok().flatten());
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_file(self.folder.join("pid"));
    }

    fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.user.apply(&mut command);
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))?;
        let child = command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        fs::write(self.folder.join("pid"), child.id().to_string())?;
        Ok(child)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        if let Some(mut server) = self.lock().take() {
            let _ = server.wait();
        }
        let _ = self.janitor.wait();
    }
}

/// Sockets have paths of at most 107 bytes, and root's own temporary folder may be closed to the
/// server's user.
fn short_temp_dir() -> PathBuf {
    let usual = PathBuf::from("/tmp");
    if usual.is_dir() {
        usual
    } else {
        std::env::temp_dir()
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
