//! What cannot be guessed: bytes from the kernel.

use std::io::Read;

use super::CliError;

/// 32 bytes that nobody can guess.
pub(super) fn bytes() -> Result<[u8; 32], CliError> {
    let path = "/dev/urandom";
    let mut bytes = [0; 32];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|source| CliError::Io { path: path.into(), source })?;
    Ok(bytes)
}

/// The same in hex.
pub(super) fn token() -> Result<String, CliError> {
    Ok(bytes()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn tokens_are_long_and_differ() {
        let (one, two) = (super::token().expect("token"), super::token().expect("token"));
        assert_eq!(one.len(), 64);
        assert_ne!(one, two);
    }
}
