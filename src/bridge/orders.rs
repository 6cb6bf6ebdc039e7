//! What operators order: each order is a row in the store that the bridge looks at, so that it makes no difference whether
//! the bridge runs. A new one is a variant, its form as JSON, and what it writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ruma::OwnedUserId;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::campaigns::{self, Campaigns};
use super::inspect::{self, Asked};
use super::reminders::{self, Reminders};
use super::shared::Shared;
use super::states::{self, States};
use crate::conversation::{MemoryNumber, Millis, PersonaId, steer};
use crate::homeserver::appservice::Orders;
use crate::persona::Brake;
use crate::persona::schema::Misfit;
use crate::persona::session::care::Word;
use crate::persona::state::{Malformed, Refusal};
use crate::store::{Store, StoreError};

/// What is done with the brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    /// From now on nothing is asked, and a turn in flight is ended.
    Hold,
    /// Who was held is asked again.
    Release,
    /// It is only looked at.
    Show,
}

impl Lever {
    const NAMES: [(&str, Self); 3] =
        [("brake-hold", Self::Hold), ("brake-release", Self::Release), ("brake-show", Self::Show)];

    fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, lever)| lever)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hold => "brake-hold",
            Self::Release => "brake-release",
            Self::Show => "brake-show",
        }
    }
}

/// The name of [`Order::Release`].
const RELEASE: &str = "release";
/// The names of [`Order::Memory`].
const LIST: &str = "list-memories";
const SHOW: &str = "show-memory";
const FORGET: &str = "forget-memories";
/// The names of [`Order::State`], and where the second has its document.
const GET: &str = "get-state";
const PUT: &str = "put-state";
const DOCUMENT: &str = "document";

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to be shown.
    #[error("{persona} has no state yet; write one with `persona put {persona} FILE`")]
    Stateless {
        /// Whose.
        persona: PersonaId,
    },
    /// What is put is no state.
    #[error("the document {0}")]
    Malformed(#[from] Malformed),
    /// What is put does not fit the schema.
    #[error("the document {0}")]
    Misfit(#[from] Misfit),
    /// What is put was not made from what there is.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The contrary was done after the command was said in chat.
    #[error(
        "the contrary was done after that was said, so nothing is changed; say it again if it is still meant"
    )]
    Overtaken,
}

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
    /// Nothing is asked any more, or it is again.
    Brake {
        /// Whether it holds.
        lever: Lever,
        /// This Persona alone; else everyone.
        persona: Option<PersonaId>,
    },
    /// Held mail is asked again, and parked says are sent again.
    Release {
        /// Of this Persona and her user alone.
        of: Option<(PersonaId, OwnedUserId)>,
    },
    /// Her memories are shown or forgotten.
    Memory {
        /// Whose.
        persona: PersonaId,
        /// What is asked of them.
        asked: Asked,
    },
    /// Her state is shown or changed.
    State {
        /// Whose.
        persona: PersonaId,
        /// What is asked of it.
        asked: States,
    },
    /// A campaign is opened or closed, or all are listed.
    Campaign(Campaigns),
    /// Her reminders are listed, or one is cancelled.
    Remind {
        /// Whose.
        persona: PersonaId,
        /// What is asked of them.
        asked: Reminders,
    },
}

impl Order {
    /// As it goes to a running bridge.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Session { persona, word } => json!({ "order": word.name(), "persona": persona.as_str() }),
            Self::Brake { lever, persona } => {
                json!({ "order": lever.name(), "persona": persona.as_ref().map(PersonaId::as_str) })
            }
            Self::Release { of: None } => json!({ "order": RELEASE }),
            Self::Release { of: Some((persona, user)) } => {
                json!({ "order": RELEASE, "persona": persona.as_str(), "user": user })
            }
            Self::Memory { persona, asked } => {
                let none = BTreeSet::new();
                let (order, numbers) = match asked {
                    Asked::List => (LIST, &none),
                    Asked::Show(numbers) => (SHOW, numbers),
                    Asked::Forget(numbers) => (FORGET, numbers),
                };
                let numbers: Vec<u64> = numbers.iter().map(|number| number.0).collect();
                json!({ "order": order, "persona": persona.as_str(), "memories": numbers })
            }
            Self::State { persona, asked } => match asked {
                States::Get => json!({ "order": GET, "persona": persona.as_str() }),
                States::Put(text) => json!({ "order": PUT, "persona": persona.as_str(), DOCUMENT: text }),
            },
            Self::Campaign(asked) => asked.to_json(),
            Self::Remind { persona, asked } => asked.to_json(persona),
        }
    }

    /// Reads what [`Order::to_json`] made; none where it is something else.
    pub fn from_json(json: &Value) -> Option<Self> {
        let persona = json.get("persona").filter(|id| !id.is_null());
        let persona = match persona {
            Some(id) => Some(PersonaId(id.as_str()?.to_owned())),
            None => None,
        };
        let order = json["order"].as_str()?;
        if order == RELEASE {
            let user = || OwnedUserId::try_from(json["user"].as_str()?).ok();
            let of = match persona {
                Some(persona) => Some((persona, user()?)),
                None => None,
            };
            return Some(Self::Release { of });
        }
        if let Some(lever) = Lever::named(order) {
            return Some(Self::Brake { lever, persona });
        }
        if let Some(asked) = asked(order, &json["memories"]) {
            return Some(Self::Memory { persona: persona?, asked });
        }
        if let Some(asked) = of_state(order, &json[DOCUMENT]) {
            return Some(Self::State { persona: persona?, asked });
        }
        if let Some(asked) = Campaigns::from_json(order, json) {
            return Some(Self::Campaign(asked));
        }
        if let Some(asked) = Reminders::from_json(order, json) {
            return Some(Self::Remind { persona: persona?, asked });
        }
        let word = Word::named(order)?;
        Some(Self::Session { persona: persona?, word })
    }

    /// Whom it is about; else it is about all.
    fn persona(&self) -> Option<&PersonaId> {
        match self {
            Self::Session { persona, .. }
            | Self::Memory { persona, .. }
            | Self::State { persona, .. }
            | Self::Remind { persona, .. } => Some(persona),
            Self::Brake { persona, .. } => persona.as_ref(),
            Self::Release { of } => of.as_ref().map(|(persona, _)| persona),
            Self::Campaign(_) => None,
        }
    }

    /// Whether it only asks; the answer holds words of users then.
    fn only_asks(&self) -> bool {
        matches!(
            self,
            Self::Memory { asked: Asked::List | Asked::Show(_), .. }
                | Self::State { asked: States::Get, .. }
                | Self::Campaign(Campaigns::List)
                | Self::Remind { asked: Reminders::List, .. }
                | Self::Brake { lever: Lever::Show, .. }
        )
    }

    /// As it stands in the log.
    fn logged(&self) -> Value {
        let mut json = self.to_json();
        if let Some(order) = json.as_object_mut() {
            order.remove(DOCUMENT);
            order.remove(campaigns::TITLE);
        }
        json
    }
}

fn asked(order: &str, numbers: &Value) -> Option<Asked> {
    let numbers = numbers.as_array()?.iter().map(|number| number.as_u64().map(MemoryNumber));
    let numbers: Option<BTreeSet<MemoryNumber>> = numbers.collect();
    match order {
        LIST => Some(Asked::List),
        SHOW => numbers.filter(|numbers| !numbers.is_empty()).map(Asked::Show),
        FORGET => Some(Asked::Forget(numbers?)),
        _ => None,
    }
}

fn of_state(order: &str, document: &Value) -> Option<States> {
    match order {
        GET => Some(States::Get),
        PUT => Some(States::Put(document.as_str()?.to_owned())),
        _ => None,
    }
}

/// Writes an order down, where the bridge finds it; answers what follows, in words.
///
/// # Errors
/// The store failed, or what is put does not fit what there is.
pub async fn carry_out(store: &Store, order: &Order, now: Millis) -> Result<String, OrderError> {
    match order {
        Order::Session { persona, word } => {
            let Some(generation) = store.set_word(persona, *word).await? else {
                return Ok(format!("{persona} has no session yet; it begins with her first mail"));
            };
            Ok(match word {
                Word::Refresh => format!("the next mail begins session {} of {persona}", generation + 1),
                Word::Flush => format!(
                    "{persona} is asked once to note what would be lost with session {generation}, while it is warm"
                ),
                Word::Keep => format!("session {generation} of {persona} goes on for as long as it can"),
            })
        }
        Order::Brake { lever, persona } => pull(store, *lever, persona.clone(), Given::Now(now)).await,
        Order::Memory { persona, asked } => Ok(inspect::carry_out(store, persona, asked).await?),
        Order::State { persona, asked } => states::carry_out(store, persona, asked, now).await,
        Order::Campaign(asked) => Ok(campaigns::carry_out(store, asked).await?),
        Order::Remind { persona, asked } => Ok(reminders::carry_out(store, persona, asked).await?),
        Order::Release { of } => {
            let (persona, user) = of.clone().unzip();
            let (mail, says) = (store.release_mail(persona).await?, store.release_says(user).await?);
            Ok(format!("{mail} held messages are asked again, {says} parked says are sent again"))
        }
    }
}

/// When the brake is pulled.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// By an order: whatever was done or said before is older.
    Now(Millis),
    /// By a command in chat, which may come in long after it was said.
    Said(Millis),
}

async fn pull(
    store: &Store,
    lever: Lever,
    persona: Option<PersonaId>,
    given: Given,
) -> Result<String, OrderError> {
    let brake = match lever {
        Lever::Hold => change(store, steer::Word::Stop, persona, given).await?,
        Lever::Release => change(store, steer::Word::Go, persona, given).await?,
        Lever::Show => match store.brake() {
            Err(StoreError::Corrupt { .. }) => Brake::everyone(),
            read => read?,
        },
    };
    Ok(braked(brake.told()))
}

/// Holds or releases, unless the contrary was done after the command was said; answers the brake as it is then.
async fn change(
    store: &Store,
    word: steer::Word,
    persona: Option<PersonaId>,
    given: Given,
) -> Result<Brake, OrderError> {
    let (send, is_overtaken) = oneshot::channel();
    let brake = store.change_brake(move |brake| {
        let persona = persona.as_ref();
        let (at, is_overtaken) = match given {
            Given::Now(now) => (now.max(brake.latest()), false),
            Given::Said(said) => (said, brake.is_overtaken(word, persona, said)),
        };
        match word {
            _ if is_overtaken => {}
            steer::Word::Stop => brake.hold(persona, at),
            steer::Word::Go => brake.release(persona, at),
        }
        // Who asks waits for the answer right here.
        let _ = send.send(is_overtaken);
    });
    let brake = brake.await?;
    if is_overtaken.await.unwrap_or_default() { Err(OrderError::Overtaken) } else { Ok(brake) }
}

/// Whom the brake holds, as it is told.
pub(crate) fn braked(told: Option<String>) -> String {
    match told {
        Some(held) => format!("the brake holds {held}: nothing is asked or said until `brake release`"),
        None => "the brake holds nobody".to_owned(),
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
            if let Some(unknown) = order.persona().filter(|persona| !shared.bells.contains_key(persona)) {
                return Err(format!("it has no Persona {unknown}; was it restarted with this config?"));
            }
            let follows =
                heed(&shared, &shared.store, &order, None).await.map_err(|error| error.to_string())?;
            Ok(json!({ "follows": follows }))
        })
    })
}

/// Carries an order out while the bridge runs, by its store or one for a question, which was said in chat at that time if it
/// was; answers what follows, in words.
pub(crate) async fn heed(
    shared: &Shared,
    store: &Store,
    order: &Order,
    said: Option<Millis>,
) -> Result<String, OrderError> {
    let now = shared.clock.now();
    let follows = match (order, said.filter(|said| said.is_known())) {
        (Order::Brake { lever, persona }, Some(said)) => {
            pull(store, *lever, persona.clone(), Given::Said(said.min(now))).await?
        }
        _ => carry_out(store, order, now).await?,
    };
    if order.only_asks() {
        return Ok(follows);
    }
    tracing::info!(order = %order.logged(), follows, "an operator's order");
    shared.read_brake()?;
    if let Order::Release { .. } = order {
        let of = |id: &PersonaId| order.persona().is_none_or(|persona| persona == id);
        let bells = shared.bells.iter().filter(|(id, _)| of(id));
        bells.for_each(|(_, bell)| bell.ask.store(true, Ordering::Relaxed));
    }
    shared.wake_all();
    shared.outbox.notify_one();
    Ok(follows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Campaign, ReminderNumber, Slug};

    #[test]
    fn an_order_is_read_back() {
        for word in Word::ALL {
            let order = Order::Session { persona: PersonaId("eir".to_owned()), word };
            assert_eq!(Order::from_json(&order.to_json()), Some(order));
        }
        let eir = || (PersonaId("eir".to_owned()), ruma::owned_user_id!("@persona_eir:hs.test"));
        for (name, lever) in Lever::NAMES {
            assert_eq!(lever.name(), name);
            for persona in [None, Some(PersonaId("eir".to_owned()))] {
                let order = Order::Brake { lever, persona };
                assert_eq!(Order::from_json(&order.to_json()), Some(order));
            }
        }
        let of_her_memories = |asked| Order::Memory { persona: eir().0, asked };
        let fair = Slug::new("fair").unwrap();
        let of_her_state = |asked| Order::State { persona: eir().0, asked };
        for order in [
            Order::Release { of: None },
            Order::Release { of: Some(eir()) },
            of_her_memories(Asked::List),
            of_her_memories(Asked::Show([MemoryNumber(3), MemoryNumber(9)].into())),
            of_her_memories(Asked::Forget([MemoryNumber(3), MemoryNumber(9)].into())),
            of_her_state(States::Get),
            of_her_state(States::Put("{}".to_owned())),
            Order::Campaign(Campaigns::Open(Campaign::new(fair.clone(), "The fair").unwrap())),
            Order::Campaign(Campaigns::Close(fair.clone())),
            Order::Campaign(Campaigns::List),
            Order::Remind { persona: eir().0, asked: Reminders::List },
            Order::Remind { persona: eir().0, asked: Reminders::Cancel(ReminderNumber(3)) },
        ] {
            assert_eq!(Order::from_json(&order.to_json()), Some(order));
        }
        let put = of_her_state(States::Put("{}".to_owned()));
        assert_eq!(put.logged(), json!({ "order": "put-state", "persona": "eir" }));
        let open = Order::Campaign(Campaigns::Open(Campaign::new(fair.clone(), "The big fair").unwrap()));
        assert_eq!(open.logged(), json!({ "order": "open-campaign", "slug": "fair" }));
        for other in [
            json!({}),
            json!({ "order": "release", "persona": "eir" }),
            json!({ "order": "dance", "persona": "eir" }),
            json!({ "order": "brake-hold", "persona": 5 }),
            json!({ "order": "keep" }),
            json!({ "order": "flush" }),
            json!({ "order": "list-memories", "memories": [] }),
            json!({ "order": "get-state" }),
            json!({ "order": "list-reminders" }),
            json!({ "order": "cancel-reminder", "persona": "eir", "reminder": "r3" }),
            json!({ "order": "open-campaign", "slug": "fair" }),
            json!({ "order": "open-campaign", "slug": "fair", "title": "a\nb" }),
            json!({ "order": "close-campaign", "slug": "The fair" }),
            json!({ "order": "put-state", "persona": "eir" }),
            json!({ "order": "show-memory", "persona": "eir", "memories": [] }),
            json!({ "order": "forget-memories", "persona": "eir", "memories": ["n3"] }),
        ] {
            assert_eq!(Order::from_json(&other), None, "{other}");
        }
    }
}
