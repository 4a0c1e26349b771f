//! `to_json` and `parse_json`, with bounds, and with JSON's own rules for strings and numbers.
//!
//! The engine's write Rust's escapes and parse with the script parser.

use std::iter::Peekable;
use std::str::CharIndices;

use rhai::{
    Array, Dynamic, EvalAltResult, ImmutableString, Map, Module, NativeCallContext, Position,
};

use super::reader;
use crate::failure::failed;
use crate::limits::Ending;
use crate::run::{Outcome, over, spend};

const MOST_LEVELS: usize = 256;

pub fn register(module: &mut Module) {
    reader("to_json").set_into_module(
        module,
        |context: NativeCallContext, map: &mut Map| -> Outcome<ImmutableString> {
            let mut text = String::new();
            let most = context.engine().max_string_size();
            write_map(&mut text, map, most, MOST_LEVELS)?;
            Ok(text.into())
        },
    );
    reader("parse_json").set_into_module(module, |text: ImmutableString| -> Outcome<Dynamic> {
        Reader::new(&text).whole()
    });
}

fn write(text: &mut String, value: &Dynamic, most: usize, levels: usize) -> Outcome<()> {
    if let Some(map) = value.read_lock::<Map>() {
        write_map(text, &map, most, levels)?;
    } else if let Some(array) = value.read_lock::<Array>() {
        write_array(text, &array, most, levels)?;
    } else if let Ok(string) = value.as_immutable_string_ref() {
        write_string(text, &string);
    } else if let Ok(letter) = value.as_char() {
        write_string(text, letter.encode_utf8(&mut [0; 4]));
    } else if value.is_unit() {
        text.push_str("null");
    } else if let Some(number) = value.as_float().ok().filter(|number| number.is_finite()) {
        text.push_str(&format!("{number:?}"));
    } else if value.is_int() || value.is_bool() {
        text.push_str(&value.to_string());
    } else {
        return Err(failed(format!(
            "a {} has no form in JSON",
            value.type_name()
        )));
    }
    spend(1)?;
    match text.len() > most {
        true => Err(EvalAltResult::ErrorDataTooLarge(
            "Length of string".to_owned(),
            Position::NONE,
        )
        .into()),
        false => Ok(()),
    }
}

fn write_map(text: &mut String, map: &Map, most: usize, levels: usize) -> Outcome<()> {
    let levels = deeper(levels)?;
    text.push('{');
    for (index, (key, item)) in map.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(text, key);
        text.push(':');
        write(text, item, most, levels)?;
    }
    text.push('}');
    Ok(())
}

fn write_array(text: &mut String, array: &Array, most: usize, levels: usize) -> Outcome<()> {
    let levels = deeper(levels)?;
    text.push('[');
    for (index, item) in array.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item, most, levels)?;
    }
    text.push(']');
    Ok(())
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\x1f' => text.push_str(&format!("\\u{:04x}", letter as u32)),
            _ => text.push(letter),
        }
    }
    text.push('"');
}

fn deeper(levels: usize) -> Outcome<usize> {
    levels.checked_sub(1).ok_or_else(|| over(Ending::Nesting))
}

struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            rest: text.char_indices().peekable(),
        }
    }

    fn whole(mut self) -> Outcome<Dynamic> {
        let value = self.value(MOST_LEVELS)?;
        match self.next_visible() {
            None => Ok(value),
            Some(_) => Err(self.wrong()),
        }
    }

    fn value(&mut self, levels: usize) -> Outcome<Dynamic> {
        spend(4)?;
        match self.next_visible() {
            Some('{') => self.object(deeper(levels)?),
            Some('[') => self.array(deeper(levels)?),
            Some('"') => self.string().map(Dynamic::from),
            Some('-' | '0'..='9') => self.number(),
            Some('t') => self.word("true", Dynamic::TRUE),
            Some('f') => self.word("false", Dynamic::FALSE),
            Some('n') => self.word("null", Dynamic::UNIT),
            _ => Err(self.wrong()),
        }
    }

    fn object(&mut self, levels: usize) -> Outcome<Dynamic> {
        let mut map = Map::new();
        self.rest.next();
        if self.next_visible() != Some('}') {
            loop {
                self.expect_visible('"')?;
                let key = self.string()?;
                self.expect_visible(':')?;
                self.rest.next();
                map.insert(key.into(), self.value(levels)?);
                if self.next_visible() != Some(',') {
                    break;
                }
                self.rest.next();
            }
            self.expect_visible('}')?;
        }
        self.rest.next();
        Ok(Dynamic::from_map(map))
    }

    fn array(&mut self, levels: usize) -> Outcome<Dynamic> {
        let mut array = Array::new();
        self.rest.next();
        if self.next_visible() != Some(']') {
            loop {
                array.push(self.value(levels)?);
                if self.next_visible() != Some(',') {
                    break;
                }
                self.rest.next();
            }
            self.expect_visible(']')?;
        }
        self.rest.next();
        Ok(Dynamic::from_array(array))
    }

    /// From the opening quote on.
    fn string(&mut self) -> Outcome<String> {
        let mut string = String::new();
        self.rest.next();
        loop {
            match self.rest.next() {
                Some((_, '"')) => return Ok(string),
                Some((_, '\\')) => string.push(self.escaped()?),
                Some((_, letter)) if letter >= ' ' => string.push(letter),
                _ => return Err(self.wrong()),
            }
        }
    }

    fn escaped(&mut self) -> Outcome<char> {
        match self.rest.next().map(|(_, letter)| letter) {
            Some(letter @ ('"' | '\\' | '/')) => Ok(letter),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.code_point(),
            _ => Err(self.wrong()),
        }
    }

    /// Four hexadecimal digits, or twice that with a surrogate pair.
    fn code_point(&mut self) -> Outcome<char> {
        let first = self.unit()?;
        let code = match first {
            0xd800..0xdc00 => {
                let marked = self.rest.next().is_some_and(|(_, letter)| letter == '\\')
                    && self.rest.next().is_some_and(|(_, letter)| letter == 'u');
                let second = match marked {
                    true => self.unit()?,
                    false => return Err(self.wrong()),
                };
                let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
                0x10000 + ((first - 0xd800) << 10) + low.ok_or_else(|| self.wrong())?
            }
            _ => first,
        };
        char::from_u32(code).ok_or_else(|| self.wrong())
    }

    fn unit(&mut self) -> Outcome<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.rest.next().and_then(|(_, letter)| letter.to_digit(16));
            unit = unit * 16 + digit.ok_or_else(|| self.wrong())?;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Outcome<Dynamic> {
        let start = self.place();
        while self
            .rest
            .next_if(|(_, letter)| matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .is_some()
        {}
        let digits = &self.text[start..self.place()];
        let whole = digits.parse::<i64>().map(Dynamic::from_int);
        whole
            .or_else(|_| digits.parse::<f64>().map(Dynamic::from_float))
            .map_err(|_| self.wrong())
    }

    fn word(&mut self, word: &str, value: Dynamic) -> Outcome<Dynamic> {
        match word
            .chars()
            .all(|letter| self.rest.next_if(|(_, next)| *next == letter).is_some())
        {
            true => Ok(value),
            false => Err(self.wrong()),
        }
    }

    fn next_visible(&mut self) -> Option<char> {
        while self
            .rest
            .next_if(|(_, letter)| matches!(letter, ' ' | '\n' | '\r' | '\t'))
            .is_some()
        {}
        self.rest.peek().map(|(_, letter)| *letter)
    }

    fn expect_visible(&mut self, letter: char) -> Outcome<()> {
        match self.next_visible() == Some(letter) {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    fn place(&mut self) -> usize {
        self.rest
            .peek()
            .map_or(self.text.len(), |(index, _)| *index)
    }

    fn wrong(&mut self) -> Box<EvalAltResult> {
        let place = self.place();
        failed(format!("not JSON: unexpected text at byte {place}"))
    }
}
