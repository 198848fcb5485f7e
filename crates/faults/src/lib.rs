//! Places at which a process can be told to die, and guards that it can be told to lack: what chaos drills stand on.
//!
//! Without the feature `chaos` a point expands to nothing and a guard is never lacking, so that no shipped program holds
//! anything of it. With it the environment decides, which is read once, at the first point or guard that is reached:
//!
//! - `SPILLWAY_CRASHPOINT=name[:nth][:kill|stall|stop|panic|abort|err]`, several separated by commas: what happens when a
//!   point is reached for the nth time, 1 and `kill` where it is left out.
//! - `SPILLWAY_LACKS=name[,name]`: the guards that are missing.
//! - `SPILLWAY_CRASHPOINT_FIRED=file`: gets a line `name pid action` for each that has acted, and is on disk before it
//!   does.
//!
//! A wrong value ends the process with exit code 64 and a sentence: a drill in which nothing was armed must not look like
//! one that was survived.

#[cfg(feature = "chaos")]
mod act;
#[cfg(any(test, feature = "chaos"))]
mod names;
#[cfg(any(test, feature = "chaos"))]
mod plan;

#[cfg(feature = "chaos")]
pub use act::{is_lacking, pass, reach};
#[cfg(any(test, feature = "chaos"))]
pub use names::{GUARDS, POINTS};

/// A crash point, in async code. With an error it can fail too: then the enclosing function returns it, converted.
#[cfg(feature = "chaos")]
#[macro_export]
macro_rules! point {
    ($name:literal) => {
        $crate::pass($name).await
    };
    ($name:literal, $error:expr) => {
        if $crate::reach($name).await {
            return Err($error.into());
        }
    };
}

/// A crash point, in async code. With an error it can fail too: then the enclosing function returns it, converted.
#[cfg(not(feature = "chaos"))]
#[macro_export]
macro_rules! point {
    ($name:literal $(, $error:expr)?) => {};
}

/// True where the process was told to go without this guard.
#[cfg(feature = "chaos")]
#[macro_export]
macro_rules! lacks {
    ($name:literal) => {
        $crate::is_lacking($name)
    };
}

/// True where the process was told to go without this guard.
#[cfg(not(feature = "chaos"))]
#[macro_export]
macro_rules! lacks {
    ($name:literal) => {
        false
    };
}
