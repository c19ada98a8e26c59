//! A runtime with nothing to do: idle_memory, idle_cpu and wake_latency.

use crate::measure::{pin_this_thread, process_cpu_seconds, resident_bytes, Outcome};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};

/// Tasks that wait, each with a number of its own.
pub async fn idle_memory(size: u64) -> Outcome {
    let mut handles: Vec<Option<UnboundedSender<u64>>> = Vec::with_capacity(size as usize);
    handles.resize_with(size as usize, || None); // touches the array
    let (answer, mut answers) = unbounded_channel();
    let before = resident_bytes();
    for (handle, state) in handles.iter_mut().zip(0..) {
        let (sender, mut mailbox) = unbounded_channel();
        let answer = answer.clone();
        *handle = Some(sender);
        tokio::spawn(async move {
            let mut state: u64 = state;
            while let Some(x) = mailbox.recv().await {
                state += x;
                let _ = answer.send(state);
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let value = (resident_bytes() - before) as f64 / size as f64;
    let mut check = 0;
    for (handle, state) in handles.iter().zip(0..) {
        let _ = handle.as_ref().expect("a sender").send(1);
        check += u64::from(answers.recv().await == Some(state + 1));
    }
    Outcome::new(value, check)
}

/// A runtime with one task that waits, and nothing to do.
pub async fn idle_cpu(seconds: u64) -> Outcome {
    let (ask, mut asked) = unbounded_channel::<u64>();
    let (answer, mut answers) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(x) = asked.recv().await {
            let _ = answer.send(x);
        }
    });
    let _ = ask.send(0);
    answers.recv().await;
    tokio::time::sleep(Duration::from_millis(500)).await; // threads that spin before they sleep have their time
    let start = Instant::now();
    let cpu_start = process_cpu_seconds();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let cpu = process_cpu_seconds() - cpu_start;
    let value = cpu * 1e3 / start.elapsed().as_secs_f64();
    let _ = ask.send(1);
    Outcome::new(value, answers.recv().await.expect("an answer"))
}

/// A thread outside wakes an idle runtime.
pub async fn wake_latency(posts: u64) -> Outcome {
    let (sender, mut mailbox) = unbounded_channel::<Instant>();
    std::thread::spawn(move || {
        pin_this_thread(1); // the workers have the mask they inherited: CPU 0
        for _ in 0..posts {
            std::thread::sleep(Duration::from_millis(1));
            let _ = sender.send(Instant::now());
        }
    });
    let mut latencies_ns = Vec::with_capacity(posts as usize);
    while let Some(posted_at) = mailbox.recv().await {
        latencies_ns.push(posted_at.elapsed().as_nanos() as u64);
    }
    Outcome::of_latencies(latencies_ns)
}
