//! The benchmarks in tokio: an actor is a task with an unbounded channel for its mailbox.
//! ../../README.md says what each measures.

mod channels;
mod crowds;
mod generators;
mod locks;
mod measure;
mod scopes;
mod streams;
mod waiting;
mod waits;

use measure::Outcome;
use std::future::Future;
use std::pin::Pin;

type Benchmark = Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Start = fn(u64) -> Benchmark;

const BENCHMARKS: &[(&str, u64, Start)] = &[
    ("ping_pong", 2_000_000, |size| Box::pin(streams::ping_pong(size))),
    ("counting", 10_000_000, |size| Box::pin(streams::counting(size))),
    ("fork_join_throughput", 100_000, |size| Box::pin(streams::fork_join_throughput(size))),
    ("fork_join_create", 1_000_000, |size| Box::pin(streams::fork_join_create(size))),
    ("thread_ring_100", 2_000_003, |size| Box::pin(streams::thread_ring(100, size))),
    ("thread_ring_10000", 2_000_003, |size| Box::pin(streams::thread_ring(10_000, size))),
    ("big", 20_000, |size| Box::pin(crowds::big(size))),
    ("chameneos", 1_000_000, |size| Box::pin(crowds::chameneos(size))),
    ("idle_memory", 5_000_000, |size| Box::pin(waiting::idle_memory(size))),
    ("idle_cpu", 10, |size| Box::pin(waiting::idle_cpu(size))),
    ("wake_latency", 2_000, |size| Box::pin(waiting::wake_latency(size))),
    ("ask", 2_000_000, |size| Box::pin(waits::ask(size))),
    ("ask_chain", 40_000, |size| Box::pin(waits::ask_chain(size))),
    ("spawn", 10_000_000, |size| Box::pin(waits::spawn(size))),
    ("await_ready", 20_000_000, |size| Box::pin(waits::await_ready(size))),
    ("switch", 5_000_000, |size| Box::pin(waits::switch(size))),
    ("memory", 1_000_000, |size| Box::pin(waits::memory(size))),
    ("scope", 10_000_000, |size| Box::pin(scopes::scope(size))),
    ("async_generator", 10_000_000, |size| Box::pin(generators::async_generator(size))),
    ("timers", 1_000_000, |size| Box::pin(waits::timers(size))),
    ("mutex", 20_000_000, |size| Box::pin(locks::mutex(size))),
    ("mutex_64", 2_000_000, |size| Box::pin(locks::mutex_64(size))),
    ("semaphore", 20_000_000, |size| Box::pin(locks::semaphore(size))),
    ("semaphore_64", 2_000_000, |size| Box::pin(locks::semaphore_64(size))),
    ("channel_1_1", 10_000_000, |size| Box::pin(channels::to_one(1, size))),
    ("channel_4_1", 10_000_000, |size| Box::pin(channels::to_one(4, size))),
    ("broadcast_1_8", 1_000_000, |size| Box::pin(channels::broadcast_1_8(size))),
    ("select_8", 4_000_000, |size| Box::pin(channels::select_8(size))),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let entry = arguments.get(1).and_then(|name| BENCHMARKS.iter().find(|(known, ..)| known == name));
    let (entry, workers) = match (entry, arguments.get(2)) {
        (Some(entry), Some(workers)) if arguments.len() <= 4 => (entry, positive(workers)),
        _ => {
            let names: Vec<&str> = BENCHMARKS.iter().map(|(name, ..)| *name).collect();
            eprintln!("usage: {} BENCH WORKERS [SIZE]\nbenches: {}", arguments[0], names.join(" "));
            std::process::exit(2);
        }
    };
    let (_, default_size, start) = entry;
    let size = arguments.get(3).map_or(*default_size, |text| positive(text));

    // With one worker the current-thread runtime, which is faster for having nobody to share with. The
    // benchmark is spawned, so that its own task is on a worker like every other. Without I/O a worker sleeps
    // on a futex, which is quicker to wake than epoll.
    let mut builder = match workers {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(workers as usize).enable_time().build().expect("a runtime");
    let outcome = runtime.block_on(runtime.spawn(start(size))).expect("an outcome");
    println!("{}", outcome);
    // Without dropping the runtime: nobody times the end of a million tasks.
    std::process::exit(0);
}

fn positive(text: &str) -> u64 {
    match text.parse() {
        Ok(number) if number > 0 => number,
        _ => {
            eprintln!("not a positive whole number: {}", text);
            std::process::exit(2);
        }
    }
}
