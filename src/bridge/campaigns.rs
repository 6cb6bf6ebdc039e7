//! What operators say of campaigns.

use serde_json::{Value, json};

pub use crate::conversation::command::Campaigns;
use crate::conversation::{Campaign, Slug};
use crate::store::{Store, StoreError};

/// The most campaigns that are open at once: every Persona is told them with each session.
pub const MOST: usize = 50;

/// The names of the orders.
const OPEN: &str = "open-campaign";
const CLOSE: &str = "close-campaign";
const LIST: &str = "list-campaigns";
/// Where an order has the title: words of operators, for no log.
pub(super) const TITLE: &str = "title";

impl Campaigns {
    /// As an order.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Open(campaign) => {
                json!({ "order": OPEN, "slug": campaign.slug().as_str(), TITLE: campaign.title() })
            }
            Self::Close(slug) => json!({ "order": CLOSE, "slug": slug.as_str() }),
            Self::List => json!({ "order": LIST }),
        }
    }

    /// Reads what [`Campaigns::to_json`] made; none where it is something else.
    pub(crate) fn from_json(order: &str, json: &Value) -> Option<Self> {
        let slug = || Slug::new(json["slug"].as_str()?).ok();
        match order {
            OPEN => Campaign::new(slug()?, json[TITLE].as_str()?).ok().map(Self::Open),
            CLOSE => slug().map(Self::Close),
            LIST => Some(Self::List),
            _ => None,
        }
    }
}

/// Does what is asked; answers what follows, in words.
pub(crate) async fn carry_out(store: &Store, asked: &Campaigns) -> Result<String, StoreError> {
    Ok(match asked {
        Campaigns::Open(campaign) => {
            let open = store.campaigns()?;
            let is_known = open.iter().any(|known| known.slug() == campaign.slug());
            if !is_known && open.len() >= MOST {
                return Ok(format!("{MOST} campaigns are open already: close one first"));
            }
            let slug = campaign.slug();
            if store.open_campaign(campaign.clone()).await? {
                format!("the campaign {slug} is open; every Persona is told with her next mail")
            } else {
                format!("the campaign {slug} is open already")
            }
        }
        Campaigns::Close(slug) => {
            if store.close_campaign(slug.clone()).await? {
                format!("the campaign {slug} is closed; whoever was told of it is told so with her next mail")
            } else {
                format!("no campaign {slug} is open")
            }
        }
        Campaigns::List => {
            let open = store.campaigns()?;
            let lines: Vec<String> =
                open.iter().map(|campaign| format!("{}  {}", campaign.slug(), campaign.title())).collect();
            if lines.is_empty() { "no campaign is open".to_owned() } else { lines.join("\n") }
        }
    })
}
