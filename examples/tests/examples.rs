//! Every example is run and prints what it should; the ten kernels are the same in text and in Rust, and give the same bytes on every
//! backend as plain Rust does.

use std::path::Path;
use std::process::Command;
use vyre::prelude::*;
use vyre_examples::kernels;

fn prints(program: &str, expected: &str) {
    let output = Command::new(program).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {errors}");
    assert_eq!(out.trim_end(), expected.trim(), "{program}");
}

#[test]
fn examples_print_what_they_should() {
    prints(env!("CARGO_BIN_EXE_first_kernel"), "[2.5, 4.5, 6.5] on cpu");
    // Eight steps are the coefficients of (a + b)^16, over 2^16.
    prints(
        env!("CARGO_BIN_EXE_resident_chain"),
        "
[0.027770996, 0.06665039, 0.12219238, 0.17456055, 0.19638062, 0.17456055, 0.12219238, 0.06665039, 0.027770996]
[0.027770996, 0.06665039, 0.12219238, 0.17456055, 0.19638062, 0.17456055, 0.12219238, 0.06665039]",
    );
    prints(env!("CARGO_BIN_EXE_constants"), "[10.0, 26.0]\n[1.5, 3.5]\nE0407");
    prints(
        env!("CARGO_BIN_EXE_grid_barrier"),
        "
cpu: [20100] [9, 9, 9, 9, 9] (grid barriers of its own: true)
reference: [20100] [9, 9, 9, 9, 9] (grid barriers of its own: true)",
    );
    prints(env!("CARGO_BIN_EXE_futures"), "(871, 178)\n(100167, 340)");
    prints(
        env!("CARGO_BIN_EXE_own_backend"),
        "
[1.0, 1.4142135, 2.0] on cpu, [1.0, 1.4142135, -2.0] on mine
the same: false
the backend `mine` has no resident data. Fix: use another backend, or ask `route` for one that has it",
    );
    prints(
        env!("CARGO_BIN_EXE_catching_a_race"),
        "
refused: the bytes of this program are not proven the same under every schedule: two invocations may write one element of `out` here. Fix: let one invocation write it (`if gid.x == 0`), or one of each workgroup an element of its own (`if lid.x == 0` and `out[wid.x]`), or use an atomic that commutes, such as `atomic.add`, or do without `require_deterministic`
racy: data race on `out[0]`: no barrier orders these accesses (3 times)",
    );
    // A thousand steps of a chaotic map in f32, each rounded as IEEE 754 says: worked out with another language.
    prints(
        env!("CARGO_BIN_EXE_pipeline_loop"),
        "[3f24bc32, 3f6f53b1, 3ece1160, 3f31a5e0, 3f267499, 3e651502, 3f4286d1, 3e614742]",
    );
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("kernels/{name}.vyre"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn kernels_are_the_same_in_text_and_in_rust() {
    for (name, built) in kernels::all() {
        let written: Program = text(name).parse().unwrap();
        assert_eq!(built.to_string(), written.to_string(), "{name}");
        assert_eq!(built, written, "{name}");
    }
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")).unwrap();
    let files = files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "vyre"));
    assert_eq!(files.count(), kernels::all().len());
}

/// Nine are proven, and why the tenth is not is said.
#[test]
fn what_is_proven_about_kernels_is_what_their_files_say() {
    for (name, built) in kernels::all() {
        let text = text(name);
        let said = text.lines().find_map(|line| line.strip_prefix("// determinism: ")).unwrap();
        let found = built.determinism().unwrap().to_string();
        assert!(said.starts_with(&found), "{name}: {found}");
        assert_eq!(found.starts_with("cross-backend"), name != "sort_pass", "{name}");
    }
}

/// Numbers that look random.
fn numbers(count: usize, mut seed: u64) -> Vec<u32> {
    let next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as u32
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn floats(count: usize, seed: u64) -> Vec<f32> {
    numbers(count, seed).into_iter().map(|n| n as f32 / (1u64 << 28) as f32 - 4.0).collect()
}

/// Runs on every backend, gives the output of the first, which the others must agree with.
fn everywhere<T: Clone + PartialEq + std::fmt::Debug>(run: impl Fn(&Backend) -> Result<Vec<T>, BackendError>) -> Vec<T> {
    let results: Vec<Vec<T>> = ["cpu", "bulk", "reference"].iter().map(|id| run(&Backend::open(id).unwrap()).unwrap()).collect();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    results[0].clone()
}

#[test]
fn kernels_compute_what_plain_rust_does() {
    let (w, h) = (13usize, 9usize);
    let at = |x: usize, y: usize| y * w + x;
    let grid = [2, 2, 1];
    let size = [w as u32, h as u32];

    let image = floats(w * h, 1);
    let program = kernels::blur();
    let found = everywhere(|backend| {
        Dispatch::new(&program)
            .input("image", &image)
            .input("size", &size)
            .output_len("out", 117)
            .grid(grid)
            .run(backend)?
            .get::<f32>("out")
    });
    let near = |n: usize, d: usize, end: usize| (n + d).saturating_sub(1).min(end - 1);
    for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
        let nine = (0..9).map(|n| image[at(near(x, n % 3, w), near(y, n / 3, h))]);
        assert_eq!(found[at(x, y)], nine.fold(0.0f32, |sum, pixel| sum + pixel) / 9.0);
    }

    let cells: Vec<u32> = numbers(w * h, 2).into_iter().map(|n| n % 2).collect();
    let program = kernels::game_of_life();
    let found = everywhere(|backend| {
        Dispatch::new(&program)
            .input("cells", &cells)
            .input("size", &size)
            .grid(grid)
            .output_len("next", 117)
            .run(backend)?
            .get::<u32>("next")
    });
    for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
        let around: u32 = (0..9).filter(|n| *n != 4).map(|n| cells[at((x + n % 3 + w - 1) % w, (y + n / 3 + h - 1) % h)]).sum();
        assert_eq!(found[at(x, y)], u32::from(around == 3 || around == 2 && cells[at(x, y)] == 1));
    }

    let values = numbers(500, 3);
    let starts = [0u32, 0, 7, 100, 100, 101, 500];
    let program = kernels::segmented_sum();
    let found = everywhere(|backend| {
        let dispatch = Dispatch::new(&program).input("starts", &starts).input("values", &values).output_len("sums", 6);
        dispatch.over("sums").run(backend)?.get::<u32>("sums")
    });
    let sum = |ends: &[u32]| values[ends[0] as usize..ends[1] as usize].iter().fold(0u32, |sum, n| sum.wrapping_add(*n));
    assert_eq!(found, starts.windows(2).map(sum).collect::<Vec<u32>>());

    let program = kernels::histogram();
    let found = everywhere(|backend| Dispatch::new(&program).input("x", &values).over("x").run(backend)?.get::<u32>("bins"));
    assert_eq!(found, (0..16).map(|bin| values.iter().filter(|n| **n % 16 == bin).count() as u32).collect::<Vec<u32>>());

    let program = kernels::scan();
    let found = everywhere(|backend| Dispatch::new(&program).input("x", &values).run(backend)?.get::<u32>("out"));
    let sums = values.chunks(64).flat_map(|block| {
        block.iter().scan(0u32, |sum, n| {
            *sum = sum.wrapping_add(*n);
            Some(*sum)
        })
    });
    assert_eq!(found, sums.collect::<Vec<u32>>());

    let (a, b) = (floats(100, 4), floats(100, 5));
    let program = kernels::matmul();
    let found = everywhere(|backend| {
        let dispatch = Dispatch::new(&program).constant("n", 10u32).input("a", &a).input("b", &b).output_len("c", 100);
        dispatch.grid([2, 2, 1]).run(backend)?.get::<f32>("c")
    });
    for (y, x) in (0..10).flat_map(|y| (0..10).map(move |x| (y, x))) {
        assert_eq!(found[y * 10 + x], (0..10).fold(0.0, |sum, k| sum + a[y * 10 + k] * b[k * 10 + x]));
    }

    let program = kernels::sort_pass();
    let keys = numbers(64, 6);
    let found = everywhere(|backend| {
        let pipeline = backend.compile(&program)?;
        let mut sorted = keys.clone();
        for block in (1..=6).map(|log| 1u32 << log) {
            let mut distance = block / 2;
            while distance > 0 {
                sorted = pipeline.dispatch().input("pass", &[block, distance]).input("keys", &sorted).run()?.get("keys")?;
                distance /= 2;
            }
        }
        Ok(sorted)
    });
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(found, sorted);

    let bodies = floats(4 * 20, 7);
    let program = kernels::n_body();
    let pull = everywhere(|backend| Dispatch::new(&program).input("bodies", &bodies).run(backend)?.get::<f32>("pull"));
    let x = floats(400, 8);
    let program = kernels::softmax();
    let soft =
        everywhere(|backend| Dispatch::new(&program).constant("columns", 40u32).input("x", &x).run(backend)?.get::<f32>("y"));
    for row in soft.chunks(40) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|y| *y >= 0.0));
    }
    // Newton's third law, as far as rounding lets it hold.
    let momentum: f32 = pull.chunks(4).zip(bodies.chunks(4)).map(|(pull, body)| pull[0] * body[3]).sum();
    let largest = pull.chunks(4).zip(bodies.chunks(4)).map(|(pull, body)| (pull[0] * body[3]).abs()).fold(0.0, f32::max);
    assert!(momentum.abs() < largest * 1e-4, "{momentum} of {largest}");
}

/// Published digests.
#[test]
fn sha256_is_sha256() {
    let program = kernels::sha256();
    let words = |message: &[u8]| -> Vec<u32> {
        let mut block = message.to_vec();
        block.push(0x80);
        block.resize(56, 0);
        block.extend((message.len() as u64 * 8).to_be_bytes());
        block.chunks(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    let mut primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    // The cube roots of the first primes, behind the point.
    let roots = primes.by_ref().take(64).map(|prime| {
        let (mut low, mut high) = (0u128, 1u128 << 40);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if middle * middle * middle <= prime << 96 { low = middle } else { high = middle }
        }
        low as u32
    });
    let k: Vec<u32> = roots.collect();
    let blocks = [words(b"abc"), words(b""), words(b"The quick brown fox jumps over the lazy dog")].concat();
    let found = everywhere(|backend| {
        let dispatch = Dispatch::new(&program).input("k", &k).input("blocks", &blocks).output_len("digests", 24);
        dispatch.invocations(3).run(backend)?.get::<u32>("digests")
    });
    let hex = |digest: &[u32]| digest.iter().map(|word| format!("{word:08x}")).collect::<String>();
    let published = [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
    ];
    assert_eq!(found.chunks(8).map(hex).collect::<Vec<String>>(), published);
}
