//! Connections to a PostgreSQL server, and what its errors mean to the user.
//!
//! A URL may contain a password. It is read once; everything that is shown is made from the parts that are not secret.

use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Row};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How long the other end of a connection may be silent on the network.
const SILENCE: Duration = Duration::from_secs(60);

/// Why the database did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DbError {
    /// The URL cannot be used.
    Url(String),
    /// The server is out of reach at this moment: not running, starting, full, or the connection was cut. Trying again may help.
    Away(String),
    /// The server does not let this user in, or does not allow this.
    Denied(String),
    /// The database has no campaigns.
    NoCampaigns(String),
    /// The tables of the database are those of another version of vyre.
    Layout {
        /// The layout that was found.
        found: String,
        /// Where.
        place: String,
    },
    /// What was asked for is impossible: there is no such campaign, or the name is taken.
    Refused(String),
    /// The database contains something that vyre did not write.
    Damaged(String),
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DbError::Url(what) => write!(f, "the URL of the database: {what}; write postgres://USER@HOST/DATABASE"),
            DbError::Away(what) | DbError::Refused(what) | DbError::Damaged(what) => f.write_str(what),
            DbError::Denied(what) => f.write_str(what),
            DbError::NoCampaigns(place) => {
                write!(f, "{place} has no campaigns; `vyre campaign create` makes the tables and the first one")
            }
            DbError::Layout { found, place } => {
                let known = crate::LAYOUT;
                let who = match found.parse::<i32>() {
                    Ok(found) if found > known => "use a newer vyre",
                    Ok(_) | Err(_) => "use the older vyre that made them, or another database",
                };
                write!(f, "the tables of {place} have layout {found}, and this vyre knows layout {known}: {who}")
            }
        }
    }
}

impl std::error::Error for DbError {}

/// A server and a database on it.
#[derive(Clone)]
pub struct Db {
    config: Config,
    roots: Option<PathBuf>,
    place: String,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl Db {
    /// The database of a URL, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require&sslrootcert=FILE`. A host that begins with `/`
    /// (`%2F` in a URL, or `?host=/run/postgresql`) is the folder of a Unix socket. This does not connect.
    ///
    /// # Errors
    ///
    /// If it is not such a URL. The error does not repeat it, because it may contain a password.
    pub fn new(url: &str) -> Result<Db, DbError> {
        let (base, query) = url.split_once('?').map_or((url, ""), |(base, query)| (base, query));
        let mut roots = None;
        let mut kept = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslrootcert", file)) => roots = Some(PathBuf::from(file.replace("%2F", "/"))),
                // The certificate is always verified here, so these ask for nothing more.
                Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
                Some(_) | None => kept.push(option),
            }
        }
        let url = if kept.is_empty() { base.to_string() } else { format!("{base}?{}", kept.join("&")) };
        if !crate::is_url(&url) {
            return Err(DbError::Url("it does not begin with postgres://".into()));
        }
        let mut config: Config = url.parse().map_err(|error: postgres::Error| {
            // The library may repeat the value of an option, which may be a password.
            let said = error.to_string();
            let kind = if said.contains("option") { "an option is unknown or has a wrong value" } else { "it cannot be read" };
            DbError::Url(kind.into())
        })?;
        if config.get_hosts().is_empty() {
            return Err(DbError::Url("it names no host".into()));
        }
        let place = place(&config);
        config.application_name("vyre").connect_timeout(CONNECT);
        // A server whose machine is gone is noticed within a minute, and not after the quarter of an hour that is usual.
        config.tcp_user_timeout(SILENCE).keepalives_idle(SILENCE / 2).keepalives_interval(SILENCE / 6).keepalives_retries(3);
        Ok(Db { config, roots, place })
    }

    /// The URL without secrets.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A connection.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses.
    pub fn connect(&self) -> Result<Connection, DbError> {
        let asks = self.config.get_ssl_mode() != postgres::config::SslMode::Disable;
        let is_local = self.config.get_hosts().iter().all(|host| matches!(host, postgres::config::Host::Unix(_)));
        let client = if asks && !is_local { self.config.connect(self.tls()?) } else { self.config.connect(NoTls) };
        let client = client.map_err(|error| self.error(&error))?;
        Ok(Connection { client, db: self.clone() })
    }

    fn tls(&self) -> Result<MakeRustlsConnect, DbError> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(file) => {
                let wrong = |why: String| DbError::Url(format!("sslrootcert {}: {why}", file.display()));
                for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))? {
                    let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                    roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| DbError::Url(format!("TLS: {error}")))?;
        Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
    }

    /// What an error of the library means.
    fn error(&self, error: &postgres::Error) -> DbError {
        let place = &self.place;
        let Some(said) = error.as_db_error() else {
            // The causes say more than the library's own words.
            let mut why = error.to_string();
            let mut below = std::error::Error::source(error);
            while let Some(cause) = below {
                let text = cause.to_string();
                if !why.contains(&text) {
                    why = format!("{why}: {text}");
                }
                below = cause.source();
            }
            if why.contains("certificate") || why.contains("TLS") {
                return DbError::Denied(format!("{place}: {why}"));
            }
            if why.contains("password missing") {
                return DbError::Denied(format!("{place} asks for a password, and the URL has none"));
            }
            return DbError::Away(format!("{place} is out of reach: {why}"));
        };
        let message = said.message();
        match said.code() {
            code if *code == SqlState::DISK_FULL => {
                DbError::Away(format!("the disk of {place} is full ({message}); what was committed is safe"))
            }
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => DbError::Denied(format!(
                "{place} does not allow this: {message}; ask whoever made the campaign for `GRANT {} TO …`",
                crate::WORKERS
            )),
            code if *code == SqlState::INVALID_SCHEMA_NAME
                || *code == SqlState::UNDEFINED_TABLE
                || *code == SqlState::UNDEFINED_FUNCTION =>
            {
                DbError::NoCampaigns(place.clone())
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => DbError::Url(format!("{place}: {message}")),
            code => match (code.code(), &code.code()[..2]) {
                ("VY001", _) => DbError::Layout { found: message.trim_start_matches("layout ").into(), place: place.clone() },
                (_, "VY") => DbError::Refused(message.into()),
                (_, "28") => DbError::Denied(format!("{place} does not let this user in: {message}")),
                // Connections, resources, intervention of an operator, serialization and deadlocks.
                (_, "08" | "53" | "57" | "40") => DbError::Away(format!("{place}: {message}")),
                (code, _) => DbError::Damaged(format!("{place}: {message} ({code})")),
            },
        }
    }
}

fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(postgres::config::Host::Tcp(host)) => host.clone(),
        Some(postgres::config::Host::Unix(folder)) => folder.display().to_string(),
        None => "nowhere".into(),
    };
    let port = config.get_ports().first().filter(|port| **port != 5432).map_or(String::new(), |port| format!(":{port}"));
    let user = config.get_user().map_or(String::new(), |user| format!("{user}@"));
    format!("postgres://{user}{host}{port}/{}", config.get_dbname().unwrap_or_default())
}

/// A connection to a database.
///
/// Statements are not prepared by name: behind a pooler the next one may go to another session.
pub struct Connection {
    client: Client,
    db: Db,
}

/// A value that a statement takes, and its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

impl Connection {
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The rows of a query.
    pub(crate) fn rows(&mut self, text: &str, params: &[Param<'_>]) -> Result<Vec<Row>, DbError> {
        self.client.query_typed(text, params).map_err(|error| self.db.error(&error))
    }

    /// The one row of a query that always has one.
    pub(crate) fn row(&mut self, text: &str, params: &[Param<'_>]) -> Result<Row, DbError> {
        let rows = self.rows(text, params)?;
        rows.into_iter().next().ok_or_else(|| DbError::Damaged(format!("{}: an answer has no row", self.db.place)))
    }

    /// Does several things in one transaction: all of them or nothing.
    pub(crate) fn together<T>(&mut self, work: impl FnOnce(&mut Connection) -> Result<T, DbError>) -> Result<T, DbError> {
        self.batch("BEGIN")?;
        match work(self) {
            Ok(value) => self.batch("COMMIT").map(|()| value),
            Err(error) => {
                // If this does not arrive the session ends, which rolls back too.
                let _ = self.batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Statements without values.
    pub(crate) fn batch(&mut self, text: &str) -> Result<(), DbError> {
        self.client.batch_execute(text).map_err(|error| self.db.error(&error))
    }

    /// Calls `each` with the rows of a query as they arrive.
    pub(crate) fn each(
        &mut self,
        text: &str,
        params: &[Param<'_>],
        mut each: impl FnMut(&Row) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        use postgres::fallible_iterator::FallibleIterator;
        let Connection { client, db } = self;
        let mut rows =
            client.query_typed_raw(text, params.iter().map(|(value, kind)| (*value, kind.clone()))).map_err(|e| db.error(&e))?;
        while let Some(row) = rows.next().map_err(|error| db.error(&error))? {
            each(&row)?;
        }
        Ok(())
    }
}

/// A value of a column, as the type that it has.
pub(crate) fn get<'r, T: postgres::types::FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, DbError> {
    row.try_get(column).map_err(|error| DbError::Damaged(format!("column {column} of an answer: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let shown = |url: &str| match Db::new(url) {
            Ok(db) => format!("{db:?} {}", db.place()),
            Err(error) => format!("{error} {error:?}"),
        };
        for url in [
            "postgres://me:s3cret@host/db",
            "postgres://me:s3cret@host:99999999/db",
            "postgres://me:s3cret@/db?port=s3cret",
            "postgres://me@host/db?password=s3cret",
            "postgres://me@host/db?passwort=s3cret&sslmode=s3cret",
            "mysql://me:s3cret@host/db",
            "postgres://me:s3cret@ho st/db?",
            "s3cret",
        ] {
            assert!(!shown(url).contains("s3cret"), "{}", shown(url));
        }
        assert_eq!(Db::new("postgres://me:s3cret@host:7777/db").unwrap().place(), "postgres://me@host:7777/db");
        assert_eq!(Db::new("postgres://me@%2Ftmp%2Fx/db").unwrap().place(), "postgres://me@/tmp/x/db");
    }
}
