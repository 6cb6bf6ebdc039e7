//! `example-config`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{CliError, print};
use crate::config::EXAMPLE;
use crate::operate::ExitCode;

/// Where the example goes.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The file to write, which must not exist yet; `-` is standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}

pub(super) fn example(options: &Options) -> Result<ExitCode, CliError> {
    if options.file == Path::new("-") {
        return print(EXAMPLE);
    }
    let path = options.file.clone();
    let written = std::fs::File::create_new(&path).and_then(|mut file| file.write_all(EXAMPLE.as_bytes()));
    match written {
        Ok(()) => print(&format!("{} is written; every key in it is explained\n", path.display())),
        Err(source) if source.kind() == std::io::ErrorKind::AlreadyExists => Err(CliError::Other {
            reason: format!("{} exists and is not overwritten; name another file, or `-`", path.display()),
            code: ExitCode::Failed,
        }),
        Err(source) => Err(CliError::Io { path, source }),
    }
}
