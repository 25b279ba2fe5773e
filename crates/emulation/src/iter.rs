//! Reading a table in pages, as the methods do whose names end in `iter`. A page goes on where the one
//! before ended; when the table has changed in between, it has to begin anew.

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::failed_check;

/// The most that a page has.
const PAGE_MAX: u16 = 255;

/// Which page of a table.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PageParams {
    /// Whether to begin with the first; else the page goes on behind the one before.
    pub reset: bool,
    /// The most that the page may have, 1 to 255.
    #[schemars(required)]
    pub count: Option<u16>,
}

impl PageParams {
    /// How many there may be on the page; `structure` is TRex's name of the parameters.
    ///
    /// # Errors
    /// When it is none, or too many.
    pub fn count(&self, structure: &str) -> Result<usize, Error> {
        match self.count.unwrap_or_default() {
            0 => Err(failed_check(structure, "Count", "required")),
            count @ 1..=PAGE_MAX => Ok(count.into()),
            _ => Err(failed_check(structure, "Count", "lte")),
        }
    }
}

/// A page of a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// Whether the table has nothing.
    pub empty: bool,
    /// Whether there was nothing left to go on with.
    pub stopped: bool,
    /// What is on the page, in the order of the table.
    pub data: Option<Vec<T>>,
}

impl<T> Page<T> {
    /// The page of a table that has nothing.
    pub const EMPTY: Page<T> = Page {
        empty: true,
        stopped: false,
        data: None,
    };
    /// The page behind the last.
    pub const STOPPED: Page<T> = Page {
        empty: false,
        stopped: true,
        data: None,
    };

    /// A page with something on it.
    pub fn of(data: Vec<T>) -> Page<T> {
        Page {
            empty: false,
            stopped: false,
            data: Some(data),
        }
    }
}

/// How far a table was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cursor<K> {
    /// At the end, or not begun.
    #[default]
    Stopped,
    /// Before the item of a key, in the table as it was at an epoch.
    Before(K, u64),
}

/// Answers a request for a page. `structure` is TRex's name of the parameters, `first` the key of the
/// first item; `item` gives an item by its key, and the key behind it.
///
/// # Errors
/// When a parameter is wrong, or the table has changed since the page before.
pub fn page<K: Copy, T>(
    cursor: &mut Cursor<K>,
    params: PageParams,
    structure: &str,
    epoch: u64,
    first: Option<K>,
    mut item: impl FnMut(K) -> (T, Option<K>),
) -> Result<Page<T>, Error> {
    let count = params.count(structure)?;
    if params.reset {
        let Some(first) = first else {
            *cursor = Cursor::Stopped;
            return Ok(Page::EMPTY);
        };
        *cursor = Cursor::Before(first, epoch);
    }
    let Cursor::Before(key, begun) = *cursor else {
        return Ok(Page::STOPPED);
    };
    if begun != epoch {
        return Err(Error::execution(
            " iterator was interupted , reset and start again ",
        ));
    }
    let mut data = Vec::new();
    let mut next = Some(key);
    while let Some(key) = next.filter(|_| data.len() < count) {
        let (value, behind) = item(key);
        data.push(value);
        next = behind;
    }
    *cursor = next.map_or(Cursor::Stopped, |next| Cursor::Before(next, epoch));
    Ok(Page::of(data))
}
