//! Equality of arrays and objects, and what is built on it.
//!
//! The engine's own goes through its whole call machinery for every pair of items and copies the value that is
//! looked for each time; on values that nest deep it needs a kilobyte of stack per level.

use std::any::TypeId;

use rhai::{Array, Dynamic, EvalAltResult, Map, Module, NativeCallContext};

use super::{changer, reader};
use crate::limits::Ending;
use crate::run::{Outcome, over, spend};

const MOST_LEVELS: usize = 256;

pub fn register(module: &mut Module) {
    reader("==").set_into_module(
        module,
        |context: NativeCallContext, left: &mut Array, right: Array| {
            arrays(&context, left, &right, MOST_LEVELS)
        },
    );
    reader("!=").set_into_module(
        module,
        |context: NativeCallContext, left: &mut Array, right: Array| {
            arrays(&context, left, &right, MOST_LEVELS).map(|same| !same)
        },
    );
    reader("==").set_into_module(
        module,
        |context: NativeCallContext, left: &mut Map, right: Map| {
            maps(&context, left, &right, MOST_LEVELS)
        },
    );
    reader("!=").set_into_module(
        module,
        |context: NativeCallContext, left: &mut Map, right: Map| {
            maps(&context, left, &right, MOST_LEVELS).map(|same| !same)
        },
    );
    reader("contains").set_into_module(
        module,
        |context: NativeCallContext, array: &mut Array, value: Dynamic| {
            Ok(position(&context, array, &value, 0)?.is_some()) as Outcome<bool>
        },
    );
    reader("index_of").set_into_module(
        module,
        |context: NativeCallContext, array: &mut Array, value: Dynamic| {
            index_of(&context, array, &value, 0)
        },
    );
    reader("index_of").set_into_module(
        module,
        |context: NativeCallContext, array: &mut Array, value: Dynamic, start: i64| {
            index_of(&context, array, &value, start)
        },
    );
    changer("dedup").set_into_module(
        module,
        |context: NativeCallContext, array: &mut Array| -> Outcome<()> {
            thin(array, |left, right| {
                same(&context, left, right, MOST_LEVELS)
            })
        },
    );
}

/// Whether two values are equal, as `==` in a script has it.
pub fn same(
    context: &NativeCallContext,
    left: &Dynamic,
    right: &Dynamic,
    levels: usize,
) -> Outcome<bool> {
    if let (Ok(left), Ok(right)) = (left.as_int(), right.as_int()) {
        return Ok(left == right);
    }
    if let (Ok(left), Ok(right)) = (
        left.as_immutable_string_ref(),
        right.as_immutable_string_ref(),
    ) {
        spend(left.len().min(right.len()) / 16)?;
        return Ok(*left == *right);
    }
    if let (Some(left), Some(right)) = (left.read_lock::<Array>(), right.read_lock::<Array>()) {
        return arrays(context, &left, &right, levels);
    }
    if let (Some(left), Some(right)) = (left.read_lock::<Map>(), right.read_lock::<Map>()) {
        return maps(context, &left, &right, levels);
    }
    if is_collection(left) || is_collection(right) {
        return Ok(false);
    }
    plain(context, left, right)
}

fn is_collection(value: &Dynamic) -> bool {
    value.is_array() || value.is_map()
}

fn arrays(
    context: &NativeCallContext,
    left: &Array,
    right: &Array,
    levels: usize,
) -> Outcome<bool> {
    let levels = deeper(levels)?;
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right) {
        spend(1)?;
        if !same(context, left, right, levels)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(context: &NativeCallContext, left: &Map, right: &Map, levels: usize) -> Outcome<bool> {
    let levels = deeper(levels)?;
    if left.len() != right.len() {
        return Ok(false);
    }
    for ((left_key, left), (right_key, right)) in left.iter().zip(right) {
        spend(1)?;
        if left_key != right_key || !same(context, left, right, levels)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn deeper(levels: usize) -> Outcome<usize> {
    levels.checked_sub(1).ok_or_else(|| over(Ending::Nesting))
}

/// Whatever the operator says of two plain values; those of different kinds differ where it says nothing.
fn plain(context: &NativeCallContext, left: &Dynamic, right: &Dynamic) -> Outcome<bool> {
    let (mut first, mut second) = (left.clone(), right.clone());
    match context.call_native_fn_raw("==", true, &mut [&mut first, &mut second]) {
        Ok(same) => Ok(same.as_bool().unwrap_or(false)),
        Err(error) => match *error {
            EvalAltResult::ErrorFunctionNotFound(..) if kind(left) != kind(right) => Ok(false),
            _ => Err(error),
        },
    }
}

fn kind(value: &Dynamic) -> TypeId {
    value.type_id()
}

fn index_of(
    context: &NativeCallContext,
    array: &Array,
    value: &Dynamic,
    start: i64,
) -> Outcome<i64> {
    let found = position(context, array, value, offset(array.len(), start))?;
    Ok(found.map_or(-1, |index| index as i64))
}

fn position(
    context: &NativeCallContext,
    array: &Array,
    value: &Dynamic,
    start: usize,
) -> Outcome<Option<usize>> {
    for (index, item) in array.iter().enumerate().skip(start) {
        spend(1)?;
        if same(context, item, value, MOST_LEVELS)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Where to start: negative counts from the end.
fn offset(length: usize, start: i64) -> usize {
    match start {
        0.. => usize::try_from(start).unwrap_or(usize::MAX),
        _ => length.saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// Drop every item that equals the last one kept. On an error the array stays as it was.
pub fn thin(
    array: &mut Array,
    mut equal: impl FnMut(&Dynamic, &Dynamic) -> Outcome<bool>,
) -> Outcome<()> {
    let mut kept: Vec<usize> = Vec::new();
    for index in 0..array.len() {
        let double = match kept.last() {
            Some(last) => equal(&array[*last], &array[index])?,
            None => false,
        };
        if !double {
            kept.push(index);
        }
    }
    *array = kept
        .into_iter()
        .map(|index| std::mem::take(&mut array[index]))
        .collect();
    Ok(())
}
