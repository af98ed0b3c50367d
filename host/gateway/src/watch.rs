//! The patience with one connection: who sends nothing, a head that never ends, who takes nothing
//! of an answer. The body has a timeout of its own where it is read.
//!
//! It lies between the socket and HTTP, so what a client may do to a connection is bounded before
//! anything is parsed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::limits;

/// Nothing is under way.
const IDLE: u8 = 0;
/// A head has begun.
const HEAD: u8 = 1;
/// A request is being served.
const BUSY: u8 = 2;

/// What a connection and the requests on it know of each other.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    phase: AtomicU8,
    /// Whether anything was read since the last request ended.
    read: AtomicBool,
    ended: AtomicU8,
    served: AtomicU64,
}

/// Why a connection was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Idle,
    SlowHead,
    SlowReader,
}

impl Connection {
    /// A request has come: whether it came before the last one was answered, and which one on this
    /// connection it is, counted from 1.
    pub(crate) fn begin(&self) -> (bool, u64) {
        self.phase.store(BUSY, Ordering::Relaxed);
        let read = self.read.swap(false, Ordering::Relaxed);
        let served = self.served.fetch_add(1, Ordering::Relaxed);
        (served > 0 && !read, served + 1)
    }

    /// It is answered.
    pub(crate) fn end(&self) {
        self.phase.store(IDLE, Ordering::Relaxed);
    }

    /// Why the connection was cut, if it was.
    pub(crate) fn cut(&self) -> Option<Cut> {
        match self.ended.load(Ordering::Relaxed) {
            1 => Some(Cut::Idle),
            2 => Some(Cut::SlowHead),
            3 => Some(Cut::SlowReader),
            _ => None,
        }
    }

    fn cut_for(&self, cut: Cut) -> io::Error {
        let code = match cut {
            Cut::Idle => 1,
            Cut::SlowHead => 2,
            Cut::SlowReader => 3,
        };
        self.ended.store(code, Ordering::Relaxed);
        io::ErrorKind::TimedOut.into()
    }
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) write: Duration,
}

/// A stream with a clock.
#[derive(Debug)]
pub(crate) struct Watched<'c, S> {
    stream: S,
    connection: &'c Connection,
    patience: Patience,
    /// The phase that `since` belongs to.
    seen: u8,
    since: Instant,
    /// It may go off too early: the deadline is looked at then.
    timer: Pin<Box<Sleep>>,
    /// While a write makes no progress.
    stuck: Option<Pin<Box<Sleep>>>,
    /// At the end: how long, and how much is still read.
    linger: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<'c, S> Watched<'c, S> {
    pub(crate) fn new(stream: S, connection: &'c Connection, patience: Patience) -> Self {
        Watched {
            stream,
            connection,
            patience,
            seen: IDLE,
            since: Instant::now(),
            timer: Box::pin(sleep(patience.idle.min(patience.head))),
            stuck: None,
            linger: None,
        }
    }

    /// Nothing has come: is it time to give up?
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let phase = self.connection.phase.load(Ordering::Relaxed);
        if phase == BUSY {
            self.seen = BUSY;
            return Poll::Pending;
        }
        if phase != self.seen {
            self.seen = phase;
            self.since = Instant::now();
        }
        let (limit, cut) = match phase {
            HEAD => (self.patience.head, Cut::SlowHead),
            _ => (self.patience.idle, Cut::Idle),
        };
        let deadline = self.since + limit;
        if self.timer.deadline() > deadline {
            self.timer.as_mut().reset(deadline);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(self.connection.cut_for(cut));
            }
            self.timer.as_mut().reset(deadline);
        }
    }

    /// What came of a write.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stuck = None;
            return result;
        }
        let patience = self.patience.write;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(self.connection.cut_for(Cut::SlowReader)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            let some = read.is_ok() && buf.filled().len() > before;
            let connection = self.connection;
            if some && connection.phase.load(Ordering::Relaxed) == IDLE {
                connection.phase.store(HEAD, Ordering::Relaxed);
                connection.read.store(true, Ordering::Relaxed);
                self.seen = HEAD;
                self.since = Instant::now();
            }
            return Poll::Ready(read);
        }
        self.wait(cx).map(Err)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, octets);
        self.written(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, result)
    }

    /// A socket that is closed with octets unread is reset, and with it what was written last: an
    /// answer to a request that was too long would never arrive.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let result = Pin::new(&mut this.stream).poll_shutdown(cx);
            ready!(this.written(cx, result))?;
        }
        let (time, most) = limits::LINGER;
        let (timer, left) = this
            .linger
            .get_or_insert_with(|| (Box::pin(sleep(time)), most));
        let mut octets = [0; 4096];
        loop {
            if *left == 0 || timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut unread = ReadBuf::new(&mut octets);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut unread)) {
                Ok(()) if !unread.filled().is_empty() => {
                    *left = left.saturating_sub(unread.filled().len());
                }
                // The other end has closed too, in one way or the other.
                _ => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.written(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PATIENCE: Patience = Patience {
        idle: Duration::from_millis(400),
        head: Duration::from_millis(200),
        write: Duration::from_millis(100),
    };

    /// A machine that is busy is late, never early.
    fn check(began: Instant, least: Duration) {
        let took = began.elapsed();
        assert!(
            took >= least && took < least + Duration::from_secs(5),
            "{took:?}"
        );
    }

    #[tokio::test]
    async fn who_sends_nothing_is_left_after_the_idle_time() {
        let connection = Connection::default();
        let (_client, server) = duplex(64);
        let began = Instant::now();
        let mut watched = Watched::new(server, &connection, PATIENCE);
        let error = watched.read_u8().await.expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(connection.cut(), Some(Cut::Idle));
        check(began, PATIENCE.idle);
    }

    #[tokio::test]
    async fn a_head_that_drips_is_cut_all_the_same() {
        let connection = Connection::default();
        let (mut client, server) = duplex(64);
        let began = Instant::now();
        let mut watched = Watched::new(server, &connection, PATIENCE);
        let drip = async {
            while client.write_u8(b'x').await.is_ok() {
                sleep(Duration::from_millis(30)).await;
            }
        };
        let read = async {
            let error = loop {
                if let Err(error) = watched.read_u8().await {
                    break error;
                }
            };
            drop(watched);
            error
        };
        let (error, ()) = tokio::join!(read, drip);
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(connection.cut(), Some(Cut::SlowHead));
        check(began, PATIENCE.head);
    }

    #[tokio::test]
    async fn a_request_that_is_served_has_no_clock_and_the_next_one_has_a_new_one() {
        let connection = Connection::default();
        let (mut client, server) = duplex(64);
        let mut watched = Watched::new(server, &connection, PATIENCE);
        client.write_u8(b'x').await.expect("room");
        watched.read_u8().await.expect("an octet");
        assert_eq!(connection.begin(), (false, 1));
        let waited = tokio::time::timeout(PATIENCE.idle * 3, watched.read_u8()).await;
        assert!(waited.is_err(), "cut while a request is served");
        connection.end();
        let began = Instant::now();
        watched.read_u8().await.expect_err("nothing comes");
        assert_eq!(connection.cut(), Some(Cut::Idle));
        check(began, PATIENCE.idle);
    }

    #[tokio::test]
    async fn who_takes_nothing_is_left() {
        let connection = Connection::default();
        let (_client, server) = duplex(8);
        let began = Instant::now();
        let mut watched = Watched::new(server, &connection, PATIENCE);
        let error = watched.write_all(&[0; 64]).await.expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(connection.cut(), Some(Cut::SlowReader));
        check(began, PATIENCE.write);
    }

    #[tokio::test]
    async fn what_is_still_on_its_way_is_read_before_the_end() {
        let connection = Connection::default();
        let (mut client, server) = duplex(8);
        let mut watched = Watched::new(server, &connection, PATIENCE);
        let writing = async {
            let written = client.write_all(&[0; 64]).await;
            drop(client);
            written
        };
        let (ended, written) = tokio::join!(watched.shutdown(), writing);
        ended.expect("an end");
        written.expect("everything was taken");
    }

    #[tokio::test]
    async fn a_request_that_came_with_the_last_one_is_noticed() {
        let connection = Connection::default();
        let (mut client, server) = duplex(64);
        let mut watched = Watched::new(server, &connection, PATIENCE);
        client.write_all(b"two").await.expect("room");
        let mut octets = [0; 3];
        watched.read_exact(&mut octets).await.expect("both");
        assert_eq!(connection.begin(), (false, 1));
        connection.end();
        assert_eq!(connection.begin(), (true, 2));
    }
}
