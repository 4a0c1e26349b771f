//! The stacks that scripts are evaluated on: large enough for the deepest recursion that the limits let through.
//!
//! Two things recurse. The engine, evaluating expressions in functions: that is bounded by `max_calls` and
//! `max_expression_depth`. And what the engine does with whole values (copying, measuring, hashing, dropping),
//! which knows no bound of its own: how deep a value nests is bounded by the memory that it takes.
//!
//! Measured with rhai 1.27.0, release profile, x86-64, in bytes:
//!
//! | per level of nesting | heap, as counted (`gauge::BLOCK` included) | stack, hungriest use |
//! |---|---|---|
//! | array in an array | 136 | 225 (copying, hashing) |
//! | object in an object | 560 | 369 (copying) |
//! | function curried with a function | 176 | 208 (copying) |
//! | closure that captures a closure | 256 | 192 (hashing), 176 (dropping) |
//!
//! So no more than 1.7 bytes of stack per byte of heap: `STACK_PER_BYTE` is more than twice that. A function call whose
//! body nests as deep as it may needs 120 KiB at a depth of 64, which is 1.9 KiB per level: `STACK_PER_LEVEL` is
//! three times that.
//!
//! The memory is mapped without reserving it, and a page of it is there once it is touched: a run that stays shallow
//! takes a few of them. Pages that a deep run touched are given back.

use std::io;
use std::sync::{Mutex, PoisonError};

use corosensei::stack::StackPointer;

use crate::limits::Limits;

#[cfg(not(unix))]
use corosensei::stack::DefaultStack as Memory;
#[cfg(unix)]
use mapping::Mapping as Memory;

/// For every byte that a run may hold.
const STACK_PER_BYTE: usize = 4;

/// For every level of an expression, in every call.
const STACK_PER_LEVEL: usize = 6 << 10;

/// For natives of ours that recurse (`text`, `json`, `leaving`: 512 levels at most), the parser, and whatever else.
const STACK_AT_LEAST: usize = 8 << 20;

/// Kept for the next run instead of being mapped again, which costs some 10 µs.
const MOST_IDLE: usize = 4;

static IDLE: Mutex<Vec<Stack>> = Mutex::new(Vec::new());

pub struct Stack {
    memory: Memory,
    size: usize,
}

fn needed(limits: &Limits) -> usize {
    let values = limits.memory * STACK_PER_BYTE;
    // A call of a host function or a closure has levels of its own.
    let levels = (limits.calls + 2) * (limits.expression_depth + 4);
    let size = STACK_AT_LEAST + values + levels * STACK_PER_LEVEL;
    size.next_multiple_of(1 << 16)
}

impl Stack {
    /// A stack on which nothing overflows that these limits let through.
    pub fn take(limits: &Limits) -> io::Result<Self> {
        let size = needed(limits);
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = idle.iter().position(|stack| stack.size == size) {
            return Ok(idle.swap_remove(index));
        }
        drop(idle);
        let memory = Memory::new(size)?;
        Ok(Self { memory, size })
    }

    /// Give it back; `deep` if its pages may be dirty far down.
    pub fn put_back(self, deep: bool) {
        #[cfg(unix)]
        if deep {
            self.memory.clean();
        }
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(self);
        }
    }
}

// SAFETY: hands on what its memory promises: aligned, with a guard at the end, owned by this value.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.memory.base()
    }

    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.memory.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.memory
            .update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

#[cfg(unix)]
mod mapping {
    //! As corosensei's own stack, but without reserving the memory: hundreds of megabytes of it are never touched.

    use std::{io, ptr};

    use corosensei::stack::StackPointer;

    /// Not accessible, at the end the stack grows to. Larger than any frame.
    const GUARD: usize = 1 << 20;

    /// Kept when the others are given back: touching them again would cost every batch some microseconds.
    const KEPT: usize = 256 << 10;

    pub struct Mapping {
        start: usize,
        length: usize,
    }

    impl Mapping {
        /// Usable bytes, a multiple of the page size.
        pub fn new(size: usize) -> io::Result<Self> {
            let length = size + GUARD;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping at an address of the system's choice; nobody else knows it.
            let start =
                unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let mapping = Self {
                start: start as usize,
                length,
            };
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: within the mapping that was just made.
            match unsafe { libc::mprotect(mapping.usable(), size, writable) } {
                0 => {
                    mapping.prefer_small_pages(size);
                    Ok(mapping)
                }
                _ => Err(io::Error::last_os_error()),
            }
        }

        fn usable(&self) -> *mut libc::c_void {
            (self.start + GUARD) as *mut libc::c_void
        }

        /// A stack is touched from its top down, a few pages mostly: a huge page would waste 2 MiB.
        fn prefer_small_pages(&self, _size: usize) {
            #[cfg(target_os = "linux")]
            // SAFETY: within the mapping; the advice changes no content, and may be ignored.
            unsafe {
                libc::madvise(self.usable(), _size, libc::MADV_NOHUGEPAGE);
            }
        }

        /// Give pages back to the system. Nobody may be on the stack.
        pub fn clean(&self) {
            #[cfg(target_os = "linux")]
            let advice = libc::MADV_DONTNEED;
            #[cfg(not(target_os = "linux"))]
            let advice = libc::MADV_FREE;
            // SAFETY: within the mapping, and what is in it is of no use to anybody.
            unsafe {
                libc::madvise(self.usable(), self.length - GUARD - KEPT, advice);
            }
        }

        pub fn base(&self) -> StackPointer {
            StackPointer::new(self.start + self.length).expect("not at the bottom of memory")
        }

        pub fn limit(&self) -> StackPointer {
            StackPointer::new(self.start).expect("not at the bottom of memory")
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: made by `new`, and this is its only owner.
            unsafe {
                libc::munmap(self.start as *mut libc::c_void, self.length);
            }
        }
    }
}
