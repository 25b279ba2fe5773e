//! `#[derive(JsonSchema)]` that writes nothing: what `allosaur-api` has in place of Schemars' where
//! nobody asks for schemas.

use proc_macro::TokenStream;

/// Takes what Schemars' derive takes, and writes nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
