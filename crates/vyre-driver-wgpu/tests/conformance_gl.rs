//! `wgpu:llvmpipe-gl` under the kit for backend authors, where OpenGL comes up.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use vyre_driver::backend::registry::{acquire, registered_devices};
use vyre_driver::{BackendError, VyreBackend};
use vyre_driver_wgpu as _;

const ID: &str = "wgpu:llvmpipe-gl";

fn open() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire(ID)
}

fn main() -> ExitCode {
    if !registered_devices().iter().any(|(_, device)| device.id == ID) {
        eprintln!("there is no `{ID}` here: OpenGL does not come up");
        return ExitCode::SUCCESS;
    }
    let code = vyre_conform::kit::main(open);
    // EGL ends with the process, and a queue that is still closing its device then has nothing to close it with.
    let began = Instant::now();
    while queues() > 0 && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    code
}

/// Threads of devices that are still there.
fn queues() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "vyre-queue").count()
}
