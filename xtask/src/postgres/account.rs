//! Where a server's data live and as whom it runs: Postgres refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::unistd::{User, geteuid};

use super::{forgotten, psql, remove};
use crate::terminal::say;

/// The folder of one server.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    account: Option<Account>,
}

/// Whom root becomes for Postgres' programs.
#[derive(Clone, Copy, Debug)]
struct Account {
    user: u32,
    group: u32,
}

impl Place {
    /// Where there are data already; else inside the checkout, unless root's stand-in can't get there
    /// (a checkout under `/root`, say).
    pub(crate) fn choose(inside: &Path, outside: &Path) -> anyhow::Result<Self> {
        if !geteuid().is_root() {
            make_folder(inside)?;
            return Ok(Self { folder: inside.to_owned(), account: None });
        }
        for folder in [inside, outside] {
            if let Some(owner) = Account::owner_of(&folder.join("data")) {
                return Ok(Self { folder: folder.to_owned(), account: Some(owner) });
            }
        }
        let account = Account::for_root()?;
        make_folder(inside)?;
        account.own(inside)?;
        if account.can_write(inside) {
            return Ok(Self { folder: inside.to_owned(), account: Some(account) });
        }
        fs::remove_dir(inside).with_context(|| format!("removing {}", inside.display()))?;
        make_outside(outside)?;
        account.own(outside)?;
        Ok(Self { folder: outside.to_owned(), account: Some(account) })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A command that runs as the server's user, from a folder that this user can enter.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env("LC_ALL", "C");
        psql::forget_settings(&mut command);
        if let Some(account) = self.account {
            account.take_on(&mut command);
        }
        command
    }

    /// Gives a file that we made to the server's user.
    pub(crate) fn hand_over(&self, file: &Path) -> anyhow::Result<()> {
        self.account.map_or(Ok(()), |account| account.own(file))
    }

    /// Without a password nobody can log in: the data are those of a `.spillway` that was removed by
    /// hand, whose other half lay outside the checkout.
    pub(crate) fn clear_leftovers(&self) -> anyhow::Result<()> {
        if !self.data().exists() {
            return Ok(());
        }
        say(format_args!(
            "removing {}: its .spillway is gone, and with it the password",
            self.data().display()
        ));
        forgotten::end(&self.data())?;
        remove(&self.data())
    }
}

impl Account {
    fn for_root() -> anyhow::Result<Self> {
        for name in ["postgres", "nobody"] {
            let found = User::from_name(name).with_context(|| format!("looking up the user `{name}`"))?;
            if let Some(user) = found {
                return Ok(Self { user: user.uid.as_raw(), group: user.gid.as_raw() });
            }
        }
        bail!(
            "Postgres refuses to run as root, and there is no user `postgres` or `nobody` instead: make one"
        )
    }

    /// Whose data they are decides, or a user added since could not read them.
    fn owner_of(data: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(data).ok().filter(|found| found.is_dir() && found.uid() != 0)?;
        Some(Self { user: found.uid(), group: found.gid() })
    }

    fn take_on(self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    fn own(self, path: &Path) -> anyhow::Result<()> {
        chown(path, Some(self.user), Some(self.group))
            .with_context(|| format!("handing over {}", path.display()))
    }

    /// Tried rather than computed: parent folders, access lists and mounts all have a say.
    fn can_write(self, folder: &Path) -> bool {
        let mut test = Command::new("test");
        test.arg("-w").arg(folder).current_dir("/").stdin(Stdio::null());
        self.take_on(&mut test);
        test.status().is_ok_and(|status| status.success())
    }
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)))
        .with_context(|| format!("making {}", folder.display()))
}

/// `/var/tmp` is everybody's: a folder of that name which somebody else made is not used.
fn make_outside(folder: &Path) -> anyhow::Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    if let Err(error) = fs::create_dir(parent)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(error).with_context(|| format!("making {}", parent.display()));
    }
    let found = fs::symlink_metadata(parent).with_context(|| format!("looking at {}", parent.display()))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        bail!("{} belongs to somebody else: remove it and try again", parent.display());
    }
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("opening {}", parent.display()))?;
    make_folder(folder)
}
