//! `vyre cert`: certificates of conformance runs.

use crate::conform::Doubted;
use crate::{Failure, print, report, runs, write_file};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use vyre_conform::cert::{
    Audit, AuditError, CertError, Certificate, KeyError, Outcome, PublicKey, SecretKey, Unsigned, audit, same_run,
};

/// Sign what a conformance run has shown, and check what others have signed.
#[derive(clap::Args)]
#[command(after_help = "\
A certificate is a signed claim: the holder of the key says that this device gave these bytes. Anyone who has such a device can refute
it by running units again. It is not a proof by itself: the bytes that a correct device gives are public.

Examples:
  vyre cert keygen mine                                   makes mine.key, which you keep, and mine.pub, which you publish
  vyre cert sign state --key mine.key --out bulk.cert.json
  vyre cert verify bulk.cert.json --key mine.pub          needs no device
  vyre cert verify bulk.cert.json --key mine.pub --nonce 4711   also check that the cases were drawn from your number
  vyre cert audit bulk.cert.json state --key mine.pub -k 459    runs 459 units again: if 1 % are forged, that is found with a probability of 99 %

Exit status: 0 the claim holds, 1 the certificate is rejected or refuted, the run fails, or a file is damaged, 2 the command line is wrong or a file
cannot be read or written, 3 there is no verdict. docs/certificates.md has every field of the file.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a key: two new files
    Keygen(Keygen),
    /// Sign what a run has shown
    Sign(Sign),
    /// Check a certificate against a key that you trust; needs no device
    Verify(Verify),
    /// Run units of a certified run again
    Audit(Again),
}

#[derive(clap::Args)]
struct Keygen {
    /// The files become NAME.key and NAME.pub; neither may exist
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Sign {
    /// The run: its state folder, or its file
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The file to write the certificate to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    beside: report::Beside,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Verify {
    /// The certificate
    #[arg(value_name = "CERTIFICATE")]
    certificate: PathBuf,
    /// The public key of the signer you trust; it is never taken from the certificate
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The number that you chose and that sampled cases must have been drawn from (`vyre conform --nonce N`)
    #[arg(long, value_name = "N")]
    nonce: Option<u64>,
    /// The whole certificate as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Again {
    /// The certificate
    #[arg(value_name = "CERTIFICATE")]
    certificate: PathBuf,
    /// The run that it was signed for, with its units
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The public key of the signer
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// How many units to run again
    #[arg(short = 'k', long = "units", value_name = "N", default_value_t = 459, value_parser = clap::value_parser!(u64).range(1..))]
    units: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Whether the answer is JSON.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Keygen(args) => args.json,
            Command::Sign(args) => args.json,
            Command::Verify(args) => args.json,
            Command::Audit(args) => args.json,
        }
    }
}

pub fn cert(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Keygen(args) => keygen(args),
        Command::Sign(args) => sign(args),
        Command::Verify(args) => verify(args),
        Command::Audit(args) => again(args),
    }
}

fn keygen(args: &Keygen) -> Result<(), Failure> {
    let named = |ending: &str| {
        let mut name = args.name.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let (secret, public) = (named(".key"), named(".pub"));
    let key = SecretKey::generate().map_err(key_failure)?;
    key.create(&secret, &public).map_err(key_failure)?;
    let id = key.public().id();
    if args.json {
        print(&format!("{}\n", json!({ "key": id, "secret": secret, "public": public })));
    } else {
        let (secret, public) = (secret.display(), public.display());
        print(&format!("key {id}\n{secret}: the secret key; keep it to yourself\n{public}: the public key; publish it\n"));
    }
    Ok(())
}

fn sign(args: &Sign) -> Result<(), Failure> {
    let key = SecretKey::read(&args.key).map_err(key_failure)?;
    let run = runs::data(&args.run)?;
    let (known, kills) = args.beside.read(&run)?;
    let certificate = Certificate::of(&run, &known, kills).map_err(|error| match &error {
        Unsigned::Fails(_) => Failure::Data(error.to_string()),
        Unsigned::NoVerdict(_) => Failure::NoVerdict(error.to_string()),
    })?;
    let paths = args.beside.paths().chain([args.key.as_path(), run.path.as_path()]);
    let inputs: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    write_file(&args.out, certificate.sign(&key).as_bytes(), &inputs.iter().map(String::as_str).collect::<Vec<_>>())?;
    let id = key.public().id();
    if args.json {
        let object = json!({
            "certificate": args.out,
            "key": id,
            "root": certificate.root,
            "holds_with_exceptions": certificate.holds_with_exceptions,
        });
        print(&format!("{object}\n"));
    } else {
        print(&format!("{}: signed with key {id}\n{}", args.out.display(), certificate.text()));
    }
    Ok(())
}

fn read(path: &Path, key: &Path) -> Result<Certificate, Failure> {
    let key = PublicKey::read(key).map_err(key_failure)?;
    let bytes = std::fs::read(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    Certificate::verify(&bytes, &key).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &CertError) -> Failure {
    let message = format!("{}: {error}", path.display());
    match error {
        CertError::Rejected { .. } => Failure::Data(message),
        CertError::Version(_) => Failure::NoVerdict(message),
    }
}

fn verify(args: &Verify) -> Result<(), Failure> {
    let certificate = read(&args.certificate, &args.key)?;
    if let Some(nonce) = args.nonce {
        certificate.answers(nonce).map_err(|error| refused(&args.certificate, &error))?;
    }
    if args.json {
        print(&format!("{}\n", json!({ "is_signed": true, "certificate": certificate })));
    } else {
        print(&format!("{}: signed with the key of {}\n{}", args.certificate.display(), args.key.display(), certificate.text()));
    }
    Ok(())
}

fn again(args: &Again) -> Result<(), Failure> {
    let certificate = read(&args.certificate, &args.key)?;
    let opened = runs::open(&args.run)?;
    let run = opened.data()?;
    // What is wrong with the files is said before a device is opened.
    same_run(&certificate, &run).map_err(audit_failure)?;
    let doubted = Doubted::new(&run.info.command, &run.identity.suite)?;
    let found = doubted.again(|rerun| audit(&certificate, &*opened.store, &run, args.units, rerun))?.map_err(audit_failure)?;
    told(args, &found);
    match (found.refuted().next(), found.not_run().next()) {
        (Some(_), _) => Err(Failure::Said),
        (None, Some(unit)) => Err(Failure::NoVerdict(match &unit.outcome {
            Outcome::NotRun(why) => format!("{} of the units could not be run: {why}", found.not_run().count()),
            Outcome::Same | Outcome::Differs { .. } => unreachable!("it was not run"),
        })),
        (None, None) => Ok(()),
    }
}

fn told(args: &Again, found: &Audit) {
    let (refuted, bound) = (found.refuted().count(), found.bound());
    if args.json {
        let units: Vec<_> = found.refuted().map(|unit| json!({ "section": unit.section, "first": unit.first })).collect();
        let object = json!({
            "ran": found.units.len() - found.not_run().count(),
            "of": found.of,
            "refuted": units,
            "not_run": found.not_run().count(),
            "escape_of_one_percent": bound.escape(0.01),
        });
        print(&format!("{object}\n"));
        return;
    }
    let mut out = String::new();
    let _ = writeln!(out, "{} of {} units were run again; {refuted} differ from what was signed", found.units.len(), found.of);
    for unit in found.refuted().take(16) {
        if let Outcome::Differs { signed, found } = &unit.outcome {
            let _ = writeln!(out, "  {}:{}: {} failed now, {} as signed", unit.section, unit.first, found.failed, signed.failed);
            let _ = writeln!(out, "    bytes {} now, {} as signed", found.actual, signed.actual);
        }
    }
    if refuted == 0 {
        let _ = writeln!(out, "{}", bound.sentence("units"));
    }
    print(&out);
}

/// Why nothing was audited, and whose turn it is.
fn audit_failure(error: AuditError) -> Failure {
    match error {
        AuditError::Ledger(error) => report::ledger(error),
        AuditError::OtherRun(_) => Failure::Data(error.to_string()),
        AuditError::NoRandomness(_) => Failure::NoVerdict(error.to_string()),
    }
}

/// What went wrong with a key, and whose turn it is.
fn key_failure(error: KeyError) -> Failure {
    match error {
        KeyError::Unreadable(..) | KeyError::Unwritable(_) => Failure::Usage(error.to_string()),
        KeyError::Malformed(..) => Failure::Data(error.to_string()),
        KeyError::NoRandomness(_) => Failure::NoVerdict(error.to_string()),
    }
}
