//! `vyre reduce`: the smallest program that a user's own command still finds interesting.
//!
//! The command runs once per candidate, in a process group of its own, so that one that hangs can be ended with all that it started.
//! The best program so far is in the output file at any time: it is replaced by renaming, so whoever ends this process in the middle
//! finds a whole program there.

use crate::launch::{LaunchArgs, Launched, quoted};
use crate::{Failure, load, print, warn};
use serde_json::json;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use vyre::files::{self, FileError};
use vyre::ir::Program;
use vyre::launch::plan;
use vyre::reference::{Options, RunError};
use vyre::scalar::memory::byte_length;
use vyre::{specialize, values};
use vyre_smith::reduce::{Config, Error, Interest, Progress, Reduced, Size, check_file, reduce};
use vyre_worker::{Case, Failure as Outcome};

/// Find the smallest program that is still interesting.
///
/// Takes statements out, puts operands in the place of expressions, shrinks buffers, inputs and the launch, and asks the predicate
/// each time whether what it looks for is still there. In the end no single change makes a smaller program that is.
#[derive(clap::Args)]
#[command(after_help = "\
The predicate is a shell command; exit status 0 means that the program is still interesting. The path of the program is put after
it, unless the command mentions a variable of these:
  $VYRE_FILE        the program in text form
  $VYRE_WIRE        the same in wire form
  $VYRE_ARGS        inputs and launch as `vyre run` takes them; do not quote it
  $VYRE_INPUT_name  the bytes of the input `name`
  $VYRE             this command
A predicate that takes longer than --timeout is ended, with all that it started, and counts as no; so does one that crashes. What it
prints goes nowhere, unless it says no to FILE itself.

Inputs and launch are given as to `vyre run`, see `vyre help run`. Without any, a kernel that needs some gets zeros and one workgroup,
which is all right for a predicate that does not run it.

The best program so far is in the output file at any time, whatever happens to this command. It says what the reference makes of it,
so it can go below checks/ as it is.

Examples:
  vyre reduce big.vyre --predicate 'grep -q atan'
                            the smallest program with `atan` in it
  vyre reduce big.vyre --predicate '! mycompiler'
                            the smallest program that mycompiler fails on
  vyre reduce big.vyre --in a=@a.bin --predicate '$VYRE run $VYRE_FILE $VYRE_ARGS | grep -q nan'
                            the smallest program and inputs that give a NaN
  vyre reduce big.vyre --in a=@a.bin --predicate './differs.sh $VYRE_FILE $VYRE_INPUT_a' --timeout 2s
                            where differs.sh runs it on two devices and compares

Exit status: 0 reduced, 1 the program is wrong or not interesting, or the predicate contradicts itself, 2 the command line is wrong.")]
pub struct Args {
    /// A kernel in text or wire form; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The command that says by exit status 0 that a program is still interesting
    #[arg(long, value_name = "COMMAND")]
    predicate: String,
    /// How long the predicate may take: 10s, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    timeout: Duration,
    /// How often the predicate may be asked
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    attempts: u64,
    /// How long the whole may take [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Offer only programs that give the same under every schedule
    #[arg(long)]
    race_free: bool,
    /// Where the best program goes [default: FILE with .reduced.vyre]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// One JSON object that says what came of it
    #[arg(long)]
    pub json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match &text[digits..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        _ => return Err("write a time like 10s, 500ms or 2m".into()),
    };
    let number: f64 = text[..digits].parse().map_err(|_| "write a time like 10s, 500ms or 2m".to_string())?;
    Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let case = case(args)?;
    let given = !args.launch.written().is_empty();
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.file));
    let mut file = Output::new(out, args, given)?;
    let mut predicate = Predicate::new(args)?;
    let config = Config {
        attempts: args.attempts,
        deadline: args.time.map(|time| Instant::now() + time),
        race_free: args.race_free,
        ..Config::default()
    };
    let mut shown = Shown { last: Instant::now(), accepted: 0, terminal: std::io::stderr().is_terminal(), json: args.json };
    let mut best = 0;
    let mut heard = |progress: &Progress<'_>| {
        if progress.accepted != best {
            best = progress.accepted;
            file.put(progress.best);
        }
        shown.show(progress);
    };
    let result = reduce(case, &config, &mut |case| predicate.ask(case), &mut heard);
    shown.clear();
    match result {
        Err(error) => Err(refused(error, &predicate, args)),
        Ok(reduced) => {
            file.put(&reduced.case);
            file.finish()?;
            conclude(&reduced, &file, &predicate, args, given)
        }
    }
}

/// The dispatch to reduce: as the flags say, or, if there are none and some are needed, zeros for one workgroup.
fn case(args: &Args) -> Result<Case, Failure> {
    let program = load(&args.file)?;
    program.validated().map_err(Clone::clone)?;
    let given = !args.launch.written().is_empty();
    match args.launch.launch(program.clone()) {
        Ok(Launched { declared, config, inputs, options, .. }) => {
            let case = Case { program: declared, inputs, config, fuel: options.fuel };
            if given || fits(&case) { Ok(case) } else { stand_in(program) }
        }
        Err(failure) if given => Err(failure),
        Err(_) => stand_in(program),
    }
}

fn fits(case: &Case) -> bool {
    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    specialize(&case.program, []).is_ok_and(|program| plan(&program, &sizes, &case.config.launch()).is_ok())
}

fn stand_in(program: Program) -> Result<Case, Failure> {
    let resolved = specialize(&program, [])?;
    let kernel = resolved.validated().map_err(Clone::clone)?.kernel();
    let length = kernel.workgroup_invocations();
    let zeros = |i: &usize| {
        let buffer = &kernel.buffers[*i];
        let bytes = byte_length(&buffer.element, u64::from(buffer.count.unwrap_or(length))).unwrap_or(0);
        vec![0; bytes as usize]
    };
    let inputs = resolved.interface().inputs.iter().map(zeros).collect();
    let mut case = Case::new(program, inputs);
    case.config.grid_override = Some([1, 1, 1]);
    let open = |i: &&usize| kernel.buffers[**i].count.is_none() && !kernel.buffers[**i].access.is_input();
    let lengths =
        resolved.interface().outputs.iter().filter(open).map(|i| (kernel.buffers[*i].name.as_str().to_string(), length));
    case.config.output_counts = lengths.collect();
    Ok(case)
}

fn default_out(file: &str) -> PathBuf {
    match file {
        "-" => "reduced.vyre".into(),
        file => Path::new(file).with_extension("reduced.vyre"),
    }
}

/// How every file that this command writes begins.
const TITLE: &str = "// Reduced from ";

/// The file with the best program so far.
struct Output {
    path: PathBuf,
    title: String,
    /// Whether inputs and launch mean something.
    given: bool,
    problem: Option<FileError>,
}

impl Output {
    /// Fails if nothing can be written there.
    fn new(path: PathBuf, args: &Args, given: bool) -> Result<Output, Failure> {
        // What somebody else has written there is theirs; what an earlier reduction has written says so in its first line.
        if let Ok(old) = fs::read(&path)
            && !old.starts_with(TITLE.as_bytes())
        {
            let message = format!("{} exists and was not written by `vyre reduce`; name another file with --out", path.display());
            return Err(Failure::Usage(message));
        }
        // A place where nothing can be written is told before the work and not after it.
        files::can_replace(&path).map_err(|error| Failure::Usage(error.to_string()))?;
        let predicate: Vec<&str> = args.predicate.split_whitespace().collect();
        let title = format!("{}{} under the predicate {}", TITLE.trim_start_matches("// "), args.file, predicate.join(" "));
        Ok(Output { path, title, given, problem: None })
    }

    fn put(&mut self, case: &Case) {
        self.problem = files::replace(&self.path, self.text(case).as_bytes()).err();
    }

    fn text(&self, case: &Case) -> String {
        let checked =
            if self.given { expected(case).and_then(|expected| check_file(case, &expected, &self.title)) } else { None };
        checked.unwrap_or_else(|| format!("// {}\n\n{}", self.title, case.program))
    }

    fn finish(&self) -> Result<(), Failure> {
        match &self.problem {
            Some(error) => Err(Failure::Usage(error.to_string())),
            None => Ok(()),
        }
    }
}

/// What the reference makes of a case, if it does not take long.
fn expected(case: &Case) -> Option<Result<Vec<Vec<u8>>, Outcome>> {
    let options = Options { fuel: case.fuel.min(1 << 24), ..Options::from(case) };
    match vyre::reference::run(&case.program, &case.input_slices(), &options) {
        Ok(outputs) => Some(Ok(outputs)),
        Err(RunError::Trap { tag, invocation, .. }) => Some(Err(Outcome::Trap { tag, invocation })),
        Err(RunError::Rejected(_) | RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => None,
    }
}

/// The user's command, and the folder in which it finds candidates.
struct Predicate {
    command: String,
    timeout: Duration,
    folder: PathBuf,
    this: PathBuf,
    /// What it printed the first time, and how it ended.
    first: Option<(String, String)>,
    hung: u64,
}

impl Predicate {
    fn new(args: &Args) -> Result<Predicate, Failure> {
        let folder = std::env::temp_dir().join(format!("vyre-reduce-{}", std::process::id()));
        let cannot = |error| Failure::Usage(format!("cannot write {}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(cannot)?;
        let this = std::env::current_exe().unwrap_or_else(|_| "vyre".into());
        let variables = ["VYRE_FILE", "VYRE_WIRE", "VYRE_ARGS", "VYRE_INPUT"];
        let command = if variables.iter().any(|name| args.predicate.contains(name)) {
            args.predicate.clone()
        } else {
            format!("{} \"$VYRE_FILE\"", args.predicate)
        };
        Ok(Predicate { command, timeout: args.timeout, folder, this, first: None, hung: 0 })
    }

    fn ask(&mut self, case: &Case) -> Interest {
        match self.run(case) {
            Err(error) => Interest::Failed(error.to_string()),
            Ok(ended) => {
                if self.first.is_none() {
                    let printed = fs::read(self.folder.join("printed")).unwrap_or_default();
                    self.first = Some((String::from_utf8_lossy(&printed).into_owned(), ended.to_string()));
                }
                match ended {
                    Ended::Itself(status) if status.success() => Interest::Yes,
                    Ended::Itself(status) if status.code().is_some() => Interest::No,
                    Ended::Itself(_) => Interest::Failed(ended.to_string()),
                    Ended::Hung(_) => {
                        self.hung += 1;
                        Interest::Failed(ended.to_string())
                    }
                }
            }
        }
    }

    fn run(&self, case: &Case) -> std::io::Result<Ended> {
        let text = self.folder.join("candidate.vyre");
        let wire = self.folder.join("candidate.vyreb");
        fs::write(&text, case.program.to_string())?;
        fs::write(&wire, vyre::wire::to_wire(&case.program).map_err(|error| std::io::Error::other(error.to_string()))?)?;
        let printed = File::create(self.folder.join("printed"))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command);
        command.env("VYRE_FILE", &text).env("VYRE_WIRE", &wire).env("VYRE", &self.this);
        let mut flags = String::new();
        for (n, (i, bytes)) in case.program.interface().inputs.iter().zip(&case.inputs).enumerate() {
            let name = case.program.buffers()[*i].name.as_str();
            let path = self.folder.join(format!("input{n}.bin"));
            fs::write(&path, bytes)?;
            let _ = write!(flags, " --in {name}=@{}", path.display());
            if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                command.env(format!("VYRE_INPUT_{name}"), &path);
            }
        }
        flags.push_str(&launch_flags(case));
        command.env("VYRE_ARGS", flags.trim_start());
        command.stdin(Stdio::null()).stderr(printed.try_clone()?).stdout(printed);
        in_own_group(&mut command);
        wait(command.spawn()?, self.timeout)
    }
}

impl Drop for Predicate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The flags of a launch but for its inputs, each after a space.
fn launch_flags(case: &Case) -> String {
    let mut flags = String::new();
    for (flag, size) in [("grid", case.config.grid_override), ("workgroup", case.config.workgroup_override)] {
        if let Some([x, y, z]) = size {
            let _ = write!(flags, " --{flag} {x},{y},{z}");
        }
    }
    for (name, count) in &case.config.output_counts {
        let _ = write!(flags, " --len {}", quoted(&format!("{name}={count}")));
    }
    for (name, value) in case.config.specialization.iter() {
        let _ = write!(flags, " --const {}", quoted(&format!("{name}={value}")));
    }
    flags
}

/// How a run of the predicate ended.
enum Ended {
    Itself(ExitStatus),
    Hung(Duration),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Itself(status) => status.fmt(f),
            Ended::Hung(time) => write!(f, "no answer for {time:?}"),
        }
    }
}

/// Waits for a process, and ends it with all that it has started if that takes too long.
fn wait(mut child: Child, timeout: Duration) -> std::io::Result<Ended> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Itself(status));
        }
        if start.elapsed() >= timeout {
            end_group(&child);
            let _ = child.kill();
            child.wait()?;
            return Ok(Ended::Hung(timeout));
        }
        std::thread::sleep(pause.min(timeout.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

#[cfg(unix)]
fn in_own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Ends every process of the group that the child leads. The child has not been waited for, so its number is still its own.
#[cfg(unix)]
fn end_group(child: &Child) {
    let _ = Command::new("sh").args(["-c", "kill -s KILL -- -\"$0\"", &child.id().to_string()]).stderr(Stdio::null()).status();
}

#[cfg(not(unix))]
fn in_own_group(_: &mut Command) {}

#[cfg(not(unix))]
fn end_group(_: &Child) {}

/// What the user sees on the way.
struct Shown {
    last: Instant,
    accepted: u64,
    terminal: bool,
    json: bool,
}

impl Shown {
    fn show(&mut self, progress: &Progress<'_>) {
        let pause = Duration::from_millis(if self.terminal { 100 } else { 5000 });
        let news = self.terminal || progress.accepted != self.accepted;
        if self.json || !news || self.last.elapsed() < pause {
            return;
        }
        (self.last, self.accepted) = (Instant::now(), progress.accepted);
        let line = format!("{} attempts: {}", progress.attempts, progress.size);
        warn(&if self.terminal { format!("\r{line}\x1b[K") } else { format!("{line}\n") });
    }

    fn clear(&self) {
        if self.terminal && !self.json {
            warn("\r\x1b[K");
        }
    }
}

fn refused(error: Error, predicate: &Predicate, args: &Args) -> Failure {
    let (printed, ended) = predicate.first.clone().unwrap_or_default();
    let message = match error {
        Error::Invalid(report) => return report.into(),
        Error::NotDeterministic => {
            "with --race-free there is nothing to reduce: the program itself depends on the schedule, see `vyre check --checked`"
                .into()
        }
        Error::NotInteresting => format!("the predicate says no to {} itself: {ended}", args.file),
        Error::Failed(why) => format!("the predicate fails on {} itself: {why}", args.file),
    };
    if args.json {
        print(&format!("{}\n", json!({ "refused": message, "printed": printed })));
    } else {
        warn(&format!("error: {message}\n"));
        let lines: Vec<&str> = printed.lines().collect();
        for line in &lines[lines.len().saturating_sub(20)..] {
            warn(&format!("  | {line}\n"));
        }
    }
    Failure::Said
}

fn conclude(reduced: &Reduced, file: &Output, predicate: &Predicate, args: &Args, given: bool) -> Result<(), Failure> {
    let command = if given { run_command(&reduced.case, &file.path) } else { None };
    if args.json {
        let size = |size: Size| json!({ "nodes": size.nodes, "input_words": size.input_words, "invocations": size.invocations });
        let object = json!({
            "file": file.path.display().to_string(),
            "size": size(reduced.size),
            "from": size(reduced.from),
            "end": reduced.end.to_string(),
            "stable": reduced.stable,
            "attempts": reduced.attempts,
            "accepted": reduced.accepted,
            "failures": reduced.failures,
            "hung": predicate.hung,
            "program": reduced.case.program.to_string(),
            "run": command,
        });
        print(&format!("{object}\n"));
    } else {
        let mut text = format!("{}\n", reduced.case.program.to_string().trim_end());
        let _ = writeln!(text, "{}: {}, from {}", file.path.display(), reduced.size, reduced.from);
        let _ = writeln!(text, "{} after {} attempts", reduced.end, reduced.attempts);
        if let Some(command) = command {
            let _ = writeln!(text, "again: {command}");
        }
        print(&text);
        if predicate.hung > 0 {
            warn(&format!("warning: the predicate gave no answer {} times within {:?}\n", predicate.hung, args.timeout));
        }
        if let Some(why) = reduced.first_failure.as_ref().filter(|_| reduced.failures > predicate.hung) {
            warn(&format!("warning: the predicate failed {} times; the first time: {why}\n", reduced.failures));
        }
        if !reduced.stable {
            warn("error: the predicate said yes to this program and, asked again, did not\n");
        }
    }
    if reduced.stable { Ok(()) } else { Err(Failure::Said) }
}

/// The command that runs a case; `None` if its inputs cannot be written as values.
fn run_command(case: &Case, path: &Path) -> Option<String> {
    let program = case.specialized().ok()?;
    let kernel = program.validated().ok()?.kernel();
    let mut command = format!("vyre run {}", quoted(&path.display().to_string()));
    for (i, bytes) in program.interface().inputs.iter().zip(&case.inputs) {
        let buffer = &kernel.buffers[*i];
        let list = values::decode(&buffer.element, bytes).join(",");
        if values::encode(&buffer.element, &list).ok()? != *bytes {
            return None;
        }
        let _ = write!(command, " --in {}", quoted(&format!("{}={list}", buffer.name.as_str())));
    }
    command.push_str(&launch_flags(case));
    Some(command)
}
