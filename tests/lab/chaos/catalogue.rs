//! All faults and controls, and who is meant by a name.

use anyhow::{Context, bail};

use super::Tier;
use super::controls::Control;
use super::faults::{self, Fault};

/// What one run of `lab chaos` does.
pub(super) struct Chosen {
    pub(super) faults: Vec<&'static Fault>,
    pub(super) controls: Vec<&'static Control>,
}

/// The faults and controls that `name` means: `all` those of the tier, else one.
pub(super) fn choose(name: &str, tier: Tier) -> anyhow::Result<Chosen> {
    let (faults, controls) = (faults::all(), super::controls::ALL);
    if name == "all" {
        return Ok(Chosen {
            faults: faults.into_iter().filter(|fault| fault.tier <= tier).collect(),
            controls: controls.iter().filter(|control| control.tier <= tier).collect(),
        });
    }
    let is_meant = |id: &str| id.eq_ignore_ascii_case(name);
    let fault: Vec<_> = faults.iter().copied().filter(|fault| is_meant(fault.id)).collect();
    let control: Vec<_> = controls.iter().filter(|control| is_meant(control.name)).collect();
    if fault.is_empty() && control.is_empty() {
        let ids = faults.iter().map(|fault| fault.id).chain(controls.iter().map(|control| control.name));
        let known = ids.collect::<Vec<_>>().join(", ");
        bail!("no fault and no control is called `{name}`; there are {known}");
    }
    Ok(Chosen { faults: fault, controls: control })
}

/// The fault of that id.
pub(super) fn fault(id: &str) -> anyhow::Result<&'static Fault> {
    faults::all().into_iter().find(|fault| fault.id == id).with_context(|| format!("no fault is called {id}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_id_is_there_once_and_every_control_names_a_fault() {
        let faults = faults::all();
        let ids: BTreeSet<&str> = faults.iter().map(|fault| fault.id).collect();

        assert_eq!(ids.len(), faults.len());
        for control in super::super::controls::ALL {
            assert!(ids.contains(control.fault), "{}: {}", control.name, control.fault);
        }
    }

    #[test]
    fn a_name_means_one_and_a_wrong_one_lists_what_there_is() {
        assert_eq!(choose("f01", Tier::Smoke).unwrap().faults.len(), 1);
        let error = choose("F00", Tier::Full).err().unwrap().to_string();
        assert!(error.contains("F01"), "{error}");
    }
}
