//! Array functions that the engine bounds too late, or not at all.

use rhai::{Array, Dynamic, FnPtr, Module, NativeCallContext};

use super::{changer, equality};
use crate::run::{Outcome, spend};

pub fn register(module: &mut Module) {
    changer("pad").set_into_module(module, pad);
    changer("dedup").set_into_module(
        module,
        |context: NativeCallContext, array: &mut Array, equal: FnPtr| -> Outcome<()> {
            equality::thin(array, |last, item| {
                let same = equal.call_raw(&context, None, [last.clone(), item.clone()])?;
                Ok(same.as_bool().unwrap_or(false))
            })
        },
    );
}

/// The engine multiplies the size of the item with the length asked for, which overflows: it lets
/// lengths pass that no memory can hold.
fn pad(context: NativeCallContext, array: &mut Array, length: i64, item: Dynamic) -> Outcome<()> {
    let length = usize::try_from(length).unwrap_or(0);
    let most = context.engine().max_array_size();
    if length <= array.len() {
        return Ok(());
    }
    if length > most {
        return Err(too_large());
    }
    while array.len() < length {
        // Each copy is counted by the allocator, so a large item ends here as well.
        spend(1)?;
        array.push(item.clone());
    }
    Ok(())
}

/// What the engine says when it measures too much.
pub fn too_large() -> Box<rhai::EvalAltResult> {
    rhai::EvalAltResult::ErrorDataTooLarge("Size of array/BLOB".to_owned(), rhai::Position::NONE)
        .into()
}
