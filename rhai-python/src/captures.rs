//! Variables that closures capture, emptied when a run is over.
//!
//! A captured variable becomes a cell that the closure and the scope share. Where the closure is kept in a variable
//! that it captured, the two hold each other: nothing frees them, and the engine has no way to find them.
//! So the cells are made here, just before the engine would make them, and a weak list of them is kept.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use rhai::{Dynamic, Engine, EvalContext};

use crate::run::current;

/// What is gone is removed from the list when it has grown to this, and to twice what was left from then on.
const FEW: usize = 256;

/// The cells of one run.
#[derive(Default)]
pub struct Cells {
    list: RefCell<Vec<Weak<RwLock<Dynamic>>>>,
    most: Cell<usize>,
}

impl Cells {
    fn add(&self, cell: &Arc<RwLock<Dynamic>>) {
        let mut list = self.list.borrow_mut();
        if list.len() >= self.most.get().max(FEW) {
            list.retain(|cell| cell.strong_count() > 0);
            self.most.set(list.len() * 2);
        }
        list.push(Arc::downgrade(cell));
    }

    /// The run is over: what its cells hold is dropped, and with it whatever circle they were in.
    pub fn empty(&self) {
        for cell in self.list.take() {
            if let Some(cell) = cell.upgrade() {
                let mut value = cell.write().unwrap_or_else(PoisonError::into_inner);
                let held = std::mem::take(&mut *value);
                drop(value);
                drop(held);
            }
        }
    }
}

/// Have `engine` tell of every use of a variable, of which its capture is one, and make the cells of those
/// that are captured anywhere. A variable in a cell is used like any other.
pub fn watch(engine: &mut Engine, captured: Vec<String>) {
    #[allow(deprecated)] // not deprecated but volatile, as rhai says; the version is pinned
    engine.on_var(move |name, _, mut context| {
        if captured.iter().any(|captured| captured == name) {
            share(&mut context, name);
        }
        Ok(None)
    });
}

fn share(context: &mut EvalContext, name: &str) {
    // Constants are shared by the engine: they change no more, so nothing can be kept in them.
    let Some(variable) = context.scope_mut().get_mut(name) else {
        return;
    };
    if !variable.is_shared() {
        let cell = Arc::new(RwLock::new(variable.take()));
        current(|run| run.cells.add(&cell));
        *variable = cell.into();
    }
}
