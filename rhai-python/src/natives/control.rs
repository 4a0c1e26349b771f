//! `exit` and `take`, from a package that has more in it than a script should have.

use rhai::{Dynamic, EvalAltResult, Module, Position};

use super::{changer, reader};
use crate::run::Outcome;

pub fn register(module: &mut Module) {
    reader("exit").set_into_module(module, || leave(Dynamic::UNIT));
    reader("exit").set_into_module(module, leave);
    changer("take").set_into_module(module, |value: &mut Dynamic| -> Dynamic {
        std::mem::take(value)
    });
}

fn leave(value: Dynamic) -> Outcome<Dynamic> {
    Err(EvalAltResult::Exit(value, Position::NONE).into())
}
