//! Which user runs a server: database servers refuse to run as root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user and group to run servers as; `None` to run them as the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunAs(Option<(u32, u32)>);

impl RunAs {
    /// An unprivileged user where the caller is root: the first of `names` that exists, else
    /// `nobody`'s usual number.
    pub(crate) fn unprivileged(names: &[&str]) -> Self {
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !root {
            return Self(None);
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = names.iter().find_map(|name| ids(&users, name));
        Self(found.or(Some((65_534, 65_534))))
    }

    /// Makes `command` run as that user.
    pub(crate) fn apply(self, command: &mut Command) {
        if let Self(Some((uid, gid))) = self {
            command.gid(gid).uid(uid);
        }
    }

    /// Gives `path` to that user.
    pub(crate) fn own(self, path: &Path) -> io::Result<()> {
        self.0
            .map_or(Ok(()), |(uid, gid)| chown(path, Some(uid), Some(gid)))
    }
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next()? == name;
        let (uid, gid) = (fields.nth(1)?, fields.next()?);
        found.then(|| Some((uid.parse().ok()?, gid.parse().ok()?)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ids_from_the_user_list() {
        let list = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104::/var:/bin/sh\n";
        assert_eq!(ids(list, "postgres"), Some((101, 104)));
        assert_eq!(ids(list, "mysql"), None);
    }
}
