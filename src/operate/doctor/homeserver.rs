//! The probes that ask the homeserver, in the order in which each needs the one before.

use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomAliasId, OwnedRoomId, OwnedUserId, RoomAliasId, UserId};

use super::diagnose::{Ping, ProbeAnswer};
use super::{Patient, date, ear, identity};
use crate::homeserver::client::{CallError, CallErrorKind, Client, CreateRoom, Identity, Mode, probe_mode};

/// The bot's device for probes; the bridge's own is another.
const DEVICE: &str = "DOCTOR";
/// The type of the events that the scratch room gets.
const PROBE: &str = "dev.persona_bridge.probe";

type Called<T> = Result<T, CallError>;

/// Asks the homeserver; stops at what makes all further questions pointless.
pub(super) async fn probe(
    patient: &Patient,
    ear: ear::Bound,
    note: &mut (dyn FnMut(ProbeAnswer) -> bool + Send),
) {
    let client = Client::new(
        patient.transport.clone(),
        patient.homeserver.clone(),
        patient.registration.as_token.clone(),
    );
    if !note(ProbeAnswer::Versions(patient.homeserver.to_string(), client.versions().await)) {
        return;
    }
    note(ProbeAnswer::Clock(clock(patient).await));
    let answer = registered_bot(&client, &patient.bot).await;
    if !note(ProbeAnswer::Bot(patient.bot.clone(), patient.server_name.clone(), answer)) {
        return;
    }
    for user in &patient.personas {
        note(ProbeAnswer::Persona(user.clone(), whoami(&client, user).await));
    }
    note(ping(patient, &client, ear).await);
    let mode = probe_mode(&client, &patient.bot, DEVICE).await;
    let known = mode.as_ref().ok().copied();
    note(ProbeAnswer::Device(mode));
    if let Some(mode) = known {
        note(ProbeAnswer::Twice(twice(patient, &client, mode).await));
    }
}

/// whoami as the bot, which is registered if it never was: Conduit knows it only then.
async fn registered_bot(client: &Client, bot: &UserId) -> Called<OwnedUserId> {
    match whoami(client, bot).await {
        Err(error) if identity::unregistered(&error) => {
            client.register(bot.localpart()).await?;
            whoami(client, bot).await
        }
        answer => answer,
    }
}

async fn whoami(client: &Client, user: &UserId) -> Called<OwnedUserId> {
    client.whoami(&masquerade(user, None)).await.map(|(user, _)| user)
}

fn masquerade(user: &UserId, device: Option<&str>) -> Identity {
    Identity { user: user.to_owned(), device: device.map(str::to_owned), token: None }
}

/// The pauses between pings whose connection failed: a homeserver fails once on each connection that it had open to a
/// bridge that is gone, and a busy one notices late.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

async fn ping(patient: &Patient, client: &Client, ear: ear::Bound) -> ProbeAnswer {
    let ask = || client.ping(&patient.registration.id, patient.request.as_str());
    let call = async {
        let mut answer = ask().await;
        for pause in PAUSES {
            if !answer.as_ref().is_err_and(|error| error.errcode == "M_CONNECTION_FAILED") {
                break;
            }
            tokio::time::sleep(pause).await;
            answer = ask().await;
        }
        answer
    };
    let (ear, answer) = ear.during(patient.registration.hs_token.clone(), call).await;
    let url = patient.registration.url.clone().unwrap_or_else(|| "(no url)".into());
    ProbeAnswer::Ping(Ping { url, listen: patient.listen, ear, answer })
}

/// How far the homeserver's clock is ahead, by the `Date` of an answer.
async fn clock(patient: &Patient) -> Option<i64> {
    let url = format!("{}/_matrix/client/versions", patient.homeserver.as_str().trim_end_matches('/'));
    let request = http::Request::get(url).body(Vec::new()).ok()?;
    let answer = patient.transport.call(request).await.ok()?;
    let date = date::parse(answer.headers().get(http::header::DATE)?.to_str().ok()?)?;
    Some(date - i64::try_from(patient.now.0 / 1_000).ok()?)
}

async fn twice(patient: &Patient, client: &Client, mode: Mode) -> Called<(OwnedEventId, OwnedEventId)> {
    let mut bot = masquerade(&patient.bot, Some(DEVICE));
    if mode == Mode::Token {
        bot.token = Some(client.login(&patient.bot, DEVICE).await?);
    }
    let room = scratch_room(patient, client, &bot).await?;
    let body = "{}";
    let first = client.send(&bot, &room, PROBE, &patient.request, body).await?;
    let second = client.send(&bot, &room, PROBE, &patient.request, body).await?;
    Ok((first, second))
}

/// The scratch room, made once and kept.
async fn scratch_room(patient: &Patient, client: &Client, bot: &Identity) -> Called<OwnedRoomId> {
    let localpart = format!("{}doctor-scratch", patient.user_prefix);
    let room = CreateRoom {
        alias_localpart: Some(localpart.clone()),
        name: Some("persona-bridge doctor".into()),
        ..CreateRoom::default()
    };
    match client.create_room(bot, room).await {
        Err(error) if error.kind == CallErrorKind::Already => {}
        made => return made,
    }
    let alias: OwnedRoomAliasId = RoomAliasId::parse(format!("#{localpart}:{}", patient.server_name))
        .map_err(|_| CallError {
            call: "resolve",
            kind: CallErrorKind::Refused,
            status: 0,
            errcode: String::new(),
            message: "the scratch room's alias is too long".into(),
        })?;
    client.resolve(&alias).await
}
