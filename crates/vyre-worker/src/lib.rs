//! Running work that cannot be trusted: whoever runs programs for a judge is a [`Subject`].

mod subject;

pub use subject::{Answer, Case, Failure, Outputs, Subject};
