//! The other side: a receiver of webhooks that starts a build for each push, once.
//!
//! It verifies the signature over the raw body, keeps the ids that it has seen in a UNIQUE column,
//! and writes the id and the build in one transaction: a repeated webhook changes nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use outbox_http::StandardWebhooks;
use serde::Deserialize;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tokio::net::{TcpListener, TcpSocket};

use crate::args::Share;
use crate::pushes::AnyError;
use crate::signature;
use crate::timeline::Timeline;

const LARGEST_BODY: usize = 2 << 20;

const SCHEMA: &str = "
    CREATE TABLE webhooks (id TEXT NOT NULL UNIQUE);
    CREATE TABLE builds (
        number INTEGER PRIMARY KEY AUTOINCREMENT, webhook_id TEXT NOT NULL,
        repository TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL
    );";

/// What a push brings, as far as a build needs it.
#[derive(Debug, Deserialize)]
struct Pushed {
    repository: String,
    before: String,
    after: String,
}

/// A running receiver.
#[derive(Debug)]
pub(crate) struct CiServer {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    scheme: StandardWebhooks,
    builds: SqlitePool,
    flaky: Share,
    /// Answers 410 while this is set.
    gone: AtomicBool,
    requests: AtomicU64,
    duplicates: AtomicU64,
}

/// What goes wrong with a request.
enum Fault {
    /// Nothing.
    None,
    /// The build is not started.
    Refused,
    /// The build is started and the answer lost.
    AnswerLost,
}

impl CiServer {
    /// A server that is up after `outage`, and says so; until then connections are refused.
    pub(crate) async fn start(
        name: &'static str,
        folder: &Path,
        outage: Duration,
        flaky: Share,
        timeline: &Arc<Timeline>,
    ) -> Result<Self, AnyError> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join(name).with_extension("db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal);
        let builds = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await?;
        sqlx::raw_sql(SCHEMA).execute(&builds).await?;

        // A bound socket that does not listen refuses connections and keeps its port.
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = socket.local_addr()?;
        let state = Arc::new(State {
            scheme: signature::scheme()?,
            builds,
            flaky,
            gone: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
        });
        let (serving, timeline) = (Arc::clone(&state), Arc::clone(timeline));
        tokio::spawn(async move {
            tokio::time::sleep(outage).await;
            let listener = socket.listen(1024)?;
            if !outage.is_zero() {
                timeline.step(name, "up");
            }
            serving.serve(listener).await
        });
        Ok(Self { address, state })
    }

    /// Where webhooks go.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks/push", self.address)
    }

    /// Answers 410 from now on, or no longer.
    pub(crate) fn set_gone(&self, gone: bool) {
        self.state.gone.store(gone, Ordering::Relaxed);
    }

    /// Repeated webhooks that changed nothing.
    pub(crate) fn duplicates(&self) -> u64 {
        self.state.duplicates.load(Ordering::Relaxed)
    }

    /// The ids of the webhooks that started a build, one for each build, in that order.
    pub(crate) async fn builds(&self) -> Result<Vec<String>, AnyError> {
        let ids = sqlx::query_scalar("SELECT webhook_id FROM builds ORDER BY number")
            .fetch_all(&self.state.builds)
            .await?;
        Ok(ids)
    }

    /// How many builds did not start from where the previous one of their repository had ended.
    pub(crate) async fn out_of_order(&self) -> Result<i64, AnyError> {
        let count = sqlx::query_scalar(
            "SELECT count(*) FROM (
                SELECT before, lag(after) OVER (PARTITION BY repository ORDER BY number) AS previous
                FROM builds
            ) WHERE previous <> before",
        )
        .fetch_one(&self.state.builds)
        .await?;
        Ok(count)
    }
}

impl State {
    async fn serve(self: Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            let state = Arc::clone(&self);
            let service = service_fn(move |request| Arc::clone(&state).answer(request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }

    /// An error closes the connection without an answer.
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, AnyError> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, LARGEST_BODY).collect().await?.to_bytes();
        let fault = self.next_fault();
        if matches!(fault, Fault::Refused) {
            return Ok(say(StatusCode::SERVICE_UNAVAILABLE, "overloaded"));
        }
        // The sender may hang up at any time; what has begun is finished all the same.
        let answer = tokio::spawn(self.receive(head.headers, body)).await??;
        match fault {
            Fault::AnswerLost => Err("the connection broke".into()),
            _ => Ok(answer),
        }
    }

    async fn receive(
        self: Arc<Self>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Full<Bytes>>, AnyError> {
        let Some(id) = signature::verified_id(&self.scheme, &headers, &body) else {
            return Ok(say(StatusCode::UNAUTHORIZED, "bad signature"));
        };
        if self.gone.load(Ordering::Relaxed) {
            return Ok(say(StatusCode::GONE, "this hook was removed"));
        }
        let Ok(push) = serde_json::from_slice(&body) else {
            return Ok(say(StatusCode::UNPROCESSABLE_ENTITY, "not a push"));
        };
        if self.start_build(&id, &push).await? {
            return Ok(say(StatusCode::ACCEPTED, "build started"));
        }
        self.duplicates.fetch_add(1, Ordering::Relaxed);
        Ok(say(StatusCode::CONFLICT, "this build was started before"))
    }

    /// False where this webhook was here before.
    async fn start_build(&self, id: &str, push: &Pushed) -> Result<bool, AnyError> {
        let mut tx = self.builds.begin().await?;
        let new = sqlx::query("INSERT INTO webhooks (id) VALUES ($1) ON CONFLICT DO NOTHING")
            .bind(id)
            .execute(&mut *tx)
            .await?;
        if new.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query(
            "INSERT INTO builds (webhook_id, repository, before, after) VALUES ($1, $2, $3, $4)",
        )
        .bind(id)
        .bind(&push.repository)
        .bind(&push.before)
        .bind(&push.after)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Spread evenly by a golden-ratio sequence: of any hundred requests, the share fails.
    fn next_fault(&self) -> Fault {
        const STEP: f64 = 0.618_033_988_749_895;
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let number = u32::try_from(n % 1_000_003).unwrap_or(0);
        let at = (f64::from(number) * STEP).fract();
        match at {
            at if at >= self.flaky.0 => Fault::None,
            at if at >= self.flaky.0 / 2.0 => Fault::Refused,
            _ => Fault::AnswerLost,
        }
    }
}

fn say(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
