//! Where the signing keys are, and what a token has to say.

use contract::env::keys;
use settings::{Env, Noted};
use url::Url;

/// What makes a token one of our users'.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the signing keys are published.
    pub jwks_url: Url,
    /// The `iss` of every token.
    pub issuer: String,
    /// The `aud` of every token, or one of several.
    pub audience: String,
    /// The claim that holds the scope, as a path with dots.
    pub scope_claim: String,
}

impl Options {
    /// Reads the settings; none where no signing keys are named, so that no user can call.
    pub fn read(env: &mut Env) -> Result<Option<Self>, Noted> {
        if !env.is_set(&keys::SUPABASE_JWKS_URL) {
            return Ok(None);
        }
        let jwks_url = env.url(&keys::SUPABASE_JWKS_URL);
        let issuer = env.text(&keys::SUPABASE_ISSUER);
        let audience = env.text(&keys::SUPABASE_AUDIENCE);
        let scope_claim = scope_claim(env);
        Ok(Some(Self {
            jwks_url: jwks_url?,
            issuer: issuer?,
            audience: audience?,
            scope_claim: scope_claim?,
        }))
    }
}

fn scope_claim(env: &mut Env) -> Result<String, Noted> {
    let key = &keys::SUPABASE_SCOPE_CLAIM;
    let path = env.text(key)?;
    let mut names = path.split('.');
    if names.clone().any(str::is_empty) {
        return Err(env.refuse(key, "expected names with single dots between them"));
    }
    // Supabase lets users write this claim themselves.
    if names.next() == Some("user_metadata") {
        return Err(env.refuse(key, "users write `user_metadata` themselves; `app_metadata` is safe"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: (&str, &str) = ("SANMOPIA_ENV_STRICT", "false");
    const URL: (&str, &str) =
        ("SANMOPIA_SUPABASE_JWKS_URL", "https://ref.supabase.co/auth/v1/.well-known/jwks.json");
    const ISSUER: (&str, &str) = ("SANMOPIA_SUPABASE_ISSUER", "https://ref.supabase.co/auth/v1");
    const AUDIENCE: (&str, &str) = ("SANMOPIA_SUPABASE_AUDIENCE", "authenticated");

    fn scope(path: &'static str) -> (&'static str, &'static str) {
        ("SANMOPIA_SUPABASE_SCOPE_CLAIM", path)
    }

    /// What was read, and the names of the settings that are wrong.
    fn read(pairs: &[(&str, &str)]) -> (Result<Option<Options>, Noted>, Vec<String>) {
        let mut env = Env::of_pairs([STRICT].iter().chain(pairs).copied());
        let options = Options::read(&mut env);
        let names = env.finish().err().map(|error| error.names().map(str::to_owned).collect());
        (options, names.unwrap_or_default())
    }

    #[test]
    fn without_signing_keys_no_user_can_call_and_nothing_is_wrong() {
        let (options, wrong) = read(&[]);

        assert!(matches!(options, Ok(None)));
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn signing_keys_need_all_the_rest_and_each_that_misses_is_named() {
        let (options, wrong) = read(&[URL]);

        assert!(options.is_err());
        assert_eq!(wrong, [ISSUER.0, AUDIENCE.0, scope("").0]);
    }

    #[test]
    fn all_four_are_taken_as_they_are() {
        let (options, wrong) = read(&[URL, ISSUER, AUDIENCE, scope("app_metadata.branch")]);

        assert_eq!(wrong, Vec::<String>::new());
        let options = options.expect("nothing is wrong").expect("the keys are named");
        assert_eq!(options.jwks_url.as_str(), URL.1);
        assert_eq!((options.issuer.as_str(), options.audience.as_str()), (ISSUER.1, AUDIENCE.1));
        assert_eq!(options.scope_claim, "app_metadata.branch");
    }

    #[test]
    fn a_scope_that_users_can_write_themselves_is_refused() {
        for path in ["user_metadata.branch", "user_metadata", "app_metadata..branch", ".branch", "branch."] {
            let (options, wrong) = read(&[URL, ISSUER, AUDIENCE, scope(path)]);

            assert!(options.is_err(), "{path}");
            assert_eq!(wrong, [scope(path).0], "{path}");
        }
    }
}
