//! A PostgreSQL server of a test's own: Debian's program, its data in a temporary folder, a free
//! port of the loopback.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, succeed};

/// The server refuses to run for root, so then it runs for the user that owns nothing, `nobody` of
/// every Linux.
const NOBODY: u32 = 65534;

/// A running server. It is stopped when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    port: u16,
    process: Option<Process>,
}

impl Postgres {
    /// Makes an empty cluster and starts it.
    ///
    /// # Panics
    ///
    /// When there is no PostgreSQL on this machine.
    pub fn start() -> Self {
        Self::with_settings(&[], "")
    }

    /// As [`start`](Self::start), with files in the folder of the data and with settings as in
    /// `postgresql.conf`, whose relative names lead there.
    pub fn with_settings(files: &[(&str, &str)], settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root gives folders away");
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut server = Postgres {
            folder,
            port,
            process: None,
        };
        succeed(
            server
                .command("initdb")
                .args(["--auth=trust", "--username=abide", "--encoding=UTF8"])
                .args(["--locale=C", "--no-sync", "--pgdata"])
                .arg(server.data()),
        );
        for (name, contents) in files {
            let path = server.data().join(name);
            fs::write(&path, contents).expect("a file for the server");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file of its own");
            if is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("root gives files away");
            }
        }
        let configuration = server.data().join("postgresql.auto.conf");
        fs::write(&configuration, settings).expect("initdb has made the folder");
        server.start_again();
        server
    }

    /// Starts it after [`stop`](Self::stop), with the same data at the same port.
    pub fn start_again(&mut self) {
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string(), "-h", "127.0.0.1"])
            .arg("-k")
            .arg(self.folder.path())
            // Nobody pulls the plug, and a test has not the time to wait for disks.
            .args(["-c", "fsync=off"]);
        let process = Process::start(&mut command);
        process.wait_for("word that it is ready", |line| {
            line.contains("ready to accept connections").then_some(())
        });
        self.process = Some(process);
    }

    /// Stops it without asking anybody: all connections break, and it recovers when it is started
    /// again.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            succeed(
                self.command("pg_ctl")
                    .args(["stop", "--mode=immediate", "--pgdata"])
                    .arg(self.data()),
            );
            process.end();
        }
    }

    /// Makes an empty database and gives its address.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.url(name)
    }

    /// The address of a database.
    pub fn url(&self, name: &str) -> String {
        format!("postgresql://abide@127.0.0.1:{}/{name}", self.port)
    }

    /// Runs SQL with Debian's client and gives what it prints, without headings.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = succeed(
            self.command("psql")
                .args([
                    "--no-psqlrc",
                    "--tuples-only",
                    "--no-align",
                    "-v",
                    "ON_ERROR_STOP=1",
                ])
                .args(["--dbname", &self.url(database), "--command", sql]),
        );
        output.trim_end().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(programs().join(program));
        command
            .env("LC_ALL", "C")
            // The working directory of a test may be closed to the other user.
            .current_dir(self.folder.path());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Killed, it would leave shared memory behind.
        let stopped = self
            .command("pg_ctl")
            .args(["stop", "--mode=immediate", "--silent", "--pgdata"])
            .arg(self.data())
            .output();
        drop(stopped);
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// Debian keeps the programs of each version in a folder of its own, outside of the path.
fn programs() -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| {
        let place = Path::new("/usr/lib/postgresql");
        panic!(
            "these tests need PostgreSQL, which is not in {}; `cargo xtask setup` installs it",
            place.display()
        )
    })
}
