//! Asks, and tasks that wait, hand over or sleep: ask, ask_chain, spawn, await_ready, switch, memory,
//! timers.

use crate::measure::{ns_per, resident_bytes, Outcome};
use std::arch::asm;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};
use tokio::sync::{oneshot, Notify};
use tokio::task::unconstrained;
use tokio::time::{sleep, Sleep};

const HOUR: Duration = Duration::from_secs(3_600);

/// One task asks another, and waits for the answer before it asks again.
pub async fn ask(times: u64) -> Outcome {
    let (to, mut mailbox) = unbounded_channel::<(u64, oneshot::Sender<u64>)>();
    tokio::spawn(async move {
        while let Some((number, reply)) = mailbox.recv().await {
            let _ = reply.send(number + 1);
        }
    });
    let start = Instant::now();
    let asker = tokio::spawn(async move {
        let mut number = 0;
        while number < times {
            let (reply, answer) = oneshot::channel();
            let _ = to.send((number, reply));
            number = answer.await.expect("an answer");
        }
        number
    });
    let last = asker.await.expect("a number");
    Outcome::new(ns_per(start, times), last)
}

type Question = (u64, oneshot::Sender<u64>);

/// A task with a mailbox: asks the next one, which it starts, and answers when that has.
fn start_link() -> UnboundedSender<Question> {
    let (to, mut mailbox) = unbounded_channel::<Question>();
    tokio::spawn(async move {
        while let Some((left, reply)) = mailbox.recv().await {
            let behind = if left == 0 { 0 } else { 1 + ask_link(&start_link(), left - 1).await };
            let _ = reply.send(behind);
        }
    });
    to
}

async fn ask_link(link: &UnboundedSender<Question>, left: u64) -> u64 {
    let (reply, answer) = oneshot::channel();
    let _ = link.send((left, reply));
    answer.await.expect("an answer")
}

/// Each task of a chain asks the next one, and answers when that has.
pub async fn ask_chain(links: u64) -> Outcome {
    let start = Instant::now();
    let asker = tokio::spawn(async move { ask_link(&start_link(), links).await });
    let all = asker.await.expect("a number");
    Outcome::new(ns_per(start, links), all)
}

/// Tasks that do nothing, a thousand at a time.
pub async fn spawn(size: u64) -> Outcome {
    let start = Instant::now();
    let parent = tokio::spawn(async move {
        let mut running = Vec::with_capacity(1_000);
        let mut done = 0;
        while done < size {
            running.extend((done..size).take(1_000).map(|_| tokio::spawn(async { 1 })));
            for task in running.drain(..) {
                done += task.await.expect("a count");
            }
        }
        done
    });
    let done = parent.await.expect("a count");
    Outcome::new(ns_per(start, size), done)
}

async fn one_more() -> u64 {
    1
}

/// The same value, of which the compiler knows nothing any more.
fn black_box<T>(mut value: T) -> T {
    // SAFETY: there is no instruction in it.
    unsafe { asm!("/* {0} */", in(reg) &mut value) };
    value
}

/// Without the black box nothing at all would be left of the loop.
pub async fn await_ready(size: u64) -> Outcome {
    let start = Instant::now();
    let mut sum = 0;
    for _ in 0..size {
        sum += black_box(one_more()).await;
    }
    Outcome::new(ns_per(start, size), black_box(sum))
}

/// Two tasks, each of which waits for the other.
pub async fn switch(size: u64) -> Outcome {
    let turns = Arc::new([Notify::new(), Notify::new()]);
    let hand_overs = Arc::new(AtomicU64::new(0));
    let players: Vec<_> = (0..2)
        .map(|me| {
            let turns = turns.clone();
            let hand_overs = hand_overs.clone();
            tokio::spawn(async move {
                loop {
                    turns[me].notified().await;
                    // Relaxed: only who has the turn counts.
                    let now = hand_overs.load(Ordering::Relaxed);
                    hand_overs.store(size.min(now + 1), Ordering::Relaxed);
                    turns[1 - me].notify_one();
                    if now + 1 >= size {
                        break;
                    }
                }
            })
        })
        .collect();
    let start = Instant::now();
    turns[0].notify_one();
    for player in players {
        player.await.expect("the end");
    }
    Outcome::new(ns_per(start, size), hand_overs.load(Ordering::Relaxed))
}

#[derive(Default)]
struct Naps {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Tasks that sleep for an hour.
pub async fn memory(size: u64) -> Outcome {
    let naps = Arc::new(Naps::default());
    let before = resident_bytes();
    for _ in 0..size {
        let naps = naps.clone();
        tokio::spawn(async move {
            naps.begun.fetch_add(1, Ordering::Relaxed);
            sleep(HOUR).await;
            naps.ended.fetch_add(1, Ordering::Relaxed);
        });
    }
    while naps.begun.load(Ordering::Relaxed) < size {
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(500)).await; // the last ones fall asleep
    let value = (resident_bytes() - before) as f64 / size as f64;
    Outcome::new(value, naps.begun.load(Ordering::Relaxed) - naps.ended.load(Ordering::Relaxed))
}

struct PollAll<'a>(&'a mut [Pin<Box<Sleep>>]);

/// Arms those that are not armed yet; ready with the number of those whose time has not come.
impl Future for PollAll<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<u64> {
        let pending = self.0.iter_mut().map(|one| u64::from(one.as_mut().poll(context).is_pending()));
        Poll::Ready(pending.sum())
    }
}

/// All are armed, then all are dropped in time. Unconstrained, for else only 128 of them would be armed in one
/// poll of the task.
async fn arm_and_cancel(handles: &mut Vec<Pin<Box<Sleep>>>, size: u64) -> u64 {
    handles.extend((0..size).map(|_| Box::pin(sleep(HOUR))));
    let armed = unconstrained(PollAll(handles)).await;
    handles.clear();
    armed
}

/// Once before the clock starts, so that the memory is there.
pub async fn timers(size: u64) -> Outcome {
    let mut handles = Vec::with_capacity(size as usize);
    arm_and_cancel(&mut handles, size).await;
    let start = Instant::now();
    let armed = arm_and_cancel(&mut handles, size).await;
    Outcome::new(ns_per(start, size), armed)
}
