//! Failure bundles: what was written is read back, also by later versions; nothing is overwritten; damage is told by name.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vyre_foundation::config::SpecMap;
use vyre_foundation::ir::{DataType, SpecValue};
use vyre_foundation::text::parse;
use vyre_worker::{Bundle, BundleError, Case, Failure, Kind, Origin, bundle};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vyre-bundles-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn replay(path: &Path) -> String {
    format!("vyre fuzz --replay {}", path.display())
}

/// Changed content under a hash that fits, as a faulty writer would leave it.
fn sealed(mut json: Value) -> Vec<u8> {
    let object = json.as_object_mut().expect("it is an object");
    object.retain(|name, _| name != "hash" && name != "replay");
    let hash = blake3::hash(Value::Object(object.clone()).to_string().as_bytes()).to_hex().to_string();
    object.insert("hash".into(), hash.into());
    json.to_string().into_bytes()
}

fn case() -> Case {
    let text = "program scaled {
  workgroup 4
  const scale: u32 = 3
  const offset: i32 = 0
  const half: f32 = 0.5
  const exact: bool = true
  const element: dtype = f32
  buffer x: read element @0
  buffer out: output f32 @1
  if gid.x < len(out) {
    out[gid.x] = x[gid.x] * half + f32(scale)
  }
}";
    let mut case = Case::new(parse("scaled.vyre", text).expect("it is a program"), vec![vec![0, 60], vec![]]);
    case.config.grid_override = Some([2, 1, 1]);
    case.config.output_counts.insert("out".into(), 7);
    case.config.specialization = SpecMap::from_iter([
        ("scale".into(), SpecValue::U32(u32::MAX)),
        ("offset".into(), SpecValue::I32(i32::MIN)),
        ("half".into(), SpecValue::F32(f32::INFINITY)),
        ("exact".into(), SpecValue::Bool(false)),
        ("element".into(), SpecValue::DType(DataType::F16)),
    ]);
    case.fuel = u64::MAX;
    case
}

fn a_bundle() -> Bundle {
    Bundle {
        subject: "bulk".into(),
        kind: Kind::Bytes,
        signature: "bytes of bulk: add mul load".into(),
        case: case(),
        before: vec![Case { inputs: vec![vec![1]], ..case() }],
        expected: Ok(vec![vec![1, 2, 0xff]]),
        got: Ok(vec![vec![1, 3, 0xff]]),
        original: Some(Case { inputs: vec![vec![9; 100]], ..case() }),
        origin: Some(Origin {
            generator: 1,
            preset: "floats".into(),
            seed: u64::MAX,
            number: 17,
            input: 2,
            dna: (0..=255).collect(),
        }),
        versions: bundle::versions(),
    }
}

#[test]
fn what_is_written_is_read_back() {
    let folder = Folder::new("back");
    let outcomes = [
        Ok(vec![]),
        Err(Failure::Trap { tag: u32::MAX, invocation: [1, 2, 3] }),
        Err(Failure::OutOfFuel),
        Err(Failure::Hung(Duration::from_millis(1500))),
        Err(Failure::Refused("no".into())),
        Err(Failure::Unsupported("no".into())),
        Err(Failure::Panicked("\"so\"\n".into())),
        Err(Failure::Crashed("signal 11".into())),
        Err(Failure::Device("lost".into())),
        Err(Failure::NotRun("no".into())),
    ];
    for (n, got) in outcomes.into_iter().enumerate() {
        let kind = Kind::ALL[n % Kind::ALL.len()];
        let written = Bundle { got, kind, ..a_bundle() };
        let path = written.write(&folder.0, replay).expect("the folder can be written");
        assert_eq!(Bundle::read(&path).expect("it is a bundle"), written);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(name, format!("{kind}-{}.json", &written.hash()[..16]));
        let json: Value = serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("it is JSON");
        assert_eq!(json["replay"], replay(&path));
        assert_eq!(json["text"][0], "program scaled {");
        assert_eq!(json["case"]["program"]["buffers"][1]["name"], "out");
    }
    assert!(fs::read_dir(&folder.0).expect("the folder").all(|file| {
        let name = file.expect("a file").file_name();
        name.to_str().is_some_and(|name| name.ends_with(".json"))
    }));
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new("overwrite");
    let path = a_bundle().write(&folder.0, replay).expect("the folder can be written");
    let first = fs::read(&path).expect("it is there");
    assert_eq!(a_bundle().write(&folder.0, |_| "another command".into()).expect("it is there already"), path);
    assert_eq!(fs::read(&path).expect("it is there"), first);
    // Even what is broken stays, and the bundle goes beside it.
    fs::write(&path, b"broken").expect("the file can be written");
    let second = a_bundle().write(&folder.0, replay).expect("the folder can be written");
    assert_ne!(second, path);
    assert_eq!(fs::read(&path).expect("it is there"), b"broken");
    assert_eq!(Bundle::read(&second).expect("it is a bundle"), a_bundle());
    let other = Bundle { signature: "other".into(), ..a_bundle() };
    assert_ne!(other.write(&folder.0, replay).expect("the folder can be written"), path);
}

/// Whoever is faster, there is one file, and all are told its name.
#[test]
fn many_that_write_one_bundle_at_once_write_one_file() {
    let folder = Folder::new("at-once");
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| a_bundle().write(&folder.0, replay).expect("it is written"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 1);
}

#[test]
fn damage_is_told_by_name() {
    let folder = Folder::new("damage");
    let path = a_bundle().write(&folder.0, replay).expect("the folder can be written");
    let text = fs::read_to_string(&path).expect("it is there");
    let broken = |text: &str| Bundle::parse(text.as_bytes()).expect_err("it is damaged");
    assert!(matches!(broken(&text[..text.len() / 2]), BundleError::NoJson(_)));
    assert!(matches!(broken("[]"), BundleError::NoJson(_)));
    assert!(matches!(broken(&text.replace("0102ff", "0103ff")), BundleError::Changed));
    assert!(matches!(broken(&text.replace("\"bundle\": 2", "\"bundle\": 3")), BundleError::Later(3)));
    assert!(matches!(Bundle::read(&folder.0.join("none.json")), Err(BundleError::Unreadable(_))));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut json: Value = serde_json::from_str(&text).expect("it is JSON");
        change(&mut json);
        Bundle::parse(&sealed(json))
    };
    assert_eq!(with(&|_| ()).expect("nothing is wrong"), a_bundle());
    let field = |change: &dyn Fn(&mut Value)| match with(change) {
        Err(BundleError::Field(name, _)) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(&|json| json["kind"] = "odd".into()), "kind");
    assert_eq!(field(&|json| json["case"]["inputs"][0] = "0g".into()), "case.inputs[0]");
    assert_eq!(field(&|json| json["case"]["program"]["nodes"][0]["kind"] = "iff".into()), "case.program.nodes[0].kind");
    assert_eq!(field(&|json| json["case"]["program"]["nodes"][0]["body"] = 7.into()), "case.program.nodes[0]");
    assert_eq!(field(&|json| json["before"][0]["config"]["grid"] = 7.into()), "before[0].config.grid");
    assert_eq!(field(&|json| json["got"]["outputs"] = 7.into()), "got.outputs");
    let gone = with(&|json| drop(json.as_object_mut().map(|json| json.remove("versions"))));
    assert!(gone.is_err_and(|error| error.to_string().contains("missing field `versions`")));
    // Fields that are not known are left for those who know them.
    assert_eq!(with(&|json| json["notes"] = "mine".into()).expect("nothing is wrong"), a_bundle());
}

/// No byte of a file can be changed so that reading it panics or gives something else.
#[test]
fn damaged_bytes_never_panic() {
    let folder = Folder::new("bytes");
    let path = a_bundle().write(&folder.0, replay).expect("the folder can be written");
    let bytes = fs::read(&path).expect("it is there");
    let mut damaged = bytes.clone();
    for at in (0..bytes.len()).step_by(7) {
        for value in [b' ', b'"', b'0', 0xff, bytes[at] ^ 1] {
            damaged[at] = value;
            if let Ok(read) = Bundle::parse(&damaged) {
                assert_eq!(read, a_bundle(), "byte {at} is {value}");
            }
        }
        damaged[at] = bytes[at];
    }
}

/// A file of every layout that was ever written. It is never rewritten; a new layout adds a new file.
#[test]
fn old_bundles_are_read() {
    for layout in 1..=bundle::VERSION {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/layout-{layout}.json"));
        let old = Bundle::read(&path).expect("it is a bundle");
        assert_eq!((old.subject.as_str(), old.kind), ("bulk", Kind::Bytes));
        assert_eq!(old.case, case());
        assert_eq!(old.origin.map(|origin| (origin.seed, origin.number)), Some((u64::MAX, 17)));
    }
}

/// In layout 1, a program in a wire form that is not known is taken from its text.
#[test]
fn the_text_counts_where_the_wire_form_is_not_known() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout-1.json");
    let text = fs::read_to_string(&path).expect("it is there");
    let mut json: Value = serde_json::from_str(&text).expect("it is JSON");
    let wire = json["case"]["wire"].as_str().expect("hex").to_string();
    json["case"]["wire"] = format!("{}ffff{}", &wire[..8], &wire[12..]).into();
    assert_eq!(Bundle::parse(&sealed(json.clone())).expect("the text is there").case.program, case().program);
    // Damage is no other version.
    json["case"]["wire"] = "7679".into();
    let error = Bundle::parse(&sealed(json)).expect_err("it is damaged");
    assert!(matches!(&error, BundleError::Field(name, _) if name == "case.wire"), "{error}");
}
