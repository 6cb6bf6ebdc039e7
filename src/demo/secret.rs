//! Random passwords, tokens and transaction ids of the demo.

use uuid::Uuid;

/// 32 random bytes.
#[expect(
    clippy::disallowed_methods,
    reason = "the demo is a user and an operator of its own, outside the bridge"
)]
pub fn bytes() -> [u8; 32] {
    let halves = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()];
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&halves[0]);
    bytes[16..].copy_from_slice(&halves[1]);
    bytes
}

/// 64 random hexadecimal digits.
pub fn token() -> String {
    bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A short name that stands for a folder, the same each time; no secret.
pub fn name_of(folder: &std::path::Path) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, folder.as_os_str().as_encoded_bytes()).simple().to_string()
}
