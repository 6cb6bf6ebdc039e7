//! Conduit: configured by its environment alone, and told of appservices by a message in its admin room.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{HomeserverError, Place, write_private};
use crate::demo::child::Launch;
use crate::demo::matrix::{CallFault, Matrix, text};
use crate::demo::secret;

const ADMIN: &str = "server-admin";
const ADMIN_TOKEN: &str = "admin-token";
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// Makes Conduit's folder and says how it is launched.
pub(super) fn prepare(program: &Path, place: &Place) -> Result<Launch, HomeserverError> {
    let database = place.dir.join("database");
    std::fs::create_dir_all(&database).map_err(HomeserverError::io(&database))?;
    let env = [
        ("CONDUIT_CONFIG", String::new()),
        ("CONDUIT_SERVER_NAME", place.server_name.clone()),
        ("CONDUIT_ADDRESS", "127.0.0.1".to_owned()),
        ("CONDUIT_PORT", place.port.to_string()),
        ("CONDUIT_DATABASE_BACKEND", "sqlite".to_owned()),
        ("CONDUIT_DATABASE_PATH", database.to_string_lossy().into_owned()),
        ("CONDUIT_ALLOW_REGISTRATION", "true".to_owned()),
        ("CONDUIT_ALLOW_FEDERATION", "false".to_owned()),
        ("CONDUIT_ALLOW_CHECK_FOR_UPDATES", "false".to_owned()),
        // Else display names of ghosts end in a lightning bolt.
        ("CONDUIT_ENABLE_LIGHTNING_BOLT", "false".to_owned()),
        ("CONDUIT_TRUSTED_SERVERS", "[]".to_owned()),
    ];
    Ok(Launch::new(program, &place.dir, &place.dir.join("homeserver.log")).only_env(env))
}

/// The first user of a Conduit becomes its admin: that is one of ours, whose token stays in the folder.
pub(super) async fn ensure_admin(matrix: &Matrix, place: &Place) -> Result<(), HomeserverError> {
    let file = place.dir.join(ADMIN_TOKEN);
    if file.exists() {
        return Ok(());
    }
    let login = matrix.register(ADMIN, &secret::token()).await?;
    write_private(&file, &login.access_token)
}

/// Registers an appservice, or replaces the one with the same id, through the admin room.
pub(super) async fn register(matrix: &Matrix, place: &Place, yaml: &str) -> Result<(), HomeserverError> {
    let file = place.dir.join(ADMIN_TOKEN);
    let token = std::fs::read_to_string(&file).map_err(HomeserverError::io(&file))?;
    let admin = matrix.with_token(&token);
    let server = &place.server_name;
    let alias = format!("#admins:{server}");
    let room = text(&admin.get(&["v3", "directory", "room", &alias], &[]).await?, "room_id")?;
    let command = format!("@conduit:{server}: register-appservice\n```\n{}\n```", yaml.trim_end());
    let asked = admin.say(&room, &secret::token(), &command).await?;
    let server_user = format!("@conduit:{server}");
    let answer =
        tokio::time::timeout(ANSWER_DEADLINE, answer_after(&admin, &room, &asked, &server_user)).await;
    match answer {
        Ok(Ok(answer)) if answer.starts_with("Appservice registered") => Ok(()),
        Ok(Ok(answer)) => Err(HomeserverError::Refused(answer)),
        Ok(Err(fault)) => Err(fault.into()),
        Err(_) => Err(HomeserverError::Refused("it did not answer in its admin room".to_owned())),
    }
}

/// The first words of `sender` after the event `asked`.
async fn answer_after(admin: &Matrix, room: &str, asked: &str, sender: &str) -> Result<String, CallFault> {
    loop {
        let query = [("dir", "b"), ("limit", "20")];
        let page = admin.get(&["v3", "rooms", room, "messages"], &query).await?;
        let newer = page["chunk"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let newer: Vec<&Value> = newer.take_while(|event| event["event_id"] != asked).collect();
        let said =
            newer.iter().rev().find(|event| event["sender"] == sender && event["type"] == "m.room.message");
        if let Some(event) = said {
            return text(&event["content"], "body");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_environment_binds_loopback_and_keeps_names_plain() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            dir: dir.path().join("hs"),
            server_name: "hs.test".to_owned(),
            port: 20_321,
            guard: None,
        };
        let launch = prepare(Path::new("conduit"), &place).unwrap();
        let value = |key: &str| {
            let found = launch.env.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        assert_eq!(value("CONDUIT_ADDRESS").as_deref(), Some("127.0.0.1"));
        assert_eq!(value("CONDUIT_PORT").as_deref(), Some("20321"));
        assert_eq!(value("CONDUIT_ENABLE_LIGHTNING_BOLT").as_deref(), Some("false"));
        assert_eq!(launch.environment, crate::demo::child::Environment::Cleared);
    }
}
