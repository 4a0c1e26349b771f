//! Looking through a value that wants to leave the engine, before it does.
//!
//! On the coroutine's stack, in the engine's terms: the position of the call is known there, and a value
//! that cannot leave, is too large or nests too deep never gets to the ordinary stack.

use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Map, Position};

use crate::failure::failed;
use crate::limits::{Ending, Sizes};
use crate::refusal::Refusal;
use crate::run::{Outcome, Run, over, spend};

/// Work on so many items is counted at once.
const ITEMS_PER_LOOK: usize = 1_024;

/// Why a value cannot leave.
enum Refused {
    Form(Box<Refusal>),
    /// The run is over anyway.
    Over(Box<EvalAltResult>),
}

/// The size of `value`, which may leave. The limits are those for what a script builds, raised by what came in.
pub fn check(value: &Dynamic, run: &Run) -> Outcome<Sizes> {
    let (limits, came_in) = (&run.limits, run.came_in());
    let mut sizes = Sizes::default();
    look(value, limits.nesting, &mut sizes).map_err(Refused::into_error)?;
    if sizes.text > limits.string.saturating_add(came_in.text) {
        return Err(too_large("Length of string"));
    }
    if sizes.elements > limits.array.saturating_add(came_in.elements) {
        return Err(too_large("Size of array/BLOB"));
    }
    if sizes.entries > limits.map.saturating_add(came_in.entries) {
        return Err(too_large("Size of object map"));
    }
    Ok(sizes)
}

/// In the engine's words, as if it had measured.
fn too_large(what: &str) -> Box<EvalAltResult> {
    EvalAltResult::ErrorDataTooLarge(what.to_owned(), Position::NONE).into()
}

fn look(value: &Dynamic, levels: usize, sizes: &mut Sizes) -> Result<(), Refused> {
    if value.is_int() || value.is_bool() || value.is_unit() || value.is_char() {
        sizes.number();
    } else if let Some(text) = value.read_lock::<ImmutableString>() {
        sizes.text(text.len());
    } else if let Some(map) = value.read_lock::<Map>() {
        look_into_map(&map, levels, sizes)?;
    } else if let Some(array) = value.read_lock::<Array>() {
        look_into_array(&array, levels, sizes)?;
    } else if let Some(number) = value.read_lock::<f64>() {
        sizes.number();
        if !number.is_finite() {
            return Err(refused(name_of_number(*number)));
        }
    } else {
        return Err(refused(name_of(value)));
    }
    Ok(())
}

fn look_into_map(map: &Map, levels: usize, sizes: &mut Sizes) -> Result<(), Refused> {
    let levels = deeper(levels)?;
    for (index, (key, item)) in map.iter().enumerate() {
        if index % ITEMS_PER_LOOK == 0 {
            let items = ITEMS_PER_LOOK.min(map.len() - index);
            spend(items * 2).map_err(Refused::Over)?;
        }
        sizes.entry(key);
        look(item, levels, sizes)
            .map_err(|refused| refused.map(|refusal| refusal.under_key(key)))?;
    }
    Ok(())
}

fn look_into_array(array: &Array, levels: usize, sizes: &mut Sizes) -> Result<(), Refused> {
    let levels = deeper(levels)?;
    for (index, item) in array.iter().enumerate() {
        if index % ITEMS_PER_LOOK == 0 {
            let items = ITEMS_PER_LOOK.min(array.len() - index);
            spend(items).map_err(Refused::Over)?;
        }
        sizes.element();
        look(item, levels, sizes)
            .map_err(|refused| refused.map(|refusal| refusal.under_index(index)))?;
    }
    Ok(())
}

impl Refused {
    fn map(self, step: impl FnOnce(Box<Refusal>) -> Box<Refusal>) -> Self {
        match self {
            Self::Form(refusal) => Self::Form(step(refusal)),
            over => over,
        }
    }

    fn into_error(self) -> Box<EvalAltResult> {
        match self {
            Self::Form(refusal) if refusal.deep => over(Ending::Nesting),
            Self::Form(refusal) => failed(refusal.tell("leave")),
            Self::Over(error) => error,
        }
    }
}

fn refused(what: impl Into<String>) -> Refused {
    Refused::Form(Refusal::new(what))
}

fn deeper(levels: usize) -> Result<usize, Refused> {
    levels
        .checked_sub(1)
        .ok_or_else(|| Refused::Form(Refusal::deep()))
}

fn name_of_number(number: f64) -> &'static str {
    match number.is_nan() {
        true => "NaN",
        false if number > 0.0 => "infinity",
        false => "-infinity",
    }
}

fn name_of(value: &Dynamic) -> String {
    match value.type_name() {
        "Fn" => "a function".to_owned(),
        "blob" => "a blob".to_owned(),
        name if name.contains("Range") => "a range".to_owned(),
        name => format!("a {}", name.rsplit("::").next().unwrap_or(name)),
    }
}
