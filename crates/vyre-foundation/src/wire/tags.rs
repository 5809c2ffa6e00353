//! The numbers of statements and expressions in the wire form. They never change, and the encoder and the decoder have them from here.

/// An enum of numbers, each of which is found again.
macro_rules! tags {
    ($(#[$doc:meta])* $name:ident { $( $variant:ident = $tag:literal, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) enum $name {
            $( $variant = $tag, )*
        }

        impl $name {
            pub(super) fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $( $tag => Some($name::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

tags! {
    /// One for each variant of [`crate::ir::Node`].
    NodeTag {
        Let = 0x01,
        Assign = 0x02,
        Store = 0x03,
        Atomic = 0x04,
        Subgroup = 0x05,
        If = 0x06,
        Loop = 0x07,
        Break = 0x08,
        Continue = 0x09,
        Return = 0x0A,
        Barrier = 0x0B,
        Trap = 0x0C,
        Block = 0x0D,
        Region = 0x0E,
    }
}

tags! {
    /// One for each variant of [`crate::ir::Expr`].
    ExprTag {
        Lit = 0x01,
        Var = 0x02,
        Builtin = 0x03,
        Len = 0x04,
        Load = 0x05,
        Unary = 0x06,
        Binary = 0x07,
        Ternary = 0x08,
        Cast = 0x09,
        Bitcast = 0x0A,
        Vector = 0x0B,
        Extract = 0x0C,
    }
}
