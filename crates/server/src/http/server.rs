//! The thread: it accepts connections, and ends those that take too long.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::answer::{CatalogRequest, Sources, answer};
use super::host::Hosts;
use super::limits::{HEADER_BYTES_MAX, HEADERS_MAX, Limits};
use crate::counters::Counters;

/// How long nobody is accepted after the system could not: it is short of files or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address that is listened on, and nobody answers yet.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    hosts: Hosts,
}

/// The thread that answers. It ends when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    requests: Receiver<CatalogRequest>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpListener {
    /// Listens on an address; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn bind(address: SocketAddr) -> io::Result<HttpListener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let hosts = Hosts::new(&[]);
        Ok(HttpListener { listener, hosts })
    }

    /// The same, which answers to more names than the machine's own.
    #[must_use]
    pub fn answering_to(self, names: &[String]) -> HttpListener {
        let hosts = Hosts::new(names);
        HttpListener { hosts, ..self }
    }

    /// The address, with the port that was picked.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts the thread that answers, on the CPUs of the thread that calls this; `notify` wakes
    /// control when it is asked.
    ///
    /// # Errors
    ///
    /// When the system has no thread or no files for it.
    pub fn serve(
        self,
        counters: Counters,
        limits: Limits,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<HttpServer> {
        // A connection asks once, and one that has ended may have left its question behind.
        let (sender, requests) = sync_channel(2 * limits.connections);
        let sources = Arc::new(Sources {
            counters,
            limits,
            hosts: self.hosts,
            requests: sender,
            notify: Box::new(notify),
        });
        let (end, ended) = oneshot::channel();
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().build()?;
        let body = move || {
            runtime.block_on(async {
                tokio::spawn(accept(self.listener, sources));
                // Nothing is ever sent: it ends when its other end is gone, and all tasks with it.
                let _ = ended.await;
            });
        };
        let thread = thread::Builder::new().name("http".to_owned()).spawn(body)?;
        Ok(HttpServer {
            requests,
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl HttpServer {
    /// The next who wants to know what there is to be counted.
    pub fn poll_request(&self) -> Option<CatalogRequest> {
        self.requests.try_recv().ok()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the thread for HTTP had panicked; see above");
            }
        }
    }
}

async fn accept(listener: TcpListener, sources: Arc<Sources>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!("HTTP is not answered: {error}");
            return;
        }
    };
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection for HTTP was not accepted: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= sources.limits.connections {
            if let Some(oldest) = connections.pop_front() {
                oldest.abort();
            }
        }
        let task = tokio::spawn(serve(stream, Arc::clone(&sources)));
        connections.push_back(task.abort_handle());
    }
}

/// Answers one request, and closes.
async fn serve(stream: TcpStream, sources: Arc<Sources>) {
    let limit = sources.limits.connection;
    let service = service_fn(move |request| {
        let answer = answer(request, Arc::clone(&sources));
        async { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        // The whole connection has one.
        .header_read_timeout(None)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(limit, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a connection for HTTP was not well: {error}"),
        Err(_) => tracing::debug!("a connection for HTTP took too long"),
    }
}
