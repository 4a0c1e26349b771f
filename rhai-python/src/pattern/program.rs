//! A pattern that can be searched for, in time that is bounded before the search.
//!
//! An engine whose time is linear in the text is not quick for that: a program of 64 KiB takes 178 ms on 64 KiB of
//! text. So a text may be as long as 2²⁴ bytes divided by those of the automaton, which took 7 ms at most in
//! 28,275 random patterns. A pattern that stands at the start of the text, and can be matched in one pass, takes 3 ns a
//! byte whatever it is: its texts may have 1 MiB.

use std::sync::{Arc, OnceLock};

use regex_automata::dfa::onepass;
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, meta};

use super::syntax::{Refused, Syntax};
use super::whole::{LITTLE_ROOM, Whole};

/// Bytes of a program.
pub const MOST_PROGRAM: usize = 64 * 1024;
/// Bytes of a text that is searched at all.
pub const LONGEST: usize = 1024 * 1024;
/// Bytes of the automaton times bytes of the text.
const MOST_WORK: usize = 1 << 24;
/// Bytes of a text in which all matches are replaced: each search may read the text to its end, so that together they
/// take time that grows with its square.
const LONGEST_OF_ALL: usize = 3_000;
/// Bytes of the automaton times the square of those of such a text, where its states are too many to be kept.
const MOST_WORK_OF_ALL: usize = 1 << 27;
/// Bytes of a one-pass automaton; what is larger is searched like any other pattern.
const MOST_ONE_PASS: usize = 1024 * 1024;

/// Where groups begin and end: two for each, the whole match first.
pub type Slots = [Option<NonMaxUsize>];

pub struct Program {
    /// The names of its groups, in their order.
    pub names: Vec<String>,
    /// Bytes of the longest text in which it is searched for.
    pub longest: usize,
    /// The same, of one whose matches are all replaced; known when somebody asks.
    longest_of_all: OnceLock<usize>,
    regex: String,
    /// Bytes of the automaton.
    size: usize,
    /// Whether it can match at the start of a text alone.
    is_at_start: bool,
    search: Search,
    scratch: Pool<Scratch, MakeScratch>,
}

enum Search {
    OnePass(Arc<onepass::DFA>),
    Any(meta::Regex),
}

/// What a search writes in, kept from one to the next.
struct Scratch {
    one_pass: Option<onepass::Cache>,
    any: Option<meta::Cache>,
    slots: Vec<Option<NonMaxUsize>>,
}

type MakeScratch =
    Box<dyn Fn() -> Scratch + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>;

impl Program {
    pub fn new(text: &str) -> Result<Self, Refused> {
        let syntax = Syntax::parse(text)?;
        let automaton = automaton(&syntax, text, thompson::WhichCaptures::All)?;
        let (size, is_at_start) = (
            automaton.memory_usage(),
            automaton.is_always_start_anchored(),
        );
        let slots = 2 * (syntax.names.len() + 1);
        let (search, longest) = match one_pass(&automaton) {
            Some(dfa) => (Search::OnePass(Arc::new(dfa)), LONGEST),
            None => {
                let regex = meta::Builder::new()
                    .configure(meta::Config::new().nfa_size_limit(Some(MOST_PROGRAM)))
                    .build_from_hir(&syntax.hir)
                    .map_err(|_| too_large(&syntax, text))?;
                (Search::Any(regex), LONGEST.min(MOST_WORK / size))
            }
        };
        Ok(Self {
            names: syntax.names,
            longest,
            longest_of_all: OnceLock::new(),
            regex: text.to_owned(),
            size,
            is_at_start,
            scratch: Pool::new(scratch(&search, slots)),
            search,
        })
    }

    pub fn is_one_pass(&self) -> bool {
        matches!(self.search, Search::OnePass(_))
    }

    /// Bytes of the longest text in which the first match can be replaced, or all of them.
    pub fn longest_replaced(&self, first: bool) -> usize {
        if first || self.is_at_start {
            return self.longest;
        }
        let of_all = || match Whole::new(&self.regex, &LITTLE_ROOM) {
            Ok(_) => LONGEST_OF_ALL,
            Err(_) => (MOST_WORK_OF_ALL / self.size).isqrt(),
        };
        self.longest.min(*self.longest_of_all.get_or_init(of_all))
    }

    /// Search in a text, and have a look at where the groups are; None where it does not match, or is too long.
    pub fn find<T>(&self, text: &str, look: impl FnOnce(&Slots) -> T) -> Option<T> {
        match text.len() > self.longest {
            true => None,
            false => self.find_from(text, 0, usize::MAX, look),
        }
    }

    /// Search from a place on, in a text that is not too long; so many groups are looked for.
    pub fn find_from<T>(
        &self,
        text: &str,
        from: usize,
        groups: usize,
        look: impl FnOnce(&Slots) -> T,
    ) -> Option<T> {
        let scratch = &mut *self.scratch.get();
        let input = Input::new(text).range(from..);
        self.search(scratch, input, groups)
            .then(|| look(&scratch.slots))
    }

    fn search(&self, scratch: &mut Scratch, input: Input<'_>, groups: usize) -> bool {
        let most = scratch.slots.len().min(groups.saturating_mul(2));
        let slots = &mut scratch.slots[..most];
        match (&self.search, &mut scratch.one_pass, &mut scratch.any) {
            (Search::OnePass(dfa), Some(cache), _) => {
                let input = input.anchored(Anchored::Yes);
                dfa.try_search_slots(cache, &input, slots)
                    .is_ok_and(|found| found.is_some())
            }
            (Search::Any(regex), _, Some(cache)) => {
                regex.search_slots_with(cache, &input, slots).is_some()
            }
            _ => false,
        }
    }
}

/// What makes the scratch of a search.
fn scratch(search: &Search, slots: usize) -> MakeScratch {
    let slots = vec![None; slots];
    match search {
        Search::OnePass(dfa) => {
            let dfa = dfa.clone();
            Box::new(move || Scratch {
                one_pass: Some(dfa.create_cache()),
                any: None,
                slots: slots.clone(),
            })
        }
        Search::Any(regex) => {
            let regex = regex.clone();
            Box::new(move || Scratch {
                one_pass: None,
                any: Some(regex.create_cache()),
                slots: slots.clone(),
            })
        }
    }
}

/// The automaton of a pattern, unless it is too large.
pub fn automaton(
    syntax: &Syntax,
    text: &str,
    captures: thompson::WhichCaptures,
) -> Result<thompson::NFA, Refused> {
    let config = thompson::Config::new()
        .nfa_size_limit(Some(MOST_PROGRAM))
        .which_captures(captures);
    thompson::Compiler::new()
        .configure(config)
        .build_from_hir(&syntax.hir)
        .map_err(|_| too_large(syntax, text))
}

fn too_large(syntax: &Syntax, text: &str) -> Refused {
    Refused::new(format!(
        "this pattern is too large: {}",
        syntax.largest(text)
    ))
}

/// The one-pass automaton of what stands at the start and can be matched without looking back.
fn one_pass(automaton: &thompson::NFA) -> Option<onepass::DFA> {
    if !automaton.is_always_start_anchored() {
        return None;
    }
    let config = onepass::Config::new().size_limit(Some(MOST_ONE_PASS));
    onepass::Builder::new()
        .configure(config)
        .build_from_nfa(automaton.clone())
        .ok()
}

/// A group's text.
pub fn part<'t>(text: &'t str, slots: &Slots, group: usize) -> Option<&'t str> {
    match (slots.get(2 * group)?, slots.get(2 * group + 1)?) {
        (Some(start), Some(end)) => text.get(start.get()..end.get()),
        _ => None,
    }
}
