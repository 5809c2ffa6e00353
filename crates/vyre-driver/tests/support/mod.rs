//! What several of these tests need.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod device;
pub mod flip;
pub mod segments;
