//! What all views have in common.

/// Defines a view over anything that is `AsRef<[u8]>`: the type, its constructors, and its text, which
/// is that of the header that it shows. A header of fixed length gives its name and length, and the
/// check is defined too; others define `check_len` themselves.
macro_rules! view {
    ($(#[$doc:meta])* $view:ident of $header:ident, $name:literal, $bytes:expr) => {
        $crate::view::view!($(#[$doc])* $view of $header);

        impl<B: AsRef<[u8]>> $view<B> {
            /// Makes every accessor safe when it is `Ok`.
            ///
            /// # Errors
            /// When the bytes end before the header does.
            pub fn check_len(&self) -> Result<(), $crate::HeaderError> {
                $crate::error::check_length($name, self.bytes.as_ref(), $bytes)
            }
        }
    };
    ($(#[$doc:meta])* $view:ident of $header:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $view<B> {
            bytes: B,
        }

        impl<B: AsRef<[u8]>> $view<B> {
            /// A view that may be read without fear.
            ///
            /// # Errors
            #[doc = concat!("As [`", stringify!($view), "::check_len`].")]
            pub fn new_checked(bytes: B) -> Result<Self, $crate::HeaderError> {
                let view = Self::new_unchecked(bytes);
                view.check_len()?;
                Ok(view)
            }

            /// A view over bytes that are known to be enough.
            pub fn new_unchecked(bytes: B) -> Self {
                $view { bytes }
            }

            /// The bytes back.
            pub fn into_inner(self) -> B {
                self.bytes
            }
        }

        impl<B: AsRef<[u8]>> ::std::fmt::Display for $view<B> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match $header::parse(self.bytes.as_ref()) {
                    Ok(header) => header.fmt(f),
                    Err(error) => write!(f, "({error})"),
                }
            }
        }
    };
}

pub(crate) use view;
