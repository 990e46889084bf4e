//! Futures that nobody waits for any more.

use std::pin::Pin;
use std::task::Poll;

/// Lets a future begin, so many times, and drops it. Whether it came to an end.
pub(super) async fn begin_and_drop<T>(
    mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>,
    times: usize,
) -> bool {
    for _ in 0..times {
        let done =
            std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await;
        if done {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}
