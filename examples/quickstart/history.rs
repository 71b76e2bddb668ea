//! Real input: the commits of a git repository, grouped into pushes.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// What git names the state before the first push to a branch.
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// Newest commits only, so that a push stays below the limit of an event's size.
const MOST_COMMITS: &str = "1000";
const SAMPLE: &str = include_str!("sample-history.tsv");

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) message: String,
}

/// What `git push` brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Push {
    pub(crate) repo_id: i64,
    pub(crate) repository: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) commits: Vec<Commit>,
}

/// Commits, oldest first, and where they are from.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) name: String,
    pub(crate) source: &'static str,
    pub(crate) commits: Vec<Commit>,
}

impl History {
    /// The history of the repository at `path`, or of the one here, or the bundled sample.
    ///
    /// # Errors
    ///
    /// Only where `path` was given: it is no repository, or has no commit, or git is missing.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, String> {
        match (path, git_log(path.unwrap_or(Path::new(".")))) {
            (_, Ok(history)) => Ok(history),
            (Some(path), Err(problem)) => Err(format!("--repo {}: {problem}", path.display())),
            (None, Err(_)) => Ok(Self::sample()),
        }
    }

    fn sample() -> Self {
        Self {
            name: "sample".to_owned(),
            source: "the bundled sample (no git repository here)",
            commits: parse(SAMPLE),
        }
    }

    /// Plays the history back as `count` pushes to `forks` of the repository: for each fork, the
    /// whole history in as many pushes as fall to it. More forks are made where the history has
    /// fewer commits than that.
    pub(crate) fn into_forks(self, forks: usize, count: usize) -> Vec<Vec<Push>> {
        let forks = forks.min(count).max(count.div_ceil(self.commits.len()));
        (0..forks)
            .map(|fork| {
                let share = count / forks + usize::from(fork < count % forks);
                self.pushes_to(fork, share)
            })
            .collect()
    }

    fn pushes_to(&self, fork: usize, share: usize) -> Vec<Push> {
        let total = self.commits.len();
        let mut before = NOTHING.to_owned();
        (0..share)
            .map(|n| {
                let commits = self.commits[n * total / share..(n + 1) * total / share].to_vec();
                let after = commits.last().map_or(&before, |last| &last.id).clone();
                Push {
                    repo_id: i64::try_from(fork).unwrap_or(i64::MAX),
                    repository: format!("fork-{fork}/{}", self.name),
                    before: std::mem::replace(&mut before, after.clone()),
                    after,
                    commits,
                }
            })
            .collect()
    }
}

fn git_log(path: &Path) -> Result<History, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(path)
        .args(["log", "--reverse", "-n", MOST_COMMITS])
        .arg("--format=%H%x09%an%x09%s")
        .output()
        .map_err(|error| format!("git can't be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let commits = parse(&String::from_utf8_lossy(&output.stdout));
    if commits.is_empty() {
        return Err("the repository has no commits".to_owned());
    }
    let name = path
        .canonicalize()
        .ok()
        .and_then(|full| Some(full.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "repository".to_owned());
    Ok(History {
        name,
        source: "git log",
        commits,
    })
}

/// Lines of id, author and subject, separated by tabs.
fn parse(log: &str) -> Vec<Commit> {
    log.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, '\t').map(str::to_owned);
            Some(Commit {
                id: fields.next()?,
                author: fields.next()?,
                message: fields.next()?,
            })
        })
        .collect()
}
