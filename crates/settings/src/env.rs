//! Typed getters over the environment that collect every mistake.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use contract::env::{Key, PLACEHOLDER, PREFIX, Presence, WORKER_PREFIX, keys};
use figment::Figment;
use secrecy::{SecretBox, SecretString};
use url::Url;

use crate::literal::Literal;
use crate::report::{Error, Mistake, Shown, shown};

/// A setting was unset or wrong, and the mistake is noted for the report of [`Env::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted;

/// The environment of this process, read key by key.
pub struct Env {
    figment: Figment,
    names: Vec<String>,
    mistakes: Vec<Mistake>,
    shown: Shown,
}

/// Secrets shorter than this can be guessed.
const SHORTEST_SECRET: usize = 16;

impl Env {
    /// The process' environment.
    pub fn of_process() -> Self {
        let mut mistakes = Vec::new();
        let mut pairs = Vec::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => pairs.push((name, value)),
                Err(_) if name.starts_with(PREFIX) => {
                    mistakes.push(Mistake { name, sentence: "is not UTF-8".to_owned() });
                }
                Err(_) => {}
            }
        }
        let mut env = Self::of_pairs(pairs);
        env.mistakes = mistakes;
        env
    }

    /// An environment that consists of these pairs.
    pub fn of_pairs<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let ours: Vec<(String, String)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        let names = ours.iter().map(|(name, _)| name.clone()).collect();
        Self { figment: Figment::from(Literal(ours)), names, mistakes: Vec::new(), shown: Shown::default() }
    }

    /// `true` or `false`, nothing else.
    pub fn switch(&mut self, key: &'static Key) -> Result<bool, Noted> {
        self.parse(key, |value| match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("expected `true` or `false`".to_owned()),
        })
    }

    /// A whole number within `range`.
    pub fn count(&mut self, key: &'static Key, range: RangeInclusive<u32>) -> Result<u32, Noted> {
        self.parse(key, |value| whole_number(value, &range))
    }

    /// A duration; the key's unit says whether the number counts seconds or milliseconds.
    pub fn duration(&mut self, key: &'static Key, range: RangeInclusive<u32>) -> Result<Duration, Noted> {
        let number = self.count(key, range)?;
        Ok(match key.unit {
            contract::env::Unit::Seconds => Duration::from_secs(number.into()),
            _ => Duration::from_millis(number.into()),
        })
    }

    /// An address and port to listen on.
    pub fn listen(&mut self, key: &'static Key) -> Result<SocketAddr, Noted> {
        self.parse(key, |value| {
            value.parse().map_err(|_| "expected ADDRESS:PORT, such as 0.0.0.0:8080".to_owned())
        })
    }

    /// An `http` or `https` URL without a user or password.
    pub fn url(&mut self, key: &'static Key) -> Result<Url, Noted> {
        self.parse(key, |value| {
            let url = Url::parse(value).map_err(|error| format!("not a URL: {error}"))?;
            match url.scheme() {
                "http" | "https" if url.password().is_none() && url.username().is_empty() => Ok(url),
                "http" | "https" => Err("a user or password doesn't belong into this URL".to_owned()),
                other => Err(format!("expected http or https, not `{other}`")),
            }
        })
    }

    /// One of a fixed set of words.
    pub fn word<T: Copy>(&mut self, key: &'static Key, words: &[(&str, T)]) -> Result<T, Noted> {
        self.parse(key, |value| {
            words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning).ok_or_else(|| {
                let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
                format!("expected {}", known.join(" or "))
            })
        })
    }

    /// A text that holds nothing secret.
    pub fn text(&mut self, key: &'static Key) -> Result<String, Noted> {
        self.parse(key, |value| Ok(value.to_owned()))
    }

    /// A token or password, taken literally.
    pub fn secret(&mut self, key: &'static Key) -> Result<SecretString, Noted> {
        self.parse(key, |value| {
            if value.chars().count() < SHORTEST_SECRET {
                return Err(format!("shorter than {SHORTEST_SECRET} characters"));
            }
            Ok(SecretString::from(value))
        })
    }

    /// Named secrets, taken literally; none where the key is unset. A name may have several.
    pub fn secret_list(&mut self, key: &'static Key) -> Result<Vec<(String, SecretString)>, Noted> {
        if !self.is_set(key) {
            return Ok(Vec::new());
        }
        self.parse(key, |value| value.split(',').map(named_secret).collect())
    }

    /// True where the key has a value.
    pub fn is_set(&self, key: &Key) -> bool {
        self.raw(key).is_some()
    }

    /// 32 secret bytes in base64.
    pub fn secret_key(&mut self, key: &'static Key) -> Result<SecretBox<[u8; 32]>, Noted> {
        self.parse(key, |value| {
            let bytes = BASE64_STANDARD.decode(value).map_err(|_| "not base64".to_owned())?;
            let bytes: [u8; 32] =
                bytes.try_into().map_err(|bytes: Vec<u8>| format!("{} bytes, expected 32", bytes.len()))?;
            Ok(SecretBox::new(Box::new(bytes)))
        })
    }

    /// The URL of a Postgres database, or of `fallback` where `key` is unset.
    pub fn database_url(&mut self, key: &'static Key, fallback: &'static Key) -> Result<SecretString, Noted> {
        let key = if self.is_set(key) { key } else { fallback };
        self.parse(key, |value| match Url::parse(value) {
            Ok(url) if matches!(url.scheme(), "postgres" | "postgresql") && url.has_host() => {
                Ok(SecretString::from(value))
            }
            // The parser's own message could quote the password.
            _ => Err("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned()),
        })
    }

    /// Notes that settings which are right one by one don't fit together.
    pub fn refuse(&mut self, key: &'static Key, sentence: impl Into<String>) -> Noted {
        let mistake = Mistake { name: key.name.to_owned(), sentence: sentence.into() };
        // Several crates may read one key; its mistake is told once.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
        Noted
    }

    /// All is read: the values in force, or every mistake in one error.
    pub fn finish(mut self) -> Result<Shown, Error> {
        let strict = self.switch(&keys::ENV_STRICT).unwrap_or(false);
        self.judge_unknown_names(strict);
        if self.mistakes.is_empty() { Ok(self.shown) } else { Err(Error { mistakes: self.mistakes }) }
    }

    fn judge_unknown_names(&mut self, strict: bool) {
        for name in std::mem::take(&mut self.names) {
            if keys::ALL.iter().any(|key| key.name == name) {
                continue;
            }
            let near = keys::ALL.iter().find(|key| strsim::damerau_levenshtein(key.name, &name) <= 2);
            let sentence = match near {
                Some(key) => format!("no such setting; did you mean {}?", key.name),
                None if name.starts_with(WORKER_PREFIX) => "no such worker setting".to_owned(),
                None if strict => format!("no such setting, and {} is true", keys::ENV_STRICT.name),
                None => {
                    self.shown.unknown.push(name);
                    continue;
                }
            };
            self.mistakes.push(Mistake { name, sentence });
        }
    }

    /// The value as it is; an unset or empty variable is no value.
    fn raw(&self, key: &Key) -> Option<String> {
        let value = self.figment.find_value(key.name).ok()?;
        value.into_string().filter(|value| !value.is_empty())
    }

    fn parse<T>(
        &mut self,
        key: &'static Key,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Noted> {
        let Some(value) = self.raw(key) else {
            let sentence = match key.presence {
                Presence::Required => format!("not set; expected [{}]", key.unit.word()),
                Presence::Optional => format!("needed here but not set; expected [{}]", key.unit.word()),
            };
            return Err(self.refuse(key, sentence));
        };
        let secret = key.unit.is_secret();
        match literal(&value).and_then(|()| read(&value)) {
            Ok(meaning) => {
                self.shown.note(key.name, if secret { "••••••".to_owned() } else { shown(&value) });
                Ok(meaning)
            }
            // A URL that is refused may hold a password that it should not.
            Err(sentence) if secret || value.contains('@') => Err(self.refuse(key, sentence)),
            Err(sentence) => Err(self.refuse(key, format!("`{}`: {sentence}", shown(&value)))),
        }
    }
}

/// Refuses what a careless file or shell adds to a value.
fn literal(value: &str) -> Result<(), String> {
    let quoted = |quote| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    let sentence = if value.ends_with('\r') {
        "ends with a carriage return; save the file with Unix line ends"
    } else if value.trim() != value {
        "has spaces around it"
    } else if quoted('"') || quoted('\'') {
        "is in quotes; values are taken literally"
    } else if value == PLACEHOLDER {
        "still the placeholder of .env.example"
    } else {
        return Ok(());
    };
    Err(sentence.to_owned())
}

fn named_secret(pair: &str) -> Result<(String, SecretString), String> {
    let plain = |name: &&str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let (name, secret) = pair.split_once('=').ok_or("expected NAME=SECRET pairs with commas between them")?;
    let name = Some(name).filter(plain).ok_or("a name is letters, digits, `-` and `_`")?;
    if secret.chars().count() < SHORTEST_SECRET {
        return Err(format!("the secret of `{name}` is shorter than {SHORTEST_SECRET} characters"));
    }
    Ok((name.to_owned(), SecretString::from(secret)))
}

fn whole_number(value: &str, range: &RangeInclusive<u32>) -> Result<u32, String> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (value.len() > 1 && value.starts_with('0')) {
        return Err(format!("expected a whole number {}, digits only", span(range)));
    }
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a whole number {}", span(range)))
}

fn span(range: &RangeInclusive<impl Display>) -> String {
    format!("from {} to {}", range.start(), range.end())
}
