//! YAML text as a tree in which every node knows its place.

use std::collections::HashMap;
use std::fmt;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// The longest text.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Lists and maps in each other, at most.
const DEPTH_MAX: usize = 16;
/// Nodes at most, those that aliases repeat included.
const NODES_MAX: usize = 20_000;

/// Where something stands in a text. Both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it begins; of nothing, where its key begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing was written.
    Nothing,
    /// Text, without its quotes.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and their values, in the order of the text. No key is there twice.
    Map(Vec<(Node, Node)>),
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl Value {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nothing => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map of keys",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl From<Marker> for Place {
    fn from(marker: Marker) -> Place {
        Place {
            line: marker.line(),
            column: marker.col() + 1,
        }
    }
}

/// The start of a text.
pub const START: Place = Place { line: 1, column: 1 };

/// Reads a text that holds one YAML document.
///
/// # Errors
///
/// What is not YAML; a second document; tags; a key that is no single value, or is there twice;
/// and more than the limits of this module.
pub fn parse(text: &str) -> Result<Node, Flaw> {
    if text.len() > TEXT_BYTES_MAX {
        let problem = format!("the text is longer than {TEXT_BYTES_MAX} bytes");
        return Err(flaw(START, problem));
    }
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = Place::from(*error.marker());
            flaw(place, format!("this is not YAML: {}", error.info()))
        })?;
        let place = Place::from(span.start);
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                return Err(flaw(place, "a second document: write one only".to_owned()));
            }
        }
        builder.take(event, place)?;
    }
    Ok(builder.root.unwrap_or(Node {
        place: START,
        value: Value::Nothing,
    }))
}

fn flaw(place: Place, problem: String) -> Flaw {
    Flaw { place, problem }
}

/// A list or a map whose end has not come.
struct Open {
    place: Place,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    /// The entries, and the key whose value has not come.
    Map(Vec<(Node, Node)>, Option<Node>),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Flaw> {
        match event {
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag)) => {
                Err(flaw(place, format!("the tag '{tag}': leave it out")))
            }
            Event::Scalar(text, style, anchor, None) => {
                let is_plain = style == ScalarStyle::Plain;
                let value = match &*text {
                    "" | "~" | "null" if is_plain => Value::Nothing,
                    _ => Value::Text(text.into_owned()),
                };
                self.add(Node { place, value }, anchor)
            }
            Event::SequenceStart(anchor, None) => {
                self.open(place, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, None) => {
                self.open(place, anchor, Content::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(flaw(place, "an alias of what is not complete".to_owned()));
                };
                self.nodes += count(&node);
                self.add(Node { place, ..node }, 0)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, place: Place, anchor: usize, content: Content) -> Result<(), Flaw> {
        if self.open.len() == DEPTH_MAX {
            let problem = format!("more than {DEPTH_MAX} lists and maps in each other");
            return Err(flaw(place, problem));
        }
        self.open.push(Open {
            place,
            anchor,
            content,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Flaw> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Map(entries, _) => Value::Map(entries),
        };
        let place = open.place;
        self.add(Node { place, value }, open.anchor)
    }

    /// Puts a node that is complete where it belongs. Anchors count from 1.
    fn add(&mut self, mut node: Node, anchor: usize) -> Result<(), Flaw> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(flaw(node.place, format!("more than {NODES_MAX} values")));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(entries, key)) => match key.take() {
                None => {
                    check_key(&node, entries)?;
                    *key = Some(node);
                }
                Some(key) => {
                    if node.value == Value::Nothing {
                        node.place = key.place;
                    }
                    entries.push((key, node));
                }
            },
        }
        Ok(())
    }
}

fn check_key(key: &Node, entries: &[(Node, Node)]) -> Result<(), Flaw> {
    let Value::Text(name) = &key.value else {
        let problem = format!("a key that is {}: write a word", key.value.kind());
        return Err(flaw(key.place, problem));
    };
    let before = entries.iter().find(|(other, _)| other.value == key.value);
    before.map_or(Ok(()), |(other, _)| {
        let line = other.place.line;
        let problem = format!("'{name}' is there already, in line {line}: write it once");
        Err(flaw(key.place, problem))
    })
}

fn count(node: &Node) -> usize {
    match &node.value {
        Value::Nothing | Value::Text(_) => 1,
        Value::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Map(entries) => {
            1 + entries
                .iter()
                .map(|(_, value)| 1 + count(value))
                .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(line: usize, column: usize, text: &str) -> Node {
        Node {
            place: Place { line, column },
            value: Value::Text(text.to_owned()),
        }
    }

    #[test]
    fn every_value_knows_its_place() {
        let root = parse("a: 1\nlist:\n  - 'x'\n  - k: [y]\nnone:\n").expect("is YAML");
        let Value::Map(entries) = root.value else {
            panic!("{root:?}");
        };
        assert_eq!(entries[0], (text(1, 1, "a"), text(1, 4, "1")));
        let Value::List(items) = &entries[1].1.value else {
            panic!("{entries:?}");
        };
        assert_eq!(items[0], text(3, 5, "x"));
        assert_eq!(items[1].place, Place { line: 4, column: 5 });
        assert_eq!(
            entries[2].1,
            Node {
                place: Place { line: 5, column: 1 },
                value: Value::Nothing
            }
        );
    }

    #[test]
    fn quotes_make_text_of_words_that_mean_nothing() {
        let values = |list: &str| match parse(list).expect(list).value {
            Value::List(items) => items.into_iter().map(|item| item.value).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let quoted = values("['null', \"\", '~']");
        assert!(quoted.iter().all(|v| matches!(v, Value::Text(_))));
        assert_eq!(values("[null, ~, ]"), [Value::Nothing, Value::Nothing]);
    }

    #[test]
    fn aliases_repeat_what_their_anchor_holds() {
        let root = parse("a: &x [1, 2]\nb: *x\n").expect("is YAML");
        let Value::Map(entries) = root.value else {
            panic!("{root:?}");
        };
        assert_eq!(entries[0].1.value, entries[1].1.value);
        assert_eq!(entries[1].1.place, Place { line: 2, column: 4 });
    }

    #[test]
    fn flaws_name_their_place() {
        let deep = "[".repeat(DEPTH_MAX + 1);
        let many = format!("[{}]", "1,".repeat(NODES_MAX));
        let doubling: String = (1..15)
            .map(|n| format!("a{n}: &x{n} [*x{}, *x{}]\n", n - 1, n - 1))
            .collect();
        let bomb = format!("a0: &x0 [1, 2]\n{doubling}");
        for (given, place, problem) in [
            ("a: [1", (2, 1), "not YAML"),
            ("a: 1\na: 2\n", (2, 1), "in line 1"),
            ("---\na: 1\n---\nb: 1\n", (3, 1), "second document"),
            ("a: !!str 1\n", (1, 4), "tag"),
            ("[1]: 2\n", (1, 1), "a key that is a list"),
            (&deep, (1, DEPTH_MAX + 1), "more than 16"),
            (&many, (1, 0), "more than 20000"),
            (&bomb, (0, 0), "more than 20000"),
        ] {
            let short: String = given.chars().take(60).collect();
            let found = parse(given).expect_err(&short);
            assert!(found.problem.contains(problem), "{short}: {found:?}");
            if place.1 != 0 {
                assert_eq!((found.place.line, found.place.column), place, "{found:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn no_likely_text_makes_it_panic(
            words in proptest::collection::vec(
                prop::sample::select(vec![
                    "a", ":", " ", "\n", "-", "- ", "[", "]", "{", "}", "'", "\"", "&x ", "*x", "!",
                    "|", ">", "#", "? ", "---", "...", "%", ",", "\t", "null", "1", "é",
                ]),
                0..40,
            )
        ) {
            let _ = parse(&words.concat());
        }
    }
}
