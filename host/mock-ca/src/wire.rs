//! Connections that can be cut by who answers on them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Accepts connections that have scissors.
#[derive(Debug)]
pub(crate) struct Wires(pub(crate) TcpListener);

impl Listener for Wires {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Small answers must not wait for the peer's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let scissors = Scissors(Arc::new(AtomicUsize::new(usize::MAX)));
        (Wire { stream, scissors }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Ends a connection after some more octets.
#[derive(Clone, Debug)]
pub(crate) struct Scissors(Arc<AtomicUsize>);

impl Scissors {
    /// From now on so many octets go to the client; then the connection ends.
    pub(crate) fn cut_after(&self, octets: usize) {
        self.0.store(octets, Ordering::SeqCst);
    }
}

impl Connected<IncomingStream<'_, Wires>> for Scissors {
    fn connect_info(stream: IncomingStream<'_, Wires>) -> Self {
        stream.io().scissors.clone()
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    scissors: Scissors,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let left = self.scissors.0.load(Ordering::SeqCst);
        if left == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let some = &octets[..octets.len().min(left)];
        let written = Pin::new(&mut self.stream).poll_write(context, some);
        if let Poll::Ready(Ok(count)) = written
            && left != usize::MAX
        {
            self.scissors.cut_after(left - count);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
