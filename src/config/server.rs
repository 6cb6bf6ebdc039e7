//! `[homeserver]`, `[appservice]` and `[store]`.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ruma::{OwnedServerName, ServerName};
use url::Url;

use super::file::File;
use super::reading::{Reading, is_placeholder};
use crate::store;

/// The longest time between two passes of reading back, without which what a homeserver lost would stay unheard.
const RECONCILE_MAX: Duration = Duration::from_secs(24 * 3600);

/// `[homeserver]`, read.
#[derive(Clone, Debug)]
pub struct Homeserver {
    /// Where its client API is.
    pub url: Url,
    /// Its name.
    pub server_name: OwnedServerName,
    /// How often every room is read back.
    pub reconcile: Duration,
}

/// `[appservice]`, read.
#[derive(Clone, Debug)]
pub struct Appservice {
    /// The address to bind.
    pub listen: SocketAddr,
    /// The url the homeserver calls.
    pub url: Url,
    /// The registration file.
    pub registration: PathBuf,
    /// The appservice's id, when generating.
    pub id: String,
    /// The bot's localpart, when generating.
    pub bot: String,
    /// The prefix of Personas' localparts and of aliases.
    pub user_prefix: String,
    /// Whether the homeserver is to tell who types.
    pub receive_ephemeral: bool,
}

pub(super) fn homeserver(file: &File, reading: &mut Reading<'_>) -> Option<Homeserver> {
    let section = &file.homeserver;
    let url = reading.required("homeserver.url", section.url.as_ref());
    let url = url.and_then(|text| http_url(reading, "homeserver.url", text));
    let name = reading.required("homeserver.server_name", section.server_name.as_ref());
    let name = name.and_then(|text| server_name(reading, text));
    let reconcile = section.reconcile.map_or(Duration::from_secs(300), |span| span.0);
    if !(Duration::from_secs(1)..=RECONCILE_MAX).contains(&reconcile) {
        reading.fail_as_example("homeserver.reconcile", "must lie between one second and one day");
        return None;
    }
    if let Some(url) = &url
        && url.scheme() == "http"
        && !is_local(url)
    {
        let cause = "tokens and words go over the network unencrypted";
        reading.warn("homeserver.url", cause, "use https, or run the bridge on the homeserver's machine");
    }
    Some(Homeserver { url: url?, server_name: name?, reconcile })
}

fn server_name(reading: &mut Reading<'_>, text: &str) -> Option<OwnedServerName> {
    const KEY: &str = "homeserver.server_name";
    if is_placeholder(text) {
        reading.fail(KEY, "is the example's placeholder", "write your homeserver's name, as in @you:NAME");
        return None;
    }
    match ServerName::parse(text) {
        Ok(name) => Some(name),
        Err(_) => {
            let cause = format!("`{text}` is not a server name");
            reading.fail(KEY, cause, "write the part of your user id after the colon, without https://");
            None
        }
    }
}

pub(super) fn appservice(file: &File, reading: &mut Reading<'_>) -> Option<Appservice> {
    let section = &file.appservice;
    let listen = listen(reading, section.listen.as_deref().unwrap_or("127.0.0.1:29600"));
    let url = match (&section.url, listen) {
        (Some(text), _) => http_url(reading, "appservice.url", text),
        (None, Some(listen)) => Url::parse(&format!("http://{listen}")).ok(),
        (None, None) => None,
    };
    let registration = section.registration.clone().unwrap_or_else(|| "registration.yaml".into());
    let id = section.id.clone().unwrap_or_else(|| "persona-bridge".into());
    if id.is_empty() || id.contains(['|', '/', ' ']) {
        reading.fail("appservice.id", "is empty or holds |, / or a blank", "write a plain word");
        return None;
    }
    let bot = localpart(reading, "appservice.bot", section.bot.as_deref().unwrap_or("persona-bridge"));
    let prefix = section.user_prefix.as_deref().unwrap_or("persona_");
    let prefix = localpart(reading, "appservice.user_prefix", prefix);
    if let (Some(bot), Some(prefix)) = (&bot, &prefix)
        && bot.starts_with(prefix.as_str())
    {
        let cause = format!("`{bot}` is among the Personas' own names");
        let remedy = format!("let it not begin with user_prefix, `{prefix}`");
        reading.fail("appservice.bot", cause, remedy);
    }
    Some(Appservice {
        listen: listen?,
        url: url?,
        registration: reading.path(&registration),
        receive_ephemeral: file.talk.typing_waits.unwrap_or(false),
        id,
        bot: bot?,
        user_prefix: prefix?,
    })
}

fn listen(reading: &mut Reading<'_>, text: &str) -> Option<SocketAddr> {
    const KEY: &str = "appservice.listen";
    let Some(listen) = text.parse::<SocketAddr>().ok().filter(|listen| listen.port() != 0) else {
        reading.fail_as_example(KEY, format!("`{text}` is not an address with a port"));
        return None;
    };
    if !listen.ip().is_loopback() {
        let cause = format!("{} can be reached from other machines", listen.ip());
        reading.warn(KEY, cause, "bind 127.0.0.1 and put a proxy before it, unless you mean it");
    }
    Some(listen)
}

fn localpart(reading: &mut Reading<'_>, key: &str, text: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._=-/+".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        let cause = format!("`{text}` cannot stand in a user id");
        reading.fail(key, cause, "use a-z, 0-9 and . _ = - / + only, without @ and server");
        return None;
    }
    Some(text.to_owned())
}

/// A URL that HTTP can be spoken to.
pub(super) fn http_url(reading: &mut Reading<'_>, key: &str, text: &str) -> Option<Url> {
    let cause = match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => format!("`{text}` is not http or https"),
        Ok(url) if url.host_str().is_some_and(is_placeholder) => "is the example's placeholder".into(),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "holds a user or password".to_owned()
        }
        Ok(url) => return Some(url),
        Err(error) => format!("`{text}` is not a URL ({error})"),
    };
    let remedy = match key {
        "homeserver.url" => "write where the homeserver's client API is, like http://127.0.0.1:8008",
        "appservice.url" => "write where the homeserver finds the bridge, like http://127.0.0.1:29600",
        _ => "write it like http://127.0.0.1:8080",
    };
    reading.fail(key, cause, remedy);
    None
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

pub(super) fn store(file: &File, reading: &mut Reading<'_>) -> store::Config {
    let path = file.store.path.clone().unwrap_or_else(|| "store".into());
    if path.as_os_str().is_empty() {
        reading.fail_as_example("store.path", "is empty");
    }
    let path = reading.path(&path);
    if let Some(file) = in_the_way(&path) {
        let cause = format!("{} is no folder", file.display());
        reading.fail("store.path", cause, "name a folder, which may be a new one");
    }
    let min_free = file.store.min_free.map_or(256 << 20, |size| size.0);
    store::Config { path, min_free }
}

/// What stands where a folder would have to be.
fn in_the_way(path: &Path) -> Option<&Path> {
    for folder in path.ancestors() {
        match std::fs::metadata(folder) {
            Ok(meta) => return (!meta.is_dir()).then_some(folder),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // Who may not look does not know; opening the store will tell.
            Err(_) => return None,
        }
    }
    None
}
