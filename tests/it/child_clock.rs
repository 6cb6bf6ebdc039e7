//! The clock that a claude child reads, where libfaketime can be had: so a day passes without one passing.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::tools::{now, skipped};

/// Where packages put their libraries.
const LIBRARIES: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

/// A clock that a test sets.
pub(crate) struct ChildClock {
    offset: PathBuf,
    /// What starts the program under this clock.
    pub(crate) program: PathBuf,
}

impl ChildClock {
    /// The clock of a program, its files in a folder; none (said aloud) where there is no libfaketime.
    pub(crate) fn around(program: &Path, folder: &Path, test: &str) -> Option<Self> {
        let mut libraries =
            LIBRARIES.iter().map(|folder| Path::new(folder).join("faketime/libfaketime.so.1"));
        let Some(library) = libraries.find(|library| library.is_file()) else {
            skipped("no libfaketime, so no day change is seen", test);
            return None;
        };
        let clock = Self { offset: folder.join("clock"), program: folder.join("claude-by-the-clock") };
        clock.set(now());
        // Time alone is another one: how long something takes stays true.
        let script = format!(
            "#!/bin/sh\nexport FAKETIME_TIMESTAMP_FILE='{}' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n\
             export FAKETIME_DISABLE_SHM=1 LD_PRELOAD='{}'\nexec '{}' \"$@\"\n",
            clock.offset.display(),
            library.display(),
            program.display()
        );
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o755).open(&clock.program).unwrap();
        std::io::Write::write_all(&mut file, script.as_bytes()).unwrap();
        Some(clock)
    }

    /// It is now so late, in unix ms, and goes on from there.
    pub(crate) fn set(&self, time: u64) {
        let ahead = i128::from(time) - i128::from(now());
        let sign = if ahead < 0 { '-' } else { '+' };
        let offset = format!("{sign}{}.{:03}\n", ahead.abs() / 1000, ahead.abs() % 1000);
        let part = self.offset.with_extension("part");
        std::fs::write(&part, offset).unwrap();
        std::fs::rename(part, &self.offset).unwrap();
    }
}
