//! What operators order: each order is a row in the store that the bridge looks at, so that it makes no difference whether
//! the bridge runs. A new one is a variant, its form as JSON, and what it writes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::BridgeError;
use super::shared::Shared;
use crate::conversation::PersonaId;
use crate::homeserver::appservice::Orders;
use crate::persona::session::care::Word;
use crate::store::Store;

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// What is to become of a Persona's session.
    Session {
        /// Whose.
        persona: PersonaId,
        /// What.
        word: Word,
    },
}

impl Order {
    /// As it goes to a running bridge.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Session { persona, word } => json!({ "order": word.name(), "persona": persona.as_str() }),
        }
    }

    /// Reads what [`Order::to_json`] made; none where it is something else.
    pub fn from_json(json: &Value) -> Option<Self> {
        let word = Word::named(json["order"].as_str()?)?;
        Some(Self::Session { persona: PersonaId(json["persona"].as_str()?.to_owned()), word })
    }

    fn persona(&self) -> &PersonaId {
        match self {
            Self::Session { persona, .. } => persona,
        }
    }
}

/// Writes an order down, where the bridge finds it; answers what follows, in words.
///
/// # Errors
/// The store failed.
pub async fn carry_out(store: &Store, order: &Order) -> Result<String, BridgeError> {
    match order {
        Order::Session { persona, word } => {
            let Some(generation) = store.set_word(persona, *word).await? else {
                return Ok(format!("{persona} has no session yet; it begins with her first mail"));
            };
            Ok(match word {
                Word::Refresh => format!("the next mail begins session {} of {persona}", generation + 1),
                Word::Flush => format!("session {generation} of {persona} is flushed while it is warm"),
                Word::Keep => format!("session {generation} of {persona} goes on for as long as it can"),
            })
        }
    }
}

/// Takes orders while the bridge runs.
pub(crate) fn taken_by(shared: &Arc<Shared>) -> Orders {
    let shared = shared.clone();
    Arc::new(move |order| {
        let shared = shared.clone();
        Box::pin(async move {
            let order =
                Order::from_json(&order).ok_or("it does not know this order; is it another version?")?;
            let persona = order.persona();
            if !shared.bells.contains_key(persona) {
                return Err(format!("it has no Persona {persona}; was it restarted with this config?"));
            }
            let follows = carry_out(&shared.store, &order).await.map_err(|error| error.to_string())?;
            tracing::info!(%persona, order = %order.to_json()["order"], "an operator's order");
            shared.wake(persona);
            Ok(json!({ "follows": follows }))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_back() {
        for word in Word::ALL {
            let order = Order::Session { persona: PersonaId("eir".to_owned()), word };
            assert_eq!(Order::from_json(&order.to_json()), Some(order));
        }
        for other in [json!({}), json!({ "order": "dance", "persona": "eir" }), json!({ "order": "keep" })] {
            assert_eq!(Order::from_json(&other), None, "{other}");
        }
    }
}
