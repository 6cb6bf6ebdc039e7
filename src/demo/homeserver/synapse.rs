//! Synapse's folder: its configuration (JSON, which is YAML), signing key and log format.

use std::path::Path;

use ruma::serde::{Base64, base64::Standard};
use serde_json::{Value, json};

use super::{HomeserverError, Place, loopback, write_private};
use crate::demo::child::Launch;
use crate::demo::secret;

const REGISTRATION: &str = "registration.yaml";

/// Writes what Synapse reads, keeping an earlier key and registration, and says how it is launched.
pub(super) fn prepare(
    python: &Path,
    place: &Place,
    registration: Option<&str>,
) -> Result<Launch, HomeserverError> {
    let dir = &place.dir;
    std::fs::create_dir_all(dir).map_err(HomeserverError::io(dir))?;
    if let Some(yaml) = registration {
        write_registration(place, yaml)?;
    }
    let key = dir.join("signing.key");
    if !key.exists() {
        let seed = Base64::<Standard, _>::new(secret::bytes());
        write_private(&key, &format!("ed25519 a_demo {}\n", seed.encode()))?;
    }
    write_private(&dir.join("log.yaml"), &log_config().to_string())?;
    let config = dir.join("homeserver.yaml");
    write_private(&config, &format!("{:#}\n", homeserver_config(place)))?;
    let launch = Launch::new(python, dir, &dir.join("homeserver.log"));
    Ok(launch.args(["-m", "synapse.app.homeserver", "-c"]).args([&config]))
}

/// Puts a registration where Synapse looks for it at its next start.
pub(super) fn write_registration(place: &Place, yaml: &str) -> Result<(), HomeserverError> {
    write_private(&place.dir.join(REGISTRATION), yaml)?;
    let config = place.dir.join("homeserver.yaml");
    write_private(&config, &format!("{:#}\n", homeserver_config(place)))
}

fn homeserver_config(place: &Place) -> Value {
    let file = |name: &str| json!(place.dir.join(name));
    let registrations: Vec<Value> =
        place.dir.join(REGISTRATION).exists().then(|| file(REGISTRATION)).into_iter().collect();
    let mut config = json!({
        "server_name": place.server_name,
        "public_baseurl": loopback(place.port),
        "listeners": [{
            "port": place.port,
            "bind_addresses": ["127.0.0.1"],
            "type": "http",
            "tls": false,
            "x_forwarded": false,
            "resources": [{"names": ["client"], "compress": false}],
        }],
        "database": {"name": "sqlite3", "args": {"database": file("homeserver.db")}},
        "log_config": file("log.yaml"),
        "media_store_path": file("media"),
        "signing_key_path": file("signing.key"),
        // Nobody beside this machine reaches the server, and nothing of it is worth forging.
        "registration_shared_secret": "local",
        "macaroon_secret_key": "local",
        "form_secret": "local",
        "report_stats": false,
        "trusted_key_servers": [],
        "suppress_key_server_warning": true,
        "enable_registration": true,
        "enable_registration_without_verification": true,
        "bcrypt_rounds": 4,
        "presence": {"enabled": false},
        "app_service_config_files": registrations,
    });
    lift_limits(&mut config);
    config
}

fn lift_limits(config: &mut Value) {
    let high = json!({"per_second": 100_000, "burst_count": 100_000});
    let plain = [
        "rc_message",
        "rc_registration",
        "rc_room_creation",
        "rc_joins_per_room",
        "rc_admin_redaction",
        "rc_media_create",
        "rc_profile",
        "rc_user_directory",
        "rc_reports",
    ];
    for key in plain {
        config[key] = high.clone();
    }
    let nested: [(&str, &[&str]); 4] = [
        ("rc_login", &["address", "account", "failed_attempts"]),
        ("rc_joins", &["local", "remote"]),
        ("rc_invites", &["per_room", "per_user", "per_issuer"]),
        ("rc_presence", &["per_user"]),
    ];
    for (key, parts) in nested {
        for part in parts {
            config[key][*part] = high.clone();
        }
    }
}

fn log_config() -> Value {
    json!({
        "version": 1,
        "disable_existing_loggers": false,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": "WARNING", "handlers": ["console"]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place {
        Place { dir: dir.join("hs"), server_name: "hs.test".to_owned(), port: 20_123, guard: None }
    }

    fn read(dir: &Path, name: &str) -> String {
        std::fs::read_to_string(dir.join("hs").join(name)).unwrap()
    }

    #[test]
    fn it_listens_on_loopback_only_and_knows_the_registration() {
        let dir = tempfile::tempdir().unwrap();
        prepare(Path::new("python"), &place(dir.path()), Some("id: x\n")).unwrap();
        let config: Value = serde_json::from_str(&read(dir.path(), "homeserver.yaml")).unwrap();
        assert_eq!(config["listeners"][0]["bind_addresses"], json!(["127.0.0.1"]));
        assert_eq!(config["listeners"].as_array().unwrap().len(), 1);
        assert_eq!(config["app_service_config_files"][0], json!(dir.path().join("hs/registration.yaml")));
        assert_eq!(read(dir.path(), "registration.yaml"), "id: x\n");
    }

    #[test]
    fn a_second_start_keeps_key_and_registration() {
        let dir = tempfile::tempdir().unwrap();
        prepare(Path::new("python"), &place(dir.path()), Some("id: x\n")).unwrap();
        let key = read(dir.path(), "signing.key");
        prepare(Path::new("python"), &place(dir.path()), None).unwrap();
        assert_eq!(read(dir.path(), "signing.key"), key);
        assert!(read(dir.path(), "homeserver.yaml").contains("registration.yaml"));
    }

    #[test]
    fn without_a_registration_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        prepare(Path::new("python"), &place(dir.path()), None).unwrap();
        assert!(!read(dir.path(), "homeserver.yaml").contains("registration.yaml"));
    }
}
