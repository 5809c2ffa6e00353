//! Any bytes as a wire file: refused with a place, or a program that has exactly these bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vyre::wire::{from_wire, to_wire};

fuzz_target!(|data: &[u8]| {
    // Few inputs would get past the checksum, so it is made right: what is tried is what the bytes mean.
    let mut bytes = b"vyre\x01\x00".to_vec();
    bytes.extend_from_slice(data);
    let hash = vyre::wire::checksum(&bytes);
    bytes.extend_from_slice(&hash);
    match from_wire(&bytes) {
        Ok(program) => {
            assert_eq!(to_wire(&program).expect("what decodes encodes"), bytes);
            let _ = program.validated();
        }
        Err(error) => assert!(error.offset <= bytes.len()),
    }
});
