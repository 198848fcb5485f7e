//! A migrated database for one test, cloned from a template on the server that `cargo xtask test` starts.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Executor, raw_sql};
use store::{Options, Pool};
use url::Url;
use uuid::Uuid;

/// Names the server: `postgres://USER:PASSWORD@HOST:PORT/postgres`, a superuser's.
pub const SERVER: &str = "SPILLWAY_TEST_POSTGRES";

/// Names a transaction pooler in front of the server: `HOST:PORT`.
pub const POOLER: &str = "SPILLWAY_TEST_POOLER";

/// Names a server that is a standby, as [`SERVER`] does.
pub const STANDBY: &str = "SPILLWAY_TEST_STANDBY";

/// The URL of a standby, on which nothing can be stored.
///
/// # Panics
/// Without one: a test that needs it is never skipped.
pub fn standby_url() -> String {
    std::env::var(STANDBY).unwrap_or_else(|_| {
        panic!("{STANDBY} is not set: run the tests with `cargo xtask test`, which starts a standby and names it there")
    })
}

/// Half of a template left by a killed run is made anew under this lock.
const TEMPLATE_LOCK: &str = "select pg_advisory_lock(7811871540132)";

/// A database of its own, gone when it is dropped.
pub struct Database {
    name: String,
    server: PgConnectOptions,
}

impl Database {
    /// A migrated database.
    ///
    /// # Panics
    /// Without a server: a test that needs Postgres is never skipped.
    pub async fn fresh() -> Self {
        let database = Self::named(&server());
        let template = template(&database.server).await;
        let mut connection = connect(&database.server).await;
        run(&mut connection, &format!("create database {} template {template}", database.name)).await;
        database
    }

    /// An empty database, not migrated.
    pub async fn empty() -> Self {
        let database = Self::named(&server());
        let mut connection = connect(&database.server).await;
        run(&mut connection, &format!("create database {}", database.name)).await;
        database
    }

    fn named(server: &PgConnectOptions) -> Self {
        Self { name: format!("spillway_test_{}", Uuid::now_v7().simple()), server: server.clone() }
    }

    /// Where it is, for a process that takes a URL.
    pub fn url(&self) -> String {
        self.server.clone().database(&self.name).to_url_lossy().to_string()
    }

    /// The same with the rights of one of our roles and no others.
    pub fn url_as(&self, role: &str) -> String {
        let mut url = self.server.clone().database(&self.name).to_url_lossy();
        url.query_pairs_mut().append_pair("options", &format!("-c role={role}"));
        url.to_string()
    }

    /// Where it is behind the transaction pooler, for the server's own user.
    ///
    /// # Panics
    /// Without a pooler: a test that needs one is never skipped.
    pub fn pooled_url(&self) -> String {
        let pooler = std::env::var(POOLER).unwrap_or_else(|_| {
            panic!("{POOLER} is not set: run the tests with `cargo xtask test`, which starts a pooler and names it there")
        });
        let mut url = self.server.clone().database(&self.name).to_url_lossy();
        let (host, port) = pooler.split_once(':').expect("HOST:PORT");
        url.set_host(Some(host)).expect("a host");
        url.set_port(Some(port.parse().expect("a port"))).expect("a port fits");
        url.to_string()
    }

    /// The same for a login that has the rights of one of our roles and no others.
    pub async fn pooled_url_as(&self, role: &str) -> String {
        let mut url = Url::parse(&self.pooled_url()).expect("a URL");
        let (login, password) = (format!("{role}_pooled"), url.password().unwrap_or_default());
        // Roles are the server's: several tests may want the same one at once.
        let mut connection = connect(&self.server).await;
        run(&mut connection, TEMPLATE_LOCK).await;
        let known = sqlx::query_scalar("select exists (select from pg_roles where rolname = $1)");
        if !known.bind(&login).fetch_one(&mut connection).await.unwrap_or(false) {
            run(&mut connection, &format!("create role {login} login in role {role} password '{password}'"))
                .await;
        }
        url.set_username(&login).expect("a name fits");
        url.to_string()
    }

    /// Options for `size` connections to it.
    pub fn options(&self, size: u32) -> Options {
        Options::of_url(self.url(), size)
    }

    /// A pool of `size` connections.
    pub fn pool(&self, size: u32) -> Pool {
        Pool::prepare(&self.options(size), "test", size).expect("the server's URL was used before")
    }

    /// A pool of `size` connections with the rights of one of our roles.
    pub fn pool_as(&self, role: &str, size: u32) -> Pool {
        let options = Options::of_url(self.url_as(role), size);
        Pool::prepare(&options, "test", size).expect("the server's URL was used before")
    }

    /// A connection past all of our code, for setting up and for looking.
    pub async fn connect(&self) -> PgConnection {
        connect(&self.server.clone().database(&self.name)).await
    }

    /// A session that has run statements and stays open, such as in the middle of a transaction.
    pub async fn session(&self, sql: &str) -> PgConnection {
        let mut connection = self.connect().await;
        run(&mut connection, sql).await;
        connection
    }

    /// A session kept for a test that looks many times.
    pub async fn watcher(&self) -> Watcher {
        Watcher(self.connect().await)
    }

    /// Runs statements.
    pub async fn execute(&self, sql: &str) {
        run(&mut self.connect().await, sql).await;
    }

    /// The one number that a query answers.
    pub async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(&mut self.connect().await)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The texts that a query answers, one a row.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        self.watcher().await.texts(sql).await
    }
}

/// An open connection past all of our code.
pub struct Watcher(PgConnection);

impl Watcher {
    /// Runs statements.
    pub async fn execute(&mut self, sql: &str) {
        run(&mut self.0, sql).await;
    }

    /// The texts that a query answers, one a row.
    pub async fn texts(&mut self, sql: &str) -> Vec<String> {
        sqlx::query_scalar(sql).fetch_all(&mut self.0).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

impl Drop for Database {
    /// Waits until it is gone, on a thread of its own: `drop` can't await.
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let dropper = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut connection = server.connect().await.map_err(std::io::Error::other)?;
                let sql = format!("drop database if exists {name} with (force)");
                connection.execute(raw_sql(&sql)).await.map_err(std::io::Error::other)
            })
        });
        // What stays behind is removed when the next run starts.
        let _ = dropper.join();
    }
}

fn server() -> PgConnectOptions {
    let url = std::env::var(SERVER).unwrap_or_else(|_| {
        panic!("{SERVER} is not set: run the tests with `cargo xtask test`, which starts a server and names it there")
    });
    url.parse::<PgConnectOptions>()
        .unwrap_or_else(|error| panic!("{SERVER}: {error}"))
        .disable_statement_logging()
}

async fn connect(options: &PgConnectOptions) -> PgConnection {
    options.connect().await.unwrap_or_else(|error| panic!("connecting to {SERVER}: {error}"))
}

async fn run(connection: &mut PgConnection, sql: &str) {
    connection.execute(raw_sql(sql)).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The template for this version of the migrations, made by whoever comes first.
async fn template(server: &PgConnectOptions) -> String {
    let name = format!("spillway_template_{}", store::migrate::fingerprint());
    let mut connection = connect(server).await;
    if is_template(&mut connection, &name).await {
        return name;
    }
    run(&mut connection, TEMPLATE_LOCK).await;
    if !is_template(&mut connection, &name).await {
        run(&mut connection, &format!("drop database if exists {name} with (force)")).await;
        run(&mut connection, &format!("create database {name}")).await;
        let url = server.clone().database(&name).to_url_lossy().to_string();
        store::migrate::run(&Options::of_url(url, 2))
            .await
            .unwrap_or_else(|error| panic!("migrating {name}: {error:?}"));
        run(&mut connection, &format!("alter database {name} is_template true")).await;
    }
    // Closing the connection gives the lock back.
    let _ = connection.close().await;
    name
}

/// The flag is set last, so a template that has it is complete.
async fn is_template(connection: &mut PgConnection, name: &str) -> bool {
    let found = sqlx::query_scalar("select datistemplate from pg_database where datname = $1");
    found
        .bind(name)
        .fetch_optional(connection)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .unwrap_or(false)
}
