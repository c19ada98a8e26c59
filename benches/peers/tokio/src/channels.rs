//! Channels, broadcasts and select. A bounded channel has one receiver here.

use crate::measure::{ns_per, Outcome};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{broadcast, mpsc};
use tokio::task::yield_now;

const CAPACITY: usize = 100;
const LISTENERS: u64 = 8;

async fn send_often(to: mpsc::Sender<u64>, times: u64) {
    for i in 0..times {
        to.send(i).await.expect("a receiver");
    }
}

/// Tasks that send through one channel, and one that receives from it.
pub async fn to_one(senders: u64, size: u64) -> Outcome {
    let (to, mut from) = mpsc::channel(CAPACITY);
    let start = Instant::now();
    let counted = tokio::spawn(async move {
        let mut count = 0;
        while count < size && from.recv().await.is_some() {
            count += 1;
        }
        count
    });
    for _ in 0..senders {
        tokio::spawn(send_often(to.clone(), size / senders));
    }
    let count = counted.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}

/// One task sends to eight receivers, as many as they may miss none of, and waits for them.
pub async fn broadcast_1_8(size: u64) -> Outcome {
    let up_to_date = Arc::new(AtomicU64::new(0));
    let (to, _) = broadcast::channel(CAPACITY);
    let start = Instant::now();
    let listening: Vec<_> = (0..LISTENERS)
        .map(|_| {
            let mut news = to.subscribe();
            let up_to_date = up_to_date.clone();
            tokio::spawn(async move {
                let mut count = 0;
                while news.recv().await.is_ok() {
                    count += 1;
                    if count % CAPACITY as u64 == 0 {
                        up_to_date.fetch_add(1, Ordering::Release);
                    }
                }
                count
            })
        })
        .collect();
    tokio::spawn(async move {
        let mut sent = 0;
        while sent < size {
            for _ in 0..(size - sent).min(CAPACITY as u64) {
                to.send(sent).expect("receivers");
                sent += 1;
            }
            let wanted = LISTENERS * (sent / CAPACITY as u64);
            while up_to_date.load(Ordering::Acquire) < wanted {
                yield_now().await;
            }
        }
    });
    let mut all = 0;
    for one in listening {
        all += one.await.expect("a count");
    }
    Outcome::new(ns_per(start, size), all)
}

/// Eight tasks send, each through a channel of its own; one selects among the eight.
pub async fn select_8(size: u64) -> Outcome {
    let (to, mut from): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel(CAPACITY)).unzip();
    let start = Instant::now();
    let counted = tokio::spawn(async move {
        let mut each = from.iter_mut();
        let mut next = || each.next().expect("a receiver");
        let (c0, c1, c2, c3) = (next(), next(), next(), next());
        let (c4, c5, c6, c7) = (next(), next(), next(), next());
        let mut count = 0;
        while count < size {
            tokio::select! {
                Some(_) = c0.recv() => {}
                Some(_) = c1.recv() => {}
                Some(_) = c2.recv() => {}
                Some(_) = c3.recv() => {}
                Some(_) = c4.recv() => {}
                Some(_) = c5.recv() => {}
                Some(_) = c6.recv() => {}
                Some(_) = c7.recv() => {}
                else => break,
            }
            count += 1;
        }
        count
    });
    for one in to {
        tokio::spawn(send_often(one, size / 8));
    }
    let count = counted.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}
