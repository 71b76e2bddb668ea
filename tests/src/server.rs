//! What every private server can do.

/// A server's life: its `try_start` and `run` start it, `$stop` is the signal that stops one in order, and `$admin` is
/// the database from which others are made.
macro_rules! server {
    ($server:ident, $stop:literal, $admin:literal) => {
        impl $server {
            /// The one server that the tests of this process share, started at the first call.
            #[track_caller]
            pub fn shared() -> &'static Self {
                static SHARED: std::sync::OnceLock<Result<$server, String>> =
                    std::sync::OnceLock::new();
                match SHARED.get_or_init(|| Self::try_start(&[])) {
                    Ok(server) => server,
                    Err(problem) => panic!("{problem}"),
                }
            }

            /// A server of the caller's own. It survives [`kill`](Self::kill) but not a power cut.
            #[track_caller]
            pub fn start() -> Self {
                Self::start_with(&[])
            }

            /// A server with more settings (`"name=value"`), which override the defaults of tests.
            #[track_caller]
            pub fn start_with(settings: &[&str]) -> Self {
                match Self::try_start(settings) {
                    Ok(server) => server,
                    Err(problem) => panic!("{problem}"),
                }
            }

            /// The TCP port on 127.0.0.1.
            pub const fn port(&self) -> u16 {
                self.daemon.port()
            }

            /// Makes an empty database that nobody else uses and returns its URL.
            #[track_caller]
            pub fn create_database(&self) -> String {
                let number = self
                    .databases
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let name = format!("test_{number}");
                self.sql($admin, &format!("CREATE DATABASE {name}"));
                self.url(&name)
            }

            /// Kills the server as a crash would: it ends nothing in order.
            pub fn kill(&self) {
                self.daemon.end("KILL");
            }

            /// Stops the server in order, closing all connections.
            pub fn stop(&self) {
                self.daemon.end($stop);
            }

            /// Starts a killed or stopped server again, on the same port.
            #[track_caller]
            pub fn resume(&self) {
                if let Err(problem) = self.run() {
                    panic!("{problem}");
                }
            }

            /// Stops the server in order and starts it again.
            #[track_caller]
            pub fn restart(&self) {
                self.stop();
                self.resume();
            }
        }
    };
}
pub(crate) use server;
