//! What the running script uses, counted where it is used: operations by a meter, memory by the allocator.
//!
//! The engine counts operations and nothing else, and a native function may take any amount of
//! memory before the engine looks again. So the allocator of this library counts what is held, and
//! hurries the meter, which makes the next operation look (`run`). Where none comes for long, because a large value
//! is copied or dropped, the allocator itself lets the run pause.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::run::{Run, STRIDE, current, on_look};

/// What a block costs beyond its size: the allocator's own bookkeeping, and a share that bounds how
/// deep values nest. A level of nesting costs at least two blocks, so this is what keeps the stack
/// that the deepest value needs small (the arithmetic is in `stack`).
pub const BLOCK: isize = 48;

/// Work of native functions is counted in 64ths of an operation; so much for a block taken or given back.
const BLOCK_WORK: isize = 4;

/// Counts the operations of one engine. The engine wants to share it with other threads, which it never does:
/// one run at a time, on one thread. So its atomics order nothing, and cost nothing.
#[derive(Default)]
pub struct Meter {
    /// Operations the run has left.
    left: AtomicI64,
    /// With no more of them left than this, it is time to look.
    look_at: AtomicI64,
}

impl Meter {
    /// Called by the engine for every operation: the token of an error that ends the run, or nothing.
    #[inline(always)]
    pub fn tick(&self) -> Option<rhai::Dynamic> {
        // The engine's own count forgets what closures do that a native function calls.
        let left = self.left.load(Relaxed) - 1;
        self.left.store(left, Relaxed);
        match left > self.look_at.load(Relaxed) {
            true => None,
            false => on_look(),
        }
    }

    pub fn left(&self) -> i64 {
        self.left.load(Relaxed)
    }

    /// Begin with so many operations. What is left of the stride goes on: many short runs are a long
    /// one to whoever waits for the clock to be read.
    pub fn begin(&self, operations: i64) {
        let stride = self.left().saturating_sub(self.look_at.load(Relaxed));
        self.left.store(operations, Relaxed);
        self.look_after(if stride > 0 { stride } else { STRIDE });
    }

    /// Look after so many operations, and at the end of all at the latest.
    pub fn look_after(&self, stride: i64) {
        self.look_at.store((self.left() - stride).max(0), Relaxed);
    }

    /// Look at the next operation.
    pub fn hurry(&self) {
        self.look_at.store(i64::MAX, Relaxed);
    }

    /// No operation is left.
    pub fn stop(&self) {
        self.left.store(-1, Relaxed);
        self.hurry();
    }
}

/// Changed for every block of memory, so plain cells and next to no branches.
pub struct Gauge {
    /// Bytes this thread took here and did not give back. Only differences mean anything.
    pub held: Cell<isize>,
    /// `held` beyond this ends the run.
    pub ceiling: Cell<isize>,
    /// Work of native functions left until the next look.
    pub credit: Cell<isize>,
    /// The largest block taken by the run, which is at least the longest string that it made.
    pub largest: Cell<usize>,
    /// The run whose coroutine is on the processor; null outside of one.
    pub run: Cell<*const Run>,
}

thread_local! {
    static GAUGE: Gauge = const {
        Gauge {
            held: Cell::new(0),
            ceiling: Cell::new(isize::MAX),
            credit: Cell::new(isize::MAX),
            largest: Cell::new(0),
            run: Cell::new(ptr::null()),
        }
    };
}

/// The gauge of this thread. Constant initial value and nothing to drop: safe to use inside the allocator.
#[inline(always)]
pub fn gauge<T>(work: impl FnOnce(&Gauge) -> T) -> T {
    GAUGE.with(work)
}

/// Do something whose memory outlives the run, so that it is not the run's; the allocator does not pause it.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    let held = gauge(|gauge| gauge.held.get());
    let pauses = current(|run| run.pauses_in_allocator.replace(false));
    let done = work();
    gauge(|gauge| gauge.held.set(held));
    current(|run| run.pauses_in_allocator.set(pauses.unwrap_or(false)));
    done
}

impl Gauge {
    #[inline(always)]
    fn took(&self, size: usize) {
        let held = self.held.get() + size as isize + BLOCK;
        let credit = self.credit.get() - BLOCK_WORK - (size / 64) as isize;
        self.held.set(held);
        self.credit.set(credit);
        self.largest.set(self.largest.get().max(size));
        if held > self.ceiling.get() || credit <= 0 {
            self.hurry();
        }
    }

    #[inline(always)]
    fn gave(&self, size: usize) {
        let credit = self.credit.get() - BLOCK_WORK;
        self.held.set(self.held.get() - size as isize - BLOCK);
        self.credit.set(credit);
        if credit <= 0 {
            self.hurry();
        }
    }

    #[cold]
    fn hurry(&self) {
        let run = self.run.get();
        match run.is_null() {
            // Nobody counts here; begin again before the number overflows.
            true => self.credit.set(isize::MAX),
            // SAFETY: not null while the machine that owns the run is resumed, which is where we are.
            false => {
                let run = unsafe { &*run };
                run.meter.hurry();
                run.pause_in_allocator(self.credit.get());
            }
        }
    }
}

/// The system's allocator, counted.
pub struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting neither allocates nor unwinds. Where it
// pauses the run, it goes on as after any call; what is in the middle of something then is on the run's stack alone.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        gauge(|gauge| gauge.took(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        gauge(|gauge| gauge.took(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        gauge(|gauge| gauge.gave(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        gauge(|gauge| {
            gauge.gave(layout.size());
            gauge.took(size);
        });
        // SAFETY: the caller's promise, handed on.
        unsafe { System.realloc(block, layout, size) }
    }
}
