//! Tables that are read a page at a time by requests, which learn when the table changed meanwhile.

use allosaur_api::Error;
use serde_json::{Value, json};

use crate::params::{Params, failed_check};

/// Most items of a page.
const PAGE_MAX: u16 = 255;

/// How far the reader of a table is. Items have keys (a number, an address) by which the next is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cursor<K> {
    /// At the end, or not begun.
    #[default]
    Stopped,
    /// Before the item of a key, in the table as it was at an epoch.
    Before(K, u64),
}

/// Answers a `*_iter` request (`reset`, `count`) about a table, `structure` by the reference's name of
/// its parameters. `epoch` changes with the table's keys.
///
/// # Errors
/// When the parameters are wrong, or the table changed since the first page.
pub fn page<K: Copy>(
    cursor: &mut Cursor<K>,
    params: &Value,
    structure: &str,
    epoch: u64,
    first: Option<K>,
    mut item: impl FnMut(K) -> (Value, Option<K>),
) -> Result<Value, Error> {
    let params = Params::new(params);
    let reset = params.bool_or("reset", false)?;
    let count: u16 = params.number_or("count", 0)?;
    match count {
        0 => return Err(failed_check(structure, "Count", "required")),
        1..=PAGE_MAX => {}
        _ => return Err(failed_check(structure, "Count", "lte")),
    }
    if reset {
        let Some(first) = first else {
            *cursor = Cursor::Stopped;
            return Ok(json!({"empty": true, "stopped": false, "data": null}));
        };
        *cursor = Cursor::Before(first, epoch);
    }
    let Cursor::Before(key, begun) = *cursor else {
        return Ok(json!({"empty": false, "stopped": true, "data": null}));
    };
    if begun != epoch {
        return Err(Error::execution(
            " iterator was interupted , reset and start again ",
        ));
    }
    let mut data = Vec::new();
    let mut next = Some(key);
    while let Some(key) = next.filter(|_| data.len() < usize::from(count)) {
        let (value, behind) = item(key);
        data.push(value);
        next = behind;
    }
    *cursor = next.map_or(Cursor::Stopped, |next| Cursor::Before(next, epoch));
    Ok(json!({"empty": false, "stopped": false, "data": data}))
}
