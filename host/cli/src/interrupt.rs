//! SIGINT and SIGTERM, so that a wait ends with a word instead of silence.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The two signals that ask a command to end.
#[derive(Debug)]
pub(crate) struct Interrupt {
    int: Option<Signal>,
    term: Option<Signal>,
}

impl Interrupt {
    /// Listens from now on. Where signals cannot be listened to they keep their
    /// usual effect, which loses nothing: everything needed is in the store.
    pub(crate) fn new() -> Self {
        Self {
            int: signal(SignalKind::interrupt()).ok(),
            term: signal(SignalKind::terminate()).ok(),
        }
    }

    /// Returns when one of them has arrived.
    pub(crate) async fn caught(&mut self) {
        tokio::select! {
            () = next(&mut self.int) => {}
            () = next(&mut self.term) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}
