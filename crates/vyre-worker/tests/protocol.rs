//! The protocol as `docs/workers.md` has it: its test vectors are what is written, and are read back. `VYRE_BLESS=1` rewrites them.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use vyre_driver::device::{Generation, Ran};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_foundation::text::parse;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_worker::message::{Answers, Batch, Encoding, Greeting, Hello, Run, Told, Work, framed};
use vyre_worker::{Case, Failure, Region, Side};

fn batch() -> Batch {
    let text = "program p {\n  workgroup 1\n  buffer x: read_write u32 @0\n  x[gid.x] = x[gid.x] + 1\n}";
    let program = parse("p.vyre", text).unwrap_or_else(|report| panic!("{report}"));
    let run = Run { program: 0, config: Default::default(), grid: [1, 1, 1], workgroup: [1, 1, 1], buffers: None };
    let inputs = vec![Region { offset: 65600, bytes: 4 }];
    let outputs = vec![Region { offset: 65792, bytes: 4 }];
    Batch {
        memory: 1 << 20,
        status: 65472,
        programs: vec![program],
        cases: vec![Work { run: vec![run], inputs, outputs, fuel: 1000 }],
    }
}

fn answers() -> Answers {
    let ran = Ran {
        device: "bulk",
        generation: Generation(0),
        workgroup: [1, 1, 1],
        grid: [1, 1, 1],
        groups: 0..1,
        profile: None,
        threads: 1,
        lowering: Arc::from("bulk"),
        code: None,
        ulp: None,
        cache_hit: false,
        device_ns: Some(250),
    };
    let trap = Failure::Trap { tag: 7, invocation: [3, 0, 0] };
    let answers = vec![Told::Outputs(vec![ran]), Told::Failure(trap), Told::Failure(Failure::Unsupported("f64".into()))];
    Answers { answers }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_test_vectors_of_the_page_are_what_is_written() {
    let json = Encoding::Json;
    let encodings = vec![Encoding::Wire, Encoding::Json];
    let hello = json.encode(&Hello { vyre_worker: 2, memory_fd: 10, encodings }).unwrap();
    let greeting = json.encode(&Greeting { vyre_worker: 2, subject: "worker.py".into(), encoding: json }).unwrap();
    let mut vectors = vec![("judge, first".to_string(), hello), ("worker, first".to_string(), greeting)];
    for (name, encoding) in [("json", Encoding::Json), ("wire", Encoding::Wire)] {
        vectors.push((format!("batch, {name}"), encoding.encode(&batch()).unwrap()));
        vectors.push((format!("answers, {name}"), encoding.encode(&answers()).unwrap()));
        assert_eq!(encoding.decode::<Batch>(&vectors[vectors.len() - 2].1), Ok(batch()));
        assert_eq!(encoding.decode::<Answers>(&vectors[vectors.len() - 1].1), Ok(answers()));
    }
    let lines: Vec<String> =
        vectors.iter().map(|(name, content)| format!("{name:<14} {}", hex(&framed(content).unwrap()))).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workers.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (start, end) = ("```vectors\n", "\n```\n\n## Programs");
    let (before, rest) = text.split_once(start).expect("a block of vectors");
    let (found, after) = rest.split_once(end).expect("the block ends");
    if std::env::var_os("VYRE_BLESS").is_some() {
        std::fs::write(&page, format!("{before}{start}{}{end}{after}", lines.join("\n"))).expect("the page can be written");
        return;
    }
    assert_eq!(found.lines().collect::<Vec<_>>(), lines);
}

/// No part of a message, and none with a byte changed, makes a reader panic; what is cut short is refused.
#[test]
fn damaged_messages_are_refused_or_something_else_and_never_panic() {
    for encoding in [Encoding::Json, Encoding::Wire] {
        let (batch, answers) = (encoding.encode(&batch()).unwrap(), encoding.encode(&answers()).unwrap());
        for at in 0..batch.len() {
            assert!(encoding.decode::<Batch>(&batch[..at]).is_err(), "cut at {at}");
            for change in [1, 0x80, 0xFF] {
                let mut damaged = batch.clone();
                damaged[at] ^= change;
                let _ = encoding.decode::<Batch>(&damaged);
            }
        }
        for at in 0..answers.len() {
            assert!(encoding.decode::<Answers>(&answers[..at]).is_err(), "cut at {at}");
            for change in [1, 0x80, 0xFF] {
                let mut damaged = answers.clone();
                damaged[at] ^= change;
                let _ = encoding.decode::<Answers>(&damaged);
            }
        }
        let mut longer = answers.clone();
        longer.push(b'x');
        assert!(encoding.decode::<Answers>(&longer).is_err());
    }
}

#[test]
fn every_failure_comes_back() {
    let failures = [
        Failure::Trap { tag: u32::MAX, invocation: [1, 2, u32::MAX] },
        Failure::Refused("no".into()),
        Failure::Unsupported("\"quoted\"\n".into()),
        Failure::OutOfFuel,
        Failure::Panicked("at".into()),
        Failure::Crashed("signal".into()),
        Failure::Hung(std::time::Duration::new(3, 7)),
        Failure::Device("lost".into()),
        Failure::WildWrite { buffer: "input 0".into(), side: Side::Inside, offset: u64::MAX },
        Failure::NotRun("no process".into()),
    ];
    for encoding in [Encoding::Json, Encoding::Wire] {
        let all = Answers { answers: failures.iter().cloned().map(Told::Failure).collect() };
        assert_eq!(encoding.decode::<Answers>(&encoding.encode(&all).unwrap()), Ok(all));
    }
}

/// Programs of every preset, and their cases, come back from JSON and from bytes as they were.
#[test]
fn generated_cases_come_back() {
    for number in 0..3000 {
        let preset = Preset::ALL[number as usize % Preset::ALL.len()];
        let dna = dna(17, number);
        let case = generate(preset, &dna).case(&dna);
        for encoding in [Encoding::Json, Encoding::Wire] {
            let bytes = encoding.encode(&case).unwrap_or_else(|error| panic!("{number}: {error}\n{}", case.program));
            let back: Case = encoding.decode(&bytes).unwrap_or_else(|error| panic!("{number}: {error}\n{}", case.program));
            assert_eq!(back, case, "program {number} of {}", preset.name());
            assert_eq!(encoding.encode(&back).as_ref(), Ok(&bytes));
        }
    }
}

#[test]
fn a_program_of_any_depth_has_a_json_form_and_names_that_nobody_would_choose_come_back() {
    let mut deep = Expr::u32(1);
    for _ in 0..20_000 {
        deep = Expr::not(deep);
    }
    let mut nodes = vec![Node::let_bind("x", deep)];
    for _ in 0..5_000 {
        nodes = vec![Node::block(nodes)];
    }
    let strange = Program::wrapped(vec![BufferDecl::output("\"\\\u{0}", 0, DataType::F8E4M3)], [1, 2, 3], vec![Node::trap(9)]);
    for program in [Program::new(vec![], [1, 1, 1], nodes), strange.with_name(""), Program::default()] {
        let json = serde_json::to_string(&program).unwrap();
        assert_eq!(serde_json::from_str::<Program>(&json).unwrap(), program);
    }
}

#[test]
fn what_is_no_program_is_refused_and_named() {
    let text = "program p {\n  workgroup 1\n  buffer x: read_write u32 @0\n  if x[0] < 3 {\n    x[1] = 7\n  }\n}";
    let good = serde_json::to_value(parse("p.vyre", text).unwrap()).unwrap();
    let refused = |change: &dyn Fn(&mut Value), what: &str| {
        let mut document = good.clone();
        change(&mut document);
        match serde_json::from_value::<Program>(document) {
            Ok(program) => panic!("{what} is taken:\n{program}"),
            Err(error) => assert!(error.to_string().contains(what), "{what}: {error}"),
        }
    };
    // region 0, if 1, cond 2 (load 3, lit 4; lit 5), store 6 (7, 8).
    refused(&|json| json["vyre"] = 2.into(), "version 2");
    refused(&|json| json["floats"] = "fast".into(), "`fast`");
    refused(&|json| json["buffers"][0]["access"] = "readable".into(), "`readable`");
    refused(&|json| json["buffers"][0]["element"] = json!({ "type": "u33" }), "`u33`");
    refused(&|json| json["nodes"][2]["op"] = "less".into(), "`less`");
    refused(&|json| json["nodes"][2]["args"] = json!([3, 6]), "node 2");
    refused(&|json| json["nodes"][2]["args"] = json!([5, 3]), "node 2");
    refused(&|json| json["nodes"][1]["cond"] = 6.into(), "node 1");
    refused(&|json| json["nodes"][1]["then"] = json!([]), "node 6 stands nowhere");
    refused(&|json| json["nodes"][1]["then"] = json!([6, 6]), "node 1");
    refused(&|json| json["nodes"][6]["value"] = 4_000_000_000u32.into(), "node 6");
    refused(&|json| json["nodes"][5]["bits"] = 4_294_967_296u64.into(), "bits");
    refused(&|json| json["body"] = json!([]), "node 0 stands nowhere");
    refused(&|json| json["nodes"][6]["colour"] = 1.into(), "colour");
    refused(&|json| json["new"] = 1.into(), "new");
}
