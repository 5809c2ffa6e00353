//! What callers of other builds and other backends rely on: keys, reports and the forms of compiling.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use support::device::{Plain, host};
use support::segments::program;
use vyre_driver::device::backend;
use vyre_driver::device::inject::{FaultPlan, FaultyDevice, Method};
use vyre_driver::launch::program_vsa_fingerprint_words;
use vyre_driver::pipeline::{
    PipelineCacheAudit, PipelineCacheAuditReport, compile, compile_owned, compile_owned_with_telemetry, compile_shared,
    compile_shared_with_telemetry, compile_with_telemetry, prewarm, prewarm_owned, prewarm_shared,
};
use vyre_driver::specialization::{
    SpecCacheKey, SpecMap, SpecValue, versioned_specialization_artifact_key, vsa_specialization_key,
};
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::ir::{DataType, Program};

const SCALE: &str = "program scale {
  workgroup 2
  const k: u32 = 3
  buffer a: read_write u32[2] @0
  a[gid.x] = a[gid.x] * k
}";

/// A device whose calls are counted, and the backend over it.
fn counted() -> (FaultyDevice, Arc<dyn VyreBackend>) {
    let device = FaultyDevice::new(Arc::new(host()), FaultPlan::none());
    (device.clone(), Arc::from(backend(Arc::new(device))))
}

fn constants(k: u32) -> DispatchConfig {
    let mut config = DispatchConfig::default();
    config.specialization.insert("k", SpecValue::U32(k));
    config
}

#[test]
fn every_form_of_compiling_gives_the_same_pipeline_and_compiles_once() {
    let p = program(SCALE);
    let shared = Arc::new(p.clone());
    let config = constants(5);
    let (device, backend) = counted();
    let pipelines = [
        compile(backend.clone(), &p, &config).unwrap(),
        compile_owned(backend.clone(), p.clone(), &config).unwrap(),
        compile_shared(backend.clone(), &shared, &config).unwrap(),
        compile_with_telemetry(backend.clone(), &p, &config).unwrap().pipeline,
        compile_owned_with_telemetry(backend.clone(), p.clone(), &config).unwrap().pipeline,
        compile_shared_with_telemetry(backend.clone(), &shared, &config).unwrap().pipeline,
    ];
    assert_eq!(Arc::strong_count(&shared), 1, "nobody keeps the caller's");
    assert_eq!(device.calls_of(Method::Compile), 1);
    for pipeline in &pipelines {
        assert_eq!(pipeline.id(), pipelines[0].id());
        let out = pipeline.dispatch_borrowed(&[&[1, 0, 0, 0, 2, 0, 0, 0]], &DispatchConfig::default());
        assert_eq!(out, Ok(vec![vec![5, 0, 0, 0, 10, 0, 0, 0]]));
    }
    // What is refused is refused by all of them, before the device is asked.
    let raw = Program::default();
    let shared = Arc::new(raw.clone());
    let refusals = [
        compile(backend.clone(), &raw, &config).map(drop),
        compile_owned(backend.clone(), raw.clone(), &config).map(drop),
        compile_shared(backend.clone(), &shared, &config).map(drop),
        compile_with_telemetry(backend.clone(), &raw, &config).map(drop),
        compile_owned_with_telemetry(backend.clone(), raw.clone(), &config).map(drop),
        compile_shared_with_telemetry(backend.clone(), &shared, &config).map(drop),
        prewarm(backend.clone(), &raw, &config).map(drop),
        prewarm_owned(backend.clone(), raw.clone(), &config).map(drop),
        prewarm_shared(backend.clone(), &shared, &config).map(drop),
    ];
    for refused in refusals {
        assert!(matches!(&refused, Err(BackendError::InvalidProgram { .. } | BackendError::Rejected(_))), "{refused:?}");
    }
    assert_eq!(device.calls_of(Method::Compile), 1);
}

#[test]
fn prewarming_compiles_and_runs_nothing_and_the_first_dispatch_finds_it() {
    let p = program(SCALE);
    let shared = Arc::new(p.clone());
    let (device, backend) = counted();
    let config = constants(7);
    let cold = prewarm(backend.clone(), &p, &config).unwrap();
    let warm = [
        prewarm(backend.clone(), &p, &config).unwrap(),
        prewarm_owned(backend.clone(), p.clone(), &config).unwrap(),
        prewarm_shared(backend.clone(), &shared, &config).unwrap(),
    ];
    assert_eq!((cold.cache_hit, device.calls_of(Method::Compile)), (Some(false), 1));
    assert_eq!(device.calls_of(Method::Run) + device.calls_of(Method::Submit), 0);
    for warm in warm {
        assert_eq!(warm.cache_hit, Some(true));
        assert_eq!((&warm.pipeline_id, &warm.manifest), (&cold.pipeline_id, &cold.manifest));
    }
    let build = compile_with_telemetry(backend.clone(), &p, &config).unwrap();
    assert_eq!((build.cache_hit, build.pipeline.id()), (Some(true), cold.pipeline_id.as_str()));
    let other = prewarm(backend, &p, &constants(8)).unwrap();
    assert_eq!(other.cache_hit, Some(false));
    assert_ne!(other.pipeline_id, cold.pipeline_id);
    // A backend without pipelines of its own has nothing to find.
    let plain = Arc::new(Plain::default());
    let report = prewarm(plain.clone(), &p, &config).unwrap();
    assert_eq!((report.cache_hit, plain.calls.load(std::sync::atomic::Ordering::Relaxed)), (None, 0));
}

#[test]
fn an_audit_counts_what_is_known_and_rounds_down() {
    let mut audit = PipelineCacheAudit::new();
    let report = |hits, misses, unknowns, hit_rate_bps, below_alarm_threshold| PipelineCacheAuditReport {
        hits,
        misses,
        unknowns,
        hit_rate_bps,
        below_alarm_threshold,
    };
    assert_eq!(audit.snapshot(10_000), report(0, 0, 0, None, false), "no data, so no alarm");
    audit.observe(None);
    assert_eq!(audit.snapshot(10_000), report(0, 0, 1, None, false));
    for hit in [true, true, false] {
        audit.observe(Some(hit));
    }
    assert_eq!(audit.snapshot(6_666), report(2, 1, 1, Some(6_666), false));
    assert_eq!(audit.snapshot(6_667), report(2, 1, 1, Some(6_666), true));
    assert_eq!(audit.snapshot(0), report(2, 1, 1, Some(6_666), false));
    // What builds say goes in as it is.
    let (_, backend) = counted();
    let mut audit = PipelineCacheAudit::new();
    for _ in 0..3 {
        audit.observe(compile_with_telemetry(backend.clone(), &program(SCALE), &DispatchConfig::default()).unwrap().cache_hit);
    }
    assert_eq!(audit.snapshot(0), report(2, 1, 0, Some(6_666), false));
}

#[test]
fn keys_of_modules_are_as_other_builds_make_them() {
    let map = |values: &[(&str, SpecValue)]| -> SpecMap {
        values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    };
    // FNV-1a over the name and the eight bytes of the value's hash.
    let fnv = |bytes: &[u8]| {
        bytes.iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
    };
    for (value, hash) in [
        (SpecValue::U32(7), 7u64 << 8),
        (SpecValue::I32(-1), 1 | 0xFFFF_FFFF << 8),
        (SpecValue::F32(1.5), 2 | u64::from(1.5f32.to_bits()) << 8),
        (SpecValue::Bool(true), 3 | 1 << 8),
        (SpecValue::DType(DataType::F16), 4 | 0x09 << 8),
    ] {
        assert_eq!(value.cache_hash(), hash, "{value:?}");
        let bytes = [b"k".as_slice(), &hash.to_le_bytes()].concat();
        let specs = map(&[("k", value)]);
        assert_eq!(specs.cache_hash(), fnv(&bytes));
        let key = SpecCacheKey::new(1, 2, [3, 4, 5], &specs);
        let expected = SpecCacheKey { shader_hash: 1, binding_sig: 2, workgroup_size: [3, 4, 5], spec_hash: fnv(&bytes) };
        assert_eq!(key, expected);
    }
    assert_eq!(SpecMap::new().cache_hash(), 0xCBF2_9CE4_8422_2325);
    let base = SpecCacheKey::new(1, 2, [3, 4, 5], &SpecMap::new());
    let others = [
        SpecCacheKey::new(9, 2, [3, 4, 5], &SpecMap::new()),
        SpecCacheKey::new(1, 9, [3, 4, 5], &SpecMap::new()),
        SpecCacheKey::new(1, 2, [3, 4, 9], &SpecMap::new()),
        SpecCacheKey::new(1, 2, [3, 4, 5], &map(&[("k", SpecValue::U32(0))])),
    ];
    let all: std::collections::HashSet<&SpecCacheKey> = others.iter().chain([&base]).collect();
    assert_eq!(all.len(), 5);
}

#[test]
fn constants_are_numbers_that_lose_nothing() {
    let specs: SpecMap = [
        ("u", SpecValue::U32(u32::MAX)),
        ("i", SpecValue::I32(i32::MIN)),
        ("f", SpecValue::F32(0.1)),
        ("t", SpecValue::Bool(true)),
        ("n", SpecValue::Bool(false)),
        ("d", SpecValue::DType(DataType::BF16)),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into_iter()
    .collect();
    let expected: HashMap<String, f64> = [
        ("u", 4_294_967_295.0),
        ("i", -2_147_483_648.0),
        ("f", f64::from(0.1f32)),
        ("t", 1.0),
        ("n", 0.0),
        ("d", f64::from(0x0A)),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    assert_eq!(specs.to_numeric_constants(), expected);
    assert!(SpecMap::new().to_numeric_constants().is_empty());
}

#[test]
fn a_specialized_programs_key_has_the_program_above_and_the_values_below() {
    let p = program(SCALE);
    let words = program_vsa_fingerprint_words(&p);
    let identity = u128::from(words[0]) | u128::from(words[1]) << 32;
    for spec_hash in [0, 1, u64::MAX] {
        assert_eq!(vsa_specialization_key(&p, spec_hash), identity << 64 | u128::from(spec_hash));
    }
    let other = program(&SCALE.replace("* k", "+ k"));
    assert_ne!(vsa_specialization_key(&other, 1) >> 64, identity);
}

#[test]
fn names_of_artifacts_have_the_bytes_of_their_format() {
    for (version, spec, fingerprint) in [(0, "", ""), (1, "ab", "c"), (1, "a", "bc"), (u32::MAX, "specé", "llvmpipe\0 18")] {
        let mut bytes = b"vyre-specialization-artifact-key-v1\0version\0".to_vec();
        bytes.extend_from_slice(&u32::to_le_bytes(version));
        bytes.extend_from_slice(b"\0spec\0");
        bytes.extend_from_slice(&(spec.len() as u64).to_le_bytes());
        bytes.extend_from_slice(spec.as_bytes());
        bytes.extend_from_slice(b"\0backend\0");
        bytes.extend_from_slice(&(fingerprint.len() as u64).to_le_bytes());
        bytes.extend_from_slice(fingerprint.as_bytes());
        let expected = blake3::hash(&bytes).to_hex().to_string();
        assert_eq!(versioned_specialization_artifact_key(version, spec, fingerprint), expected);
    }
}
