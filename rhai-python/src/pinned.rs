//! A driver that only its own thread may touch: its machine is in the middle of something on that thread.

use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::driver::Driver;

/// Dropped on another thread than their own, which ends them when it comes here again. If it has ended itself,
/// they stay: nothing can unwind them any more.
static ABANDONED: Mutex<Vec<Pinned>> = Mutex::new(Vec::new());

pub struct Pinned {
    owner: ThreadId,
    driver: ManuallyDrop<Driver>,
}

// SAFETY: `get` and `drop` hand the driver to its own thread alone; `traverse` looks at Python references, which
// any thread with the interpreter may do.
unsafe impl Send for Pinned {}
// SAFETY: as above; through a shared reference there is `traverse` alone.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub fn new(driver: Driver) -> Self {
        Self {
            owner: thread::current().id(),
            driver: ManuallyDrop::new(driver),
        }
    }

    fn is_here(&self) -> bool {
        thread::current().id() == self.owner
    }

    pub fn get(&mut self) -> PyResult<&mut Driver> {
        match self.is_here() {
            true => Ok(&mut self.driver),
            false => Err(PyRuntimeError::new_err(
                "a paused run belongs to the thread that started it",
            )),
        }
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.driver.traverse(visit)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: taken once, here; the field is not used again.
        let driver = unsafe { ManuallyDrop::take(&mut self.driver) };
        match self.is_here() {
            true => drop(driver),
            false => {
                let mut abandoned = ABANDONED.lock().unwrap_or_else(PoisonError::into_inner);
                abandoned.push(Self {
                    owner: self.owner,
                    driver: ManuallyDrop::new(driver),
                });
            }
        }
    }
}

/// End what was abandoned on other threads and belongs to this one.
pub fn bury() {
    let mut abandoned = ABANDONED.lock().unwrap_or_else(PoisonError::into_inner);
    if abandoned.is_empty() {
        return;
    }
    let (here, elsewhere) = abandoned.drain(..).partition(Pinned::is_here);
    *abandoned = elsewhere;
    // Dropping them drops Python objects, and that may come here again.
    drop(abandoned);
    let here: Vec<Pinned> = here;
    drop(here);
}
