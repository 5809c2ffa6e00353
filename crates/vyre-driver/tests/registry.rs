//! Finding a backend: the order, what is opened, and why one does not fit.

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::segments::program;
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::{
    BackendRegistration, DeviceListing, Devices, acquire, acquire_preferred, acquire_preferred_where, registered_backends,
    registered_devices,
};
use vyre_driver::route::{misfits, route};
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::ir::{AtomicOp, BinaryOp, OpId, Program, SubgroupOp, TernaryOp, UnaryOp};

/// A backend that lacks what it is told to lack.
#[derive(Clone)]
struct Limited {
    id: &'static str,
    ops: HashSet<OpId>,
    subgroups: bool,
    f16: bool,
    bf16: bool,
    f64: bool,
    grid_sync: bool,
    split: bool,
    workgroup: [u32; 3],
    invocations: u32,
    groups: u32,
    bytes: u64,
}

impl Limited {
    fn new(id: &'static str) -> Self {
        Limited {
            id,
            ops: OpId::all().collect(),
            subgroups: true,
            f16: true,
            bf16: true,
            f64: true,
            grid_sync: false,
            split: true,
            workgroup: [1024; 3],
            invocations: 1024,
            groups: u32::MAX,
            bytes: u64::MAX,
        }
    }
}

impl Sealed for Limited {}

impl VyreBackend for Limited {
    fn id(&self) -> &'static str {
        self.id
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(vec![self.id.into()])
    }

    fn supported_ops(&self) -> &HashSet<OpId> {
        &self.ops
    }

    fn supports_subgroup_ops(&self) -> bool {
        self.subgroups
    }

    fn supports_f16(&self) -> bool {
        self.f16
    }

    fn supports_bf16(&self) -> bool {
        self.bf16
    }

    fn supports_f64(&self) -> bool {
        self.f64
    }

    fn supports_grid_sync(&self) -> bool {
        self.grid_sync
    }

    fn allows_host_grid_sync_split(&self) -> bool {
        self.split
    }

    fn max_workgroup_size(&self) -> [u32; 3] {
        self.workgroup
    }

    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        self.groups
    }

    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        self.invocations
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.bytes
    }
}

static OPENED: AtomicU64 = AtomicU64::new(0);

/// One test at a time looks at what is opened.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

inventory::submit! {
    BackendRegistration { id: "last", precedence: 30, about: "fits", devices: Devices::One(|| Ok(Box::new(Limited::new("last")))) }
}

inventory::submit! {
    BackendRegistration {
        id: "broken",
        precedence: 10,
        about: "does not open",
        devices: Devices::One(|| {
            OPENED.fetch_add(1, Ordering::Relaxed);
            Err(BackendError::DeviceLost { reason: "no driver".into() })
        }),
    }
}

inventory::submit! {
    BackendRegistration {
        id: "small",
        precedence: 20,
        about: "has no f64",
        devices: Devices::One(|| Ok(Box::new(Limited { f64: false, workgroup: [8; 3], ..Limited::new("small") }))),
    }
}

inventory::submit! {
    BackendRegistration { id: "also last", precedence: 30, about: "fits", devices: Devices::One(|| Ok(Box::new(Limited::new("also last")))) }
}

#[test]
fn backends_are_found_in_their_order_and_opened_only_when_asked_for() {
    let _alone = alone();
    let before = OPENED.load(Ordering::Relaxed);
    let ids: Vec<&str> = registered_backends().iter().map(|registration| registration.id).collect();
    assert_eq!(ids, ["broken", "small", "also last", "last", "pair"]);
    let devices: Vec<String> = registered_devices().into_iter().map(|(_, device)| device.id).collect();
    assert_eq!(devices, ["broken", "small", "also last", "last", "pair:fast", "pair:0"]);
    assert_eq!(OPENED.load(Ordering::Relaxed), before, "listing opens nothing");
    assert_eq!(acquire("last").unwrap().id(), "last");
    assert_eq!(OPENED.load(Ordering::Relaxed), before, "only what is asked for is opened");
    assert!(matches!(acquire("broken").map(drop), Err(BackendError::DeviceLost { .. })));
    assert_eq!(acquire_preferred().unwrap().id(), "small", "what does not open is passed over");
    assert_eq!(
        acquire_preferred_where(|backend| if backend.supports_f64() { Ok(()) } else { Err("old".into()) }).unwrap().id(),
        "also last"
    );
    let none = acquire_preferred_where(|_| Err("not wanted".into())).map(drop);
    let Err(BackendError::NoBackend { passed_over }) = none else { panic!("{none:?}") };
    assert_eq!(passed_over.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), devices);
    assert!(passed_over[0].1.contains("no driver") && passed_over[1].1 == "not wanted", "{passed_over:?}");
    for unknown in ["", "Last", "last ", "cuda"] {
        let known = devices.clone();
        assert_eq!(acquire(unknown).map(drop), Err(BackendError::UnknownBackend { id: unknown.into(), known }));
    }
}

/// The devices of `pair` that were opened.
static OPENED_OF_PAIR: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LISTED: AtomicU64 = AtomicU64::new(0);

inventory::submit! {
    BackendRegistration {
        id: "pair",
        precedence: 40,
        about: "two devices",
        devices: Devices::Found {
            list: || {
                LISTED.fetch_add(1, Ordering::Relaxed);
                ["pair:fast", "pair:0"].map(|id| DeviceListing { id: id.into(), name: format!("the {id}") }).into()
            },
            open: |id| {
                OPENED_OF_PAIR.lock().unwrap().push(id.into());
                match id {
                    "pair:fast" => Ok(Box::new(Limited::new("pair:fast"))),
                    "pair:0" => Ok(Box::new(Limited::new("pair:0"))),
                    _ => Err(BackendError::new(format!("pair has no {id}"))),
                }
            },
        },
    }
}

#[test]
fn devices_of_one_backend_are_listed_without_opening_them_and_its_name_means_the_first() {
    let _alone = alone();
    let opened = || std::mem::take(&mut *OPENED_OF_PAIR.lock().unwrap());
    opened();
    let pair = registered_backends().into_iter().find(|registration| registration.id == "pair").unwrap();
    let names: Vec<(String, String)> = pair.list().into_iter().map(|device| (device.id, device.name)).collect();
    let expected = ["pair:fast", "pair:0"].map(|id| (id.to_string(), format!("the {id}")));
    assert_eq!(names, expected);
    let all: Vec<(&str, String)> = registered_devices().into_iter().map(|(of, device)| (of.id, device.id)).collect();
    assert_eq!(all.last(), Some(&("pair", "pair:0".to_string())));
    assert_eq!(all.len(), 6);
    assert_eq!(opened(), [""; 0], "listing opens nothing");
    assert_eq!(acquire("pair").unwrap().id(), "pair:fast");
    assert_eq!(acquire("pair:0").unwrap().id(), "pair:0");
    assert_eq!(opened(), ["pair:fast", "pair:0"], "one at a time, and only what was asked for");
    assert_eq!(acquire("pair:1").unwrap().id(), "pair:0", "by its place, which no other has for its name");
    assert_eq!(opened(), ["pair:0"]);
    let listed = LISTED.load(Ordering::Relaxed);
    assert_eq!(acquire("last").unwrap().id(), "last");
    assert_eq!(LISTED.load(Ordering::Relaxed), listed, "others are not asked what they find");
    for unknown in ["pair:", "pair:2", "pairs", "pair:fast:0", ":0"] {
        let Err(BackendError::UnknownBackend { id, known }) = acquire(unknown).map(drop) else { panic!("{unknown}") };
        assert_eq!((id.as_str(), known.len()), (unknown, 6));
        assert!(known.contains(&"pair:0".to_string()) && !known.contains(&"pair".to_string()), "{known:?}");
    }
    assert_eq!(opened(), [""; 0]);
}

#[test]
fn a_route_takes_the_first_that_fits_and_says_why_others_do_not() {
    let _alone = alone();
    let wide = program("program p {\n workgroup 16\n buffer out: output f64[1] @0\n out[0] = 1.0d\n}");
    let config = DispatchConfig::default();
    let chosen = route(&wide, &config).unwrap();
    assert_eq!(chosen.backend.id(), "also last");
    let told: Vec<String> = chosen.tried.iter().map(ToString::to_string).collect();
    assert!(told[0].starts_with("broken: the device is lost: no driver"), "{told:?}");
    assert_eq!(
        told[1..],
        ["small: it has no f64; its workgroups have at most 8 invocations along x, and this program's 16", "also last: fits"]
    );
    let narrow = program("program p {\n workgroup 8\n buffer out: output u32[1] @0\n out[0] = 1\n}");
    assert_eq!(route(&narrow, &config).unwrap().backend.id(), "small");
    // Constants are put in first: they can decide.
    let sized = program("program p {\n workgroup n\n const n: u32 = 8\n buffer out: output u32[1] @0\n out[0] = 1\n}");
    assert_eq!(route(&sized, &config).unwrap().backend.id(), "small");
    let mut large = DispatchConfig::default();
    large.specialization.insert("n", SpecValue::U32(16));
    assert_eq!(route(&sized, &large).unwrap().backend.id(), "also last");
    // What is wrong with the program is no fault of backends.
    large.specialization.insert("m", SpecValue::U32(16));
    assert!(matches!(route(&sized, &large).map(drop), Err(BackendError::Rejected(_))));
    let invalid =
        program("program p {\n workgroup 8\n buffer out: output u32[1] @0\n out[0] = 1\n}").edit(|parts| parts.buffers.clear());
    assert!(matches!(route(&invalid, &config).map(drop), Err(BackendError::Rejected(_))));
}

#[test]
fn every_limit_leads_to_a_reason() {
    let full = || Limited::new("full");
    let config = DispatchConfig::default();
    let reasons = |backend: &Limited, text: &str, config: &DispatchConfig| {
        let p = program(text);
        assert_eq!(misfits(&full(), &p, &DispatchConfig::default()), [""; 0], "{text}");
        misfits(backend, &p, config)
    };
    let with = |buffers: &str, body: &str| format!("program p {{\n workgroup 4\n subgroup 4\n {buffers}\n {body}\n}}");
    let out = "buffer out: output u32[16] @0";
    let one = |backend: Limited, text: &str, config: &DispatchConfig, word: &str| {
        let found = reasons(&backend, text, config);
        assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
    };
    // Capabilities.
    one(
        Limited { subgroups: false, ..full() },
        &with(out, "let s = subgroup.add(1)\n out[0] = s"),
        &config,
        "no subgroup operations",
    );
    one(Limited { subgroups: false, ..full() }, &with(out, "out[0] = subgroup.lane"), &config, "no subgroup operations");
    one(Limited { f64: false, ..full() }, &with(out, "out[0] = u32(f64(gid.x) * 2.0d)"), &config, "no f64");
    one(Limited { f64: false, ..full() }, &with("buffer a: read f64[1] @0", ""), &config, "no f64");
    one(Limited { f16: false, ..full() }, &with("buffer a: read f16[1] @0", ""), &config, "no f16");
    one(Limited { bf16: false, ..full() }, &with("buffer a: output bf16[1] @0", "a[0] = 1.0"), &config, "no bf16");
    one(Limited { split: false, ..full() }, &with(out, "barrier.grid"), &config, "no grid barriers");
    assert_eq!(reasons(&Limited { split: false, grid_sync: true, ..full() }, &with(out, "barrier.grid"), &config), [""; 0]);
    // A subgroup of another size than the device's is emulated, and what no program can ask for is no reason.
    assert_eq!(reasons(&full(), &with(out, "out[0] = subgroup.size"), &config), [""; 0]);
    // Ops of every family.
    let lacking = |op: OpId| {
        let mut backend = full();
        assert!(backend.ops.remove(&op));
        backend
    };
    one(lacking(OpId::Unary(UnaryOp::Popcount)), &with(out, "out[0] = popcount(gid.x)"), &config, "it has no popcount");
    one(lacking(OpId::Binary(BinaryOp::Rotl)), &with(out, "out[0] = rotl(gid.x, 3)"), &config, "it has no rotl");
    one(
        lacking(OpId::Ternary(TernaryOp::Fma)),
        &with(out, "out[0] = bitcast<u32>(fma(1.0, 2.0, 3.0))"),
        &config,
        "it has no fma",
    );
    one(lacking(OpId::Atomic(AtomicOp::Max)), &with(out, "atomic.max(out, 0, 1)"), &config, "it has no max");
    one(
        lacking(OpId::Subgroup(SubgroupOp::Ballot)),
        &with(out, "let b = subgroup.ballot(true)\n out[0] = b"),
        &config,
        "it has no ballot",
    );
    // Sizes of workgroups, declared and overridden.
    let plain = "program p {\n workgroup 4 2 8\n buffer out: output u32[64] @0\n out[gid.x] = 1\n}";
    one(Limited { invocations: 63, ..full() }, plain, &config, "at most 63 invocations, and this program's have 64");
    for (axis, name, extent) in [(0, "x", 4), (1, "y", 2), (2, "z", 8)] {
        let mut backend = full();
        backend.workgroup[axis] = extent - 1;
        one(backend.clone(), plain, &config, &format!("along {name}, and this program's {extent}"));
        backend.workgroup[axis] = extent;
        assert_eq!(reasons(&backend, plain, &config), [""; 0]);
    }
    let overridden = DispatchConfig { workgroup_override: Some([8, 2, 8]), ..DispatchConfig::default() };
    one(Limited { workgroup: [7, 1024, 1024], ..full() }, plain, &overridden, "along x, and this program's 8");
    one(Limited { invocations: 127, ..full() }, plain, &overridden, "this program's have 128");
    // Grids: asked for, worked out from lengths, and of workgroups of another size.
    let groups = |groups: u32| Limited { groups, ..full() };
    let gridded =
        |grid, workgroup_override| DispatchConfig { grid_override: Some(grid), workgroup_override, ..Default::default() };
    for (axis, name) in ["x", "y", "z"].iter().enumerate() {
        let mut grid = [1; 3];
        grid[axis] = 100;
        one(groups(99), plain, &gridded(grid, None), &format!("along {name}, and this dispatch 100"));
        assert_eq!(reasons(&groups(100), plain, &gridded(grid, None)), [""; 0]);
    }
    one(groups(99), plain, &gridded([200, 1, 1], Some([8, 2, 8])), "along x, and this dispatch 100");
    assert_eq!(reasons(&groups(100), plain, &gridded([200, 1, 1], Some([8, 2, 8]))), [""; 0], "the size is twice as large");
    let line = "program p {\n workgroup 4\n buffer a: read u32 @1\n buffer out: output u32[401] @0\n out[gid.x] = a[0]\n}";
    one(groups(100), line, &config, "along x, and this dispatch 101");
    assert_eq!(reasons(&groups(101), line, &config), [""; 0]);
    assert_eq!(reasons(&groups(1), line, &gridded([1, 1, 1], None)), [""; 0]);
    let open = &line.replace("[401]", "");
    assert_eq!(reasons(&groups(100), open, &config), [""; 0], "only the inputs know");
    let asked = |count| DispatchConfig { output_counts: [("out".to_string(), count)].into(), ..DispatchConfig::default() };
    one(groups(100), open, &asked(401), "along x, and this dispatch 101");
    assert_eq!(reasons(&groups(100), open, &asked(400)), [""; 0]);
    // Bytes of buffers: every kind that is bound, not workgroup memory.
    let bytes = |bytes: u64| Limited { bytes, ..full() };
    for access in ["read", "read_write", "output", "uniform"] {
        let text = format!("program p {{\n workgroup 1\n buffer tile: workgroup u32[100]\n buffer b: {access} u16[33] @0\n}}");
        one(bytes(65), &text, &config, "at most 65 bytes, and `b` has 66");
        assert_eq!(reasons(&bytes(66), &text, &config), [""; 0]);
    }
    one(bytes(2), "program p {\n workgroup 1\n buffer b: read i4[5] @0\n}", &config, "`b` has 3");
    one(bytes(1 << 20), open, &asked(1 << 20), "`out` has 4194304");
    // Several at once.
    let several = Limited { f64: false, invocations: 1, groups: 1, bytes: 0, ..full() };
    assert_eq!(reasons(&several, &with("buffer a: output f64[5] @0", ""), &config).len(), 4);
}
