//! Child processes that never outlive their test, and whose words are never lost.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Whatever takes longer hangs. Generous, because a test may share its machine with a
/// compiler.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running program whose two streams are read as it writes them, so that it never
/// stalls on a full pipe. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    heard: Arc<Heard>,
}

/// How a program ended and what it said.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

#[derive(Debug, Default)]
struct Heard {
    words: Mutex<Words>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Words {
    stdout: String,
    stderr: String,
    closed: usize,
}

impl Heard {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the words give what is looked for, or both streams are closed.
    fn wait<T>(&self, patience: Duration, mut look: impl FnMut(&Words) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut words = self.words();
        loop {
            if let Some(found) = look(&words) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if words.closed == 2 || left.is_zero() {
                return None;
            }
            words = self
                .changed
                .wait_timeout(words, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Process {
    /// Starts a program. What it needs to be there is said when it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                let program = command.get_program().display();
                panic!("these tests need the program `{program}`, which cannot be started: {error}")
            });
        let heard = Arc::new(Heard::default());
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let stderr = child.stderr.take().expect("a pipe was asked for");
        listen(&heard, stdout, |words| &mut words.stdout);
        listen(&heard, stderr, |words| &mut words.stderr);
        Self { child, name, heard }
    }

    /// Waits for a line on either stream and returns what `find` makes of it.
    ///
    /// # Panics
    ///
    /// When the program ends or [`PATIENCE`] does before there is such a line.
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&str) -> Option<T>) -> T {
        self.heard
            .wait(PATIENCE, |words| {
                let whole = |text: &str| text[..text.rfind('\n').map_or(0, |end| end + 1)].len();
                words.stdout[..whole(&words.stdout)]
                    .lines()
                    .chain(words.stderr[..whole(&words.stderr)].lines())
                    .find_map(&mut find)
            })
            .unwrap_or_else(|| panic!("{}: no {what}; it said:\n{}", self.name, self.said()))
    }

    /// Everything it has said so far, the standard output first.
    pub fn said(&self) -> String {
        let words = self.heard.words();
        format!("{}{}", words.stdout, words.stderr)
    }

    /// Its resident memory, in KiB.
    ///
    /// # Panics
    ///
    /// When it has ended already.
    pub fn memory_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number
            .and_then(|number| number.parse().ok())
            .expect("VmRSS")
    }

    /// Ends it with SIGKILL: it has no chance to tidy up.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for")
    }

    /// Asks it to end: SIGTERM.
    ///
    /// # Panics
    ///
    /// When it has ended already.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Lets it sleep, wherever it is: SIGSTOP.
    ///
    /// # Panics
    ///
    /// When it has ended already.
    pub fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on: SIGCONT.
    ///
    /// # Panics
    ///
    /// When it has ended already.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        succeed(Command::new("kill").args([signal, &pid]));
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    ///
    /// When that takes longer than [`PATIENCE`].
    pub fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    /// Waits until it ends by itself, for programs that have much to do.
    ///
    /// # Panics
    ///
    /// When that takes longer than `patience`.
    pub fn end_within(mut self, patience: Duration) -> Ended {
        let closed = self
            .heard
            .wait(patience, |words| (words.closed == 2).then_some(()));
        assert!(
            closed.is_some(),
            "{}: still running after {} s; it said:\n{}",
            self.name,
            patience.as_secs(),
            self.said()
        );
        let status = self.child.wait().expect("a child can be waited for");
        let words = self.heard.words();
        Ended {
            code: status.code(),
            stdout: words.stdout.clone(),
            stderr: words.stderr.clone(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(
    heard: &Arc<Heard>,
    stream: impl Read + Send + 'static,
    which: fn(&mut Words) -> &mut String,
) {
    let heard = Arc::clone(heard);
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            which(&mut heard.words()).push_str(&String::from_utf8_lossy(&line));
            heard.changed.notify_all();
            line.clear();
        }
        heard.words().closed += 1;
        heard.changed.notify_all();
    });
}

/// Runs a program that must succeed and returns its standard output.
///
/// # Panics
///
/// When it does not.
pub fn succeed(command: &mut Command) -> String {
    let ended = Process::start(command).end();
    assert_eq!(
        ended.code,
        Some(0),
        "{command:?} said:\n{}{}",
        ended.stdout,
        ended.stderr
    );
    ended.stdout
}
