//! JSON that an operator gives as a file.

use std::path::Path;

use process::Error;
use serde::de::DeserializeOwned;

/// Reads a JSON file; `-` is standard input.
pub(crate) fn json<T: DeserializeOwned>(file: &Path) -> Result<T, Error> {
    let failed = |error: std::io::Error| Error::failed(format!("reading {}", file.display()), error);
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()).map_err(failed)?,
        _ => std::fs::read_to_string(file).map_err(failed)?,
    };
    serde_json::from_str(&text).map_err(|error| {
        // serde's message may quote a secret; place and kind of the mistake do not.
        let place = format!("line {}, column {}: {:?} error", error.line(), error.column(), error.classify());
        Error::failed(format!("reading {}", file.display()), place)
    })
}
