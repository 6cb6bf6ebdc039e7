//! Campaigns.

use serde::{Deserialize, Serialize};

/// An open campaign.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct CampaignForm {
    pub(in crate::store) title: String,
}
