//! Sorting that any comparer can be trusted with.
//!
//! The standard library's sort panics when a comparer contradicts itself, and takes no error from it; ours is a plain
//! merge sort, which compares n log n times whatever the answers are, and stops at the first error.

use std::cmp::Ordering;

use rhai::{Array, Dynamic, FnPtr, Module, NativeCallContext};

use super::{changer, reader};
use crate::failure::failed;
use crate::run::{Outcome, spend};

pub fn register(module: &mut Module) {
    for name in ["sort", "sort_by"] {
        changer(name).set_into_module(
            module,
            |context: NativeCallContext, array: &mut Array, comparer: FnPtr| -> Outcome<()> {
                sort(array, |left, right| ask(&context, &comparer, left, right))
            },
        );
    }
    for name in ["order", "order_by"] {
        reader(name).set_into_module(
            module,
            |context: NativeCallContext, array: &mut Array, comparer: FnPtr| -> Outcome<Array> {
                sorted(array, |left, right| ask(&context, &comparer, left, right))
            },
        );
    }
    changer("sort").set_into_module(module, |array: &mut Array| sort(array, natural));
    changer("sort_desc").set_into_module(module, |array: &mut Array| sort(array, reversed));
    reader("order").set_into_module(module, |array: &mut Array| sorted(array, natural));
    reader("order_desc").set_into_module(module, |array: &mut Array| sorted(array, reversed));
}

/// What a comparer of the script says: a number, or whether the first comes first.
fn ask(
    context: &NativeCallContext,
    comparer: &FnPtr,
    left: &Dynamic,
    right: &Dynamic,
) -> Outcome<Ordering> {
    let answer = comparer.call_raw(context, None, [left.clone(), right.clone()])?;
    Ok(match (answer.as_int(), answer.as_bool()) {
        (Ok(number), _) => number.cmp(&0),
        (_, Ok(true)) => Ordering::Less,
        (_, Ok(false)) => Ordering::Greater,
        _ => left.type_id().cmp(&right.type_id()),
    })
}

fn natural(left: &Dynamic, right: &Dynamic) -> Outcome<Ordering> {
    if let (Ok(left), Ok(right)) = (left.as_int(), right.as_int()) {
        return Ok(left.cmp(&right));
    }
    if let (Ok(left), Ok(right)) = (left.as_float(), right.as_float()) {
        return Ok(left.partial_cmp(&right).unwrap_or(Ordering::Equal));
    }
    if let (Ok(left), Ok(right)) = (
        left.as_immutable_string_ref(),
        right.as_immutable_string_ref(),
    ) {
        spend(left.len().min(right.len()) / 16)?;
        return Ok(left.as_str().cmp(right.as_str()));
    }
    if let (Ok(left), Ok(right)) = (left.as_char(), right.as_char()) {
        return Ok(left.cmp(&right));
    }
    if let (Ok(left), Ok(right)) = (left.as_bool(), right.as_bool()) {
        return Ok(left.cmp(&right));
    }
    match left.is_unit() && right.is_unit() {
        true => Ok(Ordering::Equal),
        false if left.type_id() == right.type_id() => Err(failed(format!(
            "elements of {} cannot be sorted",
            left.type_name()
        ))),
        false => Err(failed("elements of different types cannot be sorted")),
    }
}

fn reversed(left: &Dynamic, right: &Dynamic) -> Outcome<Ordering> {
    natural(left, right).map(Ordering::reverse)
}

fn sorted(
    array: &Array,
    compare: impl FnMut(&Dynamic, &Dynamic) -> Outcome<Ordering>,
) -> Outcome<Array> {
    let mut copy = array.clone();
    sort(&mut copy, compare)?;
    Ok(copy)
}

/// Stable; on an error the array stays as it was.
fn sort(
    array: &mut Array,
    mut compare: impl FnMut(&Dynamic, &Dynamic) -> Outcome<Ordering>,
) -> Outcome<()> {
    let mut order: Vec<usize> = (0..array.len()).collect();
    let mut merged = Vec::with_capacity(order.len());
    let mut width = 1;
    while width < order.len() {
        for pair in order.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged, |a, b| {
                compare(&array[a], &array[b])
            })?;
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        width *= 2;
    }
    let mut items: Vec<Dynamic> = std::mem::take(array);
    *array = order
        .into_iter()
        .map(|index| std::mem::take(&mut items[index]))
        .collect();
    Ok(())
}

fn merge(
    mut left: &[usize],
    mut right: &[usize],
    merged: &mut Vec<usize>,
    mut compare: impl FnMut(usize, usize) -> Outcome<Ordering>,
) -> Outcome<()> {
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        spend(2)?;
        match compare(*first, *second)? {
            Ordering::Greater => {
                merged.push(*second);
                right = right_rest;
            }
            _ => {
                merged.push(*first);
                left = left_rest;
            }
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}
