//! Whether a room is encrypted: nothing is sent into one before that is known, and only one notice into one that is.

use std::sync::Arc;

use ruma::OwnedRoomId;

use super::BridgeError;
use super::calls::Failed;
use super::directory::Directory;
use super::shared::{SayTarget, Shared, notice};
use crate::homeserver::client::Identity;
use crate::store::Effect;

/// Whether a room is encrypted, as somebody in it is told by the server where that is not known.
///
/// What is known to be plain is asked again whenever something may have been missed: at start, once reading has to
/// catch up, and after the homeserver was away.
pub(crate) async fn is_encrypted(
    shared: &Shared,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<bool, Failed> {
    let outages = shared.outages();
    {
        let directory = shared.directory();
        if directory.is_encrypted(room) {
            return Ok(true);
        }
        if directory.is_plain(room, outages) {
            return Ok(false);
        }
    }
    if shared.client.state(identity, room, "m.room.encryption", "").await?.is_some() {
        found(shared, room).await?;
        return Ok(true);
    }
    let mut directory = shared.directory();
    directory.plain(room, outages);
    Ok(directory.is_encrypted(room))
}

/// Learns it in a pass, through whoever may read the room.
pub(crate) async fn learn(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<(), Failed> {
    let readers = shared.directory().readers(room);
    match readers.first() {
        Some(reader) => is_encrypted(shared, &shared.identity(reader), room).await.map(drop),
        None => Ok(()),
    }
}

async fn found(shared: &Shared, room: &OwnedRoomId) -> Result<(), BridgeError> {
    let notice = {
        let mut directory = shared.directory();
        directory.encrypted(room);
        notice_of(shared, &directory, room)
    };
    shared.store.note_encrypted(room.clone()).await?;
    if let Some(Effect::Once { key, says }) = notice
        && shared.store.say_once(key, says, shared.clock.now()).await?
    {
        shared.outbox.notify_one();
    }
    Ok(())
}

/// The fact behind the one notice in an encrypted room.
pub(crate) fn cause(room: &OwnedRoomId) -> String {
    format!("encrypted:{room}")
}

/// The one notice that is ever sent into an encrypted room, by its first Persona.
pub(crate) fn notice_of(shared: &Shared, directory: &Directory, room: &OwnedRoomId) -> Option<Effect> {
    let known = directory.room(room)?;
    let first = directory.personas.iter().find(|persona| known.seats.contains_key(&persona.id))?;
    let key = cause(room);
    let text = format!(
        "I cannot read encrypted rooms yet, so I hear nothing here. To talk to me, start a direct chat with {} \
         with encryption switched off (in Element: Start chat, then the settings of the new room before the \
         first message).",
        first.user
    );
    let target = SayTarget { room, kind: "m.room.message", cause: &key, part: "0" };
    let say = shared.say(&first.user, target, &notice(&text));
    Some(Effect::Once { key, says: vec![say] })
}
