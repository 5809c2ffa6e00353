//! The adapters of this system. Finding them opens none.

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use vyre_driver::BackendError;

/// An adapter, and what it is called here.
pub(crate) struct Found {
    /// `wgpu:llvmpipe`.
    pub id: &'static str,
    pub adapter: wgpu::Adapter,
    pub info: wgpu::AdapterInfo,
}

impl Found {
    /// The device, for people.
    pub fn name(&self) -> String {
        format!("{} ({:?})", self.info.name, self.info.backend)
    }

    /// What tells it and its driver from others.
    pub fn fingerprint(&self) -> String {
        let wgpu::AdapterInfo { name, vendor, device, driver, driver_info, backend, .. } = &self.info;
        let mut fingerprint = format!("{backend:?} {vendor:x}:{device:x} {name} {driver} {driver_info}");
        // Drivers in software compile for the processor that they run on.
        if self.info.device_type == wgpu::DeviceType::Cpu {
            fingerprint.push_str(&format!(" {}", std::env::consts::ARCH));
            #[cfg(target_arch = "x86_64")]
            for (name, is_there) in [
                ("avx", is_x86_feature_detected!("avx")),
                ("avx2", is_x86_feature_detected!("avx2")),
                ("fma", is_x86_feature_detected!("fma")),
                ("avx512f", is_x86_feature_detected!("avx512f")),
            ] {
                fingerprint.push_str(if is_there { " " } else { " no " });
                fingerprint.push_str(name);
            }
        }
        fingerprint
    }

    /// Opens it.
    pub fn request(&self, wanted: wgpu::Features) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
        now(self.adapter.request_device(&wgpu::DeviceDescriptor {
            label: None,
            required_features: self.adapter.features() & wanted,
            required_limits: self.adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        }))
    }
}

/// All of them, in an order that stays.
pub(crate) fn found() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::PRIMARY | wgpu::Backends::GL;
        // Software adapters are welcome. What they are wrong about is looked for when they are opened.
        descriptor.flags = wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER;
        let instance = wgpu::Instance::new(descriptor);
        let mut ids: Vec<String> = Vec::new();
        let adapters = now(instance.enumerate_adapters(wgpu::Backends::all()));
        let found = adapters.into_iter().map(|adapter| {
            let info = adapter.get_info();
            let stem = id(&info);
            let mut id = stem.clone();
            let mut number = 1;
            while ids.contains(&id) {
                number += 1;
                id = format!("{stem}-{number}");
            }
            ids.push(id.clone());
            Found { id: String::leak(id), adapter, info }
        });
        found.collect()
    })
}

/// The adapter with this id.
pub(crate) fn find(id: &str) -> Result<&'static Found, BackendError> {
    let all = found();
    all.iter().find(|found| found.id == id).ok_or_else(|| {
        let known = all.iter().map(|found| found.id.to_string()).collect();
        BackendError::UnknownBackend { id: id.into(), known }
    })
}

/// The id of an adapter, if no other has it: a software adapter's by the first word of its name.
fn id(info: &wgpu::AdapterInfo) -> String {
    let name = info.name.split('(').next().unwrap_or_default().to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words = if info.device_type == wgpu::DeviceType::Cpu { &words[..words.len().min(1)] } else { &words[..] };
    let name = if words.is_empty() { "adapter".into() } else { words.join("-") };
    match info.backend {
        wgpu::Backend::Gl => format!("{}:{name}-gl", crate::ID),
        wgpu::Backend::Noop
        | wgpu::Backend::Vulkan
        | wgpu::Backend::Metal
        | wgpu::Backend::Dx12
        | wgpu::Backend::BrowserWebGpu => format!("{}:{name}", crate::ID),
    }
}

/// What wgpu gives as a future and has at once, on every system but the web.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        std::thread::yield_now();
    }
}
