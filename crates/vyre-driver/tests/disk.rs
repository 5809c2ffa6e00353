//! The disk cache: never a wrong payload, whatever happens to its files.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use vyre_driver::backend::UNVERSIONED;
use vyre_driver::pipeline::{DiskCache, Fetched, Miss, PipelineKey};
use vyre_driver::specialization::SpecMap;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::ir::Program;

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("vyre-disk-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn cache(&self, limit: u64) -> DiskCache {
        DiskCache::new(&self.0, limit)
    }

    fn file(&self, n: usize) -> PathBuf {
        self.0.join(key(n).to_hex())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn bytes(&self) -> u64 {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn key(n: usize) -> PipelineKey {
    PipelineKey {
        program: [n as u8; 32],
        backend: "test".into(),
        version: "1".into(),
        device: "d".repeat(n % 5),
        specialization: SpecMap::new(),
        workgroup_override: None,
        ulp_budget: None,
        profile: None,
    }
}

fn payload(n: usize) -> Vec<u8> {
    (0..40 + 13 * n).map(|i| (i * 31 + n) as u8).collect()
}

const LARGE: u64 = 1 << 30;

fn set_age(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn what_was_stored_is_there_for_the_next_process() {
    let directory = Directory::new("stored");
    for (n, bytes) in [(0, vec![]), (1, payload(1)), (2, vec![7; 1 << 20])] {
        assert_eq!(directory.cache(LARGE).load(&key(n)), Err(Miss::Absent));
        assert_eq!(directory.cache(LARGE).store(&key(n), &bytes), Ok(true));
        assert_eq!(directory.cache(LARGE).load(&key(n)), Ok(bytes));
    }
    directory.cache(LARGE).store(&key(1), b"another").unwrap();
    assert_eq!(directory.cache(LARGE).load(&key(1)).as_deref(), Ok(&b"another"[..]));
    let mut expected: Vec<String> = (0..3).map(|n| key(n).to_hex()).collect();
    expected.sort();
    assert_eq!(directory.names(), expected, "nothing else is left");
}

#[test]
fn a_bad_file_is_a_miss_with_its_reason_and_is_removed() {
    let directory = Directory::new("reasons");
    let cache = directory.cache(LARGE);
    let path = directory.file(1);
    let write = |bytes: &[u8]| fs::write(&path, bytes).unwrap();
    cache.store(&key(1), &payload(1)).unwrap();
    let good = fs::read(&path).unwrap();
    cache.store(&key(6), &payload(6)).unwrap();
    let other = fs::read(directory.file(6)).unwrap();
    let payload_starts = good.len() - 32 - payload(1).len();
    let expect = |bytes: &[u8], miss: Miss| {
        write(bytes);
        assert_eq!(cache.load(&key(1)), Err(miss));
        assert_eq!(cache.load(&key(1)), Err(Miss::Absent), "it was removed");
    };
    for length in 0..good.len() {
        expect(&good[..length], Miss::Truncated);
    }
    expect(&[&good[..], b"x"].concat(), Miss::Corrupt);
    let flip = |at: usize, miss: Miss| {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        expect(&bad, miss);
    };
    flip(0, Miss::Foreign);
    flip(8, Miss::OtherVersion);
    flip(12, Miss::Foreign);
    flip(20, Miss::Foreign);
    flip(payload_starts, Miss::Corrupt);
    flip(good.len() - 33, Miss::Corrupt);
    flip(good.len() - 1, Miss::Corrupt);
    // Lengths that would overflow, or reserve all memory there is.
    for length in [u64::MAX, u64::MAX - 200, 1 << 40] {
        let mut bad = good.clone();
        bad[payload_starts - 8..payload_starts].copy_from_slice(&length.to_le_bytes());
        expect(&bad, Miss::Truncated);
    }
    expect(b"somebody's notes", Miss::Foreign);
    // A whole file of another key, under this one's name.
    expect(&other, Miss::Foreign);
    write(&good);
    assert_eq!(cache.load(&key(1)), Ok(payload(1)));
}

#[test]
fn what_is_no_file_is_unreadable_by_name() {
    let directory = Directory::new("no-file");
    let path = directory.file(0);
    fs::create_dir(&path).unwrap();
    let Err(Miss::Unfit(why)) = directory.cache(LARGE).load(&key(0)) else { panic!("a directory is not a file") };
    assert!(why.contains(path.to_str().unwrap()), "{why}");
    let error = directory.cache(LARGE).store(&key(0), b"x").unwrap_err();
    assert!(error.message().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(directory.names(), [key(0).to_hex()], "no temporary file is left");
}

#[test]
fn what_stands_where_a_file_should_stand_does_no_harm() {
    let directory = Directory::new("in-the-way");
    let cache = directory.cache(LARGE);
    let one = {
        cache.store(&key(0), &[7; 1000]).unwrap();
        directory.bytes()
    };
    // A directory with a name like ours: it is neither a file of the cache nor in the way of keeping the bound for others.
    fs::create_dir(directory.file(5)).unwrap();
    fs::write(directory.file(5).join("inside"), [0; 5000]).unwrap();
    let small = directory.cache(one);
    assert_eq!(small.store(&key(10), &[7; 1000]), Ok(true));
    assert_eq!([0, 5, 10].map(|n| directory.file(n).exists()), [false, true, true]);
    assert!(directory.file(5).join("inside").exists());
    // A link is not followed, and goes away without what it points to.
    #[cfg(unix)]
    {
        let elsewhere = directory.0.join("elsewhere");
        cache.store(&key(15), &payload(15)).unwrap();
        fs::rename(directory.file(15), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, directory.file(15)).unwrap();
        assert!(matches!(cache.load(&key(15)), Err(Miss::Unfit(_))));
        assert_eq!(cache.load(&key(15)), Err(Miss::Absent));
        assert!(elsewhere.exists());
        cache.store(&key(15), &payload(15)).unwrap();
        assert_eq!(cache.load(&key(15)), Ok(payload(15)));
        fs::remove_file(directory.file(15)).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", directory.file(15)).unwrap();
        assert!(matches!(cache.load(&key(15)), Err(Miss::Unfit(_))));
        // A store does not follow one either.
        let before = fs::read(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, directory.file(15)).unwrap();
        cache.store(&key(15), &payload(3)).unwrap();
        assert_eq!((cache.load(&key(15)), fs::read(&elsewhere).unwrap()), (Ok(payload(3)), before));
    }
}

#[test]
fn a_file_that_says_to_be_huge_is_not_read() {
    let directory = Directory::new("huge");
    let cache = directory.cache(1 << 20);
    cache.store(&key(0), &[7; 1000]).unwrap();
    let good = fs::read(directory.file(0)).unwrap();
    let payload_starts = good.len() - 32 - 1000;
    // All holes: it takes no room on disk, and would take all of memory.
    for length in [1u64 << 40, 1 << 21] {
        let file = fs::File::create(directory.file(0)).unwrap();
        let mut head = good[..payload_starts].to_vec();
        head[payload_starts - 8..].copy_from_slice(&length.to_le_bytes());
        std::io::Write::write_all(&mut &file, &head).unwrap();
        file.set_len(payload_starts as u64 + length + 32).unwrap();
        drop(file);
        let Err(Miss::Unfit(why)) = cache.load(&key(0)) else { panic!("a file of {length} bytes was read") };
        assert!(why.contains("the cache at most 1048576"), "{why}");
        assert_eq!(cache.load(&key(0)), Err(Miss::Absent), "it was removed");
    }
}

#[test]
fn a_file_that_cannot_be_opened_or_read_stays() {
    let directory = Directory::new("unreadable");
    let cache = directory.cache(LARGE);
    cache.store(&key(1), &payload(1)).unwrap();
    // Nobody but the superuser is refused because of permissions; everybody is if a name on the way is no directory.
    let inside = DiskCache::new(directory.file(1), LARGE);
    let Err(Miss::Unreadable(why)) = inside.load(&key(1)) else { panic!("a file is not a directory") };
    assert!(why.contains(directory.file(1).to_str().unwrap()), "{why}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| fs::set_permissions(directory.file(1), fs::Permissions::from_mode(mode)).unwrap();
        mode(0);
        match cache.load(&key(1)) {
            Err(Miss::Unreadable(_)) => {}
            // The superuser may.
            Ok(found) => assert_eq!(found, payload(1)),
            other => panic!("{other:?}"),
        }
        mode(0o600);
    }
    assert_eq!(cache.load(&key(1)), Ok(payload(1)), "it is still there");
}

#[test]
fn code_of_a_backend_without_a_version_is_never_kept() {
    let directory = Directory::new("unversioned");
    let cache = directory.cache(LARGE);
    let unversioned = |n| PipelineKey { version: UNVERSIONED.into(), ..key(n) };
    assert_eq!(cache.store(&unversioned(1), &payload(1)), Ok(false));
    assert_eq!(directory.names(), [""; 0]);
    for _ in 0..2 {
        let fetched = cache.fetch(&unversioned(1), || Ok(payload(1)));
        assert_eq!(fetched, Ok(Fetched { payload: payload(1), miss: Some(Miss::Absent), not_stored: None }));
    }
    // Nor is a file found that somebody else has put there.
    let versioned = PipelineKey { version: "1".into(), ..key(1) };
    cache.store(&versioned, &payload(1)).unwrap();
    fs::rename(directory.0.join(versioned.to_hex()), directory.0.join(unversioned(1).to_hex())).unwrap();
    assert_eq!(cache.load(&unversioned(1)), Err(Miss::Absent));
    // What a hand-written backend says if it says nothing.
    assert_eq!(PipelineKey::new(&Plain, &program(), &DispatchConfig::default()).version, UNVERSIONED);
}

/// A backend with nothing but what it must have.
struct Plain;

impl VyreBackend for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(Vec::new())
    }
}

fn program() -> Program {
    vyre_foundation::text::parse("p", "program p {\n workgroup 1\n}").unwrap()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[test]
fn ten_thousand_corruptions_never_give_a_wrong_payload() {
    const KEYS: usize = 8;
    let directory = Directory::new("corruptions");
    let cache = directory.cache(LARGE);
    let good: Vec<Vec<u8>> = (0..KEYS)
        .map(|n| {
            cache.store(&key(n), &payload(n)).unwrap();
            fs::read(directory.file(n)).unwrap()
        })
        .collect();
    let mut random = Random(5);
    let mut misses = 0;
    for round in 0..10_000 {
        let n = random.below(KEYS);
        let mut bytes = good[n].clone();
        match random.below(7) {
            0 => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            1 => {
                for _ in 0..1 + random.below(20) {
                    let at = random.below(bytes.len());
                    bytes[at] = random.below(256) as u8;
                }
            }
            2 => bytes.truncate(random.below(bytes.len())),
            3 => bytes.extend((0..1 + random.below(100)).map(|i| i as u8)),
            4 => bytes = good[(n + 1 + random.below(KEYS - 1)) % KEYS].clone(),
            5 => {
                // The beginning of one file and the end of another.
                let other = &good[random.below(KEYS)];
                let at = random.below(bytes.len().min(other.len()));
                bytes.truncate(at);
                bytes.extend_from_slice(&other[at..]);
            }
            _ => {
                // A part of it moved elsewhere.
                let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                let length = random.below(bytes.len() - from.max(to));
                bytes.copy_within(from..from + length, to);
            }
        }
        fs::write(directory.file(n), &bytes).unwrap();
        match cache.load(&key(n)) {
            Ok(found) => assert!(found == payload(n) && bytes == good[n], "round {round}: a wrong payload"),
            Err(Miss::Absent) => panic!("round {round}: the file was there"),
            Err(_) => {
                assert_ne!(bytes, good[n], "round {round}: a good file");
                misses += 1;
            }
        }
    }
    assert!(misses > 9_000, "only {misses} of the files were bad");
}

#[test]
fn the_bound_holds_and_the_file_used_longest_ago_goes_first() {
    let directory = Directory::new("bound");
    let one = {
        directory.cache(LARGE).store(&key(0), &[0; 1000]).unwrap();
        directory.bytes()
    };
    // Keys of the same length make files of the same length.
    let keys = [0, 5, 10, 15, 20];
    let cache = directory.cache(3 * one);
    for (age, n) in keys[..3].iter().enumerate() {
        cache.store(&key(*n), &[0; 1000]).unwrap();
        set_age(&directory.file(*n), 100 - age as u64);
    }
    assert_eq!(directory.bytes(), 3 * one);
    // A use makes the oldest the newest.
    cache.load(&key(0)).unwrap();
    cache.store(&key(15), &[0; 1000]).unwrap();
    assert_eq!(keys.map(|n| directory.file(n).exists()), [true, false, true, true, false]);
    assert_eq!(directory.bytes(), 3 * one);
    // A smaller bound holds from the next store on.
    let smaller = directory.cache(2 * one);
    smaller.store(&key(20), &[0; 1000]).unwrap();
    assert_eq!(keys.map(|n| directory.file(n).exists()), [false, false, false, true, true]);
    // Too large alone: not stored, and nothing gives way.
    assert_eq!(smaller.store(&key(5), &[0; 3000]), Ok(false));
    assert_eq!(directory.bytes(), 2 * one);
}

#[test]
fn a_file_from_the_future_does_not_stay_for_ever() {
    let directory = Directory::new("future");
    directory.cache(LARGE).store(&key(0), &[0; 100]).unwrap();
    let one = directory.bytes();
    let file = fs::File::options().write(true).open(directory.file(0)).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1_000_000)).unwrap();
    for n in [5, 10] {
        directory.cache(2 * one).store(&key(n), &[0; 100]).unwrap();
    }
    assert_eq!([0, 5, 10].map(|n| directory.file(n).exists()), [false, true, true]);
}

#[test]
fn files_of_others_are_left_alone_and_abandoned_ones_are_not() {
    let directory = Directory::new("others");
    let notes = directory.0.join("notes.txt");
    let nearly = directory.0.join("g".repeat(64));
    let abandoned = directory.0.join(".vyre-abc123.tmp");
    let in_progress = directory.0.join(".vyre-def456.tmp");
    for path in [&notes, &nearly, &abandoned, &in_progress] {
        fs::write(path, [0; 10_000]).unwrap();
    }
    for path in [&notes, &nearly, &abandoned] {
        set_age(path, 100_000);
    }
    directory.cache(1_000).store(&key(0), b"x").unwrap();
    directory.cache(1_000).store(&key(1), &[0; 700]).unwrap();
    let exist = [&notes, &nearly, &abandoned, &in_progress].map(|path| path.exists());
    assert_eq!(exist, [true, true, false, true]);
}

#[test]
fn a_cache_that_cannot_be_written_says_where_and_the_build_goes_on() {
    let directory = Directory::new("unwritable");
    let file = directory.0.join("a-file");
    fs::write(&file, b"").unwrap();
    let mut places = vec![file.join("cache")];
    // Whoever may write everywhere can write here too, and then it shows nothing.
    let read_only = directory.0.join("read-only");
    fs::create_dir(&read_only).unwrap();
    let mut permissions = fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&read_only, permissions).unwrap();
    if fs::write(read_only.join("probe"), b"").is_err() {
        places.push(read_only);
    }
    for place in places {
        let cache = DiskCache::new(&place, LARGE);
        let error = cache.store(&key(0), b"x").unwrap_err();
        assert!(error.message().contains(place.to_str().unwrap()), "{error}");
        let Fetched { payload: built, miss, not_stored } = cache.fetch(&key(0), || Ok(payload(0))).unwrap();
        assert_eq!(built, payload(0));
        assert!(miss.is_some());
        assert_eq!(not_stored, Some(error));
    }
}

#[test]
fn fetch_builds_once_and_hands_on_the_errors_of_the_build() {
    let directory = Directory::new("fetch");
    let cache = directory.cache(LARGE);
    let builds = Cell::new(0);
    let build = || {
        builds.set(builds.get() + 1);
        Ok(payload(3))
    };
    let failed = cache.fetch(&key(3), || Err(BackendError::OutOfMemory { requested: 1 }));
    assert_eq!(failed, Err(BackendError::OutOfMemory { requested: 1 }));
    let fetched = |miss| Ok(Fetched { payload: payload(3), miss, not_stored: None });
    assert_eq!(cache.fetch(&key(3), build), fetched(Some(Miss::Absent)));
    assert_eq!(cache.fetch(&key(3), build), fetched(None));
    fs::write(directory.file(3), b"").unwrap();
    assert_eq!(cache.fetch(&key(3), build), fetched(Some(Miss::Truncated)));
    assert_eq!(cache.fetch(&key(3), build), fetched(None));
    assert_eq!(builds.get(), 2);
}

/// Stores, reads and evicts at once; whatever is read is right.
fn hammer(directory: &Path, seed: u64) {
    let mut random = Random(seed);
    // About half of what the keys need.
    let cache = DiskCache::new(directory, 1_500);
    for _ in 0..300 {
        let n = random.below(8);
        match random.below(3) {
            0 => assert_eq!(cache.store(&key(n), &payload(n)), Ok(true)),
            _ => match cache.load(&key(n)) {
                Ok(found) => assert_eq!(found, payload(n)),
                Err(miss) => assert_eq!(miss, Miss::Absent),
            },
        }
    }
}

#[test]
fn threads_in_several_processes_share_a_directory() {
    const CHILD: &str = "VYRE_DISK_TEST_DIRECTORY";
    if let Some(directory) = std::env::var_os(CHILD) {
        return hammer(Path::new(&directory), u64::from(std::process::id()));
    }
    let directory = Directory::new("processes");
    let children: Vec<_> = (0..3)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "threads_in_several_processes_share_a_directory"])
                .env(CHILD, &directory.0)
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let path = &directory.0;
            scope.spawn(move || hammer(path, seed));
        }
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert!(directory.bytes() <= 1_500);
    assert!(directory.names().iter().all(|name| name.len() == 64), "no temporary file is left: {:?}", directory.names());
    let kept = (0..8).filter(|n| directory.cache(1_500).load(&key(*n)) == Ok(payload(*n))).count();
    assert_eq!(kept, directory.names().len());
    assert!(kept > 0);
}
