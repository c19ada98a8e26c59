//! JoinSets of 1,000 tasks that do nothing.

use crate::measure::{ns_per, Outcome};
use std::time::Instant;
use tokio::task::JoinSet;

/// A set of a thousand tasks, again and again, until so many have ended.
pub async fn scope(size: u64) -> Outcome {
    let start = Instant::now();
    let parent = tokio::spawn(async move {
        let mut count = 0;
        while count < size {
            let mut set = JoinSet::new();
            for _ in 0..(size - count).min(1_000) {
                set.spawn(async { 1 });
            }
            while let Some(one) = set.join_next().await {
                count += one.expect("a count");
            }
        }
        count
    });
    let count = parent.await.expect("a count");
    Outcome::new(ns_per(start, size), count)
}
