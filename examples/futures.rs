//! Dispatches as futures. Any executor will do; the one at the end of this file is all that it takes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use vyre::prelude::*;

vyre::kernel! {
    program collatz {
        workgroup 64
        buffer from: read u32 @0
        buffer steps: output u32 @1
        let n = from[gid.x]
        let count = 0
        for i in 0..1000 {
            if n <= 1 { break }
            n = select(n % 2 == 0, n / 2, 3 * n + 1)
            count = count + 1
        }
        steps[gid.x] = count
    }
}

async fn longest(collatz: &Collatz, from: u32) -> Result<(u32, u32), BackendError> {
    let numbers: Vec<u32> = (from..from + 1000).collect();
    let results = collatz.dispatch(&numbers).run_async()?.await?;
    let steps = CollatzOutputs::try_from(&results)?.steps;
    Ok(numbers.into_iter().zip(steps).max_by_key(|(_, steps)| *steps).unwrap_or_default())
}

fn main() -> Result<(), BackendError> {
    let collatz = Collatz::compile(&Backend::preferred()?)?;
    // Begun together, waited for in turn.
    let numbers: Vec<u32> = (1..1001).collect();
    let (first, second) = (collatz.dispatch(&numbers).run_async()?, collatz.dispatch(&numbers).run_async()?);
    assert_eq!(block_on(first)?, block_on(second)?);
    println!("{:?}", block_on(longest(&collatz, 1))?);
    println!("{:?}", block_on(longest(&collatz, 100_000))?);
    Ok(())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
