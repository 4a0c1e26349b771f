//! The Rhai script engine for Python: values, budgets, modules, positions and host functions.
//!
//! A run is evaluated in a coroutine, on a stack of its own (`machine`, `stack`), so that it can be set aside in
//! the middle of anything (`run`). Python code runs on the ordinary stack alone: values are converted
//! there (`border`), and a host function call comes out of the coroutine as a request (`driver`).

use pyo3::prelude::*;

mod border;
mod captures;
mod driver;
mod engine;
mod failure;
mod gauge;
mod home;
mod leaving;
mod limits;
mod lines;
mod machine;
mod mentions;
mod modules;
mod natives;
mod numbers;
mod pattern;
mod paused;
mod pinned;
mod refusal;
mod run;
mod script;
mod stack;
mod view;

#[global_allocator]
static HEAP: gauge::Counting = gauge::Counting;

#[pymodule(gil_used = false)]
mod _rhai {
    #[pymodule_export]
    use super::lines::count_line_ends;
    #[pymodule_export]
    use super::numbers::has_slow_numbers;
    #[pymodule_export]
    use super::pattern::{Matcher, Pattern, Replacement};
    #[pymodule_export]
    use super::paused::Paused;
    #[pymodule_export]
    use super::script::Script;
    #[cfg(feature = "measure")]
    #[pymodule_export]
    use super::script::measure::evaluation_seconds;
    #[pymodule_export]
    const RHAI_VERSION: &str = "1.27.0";
}
