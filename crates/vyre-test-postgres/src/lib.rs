//! A PostgreSQL server for the tests and measurements of campaigns: in a temporary folder, on a Unix socket, with fsync.
//!
//! The server refuses to run as root, so for root it runs as the user of Debian's package. If PostgreSQL is not installed everything here
//! panics and says what to install: no test about it may pass without it.

mod harness;
mod numbers;

pub use harness::{Test, run};
pub use numbers::{plan, record};

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user that owns the server and may do everything.
pub const OWNER: &str = "owner";

/// A server that runs until it is dropped.
pub struct Server {
    folder: TempDir,
    process: Option<Child>,
    options: Vec<String>,
    port: u16,
    databases: AtomicU32,
}

/// Where the programs of the server are.
fn programs() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        installed.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).collect();
    found.sort();
    found.pop().expect("PostgreSQL is not installed, and these tests are about it: apt-get install postgresql")
}

/// A program of the server, as the user that it runs as.
fn program(name: &str) -> Command {
    let mut command = Command::new(programs().join(name));
    if let Some((user, group)) = server_user() {
        command.uid(user).gid(group);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).env_remove("PGPORT").env("LC_ALL", "C");
    command
}

/// The user of Debian's package, if this is root.
fn server_user() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let is_root = status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    let users = fs::read_to_string("/etc/passwd").expect("users");
    is_root.then(|| {
        let line = users.lines().find(|line| line.starts_with("postgres:")).expect("the package of PostgreSQL has made its user");
        let mut parts = line.split(':').skip(2).map(|part| part.parse().expect("a number"));
        (parts.next().expect("a user"), parts.next().expect("a group"))
    })
}

impl Server {
    /// Starts one, with these settings beside the usual ones.
    #[must_use]
    pub fn start(options: &[&str]) -> Server {
        let folder = tempfile::Builder::new().prefix("vyre-postgres").tempdir().expect("a temporary folder");
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), everyone).expect("the folder is ours");
        for part in ["data", "socket"] {
            let part = folder.path().join(part);
            fs::create_dir(&part).expect("a folder");
            fs::set_permissions(&part, fs::Permissions::from_mode(0o700)).expect("the folder is ours");
            if let Some((user, group)) = server_user() {
                chown(&part, Some(user), Some(group)).expect("root may");
            }
        }
        fs::set_permissions(folder.path().join("socket"), fs::Permissions::from_mode(0o755)).expect("root may");
        let data = folder.path().join("data");
        let made = program("initdb")
            .args(["-N", "-E", "UTF8", "-U", OWNER, "-A", "trust", "-D"])
            .arg(&data)
            .stderr(Stdio::piped())
            .output();
        let made = made.expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let options = options.iter().map(|option| (*option).to_string()).collect();
        let mut server = Server { folder, process: None, options, port: 5432, databases: AtomicU32::new(0) };
        server.launch();
        server
    }

    /// The folder of everything that belongs to the server.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the server's data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn launch(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("log")).expect("a log");
        let mut command = program("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path().join("socket"));
        let usual = ["listen_addresses=", "fsync=on", "max_connections=200", "shared_buffers=64MB", "log_min_messages=fatal"];
        for option in usual.iter().copied().chain(self.options.iter().map(String::as_str)) {
            command.args(["-c", option]);
        }
        self.process = Some(command.stderr(log).spawn().expect("the server starts"));
        self.wait_until_there();
    }

    /// Ends the server at once, as a power cut would, and starts it again: it has to replay its log.
    pub fn restart_immediately(&mut self) {
        self.signal("QUIT");
        if let Some(mut process) = self.process.take() {
            process.wait().expect("it ends");
        }
        self.launch();
    }

    /// Ends the server.
    pub fn stop(&mut self) {
        self.signal("INT");
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }

    /// Restarts the server with TLS on a port of the loopback address; gives the port and the server's certificate.
    pub fn encrypt(&mut self) -> (u16, PathBuf) {
        let folder = self.data();
        let (key, certificate) = (folder.join("server.key"), folder.join("server.crt"));
        let mut command = Command::new("openssl");
        if let Some((user, group)) = server_user() {
            command.uid(user).gid(group);
        }
        command.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]);
        command.arg("-keyout").arg(&key).arg("-out").arg(&certificate).stderr(Stdio::null());
        assert!(command.status().expect("openssl is installed").success());
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is there");
        let shown = self.folder.path().join("server.crt");
        fs::copy(&certificate, &shown).expect("it is there");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        self.stop();
        self.options.extend(["listen_addresses=127.0.0.1".into(), format!("port={port}"), "ssl=on".into()]);
        self.port = port;
        self.launch();
        (port, shown)
    }

    /// Starts the server after [`Server::stop`].
    pub fn start_again(&mut self) {
        self.launch();
    }

    fn signal(&self, signal: &str) {
        if let Some(process) = &self.process {
            send(process.id(), signal);
        }
    }

    fn wait_until_there(&self) {
        let began = Instant::now();
        while self.sql_of("postgres", "SELECT 1").is_err() {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not come: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Creates an empty database, and gives its name.
    #[must_use]
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("db{number}");
        self.sql_of("postgres", &format!("CREATE DATABASE {name}")).expect("a database");
        name
    }

    /// The URL of a database, for this user.
    #[must_use]
    pub fn url(&self, user: &str, database: &str) -> String {
        let socket = self.folder.path().join("socket").display().to_string().replace('/', "%2F");
        format!("postgres://{user}@{socket}/{database}")
    }

    /// What `psql` says, as the owner; rows are lines and columns have `|` between them.
    pub fn sql(&self, database: &str, text: &str) -> String {
        self.sql_of(database, text).unwrap_or_else(|said| panic!("{text}: {said}"))
    }

    /// The same for what may fail.
    ///
    /// # Errors
    ///
    /// What `psql` wrote to its standard error.
    pub fn sql_of(&self, database: &str, text: &str) -> Result<String, String> {
        let mut command = Command::new(programs().join("psql"));
        command.arg("-h").arg(self.folder.path().join("socket")).args([
            "-p",
            &self.port.to_string(),
            "-U",
            OWNER,
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            database,
        ]);
        let output = command.args(["-c", text]).env("PGCONNECT_TIMEOUT", "5").output().expect("psql starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_string();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

/// Sends a signal to one process.
pub fn send(process: u32, signal: &str) {
    let _ = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).stderr(Stdio::null()).status();
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
