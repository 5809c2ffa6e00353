//! Every program that bytes can say, valid or not: its text reads back as the same program.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = b"vyre\x01\x00".to_vec();
    bytes.extend_from_slice(data);
    let hash = vyre::wire::checksum(&bytes);
    bytes.extend_from_slice(&hash);
    if let Ok(program) = vyre::wire::from_wire(&bytes) {
        let text = program.to_string();
        match vyre::text::parse("printed", &text) {
            Ok(again) => assert!(again == program, "{text}"),
            Err(report) => panic!("{text}\n{report}"),
        }
    }
});
