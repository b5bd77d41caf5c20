//! Encryption of MariaDB's files by its plug-in file_key_management: tables, temporary tables and the redo log.
//!
//! The keys are derived from the password of the server's account, which is random, so that kept data can be read by a later
//! server with the password kept beside it. The encryption is there to be measured: anyone who can read the data directory
//! can also read the keys beside it.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Values of `database.encryption`.
pub const CIPHERS: &[&str] = &["aes128", "aes256"];
/// The files with the keys, in the server's private directory.
const FILES: [(&str, &str, usize); 2] = [("aes128", "keys-aes128", 16), ("aes256", "keys-aes256", 32)];

/// Returns a key file for each cipher. The plug-in derives the cipher from the key's length; the server uses key 1 for everything
/// that names no other key, including its log.
pub fn files(password: &str) -> Vec<(&'static str, String)> {
    let key = |cipher: &str, bytes: usize| -> String {
        let digest = Sha256::digest(format!("loadline {cipher} {password}").as_bytes());
        digest[..bytes].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    FILES.iter().map(|(cipher, file, bytes)| (*file, format!("1;{}\n", key(cipher, *bytes)))).collect()
}

/// Returns the server's options for a cipher.
pub fn options(cipher: &str, directory: &Path) -> Vec<String> {
    let file = FILES.iter().find(|(name, _, _)| *name == cipher).map_or(FILES[0].1, |(_, file, _)| file);
    let keys = directory.join(file);
    [
        "--plugin-load-add=file_key_management".to_owned(),
        format!("--file-key-management-filename={}", keys.display()),
        "--file-key-management-encryption-algorithm=AES_CBC".to_owned(),
        "--innodb-encrypt-tables=ON".to_owned(),
        "--innodb-encrypt-log=ON".to_owned(),
        "--innodb-encrypt-temporary-tables=ON".to_owned(),
        "--encrypt-tmp-files=ON".to_owned(),
        "--aria-encrypt-tables=ON".to_owned(),
        // The tablespace of the data dictionary was made before encryption: a thread encrypts it.
        "--innodb-encryption-threads=1".to_owned(),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_the_password_alone_and_have_the_length_of_their_cipher() {
        let written = files("secret");
        let lengths: Vec<usize> = written.iter().map(|(_, text)| text.trim_start_matches("1;").trim().len()).collect();
        assert_eq!(lengths, [32, 64]);
        assert_eq!(written, files("secret"));
        assert_ne!(written, files("other"));
        assert!(written.iter().all(|(_, text)| !text.contains("secret")));
    }

    #[test]
    fn the_cipher_chooses_the_file() {
        for cipher in CIPHERS {
            let expected = format!("--file-key-management-filename=/d/keys-{cipher}");
            assert!(options(cipher, Path::new("/d")).contains(&expected), "{cipher}");
        }
    }
}
