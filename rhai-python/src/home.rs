//! Where the programs of a script are between runs, and how another is made.

use std::sync::{Arc, Mutex, PoisonError};

use rhai::{AST, Caches, ImmutableString, Scope};

use crate::captures;
use crate::engine;
use crate::gauge::Meter;
use crate::limits::Limits;
use crate::machine::Program;
use crate::modules::Shelf;

/// A program runs one value at a time. A script that runs inside of its own run, beside a paused one or
/// on two threads takes several; so many are kept, as each has an engine of its own.
const MOST_IDLE: usize = 2;

/// What all programs of a script share.
pub struct Home {
    /// Boxed: they are moved onto other stacks and back.
    #[allow(clippy::vec_box)]
    idle: Mutex<Vec<Box<Program>>>,
    pub limits: Limits,
    pub variable: ImmutableString,
    pub ast: Arc<AST>,
    pub shelf: Shelf,
    /// Names and arities of the host functions.
    pub hosts: Vec<(String, usize)>,
    /// Variables that closures capture.
    pub captured: Vec<String>,
    pub emits_lists: bool,
    pub interpolates: bool,
    pub globals: bool,
    pub source_bytes: usize,
}

impl Home {
    pub fn new(
        limits: Limits,
        variable: &str,
        hosts: Vec<(String, usize)>,
        emits_lists: bool,
    ) -> Self {
        Self {
            idle: Mutex::default(),
            limits,
            variable: variable.into(),
            ast: AST::empty().into(),
            shelf: Shelf::default(),
            hosts,
            captured: Vec::new(),
            emits_lists,
            interpolates: true,
            globals: false,
            source_bytes: 0,
        }
    }

    /// A program that nobody runs.
    pub fn take(&self) -> Box<Program> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.unwrap_or_else(|| self.make().into())
    }

    pub fn give_back(&self, program: Option<Box<Program>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.extend(program);
        }
    }

    fn make(&self) -> Program {
        let meter = Arc::new(Meter::default());
        let (limits, shelf) = (&self.limits, self.shelf.clone());
        let mut engine = engine::build(limits, meter.clone(), shelf, &self.hosts);
        if !self.captured.is_empty() {
            captures::watch(&mut engine, self.captured.clone());
        }
        Program {
            engine,
            meter,
            ast: self.ast.clone(),
            variable: self.variable.clone(),
            limits: self.limits.clone(),
            globals: self.globals,
            caches: Caches::new(),
            scope: Scope::new(),
        }
    }
}
