//! Enums of which each variant has a word.

/// An enum of which each variant has a word, by which it is stored and shown.
#[macro_export]
macro_rules! worded {
    (
        $(#[$of:meta])*
        $vis:vis enum $name:ident {
            $($(#[$about:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$of])*
        $vis enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            /// Each of them.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word that is stored and shown.
            $vis const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one that a word names.
            $vis fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
