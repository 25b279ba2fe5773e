//! [`JsonSchema`]: what the types of the RPC derive, so that the reference page, the schema file and
//! other languages' types can be written from them (feature `schema`).
//!
//! A server needs none of it, and it is a third of the time that this crate takes to compile: without
//! the feature the derive writes nothing, and the trait is any type's.

#[cfg(feature = "schema")]
pub use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

#[cfg(not(feature = "schema"))]
pub use allosaur_no_schema::JsonSchema;

/// What Schemars' trait of this name stands for: here, nothing.
#[cfg(not(feature = "schema"))]
pub trait JsonSchema {}

#[cfg(not(feature = "schema"))]
impl<T: ?Sized> JsonSchema for T {}
