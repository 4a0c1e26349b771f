//! Driving a machine from the ordinary stack: answering what it asks, one call after the other.

use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use rhai::{AST, Dynamic, Module};

use crate::border::departing::Departing;
use crate::border::entering::Entering;
use crate::border::{Border, MOST_TOGETHER, is_over};
use crate::failure::{Failure, Kind, raised};
use crate::gauge::gauge;
use crate::limits::{Ending, Limits};
use crate::machine::{Call, Command, Event, Machine, Program};
use crate::refusal::Refusal;
use crate::run::{Input, Run};
use crate::view::View;

/// Values that cross together may be so large together; one alone may be larger. Large ones gain nothing by company,
/// and push each other out of the processor's cache.
const MOST_BYTES_TOGETHER: usize = 4 << 10;

/// Items of a large value that cross between two looks at the clock.
const ITEMS_PER_LOOK: usize = 256;

/// Emitted values that leave between two looks at the clock: more than the values that mostly run together.
const VALUES_PER_LOOK: usize = 64;

/// Exceptions of host functions that are kept for the case that the run fails for one of them.
const MOST_RAISED: usize = 8;

/// What a script calls outside of it.
#[derive(Default)]
pub struct Callables {
    pub functions: Vec<Py<PyAny>>,
    pub note: Option<Py<PyAny>>,
}

pub struct Driver {
    machine: Machine,
    border: Border,
    /// The value that is converted, if it is too large for one go; and the one that leaves.
    entering: Option<Entering>,
    departing: Option<Departing>,
    callables: Arc<Callables>,
    /// What host functions raised last, by number.
    raised: Vec<(usize, PyErr)>,
    numbered: usize,
    /// The machine is dropping what a failed value left.
    is_dropping: bool,
    /// What a host function raised that is no `Exception`: it ends the run, and comes out as it is.
    pub interrupt: Option<PyErr>,
}

impl Driver {
    pub fn new(program: Box<Program>, run: Run, callables: Arc<Callables>) -> PyResult<Self> {
        Ok(Self {
            machine: Machine::new(program, run)?,
            border: Border::default(),
            entering: None,
            departing: None,
            callables,
            raised: Vec::new(),
            numbered: 0,
            is_dropping: false,
            interrupt: None,
        })
    }

    pub fn run(&self) -> &Run {
        &self.machine.run
    }

    /// The Python objects it holds, but for what the script calls.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.border.traverse(visit)?;
        if let Some(entering) = &self.entering {
            entering.traverse(visit)?;
        }
        if let Some(departing) = &self.departing {
            departing.traverse(visit)?;
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Option<Box<Program>> {
        self.machine.finish()
    }

    pub fn parse(
        &mut self,
        py: Python<'_>,
        source: String,
        script: bool,
    ) -> Result<Box<AST>, Box<Failure>> {
        let source = source.into_boxed_str();
        match self.answered(py, Command::Parse { source, script }, None) {
            Event::Parsed(parsed) => parsed,
            _ => unreachable!("a source is parsed or not"),
        }
    }

    pub fn load(&mut self, py: Python<'_>, ast: Box<AST>) -> Result<Box<Module>, Box<Failure>> {
        match self.answered(py, Command::Load(ast), None) {
            Event::Loaded(loaded) => loaded,
            _ => unreachable!("a module is loaded or not"),
        }
    }

    /// Resume until there is something that cannot be answered here.
    fn answered(&mut self, py: Python<'_>, command: Command, slice_end: Option<Instant>) -> Event {
        let mut command = command;
        loop {
            command = match self.machine.resume(command, slice_end) {
                Event::Call(call) => self.call(py, call),
                Event::Measure => Command::Size(self.whole_size(py)),
                event => return event,
            }
        }
    }

    fn whole_size(&self, py: Python<'_>) -> usize {
        let (run, border) = (self.run(), &self.border);
        border.whole_size(py, run.begun.get() - 1, run.limits.nesting)
    }

    /// What the answer takes is the run's: it may keep it, and a script can ask again and again.
    fn call(&mut self, py: Python<'_>, mut call: Box<Call>) -> Command {
        let before = gauge(|gauge| gauge.held.get());
        let mut kept = 0;
        match self.answer(py, &call) {
            Ok(answer) => (call.answer, kept) = (Ok(answer.0), answer.1),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                call.answer = Err(self.keep(py, error));
            }
            Err(interrupt) => {
                self.interrupt = Some(interrupt);
                return Command::Close;
            }
        }
        let taken = gauge(|gauge| gauge.held.get()) - before;
        self.run().charge(taken + kept as isize);
        Command::Answer(call)
    }

    fn answer(&mut self, py: Python<'_>, call: &Call) -> PyResult<(Dynamic, usize)> {
        let levels = self.run().limits.nesting;
        let answer = self.called(py, call)?;
        let entered = self.border.put_answer(&answer, levels);
        entered.map_err(|refusal| refused(py, &refusal, &self.run().limits))
    }

    /// The text of an exception and its number, by which it is found again if the run fails for it.
    fn keep(&mut self, py: Python<'_>, error: PyErr) -> Dynamic {
        let text = error.value(py).to_string();
        self.numbered += 1;
        if self.raised.len() == MOST_RAISED {
            self.raised.remove(0);
        }
        self.raised.push((self.numbered, error));
        raised(&text, self.numbered)
    }

    fn called<'py>(&self, py: Python<'py>, call: &Call) -> PyResult<Bound<'py, PyAny>> {
        let nothing = View::default();
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|argument| self.border.leave(py, argument, &nothing));
        let arguments = PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)?;
        self.callables.functions[call.function]
            .bind(py)
            .call1(arguments)
    }

    /// Convert values from `first` on, as many as go together, and tell how many; None if the slice is over before.
    /// An error if the first cannot enter; where another cannot, the ones before it run first.
    pub fn take_in(
        &mut self,
        py: Python<'_>,
        values: &Bound<'_, PyList>,
        first: usize,
        view: &View,
        slice_end: Option<Instant>,
    ) -> PyResult<Option<usize>> {
        if self.entering.is_some() {
            return self.take_in_large(py, values, first, slice_end);
        }
        if !self.border.forget(slice_end) {
            return Ok(None);
        }
        let run = &self.machine.run;
        run.begun.set(0);
        let mut inputs = run.inputs.borrow_mut();
        let mut bytes = 0;
        for index in first..values.len().min(first + MOST_TOGETHER) {
            let value = values.get_item(index)?;
            match self.border.enter(&value, view, run.limits.nesting) {
                Ok(Some(entered)) => {
                    let sizes = self.border.sizes();
                    bytes += sizes.bytes;
                    inputs.push(Input::new(entered, sizes, &value));
                }
                Ok(None) if inputs.is_empty() => {
                    drop(inputs);
                    let entering =
                        Entering::new(&mut self.border, &value, view, run.limits.nesting);
                    run.pauses_in_allocator.set(true);
                    self.entering =
                        Some(entering.map_err(|refusal| refused(py, &refusal, &run.limits))?);
                    return self.take_in_large(py, values, first, slice_end);
                }
                Err(refusal) if inputs.is_empty() => {
                    return Err(refused(py, &refusal, &run.limits));
                }
                _ => break,
            }
            if bytes > MOST_BYTES_TOGETHER {
                break;
            }
        }
        inputs.reverse();
        Ok(Some(inputs.len()))
    }

    /// Go on with the one value that is converted.
    fn take_in_large(
        &mut self,
        py: Python<'_>,
        values: &Bound<'_, PyList>,
        first: usize,
        slice_end: Option<Instant>,
    ) -> PyResult<Option<usize>> {
        let run = &self.machine.run;
        let Some(entering) = &mut self.entering else {
            return Ok(None);
        };
        let entered = loop {
            match entering.go_on(py, &mut self.border, ITEMS_PER_LOOK) {
                Ok(Some(entered)) => break entered,
                Ok(None) if is_over(slice_end) => return Ok(None),
                Ok(None) => {}
                Err(refusal) => return Err(refused(py, &refusal, &run.limits)),
            }
        };
        self.entering = None;
        let value = values.get_item(first)?;
        let input = Input::new(entered, self.border.sizes(), &value);
        run.inputs.borrow_mut().push(input);
        Ok(Some(1))
    }

    /// Drop what is left of runs that will not go on (true), or as much of it as the slice has time for (false).
    pub fn forget(&mut self, py: Python<'_>, slice_end: Option<Instant>) -> bool {
        let dropped = match self.entering.take() {
            Some(entering) => {
                let made = entering.into_made();
                self.answered(py, Command::Drop(made), slice_end)
            }
            None if self.is_dropping => self.go_on(py, slice_end),
            None => Event::Dropped,
        };
        self.is_dropping = matches!(dropped, Event::Paused);
        !self.is_dropping && self.border.forget(slice_end)
    }

    /// Run the values that were taken in, up to the end of the last or of the slice.
    pub fn begin(&mut self, py: Python<'_>, slice_end: Option<Instant>) -> Event {
        self.answered(py, Command::Run, slice_end)
    }

    pub fn go_on(&mut self, py: Python<'_>, slice_end: Option<Instant>) -> Event {
        self.answered(py, Command::Go, slice_end)
    }

    /// Whether values were taken in that did not run, because one before them failed.
    pub fn has_more(&self) -> bool {
        !self.run().inputs.borrow().is_empty()
    }

    /// What a run left: its notes are told, and what it emitted may `leave`; also what ran before a failure, if it
    /// goes on.
    pub fn settle(&mut self, py: Python<'_>, done: Result<(), Box<Failure>>) -> PyResult<()> {
        if let Some(interrupt) = self.interrupt.take() {
            return Err(interrupt);
        }
        let run = &self.machine.run;
        if let Some(note) = &self.callables.note {
            for entry in run.notes.take() {
                note.call1(py, entry)?;
            }
        }
        let raised = match self.raised.is_empty() {
            true => Vec::new(),
            false => std::mem::take(&mut self.raised),
        };
        run.emitted.borrow_mut().reverse();
        done.map_err(|failure| told(py, *failure, raised))
    }

    /// Add to `out` what was emitted: all of it (true), or as much as the slice has time for (false).
    pub fn leave(
        &mut self,
        py: Python<'_>,
        view: &View,
        out: &Bound<'_, PyList>,
        slice_end: Option<Instant>,
    ) -> PyResult<bool> {
        let run = &self.machine.run;
        let mut left = 0;
        loop {
            if let Some(departing) = &mut self.departing {
                match departing.go_on(py, &self.border, view, ITEMS_PER_LOOK)? {
                    Some(value) => out.append(value)?,
                    None if is_over(slice_end) => return Ok(false),
                    None => continue,
                }
                self.departing = None;
            }
            let Some(value) = run.emitted.borrow_mut().pop() else {
                return Ok(true);
            };
            let value = match value.is_array() {
                true => Departing::new(&self.border, py, value),
                false => Err(value),
            };
            match value {
                Ok(departing) => self.departing = Some(departing),
                Err(value) => out.append(self.border.leave(py, &value, view)?)?,
            }
            left += 1;
            if left % VALUES_PER_LOOK == 0 && is_over(slice_end) {
                return Ok(false);
            }
        }
    }
}

/// The exception for a failure, caused by what the host function raised.
fn told(py: Python<'_>, failure: Failure, raised: Vec<(usize, PyErr)>) -> PyErr {
    let host = failure.host;
    let error = failure.raise(py);
    let mut raised = raised.into_iter();
    if let Some((_, cause)) = raised.find(|(number, _)| Some(*number) == host) {
        error.set_cause(py, Some(cause));
    }
    error
}

fn refused(py: Python<'_>, refusal: &Refusal, limits: &Limits) -> PyErr {
    match refusal.deep {
        true => Failure::of_ending(Ending::Nesting, limits),
        false => Failure::new(Kind::Run, refusal.tell("enter")),
    }
    .raise(py)
}
