//! What takes the place of a match: a text in which `$name` stands for a group.

use super::program::{Program, Slots, part};
use super::syntax::Refused;

/// Bytes that a text may have after that.
const LARGEST: usize = 16 * 1024 * 1024;

pub struct Template {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Group(usize),
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq)]
pub enum Failed {
    /// The text is too long for the pattern.
    Long,
    /// It would become too long.
    Large,
}

impl Template {
    /// Read `$name` and `${name}`; `$$` is a dollar, and so is one that nothing follows which could be a name.
    pub fn parse(text: &str, names: &[String]) -> Result<Self, Refused> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(further) = after.strip_prefix('$') {
                plain.push('$');
                rest = further;
                continue;
            }
            let (name, further) = name(after);
            let Some(name) = name else {
                plain.push('$');
                rest = after;
                continue;
            };
            let Some(group) = names.iter().position(|each| each == name) else {
                return Err(no_group(name, names));
            };
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Group(group + 1));
            rest = further;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Self { parts })
    }

    /// How many groups have to be found, the whole match being the first.
    fn groups(&self) -> usize {
        let group = |part: &Part| match part {
            Part::Group(group) => group + 1,
            Part::Text(_) => 1,
        };
        self.parts.iter().map(group).max().unwrap_or(1)
    }

    fn write(&self, text: &str, slots: &Slots, into: &mut String) {
        for each in &self.parts {
            into.push_str(match each {
                Part::Text(text) => text,
                Part::Group(group) => part(text, slots, *group).unwrap_or_default(),
            });
        }
    }
}

/// The name at the start of a text, bare or in braces, and what is behind it.
fn name(text: &str) -> (Option<&str>, &str) {
    if let Some((name, rest)) = text
        .strip_prefix('{')
        .and_then(|inside| inside.split_once('}'))
    {
        return (Some(name), rest);
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    match end {
        0 => (None, text),
        end => (Some(&text[..end]), &text[end..]),
    }
}

fn no_group(name: &str, names: &[String]) -> Refused {
    let there = match names {
        [] => "none has a name, as in (?<year>[0-9]+)".to_owned(),
        names => format!("there is {}", names.join(", ")),
    };
    Refused::new(format!(
        "this pattern has no group '{name}': {there}; a dollar is written $$"
    ))
}

impl Program {
    /// Replace all matches, or the first one; a text without one comes back as it is.
    ///
    /// A match of nothing right behind another match is none.
    pub fn replaced(&self, text: &str, with: &Template, first: bool) -> Result<String, Failed> {
        if text.len() > self.longest_replaced(first) {
            return Err(Failed::Long);
        }
        let mut made = String::new();
        let mut end = 0;
        for_each_match(self, text, with.groups(), |slots| {
            let (start, stop) = bounds(slots);
            made.push_str(&text[end..start]);
            with.write(text, slots, &mut made);
            end = stop;
            !first && made.len() <= LARGEST
        });
        made.push_str(&text[end..]);
        match made.len() > LARGEST {
            true => Err(Failed::Large),
            false => Ok(made),
        }
    }
}

/// Look at one match after the other, as long as more are wanted.
fn for_each_match(
    program: &Program,
    text: &str,
    groups: usize,
    mut look: impl FnMut(&Slots) -> bool,
) {
    let mut from = 0;
    let mut last = None;
    while from <= text.len() {
        let found = program.find_from(text, from, groups, |slots| {
            let (start, end) = bounds(slots);
            let is_repeated = start == end && last == Some(end);
            (start, end, is_repeated || look(slots))
        });
        let Some((start, end, wants_more)) = found else {
            return;
        };
        if !wants_more {
            return;
        }
        last = Some(end);
        from = end;
        if start == end {
            from += text[end..].chars().next().map_or(1, char::len_utf8);
        }
    }
}

fn bounds(slots: &Slots) -> (usize, usize) {
    let at = |slot: usize| slots.get(slot).copied().flatten().map_or(0, |at| at.get());
    (at(0), at(1))
}
