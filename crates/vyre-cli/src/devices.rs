//! `vyre devices`: which backends there are, and what each can do.

use crate::{Failure, print};
use serde_json::{Value, json};
use std::fmt::Write;
use vyre::VyreBackend;
use vyre::backend::registry::{BackendRegistration, DeviceListing, registered_devices};

/// List the backends, with their devices, limits and capabilities.
#[derive(clap::Args)]
#[command(after_help = "\
Backends are listed in the order in which `vyre run --backend auto` tries them. One that cannot be opened says why.

Examples:
  vyre devices
  vyre devices --json
  vyre devices --probe
  vyre devices wgpu:llvmpipe --probe --full")]
pub struct Args {
    /// Only these, by id; a backend's name means all of its devices
    #[arg(value_name = "DEVICE")]
    pub only: Vec<String>,
    /// Find out which float instructions each device computes exactly, and what every float op costs there
    #[arg(long)]
    pub probe: bool,
    /// Probe with many more operands, and also every op computed in integers
    #[arg(long, requires = "probe")]
    pub full: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// The devices that were asked for.
fn chosen(only: &[String]) -> Result<Vec<(&'static BackendRegistration, DeviceListing)>, Failure> {
    let all = registered_devices();
    let means =
        |name: &String, registration: &BackendRegistration, device: &DeviceListing| *name == device.id || name == registration.id;
    if let Some(unknown) = only.iter().find(|name| !all.iter().any(|(registration, device)| means(name, registration, device))) {
        let known: Vec<&str> = all.iter().map(|(_, device)| device.id.as_str()).collect();
        return Err(Failure::Usage(format!("there is no device `{unknown}`, only {}", known.join(", "))));
    }
    let is_chosen = |(registration, device): &(&'static BackendRegistration, DeviceListing)| {
        only.is_empty() || only.iter().any(|name| means(name, registration, device))
    };
    Ok(all.into_iter().filter(is_chosen).collect())
}

pub fn devices(args: &Args) -> Result<(), Failure> {
    let all = chosen(&args.only)?;
    if args.probe {
        return probe(args, &all);
    }
    if args.json {
        let listed: Vec<Value> = all.iter().map(|(registration, device)| as_json(registration, device)).collect();
        print(&format!("{}\n", json!({ "backends": listed })));
        return Ok(());
    }
    let mut rows = vec![["id", "device", "workgroup", "grid, an axis", "buffer", "capabilities"].map(String::from)];
    let mut closed = String::new();
    for (registration, device) in all {
        match registration.open(&device.id) {
            Ok(backend) => rows.push(row(&*backend)),
            Err(error) => {
                let _ = writeln!(closed, "{} cannot be opened: {}", device.id, error.message());
            }
        }
    }
    let widths: [usize; 6] = std::array::from_fn(|n| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    print(&(out + &closed));
    Ok(())
}

/// What is proven about the floats of devices. Those that compute with the floats of this processor have nothing to find out: IEEE 754 is
/// what it implements, and tests compare every op.
fn probe(args: &Args, devices: &[(&'static BackendRegistration, DeviceListing)]) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for (registration, device) in devices {
        match probed(registration, &device.id, args) {
            Some(Ok(json)) => listed.push(json),
            Some(Err(error)) if args.json => listed.push(json!({ "id": device.id, "error": error.message() })),
            Some(Err(error)) => print(&format!("{} cannot be probed: {}\n", device.id, error.message())),
            None if args.json => listed.push(json!({ "id": device.id, "probes": null })),
            None => print(&format!("{}: computes with the floats of this processor, which need no probes\n", device.id)),
        }
    }
    if args.json {
        print(&format!("{}\n", json!({ "devices": listed })));
    }
    Ok(())
}

/// Probes a device; `None` if it has no probes.
#[cfg(not(feature = "wgpu"))]
fn probed(_: &BackendRegistration, _: &str, _: &Args) -> Option<Result<Value, vyre::BackendError>> {
    None
}

#[cfg(feature = "wgpu")]
use floats::probed;

#[cfg(feature = "wgpu")]
mod floats {
    //! Probes of devices behind wgpu.

    use super::{Args, BackendRegistration, Value, Write, json, print};
    use std::io::IsTerminal;
    use vyre::emit::floats::cost::{Cost, Form};
    use vyre::emit::floats::probe::{Depth, Finding, Wrong};
    use vyre::emit::floats::{FloatOp, Rung};
    use vyre::spec::FloatMode;
    use vyre::wgpu::Probed;

    /// Findings that are printed in full.
    const SHOWN: usize = 8;

    pub fn probed(registration: &BackendRegistration, id: &str, args: &Args) -> Option<Result<Value, vyre::BackendError>> {
        if registration.id != vyre::wgpu::ID {
            return None;
        }
        let depth = if args.full { Depth::Full } else { Depth::Short };
        let is_watched = std::io::stderr().is_terminal();
        let tell = |what: &str| {
            if is_watched {
                eprint!("\r\x1b[2K{id}: {what}");
            }
        };
        let probed = vyre::wgpu::probe(id, depth, tell);
        if is_watched {
            eprint!("\r\x1b[2K");
        }
        Some(probed.map(|probed| {
            if !args.json {
                print(&as_text(&probed));
            }
            as_json(&probed, depth)
        }))
    }

    /// The rung that kernels use, by mode.
    fn rung(probed: &Probed, op: FloatOp, mode: FloatMode) -> Rung {
        op.ladder().map_or(Rung::Integer, |ladder| probed.ladder.profile.rung(mode, ladder))
    }

    fn cost(probed: &Probed, op: FloatOp, is_form: impl Fn(Form) -> bool) -> Option<&Cost> {
        probed.costs.iter().find(|cost| cost.op == op && is_form(cost.form))
    }

    fn plain(form: Form) -> bool {
        matches!(form, Form::Plain)
    }

    fn in_mode(mode: FloatMode) -> impl Fn(Form) -> bool {
        move |form| matches!(form, Form::Exact(of, _) if of == mode)
    }

    fn as_text(probed: &Probed) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}: {}", probed.id, probed.name);
        let (cases, took) = (probed.ladder.cases, probed.took.as_secs_f64());
        let _ = writeln!(
            out,
            "  every expression on {cases} operands, in {took:.2} s; ns are those of the whole device for one op\n"
        );
        let _ = writeln!(out, "  {:<12} {:>9}  {:<26} {:<26}", "op", "WGSL, ns", "floats ieee", "floats canonical");
        for op in FloatOp::all() {
            let measured = cost(probed, op, plain);
            let cell = |mode: FloatMode| {
                let Some(cost) = cost(probed, op, in_mode(mode)) else { return "not measured".to_string() };
                let times = measured.filter(|plain| plain.nanoseconds > 0.0).map(|plain| cost.nanoseconds / plain.nanoseconds);
                let times = times.map_or(String::new(), |times| format!(" {times:.1} x"));
                format!("{:<9} {:.3}{times}", rung(probed, op, mode).name(), cost.nanoseconds)
            };
            let wgsl = measured.map_or(String::new(), |plain| format!("{:.3}", plain.nanoseconds));
            let [ieee, canonical] = [FloatMode::Ieee, FloatMode::Canonical].map(cell);
            let _ = writeln!(out, "  {:<12} {wgsl:>9}  {ieee:<26} {canonical}", op.to_string());
        }
        let findings = &probed.ladder.findings;
        if !findings.is_empty() {
            let _ = writeln!(out, "\n  not proven, {} expressions:", findings.len());
            for finding in findings.iter().take(SHOWN) {
                let _ = writeln!(out, "    {finding}");
            }
            if findings.len() > SHOWN {
                let _ = writeln!(out, "    and {} more: --json has all", findings.len() - SHOWN);
            }
        }
        for (op, mode, wrong) in &probed.wrong {
            let _ = writeln!(out, "  {op} in {mode} is wrong in integers too, so this device must not be used for it: {wrong}");
        }
        out.push('\n');
        out
    }

    fn as_json(probed: &Probed, depth: Depth) -> Value {
        let wrong = |wrong: &Wrong| match wrong {
            Wrong::Differs { operands, found, expected, wrong } => {
                json!({ "operands": operands, "found": found, "expected": expected, "cases": wrong })
            }
            Wrong::Missing(why) => json!({ "missing": why }),
        };
        let finding = |finding: &Finding| {
            json!({
                "expression": finding.expression,
                "floats": finding.mode.to_string(),
                "rung": finding.rung.name(),
                "wrong": wrong(&finding.what),
            })
        };
        let op = |op: FloatOp| {
            let mode = |mode: FloatMode| json!({ "rung": rung(probed, op, mode).name(), "ns": cost(probed, op, in_mode(mode)).map(|cost| cost.nanoseconds) });
            json!({
                "op": op.to_string(),
                "wgsl_ns": cost(probed, op, plain).map(|cost| cost.nanoseconds),
                "ieee": mode(FloatMode::Ieee),
                "canonical": mode(FloatMode::Canonical),
            })
        };
        json!({
            "id": probed.id,
            "device": probed.name,
            "full": depth == Depth::Full,
            "cases": probed.ladder.cases,
            "seconds": probed.took.as_secs_f64(),
            "ops": FloatOp::all().map(op).collect::<Vec<_>>(),
            "not_proven": probed.ladder.findings.iter().map(finding).collect::<Vec<_>>(),
            "wrong_on_integers": probed.wrong.iter().map(|(op, mode, what)| {
                json!({ "op": op.to_string(), "floats": mode.to_string(), "wrong": wrong(what) })
            }).collect::<Vec<_>>(),
        })
    }
}

/// What a backend has: limits are the most that it takes.
fn row(backend: &dyn VyreBackend) -> [String; 6] {
    let [x, y, z] = backend.max_workgroup_size();
    let has: Vec<&str> = capabilities(backend).into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect();
    [
        backend.id().into(),
        format!("{} {}", backend.device_name(), backend.version()),
        format!("{} of {x} x {y} x {z}", backend.max_compute_invocations_per_workgroup()),
        backend.max_compute_workgroups_per_dimension().to_string(),
        format!("{} bytes", backend.max_storage_buffer_bytes()),
        has.join(", "),
    ]
}

fn capabilities(backend: &dyn VyreBackend) -> [(&'static str, bool); 10] {
    [
        ("subgroups", backend.supports_subgroup_ops()),
        ("f16", backend.supports_f16()),
        ("bf16", backend.supports_bf16()),
        ("f64", backend.supports_f64()),
        ("grid barriers", backend.supports_grid_sync()),
        ("grid barriers by splitting", !backend.supports_grid_sync() && backend.allows_host_grid_sync_split()),
        ("asynchronous", backend.supports_async_compute()),
        ("indirect dispatch", backend.supports_indirect_dispatch()),
        ("persistent workgroups", backend.supports_persistent_thread_dispatch()),
        ("distributed", backend.is_distributed()),
    ]
}

fn as_json(registration: &BackendRegistration, device: &DeviceListing) -> Value {
    let mut object = json!({ "id": device.id, "about": registration.about, "precedence": registration.precedence });
    match registration.open(&device.id) {
        Ok(backend) => {
            object["device"] = json!(backend.device_name());
            object["version"] = json!(backend.version());
            object["limits"] = json!({
                "workgroup_size": backend.max_workgroup_size(),
                "workgroup_invocations": backend.max_compute_invocations_per_workgroup(),
                "workgroups_per_axis": backend.max_compute_workgroups_per_dimension(),
                "buffer_bytes": backend.max_storage_buffer_bytes(),
                "subgroup_size": backend.subgroup_size(),
            });
            object["capabilities"] = json!(capabilities(&*backend).into_iter().collect::<std::collections::BTreeMap<_, _>>());
        }
        Err(error) => object["error"] = json!(error.message()),
    }
    object
}
