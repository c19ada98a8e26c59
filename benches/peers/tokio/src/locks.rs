//! Locks that suspend: a mutex and a semaphore, each alone and with 64 parties.

use crate::measure::{ns_per, Outcome};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::yield_now;

const PARTIES: u64 = 64;

/// One task takes the lock and gives it back, again and again.
pub async fn mutex(size: u64) -> Outcome {
    let busy = Arc::new(Mutex::new(0u64));
    let start = Instant::now();
    let counted = tokio::spawn(async move {
        for _ in 0..size {
            *busy.lock().await += 1;
        }
        let count = *busy.lock().await;
        count
    });
    let count = counted.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}

/// 64 tasks; each lets the others run while it holds the lock, so that they queue for it.
pub async fn mutex_64(size: u64) -> Outcome {
    let busy = Arc::new(Mutex::new(0u64));
    let start = Instant::now();
    let tasks: Vec<_> = (0..PARTIES)
        .map(|_| {
            let busy = busy.clone();
            tokio::spawn(async move {
                for _ in 0..size / PARTIES {
                    let mut count = busy.lock().await;
                    *count += 1;
                    yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("an end");
    }
    let count = *busy.lock().await;
    Outcome::new(ns_per(start, size), count)
}

pub async fn semaphore(size: u64) -> Outcome {
    let permits = Arc::new(Semaphore::new(8));
    let start = Instant::now();
    let counted = tokio::spawn(async move {
        let mut count = 0;
        for _ in 0..size {
            let _permit = permits.acquire().await.expect("a permit");
            count += 1;
        }
        count
    });
    let count = counted.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}

pub async fn semaphore_64(size: u64) -> Outcome {
    let permits = Arc::new(Semaphore::new(8));
    let start = Instant::now();
    let tasks: Vec<_> = (0..PARTIES)
        .map(|_| {
            let permits = permits.clone();
            tokio::spawn(async move {
                let mut count = 0;
                for _ in 0..size / PARTIES {
                    let _permit = permits.acquire().await.expect("a permit");
                    count += 1;
                    yield_now().await;
                }
                count
            })
        })
        .collect();
    let mut all = 0;
    for task in tasks {
        all += task.await.expect("a count");
    }
    Outcome::new(ns_per(start, size), all)
}
