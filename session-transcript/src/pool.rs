//! Work on many things by a few threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More would wait for one disk.
const MOST: usize = 8;

/// Does the work on each item, in parallel where there are at least `grain` of them for each of two threads, and returns
/// what came of it in the order of the items. Each thread makes itself a state, such as buffers.
pub(crate) fn map<T: Sync, S, R: Send>(
    items: &[T],
    grain: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.min(MOST).min(items.len() / grain.max(1));
    let next = AtomicUsize::new(0);
    let run = || {
        let (mut state, mut done) = (state(), Vec::new());
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            done.push((at, work(&mut state, item)));
        }
        done
    };
    let mut all = if threads < 2 {
        run()
    } else {
        thread::scope(|scope| {
            // One of them is this thread.
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
            let mut all = run();
            for other in others {
                all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            all
        })
    };
    if threads >= 2 {
        all.sort_unstable_by_key(|(at, _)| *at);
    }
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_the_work_is_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = map(&items, 1, || 2, |by, item| item * *by);
            assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
