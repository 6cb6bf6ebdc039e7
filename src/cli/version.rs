//! `--version-json`.

/// The version, and the claude it was measured on, as one line of JSON.
pub(super) fn json() -> String {
    let version = serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "claude": crate::mind::claude::PINNED_VERSION,
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
    });
    format!("{version}\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_names_the_version_of_the_package() {
        let json: serde_json::Value = serde_json::from_str(&super::json()).expect("JSON");
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(json["claude"], "2.1.332");
    }
}
