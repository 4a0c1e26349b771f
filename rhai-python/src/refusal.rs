//! A part of a value that cannot cross the border, and the way to it.

/// What cannot cross, and the steps to it, the last one first: they are noted on the way back.
pub struct Refusal {
    what: String,
    path: Vec<Step>,
    pub deep: bool,
    /// It is no refusal: the value has too many items to be converted in one go.
    pub large: bool,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Refusal {
    pub fn new(what: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            what: what.into(),
            path: Vec::new(),
            deep: false,
            large: false,
        })
    }

    /// Nested deeper than the limit. Its path would be as long as the limit is high, and help nobody.
    pub fn deep() -> Box<Self> {
        Box::new(Self {
            deep: true,
            ..*Self::new("a value nested too deep")
        })
    }

    pub fn large() -> Box<Self> {
        Box::new(Self {
            large: true,
            ..*Self::new("a large value")
        })
    }

    pub fn under_key(mut self: Box<Self>, key: &str) -> Box<Self> {
        self.path.push(Step::Key(key.to_owned()));
        self
    }

    pub fn under_index(mut self: Box<Self>, index: usize) -> Box<Self> {
        self.path.push(Step::Index(index));
        self
    }

    /// `NaN at 'a.b[1]' cannot leave a script`, with `leave` for the verb.
    pub fn tell(&self, verb: &str) -> String {
        let what = &self.what;
        match self.path.is_empty() || self.deep {
            true => format!("{what} cannot {verb} a script"),
            false => format!("{what} at '{}' cannot {verb} a script", self.way()),
        }
    }

    fn way(&self) -> String {
        let mut way = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Index(index) => way.push_str(&format!("[{index}]")),
                Step::Key(key) if is_word(key) && way.is_empty() => way.push_str(key),
                Step::Key(key) if is_word(key) => way.push_str(&format!(".{key}")),
                Step::Key(key) => way.push_str(&format!("[{key:?}]")),
            }
        }
        way
    }
}

/// Whether a key reads well after a dot.
fn is_word(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
