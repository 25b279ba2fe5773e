//! Texts of which each connection draws one, written into what it sends.
//!
//! A buffer in which something is drawn has a variant for each combination of texts, each with a
//! number of its own. Nothing is kept for a variant: its bytes are those of its buffer with the
//! texts over them.

use thiserror::Error;

use crate::rng::mixed;

/// Commands name a buffer with draws by this and its place in [`DrawsSpec::buffers`].
pub const DRAWN_FIRST: u32 = 1 << 31;
/// Most combinations of texts in one buffer.
pub const VARIANTS_MAX: u64 = 1 << 20;
/// Most variants of all buffers.
const VARIANTS_ALL_MAX: u64 = 1 << 30;

/// What is drawn in a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawsSpec {
    /// The texts.
    pub lists: Vec<DrawListSpec>,
    /// Where they go.
    pub buffers: Vec<DrawnSpec>,
}

/// Texts of which one is drawn; all of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawListSpec {
    /// The texts.
    pub values: Vec<Vec<u8>>,
    /// At random; else connections take one after another.
    pub is_random: bool,
}

/// A buffer with draws.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnSpec {
    /// Where the user wrote it; errors begin with it.
    pub place: String,
    /// The buffer.
    pub buffer: u32,
    /// What is drawn in it, in the order of the offsets.
    pub draws: Vec<DrawSpec>,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawSpec {
    /// Where the text begins.
    pub offset: u64,
    /// The list that it is drawn from.
    pub list: u32,
}

/// Why nothing can be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrawError {
    /// A list without texts.
    #[error("draw_lists[{0}] has no values: give it at least one")]
    NoValues(usize),
    /// Texts of different lengths.
    #[error(
        "draw_lists[{list}]: value {value} is not as long as the first: fill it up, so that what follows stays in its place"
    )]
    Lengths {
        /// Which list.
        list: usize,
        /// Which value.
        value: usize,
    },
    /// Something about one buffer.
    #[error("{place}.draw[{draw}]: {problem}")]
    Draw {
        /// The command.
        place: String,
        /// Which draw.
        draw: usize,
        /// What is wrong.
        problem: DrawProblem,
    },
    /// More combinations than there are numbers for.
    #[error(
        "{place}: what is drawn has {variants} combinations; the most is {VARIANTS_MAX}: use fewer or shorter lists"
    )]
    TooMany {
        /// The command.
        place: String,
        /// How many.
        variants: u64,
    },
}

/// What is wrong with a draw.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrawProblem {
    /// A buffer that is not there.
    #[error("its buf_index is {buffer}, but buf_list has {count}")]
    Buffer {
        /// The number given.
        buffer: u32,
        /// How many there are.
        count: usize,
    },
    /// A list that is not there.
    #[error("list is {list}, but draw_lists has {count}: use a lower number")]
    List {
        /// The number given.
        list: u32,
        /// How many there are.
        count: usize,
    },
    /// A text beyond the end.
    #[error("its {bytes} bytes from {offset} on leave the buffer of {len}: use a lower offset")]
    Outside {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: usize,
        /// How long the buffer is.
        len: u64,
    },
    /// Texts over texts.
    #[error("it begins before the end of the draw before: sort them, and let none overlap")]
    Overlaps,
}

/// Texts of which one is drawn.
#[derive(Clone, Debug)]
pub(super) struct DrawList {
    values: Box<[Box<[u8]>]>,
}

/// A buffer with draws, and its variants.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    /// The buffer.
    pub(super) buffer: u32,
    /// The number of its first variant; the others follow.
    pub(super) first: u32,
    draws: Box<[Draw]>,
    /// What a connection chooses, each list once.
    choices: Box<[Choice]>,
}

#[derive(Clone, Copy, Debug)]
struct Draw {
    offset: u32,
    list: u32,
    /// Which of the drawn's choices.
    choice: u32,
}

/// A list in the number of a variant: a digit of it.
#[derive(Clone, Copy, Debug)]
struct Choice {
    list: u32,
    count: u32,
    is_random: bool,
    stride: u32,
}

impl DrawList {
    pub(super) fn new(i: usize, spec: &DrawListSpec) -> Result<DrawList, DrawError> {
        let Some(first) = spec.values.first() else {
            return Err(DrawError::NoValues(i));
        };
        let differs = |value: &Vec<u8>| value.len() != first.len();
        if let Some(value) = spec.values.iter().position(differs) {
            return Err(DrawError::Lengths { list: i, value });
        }
        let values = spec.values.iter();
        Ok(DrawList {
            values: values.map(|value| value.clone().into()).collect(),
        })
    }

    fn bytes(&self) -> usize {
        self.values[0].len()
    }
}

impl Drawn {
    /// Checks the draws of a buffer of `len` bytes. Its variants are numbered from `first` on.
    pub(super) fn new(
        spec: &DrawnSpec,
        len: u64,
        first: u64,
        lists: (&[DrawListSpec], &[DrawList]),
    ) -> Result<Drawn, DrawError> {
        let mut made = Drawn {
            buffer: spec.buffer,
            first: first as u32,
            draws: Box::default(),
            choices: Box::default(),
        };
        let (mut draws, mut choices) = (Vec::new(), Vec::new());
        let (mut end, mut variants) = (0, 1_u64);
        for (i, draw) in spec.draws.iter().enumerate() {
            let refused = |problem| DrawError::Draw {
                place: spec.place.clone(),
                draw: i,
                problem,
            };
            let (list, count) = (draw.list, lists.1.len());
            let texts = lists.1.get(list as usize);
            let texts = texts.ok_or_else(|| refused(DrawProblem::List { list, count }))?;
            if draw.offset < end {
                return Err(refused(DrawProblem::Overlaps));
            }
            let (offset, bytes) = (draw.offset, texts.bytes());
            end = offset.saturating_add(bytes as u64);
            if end > len {
                return Err(refused(DrawProblem::Outside { offset, bytes, len }));
            }
            let known = choices
                .iter()
                .position(|choice: &Choice| choice.list == list);
            let choice = known.unwrap_or(choices.len());
            if known.is_none() {
                let count = texts.values.len() as u32;
                choices.push(Choice {
                    list,
                    count,
                    is_random: lists.0[list as usize].is_random,
                    stride: variants as u32,
                });
                variants = variants.saturating_mul(count.into());
            }
            if variants > VARIANTS_MAX || first + variants > VARIANTS_ALL_MAX {
                let place = spec.place.clone();
                return Err(DrawError::TooMany { place, variants });
            }
            draws.push(Draw {
                offset: offset as u32,
                list,
                choice: choice as u32,
            });
        }
        (made.draws, made.choices) = (draws.into(), choices.into());
        Ok(made)
    }

    /// How many variants it has.
    pub(super) fn variants(&self) -> u32 {
        self.choices.iter().map(|choice| choice.count).product()
    }

    /// The variant that the connection of this number has.
    pub(super) fn variant_of(&self, number: u64) -> u32 {
        let digits = self.choices.iter().map(|choice| {
            let number = match choice.is_random {
                true => mixed(number ^ u64::from(choice.list) << 48),
                false => number,
            };
            (number % u64::from(choice.count)) as u32 * choice.stride
        });
        self.first + digits.sum::<u32>()
    }

    /// Writes the texts of a variant over its buffer's bytes from `offset` on.
    pub(super) fn write(&self, lists: &[DrawList], variant: u32, offset: u32, to: &mut [u8]) {
        let from = offset as usize;
        for draw in &self.draws {
            let choice = &self.choices[draw.choice as usize];
            let value = (variant - self.first) / choice.stride % choice.count;
            let text = &lists[draw.list as usize].values[value as usize];
            let start = draw.offset as usize;
            let (begin, end) = (start.max(from), (start + text.len()).min(from + to.len()));
            if begin < end {
                to[begin - from..end - from].copy_from_slice(&text[begin - start..end - start]);
            }
        }
    }
}
