//! The chat in the terminal: lines in, answers out, and how to address someone.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::mpsc;

use super::cast::{self, Target};
use super::error::DemoError;
use super::say::PATIENCE;
use super::you::{Heard, You};

const LISTEN: Duration = Duration::from_secs(25);

/// What people can type.
const HELP: &str = "\
/room NAME   talk in a room: minds, swarm or burn; there, name who shall answer: Eir, what do you think?
/dm NAME     talk to one Persona alone: eir or brage
/help        this
/quit        end the demo
";

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Typed {
    Nothing,
    Words(String),
    Go(Target),
    Help,
    Quit,
    Unknown(String),
}

/// Lines from standard input; nothing comes after their end.
pub(super) struct Lines {
    lines: mpsc::Receiver<String>,
    terminal: bool,
}

impl Lines {
    /// Those of this process. The thread that reads them ends with the process.
    pub(super) fn of_stdin() -> Self {
        let (sender, lines) = mpsc::channel(16);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self { lines, terminal: std::io::stdin().is_terminal() }
    }
}

/// The chat.
struct Chat<'a> {
    you: &'a mut You,
    target: Target,
    terminal: bool,
    /// Where an answer is still to come.
    asked: BTreeSet<Target>,
}

enum Event {
    Line(Option<String>),
    Heard(Vec<Heard>),
    Unheard,
}

/// Chats until `/quit`, or until the lines end and the last question is answered.
pub(super) async fn chat(you: &mut You, mut lines: Lines) -> Result<(), DemoError> {
    let mut chat =
        Chat { you, target: Target::Room("swarm"), terminal: lines.terminal, asked: BTreeSet::new() };
    chat.go(Target::Room("swarm")).await?;
    print(&format!("\n{HELP}\n"));
    let mut typed_something = false;
    loop {
        chat.prompt();
        let event = tokio::select! {
            line = lines.lines.recv() => Event::Line(line),
            heard = chat.you.listen(LISTEN) => heard.map_or(Event::Unheard, Event::Heard),
        };
        match event {
            Event::Line(Some(line)) => {
                typed_something = true;
                if chat.line(&line).await?.is_break() {
                    return Ok(());
                }
            }
            Event::Line(None) if typed_something || chat.terminal => return chat.last_answer().await,
            // Started without anyone to type, as a service is: it runs until it is told to stop.
            Event::Line(None) => std::future::pending().await,
            Event::Heard(heard) => chat.show(&heard),
            Event::Unheard => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

impl Chat<'_> {
    async fn line(&mut self, line: &str) -> Result<std::ops::ControlFlow<()>, DemoError> {
        match read(line) {
            Typed::Nothing => {}
            Typed::Quit => return Ok(std::ops::ControlFlow::Break(())),
            Typed::Help => print(HELP),
            Typed::Unknown(what) => print(&format!("{what}\n{HELP}")),
            Typed::Go(target) => self.go(target).await?,
            Typed::Words(words) => self.say(&words).await?,
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    async fn go(&mut self, target: Target) -> Result<(), DemoError> {
        let gone = tokio::time::timeout(PATIENCE, self.you.go(target)).await;
        match gone {
            Ok(room) => room?,
            Err(_) => {
                return Err(DemoError::Silent(format!("the Personas did not come to {}", target.label())));
            }
        };
        self.target = target;
        Ok(())
    }

    async fn say(&mut self, words: &str) -> Result<(), DemoError> {
        let room = self.you.go(self.target).await?;
        self.you.say(&room, words).await?;
        if self.target.addresses(words) {
            self.asked.insert(self.target);
        } else {
            print(&format!("({})\n", cast::UNADDRESSED));
        }
        Ok(())
    }

    fn show(&mut self, heard: &[Heard]) {
        for heard in heard {
            self.asked.remove(&heard.target);
            let place = match heard.target {
                Target::Room(_) => format!(" in {}", heard.target.label()),
                Target::Direct(_) => String::new(),
            };
            let line_start = if self.terminal { "\r" } else { "" };
            print(&format!("{line_start}{}{place}: {}\n", cast::name_of(heard.persona), heard.body));
        }
    }

    async fn last_answer(&mut self) -> Result<(), DemoError> {
        let patience = tokio::time::timeout(PATIENCE, async {
            while !self.asked.is_empty() {
                let heard = self.you.listen(LISTEN).await?;
                self.show(&heard);
            }
            Ok(())
        });
        patience.await.unwrap_or_else(|_| Err(DemoError::Silent("no answer to the last line".to_owned())))
    }

    fn prompt(&self) {
        if self.terminal {
            print(&format!("{}> ", self.target.label()));
        }
    }
}

fn read(line: &str) -> Typed {
    let line = line.trim();
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (command, Target::parse(rest)) {
        ("", _) => Typed::Nothing,
        ("/quit" | "/exit", _) => Typed::Quit,
        ("/help", _) => Typed::Help,
        ("/room", Some(target @ Target::Room(_))) | ("/dm", Some(target @ Target::Direct(_))) => {
            Typed::Go(target)
        }
        ("/room", _) => Typed::Unknown(format!("there is no room {rest:?}")),
        ("/dm", _) => Typed::Unknown(format!("there is no Persona {rest:?}")),
        (other, _) if other.starts_with('/') => Typed::Unknown(format!("{other} is no command")),
        _ => Typed::Words(line.to_owned()),
    }
}

/// Prints to standard output; a closed pipe is nobody's fault.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_words() {
        let check = |line: &str, expect: Typed| assert_eq!(read(line), expect, "{line}");
        check("", Typed::Nothing);
        check("  ", Typed::Nothing);
        check("/quit", Typed::Quit);
        check("/help me", Typed::Help);
        check("/dm eir", Typed::Go(Target::Direct("eir")));
        check("/room #swarm", Typed::Go(Target::Room("swarm")));
        check("/dm swarm", Typed::Unknown("there is no Persona \"swarm\"".to_owned()));
        check("/room", Typed::Unknown("there is no room \"\"".to_owned()));
        check("/what", Typed::Unknown("/what is no command".to_owned()));
        check(" Eir, hello ", Typed::Words("Eir, hello".to_owned()));
    }
}
