//! The hidden subcommand between us and the CLI: `persona-bridge guard --parent PID -- PROGRAM ARGS…`.
//!
//! The bridge starts it as the leader of a process group. It starts a second guard (`--last`) that becomes PROGRAM, and
//! stays: when the bridge dies, by whatever means, it kills PROGRAM and all that PROGRAM started, even what has left the
//! group. When it is killed itself, PROGRAM is killed with it. It passes signals of the group by: PROGRAM has them too.
//! It must never read the environment; what it was given it hands on.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, kill_process_group};
use rustix::process::{set_child_subreaper, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};

use super::proc;

/// The name of the subcommand.
pub const NAME: &str = "guard";

/// The exit code for wrong arguments, a parent that is gone, or a program that cannot be started.
const FAILED: u8 = 70;

/// Runs the guard with the arguments that follow its name; returns when the program has ended.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(task) = Task::parse(arguments) else { return ExitCode::from(FAILED) };
    let outcome = if task.last { become_program(&task) } else { supervise(&task) };
    outcome.unwrap_or_else(|error| {
        // Stderr is the Persona's own log.
        let _ = writeln!(io::stderr(), "guard: {}: {error}", task.command[0].display());
        ExitCode::from(FAILED)
    })
}

/// The arguments of a guard that is started as `parent`'s child.
pub(super) fn arguments(parent: u32) -> [OsString; 4] {
    [NAME.into(), "--parent".into(), parent.to_string().into(), "--".into()]
}

struct Task {
    parent: Pid,
    last: bool,
    command: Vec<OsString>,
}

impl Task {
    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut parent, mut last) = (None, false);
        loop {
            match arguments.next()?.to_str()? {
                "--parent" => parent = arguments.next()?.to_str()?.parse().ok().and_then(Pid::from_raw),
                "--last" => last = true,
                "--" => break,
                _ => return None,
            }
        }
        let command: Vec<OsString> = arguments.collect();
        (!command.is_empty()).then_some(Self { parent: parent?, last, command })
    }

    /// Asks for `signal` when the parent dies; false if it is dead already.
    fn follow_parent(&self, signal: Signal) -> io::Result<bool> {
        set_parent_process_death_signal(Some(signal))?;
        Ok(self.parent_lives())
    }

    fn parent_lives(&self) -> bool {
        getppid() == Some(self.parent)
    }
}

fn become_program(task: &Task) -> io::Result<ExitCode> {
    if !task.follow_parent(Signal::KILL)? {
        return Ok(ExitCode::from(FAILED));
    }
    Err(Command::new(&task.command[0]).args(&task.command[1..]).exec())
}

fn supervise(task: &Task) -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        set_child_subreaper(Some(getpid()))?;
        if !task.follow_parent(Signal::TERM)? {
            return Ok(ExitCode::from(FAILED));
        }
        let mut child = last_guard(task).spawn()?;
        loop {
            tokio::select! {
                status = child.wait() => {
                    kill_descendants().await;
                    return Ok(exit_code(status?));
                }
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
                _ = hung_up.recv() => {}
            }
            if !task.parent_lives() {
                kill_descendants().await;
                kill_process_group(getpid(), Signal::KILL)?;
            }
        }
    })
}

fn last_guard(task: &Task) -> tokio::process::Command {
    let own = getpid().as_raw_nonzero().to_string();
    // The running binary itself, even after another one was installed in its place.
    let mut command = tokio::process::Command::new("/proc/self/exe");
    command.args([NAME, "--parent", &own, "--last", "--"]).args(&task.command);
    command
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Kills whatever descends from us until nothing does; orphans come to us, since we reap them.
async fn kill_descendants() {
    for _ in 0..200 {
        let living = proc::descendants(getpid());
        if living.is_empty() {
            return;
        }
        for process in living {
            // It may have ended by itself in the meantime.
            let _ = kill_process(process, Signal::KILL);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<(i32, bool, Vec<OsString>)> {
        let task = Task::parse(arguments.iter().map(OsString::from))?;
        Some((task.parent.as_raw_nonzero().get(), task.last, task.command))
    }

    #[test]
    fn arguments_are_read_back() {
        let [name, rest @ ..] = arguments(7);
        assert_eq!(name, NAME);
        let all = rest.into_iter().chain(["claude".into(), "--last".into(), "".into()]);
        let task = Task::parse(all).unwrap();
        assert_eq!((task.last, task.command), (false, vec!["claude".into(), "--last".into(), "".into()]));
        assert_eq!(parsed(&["--parent", "7", "--last", "--", "x"]), Some((7, true, vec!["x".into()])));
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            &[][..],
            &["--parent", "7"],
            &["--parent", "7", "--"],
            &["--parent", "x", "--", "claude"],
            &["--parent", "0", "--", "claude"],
            &["--", "claude"],
            &["claude"],
        ] {
            assert_eq!(parsed(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_guard_of_another_parent_starts_nothing() {
        let task = Task { parent: getpid(), last: true, command: vec!["true".into()] };
        assert!(!task.parent_lives());
    }
}
