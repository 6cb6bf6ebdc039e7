//! What rooms are called and about: some servers say nothing of a room's state from before somebody came.

use std::sync::Arc;

use ruma::OwnedRoomId;

use super::calls::Failed;
use super::shared::Shared;
use crate::homeserver::event::description;

/// Asks the server, through whoever may read the room, unless it was asked and nothing was missed since.
pub(crate) async fn learn(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<(), Failed> {
    let outages = shared.outages();
    let readers = shared.directory().readers(room);
    let Some(reader) = readers.first() else { return Ok(()) };
    if shared.directory().is_described(room, outages) {
        return Ok(());
    }
    let identity = shared.identity(reader);
    for kind in ["m.room.name", "m.room.topic"] {
        let content = shared.client.state(&identity, room, kind, "").await?;
        let content = content.as_ref().map_or("{}", |content| content.get());
        let Some(is) = description(kind, content) else { continue };
        // Not in the condition itself, which would hold the directory while the store writes.
        let is_news = shared.directory().describe(room, is.clone(), None);
        if is_news {
            shared.store.describe(room.clone(), is).await?;
        }
    }
    shared.directory().asked_description(room, outages);
    Ok(())
}
