//! Crash points and missing guards are in no program that is built to be used, and in no list without being in the code.

use std::path::{Path, PathBuf};

#[path = "../../crates/faults/src/names.rs"]
#[expect(unreachable_pub, reason = "it is a public module of its own crate")]
mod names;

use names::{GUARDS, POINTS};

const PROGRAMS: [&str; 3] = ["gateway", "webhook-worker", "spillway"];

/// What can be read in a program. Programs lie beside the folder of the tests' own; `cargo xtask test` builds them first.
fn text_of(program: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().and_then(Path::parent).unwrap().join(program);
    let bytes =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; is it built?", path.display()));
    bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\n' }).collect()
}

#[test]
fn no_program_holds_a_crash_point_or_can_lack_a_guard() {
    let keys = ["SPILLWAY_CRASHPOINT", "SPILLWAY_LACKS"];
    for program in PROGRAMS {
        let text = text_of(program);
        let found: Vec<&str> =
            keys.iter().chain(POINTS).chain(GUARDS).copied().filter(|name| text.contains(name)).collect();

        assert_eq!(found, [""; 0], "{program} was built with the feature `chaos`");
        assert!(text.contains("SANMOPIA_"), "nothing at all is found in {program}");
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The first argument of each call of the macro in the crates that are shipped.
fn named_in_code(call: &str) -> Vec<String> {
    let crates =
        sources(Path::new("../crates")).into_iter().filter(|file| !file.starts_with("../crates/faults"));
    let mut names = Vec::new();
    for file in crates {
        let text = std::fs::read_to_string(&file).unwrap();
        let rest = text.split(call).skip(1);
        names.extend(rest.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_point_and_every_guard_has_its_place_in_the_code() {
    assert_eq!(named_in_code("faults::point!(\""), sorted(POINTS));
    assert_eq!(named_in_code("faults::lacks!(\""), sorted(GUARDS));
}
