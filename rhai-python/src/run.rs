//! One run: what it may use, what it made, and its way back to the ordinary stack.

use std::cell::{Cell, RefCell};
use std::panic;
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use corosensei::Yielder;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rhai::{Dynamic, EvalAltResult, Position};

use crate::captures::Cells;
use crate::gauge::{Meter, gauge};
use crate::limits::{Ending, Limits, Sizes};
use crate::machine::{Command, Event};

/// What one operation counts as work of native functions.
const OPERATION: isize = 64;

/// The clock is read once in so many operations, or as much work of native functions: often enough that slow calls
/// do not run far past a limit, seldom enough to cost nothing.
pub const STRIDE: i64 = 32;

/// If so many operations took longer than this, they are slow ones, and the clock is read at each.
const SLOW: Duration = Duration::from_micros(250);

/// So much work, in 64ths of an operation, is done by a native function between two looks of the allocator at the clock:
/// some 10 µs.
const WORK_BETWEEN_LOOKS: isize = 1_024;

/// Formatting more than this could not be stopped (see `Run::end`).
const MOST_FORMATTED: usize = 64 << 20;

/// Notes that one run may leave; then one that says so.
const MOST_NOTES: usize = 100;

pub type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// What `print` and `debug` leave: kind, text, line, column, module.
pub type Note = (
    &'static str,
    String,
    Option<usize>,
    Option<usize>,
    Option<String>,
);

/// Thrown through the engine where an error would make it format a value first.
pub struct Thrown(pub Ending);

/// A value to run, converted.
pub struct Input {
    pub value: Dynamic,
    pub sizes: Sizes,
    /// How many values it is, where `emit` takes lists.
    pub values: usize,
}

impl Input {
    pub fn new(entered: Dynamic, sizes: Sizes, value: &Bound<'_, PyAny>) -> Self {
        Self {
            value: entered,
            sizes,
            values: value.cast::<PyList>().map_or(0, |list| list.len()),
        }
    }
}

pub struct Run {
    pub limits: Limits,
    pub meter: Arc<Meter>,
    /// Sources of the script and its modules: no literal in them is longer.
    pub source_bytes: Cell<usize>,
    /// The script interpolates something that is not a literal.
    pub interpolates: Cell<bool>,
    /// `emit` takes lists only.
    pub emits_lists: bool,
    /// Whether anybody reads the notes.
    pub notes_wanted: bool,
    /// A value that fails leaves the others as they are: those that ran, and those that are to run.
    pub goes_on: Cell<bool>,

    /// Values to run, the next one last; how many of them were begun.
    pub inputs: RefCell<Vec<Input>>,
    pub begun: Cell<usize>,
    pub emitted: RefCell<Vec<Dynamic>>,
    pub cells: Cells,
    pub notes: RefCell<Vec<Note>>,

    notes_left: Cell<usize>,
    ended: Cell<Option<Ending>>,
    came_in: Cell<Sizes>,
    emitted_left: Cell<usize>,
    bytes_left: Cell<usize>,
    loading: Cell<bool>,
    emitted_partial: Cell<bool>,
    /// Bytes of the value that came in, with what was not converted; once somebody asked.
    pub whole: Cell<Option<usize>>,

    /// Tokens that were parsed, and whether that took too long.
    tokens: Cell<u32>,
    late: Cell<bool>,
    /// What is left of the time to compile in, for a script and its modules together.
    compiling_left: Cell<Duration>,

    stride: Cell<i64>,
    looked: Cell<Instant>,
    deadline: Cell<Option<Instant>>,
    slice_end: Cell<Option<Instant>>,
    yielder: Cell<*const Yielder<Command, Event>>,
    room: Cell<isize>,
    credit: Cell<isize>,
    largest: Cell<usize>,
    /// Whether a large value came in: only then the allocator may pause it (see `pause_in_allocator`).
    pub pauses_in_allocator: Cell<bool>,
    /// With no more credit than this, the allocator looks at the clock.
    next_look: Cell<isize>,
}

impl Run {
    pub fn new(limits: Limits, meter: Arc<Meter>, emits_lists: bool, notes_wanted: bool) -> Self {
        Self {
            meter,
            source_bytes: Cell::new(0),
            interpolates: Cell::new(true),
            emits_lists,
            notes_wanted,
            goes_on: Cell::new(false),
            inputs: RefCell::default(),
            begun: Cell::new(0),
            emitted: RefCell::default(),
            cells: Cells::default(),
            notes_left: Cell::new(0),
            notes: RefCell::default(),
            ended: Cell::new(None),
            came_in: Cell::default(),
            emitted_left: Cell::new(0),
            bytes_left: Cell::new(0),
            loading: Cell::new(false),
            emitted_partial: Cell::new(false),
            whole: Cell::new(None),
            tokens: Cell::new(0),
            late: Cell::new(false),
            compiling_left: Cell::new(limits.compiling()),
            stride: Cell::new(STRIDE),
            looked: Cell::new(Instant::now()),
            deadline: Cell::new(None),
            slice_end: Cell::new(None),
            yielder: Cell::new(ptr::null()),
            room: Cell::new(0),
            credit: Cell::new(0),
            largest: Cell::new(0),
            pauses_in_allocator: Cell::new(false),
            next_look: Cell::new(-WORK_BETWEEN_LOOKS),
            limits,
        }
    }

    /// Give back control at this moment, if the run is not over by then.
    pub fn until(&self, slice_end: Option<Instant>) {
        self.slice_end.set(slice_end);
    }

    /// The stack it is on, whose other end it comes out of.
    pub fn lives_on(&self, yielder: &Yielder<Command, Event>) {
        self.yielder.set(yielder);
    }

    /// Do a part of compiling in what is left of the time for it: some takes time that grows with the square of the
    /// source.
    pub fn compiling<T>(&self, work: impl FnOnce() -> T) -> T {
        self.late.set(false);
        let (began, left) = (Instant::now(), self.compiling_left.get());
        self.deadline.set(began.checked_add(left));
        let done = work();
        self.compiling_left
            .set(left.saturating_sub(began.elapsed()));
        done
    }

    /// Whether the source that was parsed last took too long.
    pub fn is_late(&self) -> bool {
        self.late.get()
    }

    /// Whether the source takes too long.
    pub fn parsed_token(&self, tokens_per_look: u32) -> bool {
        self.tokens.set(self.tokens.get().wrapping_add(1));
        if self.tokens.get() % tokens_per_look == 0 {
            let deadline = self.deadline.get();
            self.late
                .set(deadline.is_some_and(|deadline| Instant::now() >= deadline));
        }
        self.late.get()
    }

    pub fn next_input(&self) -> Option<Input> {
        let input = self.inputs.borrow_mut().pop()?;
        self.begun.set(self.begun.get() + 1);
        Some(input)
    }

    /// Drop what the run of a value has left that failed; of the others as well, if they do not go on.
    pub fn failed(&self, emitted_before: usize) {
        match self.goes_on.get() {
            true => self.emitted.borrow_mut().truncate(emitted_before),
            false => self.clear(),
        }
    }

    /// Drop what is left of runs that will not go on.
    pub fn clear(&self) {
        self.inputs.borrow_mut().clear();
        self.emitted.borrow_mut().clear();
    }

    /// Begin with everything that a run may use, for a value of this size. On its own stack.
    pub fn begin(&self, came_in: Sizes, values: usize, loading: bool) {
        let limits = &self.limits;
        self.ended.set(None);
        self.notes_left.set(MOST_NOTES);
        self.deadline.set(None);
        self.loading.set(loading);
        self.emitted_partial.set(false);
        self.whole.set(None);
        self.came_in.set(came_in);
        self.emitted_left.set(limits.emitted.saturating_add(values));
        self.bytes_left
            .set(limits.emitted_bytes.saturating_add(came_in.bytes));
        self.meter
            .begin(limits.operations.min(i64::MAX as u64) as i64);
        gauge(|gauge| {
            gauge.ceiling.set(gauge.held.get() + limits.memory as isize);
            gauge.largest.set(0);
        });
    }

    /// Onto the processor: the gauge goes on where it was.
    pub fn mount(&self) {
        gauge(|gauge| {
            gauge.ceiling.set(gauge.held.get() + self.room.get());
            gauge.credit.set(self.credit.get());
            gauge.largest.set(self.largest.get());
            gauge.run.set(self);
        });
    }

    /// Off it: what other code on this thread does is no business of the run.
    pub fn unmount(&self) {
        gauge(|gauge| {
            self.room.set(gauge.ceiling.get() - gauge.held.get());
            self.credit.set(gauge.credit.get());
            self.largest.set(gauge.largest.get());
            gauge.run.set(ptr::null());
            gauge.ceiling.set(isize::MAX);
            gauge.credit.set(isize::MAX);
        });
    }

    /// Count as held by the run what was taken for it while it was off the processor.
    pub fn charge(&self, bytes: isize) {
        self.room.set(self.room.get() - bytes);
    }

    /// Why the run has to end now, if it has to; pauses when its slice is over.
    fn look(&self) -> Option<Ending> {
        if self.ended.get().is_some() {
            return self.ended.get();
        }
        if self.meter.left() < 0 {
            return Some(Ending::Operations);
        }
        if self.holds_too_much() {
            return Some(Ending::Memory);
        }
        let now = Instant::now();
        let late = now.duration_since(self.looked.get()) > SLOW;
        self.stride.set(match late {
            true => 1,
            false => (self.stride.get() * 2).min(STRIDE),
        });
        self.looked_at(now);
        match (self.deadline.get(), self.limits.time) {
            (Some(deadline), _) if now >= deadline => return Some(Ending::Time),
            // The first look of a run comes so early that the run has hardly begun.
            (None, Some(limit)) => self.deadline.set(now.checked_add(limit)),
            _ => {}
        }
        match self.slice_end.get() {
            Some(end) if now >= end => self.pause(now),
            _ => None,
        }
    }

    /// What it frees of the value that came in, it may not take as well: as deep as memory lets values
    /// nest, the stack was made.
    fn holds_too_much(&self) -> bool {
        gauge(|gauge| {
            let held = gauge.held.get();
            let lowered = gauge.ceiling.get().min(held + self.limits.memory as isize);
            gauge.ceiling.set(lowered);
            held > lowered
        })
    }

    /// The next look is due a stride from now.
    fn looked_at(&self, now: Instant) {
        let stride = self.stride.get();
        self.looked.set(now);
        self.meter.look_after(stride);
        self.next_look.set(-WORK_BETWEEN_LOOKS);
        gauge(|gauge| gauge.credit.set(stride as isize * OPERATION));
    }

    /// Pause, if the slice is over, in the middle of a native function that takes or gives back many blocks of memory: where a
    /// large value is copied or dropped, the engine counts nothing. Not in the runs of small values, which have none to copy.
    ///
    /// Called by the allocator, so it must not unwind, and ends nothing: the next operation does. While the stack is
    /// unwound nobody else may be on the processor, who would be taken for panicking as well.
    pub fn pause_in_allocator(&self, credit: isize) {
        if credit > self.next_look.get() || !self.pauses_in_allocator.get() {
            return;
        }
        self.next_look.set(credit - WORK_BETWEEN_LOOKS);
        let Some(end) = self.slice_end.get() else {
            return;
        };
        let since = Instant::now();
        if since < end || thread::panicking() {
            return;
        }
        let closed = matches!(self.suspend(Event::Paused), Command::Close);
        let now = Instant::now();
        if let Some(deadline) = self.deadline.get() {
            self.deadline.set(Some(deadline + (now - since)));
        }
        self.looked.set(now);
        if closed {
            self.ended.set(Some(Ending::Closed));
            self.meter.stop();
        }
    }

    /// Set aside until somebody resumes; that time is not the run's.
    fn pause(&self, since: Instant) -> Option<Ending> {
        if let Command::Close = self.suspend(Event::Paused) {
            return Some(Ending::Closed);
        }
        let now = Instant::now();
        if let Some(deadline) = self.deadline.get() {
            self.deadline.set(Some(deadline + (now - since)));
        }
        self.looked_at(now);
        None
    }

    fn suspend(&self, event: Event) -> Command {
        // SAFETY: set by the coroutine's own function before anything is evaluated in it, and only code that
        // is evaluated there gets here (`current`).
        unsafe { &*self.yielder.get() }.suspend(event)
    }

    /// End the run: the token for the engine's error, from where it goes on with unwinding.
    ///
    /// An error that comes while an interpolated string asks for the text of a value makes the engine format the
    /// value by itself, all of it. Where that might be gigabytes (a long string in thousands of entries), the
    /// stack is unwound instead; the price is that the error has no position.
    fn end(&self, ending: Ending) -> Dynamic {
        self.ended.set(Some(ending));
        self.meter.stop();
        if self.interpolates.get() && self.might_format() > MOST_FORMATTED {
            panic::resume_unwind(Box::new(Thrown(ending)));
        }
        ending.token()
    }

    fn might_format(&self) -> usize {
        let (used, largest) = gauge(|gauge| {
            let room = gauge.ceiling.get() - gauge.held.get();
            (
                (self.limits.memory as isize - room).max(0) as usize,
                gauge.largest.get(),
            )
        });
        let came_in = self.came_in.get();
        let slots = used / size_of::<Dynamic>() + came_in.elements + came_in.entries;
        let longest = largest.max(came_in.text).max(self.source_bytes.get());
        slots.saturating_mul(longest)
    }

    /// Why the run had to end, if it had.
    pub fn ended(&self) -> Option<Ending> {
        self.ended.get()
    }

    /// The value that came in, as the caps on what leaves count it.
    pub fn came_in(&self) -> Sizes {
        self.came_in.get()
    }

    /// Operations of the run so far.
    pub fn operations_used(&self) -> u64 {
        let left = u64::try_from(self.meter.left()).unwrap_or(0);
        self.limits.operations.saturating_sub(left)
    }

    /// Whether the value that came in is emitted for the first time.
    pub fn is_first_partial(&self) -> bool {
        !self.emitted_partial.replace(true)
    }
}

/// It is time to look: the token of an error that ends the run, or nothing.
#[cold]
pub fn on_look() -> Option<Dynamic> {
    current(|run| run.look().map(|ending| run.end(ending))).flatten()
}

/// The run that is evaluated on this stack.
pub fn current<T>(work: impl FnOnce(&Run) -> T) -> Option<T> {
    let run = gauge(|gauge| gauge.run.get());
    // SAFETY: not null while the machine that owns the run is resumed, which is where we are.
    (!run.is_null()).then(|| work(unsafe { &*run }))
}

/// Work done inside a native function: counted, and an error when the run has to end.
pub fn spend(work: usize) -> Outcome<()> {
    let due = gauge(|gauge| {
        gauge.credit.set(gauge.credit.get() - work as isize);
        gauge.credit.get() <= 0 || gauge.held.get() > gauge.ceiling.get()
    });
    match due {
        true => {
            current(|run| run.look().map_or(Ok(()), |ending| Err(over(ending)))).unwrap_or(Ok(()))
        }
        false => Ok(()),
    }
}

/// The error that ends a run. The engine adds the position, and lets no script catch it.
pub fn over(ending: Ending) -> Box<EvalAltResult> {
    doom(ending);
    EvalAltResult::ErrorTerminated(ending.token(), Position::NONE).into()
}

/// Ask the ordinary stack for something.
pub fn ask(event: Event) -> Outcome<Command> {
    let asked = current(|run| match run.ended.get() {
        Some(ending) => Err(over(ending)),
        None => match run.suspend(event) {
            Command::Close => Err(over(Ending::Closed)),
            command => Ok(command),
        },
    });
    asked.unwrap_or_else(|| Err("no run to ask for".into()))
}

/// End the run at its next operation: for natives whose own error the engine would swallow.
pub fn doom(ending: Ending) {
    current(|run| {
        run.ended.set(Some(ending));
        run.meter.stop();
    });
}

impl Run {
    /// Count an emitted value against the caps, and keep it.
    pub fn emit(&self, value: Dynamic, values: usize, bytes: usize) -> Outcome<()> {
        if self.loading.get() {
            return Err("emit is for runs, a module is loaded without one".into());
        }
        let values_left = self.emitted_left.get().checked_sub(values);
        let bytes_left = self.bytes_left.get().checked_sub(bytes);
        self.emitted_left
            .set(values_left.ok_or_else(|| over(Ending::Emitted))?);
        self.bytes_left
            .set(bytes_left.ok_or_else(|| over(Ending::EmittedBytes))?);
        self.emitted.borrow_mut().push(value);
        Ok(())
    }

    /// Keep what a script prints, up to a point.
    pub fn note(&self, kind: &'static str, text: String, position: Position, module: Option<&str>) {
        let left = self.notes_left.get();
        let text = match left {
            usize::MAX => return,
            0 => format!("more than {MOST_NOTES} notes in one run, the others are left out"),
            _ => text,
        };
        self.notes_left.set(left.wrapping_sub(1));
        let module = module.map(str::to_owned);
        let mut notes = self.notes.borrow_mut();
        notes.push((kind, text, position.line(), position.position(), module));
    }
}
