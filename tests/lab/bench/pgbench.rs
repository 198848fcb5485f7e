//! pgbench, the peer that comes with Postgres: one statement a transaction, as fast as the server takes them.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use url::Url;

/// pgbench before one database.
#[derive(Clone, Debug)]
pub(super) struct Pgbench {
    program: PathBuf,
    server: Url,
}

impl Pgbench {
    /// `server` is `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub(super) fn new(program: PathBuf, server: &str) -> anyhow::Result<Self> {
        Ok(Self { program, server: server.parse().context("the database's URL")? })
    }

    /// Runs `statement` for so long from so many clients; transactions a second.
    pub(super) async fn per_s(&self, statement: &str, clients: u32, seconds: u32) -> anyhow::Result<f64> {
        self.run(statement, self.command(clients, &format!("--time={seconds}"))).await
    }

    /// Runs `script` so many times in each of so many clients; runs a second.
    pub(super) async fn per_s_of(&self, script: &str, clients: u32, times: u32) -> anyhow::Result<f64> {
        self.run(script, self.command(clients, &format!("--transactions={times}"))).await
    }

    async fn run(&self, script: &str, command: Command) -> anyhow::Result<f64> {
        let script = format!("{script};\n");
        let ended = tokio::task::spawn_blocking(move || run(command, &script)).await;
        ended.context("waiting for pgbench")?
    }

    /// Prepared statements are the fastest that pgbench has. The password goes by the environment, and the script
    /// by standard input.
    fn command(&self, clients: u32, how_long: &str) -> Command {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(clients as usize);
        let mut command = Command::new(&self.program);
        command
            .args(["--no-vacuum", "--protocol=prepared", "--file=-"])
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={threads}"))
            .arg(how_long)
            .env("PGHOST", self.server.host_str().unwrap_or_default())
            .env("PGPORT", self.server.port().unwrap_or(5432).to_string())
            .env("PGUSER", self.server.username())
            .env("PGPASSWORD", self.server.password().unwrap_or_default())
            .env("PGDATABASE", self.server.path().trim_start_matches('/'));
        command
    }
}

fn run(mut command: Command, script: &str) -> anyhow::Result<f64> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting pgbench")?;
    let mut input = child.stdin.take().context("pgbench has no standard input")?;
    input.write_all(script.as_bytes()).context("sending the script to pgbench")?;
    drop(input);
    let output = child.wait_with_output().context("waiting for pgbench")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed ({}): {}", output.status, complaints.trim());
    transactions_per_s(&String::from_utf8_lossy(&output.stdout))
        .context("pgbench told no rate: nothing ended in its time")
}

/// Versions before 14 tell two rates, the last of them without the time for connecting.
fn transactions_per_s(told: &str) -> Option<f64> {
    let mut rates = told.lines().filter_map(|line| line.strip_prefix("tps = "));
    rates.next_back()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: -
scaling factor: 1
query mode: prepared
number of clients: 16
number of threads: 2
maximum number of tries: 1
duration: 5 s
number of transactions actually processed: 21034
number of failed transactions: 0 (0.000%)
latency average = 3.799 ms
initial connection time = 25.881 ms
tps = 4211.500000 (without initial connection time)
";

    #[test]
    fn the_rate_is_read_from_what_pgbench_tells() {
        assert_eq!(transactions_per_s(TOLD), Some(4211.5));
        assert_eq!(transactions_per_s("pgbench: error: connection failed"), None);
    }

    #[test]
    fn the_password_is_no_argument() {
        let pgbench = Pgbench::new("pgbench".into(), "postgres://me:secret@127.0.0.1:5999/db").unwrap();
        let command = pgbench.command(64, "--time=5");

        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert!(arguments.iter().all(|argument| !argument.contains("secret")), "{arguments:?}");
        assert!(
            command.get_envs().any(|(name, value)| name == "PGPASSWORD" && value == Some("secret".as_ref()))
        );
    }
}
