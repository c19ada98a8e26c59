//! What the benchmarks measure with, and the line they print.

use std::fmt;
use std::time::Instant;

#[derive(Default)]
pub struct Outcome {
    pub value: f64,
    pub check: u64,
    pub fairness: Option<f64>,
    /// Median and 99th percentile in microseconds.
    pub latency: Option<(f64, f64)>,
}

impl Outcome {
    pub fn new(value: f64, check: u64) -> Self {
        Outcome { value, check, ..Default::default() }
    }

    /// The outcome of chameneos from the creatures' own counts; two count each meeting.
    pub fn of_meetings(ns_per_meeting: f64, met: &[u64]) -> Self {
        let most = *met.iter().max().expect("creatures") as f64;
        let least = *met.iter().min().expect("creatures") as f64;
        let mut outcome = Outcome::new(ns_per_meeting, met.iter().sum::<u64>() / 2);
        outcome.fairness = Some(most / least.max(1.0));
        outcome
    }

    pub fn of_latencies(mut latencies_ns: Vec<u64>) -> Self {
        latencies_ns.sort_unstable();
        let n = latencies_ns.len();
        let us = |index: usize| latencies_ns[index] as f64 / 1e3;
        let (p50, p99) = (us(n / 2), us(n * 99 / 100));
        let mut outcome = Outcome::new(p50, n as u64);
        outcome.latency = Some((p50, p99));
        outcome
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, line: &mut fmt::Formatter) -> fmt::Result {
        write!(line, "value={:.4} check={}", self.value, self.check)?;
        if let Some(fairness) = self.fairness {
            write!(line, " fairness={:.3}", fairness)?;
        }
        if let Some((p50, p99)) = self.latency {
            write!(line, " p50={:.3} p99={:.3}", p50, p99)?;
        }
        Ok(())
    }
}

pub fn ns_per(start: Instant, operations: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// CPU time of all threads of this process, in the kernel's own nanoseconds; what getrusage tells is
/// coarser than what an idle runtime uses.
pub fn process_cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which only writes to it.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

pub fn resident_bytes() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages: i64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    // SAFETY: no memory is involved.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
}

/// Lets the calling thread run on `cpu` only, also when the process was started with another mask.
pub fn pin_this_thread(cpu: usize) {
    // SAFETY: a cpu_set_t is plain bits, and it outlives the calls.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)
    };
    assert_eq!(failed, 0, "sched_setaffinity");
}
