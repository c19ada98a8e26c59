//! One message after another: ping_pong, counting, the two fork-joins and the rings.

use crate::measure::{ns_per, Outcome};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};
use tokio::task::yield_now;

/// The number goes there and back, one more each time.
pub async fn ping_pong(rounds: u64) -> Outcome {
    let (to_pong, mut ponged) = unbounded_channel::<u64>();
    let (to_ping, mut pinged) = unbounded_channel::<u64>();
    tokio::spawn(async move {
        while let Some(number) = ponged.recv().await {
            let _ = to_ping.send(number + 1);
        }
    });
    let start = Instant::now();
    let pinger = tokio::spawn(async move {
        let mut number = 0;
        for _ in 0..rounds {
            let _ = to_pong.send(number);
            number = pinged.recv().await.expect("a pong");
        }
        number
    });
    let last = pinger.await.expect("a number");
    Outcome::new(ns_per(start, rounds), last)
}

/// An actor that counts `size` messages; the handle resolves to the count.
fn spawn_counter(size: u64) -> (UnboundedSender<()>, tokio::task::JoinHandle<u64>) {
    let (sender, mut mailbox) = unbounded_channel();
    let counter = tokio::spawn(async move {
        let mut count = 0;
        while count < size && mailbox.recv().await.is_some() {
            count += 1;
        }
        count
    });
    (sender, counter)
}

/// One sender, one counter. The sender does not pause: here, and in fork_join_throughput, that is the fastest
/// with two workers and no slower with one, for an empty message takes next to no room while it waits.
pub async fn counting(size: u64) -> Outcome {
    let (to, counter) = spawn_counter(size);
    let start = Instant::now();
    tokio::spawn(async move {
        for _ in 0..size {
            let _ = to.send(());
        }
    });
    let count = counter.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}

/// One sender, 60 counters, round robin.
pub async fn fork_join_throughput(rounds: u64) -> Outcome {
    let (senders, counters): (Vec<_>, Vec<_>) = (0..60).map(|_| spawn_counter(rounds)).unzip();
    let start = Instant::now();
    tokio::spawn(async move {
        for _ in 0..rounds {
            for to in &senders {
                let _ = to.send(());
            }
        }
    });
    let mut count = 0;
    for counter in counters {
        count += counter.await.expect("a count");
    }
    Outcome::new(ns_per(start, 60 * rounds), count)
}

/// A task is spawned, receives one message and ends. The parent lets its children run after every 64, which
/// takes half the time with one worker and makes no difference with two.
pub async fn fork_join_create(size: u64) -> Outcome {
    let handled = Arc::new(AtomicU64::new(0));
    let (done, mut all_done) = unbounded_channel();
    let start = Instant::now();
    tokio::spawn(async move {
        for i in 1..=size {
            let (to, mut mailbox) = unbounded_channel::<()>();
            let handled = handled.clone();
            let done = done.clone();
            tokio::spawn(async move {
                mailbox.recv().await;
                // Relaxed: a count; the channel publishes it.
                let n = handled.fetch_add(1, Ordering::Relaxed) + 1;
                if n == size {
                    let _ = done.send(n);
                }
            });
            let _ = to.send(());
            if i % 64 == 0 {
                yield_now().await;
            }
        }
    });
    let check = all_done.recv().await.expect("a count");
    Outcome::new(ns_per(start, size), check)
}

/// One token, handed on until its hops are used up.
pub async fn thread_ring(members: usize, hops: u64) -> Outcome {
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..members).map(|_| unbounded_channel::<u64>()).unzip();
    let (done, mut last_holder) = unbounded_channel();
    for (index, mut mailbox) in mailboxes.into_iter().enumerate() {
        let next = senders[(index + 1) % members].clone();
        let done = done.clone();
        tokio::spawn(async move {
            while let Some(hops_left) = mailbox.recv().await {
                let _ = match hops_left {
                    0 => done.send(index).is_ok(),
                    _ => next.send(hops_left - 1).is_ok(),
                };
            }
        });
    }
    let _ = senders[0].send(members as u64); // once round, so that all wait before the clock starts
    last_holder.recv().await;
    let start = Instant::now();
    let _ = senders[0].send(hops);
    let last = last_holder.recv().await.expect("an index");
    let at_its_place = last as u64 == hops % members as u64;
    Outcome::new(ns_per(start, hops), if at_its_place { hops } else { 0 })
}
