//! Waking relays by notifications.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::BoxStream;
use outbox_core::sql::pg::Statements;
use outbox_core::sql::{Listen, Listener, Patience, Sql, TableNames, listen};
use outbox_core::{Error, ErrorKind, Retention, Timer, Wake, async_trait};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

/// Wakes relays by PostgreSQL's notifications, on a connection of `tokio-postgres`, the driver below
/// diesel-async.
///
/// Its connection is outside every pool; each relay that runs with it has one. It is opened again,
/// at growing intervals, when it is lost or gives no answer to a probe, and the relay then looks
/// once for what it may have missed. A relay polls all the same.
///
/// Something must notify: producers by [`PgStore::notify`](crate::PgStore::notify) after their commit, or the trigger
/// ([`PgStore::enable_notify_trigger`](crate::PgStore::enable_notify_trigger)). The server must be reached without a pooler in transaction
/// mode, which hands on no notifications.
///
/// ```
/// use outbox_core::TokioTimer;
/// use outbox_core::sql::TableNames;
/// use outbox_diesel::PgWake;
///
/// let config = "postgres://app@db.example/app".parse()?;
/// let wake = PgWake::new(config, &TableNames::default(), TokioTimer);
/// # Ok::<(), outbox_diesel::tokio_postgres::Error>(())
/// ```
#[derive(Clone)]
pub struct PgWake {
    driver: Arc<dyn Listen>,
    timer: Arc<dyn Timer>,
    patience: Patience,
}

impl PgWake {
    /// On a connection with this configuration and without TLS, for the tables of these names.
    pub fn new(config: Config, names: &TableNames, timer: impl Timer + 'static) -> Self {
        Self::with_tls(config, NoTls, names, timer)
    }

    /// The same with TLS as `tls` makes it.
    pub fn with_tls<T>(
        mut config: Config,
        tls: T,
        names: &TableNames,
        timer: impl Timer + 'static,
    ) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        config.keepalives_idle(KEEPALIVE);
        let listen = Statements::new(names, Retention::default()).notify.listen;
        Self {
            driver: Arc::new(Driver {
                config,
                tls,
                listen,
            }),
            timer: Arc::new(timer),
            patience: Patience::default(),
        }
    }

    /// After so long without a notification the connection is probed with one statement.
    /// Default: 30 s.
    #[must_use]
    pub fn probe_after(mut self, quiet: Duration) -> Self {
        self.patience.probe_after = quiet;
        self
    }

    /// A connection that has not answered a probe, or has not been opened, within this is given up.
    /// Default: 10 s.
    #[must_use]
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.patience.answer_within = limit;
        self
    }
}

impl Wake for PgWake {
    fn wakes(&self) -> BoxStream<'static, ()> {
        let driver = Arc::clone(&self.driver);
        listen(driver, Arc::clone(&self.timer), self.patience)
    }
}

impl fmt::Debug for PgWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgWake")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// As on the server's side ([`NotifySql`](outbox_core::sql::pg::NotifySql)).
const KEEPALIVE: Duration = Duration::from_secs(30);

struct Driver<T> {
    config: Config,
    tls: T,
    listen: Sql,
}

#[async_trait]
impl<T> Listen for Driver<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::TlsConnect: Send,
    T::Stream: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    async fn open(&self) -> Result<Box<dyn Listener>, Error> {
        let (client, connection) = self
            .config
            .connect(self.tls.clone())
            .await
            .map_err(unavailable)?;
        let mut session = Session {
            client,
            connection,
            notified: false,
        };
        session.round_trip(&self.listen).await?;
        Ok(Box::new(session))
    }
}

/// The connection is polled here and nowhere else: there is no task that could outlive it.
struct Session<S> {
    client: Client,
    connection: Connection<Socket, S>,
    /// Something was notified during a round trip.
    notified: bool,
}

impl<S: TlsStream + Unpin + Send> Session<S> {
    async fn round_trip(&mut self, sql: &str) -> Result<(), Error> {
        let (connection, notified) = (&mut self.connection, &mut self.notified);
        let lost = poll_fn(|cx| {
            loop {
                match ready!(poll_notified(connection, cx)) {
                    Ok(()) => *notified = true,
                    Err(error) => return Poll::Ready(error),
                }
            }
        });
        match select(pin!(self.client.batch_execute(sql)), lost).await {
            Either::Left((done, _)) => done.map_err(unavailable),
            Either::Right((error, _)) => Err(error),
        }
    }
}

#[async_trait]
impl<S: TlsStream + Unpin + Send> Listener for Session<S> {
    async fn notified(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.notified) {
            return Ok(());
        }
        poll_fn(|cx| poll_notified(&mut self.connection, cx)).await
    }

    async fn probe(&mut self) -> Result<(), Error> {
        self.round_trip("SELECT 1").await
    }
}

fn poll_notified<S: TlsStream + Unpin>(
    connection: &mut Connection<Socket, S>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), Error>> {
    loop {
        match ready!(connection.poll_message(cx)) {
            Some(Ok(AsyncMessage::Notification(_))) => return Poll::Ready(Ok(())),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Poll::Ready(Err(unavailable(error))),
            None => return Poll::Ready(Err(lost_connection())),
        }
    }
}

fn unavailable(error: tokio_postgres::Error) -> Error {
    lost_connection().with_source(error)
}

fn lost_connection() -> Error {
    let message = "listen: the database can't be reached or answer";
    Error::new(ErrorKind::Unavailable, message)
}
