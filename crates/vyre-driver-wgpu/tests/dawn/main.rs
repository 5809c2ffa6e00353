//! Another compiler of WGSL than naga accepts everything that is made: Dawn's, which looks at uniformity too. `scripts/test` installs it into
//! `target/dawn`. `VYRE_DAWN_PROGRAMS=10000` takes so many generated programs.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use vyre_emit::floats::{FloatProfile, LadderOp, Rung};
use vyre_emit::{Rounds, Shader, Target};
use vyre_foundation::ir::Program;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_spec::FloatMode;

const SEED: u64 = 0xDA;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All kernels below a folder.
fn kernels(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            kernels(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            found.push(path);
        }
    }
}

/// Targets that make different code of the same kernel.
fn targets() -> [(&'static str, Target); 3] {
    let mut floats = FloatProfile::INTEGER;
    for op in LadderOp::ALL {
        if let Some(rung) = [Rung::Protected, Rung::Corrected].into_iter().find(|rung| op.has(*rung)) {
            FloatMode::ALL.iter().for_each(|mode| floats.set(*mode, op, rung));
        }
    }
    let rounds = Some(Rounds { most: 65_535, together: 8 });
    [
        ("integers", Target::default()),
        ("floats", Target { floats, ..Target::default() }),
        ("counted", Target { rounds, copies: 4, ..Target::default() }),
    ]
}

/// What Dawn says about shaders by name; those that it accepts are not there.
fn refused(shaders: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in shaders {
        std::fs::write(folder.path().join(format!("{name}.wgsl")), text).expect("it is written");
    }
    let dawn = root().join("target/dawn");
    assert!(dawn.join("pydawn").is_dir(), "there is no Dawn in {}: scripts/test installs it", dawn.display());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dawn/accepts.py");
    let ran = Command::new("python3").arg(script).arg(dawn).arg(folder.path()).output().expect("there is Python");
    let told = String::from_utf8_lossy(&ran.stdout);
    let said: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{}", String::from_utf8_lossy(&ran.stderr)));
    assert_eq!(said["shaders"], shaders.len());
    let refused = said["refused"].as_object().expect("an object");
    refused.iter().map(|(name, why)| (name.trim_end_matches(".wgsl").into(), why.as_str().unwrap_or_default().into())).collect()
}

/// The shaders of a program, unless it needs what WGSL does not have.
fn shaders(name: &str, program: &Program, made: &mut BTreeMap<String, String>) {
    let Ok(program) = vyre_foundation::specialize(program, []) else { return };
    let Ok(validated) = program.validated() else { return };
    for (target_name, target) in targets() {
        if let Ok(shader) = Shader::of(validated.kernel(), &target) {
            made.insert(format!("{name}-{target_name}"), shader.wgsl);
        }
    }
}

#[test]
fn dawn_accepts_what_is_made_of_our_kernels() {
    let mut files = Vec::new();
    for folder in ["checks", "examples", "bench/kernels"] {
        kernels(&root().join(folder), &mut files);
    }
    let mut made = BTreeMap::new();
    for (n, file) in files.iter().enumerate() {
        // Check files of mistakes are not kernels, and one is not even text.
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let Ok(program) = vyre_foundation::text::parse(&file.display().to_string(), &text) else { continue };
        let stem = file.file_stem().expect("a name").to_string_lossy();
        shaders(&format!("{n}-{stem}"), &program, &mut made);
    }
    assert!(made.len() > 2500, "only {} shaders were made", made.len());
    let refused = refused(&made);
    assert!(refused.is_empty(), "{} of {} are refused, the first: {:#?}", refused.len(), made.len(), refused.first_key_value());
}

#[test]
fn dawn_accepts_what_is_made_of_generated_programs() {
    let count = std::env::var("VYRE_DAWN_PROGRAMS").map_or(300, |count| count.parse().expect("VYRE_DAWN_PROGRAMS is a number"));
    for begin in (0..count).step_by(1000) {
        let mut made = BTreeMap::new();
        for number in begin..count.min(begin + 1000) {
            let dna = dna(SEED, number);
            let case = generate(Preset::mixed(number), &dna).case(&dna);
            shaders(&number.to_string(), &case.program, &mut made);
        }
        let refused = refused(&made);
        let first = refused.first_key_value();
        assert!(refused.is_empty(), "{} of {} are refused, the first of seed {SEED}: {first:#?}", refused.len(), made.len());
    }
}

/// What naga lets through is seen: a barrier that not all invocations reach, and an index that is known to be outside.
#[test]
fn dawn_refuses_what_it_should() {
    let shader = |body: &str| {
        format!(
            "var<workgroup> a: array<u32, 4>;\n@compute @workgroup_size(4)\nfn main(@builtin(local_invocation_id) l: vec3<u32>) {{\n{body}\n}}\n"
        )
    };
    let given = [
        ("barrier", "if (l.x == 0u) { workgroupBarrier(); }"),
        ("index", "a[4u] = 1u;"),
        ("shift", "a[0u] = 1u << 32u;"),
        ("right", "a[l.x] = 1u; workgroupBarrier();"),
    ];
    let shaders = given.map(|(name, body)| (name.to_string(), shader(body))).into();
    let refused = refused(&shaders);
    assert_eq!(refused.keys().map(String::as_str).collect::<Vec<_>>(), ["barrier", "index", "shift"], "{refused:#?}");
}
