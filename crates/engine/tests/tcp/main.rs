//! TCP under virtual time: whole transfers over bad links.

mod pair;
mod transfers;
