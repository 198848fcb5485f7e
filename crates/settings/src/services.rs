//! Services that may call us, and the tokens by which they prove it.

use contract::env::keys;
use secrecy::{ExposeSecret, SecretString};

use crate::env::{Env, Noted};
use crate::secret::is_same_secret;

/// The service callers and their tokens; a name may have two while one is replaced.
#[derive(Clone, Debug)]
pub struct Services(Vec<(String, SecretString)>);

impl Services {
    /// Reads the settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let token = env.secret(&keys::SERVICE_TOKEN);
        let tokens = env.secret_list(&keys::SERVICE_TOKENS);
        Ok(Self::new(token?, tokens?))
    }

    /// The caller `default`, and further ones.
    pub fn new(default: SecretString, further: Vec<(String, SecretString)>) -> Self {
        Self([vec![("default".to_owned(), default)], further].concat())
    }

    /// Whose token it is. All tokens are compared, whatever the first comparison says.
    pub fn name_of(&self, token: &[u8]) -> Option<&str> {
        let mut found = None;
        for (name, secret) in &self.0 {
            if is_same_secret(token, secret.expose_secret().as_bytes()) {
                found = Some(name.as_str());
            }
        }
        found
    }
}
