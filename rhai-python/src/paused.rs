//! Runs that can be set aside: the batch they belong to, and the class `Paused`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

use crate::driver::Driver;
use crate::home::Home;
use crate::machine::Event;
use crate::pinned::Pinned;
use crate::script::{Script, slice_end};
use crate::view::View;

/// A run for each value of a list, one after the other.
pub struct Batch {
    driver: Pinned,
    home: Arc<Home>,
    view: Arc<View>,
    values: Py<PyList>,
    /// The first of the values that are running, or run next; and how many are.
    index: usize,
    running: usize,
    /// What the ones that ran emitted is on its way out.
    is_leaving: bool,
    /// Values that were taken in run next: one before them failed.
    begins: bool,
    /// It is a value that could not be taken in which failed: nothing ran.
    is_refused: bool,
    /// Is told of each value that fails, and the others go on; None: all fail.
    on_failure: Option<Py<PyAny>>,
    emitted: Py<PyList>,
    /// Raised once what is left of the runs is dropped.
    failed: Option<PyErr>,
}

impl Batch {
    pub fn new(
        driver: Driver,
        home: Arc<Home>,
        view: Arc<View>,
        values: &Bound<'_, PyList>,
        on_failure: Option<Py<PyAny>>,
    ) -> Self {
        driver.run().goes_on.set(on_failure.is_some());
        Self {
            driver: Pinned::new(driver),
            home,
            view,
            values: values.clone().unbind(),
            index: 0,
            running: 0,
            is_leaving: false,
            begins: false,
            is_refused: false,
            on_failure,
            failed: None,
            emitted: PyList::empty(values.py()).unbind(),
        }
    }

    pub fn into_emitted(self, py: Python<'_>) -> Bound<'_, PyList> {
        self.emitted.bind(py).clone()
    }

    /// Run until all are over (true) or the slice is (false). After an error there is nothing left to run.
    pub fn advance(&mut self, py: Python<'_>, slice_end: Option<Instant>) -> PyResult<bool> {
        loop {
            if self.failed.is_none() {
                match self.go_on(py, slice_end) {
                    Ok(Step::Over) => return Ok(true),
                    Ok(Step::Paused) => return Ok(false),
                    Ok(Step::Made) => {}
                    Err(error) => self.failed = Some(error),
                }
            } else if !self.driver.get()?.forget(py, slice_end) {
                return Ok(false);
            } else if let Some(error) = self.failed.take() {
                if !std::mem::take(&mut self.is_refused) {
                    return Err(error);
                }
                self.skip(py, error)?;
                self.index += 1;
            }
        }
    }

    /// Tell of a value that failed, if the others go on; the error comes back if they do not.
    fn skip(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        match &self.on_failure {
            Some(tell) if error.is_instance_of::<PyException>(py) => {
                tell.call1(py, (error.into_value(py),)).map(drop)
            }
            _ => Err(error),
        }
    }

    /// Take values in, run them, or hand out what they emitted.
    fn go_on(&mut self, py: Python<'_>, slice_end: Option<Instant>) -> PyResult<Step> {
        let driver = self.driver.get()?;
        if self.is_leaving {
            let emitted = self.emitted.bind(py);
            let left = driver.leave(py, &self.view, emitted, slice_end);
            if !left.map_err(|error| at(py, error, self.index + driver.run().begun.get() - 1))? {
                return Ok(Step::Paused);
            }
            self.is_leaving = false;
            self.begins = driver.has_more();
            if !self.begins {
                self.index += std::mem::take(&mut self.running);
            }
            return Ok(Step::Made);
        }
        let event = match self.running {
            0 => {
                let values = self.values.bind(py);
                let taken = driver.take_in(py, values, self.index, &self.view, slice_end);
                match taken.map_err(|refused| at(py, refused, self.index)) {
                    Ok(None) => return Ok(Step::Paused),
                    Ok(Some(0)) => return Ok(Step::Over),
                    Ok(Some(taken)) => self.running = taken,
                    Err(refused) => {
                        self.is_refused = self.on_failure.is_some();
                        return Err(refused);
                    }
                }
                driver.begin(py, slice_end)
            }
            _ if std::mem::take(&mut self.begins) => driver.begin(py, slice_end),
            _ => driver.go_on(py, slice_end),
        };
        let Event::Done(done) = event else {
            return Ok(Step::Paused);
        };
        let failing = self.index + driver.run().begun.get() - 1;
        let settled = driver.settle(py, done);
        if let Err(error) = settled {
            self.skip(py, at(py, error, failing))?;
        }
        self.is_leaving = true;
        Ok(Step::Made)
    }
}

/// How far a batch has come.
enum Step {
    /// There is more to do at once.
    Made,
    Paused,
    Over,
}

/// Note for which value of the list an error is.
fn at(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    let _ = error.value(py).setattr("index", index);
    error
}

impl Drop for Batch {
    fn drop(&mut self) {
        // On another thread than its own the run cannot be ended here (`pinned`).
        if let Ok(driver) = self.driver.get() {
            self.home.give_back(driver.finish());
        }
    }
}

/// Runs that are not over yet.
#[pyclass(frozen, module = "rhai")]
pub struct Paused {
    /// What the batch calls is visited by it alone: the garbage collector counts each reference once.
    script: Py<Script>,
    batch: Mutex<Option<Batch>>,
}

impl Paused {
    pub fn new(script: Py<Script>, batch: Batch) -> Self {
        Self {
            script,
            batch: Mutex::new(Some(batch)),
        }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Batch>>> {
        match self.batch.try_lock() {
            Ok(batch) => Ok(batch),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("it is running right now"))
            }
        }
    }
}

#[pymethods]
impl Paused {
    /// Go on for at most so many seconds: what all runs emitted, or None if they are not over yet.
    fn resume<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Option<Bound<'py, PyList>>> {
        let until = slice_end(seconds)?;
        let mut slot = self.lock()?;
        if let Some(batch) = slot.as_mut() {
            batch.driver.get()?; // on another thread it stays as it is
        }
        let Some(mut batch) = slot.take() else {
            return Err(PyRuntimeError::new_err("it is over"));
        };
        match batch.advance(py, until)? {
            true => Ok(Some(batch.into_emitted(py))),
            false => {
                *slot = Some(batch);
                Ok(None)
            }
        }
    }

    /// Give up: everything of the runs is dropped.
    fn close(&self) -> PyResult<()> {
        let mut slot = self.lock()?;
        if let Some(batch) = slot.as_mut() {
            batch.driver.get()?;
        }
        drop(slot.take());
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.script)?;
        // Locked while it runs: then it is in use, and no garbage.
        let Ok(slot) = self.batch.try_lock() else {
            return Ok(());
        };
        let Some(batch) = slot.as_ref() else {
            return Ok(());
        };
        visit.call(&batch.values)?;
        visit.call(&batch.emitted)?;
        if let Some(tell) = &batch.on_failure {
            visit.call(tell)?;
        }
        batch.driver.traverse(&visit)
    }

    fn __clear__(&self) {
        let batch = self
            .batch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(batch);
    }
}
