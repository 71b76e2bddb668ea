//! Finding a database's programs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder that holds `program`: from `PATH` (links resolved, so that its siblings are found),
/// else the last in the order of versions of those that `folders` expand to. A `*` in a folder
/// stands for one path element.
pub(crate) fn folder_of(program: &str, folders: &[&str]) -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&on_path)
        .chain(folders.iter().flat_map(|pattern| expand(pattern)))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .and_then(|file| fs::canonicalize(file).ok())
        .and_then(|file| file.parent().map(Path::to_owned))
}

/// `program` in `folder` where it is there, else the bare name for `PATH` to resolve.
pub(crate) fn sibling(folder: &Path, program: &str) -> PathBuf {
    let file = folder.join(program);
    if file.is_file() { file } else { program.into() }
}

/// Highest version first.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![pattern.into()];
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or((".", before));
    let names = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<(u32, PathBuf)> = names
        .filter(|name| name.starts_with(prefix))
        .map(|name| {
            let folder = format!("{parent}/{name}{after}");
            (version(&name), folder.into())
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn version(name: &str) -> u32 {
    let digits: String = name
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_highest_version() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "13"] {
            let bin = root.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("no-such-database"), "").unwrap();
        }
        let pattern = format!("{}/*/bin", root.path().display());
        let found = folder_of("no-such-database", &[&pattern]).unwrap();
        assert!(found.ends_with("15/bin"), "{}", found.display());
    }

    #[test]
    fn finds_nothing_where_nothing_is() {
        assert_eq!(folder_of("no-such-database", &["/no/such/*/bin"]), None);
    }
}
