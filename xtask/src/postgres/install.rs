//! Installs Postgres and its pooler by apt where that is possible without asking; elsewhere names what to type.

use std::path::Path;
use std::process::Command;

use anyhow::bail;

use super::programs::OLDEST;
use crate::home::Home;
use crate::terminal::say;
use crate::{command, process};

/// Debian's package would at once start a server of its own on port 5432, which nobody asked for.
const NO_SYSTEM_SERVER: &str = "f=/etc/postgresql-common/createcluster.conf; \
     sed -i '/^[[:space:]]*create_main_cluster/d' $f; echo 'create_main_cluster = false' >> $f";

pub(crate) fn cure() -> String {
    format!(
        "no Postgres server of version {OLDEST} or newer was found: install one (Debian, Ubuntu: `apt-get install \
         postgresql`; Fedora: `dnf install postgresql-server`; macOS: `brew install postgresql@17`) or give the URL \
         of a running one in SANMOPIA_DATABASE_URL (for tests: SPILLWAY_TEST_POSTGRES)"
    )
}

/// Debian's package would at once start a service of its own on port 6432, which nobody asked for.
const NO_SYSTEM_POOLER: &str =
    "u=/etc/systemd/system/pgbouncer.service; test -e $u || { mkdir -p ${u%/*}; ln -s /dev/null $u; }";

pub(crate) const POOLER_CURE: &str = "pgbouncer was not found: install it (Debian, Ubuntu: `apt-get install pgbouncer`; Fedora: `dnf install \
     pgbouncer`; macOS: `brew install pgbouncer`)";

pub(crate) fn pooler(home: &Home) -> anyhow::Result<()> {
    let Some(root) = Root::find() else { bail!(POOLER_CURE) };
    let log = home.log("install");
    say(format_args!("installing pgbouncer by apt-get; its output goes to {}", home.relative(&log)));
    root.run("sh", &["-c", "apt-get update || true"], &log)?;
    root.run("sh", &["-ec", NO_SYSTEM_POOLER], &log)?;
    root.run("apt-get", &["install", "-y", "--no-install-recommends", "pgbouncer"], &log)
}

pub(crate) fn postgres(home: &Home) -> anyhow::Result<()> {
    let Some(root) = Root::find() else { bail!(cure()) };
    let log = home.log("install");
    say(format_args!("installing Postgres by apt-get; its output goes to {}", home.relative(&log)));
    // One repository that does not answer need not be the one that is needed.
    root.run("sh", &["-c", "apt-get update || true"], &log)?;
    root.run("apt-get", &["install", "-y", "--no-install-recommends", "postgresql-common"], &log)?;
    root.run("sh", &["-ec", NO_SYSTEM_SERVER], &log)?;
    root.run("apt-get", &["install", "-y", "--no-install-recommends", "postgresql"], &log)
}

/// The way to act as root.
enum Root {
    Already,
    Sudo,
}

impl Root {
    fn find() -> Option<Self> {
        command::output(Command::new("apt-get").arg("--version")).ok()?;
        if nix::unistd::geteuid().is_root() {
            return Some(Self::Already);
        }
        command::output(Command::new("sudo").args(["-n", "true"])).ok().map(|_| Self::Sudo)
    }

    fn run(&self, program: &str, arguments: &[&str], log: &Path) -> anyhow::Result<()> {
        let mut command = match self {
            Self::Already => Command::new("env"),
            Self::Sudo => Command::new("sudo"),
        };
        if matches!(self, Self::Sudo) {
            command.args(["-n", "env"]);
        }
        command.arg("DEBIAN_FRONTEND=noninteractive").arg(program).args(arguments);
        if !command::logged(&mut command, log)?.success() {
            bail!("`{}` failed; {}\n{}", command::describe(&command), process::tail(log), cure());
        }
        Ok(())
    }
}
