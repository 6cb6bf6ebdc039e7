//! Campaigns: what the operators are about for a while, told to every Persona.

use unicode_segmentation::UnicodeSegmentation;

/// The longest slug, in characters.
const SLUG: usize = 64;
/// The longest title, in characters as people count them, and in bytes.
const TITLE: (usize, usize) = (200, 1_600);

/// A campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    slug: Slug,
    title: String,
}

/// What a campaign is called by: small letters, digits and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slug(String);

/// Why something is no campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCampaign {
    /// The slug has another form.
    #[error("a slug is 1 to {SLUG} small letters (a-z), digits and hyphens, as autumn-fair")]
    Slug,
    /// The title is empty, too long, or more than a line.
    #[error("a title is one line of 1 to {} characters", TITLE.0)]
    Title,
}

impl Slug {
    /// Takes a text that has the form of a slug.
    ///
    /// # Errors
    /// It has not.
    pub fn new(text: &str) -> Result<Self, NoCampaign> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_slug = (1..=SLUG).contains(&text.len()) && text.chars().all(fits);
        is_slug.then(|| Self(text.to_owned())).ok_or(NoCampaign::Slug)
    }

    /// It, as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Slug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Campaign {
    /// A campaign of that title, without the white space around it.
    ///
    /// # Errors
    /// The title is no single line, or too long.
    pub fn new(slug: Slug, title: &str) -> Result<Self, NoCampaign> {
        let title = title.trim();
        let is_line =
            !title.is_empty() && !title.chars().any(|c| c.is_control() || c == '\u{2028}' || c == '\u{2029}');
        let fits = title.len() <= TITLE.1 && title.graphemes(true).count() <= TITLE.0;
        if is_line && fits { Ok(Self { slug, title: title.to_owned() }) } else { Err(NoCampaign::Title) }
    }

    /// What it is called by.
    pub fn slug(&self) -> &Slug {
        &self.slug
    }

    /// What it is.
    pub fn title(&self) -> &str {
        &self.title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_small_letters_digits_and_hyphens() {
        for text in ["a", "autumn-fair", "2026", &"x".repeat(64)] {
            assert_eq!(Slug::new(text).map(|slug| slug.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "Fair", "a b", "a_b", "ä", "a\n", &"x".repeat(65)] {
            assert_eq!(Slug::new(text), Err(NoCampaign::Slug), "{text:?}");
        }
    }

    #[test]
    fn a_title_is_one_line() {
        let title = |text: &str| Campaign::new(Slug("a".into()), text).map(|campaign| campaign.title);
        assert_eq!(title(" The autumn fair "), Ok("The autumn fair".to_owned()));
        assert_eq!(title(&"é".repeat(200)), Ok("é".repeat(200)));
        for text in ["", "  ", "a\nb", "a\u{2028}b", "a\u{1b}b", &"x".repeat(201)] {
            assert_eq!(title(text), Err(NoCampaign::Title), "{text:?}");
        }
    }
}
