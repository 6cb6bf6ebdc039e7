//! What operators are shown of a Persona's memories, and what they let her forget.

use crate::conversation::memory::Confided;
use crate::conversation::prompt::memory_line;
use crate::conversation::{Memory, MemoryNumber, Millis, PersonaId};
use crate::store::{Store, StoreError};

pub use crate::conversation::command::Memories as Asked;

/// Does what is asked; answers in words, which are users' where memories are shown.
pub(crate) async fn carry_out(
    store: &Store,
    persona: &PersonaId,
    asked: &Asked,
) -> Result<String, StoreError> {
    Ok(match asked {
        Asked::List => store.memories(persona, |all| {
            let lines: Vec<String> = all.all().map(|memory| memory_line(memory, Millis(0))).collect();
            if lines.is_empty() { format!("{persona} remembers nothing") } else { lines.join("\n") }
        }),
        Asked::Show(numbers) => store.memories(persona, |all| {
            let one = |number: &MemoryNumber| match all.get(*number) {
                Some(memory) => shown(memory),
                None => format!("{persona} has no memory {number}"),
            };
            numbers.iter().map(one).collect::<Vec<_>>().join("\n\n")
        }),
        Asked::Forget(numbers) => {
            let gone = store.forget_memories(persona, numbers.clone()).await?;
            format!("{persona} has forgotten {gone} of {}", numbers.len())
        }
    })
}

fn shown(memory: &Memory) -> String {
    let origin = &memory.origin;
    let events: Vec<&str> = origin.events.iter().map(|event| event.as_str()).collect();
    [
        memory_line(memory, Millis(0)),
        format!("salience: {}", f64::from(memory.kept.salience.hundredths()) / 100.0),
        format!("learned in session {} from: {}", origin.generation, events.join(" ")),
        format!("confided in: {}", confided(&origin.confided)),
        format!("recalled because it fitted: {} times", memory.uses),
    ]
    .join("\n")
}

fn confided(confided: &Confided) -> String {
    let rooms = confided.iter().map(|(room, by)| {
        let by: Vec<&str> = by.iter().map(|user| user.as_str()).collect();
        format!("{room} by {}", by.join(" "))
    });
    let rooms: Vec<String> = rooms.collect();
    if rooms.is_empty() { "no direct room".to_owned() } else { rooms.join(", ") }
}
