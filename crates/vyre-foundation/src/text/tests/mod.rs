//! What the parts of the text form must do together.

mod foreign;
mod generate;
mod mistakes;
mod properties;
mod types_of_integers;
