//! The signals that ask this program to end.

use crate::exit::{Exit, Failure};

#[cfg(unix)]
mod system {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::{Exit, Failure};

    /// Listens for the signals that ask a program to end.
    #[derive(Debug)]
    pub(crate) struct Ending {
        interrupt: Signal,
        terminate: Signal,
        hangup: Signal,
    }

    impl Ending {
        /// From now on, such a signal ends nothing by itself.
        pub(crate) fn listen() -> Result<Self, Failure> {
            let listen = |kind| signal(kind).map_err(|error| Failure::failed(&error));
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: listen(SignalKind::hangup())?,
            })
        }

        /// Waits for the next one, and says how the program ends then.
        pub(crate) async fn next(&mut self) -> Exit {
            tokio::select! {
                _ = self.interrupt.recv() => Exit::Cancelled,
                _ = self.terminate.recv() => Exit::Signal(15),
                _ = self.hangup.recv() => Exit::Signal(1),
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Exit, Failure};

    /// Listens for Ctrl-C.
    #[derive(Debug)]
    pub(crate) struct Ending;

    impl Ending {
        /// From now on, it ends nothing by itself.
        pub(crate) const fn listen() -> Result<Self, Failure> {
            Ok(Self)
        }

        /// Waits for the next one, and says how the program ends then.
        pub(crate) async fn next(&mut self) -> Exit {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Exit::Cancelled
        }
    }
}

pub(crate) use system::Ending;
