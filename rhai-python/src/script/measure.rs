//! What evaluating alone takes, for a benchmark to hold a whole run against. Only with the feature
//! `measure`, which nothing that is installed has.

use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rhai::Dynamic;

use super::Script;
use crate::border::Border;
use crate::limits::Sizes;
use crate::machine::{Command, Event, Program};
use crate::run::{Outcome, Run};
use crate::stack::Stack;

type Input = (Dynamic, Sizes);
type Measured = (Box<Program>, Outcome<(f64, f64)>);

/// CPU seconds of evaluating the script once for each value, so many times over: with the engine, the
/// look-ups that are kept and the counting of a run, but nothing crosses the border.
///
/// The values are converted before. Each evaluation begins with a clone of one and ends with dropping
/// what was emitted; what that alone takes is the second number, and a part of the first. A script that
/// asks the ordinary stack for anything fails.
#[pyfunction]
pub fn evaluation_seconds(
    script: &Script,
    values: &Bound<'_, PyList>,
    times: usize,
) -> PyResult<(f64, f64)> {
    let inputs = converted(script, values)?;
    let home = &script.home;
    let mut program = home.take();
    let run = Rc::new(Run::new(
        home.limits.clone(),
        program.meter.clone(),
        home.emits_lists,
        false,
    ));
    let inside = Rc::clone(&run);
    let stack = Stack::take(&program.limits)?;
    let mut coroutine = Coroutine::with_stack(stack, move |yielder, _: Command| -> Measured {
        inside.lives_on(yielder);
        let seconds = program.seconds(&inside, &inputs, times);
        (program, seconds)
    });
    run.mount();
    let mut result: CoroutineResult<Event, Measured> = coroutine.resume(Command::Go);
    let (program, seconds) = loop {
        match result {
            CoroutineResult::Return(measured) => break measured,
            CoroutineResult::Yield(_) => result = coroutine.resume(Command::Close),
        }
    };
    run.unmount();
    coroutine.into_stack().put_back(true);
    home.give_back(Some(program));
    seconds.map_err(|error| PyValueError::new_err(error.to_string()))
}

fn converted(script: &Script, values: &Bound<'_, PyList>) -> PyResult<Vec<Input>> {
    let mut border = Border::default();
    let entered = values.iter().map(|value| {
        border.forget(None);
        let entered = border.enter(&value, &script.view, script.home.limits.nesting);
        match entered.map_err(|refusal| PyValueError::new_err(refusal.tell("enter")))? {
            Some(entered) => Ok((entered, border.sizes())),
            None => Err(PyValueError::new_err(
                "a value of too many items to be measured",
            )),
        }
    });
    entered.collect()
}

impl Program {
    fn seconds(&mut self, run: &Run, inputs: &[Input], times: usize) -> Outcome<(f64, f64)> {
        let (mut evaluating, mut handing) = (0.0, 0.0);
        for _ in 0..times {
            let began = cpu_seconds();
            for (input, sizes) in inputs {
                run.begin(*sizes, 0, false);
                self.evaluate(input.clone())?;
                run.emitted.borrow_mut().clear();
            }
            let evaluated = cpu_seconds();
            for (input, sizes) in inputs {
                run.begin(*sizes, 0, false);
                run.emitted.borrow_mut().push(input.clone());
                run.emitted.borrow_mut().clear();
            }
            evaluating += evaluated - began;
            handing += cpu_seconds() - evaluated;
        }
        Ok((evaluating, handing))
    }
}

/// CPU seconds this thread has taken.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is handed a clock that there is, and room for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
