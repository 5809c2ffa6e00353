//! Pipelines as documents: what is written comes back, and what is not ours is refused by name.

mod support;

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::device::Plain;
use support::segments::program;
use vyre_driver::pipeline::{PipelineReproManifest, compile_with_telemetry};
use vyre_driver::specialization::SpecValue;
use vyre_driver::{DispatchConfig, VyreBackend};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_smith::generate::{Preset, dna, generate};

fn manifest(program: &Program, config: &DispatchConfig) -> PipelineReproManifest {
    let built = compile_with_telemetry(Arc::new(Plain::default()), program, config);
    built.unwrap_or_else(|error| panic!("{error}\n{program}")).manifest
}

/// A manifest that comes back as it was, and the program in it.
fn there_and_back(program: &Program, config: &DispatchConfig) -> Program {
    let manifest = manifest(program, config);
    let json = manifest.to_json().unwrap();
    let back = PipelineReproManifest::from_json(&json).unwrap_or_else(|error| panic!("{error}\n{json}"));
    assert_eq!(back, manifest, "{json}");
    assert_eq!(back.config, *config);
    assert_eq!(back.program().as_ref(), Ok(program), "{json}");
    // The same pipeline can be made of it.
    assert_eq!(self::manifest(&back.program().unwrap(), &back.config), manifest);
    back.program().unwrap()
}

const EVERY_KIND: &str = "program `every kind` {
  workgroup w
  const w: u32 = 1
  const u: u32 = 3
  const i: i32 = -3i
  const f: f32 = 0.5
  const b: bool = true
  const t: dtype = f32
  buffer a: read t @0
  buffer out: output f32 @1
  out[gid.x] = a[gid.x] * f + f32(u) + f32(i) + f32(u32(b))
}";

#[test]
fn every_field_comes_back_also_at_its_extremes() {
    let p = program(EVERY_KIND);
    let every = |change: &dyn Fn(&mut DispatchConfig)| {
        let mut config = DispatchConfig::default();
        change(&mut config);
        there_and_back(&p, &config);
    };
    every(&|_| {});
    every(&|config| config.grid_override = Some([u32::MAX, 0, 7]));
    every(&|config| config.output_counts = [("out".to_string(), u32::MAX), ("\"\\\u{0}é\n".to_string(), 0)].into());
    for limit in [0, u64::MAX, 1 << 53, (1 << 53) + 1] {
        every(&|config| config.max_output_bytes = Some(limit));
    }
    for limit in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1 << 40), Duration::MAX] {
        every(&|config| config.timeout = Some(limit));
    }
    for budget in [0, 255] {
        every(&|config| config.ulp_budget = Some(budget));
    }
    for flag in [false, true] {
        every(&|config| config.require_deterministic = Some(flag));
    }
    for text in ["", "\"}{\\", "\u{0}\u{1}\n\t\u{7f}", "\u{2028}\u{fffd}🦀", &"long ".repeat(10_000)] {
        every(&|config| config.profile = Some(text.into()));
        every(&|config| config.label = Some(text.into()));
    }
    for value in [0, 1, u32::MAX] {
        every(&|config| config.specialization.insert("u", SpecValue::U32(value)));
    }
    for value in [i32::MIN, -1, 0, i32::MAX] {
        every(&|config| config.specialization.insert("i", SpecValue::I32(value)));
    }
    for bits in [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007F_FFFF,
        0x7F7F_FFFF,
        0x7F80_0000,
        0xFF80_0000,
        0x7FC0_0000,
        0x7F80_0001,
        0xFFFF_FFFF,
    ] {
        every(&|config| config.specialization.insert("f", SpecValue::F32(f32::from_bits(bits))));
    }
    for value in [false, true] {
        every(&|config| config.specialization.insert("b", SpecValue::Bool(value)));
    }
    for data_type in [DataType::F16, DataType::BF16, DataType::F8E4M3, DataType::F8E5M2, DataType::FP4, DataType::NF4] {
        every(&|config| config.specialization.insert("t", SpecValue::DType(data_type.clone())));
    }
    let p = program("program p {\n workgroup 4\n buffer out: output u32 @0\n out[gid.x] = 1\n}");
    there_and_back(&p, &DispatchConfig { workgroup_override: Some([1, 2, 512]), ..DispatchConfig::default() });
}

#[test]
fn names_that_nobody_would_choose_come_back() {
    for name in ["", " ", "`", "\\", "\"", "let", "gid.x", "$taken", "a\nb", "\u{0}", "é🦀", "//", &"n".repeat(5000)] {
        let out = BufferDecl::output(name, 0, DataType::U32).with_count(1);
        let other = format!("{name}'");
        let nodes = vec![
            Node::let_bind(other.as_str(), Expr::u32(1)),
            Node::region(name, vec![Node::store(name, Expr::u32(0), Expr::var(other.as_str()))]),
        ];
        let p = Program::wrapped(vec![out], [1, 1, 1], nodes).with_name(name);
        there_and_back(&p, &DispatchConfig::default());
    }
}

#[test]
fn generated_programs_come_back_with_their_configs() {
    let mut specialized = 0;
    for number in 0..600 {
        let preset = Preset::ALL[number as usize % Preset::ALL.len()];
        let dna = dna(11, number);
        let case = generate(preset, &dna).case(&dna);
        if !case.program.is_wrapped() {
            continue;
        }
        let config = DispatchConfig {
            max_output_bytes: number.is_multiple_of(3).then_some(1 << 30),
            timeout: number.is_multiple_of(5).then(|| Duration::from_nanos(number.pow(5))),
            label: number.is_multiple_of(7).then(|| format!("{number}")),
            ..case.config.clone()
        };
        specialized += u32::from(!config.specialization.is_empty());
        let back = there_and_back(&case.program, &config);
        // It is the same pipeline: the same bytes, or the same failure.
        if number.is_multiple_of(10) {
            let inputs = case.input_slices();
            let backend = Plain::default();
            assert_eq!(
                backend.dispatch_borrowed(&back, &inputs, &config),
                backend.dispatch_borrowed(&case.program, &inputs, &config)
            );
        }
    }
    assert!(specialized > 20, "only {specialized} have values for constants");
}

#[test]
fn what_cannot_be_reproduced_is_refused_and_named() {
    let good: Value =
        serde_json::from_str(&manifest(&program(EVERY_KIND), &DispatchConfig::default()).to_json().unwrap()).unwrap();
    let changed = |path: &[&str], value: Option<Value>| {
        let mut document = good.clone();
        let (last, before) = path.split_last().unwrap();
        let object = before.iter().fold(&mut document, |value, name| &mut value[*name]);
        match value {
            None => drop(object.as_object_mut().unwrap().remove(*last)),
            Some(value) => object[*last] = value,
        }
        document.to_string()
    };
    let refused = |text: &str, what: &str| match PipelineReproManifest::from_json(text) {
        Ok(_) => panic!("{what} is taken"),
        Err(error) => assert!(error.message().contains(what), "{what}: {error}"),
    };
    PipelineReproManifest::from_json(&good.to_string()).unwrap();
    for text in ["", "{", "null", "[]", "7", "\"text\"", &"[".repeat(100_000), "{\"schema\": 1}"] {
        refused(text, "the manifest cannot be used");
    }
    for name in ["schema", "backend_id", "backend_version", "device_fingerprint", "pipeline_id", "program_digest", "program"] {
        refused(&changed(&[name], None), name);
        refused(&changed(&[name], Some(json!(7))), name);
    }
    refused(&changed(&["schema"], Some(json!("vyre-pipeline-99"))), "vyre-pipeline-99");
    refused(&changed(&["config"], None), "config");
    // A field of a later version, or one that is misspelt, would silently not be reproduced.
    refused(&changed(&["new"], Some(json!(1))), "`new`");
    refused(&changed(&["config", "gird"], Some(json!([1, 1, 1]))), "`config.gird`");
    for (name, bad) in [
        ("grid", json!([1, 1])),
        ("grid", json!([1, 1, -1])),
        ("grid", json!([1, 1, 4_294_967_296u64])),
        ("grid", json!("1,1,1")),
        ("workgroup", json!([1.5, 1, 1])),
        ("output_counts", json!({ "out": 4_294_967_296u64 })),
        ("output_counts", json!(null)),
        ("max_output_bytes", json!(-1)),
        ("max_output_bytes", json!(1e300)),
        ("ulp_budget", json!(256)),
        ("timeout", json!(5)),
        ("timeout", json!({ "secs": 1, "nanos": 1_000_000_000 })),
        ("timeout", json!({ "secs": -1, "nanos": 0 })),
        ("require_deterministic", json!("yes")),
        ("profile", json!(1)),
        ("label", json!([])),
        ("specialization", json!([])),
        ("specialization", json!({ "u": 3 })),
        ("specialization", json!({ "u": { "kind": "u32", "value": "4294967296" } })),
        ("specialization", json!({ "u": { "kind": "u33", "value": "1" } })),
        ("specialization", json!({ "u": { "kind": "f32", "value": "1e999" } })),
        ("specialization", json!({ "t": { "kind": "dtype", "value": "f33" } })),
    ] {
        refused(&changed(&["config", name], Some(bad)), name);
    }
    // The program must be the one that was hashed, and a program.
    refused(&changed(&["program"], Some(json!(EVERY_KIND.replace("= 3", "= 4")))), "does not have the digest");
    refused(&changed(&["program_digest"], Some(json!("00"))), "does not have the digest");
    let broken = PipelineReproManifest::from_json(&changed(&["program"], Some(json!("program p {")))).unwrap_err();
    assert!(matches!(broken, vyre_driver::BackendError::Rejected(_)), "{broken}");
}
