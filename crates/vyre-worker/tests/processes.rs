//! Worker processes that crash, hang, panic, print, lie and are killed: every case still gets its answer, and the guilty one is named.
//!
//! The worker is this test program itself, started again to run `the_worker` alone.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vyre_driver::device::Ran;
use vyre_foundation::ir::{BufferDecl, DataType, Program};
use vyre_worker::{Answer, Case, Failure, Job, Outputs, Patience, Pool, Settings, Side, Stop, Subject, serve_judge};

const ROLE: &str = "VYRE_TEST_WORKER";

/// Does what the first input says, and gives it back.
#[derive(Default)]
struct Obedient {
    seen: Vec<u8>,
}

impl Subject for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let word = case.inputs.first().map_or(&[][..], Vec::as_slice);
        let word = str::from_utf8(word).expect("the tests send words");
        self.seen.extend(word.bytes().take(1));
        match word {
            "abort" => std::process::abort(),
            "exit" => std::process::exit(7),
            "hang" => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            "spin" => {
                let mut n = 0u64;
                while std::hint::black_box(n) < u64::MAX {
                    n += 1;
                }
            }
            "panic" => panic!("the word was {word}"),
            "overflow" => assert!(overflow(1) > 0),
            "slow" => std::thread::sleep(Duration::from_millis(30)),
            "trap" => return Err(Failure::Trap { tag: 3, invocation: [1, 2, 3] }),
            "print" => {
                println!("{}", "noise ".repeat(50_000));
                eprintln!("{}", "louder noise ".repeat(50_000));
            }
            "grow" => return Ok(vec![vec![7; word.len() + 1]]),
            // Fails only after an `a` and, later, a `b`.
            "c" if self.seen.iter().position(|seen| *seen == b'a') < self.seen.iter().rposition(|seen| *seen == b'b')
                && self.seen.contains(&b'a') =>
            {
                eprintln!("a, then b, then c");
                std::process::abort();
            }
            _ => {}
        }
        Ok(case.inputs.clone())
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        let inputs = job.inputs.iter().map(|bytes| bytes.to_vec()).collect();
        let case = Case { program: job.program.clone(), inputs, config: job.config.clone(), fuel: job.fuel };
        let found = self.run(&case)?;
        if found[0].len() != job.outputs[0].len() {
            return Err(Failure::Device(format!("{} bytes", found[0].len())));
        }
        job.outputs[0].copy_from_slice(&found[0]);
        Ok(None)
    }
}

#[allow(unconditional_recursion, reason = "the stack is meant to overflow")]
fn overflow(n: u64) -> u64 {
    let frame = std::hint::black_box([n; 1024]);
    overflow(frame[7] + 1) + frame[8]
}

#[test]
fn the_worker() {
    let role = std::env::var(ROLE);
    if role.as_deref().is_ok_and(|role| role != "judge") {
        let aside = std::fs::OpenOptions::new().write(true).open("/dev/fd/3").expect("standard output was put aside");
        rustix::stdio::dup2_stdout(aside).expect("standard output can be taken back");
    }
    match role.as_deref() {
        Ok("obedient") => serve_judge(|| Box::new(Obedient::default())).expect("the judge listens"),
        Ok("refuses") => {
            eprintln!("there is no such subject");
            std::process::exit(2);
        }
        Ok("raw") => raw(),
        Ok("mute") => std::thread::sleep(Duration::from_secs(60)),
        _ => {}
    }
}

/// A worker that speaks the protocol by itself, in JSON, and does what the inputs say in ways that `serve_judge` never would.
fn raw() {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    let mut out = std::fs::File::from(std::io::stdout().as_fd().try_clone_to_owned().expect("standard output"));
    let mut input = std::io::stdin().lock();
    let mut next = || {
        let mut length = [0; 4];
        input.read_exact(&mut length).unwrap_or_else(|_| std::process::exit(0));
        let mut content = vec![0; u32::from_le_bytes(length) as usize];
        input.read_exact(&mut content).expect("a whole message");
        serde_json::from_slice::<serde_json::Value>(&content).expect("JSON")
    };
    let mut say = |text: String| {
        let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        out.write_all(&bytes).expect("the judge listens");
    };
    let hello = next();
    let path = format!("/dev/fd/{}", hello["memory_fd"]);
    let memory = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("shared memory");
    let put = |offset: u64, bytes: &[u8]| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, offset).expect("it is there");
    let get = |offset: u64, bytes: u64| {
        let mut found = vec![0; bytes as usize];
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut found, offset).expect("it is there");
        found
    };
    say(r#"{"vyre_worker":2,"subject":"raw","encoding":"json"}"#.into());
    loop {
        let batch = next();
        let mut answers = Vec::new();
        let mut again = false;
        for (n, case) in batch["cases"].as_array().expect("cases").iter().enumerate() {
            let status = |value: u64| put(batch["status"].as_u64().unwrap() + 8 * n as u64, &value.to_le_bytes());
            status(1);
            let region = |list: &str| (case[list][0]["offset"].as_u64().unwrap(), case[list][0]["bytes"].as_u64().unwrap());
            let ((from, length), (to, _)) = (region("inputs"), region("outputs"));
            let bytes = get(from, length);
            let before = get(to, length);
            put(to, &bytes);
            let mut answer = r#"{"outputs":[]}"#.to_string();
            match str::from_utf8(&bytes).expect("a word") {
                "below" => put(to - 3, &[1]),
                "above" => put(to + length, &[1]),
                "far" => put(to + length + 60, &[1]),
                "input" => put(from + 2, &[1]),
                "before input" => put(from - 64, &[1]),
                "garbage" => answer = "{".into(),
                "liar" => answer = r#"{"failure":{"refused":"no"}}"#.into(),
                "claims" => {
                    status(3);
                    answers.push(r#"{"failure":{"not_run":"no"}}"#.into());
                    continue;
                }
                "toggles" => loop {
                    status(0);
                    std::thread::sleep(Duration::from_millis(20));
                    status(1);
                    std::thread::sleep(Duration::from_millis(20));
                },
                "lazy" => put(to, &before),
                "long" => {
                    say("x".repeat(10));
                }
                "ascii" => {
                    out_of_band();
                }
                "shrink" => assert!(memory.set_len(10).is_err(), "the memory can be taken away from the judge"),
                "flood" => answers.extend((0..1000).map(|_| answer.clone())),
                "none" => continue,
                "next" => {
                    // The judge has put the batch behind this one in place by now.
                    std::thread::sleep(Duration::from_millis(100));
                    let end = (to + length + 64).next_multiple_of(64);
                    put(end + (from - batch["status"].as_u64().unwrap()), &[1]);
                }
                "again" => again = true,
                _ => {}
            }
            status(2);
            answers.push(answer);
        }
        let message = format!(r#"{{"answers":[{}]}}"#, answers.join(","));
        say(message.clone());
        if again {
            say(message);
        }
    }
}

/// Text where a message should be.
fn out_of_band() {
    use std::io::Write;
    std::io::stdout()
        .write_all(b"Segmentation fault, or so")
        .and_then(|()| std::io::stdout().flush())
        .expect("the judge listens");
}

fn worker(role: &'static str) -> impl Fn() -> Command + Send + Sync + 'static {
    move || {
        // The test harness prints to standard output, where the judge listens, so that is put aside until the worker takes over.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" --exact the_worker --nocapture 3>&1 >/dev/null"]);
        command.arg(std::env::current_exe().expect("the test runs")).env(ROLE, role);
        command
    }
}

fn settings() -> Settings {
    Settings { deadline: Duration::from_millis(1500), ..Settings::default() }
}

fn pool(settings: Settings) -> Pool {
    Pool::start(worker("obedient"), settings).expect("the worker starts")
}

fn case(word: &str) -> Case {
    let program = Program::wrapped(vec![BufferDecl::read_write("x", 0, DataType::U8)], [1, 1, 1], vec![]);
    Case::new(program, vec![word.as_bytes().to_vec()])
}

fn cases(words: &[&str]) -> Vec<Case> {
    words.iter().map(|word| case(word)).collect()
}

fn echo(word: &str) -> Answer {
    Ok(vec![word.as_bytes().to_vec()]).into()
}

/// Runs the words; all but those at `guilty` must be given back.
fn run(pool: &mut Pool, words: &[&str], guilty: &[usize]) -> Vec<Answer> {
    let answers = pool.run_batch(&cases(words));
    assert_eq!(answers.len(), words.len());
    for (n, (word, answer)) in words.iter().zip(&answers).enumerate() {
        if !guilty.contains(&n) {
            assert_eq!(*answer, echo(word), "case {n} of {words:?}");
        }
    }
    guilty.iter().map(|n| answers[*n].clone()).collect()
}

fn crash(answer: &Answer) -> &str {
    match &answer.outcome {
        Err(Failure::Crashed(how)) => how,
        other => panic!("this is not a crash: {other:?}"),
    }
}

#[test]
fn answers_come_in_the_order_of_the_cases() {
    let words: Vec<String> = (0..500).map(|n| format!("word {n}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for processes in [1, 3] {
        let mut pool = pool(Settings { processes, batch: 16, ..settings() });
        assert_eq!(pool.name(), "obedient");
        run(&mut pool, &words, &[]);
        run(&mut pool, &[], &[]);
        assert_eq!(pool.run(&case("alone")), Ok(vec![b"alone".to_vec()]));
        assert!(pool.stats().started <= processes as u64 && pool.stats().unexplained == 0);
    }
}

#[test]
fn a_crash_is_one_case_and_says_how() {
    let mut pool = pool(settings());
    let words = ["one", "abort", "two", "exit", "three", "overflow", "four", "abort"];
    let answers = run(&mut pool, &words, &[1, 3, 5, 7]);
    assert_eq!(crash(&answers[0]), "signal 6, aborted");
    assert_eq!(crash(&answers[1]), "exit status 7");
    assert!(crash(&answers[2]).contains("overflow"), "{answers:?}");
    assert!(answers.iter().all(|answer| answer.after.is_empty()));
    assert_eq!(pool.stats().unexplained, 0);
}

#[test]
fn a_hang_is_one_case_and_its_process_is_ended() {
    let mut pool = pool(settings());
    let before = pool.process_ids();
    let answers = run(&mut pool, &["one", "hang", "two", "spin", "three"], &[1, 3]);
    assert!(answers.iter().all(|answer| *answer == Err(Failure::Hung(settings().deadline)).into()), "{answers:?}");
    assert_ne!(pool.process_ids(), before);
    assert!(before.iter().all(|id| !is_running(*id)));
}

#[test]
fn after_one_that_hangs_others_get_less_time_and_after_some_none() {
    let mut pool = pool(settings());
    let (deadline, then) = (Duration::from_millis(2500), Duration::from_millis(900));
    pool.wait_for(Patience { deadline, then, hangs: 2 });
    let answers = run(&mut pool, &["one", "hang", "two", "spin", "three", "hang", "four"], &[1, 3, 4, 5, 6]);
    assert_eq!(answers[0].outcome, Err(Failure::Hung(deadline)));
    assert_eq!(answers[1].outcome, Err(Failure::Hung(then)));
    assert!(answers[2..].iter().all(|answer| matches!(answer.outcome, Err(Failure::GivenUp(_)))), "{answers:?}");
    // The next call begins anew.
    let answers = run(&mut pool, &["five", "hang", "six"], &[1]);
    assert_eq!(answers[0].outcome, Err(Failure::Hung(deadline)));
}

#[test]
fn a_pool_that_is_stopped_ends_its_processes_and_runs_nothing_more() {
    let flag = Arc::new(AtomicBool::new(false));
    let deadline = Duration::from_secs(600);
    let mut pool = pool(Settings { deadline, stop: Stop::when(flag.clone()), batch: 2, ..settings() });
    let before = pool.process_ids();
    let began = Instant::now();
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        flag.store(true, Ordering::Relaxed);
    });
    let answers = run(&mut pool, &["hang", "one", "two", "three", "four"], &[0, 1, 2, 3, 4]);
    stopping.join().expect("it ends");
    assert!(answers.iter().all(|answer| matches!(answer.outcome, Err(Failure::NotRun(_)))), "{answers:?}");
    assert!(began.elapsed() < deadline / 10);
    assert!(before.iter().all(|id| !is_running(*id)) && pool.process_ids().is_empty());
}

#[test]
fn a_pool_that_is_renewed_remembers_nothing() {
    let mut pool = pool(settings());
    run(&mut pool, &["a", "b"], &[]);
    pool.renew();
    // In the process before this it would have crashed.
    run(&mut pool, &["c"], &[]);
    assert_eq!((pool.stats().started, pool.stats().unexplained), (2, 0));
}

#[test]
fn a_panic_is_told_and_ends_no_process() {
    let mut pool = pool(settings());
    let answers = run(&mut pool, &["panic", "one", "panic", "trap"], &[0, 2, 3]);
    for answer in &answers[..2] {
        let Err(Failure::Panicked(said)) = &answer.outcome else { panic!("{answer:?}") };
        assert!(said.starts_with("the word was panic at ") && said.contains("processes.rs:"), "{said}");
    }
    assert_eq!(answers[2].outcome, Err(Failure::Trap { tag: 3, invocation: [1, 2, 3] }));
    assert_eq!(pool.stats().started, 1);
}

#[test]
fn a_subject_may_print() {
    let mut pool = pool(settings());
    run(&mut pool, &["one", "print", "two", "print", "print"], &[]);
    assert_eq!(pool.stats().started, 1);
}

#[test]
fn a_failure_that_needs_others_before_it_names_them() {
    let mut pool = pool(settings());
    let words = ["x", "b", "y", "z", "a", "y", "x", "b", "y", "z", "c", "x"];
    let answers = run(&mut pool, &words, &[10]);
    assert_eq!(crash(&answers[0]), "signal 6, aborted: a, then b, then c");
    assert_eq!(answers[0].after, [4, 7]);
    // The numbers are those of the whole list, also in a later batch and after an earlier failure.
    let mut pool = Pool::start(worker("obedient"), Settings { batch: 6, ..settings() }).expect("the worker starts");
    let answers = run(&mut pool, &["x", "b", "y", "z", "x", "x", "abort", "a", "x", "b", "c", "x"], &[6, 10]);
    assert_eq!(crash(&answers[0]), "signal 6, aborted");
    assert_eq!(answers[1].after, [7, 9]);
    assert_eq!(pool.stats().unexplained, 0);
}

/// `kill -9` again and again while batches run: no answer is lost or wrong.
#[test]
fn a_worker_that_is_killed_costs_nothing_but_time() {
    let mut pool = pool(Settings { batch: 8, ..settings() });
    let words: Vec<&str> = std::iter::repeat_n("slow", 16).collect();
    let mut killed = 0;
    for _ in 0..4 {
        let id = pool.process_ids()[0];
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            Command::new("kill").args(["-9", &id.to_string()]).status().is_ok_and(|status| status.success())
        });
        run(&mut pool, &words, &[]);
        killed += u64::from(killer.join().expect("the killer does not panic"));
    }
    assert_eq!(killed, 4);
    assert_eq!(pool.stats().unexplained, 4);
    // One that is killed between batches is no different: it is waited for when it is next asked.
    let id = pool.process_ids()[0];
    let status = Command::new("kill").args(["-9", &id.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
    run(&mut pool, &["one", "two"], &[]);
    assert!(!pool.process_ids().contains(&id) && !is_zombie(id), "a worker that has ended is not waited for");
}

#[test]
fn a_worker_that_cannot_start_is_told() {
    let error = Pool::start(worker("refuses"), settings()).err().expect("it does not start");
    assert!(error.contains("exit status 2") && error.contains("there is no such subject"), "{error}");
    let error = Pool::start(|| Command::new("/no/such/program"), settings()).err().expect("it does not start");
    assert!(error.contains("/no/such/program"), "{error}");
    let hasty = Settings { patience: Duration::from_millis(200), ..settings() };
    let error = Pool::start(worker("mute"), hasty).err().expect("it does not greet");
    assert!(error.contains("sent no greeting"), "{error}");
}

#[test]
fn a_worker_that_cannot_start_again_leaves_cases_that_were_not_run() {
    let started = AtomicUsize::new(0);
    let once = move || match started.fetch_add(1, Ordering::Relaxed) {
        0 => worker("obedient")(),
        _ => worker("refuses")(),
    };
    let mut pool = Pool::start(once, settings()).expect("the first starts");
    let answers = pool.run_batch(&cases(&["one", "abort", "two"]));
    assert_eq!(answers[0], echo("one"));
    assert!(answers[1..].iter().all(|answer| matches!(answer.outcome, Err(Failure::NotRun(_)))), "{answers:?}");
}

#[test]
fn a_wild_write_is_told_with_buffer_side_and_distance() {
    let mut pool = Pool::start(worker("raw"), settings()).expect("the worker starts");
    let wild = |buffer: &str, side, offset| -> Answer { Err(Failure::WildWrite { buffer: buffer.into(), side, offset }).into() };
    for (word, expected) in [
        ("below", wild("output 0", Side::Before, 3)),
        ("above", wild("output 0", Side::After, 0)),
        ("far", wild("output 0", Side::After, 60)),
        ("input", wild("input 0", Side::Inside, 2)),
        ("before input", wild("input 0", Side::Before, 64)),
    ] {
        // Alone, and in the middle of others, which keep their answers.
        assert_eq!(pool.run_batch(&cases(&[word])), std::slice::from_ref(&expected), "{word}");
        let answers = run(&mut pool, &["one", "two", word, "three", word], &[2, 4]);
        assert_eq!(answers, [expected.clone(), expected.clone()], "{word}");
    }
    assert_eq!(pool.stats().unexplained, 0);
    assert_eq!(pool.name(), "raw");
}

#[test]
fn a_worker_that_lies_or_talks_nonsense_fails_that_case() {
    let mut pool = Pool::start(worker("raw"), settings()).expect("the worker starts");
    for word in ["garbage", "liar", "long", "ascii", "flood", "none", "claims"] {
        let answers = run(&mut pool, &["one", word, "two"], &[1]);
        assert!(crash(&answers[0]).contains("nonsense"), "{word}: {answers:?}");
    }
    // The judge's memory stays.
    run(&mut pool, &["one", "shrink", "two"], &[]);
    assert_eq!(pool.stats().unexplained, 0);
}

/// While a batch runs the next one is in place already; what a worker does to that, and answers that nobody has asked for, cost a process
/// and no answer.
#[test]
fn what_is_done_to_the_batch_behind_is_noticed() {
    for word in ["next", "again"] {
        let mut pool = Pool::start(worker("raw"), Settings { batch: 1, ..settings() }).expect("the worker starts");
        for round in 0..3 {
            run(&mut pool, &[word, "1234", "word", "three"], &[]);
            run(&mut pool, &["four", word], &[]);
            assert!(pool.stats().unexplained > round, "{word}: nothing was noticed");
        }
    }
}

/// Time is given to cases that begin and end, and not to one that says so again and again.
#[test]
fn a_status_that_goes_back_and_forth_is_no_progress() {
    let mut pool = Pool::start(worker("raw"), settings()).expect("the worker starts");
    let answers = run(&mut pool, &["one", "toggles", "two"], &[1]);
    assert_eq!(answers[0], Err(Failure::Hung(settings().deadline)).into());
}

/// An output that nobody writes holds nothing that was there before: not what the same case gave the last time, and not twice the same.
#[test]
fn outputs_that_are_not_written_are_poison_of_their_batch() {
    let mut pool = Pool::start(worker("raw"), settings()).expect("the worker starts");
    let outputs = |pool: &mut Pool, word: &str| pool.run(&case(word)).expect("it answers").remove(0);
    let mut seen = vec![outputs(&mut pool, "lazx")];
    for _ in 0..3 {
        let found = outputs(&mut pool, "lazy");
        assert!(!seen.contains(&found), "{found:?} of {seen:?}");
        seen.push(found);
    }
}

#[test]
fn outputs_of_another_length_than_the_launch_says_are_a_failure() {
    let mut pool = pool(settings());
    let answers = run(&mut pool, &["one", "grow", "two"], &[1]);
    assert_eq!(answers[0].outcome, Err(Failure::Device("5 bytes".into())));
}

#[test]
fn what_does_not_fit_together_is_refused_and_does_not_run() {
    let mut pool = pool(settings());
    let wrong = Case { inputs: vec![], ..case("one") };
    let answers = pool.run_batch(&[case("one"), wrong, case("two")]);
    assert!(matches!(answers[1].outcome, Err(Failure::Refused(_))), "{answers:?}");
    assert_eq!((&answers[0], &answers[2]), (&echo("one"), &echo("two")));
}

#[test]
fn large_cases_go_through_and_the_memory_grows_with_them() {
    let mut pool = pool(settings());
    let word = "w".repeat(40 << 20);
    let words = ["one", &word, "two", &word[..5_000_001], &word[..5_000_002], "three"];
    run(&mut pool, &words, &[]);
    assert_eq!((pool.stats().started, pool.stats().unexplained), (1, 0));
}

/// A worker whose judge is gone ends, even if its subject never returns and nobody kills it: the end of its input is enough.
#[test]
fn a_worker_ends_when_its_input_does() {
    use std::io::{Read, Write};
    use std::os::unix::fs::FileExt;
    use vyre_worker::Region;
    use vyre_worker::message::{Batch, Encoding, Hello, Run, Work, framed};

    let path = std::env::temp_dir().join(format!("vyre-worker-memory-{}", std::process::id()));
    let memory = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    memory.set_len(1 << 20).expect("it can be made longer");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" --exact the_worker --nocapture 3>&1 9<>\"$1\" >/dev/null"]);
    command.arg(std::env::current_exe().expect("the test runs")).arg(&path).env(ROLE, "obedient");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the worker starts");
    let (mut to, mut from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let hello = Hello { vyre_worker: 2, memory_fd: 9, encodings: vec![Encoding::Wire] };
    to.write_all(&framed(&Encoding::Json.encode(&hello).expect("JSON")).expect("short")).expect("the worker reads");
    let mut length = [0; 4];
    from.read_exact(&mut length).expect("a greeting");
    from.read_exact(&mut vec![0; u32::from_le_bytes(length) as usize]).expect("a greeting");
    memory.write_all_at(b"hang", 65_600).expect("room");
    let Case { program, config, fuel, .. } = case("hang");
    let run = Run { program: 0, config, grid: [4, 1, 1], workgroup: [1, 1, 1], buffers: None };
    let (inputs, outputs) = (vec![Region { offset: 65_600, bytes: 4 }], vec![Region { offset: 65_792, bytes: 4 }]);
    let work = Work { run: vec![run], inputs, outputs, fuel };
    let batch = Batch { memory: 1 << 20, status: 65_472, programs: vec![program], cases: vec![work] };
    to.write_all(&framed(&Encoding::Wire.encode(&batch).expect("bytes")).expect("short")).expect("the worker reads");
    let start = Instant::now();
    let mut status = [0; 8];
    while status != 1u64.to_le_bytes() {
        assert!(start.elapsed() < Duration::from_secs(60), "the case does not begin: {status:?}");
        memory.read_exact_at(&mut status, 65_472).expect("the status word");
    }
    assert!(is_running(child.id()));
    drop(to);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if child.try_wait().expect("it can be waited for").is_some() {
            return std::fs::remove_file(&path).expect("the file is there");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().and_then(|()| child.wait()).expect("it is ended");
    panic!("the worker is still there");
}

/// `kill -9` of a worker, of its judge, or of both, at random moments: answers are right, whoever is left goes on, and no process and no
/// shared memory outlives its judge. `VYRE_KILLS=N` kills N times instead of a few.
#[test]
fn kill_9_at_random_moments_leaves_nothing_behind_and_no_answer_wrong() {
    use std::os::unix::process::ExitStatusExt;
    let kills: u64 = std::env::var("VYRE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut pool = pool(Settings { processes: 2, batch: 4, ..settings() });
    let mut both = 0;
    let mut killed = Vec::new();
    for kill in 0..kills {
        let moment = Duration::from_micros(next() % 60_000);
        if kill % 3 == 0 {
            // A worker dies, and its judge goes on.
            let ids = pool.process_ids();
            let id = ids[(next() % ids.len() as u64) as usize];
            let killer = std::thread::spawn(move || {
                std::thread::sleep(moment);
                signal(id, "-9")
            });
            let words: Vec<&str> = std::iter::repeat_n("slow", 12).collect();
            run(&mut pool, &words, &[]);
            killer.join().expect("the killer does not panic");
            killed.push(id);
            // One that was killed after it had answered is noticed when it is next asked.
            let held = pool.process_ids();
            let forgotten: Vec<&u32> = killed.iter().filter(|id| !held.contains(id) && is_zombie(**id)).collect();
            assert!(forgotten.is_empty(), "kill {kill}: {forgotten:?} have ended and are not waited for");
            continue;
        }
        // A judge dies, perhaps right after one of its workers, perhaps before they have started. Whatever it starts inherits its mark.
        let mark = format!("{MARK}={}-{kill}", std::process::id());
        let mut judge = Command::new(std::env::current_exe().expect("the test runs"));
        judge.args(["--exact", "the_judge", "--nocapture"]).env(ROLE, "judge").env(MARK, mark.split_once('=').expect("=").1);
        let mut judge = judge.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(moment * 4);
        if kill % 3 == 2
            && let Some(worker) = children(judge.id()).first()
        {
            both += 1;
            signal(*worker, "-9");
            std::thread::sleep(Duration::from_micros(next() % 3000));
        }
        let status = judge.kill().and_then(|()| judge.wait()).expect("it is ended");
        assert_eq!(status.signal(), Some(9), "kill {kill}: the judge ended by itself, with a wrong answer or memory too much");
        let start = Instant::now();
        loop {
            let left = marked(&mark);
            if left.is_empty() {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "kill {kill}: {left:?} outlive their judge");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert!(both > 0 || kills < 6, "no judge had a worker to kill");
    drop(pool);
    assert!(children(std::process::id()).iter().all(|id| !is_zombie(*id)));
}

/// What the environment of a judge says that is killed, and of all that it starts.
const MARK: &str = "VYRE_TEST_MARK";

/// The processes with this in their environment that have not ended. Shared memory has no name: it is there as long as one of them is.
fn marked(mark: &str) -> Vec<u32> {
    let has_mark = |id: &u32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes().filter(has_mark).filter(|id| !is_zombie(*id)).collect()
}

/// The judge of the test above: runs cases until it is killed. It has the shared memory of its workers and no other.
#[test]
fn the_judge() {
    if std::env::var(ROLE).as_deref() == Ok("judge") {
        let mut pool = pool(Settings { processes: 2, batch: 4, ..settings() });
        let is_shared = |file: &std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().contains("memfd:vyre-worker"))
        };
        loop {
            let words: Vec<&str> = std::iter::repeat_n("slow", 4).collect();
            run(&mut pool, &words, &[]);
            run(&mut pool, &["one", "abort"], &[1]);
            run(&mut pool, &["one", "hang"], &[1]);
            let shared = std::fs::read_dir("/proc/self/fd").expect("files").flatten().filter(is_shared).count();
            assert!((1..=2).contains(&shared), "{shared} segments");
        }
    }
}

fn signal(id: u32, signal: &str) {
    // Who is gone already cannot be killed.
    let _ = Command::new("kill").args([signal, &id.to_string()]).stderr(std::process::Stdio::null()).status();
}

/// The field of `/proc/ID/stat` behind the name of the program.
fn stat(id: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(String::from)
}

fn is_zombie(id: u32) -> bool {
    stat(id, 0).as_deref() == Some("Z")
}

fn processes() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").expect("processes").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn children(parent: u32) -> Vec<u32> {
    processes().filter(|id| stat(*id, 1).as_deref() == Some(&parent.to_string())).collect()
}

fn is_running(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}
