//! What became of earlier sessions' files: put aside by rename, so that the CLI neither finds nor grows them, and removed
//! when they have been kept long enough.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Config;
use super::launch::Folders;
use crate::conversation::{Millis, PersonaId};
use crate::persona::session::Session;

/// Behind the name of a file that was put aside.
const ASIDE: &str = "archived";
/// Behind the name of one that was put aside because it is not to be trusted.
const QUARANTINED: &str = "quarantined";

/// Puts aside the files of all sessions but this one.
pub(super) fn put_aside_others(folders: &Folders, session: &Session, now: Millis) -> io::Result<()> {
    let kept = [session.id.to_string(), session.generation.to_string()];
    for path in files(folders) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        if !is_aside(&path) && !kept.iter().any(|kept| kept == stem) {
            put_aside(&path, now)?;
        }
    }
    Ok(())
}

/// Puts a file aside: it bears the time from now on, by which it is removed one day.
pub(super) fn put_aside(path: &Path, now: Millis) -> io::Result<()> {
    rename(path, ASIDE, now)
}

/// Puts the file of a spoilt session aside; it is kept as long as any other.
pub(super) fn quarantine(path: &Path, now: Millis) -> io::Result<()> {
    rename(path, QUARANTINED, now)
}

fn rename(path: &Path, aside: &str, now: Millis) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{aside}"));
    fs::rename(path, &name)?;
    File::options()
        .append(true)
        .open(&name)?
        .set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(now.0))
}

/// Removes what a Persona's earlier sessions have left, as far as it was put aside before a time; answers how many files.
///
/// # Errors
/// A file cannot be looked at or removed.
pub fn prune(config: &Config, persona: &PersonaId, before: Millis) -> io::Result<u64> {
    let before = SystemTime::UNIX_EPOCH + Duration::from_millis(before.0);
    let mut removed = 0;
    for path in files(&Folders::of(config, persona)).into_iter().filter(|path| is_aside(path)) {
        if fs::metadata(&path)?.modified()? < before {
            fs::remove_file(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_aside(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == ASIDE || extension == QUARANTINED)
}

/// The files of all sessions, put aside or not.
fn files(folders: &Folders) -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let projects = below(&folders.config.join("projects"));
    let sessions = projects.iter().flat_map(|project| below(project));
    let sessions = sessions.filter(|path| path.to_string_lossy().contains(".jsonl"));
    sessions.chain(below(&folders.prompts)).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::super::launch::tests::{config, eir, session};
    use super::*;

    fn names(folders: &Folders) -> BTreeSet<String> {
        let names = files(folders).into_iter();
        names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_not_this_sessions_is_put_aside_and_removed_when_its_time_has_come() {
        let state = tempfile::tempdir().unwrap();
        let config = config(state.path());
        let folders = Folders::of(&config, &eir());
        folders.make().unwrap();
        let project = folders.config.join("projects/-a-folder");
        fs::create_dir_all(&project).unwrap();
        let (current, older) = (session(), Uuid::from_u128(6));
        for name in [current.id, older].map(|id| project.join(format!("{id}.jsonl"))) {
            fs::write(name, "words").unwrap();
        }
        for name in ["2.md", "2.schema.json", "3.md", "3.schema.json"] {
            fs::write(folders.prompts.join(name), "text").unwrap();
        }
        let (kept, aside) = (
            BTreeSet::from([format!("{}.jsonl", current.id), "3.md".to_owned(), "3.schema.json".to_owned()]),
            BTreeSet::from([
                format!("{older}.jsonl.archived"),
                "2.md.archived".to_owned(),
                "2.schema.json.archived".to_owned(),
            ]),
        );
        for now in [Millis(1_000), Millis(9_000)] {
            put_aside_others(&folders, &current, now).unwrap();
            assert_eq!(names(&folders), kept.union(&aside).cloned().collect());
        }
        let spoilt = project.join("spoilt.jsonl");
        fs::write(&spoilt, "words").unwrap();
        quarantine(&spoilt, Millis(1_000)).unwrap();
        assert!(names(&folders).contains("spoilt.jsonl.quarantined"));
        put_aside_others(&folders, &current, Millis(9_000)).unwrap();
        assert_eq!(prune(&config, &eir(), Millis(1_000)).unwrap(), 0);
        assert_eq!(prune(&config, &eir(), Millis(1_001)).unwrap(), 4);
        assert_eq!(names(&folders), kept);
        assert_eq!(fs::read_to_string(project.join(format!("{}.jsonl", current.id))).unwrap(), "words");
    }

    #[test]
    fn a_persona_without_a_folder_has_nothing_to_remove() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(prune(&config(state.path()), &eir(), Millis(1)).unwrap(), 0);
    }
}
