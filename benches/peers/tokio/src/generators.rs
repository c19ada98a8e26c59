//! A generator as the crate async-stream makes one: an async block that leaves its value in a cell and is
//! pending once, and a stream that polls the block until it finds a value there.

use crate::measure::{ns_per, Outcome};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The cell. Only the task that polls both sides touches it.
struct Given<T>(Cell<Option<T>>);
unsafe impl<T: Send> Send for Given<T> {}
unsafe impl<T: Send> Sync for Given<T> {}

struct Yielding<'a, T> {
    to: &'a Given<T>,
    value: Option<T>,
}

impl<T: Unpin> Future for Yielding<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<()> {
        match self.value.take() {
            Some(value) => {
                self.to.0.set(Some(value));
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

struct Generator<T, F> {
    body: F,
    given: Arc<Given<T>>,
    ended: bool,
}

impl<T, F: Future<Output = ()>> Generator<T, F> {
    fn poll_next(self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<T>> {
        // The body stays where it is.
        let own = unsafe { self.get_unchecked_mut() };
        if own.ended {
            return Poll::Ready(None);
        }
        own.ended = unsafe { Pin::new_unchecked(&mut own.body) }.poll(context).is_ready();
        match own.given.0.take() {
            Some(value) => Poll::Ready(Some(value)),
            None if own.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

struct Next<'a, T, F>(Pin<&'a mut Generator<T, F>>);

impl<T, F: Future<Output = ()>> Future for Next<'_, T, F> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<T>> {
        self.0.as_mut().poll_next(context)
    }
}

fn numbers(size: u64) -> Generator<u64, impl Future<Output = ()>> {
    let given = Arc::new(Given(Cell::new(None)));
    let to = given.clone();
    let body = async move {
        for i in 0..size {
            Yielding { to: &to, value: Some(i) }.await;
        }
    };
    Generator { body, given, ended: false }
}

/// All values, which are ready, one after the other.
pub async fn async_generator(size: u64) -> Outcome {
    let start = Instant::now();
    let right = tokio::spawn(async move {
        let mut all = Box::pin(numbers(size));
        let mut right = 0;
        while let Some(one) = Next(all.as_mut()).await {
            right += u64::from(one == right);
        }
        right
    });
    let right = right.await.expect("the count");
    Outcome::new(ns_per(start, size), right)
}
