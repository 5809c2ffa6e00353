//! The protocol as `docs/workers.md` has it: its test vectors are what is written, and are read back. `VYRE_BLESS=1` rewrites them.

use std::path::Path;
use std::sync::Arc;
use vyre_driver::device::{Generation, Ran};
use vyre_foundation::text::parse;
use vyre_worker::message::{Answers, Batch, Encoding, Greeting, Hello, Run, Told, Work, framed};
use vyre_worker::{Failure, Region, Side};

fn batch() -> Batch {
    let text = "program p {\n  workgroup 1\n  buffer x: read_write u32 @0\n  x[gid.x] = x[gid.x] + 1\n}";
    let program = parse("p.vyre", text).unwrap_or_else(|report| panic!("{report}"));
    let run = Run { program: 0, config: Default::default(), grid: [1, 1, 1], workgroup: [1, 1, 1], buffers: None };
    let inputs = vec![Region { offset: 65600, bytes: 4 }];
    let outputs = vec![Region { offset: 65792, bytes: 4 }];
    Batch {
        memory: 1 << 20,
        data: 65536,
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
