//! A pattern whose automaton is built whole: whether a text matches is known after one look at each byte.

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::WhichCaptures;

use super::program::{LONGEST, automaton};
use super::syntax::{Refused, Syntax};

/// Bytes of an automaton, and of what building it takes meanwhile, which bounds the time of that.
pub struct Room {
    pub bytes: usize,
    pub meanwhile: usize,
}

/// For a pattern that is built once, with its config: some 20 ms.
pub const ROOM: Room = Room {
    bytes: 1024 * 1024,
    meanwhile: 128 * 1024,
};
/// For one that may come with a message: some 5 ms.
pub const LITTLE_ROOM: Room = Room {
    bytes: 256 * 1024,
    meanwhile: 32 * 1024,
};

pub struct Whole(dense::DFA<Vec<u32>>);

impl Whole {
    pub fn new(text: &str, room: &Room) -> Result<Self, Refused> {
        let syntax = Syntax::parse(text)?;
        let automaton = automaton(&syntax, text, WhichCaptures::None)?;
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .dfa_size_limit(Some(room.bytes))
            .determinize_size_limit(Some(room.meanwhile));
        dense::Builder::new()
            .configure(config)
            .build_from_nfa(&automaton)
            .map(Self)
            .map_err(|_| {
                Refused::new(
                    "this pattern is too large for a condition, which is known after one look at each character: \
                     repeat less, and write a class of ASCII such as [ -~] in place of '.' and [^x]",
                )
            })
    }

    /// Whether it matches somewhere in a text, which is not too long for that.
    pub fn is_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        text.len() <= LONGEST
            && self
                .0
                .try_search_fwd(&input)
                .is_ok_and(|found| found.is_some())
    }
}
