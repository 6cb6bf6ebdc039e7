//! The binary: arguments, environment, runtime, exit code.

use anyhow::Context;
use clap::Parser;
use persona_bridge::cli::{self, Cli, CliError};
use persona_bridge::config::Environment;
use persona_bridge::mind::claude::guard;
use persona_bridge::operate::ExitCode;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|name| name == guard::NAME) {
        return guard::run(arguments);
    }
    match run(Cli::parse()) {
        Ok(code) => code.into(),
        Err(error) => {
            let (told, code) = match error.downcast_ref::<CliError>() {
                // Its own words hold what caused it.
                Some(error) => (error.to_string(), error.code()),
                None => (format!("{error:#}"), ExitCode::Failed),
            };
            say(&format!("persona-bridge: {told}"));
            code.into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let environment = Environment::of_this_process();
    if let Some(code) = cli::at_once(&cli, &environment)? {
        return Ok(code);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let ended = runtime.block_on(cli::main(cli, environment));
    runtime.shutdown_background();
    Ok(ended?)
}

#[expect(clippy::print_stderr, reason = "the last words of a process whose log may not have begun")]
fn say(text: &str) {
    eprintln!("{text}");
}
