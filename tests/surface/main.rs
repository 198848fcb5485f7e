//! What the outside sees of this version: settings, documents, help, metrics.

mod stage;
