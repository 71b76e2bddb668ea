//! Where secrets come from: files, the environment, a key service.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

use async_trait::async_trait;
use outbox_core::{Error, ErrorKind};
use zeroize::Zeroizing;

use crate::key_ring::{Key, KeyRing, SharedRing};

/// The text of a secret, with its name and the time in which it counts. Wiped when dropped.
#[derive(Clone)]
pub struct SecretText {
    name: String,
    text: Zeroizing<String>,
    not_before: Option<SystemTime>,
    not_after: Option<SystemTime>,
}

impl SecretText {
    /// A secret that counts always. The name appears in logs.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: Zeroizing::new(text.into()),
            not_before: None,
            not_after: None,
        }
    }

    /// As [`Key::not_before`].
    #[must_use]
    pub const fn not_before(mut self, at: SystemTime) -> Self {
        self.not_before = Some(at);
        self
    }

    /// As [`Key::not_after`].
    #[must_use]
    pub const fn not_after(mut self, at: SystemTime) -> Self {
        self.not_after = Some(at);
        self
    }

    fn parse<K: FromStr<Err = Error>>(&self) -> Result<Key<K>, Error> {
        let secret = self.text.parse().map_err(|source: Error| {
            Error::new(
                ErrorKind::InvalidConfig,
                format!("the secret named {:?} is refused", self.name),
            )
            .with_source(source)
        })?;
        let mut key = Key::new(self.name.as_str(), secret);
        if let Some(at) = self.not_before {
            key = key.not_before(at);
        }
        if let Some(at) = self.not_after {
            key = key.not_after(at);
        }
        Ok(key)
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        let same_text: bool = self.text.as_bytes().ct_eq(other.text.as_bytes()).into();
        let rest = |s: &Self| (s.not_before, s.not_after);
        same_text && self.name == other.name && rest(self) == rest(other)
    }
}

impl Eq for SecretText {}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretText({:?}, [redacted])", self.name)
    }
}

/// Hands out the secrets of one ring.
///
/// # Contract
///
/// All secrets that count now or will, the preferred (newest) first; at least one. Names are stable.
///
/// # Errors
///
/// Any: the ring stays as it is.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
#[async_trait]
pub trait SecretProvider: Send + Sync {
    /// The secrets.
    async fn secrets(&self) -> Result<Vec<SecretText>, Error>;
}

/// One secret in each environment variable, named like it, the newest first. Variables that are not
/// set or empty are left out, but one must be there.
#[derive(Debug, Clone)]
pub struct EnvSecrets(Vec<String>);

impl EnvSecrets {
    /// These variables, the newest secret first: `["WEBHOOK_SECRET", "WEBHOOK_SECRET_OLD"]`.
    pub fn new<S: Into<String>>(variables: impl IntoIterator<Item = S>) -> Self {
        Self(variables.into_iter().map(Into::into).collect())
    }
}

#[async_trait]
impl SecretProvider for EnvSecrets {
    async fn secrets(&self) -> Result<Vec<SecretText>, Error> {
        let mut secrets = Vec::new();
        for name in &self.0 {
            match std::env::var(name) {
                Ok(text) if !text.is_empty() => secrets.push(SecretText::new(name, text)),
                Ok(_) | Err(std::env::VarError::NotPresent) => {}
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(super::refused(format_args!("in {name} is no UTF-8 text")));
                }
            }
        }
        some(secrets, || {
            format!("none of the variables {:?} is set", self.0)
        })
    }
}

/// One secret in each file, named like it, the newest first; line ends after it are ignored. Files
/// that don't exist are left out, but one must be there.
#[derive(Debug, Clone)]
pub struct FileSecrets(Vec<PathBuf>);

impl FileSecrets {
    /// These files, the newest secret first.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(paths.into_iter().map(Into::into).collect())
    }

    fn read(&self) -> Result<Vec<SecretText>, Error> {
        let mut secrets = Vec::new();
        for path in &self.0 {
            let name = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy();
            match std::fs::read_to_string(path) {
                Ok(text) => {
                    let text = Zeroizing::new(text);
                    secrets.push(SecretText::new(name, text.trim_end_matches(['\r', '\n'])));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let message = format!("the secret file {name:?} can't be read");
                    return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
                }
            }
        }
        some(secrets, || "none of the secret files exists".to_owned())
    }
}

#[async_trait]
impl SecretProvider for FileSecrets {
    async fn secrets(&self) -> Result<Vec<SecretText>, Error> {
        let files = self.clone();
        tokio::task::spawn_blocking(move || files.read())
            .await
            .map_err(|source| {
                Error::new(ErrorKind::Other, "reading secrets failed").with_source(source)
            })?
    }
}

fn some(
    secrets: Vec<SecretText>,
    problem: impl FnOnce() -> String,
) -> Result<Vec<SecretText>, Error> {
    if secrets.is_empty() {
        return Err(Error::new(ErrorKind::InvalidConfig, problem()));
    }
    Ok(secrets)
}

impl<K: FromStr<Err = Error>> KeyRing<K> {
    /// Parses secrets into a ring.
    ///
    /// # Errors
    ///
    /// As the secret's type, naming the secret; and where there is none.
    pub fn parse(secrets: &[SecretText]) -> Result<Self, Error> {
        if secrets.is_empty() {
            return Err(Error::invalid_config(
                "secrets",
                "holds none; one is needed",
            ));
        }
        let keys: Result<Vec<_>, _> = secrets.iter().map(SecretText::parse).collect();
        keys.map(Self::new)
    }
}

impl<K: FromStr<Err = Error>> SharedRing<K> {
    /// A ring with what the provider hands out now.
    ///
    /// # Errors
    ///
    /// The provider's, or a secret that is refused.
    pub async fn load(provider: &dyn SecretProvider) -> Result<Self, Error> {
        let secrets = provider.secrets().await?;
        KeyRing::parse(&secrets).map(Into::into)
    }

    /// Loads the ring anew: the body of a rotation job. Every scheme that shares the ring goes on
    /// with the new one at its next delivery.
    ///
    /// # Errors
    ///
    /// The provider's, or a secret that is refused: the ring then stays as it was.
    pub async fn refresh(&self, provider: &dyn SecretProvider) -> Result<(), Error> {
        let secrets = provider.secrets().await?;
        self.replace(KeyRing::parse(&secrets)?);
        Ok(())
    }
}
