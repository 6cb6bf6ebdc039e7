//! Open campaigns.

use super::record::{self, CampaignForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Result, Store};
use crate::conversation::{Campaign, Slug};

impl Store {
    /// The open campaigns, by slug.
    pub fn campaigns(&self) -> Result<Vec<Campaign>> {
        self.read(|view| open(view))
    }
    /// Opens a campaign, or gives an open one another title; answers whether that changed anything.
    pub async fn open_campaign(&self, campaign: Campaign) -> Result<bool> {
        self.write(move |tx| put(tx, &campaign)).await
    }
    /// Closes a campaign; answers whether it was open.
    pub async fn close_campaign(&self, slug: Slug) -> Result<bool> {
        self.write(move |tx| close(tx, &slug)).await
    }
}

/// The open campaigns, by slug.
pub(super) fn open<R: Read>(from: &R) -> Result<Vec<Campaign>> {
    let rows = from.records::<CampaignForm>(Table::Campaigns, &[])?.into_iter();
    rows.map(|(place, form)| {
        let slug = std::str::from_utf8(&place).ok().and_then(|slug| Slug::new(slug).ok());
        let campaign = slug.and_then(|slug| Campaign::new(slug, &form.title).ok());
        campaign.ok_or_else(|| record::corrupt(Table::Campaigns, &place, "not a campaign"))
    })
    .collect()
}

/// Opens a campaign, or gives an open one another title; answers whether that changed anything.
pub(super) fn put(tx: &mut Tx<'_>, campaign: &Campaign) -> Result<bool> {
    let place = campaign.slug().as_str().as_bytes();
    let before = tx.record::<CampaignForm>(Table::Campaigns, place)?;
    if before.is_some_and(|before| before.title == campaign.title()) {
        return Ok(false);
    }
    tx.put(Table::Campaigns, place, &CampaignForm { title: campaign.title().to_owned() })?;
    Ok(true)
}

/// Closes a campaign; answers whether it was open.
pub(super) fn close(tx: &mut Tx<'_>, slug: &Slug) -> Result<bool> {
    let place = slug.as_str().as_bytes();
    let was_open = tx.row(Table::Campaigns, place)?.is_some();
    if was_open {
        tx.remove(Table::Campaigns, place)?;
    }
    Ok(was_open)
}
