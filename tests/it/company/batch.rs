//! What a Persona is fed, as a model reads it.

/// The lane of direct chats, whichever.
pub(crate) const DM: &str = "dm";

/// A batch of mail.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// The register's name, or [`DM`].
    pub(crate) lane: &'a str,
    /// The messages, in order.
    pub(crate) mail: Vec<Mail<'a>>,
}

/// A message of a batch.
#[derive(Debug)]
pub(crate) struct Mail<'a> {
    /// Its room as shown.
    pub(crate) room: &'a str,
    /// Who sent it.
    pub(crate) sender: &'a str,
    /// Whether it is addressed to her.
    pub(crate) to_you: bool,
    /// Its first line.
    pub(crate) text: &'a str,
}

/// Reads words that hold mail; none where they hold none.
pub(crate) fn read(words: &str) -> Option<Batch<'_>> {
    let header = words.lines().find_map(|line| line.strip_prefix("# mail for you in "))?;
    let lane = header.strip_prefix("register ").and_then(|rest| rest.split(':').next()).unwrap_or(DM);
    let (mut room, mut mail) = ("", Vec::new());
    for line in words.lines() {
        match line.strip_prefix("room ") {
            Some(label) => room = label_of(label),
            None => mail.extend(message(line, room)),
        }
    }
    Some(Batch { lane, mail })
}

/// The name of a room's line by which a reply may call it.
fn label_of(shown: &str) -> &str {
    match shown.rsplit_once(" !") {
        Some((_, id)) if shown.starts_with('"') => &shown[shown.len() - id.len() - 1..],
        _ => shown.trim_matches('"'),
    }
}

fn message<'a>(line: &'a str, room: &'a str) -> Option<Mail<'a>> {
    let (label, rest) = line.split_once(' ')?;
    let number = label.strip_prefix('m')?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (_, rest) = rest.split_once("<@")?;
    let (sender, rest) = rest.split_once('>')?;
    let (marks, text) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
    Some(Mail { room, sender, to_you: marks.contains("(to you"), text })
}

mod tests {
    use super::*;

    #[test]
    fn mail_is_read_with_room_sender_and_whether_it_is_to_her() {
        let words = "# something\n# mail for you in register swarm: 2 new in 1 room, now 2026-10-31 09:20 UTC\n\
                     room \"#persona_swarm:hs.test\"\nearlier 08:50 <@bob:hs.test>: before\n\
                     m12 09:14 \"Alice\" <@alice:hs.test> (to you; reply to m7): hello: you\n| more\n\
                     m13 2026-10-30 09:15 <@bob:hs.test>: so";
        let batch = read(words).unwrap();
        assert_eq!(batch.lane, "swarm");
        let seen: Vec<_> = batch.mail.iter().map(|m| (m.room, m.sender, m.to_you, m.text)).collect();
        let room = "#persona_swarm:hs.test";
        assert_eq!(seen, [(room, "alice:hs.test", true, "hello: you"), (room, "bob:hs.test", false, "so")]);
        let direct =
            read("# mail for you in a direct room: 1 new, now x\nroom \"a\" !b:c\nm1 x <@a:c>: y").unwrap();
        assert_eq!((direct.lane, direct.mail[0].room), (DM, "!b:c"));
        assert!(read("(retry)").is_none());
    }
}
