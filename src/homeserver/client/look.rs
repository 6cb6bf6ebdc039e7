//! Single things to look up.

use ruma::api::client::config::get_global_account_data;
use ruma::api::client::room::get_room_event;
use ruma::events::GlobalAccountDataEventType;
use ruma::{OwnedEventId, OwnedRoomId, RoomId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Speaker;
use super::{CallErrorKind, Called, Client, Identity};

impl Client {
    /// One event, raw; not found (or not shown to the user) is `None`.
    pub async fn event(
        &self,
        identity: &Identity,
        room: &RoomId,
        event: &OwnedEventId,
    ) -> Called<Option<Box<RawValue>>> {
        let request = get_room_event::v3::Request::new(room.to_owned(), event.clone());
        match self.ask("event", Speaker::As(identity), request).await {
            Ok(event) => Ok(Some(event)),
            Err(error) if matches!(error.kind, CallErrorKind::NotFound | CallErrorKind::Forbidden) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The rooms of the user's own `m.direct`, with everyone; what cannot be read is left out.
    pub async fn direct_rooms(&self, identity: &Identity) -> Called<Vec<OwnedRoomId>> {
        let kind = GlobalAccountDataEventType::Direct;
        let request = get_global_account_data::v3::Request::new(identity.user.clone(), kind);
        match self.ask::<_, Value>("direct_rooms", Speaker::As(identity), request).await {
            Ok(direct) => Ok(rooms_in(&direct)),
            Err(error) if error.kind == CallErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn rooms_in(direct: &Value) -> Vec<OwnedRoomId> {
    let lists = direct.as_object().into_iter().flat_map(serde_json::Map::values);
    let rooms = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    rooms.filter_map(|room| OwnedRoomId::try_from(room).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_list_of_rooms_is_left_out() {
        let direct = json!({ "@a:hs.test": ["!a:hs.test", 7, "nonsense"], "@b:hs.test": "!b:hs.test", "@c:hs.test": ["!c"] });
        let rooms: Vec<String> = rooms_in(&direct).iter().map(ToString::to_string).collect();
        assert_eq!(rooms, ["!a:hs.test", "!c"]);
        assert!(rooms_in(&json!([])).is_empty());
    }
}
