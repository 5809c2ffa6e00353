//! Every way a program, its text, its inputs or its launch can be wrong, as one table of stable codes.
//!
//! A code never changes its meaning and is never used again. Each has at least one file below `checks/` that provokes it.

use std::fmt;

macro_rules! error_codes {
    ($( $code:ident $title:literal; )*) => {
        /// The stable name of one kind of mistake.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ErrorCode { $( #[doc = $title] $code, )* }

        impl ErrorCode {
            /// Every code, in order.
            pub const ALL: &'static [ErrorCode] = &[$( ErrorCode::$code ),*];

            /// The code as printed, such as `E0301`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( ErrorCode::$code => stringify!($code), )* }
            }

            /// What the code stands for, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $( ErrorCode::$code => $title, )* }
            }

            /// The code with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<ErrorCode> {
                match name { $( stringify!($code) => Some(ErrorCode::$code), )* _ => None }
            }
        }
    };
}

error_codes! {
    // Syntax.
    E0101 "a character that no token begins with";
    E0102 "a quoted name or string without an end on its line, or with an unknown escape";
    E0103 "a malformed number";
    E0104 "another token was expected here";
    E0105 "comparisons do not chain";
    E0106 "a statement ends with its line";
    E0107 "nested too deep";
    E0108 "a declaration after the first statement";
    E0109 "a declaration given twice";
    E0110 "an atomic or subgroup operation inside an expression";
    E0111 "the text is not UTF-8";
    E0112 "the text is too large";
    // Names.
    E0201 "no variable or constant of this name";
    E0202 "the name is taken";
    E0203 "the name cannot be assigned to";
    E0204 "no buffer of this name";
    E0205 "no function of this name";
    E0206 "a buffer where a value is needed, or the reverse";
    E0207 "no type of this name";
    // Types.
    E0301 "operands of different types";
    E0302 "the operation does not take this type";
    E0303 "the number does not fit its type";
    E0304 "the stored value has another type than the buffer";
    E0305 "a condition must be bool";
    E0306 "an index must be u32";
    E0307 "a loop bound must be u32";
    E0308 "no such conversion";
    E0309 "a bitcast between different widths";
    E0310 "the assigned value has another type than the variable";
    E0311 "a vector is built from 2 to 4 components of u32, i32 or f32";
    E0312 "a component that the value does not have";
    E0313 "wrong number of arguments";
    E0314 "the operation gives no value";
    // Buffers and limits.
    E0401 "two buffers with one binding";
    E0402 "a storage or uniform buffer needs a binding";
    E0403 "a workgroup buffer has no binding";
    E0404 "no kernel can use this type";
    E0405 "a workgroup buffer needs a count of at least 1";
    E0406 "too much workgroup memory";
    E0407 "the workgroup size is zero or too large";
    E0408 "a store to a buffer that cannot be written";
    E0409 "a type that can only be loaded, in a buffer that is written";
    E0410 "an atomic needs a u32 or i32 buffer that can be written";
    E0411 "the workgroup size is missing";
    E0412 "a constant of another type is needed here";
    E0413 "the type constant needs a type that loads as the same type";
    E0414 "no such subgroup size";
    E0415 "the subgroup size is not declared";
    E0416 "a buffer is too large";
    // Control flow and uniformity.
    E0501 "a barrier that some invocations may not reach";
    E0502 "a subgroup operation that some invocations may not reach";
    E0503 "a grid barrier below the top level";
    E0504 "a relaxed barrier orders nothing";
    E0505 "break or continue outside a loop";
    E0506 "a divergent break or continue in a loop that synchronises";
    E0507 "the program is nested too deep";
    E0508 "the broadcast lane is not uniform";
    // Wire form.
    E0601 "not a program in wire form";
    E0602 "an unknown version of the wire form";
    E0603 "the bytes end too early";
    E0604 "the checksum is wrong";
    E0605 "a tag or number without a meaning";
    E0606 "bytes that no encoder writes";
    E0607 "the program is nested too deep for the wire form";
    // Inputs and launch.
    E0701 "an input is missing";
    E0702 "no input or output of this name";
    E0703 "an input has the wrong length";
    E0704 "the bytes of an input are not whole elements";
    E0705 "the length of an output is not known";
    E0706 "a 2-D or 3-D program needs a grid";
    E0707 "the grid has a zero";
    E0708 "the launch is too large";
    E0709 "no specialization constant of this name";
    E0710 "the specialization value has the wrong type";
    E0711 "the workgroup size cannot be overridden";
    E0712 "the fuel ran out";
    E0713 "the kernel trapped";
    E0714 "a value that its buffer cannot hold";
    E0715 "a buffer is given twice";
    E0716 "an input is longer than the default grid covers";
    // Backends and devices.
    E0801 "the backend does not have what was asked for";
    E0802 "no backend of this name";
    E0803 "no backend can run the program";
    E0804 "the program cannot be run in this way";
    E0805 "a resident handle cannot be used in this way";
    E0806 "the device does not have enough memory";
    E0807 "the dispatch took too long";
    E0808 "the device is lost";
    E0809 "the device gave too few bytes";
    E0810 "the backend failed";
    // Findings about programs that are right.
    W0401 "above what the smallest devices offer";
    W0501 "a data race";
    W0502 "the result depends on the order of atomics";
    W0503 "a read of memory that was never written";
    W0504 "an access out of bounds";
    W0505 "not proven to give the same bytes under every schedule";
}

impl ErrorCode {
    /// Whether the code is a warning, which leaves the program usable.
    #[must_use]
    pub fn is_warning(self) -> bool {
        self.name().starts_with('W')
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn codes_are_sorted_and_found_by_name() {
        assert!(ErrorCode::ALL.windows(2).all(|pair| pair[0].name() < pair[1].name()));
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.name()), Some(*code));
        }
        assert_eq!(ErrorCode::from_name("E9999"), None);
    }
}
