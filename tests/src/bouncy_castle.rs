//! The third implementation: programs of ours on Bouncy Castle, in `tests/peers/java`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::succeed;

/// Where Debian's packages libbcpkix-java, libbcprov-java and libbcutil-java put their jars.
const JARS: &str =
    "/usr/share/java/bcpkix.jar:/usr/share/java/bcprov.jar:/usr/share/java/bcutil.jar";

/// The programs, compiled.
#[derive(Debug)]
pub struct BouncyCastle {
    classes: PathBuf,
}

impl BouncyCastle {
    /// Compiles all programs into the folder `classes`.
    ///
    /// # Panics
    ///
    /// When there is no Java compiler or no Bouncy Castle: `cargo xtask setup` installs both.
    pub fn compile(classes: &Path) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/java");
        let programs = sources
            .read_dir()
            .expect("the programs")
            .filter_map(|entry| {
                let path = entry.expect("a file").path();
                (path.extension()? == "java").then_some(path)
            });
        let mut command = Command::new("javac");
        command.args(["-encoding", "UTF-8", "-cp", JARS, "-d"]);
        succeed(command.arg(classes).args(programs));
        Self {
            classes: classes.to_owned(),
        }
    }

    /// A program, still without its arguments.
    pub fn program(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(format!("{}:{JARS}", self.classes.display()))
            .arg(class);
        command
    }
}
