//! The environment as figment data, with every value left the string that it is.
//!
//! figment's own `Env` provider parses values: a token of digits becomes a number, `00123` becomes 123.

use figment::value::{Dict, Map, Value};
use figment::{Error, Metadata, Profile, Provider};

/// Name and value pairs that figment must not interpret.
pub(crate) struct Literal(pub(crate) Vec<(String, String)>);

impl Provider for Literal {
    fn metadata(&self) -> Metadata {
        Metadata::named("environment")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let values = self.0.iter().map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect();
        Ok(Map::from([(Profile::Default, values)]))
    }
}
