//! Every error as a report: its code, what went wrong, and what to do, in the report and in the message alike.

mod support;

use std::time::Duration;
use support::segments::program;
use vyre_driver::{BackendError, ResidentError};
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

/// One error of every variant, with its code and whether a remedy is known.
fn all() -> Vec<(BackendError, ErrorCode, bool)> {
    use BackendError as B;
    use ErrorCode as E;
    use ResidentError as R;
    let resident = [
        R::Foreign(7),
        R::Freed(7),
        R::Stale(7),
        R::Aliased(7),
        R::OutOfRange { handle: 7, offset: 1, length: 2, size: 2 },
        R::NotResident,
    ];
    for error in &resident {
        // A new one belongs into the list.
        match error {
            R::Foreign(_) | R::Freed(_) | R::Stale(_) | R::Aliased(_) | R::OutOfRange { .. } | R::NotResident => {}
        }
    }
    let mut errors = vec![
        (B::Rejected(Report::single(Diagnostic::new(E::E0707, "a grid of zeros").help("ask for more"))), E::E0707, true),
        (B::InvalidProgram { fix: "it is wrong. Fix: mend it".into() }, E::E0804, true),
        (B::UnsupportedFeature { feature: "wings".into(), backend: "pig".into() }, E::E0801, true),
        (B::UnknownBackend { id: "cuda".into(), known: vec!["bulk".into(), "reference".into()] }, E::E0802, true),
        (B::UnknownBackend { id: "cuda".into(), known: vec![] }, E::E0802, true),
        (B::NoBackend { passed_over: vec![] }, E::E0803, true),
        (
            B::NoBackend {
                passed_over: vec![("a".into(), "it is lost. Fix: find it".into()), ("b".into(), "it has no f64".into())],
            },
            E::E0803,
            false,
        ),
        (B::Trap { tag: 3, invocation: [1, 2, 3] }, E::E0713, false),
        (B::OutOfMemory { requested: 99 }, E::E0806, true),
        (B::Timeout { limit: Duration::from_millis(5) }, E::E0807, true),
        (B::DeviceLost { reason: "it burnt. Fix: buy another".into() }, E::E0808, true),
        (B::ShortRead { expected: 4, found: 3 }, E::E0809, false),
        (B::Poisoned, E::E0810, true),
        (B::Other("it failed".into()), E::E0810, false),
    ];
    errors.extend(resident.map(|error| (B::Resident(error), E::E0805, true)));
    for (error, _, _) in &errors {
        // A new one belongs into the list.
        match error {
            B::Rejected(_)
            | B::InvalidProgram { .. }
            | B::UnsupportedFeature { .. }
            | B::UnknownBackend { .. }
            | B::NoBackend { .. }
            | B::Resident(_)
            | B::Trap { .. }
            | B::OutOfMemory { .. }
            | B::Timeout { .. }
            | B::DeviceLost { .. }
            | B::ShortRead { .. }
            | B::Poisoned
            | B::Other(_) => {}
        }
    }
    errors
}

#[test]
fn every_error_has_a_code_a_message_and_its_remedy() {
    let about = program("program p {\n workgroup 1\n}");
    for (error, code, has_fix) in all() {
        for report in [error.report(None), error.report(Some(&about))] {
            let [diagnostic] = &report.diagnostics[..] else { panic!("{report}") };
            assert_eq!(diagnostic.code, code, "{error}");
            assert_eq!(diagnostic.help.is_some(), has_fix, "{error}");
            assert!(!diagnostic.message.is_empty() && !diagnostic.message.ends_with(['.', ' ']), "{:?}", diagnostic.message);
            let drawn = report.to_string();
            assert!(drawn.starts_with(&format!("error[{}]: ", code.name())), "{drawn}");
            let json = vyre_driver::json::report(&report)["errors"][0].take();
            assert_eq!((&json["code"], &json["severity"]), (&code.name().into(), &"error".into()), "{json}");
            assert_eq!(json["message"], diagnostic.message.as_str());
            assert_eq!(json["help"].as_str(), diagnostic.help.as_deref());
            // What the message says, the report says, each part where it belongs.
            if let Some(help) = &diagnostic.help {
                assert!(!help.contains("Fix: "), "{help}");
                assert!(drawn.contains(help.as_str()), "{drawn}");
                if !matches!(error, BackendError::Rejected(_)) {
                    assert_eq!(error.message(), format!("{}. Fix: {help}", diagnostic.message));
                }
            }
        }
        assert_eq!(error.message(), error.to_string());
    }
}

#[test]
fn json_has_the_place_in_the_text() {
    let program = program("program p {\n  workgroup 1\n  buffer out: output u32[1] @0\n\n  out[0] = 1.5\n}");
    let report = BackendError::from(program.validated().expect_err("it is refused").clone()).report(None);
    let json = vyre_driver::json::report(&report)["errors"][0].take();
    assert_eq!(
        (&json["code"], &json["line"], &json["column"], &json["end_column"]),
        (&"E0304".into(), &5.into(), &12.into(), &15.into()),
        "{json}"
    );
}

#[test]
fn words_of_others_do_not_move_the_remedy() {
    let diagnostic = |error: &BackendError| error.report(None).diagnostics.remove(0);
    let lost = diagnostic(&BackendError::DeviceLost { reason: "it burnt. Fix: buy another".into() });
    assert_eq!(lost.message, "the device is lost: it burnt. Fix: buy another");
    assert_eq!(lost.help.as_deref(), Some("call `try_recover`, then upload resident data again"));
    let passed_over = vec![("a".to_string(), "it is lost. Fix: find it".to_string()), ("b".into(), "it has no f64".into())];
    let none = diagnostic(&BackendError::NoBackend { passed_over });
    assert_eq!((none.help, none.message.lines().count()), (None, 3));
    // Messages that backends write themselves.
    for (text, what, fix) in [
        ("it failed", "it failed", None),
        ("it failed. Fix: try again. Or do not.", "it failed", Some("try again. Or do not.")),
        ("it failed.\nFix: try again", "it failed", Some("try again")),
        ("Fix: failed to reserve 7 bytes. Use fewer", "failed to reserve 7 bytes. Use fewer", None),
        ("SuFfix: 7", "SuFfix: 7", None),
        ("PreFix: 7 is bad. Fix: use 8", "PreFix: 7 is bad", Some("use 8")),
        ("é. Fix: ü", "é", Some("ü")),
    ] {
        for error in [BackendError::new(text), BackendError::InvalidProgram { fix: text.into() }] {
            let found = diagnostic(&error);
            assert_eq!((found.message.as_str(), found.help.as_deref()), (what, fix));
            assert_eq!(error.message(), text, "the message is as it was written");
        }
    }
}
