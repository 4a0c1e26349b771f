//! A pattern whose automaton is built whole: whether a text matches is known after one look at each byte.

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::WhichCaptures;

use super::program::{LONGEST, automaton};
use super::syntax::{Refused, Syntax};

/// Bytes of the automaton, and of what building it takes.
const MOST_BYTES: usize = 1024 * 1024;

pub struct Whole(dense::DFA<Vec<u32>>);

impl Whole {
    pub fn new(text: &str) -> Result<Self, Refused> {
        let syntax = Syntax::parse(text)?;
        let automaton = automaton(&syntax, text, WhichCaptures::None)?;
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .dfa_size_limit(Some(MOST_BYTES))
            .determinize_size_limit(Some(MOST_BYTES));
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
