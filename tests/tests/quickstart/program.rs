//! Building and running the quickstart as its readers do.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// The program, built by the command of the README.
fn executable() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--example",
                "quickstart",
                "--message-format=json",
            ])
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "the quickstart does not build");
        let messages = String::from_utf8_lossy(&output.stdout);
        let path = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == "quickstart")
            .find_map(|message| message["executable"].as_str().map(PathBuf::from));
        path.expect("cargo names the executable")
    })
}

/// The workspace's folder.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A running quickstart. It is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
    said: String,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
}

impl Program {
    /// Starts it at the workspace's root with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(root(), arguments)
    }

    /// Builds it, so that what starts next is the program and no compiler.
    pub(crate) fn build() {
        executable();
    }

    /// Starts it in a folder.
    pub(crate) fn start_in(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_by(
            Command::new(executable())
                .args(arguments)
                .current_dir(folder),
        )
    }

    /// Starts it at the workspace's root, with a folder for its temporary files.
    pub(crate) fn start_with_temporary(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(executable());
        command.args(arguments).current_dir(root());
        Self::start_by(command.env("TMPDIR", folder))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the quickstart starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            lines,
            said: String::new(),
        }
    }

    /// Reads lines until one holds for `wanted`; panics at the end of the output.
    #[track_caller]
    pub(crate) fn read_until(&mut self, wanted: impl Fn(&str) -> bool) {
        loop {
            let before = self.said.len();
            let read = self
                .lines
                .read_line(&mut self.said)
                .expect("output is text");
            assert!(read > 0, "it ended before that was said:\n{}", self.said);
            if wanted(&self.said[before..]) {
                return;
            }
        }
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    /// What a service manager does.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let mut said = std::mem::take(&mut self.said);
        self.lines
            .read_to_string(&mut said)
            .expect("output is text");
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut said).expect("errors are text");
        }
        let status = self.child.wait().expect("it can be waited for");
        Ended { status, said }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The numbers of a line of the summary.
    #[track_caller]
    pub(crate) fn numbers(&self, name: &str) -> Vec<u64> {
        let line = self.said.lines().find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        let line = line.unwrap_or_else(|| panic!("no line `{name}` in:\n{}", self.said));
        line.split_whitespace()
            .filter_map(|word| word.trim_end_matches(',').parse().ok())
            .collect()
    }

    /// Panics unless everything arrived and every build started once.
    #[track_caller]
    pub(crate) fn assert_all_arrived(&self, pushes: u64) {
        assert!(self.status.success(), "{}:\n{}", self.status, self.said);
        assert_eq!(self.numbers("lost"), [0], "{}", self.said);
        assert_eq!(self.numbers("pending"), [0], "{}", self.said);
        let accepted = self.numbers("pushes");
        assert_eq!(accepted[0], pushes, "{}", self.said);
        assert_eq!(self.numbers("delivered"), accepted[1..], "{}", self.said);
        let builds = self.numbers("builds");
        assert_eq!(builds, [pushes, 0, 0], "{}", self.said);
        assert_eq!(self.numbers("dead"), self.numbers("replayed"));
    }
}
