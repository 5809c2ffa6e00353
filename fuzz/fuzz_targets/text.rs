//! Any text: drawn mistakes, or a program; formatting what parses changes nothing but the layout.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match vyre::text::parse("fuzz.vyre", text) {
        Err(report) => {
            assert!(!report.diagnostics.is_empty());
            let _ = vyre::text::render(&report, true);
        }
        Ok(program) => {
            if let Err(report) = program.validated() {
                let _ = vyre::text::render(report, false);
            }
            let formatted = vyre::text::format("fuzz.vyre", text).expect("what parses formats");
            assert_eq!(vyre::text::format("fuzz.vyre", &formatted).expect("it formats again"), formatted);
            assert!(vyre::text::parse("fuzz.vyre", &formatted).expect("it parses") == program);
        }
    }
});
