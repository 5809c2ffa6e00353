//! Worker processes that crash, hang, panic, print, lie and are killed: every case still gets its answer, and the guilty one is named.
//!
//! The worker is this test program itself, started again to run `the_worker` alone.

use std::process::Command;
use std::time::{Duration, Instant};
use vyre_foundation::ir::{BufferDecl, DataType, Program};
use vyre_worker::{Answer, Case, Failure, Outputs, Pool, Settings, Subject, serve_judge};

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
}

#[allow(unconditional_recursion, reason = "the stack is meant to overflow")]
fn overflow(n: u64) -> u64 {
    let frame = std::hint::black_box([n; 1024]);
    overflow(frame[7] + 1) + frame[8]
}

#[test]
fn the_worker() {
    match std::env::var(ROLE).as_deref() {
        Ok("obedient") => serve_judge(|| Box::new(Obedient::default())).expect("the judge listens"),
        Ok("refuses") => {
            eprintln!("there is no such subject");
            std::process::exit(2);
        }
        Ok("mute") => std::thread::sleep(Duration::from_secs(60)),
        _ => {}
    }
}

fn worker(role: &'static str) -> impl Fn() -> Command + Send + Sync + 'static {
    move || {
        let mut command = Command::new(std::env::current_exe().expect("the test runs"));
        command.args(["--exact", "the_worker", "--nocapture"]).env(ROLE, role);
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
        other => panic!("this is no crash: {other:?}"),
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
    // One that is killed between batches is no different.
    let status = Command::new("kill").args(["-9", &pool.process_ids()[0].to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
    run(&mut pool, &["one", "two"], &[]);
}

#[test]
fn a_worker_that_cannot_start_is_told() {
    let error = Pool::start(worker("refuses"), settings()).err().expect("it does not start");
    assert!(error.contains("exit status 2") && error.contains("there is no such subject"), "{error}");
    let error = Pool::start(|| Command::new("/no/such/program"), settings()).err().expect("it does not start");
    assert!(error.contains("/no/such/program"), "{error}");
    let hasty = Settings { patience: Duration::from_millis(200), ..settings() };
    let error = Pool::start(worker("mute"), hasty).err().expect("it does not greet");
    assert!(error.contains("does not greet"), "{error}");
}

#[test]
fn a_worker_that_cannot_start_again_leaves_cases_that_were_not_run() {
    let started = std::sync::atomic::AtomicUsize::new(0);
    let once = move || match started.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => worker("obedient")(),
        _ => worker("refuses")(),
    };
    let mut pool = Pool::start(once, settings()).expect("the first starts");
    let answers = pool.run_batch(&cases(&["one", "abort", "two"]));
    assert_eq!(answers[0], echo("one"));
    assert!(answers[1..].iter().all(|answer| matches!(answer.outcome, Err(Failure::NotRun(_)))), "{answers:?}");
}

fn is_running(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}
