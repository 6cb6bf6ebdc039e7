//! What /proc tells of processes.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use rustix::process::Pid;

/// A living process; one that has ended and waits to be reaped is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Living {
    /// Its id.
    pub(super) id: Pid,
    /// Its parent; none for the first of a namespace.
    pub(super) parent: Option<Pid>,
    /// Its group.
    pub(super) group: Option<Pid>,
    /// When it was started, in clock ticks since boot: with the id, a name that is never used again.
    pub(super) started: u64,
}

/// Looks at one process.
pub(super) fn look(id: Pid) -> Option<Living> {
    read_stat(id, &std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?)
}

/// Looks at all processes.
pub(super) fn all() -> Vec<Living> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids =
        folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    ids.filter_map(look).collect()
}

/// The living descendants of a process.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let table = all();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(table.iter().filter(|process| process.parent == Some(parent)).map(|process| process.id));
        next += 1;
    }
    found.split_off(1)
}

/// Tells whether a process has this very file for its stderr.
pub(super) fn has_for_stderr(id: Pid, file: &File) -> bool {
    let found = std::fs::metadata(format!("/proc/{}/fd/2", id.as_raw_nonzero()));
    let same = |found: std::fs::Metadata, wanted: std::fs::Metadata| {
        (found.dev(), found.ino()) == (wanted.dev(), wanted.ino())
    };
    found.is_ok_and(|found| file.metadata().is_ok_and(|wanted| same(found, wanted)))
}

/// Resident memory of a process and all its descendants together, in bytes; none where it does not live.
///
/// It asks the kernel for children only, so that it costs the same however many processes the machine has.
pub(super) fn resident(root: Pid) -> Option<u64> {
    let mut found = vec![root.as_raw_nonzero().get()];
    let (mut next, mut kilobytes) = (0, 0);
    while let Some(&id) = found.get(next) {
        found.extend(children(id));
        kilobytes += resident_kilobytes(id).unwrap_or_default();
        next += 1;
    }
    (kilobytes > 0).then_some(kilobytes * 1024)
}

fn children(id: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let ids = |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>();
    lists.flat_map(ids).collect()
}

fn resident_kilobytes(id: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    resident.trim().strip_suffix(" kB")?.parse().ok()
}

fn read_stat(id: Pid, stat: &str) -> Option<Living> {
    // The name in parentheses may hold anything, so the fields are counted from its end: state, ppid, pgrp, …
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let process = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).and_then(Pid::from_raw);
    let living = !matches!(*fields.first()?, "Z" | "X");
    let started = fields.get(19)?.parse().ok()?;
    living.then_some(Living { id, parent: process(1), group: process(2), started })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::Stdio;

    use rustix::process::{getpgid, getpid, getppid};

    use super::*;

    #[test]
    fn we_are_seen_as_we_are() {
        let us = look(getpid()).unwrap();
        assert_eq!((us.id, us.parent, us.group), (getpid(), getppid(), getpgid(None).ok()));
        assert!(all().contains(&us));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) Z 1 2) S 3 4 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0";
        let found = read_stat(getpid(), stat).unwrap();
        assert_eq!((found.parent, found.group, found.started), (Pid::from_raw(3), Pid::from_raw(4), 99));
    }

    #[test]
    fn the_dead_are_not_living() {
        assert_eq!(read_stat(getpid(), "7 (a) Z 3 4 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"), None);
        assert_eq!(read_stat(getpid(), "7 (a"), None);
    }

    #[test]
    fn the_memory_of_a_process_is_told_with_that_of_all_below_it() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 60 & cat; kill $!; wait"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // What comes back tells that the program itself runs by now.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let root = Pid::from_child(&child);
        let below = children(root.as_raw_nonzero().get());
        assert_eq!(below.len(), 2);
        let one = |id: i32| resident_kilobytes(id).unwrap() * 1024;
        let sum = || below.iter().copied().chain([root.as_raw_nonzero().get()]).map(one).sum::<u64>();
        // A program that has just begun still grows.
        let (told, sum) = (0..10_000)
            .map(|_| (sum(), resident(root), sum()))
            .find_map(|(before, told, after)| (before == after).then_some((told, after)))
            .unwrap();
        assert!(sum > 300_000);
        assert_eq!(told, Some(sum));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(resident(root), None);
    }

    #[test]
    fn stderr_is_known_by_the_file_it_is() {
        let [log, other] = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("60").stderr(log.try_clone().unwrap()).spawn().unwrap();
        let id = Pid::from_child(&child);
        assert!(has_for_stderr(id, &log));
        assert!(!has_for_stderr(id, &other));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
