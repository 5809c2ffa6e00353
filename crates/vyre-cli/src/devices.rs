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
  vyre devices --json")]
pub struct Args {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn devices(args: &Args) -> Result<(), Failure> {
    let all = registered_devices();
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
