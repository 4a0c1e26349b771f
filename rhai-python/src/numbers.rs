//! Whether a JSON text may have numbers that a decoder with slow arithmetic takes long for.
//!
//! Those have an exponent of three digits and more, or any behind twenty digits and more. Letters e are many in a text,
//! digits before one are few: so that pair is looked for, in blocks that the compiler makes vector instructions of.

use pyo3::prelude::*;

/// Bytes that are looked at together.
const BLOCK: usize = 256;
/// Digits of an exponent that is slow whatever is before it.
const SLOW_EXPONENT: usize = 3;
/// Digits, and a point, before an exponent that is slow however short it is.
const SLOW_DIGITS: usize = 20;

/// Whether a text may have numbers near the ends of the range of doubles, or between two of them.
#[pyfunction]
pub fn has_slow_numbers(body: &[u8]) -> bool {
    let before = body.chunks(BLOCK);
    let after = body.get(1..).unwrap_or_default().chunks(BLOCK);
    before
        .zip(after)
        .enumerate()
        .any(|(block, (first, second))| {
            has_exponent(first, second) && {
                let start = block * BLOCK;
                (start + 1..=start + second.len()).any(|at| is_slow(body, at))
            }
        })
}

/// Whether a digit of `first` has a letter e behind it, in `second` at the same place.
fn has_exponent(first: &[u8], second: &[u8]) -> bool {
    let pairs = first.iter().zip(second);
    // Without a branch, so that many bytes are looked at in one instruction.
    let found = pairs.fold(0, |found, (digit, letter)| {
        found | (u8::from(digit.is_ascii_digit()) & u8::from(letter | 0x20 == b'e'))
    });
    found != 0
}

/// Whether a slow number has its exponent there.
fn is_slow(body: &[u8], at: usize) -> bool {
    if body[at] | 0x20 != b'e' || !body[at - 1].is_ascii_digit() {
        return false;
    }
    let rest = &body[at + 1..];
    let rest = rest
        .strip_prefix(b"+")
        .or(rest.strip_prefix(b"-"))
        .unwrap_or(rest);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = rest
        .get(digits)
        .is_none_or(|byte| b" \t\n\r\x0b\x0c,]}".contains(byte));
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let is_long = || at >= SLOW_DIGITS && body[at - SLOW_DIGITS..at].iter().all(is_part);
    ends && (digits >= SLOW_EXPONENT || (digits > 0 && is_long()))
}
