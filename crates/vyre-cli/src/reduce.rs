//! `vyre reduce`: the smallest program that a user's own command still finds interesting.
//!
//! The best program so far is in the output file at any time: it is replaced by renaming, so whoever ends this process in the middle
//! finds a whole program there.

use crate::launch::{LaunchArgs, Launched, launch_flags, quoted};
use crate::predicate::Predicate;
use crate::time::duration;
use crate::{Failure, load, print, warn};
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vyre::files::{self, FileError};
use vyre::ir::Program;
use vyre::launch::plan;
use vyre::reference::{Options, RunError};
use vyre::scalar::memory::byte_length;
use vyre::{specialize, values};
use vyre_smith::reduce::{Config, End, Error, Progress, Reduced, Size, check_file, reduce, too_large};
use vyre_worker::{Case, Failure as Outcome};

/// Find the smallest program that is still interesting.
///
/// Removes statements, replaces expressions by their operands, shrinks buffers, inputs and the launch, and asks the predicate each time
/// whether the program is still interesting. In the end no single change gives a smaller program that still is.
#[derive(clap::Args)]
#[command(after_help = "\
The predicate is a shell command; exit status 0 means that the program is still interesting. The path of the program is appended to
it, unless the command mentions one of these variables:
  $VYRE_FILE        the program in text form
  $VYRE_WIRE        the same in wire form
  $VYRE_ARGS        inputs and launch as `vyre run` takes them; do not quote it
  $VYRE_INPUT_name  the bytes of the input `name`
  $VYRE             the `vyre` that is running
A predicate that takes longer than --deadline is ended, with all that it started, and counts as no; so does one that crashes. Its output
is discarded, unless it says no to FILE itself.

Inputs and launch are given as to `vyre run`, see `vyre help run`. Without any, a kernel that needs some gets zeros and one workgroup,
which is enough for a predicate that does not run it.

The best program so far is in the output file at any time, whatever happens to this command; ^C ends the predicate too. If inputs or a
launch are given, the file also says what the reference computes, so it can go below checks/ as it is.

Examples:
  vyre reduce big.vyre --predicate 'grep -q atan'
                            the smallest program with `atan` in it
  vyre reduce big.vyre --predicate '! mycompiler'
                            the smallest program that mycompiler fails on
  vyre reduce big.vyre --in a=@a.bin --predicate '$VYRE run $VYRE_FILE $VYRE_ARGS | grep -q nan'
                            the smallest program and inputs that give a NaN
  vyre reduce big.vyre --in a=@a.bin --predicate './differs.sh $VYRE_FILE $VYRE_INPUT_a' --deadline 2s
                            where differs.sh runs it on two devices and compares

Exit status: 0 reduced, 1 the program is wrong or not interesting, or the predicate contradicts itself, 2 the command line is wrong.")]
pub struct Args {
    /// A kernel in text or wire form; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The command that exits with 0 if a program is still interesting
    #[arg(long, value_name = "COMMAND")]
    pub predicate: String,
    /// How long the predicate may take each time, such as 500ms, 10s or 2m
    #[arg(long, alias = "timeout", value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub deadline: Duration,
    /// How many times the predicate may be run
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    attempts: u64,
    /// How long the whole reduction may take [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Try only programs that give the same result under every schedule
    #[arg(long)]
    race_free: bool,
    /// The file to write the best program to [default: FILE with the ending .reduced.vyre]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// One JSON object with the result
    #[arg(long)]
    pub json: bool,
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
    let result = match result {
        Err(error) => Err(refused(error, &predicate, args)),
        Ok(reduced) => {
            file.put(&reduced.case);
            file.finish().and_then(|()| conclude(&reduced, &file, &predicate, args, given))
        }
    };
    predicate.finish();
    result
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
    let elements = |i: &usize| u64::from(kernel.buffers[*i].count.unwrap_or(length));
    let (all, allowed) = (resolved.interface().bound.iter().map(elements).sum(), Config::default().elements);
    if all > allowed {
        return Err(too_large(all, allowed).into());
    }
    let zeros = |i: &usize| vec![0; byte_length(&kernel.buffers[*i].element, elements(i)).unwrap_or(0) as usize];
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
        Error::Stopped => "interrupted before the predicate gave its first answer".into(),
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
            warn(&format!("warning: the predicate gave no answer {} times within {:?}\n", predicate.hung, args.deadline));
        }
        if let Some(why) = reduced.first_failure.as_ref().filter(|_| reduced.failures > predicate.hung) {
            warn(&format!("warning: the predicate failed {} times; the first time: {why}\n", reduced.failures));
        }
        if !reduced.stable && reduced.end != End::Stopped {
            warn("error: the predicate said yes to this program and, asked again, did not\n");
        }
    }
    if reduced.stable { Ok(()) } else { Err(Failure::Said) }
}

/// The command that runs a case; `None` if its inputs cannot be written as values.
fn run_command(case: &Case, path: &Path) -> Option<String> {
    let program = case.specialized().ok()?;
    let kernel = program.validated().ok()?.kernel();
    let mut command = format!("{} run {}", crate::this_program(), quoted(&path.display().to_string()));
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
