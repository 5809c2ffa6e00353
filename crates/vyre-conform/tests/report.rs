//! Reports: every form of them, whatever the names and messages of a run are.

mod sample;

use sample::{Sample, section};
use std::collections::BTreeMap;
use vyre_conform::evidence::{KillRates, Killed, RunData, Verdict};
use vyre_conform::expectations::Expectations;
use vyre_conform::ledger::remark;
use vyre_conform::report::Report;
use vyre_conform::{Evidence, FindingKind};

/// A run as the suite makes them: ops of the language on their types, with failures, skips and a size that is not confirmed.
fn realistic() -> Sample {
    let mut sample = Sample::empty();
    let ints = ["u32", "i32", "u64", "i64"];
    let floats = ["f32", "f64"];
    let mut add = |op: String, evidence: Evidence, cases: u64| {
        for size in [1, 37, 64, 256] {
            let space = match evidence {
                Evidence::Exhaustive => "all",
                Evidence::Boundary => "edges",
                Evidence::Sampled => "strata",
            };
            sample.add(section(&op, size, space, evidence, cases));
        }
    };
    let names = |family: &str, names: &[&str]| names.iter().map(|name| format!("ops.{family}.{name}")).collect::<Vec<_>>();
    for op in names(
        "int",
        &["add", "sub", "mul", "mulhi", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr", "rotl", "abs_diff"],
    ) {
        for of in ints {
            add(format!("{op}:{of}"), Evidence::Boundary, 1 << 14);
            add(format!("{op}:{of}"), Evidence::Sampled, 1 << 18);
        }
    }
    for op in names("int", &["neg", "not", "abs", "popcount", "clz", "ctz", "reverse_bits"]) {
        for of in ints {
            let evidence = if of.ends_with("32") { Evidence::Exhaustive } else { Evidence::Sampled };
            add(format!("{op}:{of}"), evidence, 1 << 19);
        }
    }
    for op in names(
        "float",
        &["add", "sub", "mul", "div", "rem", "min", "max", "sqrt", "fma", "floor", "ceil", "round", "fract", "sign"],
    ) {
        for of in floats {
            add(format!("{op}:{of}"), Evidence::Boundary, 1 << 12);
            add(format!("{op}:{of}"), Evidence::Sampled, 1 << 18);
        }
    }
    for op in names("elementary", &["exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "atan", "pow", "rsqrt"]) {
        add(format!("{op}:f32"), if op.ends_with("pow") { Evidence::Sampled } else { Evidence::Exhaustive }, 1 << 19);
    }
    for op in names("compare", &["eq", "ne", "lt", "le", "gt", "ge"]) {
        for of in ["bool", "u32", "i32", "u64", "i64", "f32", "f64"] {
            add(format!("{op}:{of}"), Evidence::Boundary, 1 << 12);
        }
    }
    for op in names("bool", &["and", "or", "xor", "not"]) {
        add(format!("{op}:bool"), Evidence::Exhaustive, 4);
    }
    for op in names("atomic", &["add", "sub", "min", "max", "and", "or", "xor", "exchange", "compare_exchange"]) {
        for of in ["u32", "i32"] {
            add(format!("{op}:{of}"), Evidence::Sampled, 1 << 12);
        }
    }
    for op in names("hash", &["crc32", "fnv1a", "murmur3", "siphash", "sha256"]) {
        add(op, Evidence::Sampled, 1 << 12);
    }
    for op in names(
        "parallel",
        &["prefix_sum", "segmented_scan", "histogram", "compact", "radix_sort", "matmul", "fft", "softmax", "top_k"],
    ) {
        add(op, Evidence::Sampled, 1 << 10);
    }
    for of in ["f16", "bf16", "f8e4m3", "f8e5m2", "u8", "i8", "u16", "i16"] {
        add(format!("ops.memory.load:{of}"), Evidence::Exhaustive, 1 << 16);
        add(format!("ops.memory.store:{of}"), Evidence::Sampled, 1 << 18);
    }
    for op in ["add", "sub", "mul", "div", "rem", "min", "max", "sqrt", "fma", "floor", "ceil", "round", "fract", "sign"] {
        for size in [1, 37, 64, 256] {
            for space in ["edges", "strata"] {
                let name = format!("ops.float.{op}:f64:wg={size}:{space}");
                let mut first = 0;
                while sample.units.contains_key(&(name.clone(), first)) {
                    sample.skip(&name, first, "the device has no f64 arithmetic (shaderFloat64 is not offered)");
                    first += 1 << 16;
                }
            }
        }
    }
    sample.fail("ops.elementary.exp:f32:wg=64:all", 65_536, 211);
    sample.fail("ops.int.rem:i32:wg=37:edges", 0, 2);
    sample.failures.iter_mut().filter(|failure| failure.op_id.contains("rem")).for_each(|failure| {
        failure.message = "byte 0 is 01, and 00 is expected".into();
        failure.cpu_output = vec![0; 4];
        failure.gpu_output = vec![1, 0, 0, 0];
    });
    sample.fail("ops.parallel.radix_sort:wg=256:strata", 0, 1);
    let sort = sample.failures.last_mut().expect("it fails");
    sort.kind = FindingKind::Nondeterministic;
    sort.message = "nondeterministic: two dispatches differ, with the order of cases, rotated by 3 changed".into();
    sort.cpu_output = (0..160u32).flat_map(|n| (n * 7).to_le_bytes()).collect();
    sort.gpu_output = sort.cpu_output.clone();
    sort.gpu_output[292..300].copy_from_slice(&[9, 1, 0, 0, 8, 1, 0, 0]);
    let units: Vec<(String, u64)> =
        sample.units.keys().filter(|(name, _)| name.starts_with("ops.atomic") && name.contains("wg=37")).cloned().collect();
    units.iter().for_each(|(name, first)| sample.unit_mut(name, *first).confirmed = false);
    sample.identity.backend = "wgpu:llvmpipe".into();
    sample.identity.device = "llvmpipe-19.1.7-avx2-256".into();
    sample.identity.suite = sample::digest("suite").to_string();
    sample.info.device_name = "llvmpipe (LLVM 19.1.7, 256 bits)".into();
    sample.info.command = "vyre conform --backend wgpu:llvmpipe --tier smoke --seed 7".into();
    sample
}

fn rates(suite: &str) -> KillRates {
    let classes = [
        ("operator", 42, 42),
        ("constant", 31, 31),
        ("signedness", 24, 24),
        ("shift mask", 18, 18),
        ("conversion", 22, 23),
        ("NaN", 15, 15),
        ("flush", 12, 12),
        ("rounding", 19, 20),
        ("index ± 1", 28, 28),
        ("missing barrier", 9, 11),
        ("lost last workgroup", 8, 8),
        ("rare inputs", 14, 21),
    ];
    let classes = classes.into_iter().map(|(name, killed, of)| (name.to_string(), Killed { killed, of })).collect();
    KillRates { suite: suite.into(), tier: Some("smoke".into()), classes }
}

fn with<T>(sample: &Sample, known: &Expectations, kills: Option<&KillRates>, told: impl FnOnce(&Report<'_>) -> T) -> T {
    let run = RunData::read(sample.folder().path()).expect("a ledger that is whole");
    let known = known.judge(&run, "2026-11-17".parse().unwrap());
    told(&Report::new(&run, &known, kills))
}

#[test]
fn the_page_stands_alone_and_shows_what_fails() {
    let sample = realistic();
    let rates = rates(&sample.identity.suite);
    let known = serde_json::json!([{ "query": "ops.elementary.exp:f32:wg=64:all", "backend": "wgpu:*",
        "reason": "the driver flushes subnormal results", "expires": "2026-12-31" }]);
    let known = Expectations { entries: serde_json::from_value(known).unwrap() };
    let page = with(&sample, &known, Some(&rates), |report| {
        assert_eq!(report.verdict, Verdict::Fails);
        report.html()
    });
    if let Some(folder) = std::env::var_os("VYRE_LOOK") {
        std::fs::write(std::path::Path::new(&folder).join("report.html"), &page).unwrap();
        let good = with(&Sample::small(), &Expectations::default(), None, |report| report.html());
        std::fs::write(std::path::Path::new(&folder).join("good.html"), good).unwrap();
    }
    for words in [
        "<meta name=\"viewport\"",
        "prefers-color-scheme:dark",
        "The bytes are not the reference",
        "first wrong lane",
        "element 73",
        "<mark>09</mark>",
        "vyre fuzz --replay",
        "program demo",
        "not confirmed",
        "shaderFloat64 is not offered",
        "known: the driver flushes",
        "missing barrier",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // Families are as large as can be looked through: a few ops are one, many are divided.
    let few = with(&Sample::small(), &Expectations::default(), None, |report| report.html());
    let maps = |page: &str, family: &str| page.matches(&format!("<caption>{family}</caption>")).count();
    assert_eq!(["ops", "ops.int", "ops.float"].map(|family| maps(&page, family)), [0, 1, 1]);
    assert_eq!(["ops", "ops.int", "ops.float"].map(|family| maps(&few, family)), [1, 0, 0]);
    // Nothing is fetched, nothing runs.
    for words in ["http://", "https://", "<script", "src=", "@import", "url(", "<link", "<iframe"] {
        assert!(!page.contains(words), "{words}");
    }
    assert!(page.len() < 500_000, "{} bytes", page.len());
}

#[test]
fn whatever_a_run_is_called_is_shown_as_text() {
    const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;'`|\n[a](javascript:x)]]>\u{1b}[31m\u{0}";
    let mut sample = Sample::small();
    sample.identity.backend = EVIL.into();
    sample.identity.device = EVIL.into();
    sample.identity.settings = EVIL.into();
    sample.info.command = EVIL.into();
    sample.info.device_name = EVIL.into();
    sample.info.tier = Some(EVIL.into());
    sample.info.versions = BTreeMap::from([(EVIL.into(), EVIL.into())]);
    sample.add(section(&format!("ops.{EVIL}:{EVIL}"), 64, EVIL, Evidence::Sampled, 100));
    let name = sample.sections.last().unwrap().id.clone();
    sample.fail(&name, 0, 1);
    let failure = sample.failures.last_mut().unwrap();
    (failure.message, failure.input_label, failure.generator) = (EVIL.into(), EVIL.into(), EVIL.into());
    sample.remarks.iter_mut().for_each(|(_, _, text)| *text = EVIL.into());
    sample.skip("ops.int.not:u32:wg=64:all", 0, EVIL);
    let rates = KillRates {
        suite: sample.identity.suite.clone(),
        tier: None,
        classes: [(EVIL.to_string(), Killed { killed: 1, of: 2 })].into(),
    };
    with(&sample, &Expectations::default(), Some(&rates), |report| {
        for (form, text) in [("html", report.html()), ("markdown", report.markdown())] {
            assert!(!text.contains("<script") && !text.contains("<img"), "{form}: {text}");
        }
        // A table row stays one row.
        let markdown = report.markdown();
        let row = markdown.lines().find(|line| line.contains("alert")).expect("the backend is named");
        assert!(!row.contains("](javascript"), "{row}");
        let junit = report.junit();
        let read = quick_junit::Report::deserialize_from_str(&junit).expect("it is XML");
        assert!(read.failures >= 1, "{junit}");
        for line in report.json_lines().lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON");
        }
    });
}

#[test]
fn a_page_of_many_ops_and_failures_is_not_long() {
    // More than the suite has: 3000 ops, each with as many failures as are kept, of a megabyte each.
    let mut sample = Sample::empty();
    for op in 0..3000 {
        sample.add(section(&format!("ops.family{}.op{op}:f32", op % 40), 64, "strata", Evidence::Sampled, 33_334));
    }
    let names: Vec<String> = sample.sections.iter().map(|section| section.id.clone()).collect();
    for name in names.iter().step_by(2) {
        sample.fail(name, 0, 3);
    }
    for failure in sample.failures.iter_mut().step_by(500) {
        failure.gpu_output = vec![1; 1 << 20];
        failure.cpu_output = vec![2; 1 << 20];
        failure.message = "long ".repeat(100_000);
    }
    sample.remarks.iter_mut().step_by(100).for_each(|(_, _, text)| *text = "let x = 1\n".repeat(100_000));
    with(&sample, &Expectations::default(), None, |report| {
        assert!(report.totals.tested >= 100_000_000);
        let page = report.html();
        assert!(page.len() < 5_000_000, "{} bytes", page.len());
        assert!(page.contains("60 ops are shown here"));
        assert!(report.markdown().len() < 60_000, "a comment on a forge has 65,536 characters");
    });
}

#[test]
fn junit_has_a_case_for_each_program_and_size() {
    let mut sample = Sample::small();
    let mut other = section("ops.int.add:u32", 64, "random", Evidence::Sampled, 1000);
    other.alternative = Some("wide".into());
    other.id = "ops.int.add:u32:alt=wide:wg=64:random".into();
    sample.add(other);
    sample.fail("ops.int.add:u32:wg=64:random", 0, 2);
    sample.fail("ops.int.not:u32:wg=1:all", 0, 1);
    for first in [0, 65_536] {
        sample.skip("ops.float.add:f64:wg=64:random", first, "no f64");
    }
    let known = serde_json::json!([
        { "query": "ops.int.not:u32:wg=1:all", "backend": "*", "reason": "because", "expires": "2026-12-31" },
        { "query": "ops.nothing", "backend": "*", "reason": "because", "expires": "2026-12-31" },
    ]);
    let known = Expectations { entries: serde_json::from_value(known).unwrap() };
    let junit = with(&sample, &known, None, |report| report.junit());
    let read = quick_junit::Report::deserialize_from_str(&junit).expect("it is XML");
    let mut cases = Vec::new();
    for suite in &read.test_suites {
        for case in &suite.test_cases {
            let status = match &case.status {
                quick_junit::TestCaseStatus::Success { .. } => "holds",
                quick_junit::TestCaseStatus::NonSuccess { .. } => "fails",
                quick_junit::TestCaseStatus::Skipped { .. } => "skipped",
            };
            cases.push(format!("{} {} {status}", suite.name.as_str(), case.name.as_str()));
        }
    }
    let wanted = [
        "ops.float.add:f64 wg=1 holds",
        "ops.float.add:f64 wg=64 skipped",
        "ops.int.add:u32 wg=1 holds",
        "ops.int.add:u32 wg=64 fails",
        "ops.int.add:u32 alt=wide wg=64 holds",
        "ops.int.not:u32 wg=1 skipped",
        "ops.int.not:u32 wg=64 holds",
        "run has a verdict holds",
    ];
    assert_eq!(cases[..8], wanted);
    assert!(cases[8].contains("`ops.nothing` is listed as a known failure, but nothing that it names ran fails"), "{}", cases[8]);
    assert!(junit.contains("2 of 201024 cases fail") && junit.contains("vyre fuzz --replay"), "{junit}");
}

#[test]
fn lines_of_json_end_with_the_verdict() {
    let mut sample = Sample::small();
    sample.fail("ops.int.add:u32:wg=64:random", 0, 2);
    let lines = with(&sample, &Expectations::default(), None, |report| report.json_lines());
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let count = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(["run", "profile", "op", "section", "failure", "kills", "verdict"].map(count), [1, 2, 3, 8, 2, 1, 1]);
    let last = lines.last().unwrap();
    assert_eq!((&last["verdict"], &last["failed"]), (&"fails".into(), &2.into()));
    let failure = lines.iter().find(|line| line["type"] == "failure").unwrap();
    assert_eq!((&failure["first_wrong_byte"], &failure["first_wrong_lane"]), (&3.into(), &0.into()));
}

#[test]
fn runs_without_a_verdict_say_so_in_every_form() {
    let mut sample = Sample::small();
    sample.info.controls.caught = 60;
    with(&sample, &Expectations::default(), None, |report| {
        assert!(report.html().contains("No verdict"));
        assert!(report.markdown().contains("⛔ No verdict"));
        assert!(report.text().contains("4 of 64 planted faults were not noticed"));
        let junit = report.junit();
        assert!(quick_junit::Report::deserialize_from_str(&junit).unwrap().errors == 1, "{junit}");
        assert!(report.json_lines().contains("\"verdict\":\"none\""));
    });
}

#[test]
fn a_reduced_program_is_shown_in_every_form() {
    const PROGRAM: &str = "program small {\n  workgroup 1\n\n  y[2] = x[0] & x[1] < 3\n}\n";
    let mut sample = Sample::small();
    sample.add(section("programs.ints", 64, "generated", Evidence::Sampled, 64));
    sample.fail("programs.ints:wg=64:generated", 0, 1);
    sample.reduce("programs.ints:wg=64:generated", PROGRAM);
    let run = RunData::read(sample.folder().path()).unwrap();
    let known = Expectations::default().judge(&run, "2026-11-17".parse().unwrap());
    let report = Report::new(&run, &known, None);
    let page = report.html();
    let escaped = "  y[2] = x[0] &#38; x[1] &#60; 3\n}";
    for words in [escaped, "7 nodes of 48", "<mark>06</mark>", "y[2] (u32)", "1 2 &#60;3&#62;", "output y: byte 8"] {
        assert!(page.contains(words), "the page has no `{words}`");
    }
    // The program that failed first is still there.
    assert!(page.contains("the program before that") && page.contains("out[gid.x] = -x[gid.x]"));
    let markdown = report.markdown();
    for words in [
        "reduced from 48 to 7 nodes",
        "\n  y&#91;2&#93; = x&#91;0&#93; &#38; x&#91;1&#93; &#60; 3\n",
        "First wrong lane: <code>y&#91;2&#93;</code> (u32) is <code>6</code>, expected <code>7</code>.",
        "0000 expected 09 00 00 00 08 00 00 00 07 00 00 00\n     found    09 00 00 00 08 00 00 00 06 00 00 00",
        // Not the file of the program before it was made small.
        "again: <code>vyre fuzz --replay state/regressions/bytes-02.json</code>",
    ] {
        assert!(markdown.contains(words), "`{words}` is not in\n{markdown}");
    }
    assert!(report.junit().contains("again: vyre fuzz --replay state/regressions/bytes-02.json"));
    let lines: Vec<serde_json::Value> = report.json_lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failure = lines.iter().find(|line| line["type"] == "failure").expect("a failure");
    let reduced = &failure["reduced"];
    assert_eq!((&reduced["first_wrong_lane"], &reduced["first_wrong_byte"]), (&2.into(), &8.into()));
    assert_eq!((&reduced["expected"], &reduced["found"]), (&"7".into(), &"6".into()));
    assert_eq!((&reduced["failure"]["program"], &reduced["failure"]["nodes"]), (&PROGRAM.into(), &7.into()));
    // One that says nothing is damage.
    sample.remarks.retain(|(_, kind, _)| *kind != remark::REDUCED);
    sample.remarks.push(("programs.ints:wg=64:generated".into(), remark::REDUCED, "{}".into()));
    let damaged = RunData::read(sample.folder().path()).expect_err("it is damaged").to_string();
    assert!(damaged.contains("the reduced program of `programs.ints:wg=64:generated`"), "{damaged}");
}
