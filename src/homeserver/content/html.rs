//! Markdown as HTML of the spec's tags and schemes, with the room's members as pills.

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{
    CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream, html::push_html,
};
use ruma::html::{Html, SanitizerConfig};
use ruma::matrix_uri::MatrixId;
use ruma::{MatrixToUri, OwnedUserId, UserId};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

/// The markdown that is understood. Footnotes are read only so that they are not taken for links.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_FOOTNOTES);

/// The schemes that a link may have.
const SCHEMES: [&str; 5] = ["https:", "http:", "ftp:", "mailto:", "magnet:"];

/// The deepest nesting that is kept; the spec allows clients 100.
const DEPTH_MAX: usize = 40;

/// The most graphemes and bytes of a name in a pill.
const NAME_MAX: (usize, usize) = (64, 256);

type Members = BTreeMap<OwnedUserId, Option<String>>;

/// Markdown as rendered.
#[derive(Debug)]
pub(super) struct Words<'m> {
    /// The HTML, where it says more than the plain text.
    pub(super) html: Option<String>,
    /// The members named, each once, in order.
    pub(super) mentions: Vec<&'m UserId>,
}

/// Renders markdown.
pub(super) fn render<'m>(markdown: &str, members: &'m Members) -> Words<'m> {
    let events: Vec<_> = TextMergeStream::new(Parser::new_ext(markdown, OPTIONS)).collect();
    let is_plain = is_plain(markdown, &events);
    let mut weaver = Weaver::new(members);
    for event in events {
        weaver.take(event);
    }
    let Weaver { out, mentions, .. } = weaver;
    if is_plain && mentions.is_empty() {
        return Words { html: None, mentions };
    }
    let mut html = String::with_capacity(markdown.len() * 2);
    push_html(&mut html, out.into_iter());
    let html = sanitised(&html);
    Words { html: (!html.is_empty()).then_some(html), mentions }
}

/// The members that a content mentions, with the names its pills show.
pub(super) fn mentioned(content: &Value) -> Members {
    let users = content.get("m.mentions").and_then(|m| m.get("user_ids")).and_then(Value::as_array);
    let html = content.get("formatted_body").and_then(Value::as_str).unwrap_or_default();
    let users = users.into_iter().flatten().filter_map(|user| UserId::parse(user.as_str()?).ok());
    users
        .map(|user| {
            let name = pill_name(html, &user);
            (user, name)
        })
        .collect()
}

fn pill_name(html: &str, user: &UserId) -> Option<String> {
    let (_, rest) = html.split_once(&format!("<a href=\"{}\">", user.matrix_to_uri()))?;
    let (name, _) = rest.split_once("</a>")?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&nbsp;", "\u{a0}"), ("&amp;", "&")];
    Some(entities.iter().fold(name.to_owned(), |name, (entity, text)| name.replace(entity, text)))
}

/// Whether the text reads the same without being rendered: nothing but paragraphs whose every sign is shown.
fn is_plain(markdown: &str, events: &[Event<'_>]) -> bool {
    let mut signs = markdown.chars().filter(|c| !c.is_whitespace());
    let mut shows = |text: &str| text.chars().filter(|c| !c.is_whitespace()).all(|c| signs.next() == Some(c));
    let all_shown = events.iter().all(|event| {
        if let Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) = event {
            return shows(text) && !is_break_tag(event);
        }
        matches!(
            event,
            Event::Start(Tag::Paragraph | Tag::HtmlBlock)
                | Event::End(TagEnd::Paragraph | TagEnd::HtmlBlock)
                | Event::SoftBreak
                | Event::HardBreak
        )
    });
    all_shown && signs.next().is_none()
}

/// A line break is the one raw tag that is understood.
fn is_break_tag(event: &Event<'_>) -> bool {
    let (Event::Html(html) | Event::InlineHtml(html)) = event else { return false };
    matches!(html.trim(), "<br>" | "<br/>" | "<br />")
}

fn sanitised(html: &str) -> String {
    let html = Html::parse(html);
    html.sanitize_with(&SanitizerConfig::strict());
    let html = html.to_string();
    let html = html.trim();
    let lone = html.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    lone.filter(|inner| !inner.contains("<p>")).unwrap_or(html).to_owned()
}

/// Turns parsed markdown into what may be sent.
struct Weaver<'e, 'm> {
    members: &'m Members,
    out: Vec<Event<'e>>,
    /// The tags that are open, and whether each was kept.
    open: Vec<bool>,
    in_code: bool,
    /// The target of the link that is open.
    link: Option<CowStr<'e>>,
    mentions: Vec<&'m UserId>,
}

impl<'e, 'm> Weaver<'e, 'm> {
    fn new(members: &'m Members) -> Self {
        Self { members, out: Vec::new(), open: Vec::new(), in_code: false, link: None, mentions: Vec::new() }
    }

    fn take(&mut self, event: Event<'e>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) if self.in_code || self.link.is_some() => self.out.push(Event::Text(text)),
            Event::Text(text) => self.text(text),
            Event::Html(_) | Event::InlineHtml(_) if is_break_tag(&event) => self.out.push(Event::HardBreak),
            Event::Html(html) | Event::InlineHtml(html) => self.raw_html(&html),
            Event::FootnoteReference(name) => self.out.push(Event::Text(format!("[^{name}]").into())),
            Event::SoftBreak | Event::HardBreak => self.out.push(Event::HardBreak),
            Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Rule
            | Event::TaskListMarker(_) => self.out.push(event),
        }
    }

    fn start(&mut self, tag: Tag<'e>) {
        self.in_code |= matches!(tag, Tag::CodeBlock(_));
        let kept = self.rewritten(tag).filter(|_| self.open.len() < DEPTH_MAX);
        self.open.push(kept.is_some());
        self.out.extend(kept.map(Event::Start));
    }

    fn rewritten(&mut self, tag: Tag<'e>) -> Option<Tag<'e>> {
        if let Tag::Link { link_type, dest_url, .. } = tag {
            return self.start_link(link_type, dest_url);
        }
        if let Tag::Image { dest_url, .. } = tag {
            return self.start_link(LinkType::Inline, dest_url);
        }
        if let Tag::FootnoteDefinition(name) = tag {
            let label = Event::Text(format!("[^{name}]:").into());
            self.out.extend([Event::Start(Tag::Paragraph), label, Event::End(TagEnd::Paragraph)]);
            return None;
        }
        Some(if tag == Tag::HtmlBlock { Tag::Paragraph } else { tag })
    }

    fn end(&mut self, end: TagEnd) {
        self.in_code &= end != TagEnd::CodeBlock;
        if !self.open.pop().unwrap_or_default() {
            return;
        }
        let is_link = matches!(end, TagEnd::Link | TagEnd::Image);
        if is_link && matches!(self.out.last(), Some(Event::Start(Tag::Link { .. }))) {
            self.out.extend(self.link.take().map(Event::Text));
        }
        if is_link {
            self.link = None;
        }
        if end == TagEnd::HtmlBlock {
            self.out.pop_if(|last| *last == Event::HardBreak);
        }
        let is_block = end == TagEnd::HtmlBlock;
        self.out.push(Event::End(if is_link {
            TagEnd::Link
        } else if is_block {
            TagEnd::Paragraph
        } else {
            end
        }));
    }

    /// A link of an allowed scheme, unless it stands within another or too deep.
    fn start_link(&mut self, link_type: LinkType, target: CowStr<'e>) -> Option<Tag<'e>> {
        let allowed = link_type == LinkType::Email || SCHEMES.iter().any(|scheme| target.starts_with(scheme));
        if !allowed || self.link.is_some() || self.open.len() >= DEPTH_MAX {
            return None;
        }
        if let Some((user, _)) = linked_user(&target).and_then(|user| self.members.get_key_value(&user)) {
            self.mention(user);
        }
        self.link = Some(target.clone());
        Some(Tag::Link { link_type, dest_url: target, title: CowStr::Borrowed(""), id: CowStr::Borrowed("") })
    }

    /// Raw HTML is shown as it was written.
    fn raw_html(&mut self, html: &str) {
        for line in html.split_inclusive('\n') {
            self.out.push(Event::Text(line.trim_end_matches('\n').to_owned().into()));
            if line.ends_with('\n') {
                self.out.push(Event::HardBreak);
            }
        }
    }

    fn text(&mut self, text: CowStr<'e>) {
        let found = members_in(&text, self.members);
        if found.is_empty() {
            return self.out.push(Event::Text(text));
        }
        let mut from = 0;
        for (range, user, name) in found {
            self.out.push(Event::Text(text[from..range.start].to_owned().into()));
            from = range.end;
            self.mention(user);
            self.out.extend(pill(user, name));
        }
        self.out.push(Event::Text(text[from..].to_owned().into()));
    }

    fn mention(&mut self, user: &'m UserId) {
        if !self.mentions.contains(&user) {
            self.mentions.push(user);
        }
    }
}

/// The user that a matrix.to link stands for.
fn linked_user(target: &str) -> Option<OwnedUserId> {
    let link = MatrixToUri::parse(target).ok()?;
    if let MatrixId::User(user) = link.id() { Some(user.clone()) } else { None }
}

fn pill<'e>(user: &UserId, name: Option<&str>) -> [Event<'e>; 3] {
    let (graphemes, bytes) = NAME_MAX;
    let name = name.unwrap_or_default().replace(char::is_control, "");
    let name: String = name.trim().graphemes(true).take(graphemes).collect();
    let name = &name[..name.floor_char_boundary(bytes)];
    let shown = if name.is_empty() { user.as_str() } else { name };
    let link = Tag::Link {
        link_type: LinkType::Inline,
        dest_url: user.matrix_to_uri().to_string().into(),
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    };
    [Event::Start(link), Event::Text(shown.to_owned().into()), Event::End(TagEnd::Link)]
}

/// The members whose ids stand in the text as words.
fn members_in<'m>(text: &str, members: &'m Members) -> Vec<(Range<usize>, &'m UserId, Option<&'m str>)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "_.-/:@#=+".contains(c)) {
            continue;
        }
        if let Some((user, name)) = member_at(&text[at..], members) {
            found.push((at..at + user.as_str().len(), user, name));
        }
    }
    found
}

/// The member with whose id the text begins, punctuation behind it aside.
fn member_at<'m>(text: &str, members: &'m Members) -> Option<(&'m UserId, Option<&'m str>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._=-/+:[]".contains(c);
    let len = text[1..].find(|c| !is_part(c)).map_or(text.len(), |len| 1 + len);
    let mut id = &text[..len];
    while id.len() > 1 {
        if let Some((user, name)) = <&UserId>::try_from(id).ok().and_then(|id| members.get_key_value(id)) {
            return Some((user, name.as_deref()));
        }
        id = id.strip_suffix(|c: char| !c.is_ascii_alphanumeric())?;
    }
    None
}
