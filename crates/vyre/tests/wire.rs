//! The wire form against bytes that nobody meant: what is decoded at all is what an encoder would have written.

mod rng;

use rng::Rng;
use vyre::ir::{BufferDecl, DataType, Expr, Node, Program, Scalar, SpecValue};
use vyre::spec::ErrorCode;
use vyre::wire::{from_wire, to_wire};
use vyre_smith::generate::{Preset, dna, generate};

/// Decodes; whatever is accepted must encode to the same bytes.
fn refused_or_equal(bytes: &[u8], what: &str) -> bool {
    match from_wire(bytes) {
        Ok(program) => {
            let again = to_wire(&program).unwrap_or_else(|error| panic!("{what}: decodes but does not encode: {error}"));
            assert!(again == bytes, "{what}: decodes to a program that has other bytes\n{program}");
            true
        }
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{what}: {error} is past the end");
            false
        }
    }
}

/// A program with this number.
fn program(number: u64) -> Program {
    generate(Preset::mixed(number), &dna(1, number)).program
}

/// Puts the right checksum behind changed bytes, so that decoding goes on to what they mean.
fn reseal(bytes: &mut [u8]) {
    let head = bytes.len() - 32;
    let hash = vyre::wire::checksum(&bytes[..head]);
    bytes[head..].copy_from_slice(&hash);
}

#[test]
fn every_changed_byte_of_a_thousand_programs_is_refused_or_equal() {
    let mut rng = Rng(1);
    for number in 0..1000 {
        let original = to_wire(&program(number)).expect("a valid program");
        for at in 0..original.len() {
            let mut bytes = original.clone();
            bytes[at] ^= 1 + rng.below(255) as u8;
            assert!(!refused_or_equal(&bytes, "changed"), "a changed byte kept its checksum");
            if at < original.len() - 32 {
                reseal(&mut bytes);
                refused_or_equal(&bytes, &format!("program {number}, byte {at}"));
            }
        }
    }
}

#[test]
fn bytes_cut_off_added_and_exchanged_are_refused_or_equal() {
    let mut rng = Rng(2);
    for number in 0..2000 {
        let original = to_wire(&program(number)).expect("a valid program");
        let inside = original.len() - 32;
        for _ in 0..20 {
            let mut bytes = original.clone();
            match rng.below(4) {
                0 => bytes.truncate(rng.below(bytes.len())),
                1 => drop(bytes.drain(6 + rng.below(inside - 6)..inside).next()),
                2 => bytes.insert(rng.below(inside), rng.next() as u8),
                _ => {
                    let (a, b) = (rng.below(inside), rng.below(inside));
                    bytes.swap(a, b);
                }
            }
            if bytes.len() > 32 {
                reseal(&mut bytes);
            }
            refused_or_equal(&bytes, &format!("program {number}"));
        }
    }
}

#[test]
fn random_bytes_are_refused() {
    let mut rng = Rng(3);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..rng.below(200)).map(|_| rng.next() as u8).collect();
        if rng.below(2) == 0 && bytes.len() > 40 {
            bytes[..6].copy_from_slice(b"vyre\x01\x00");
            reseal(&mut bytes);
        }
        refused_or_equal(&bytes, "random");
    }
}

/// A file that claims huge lengths must not reserve memory for them: this would abort the process.
#[test]
fn huge_lengths_are_refused_before_anything_is_reserved() {
    let program = Program::wrapped(vec![], [1, 1, 1], vec![Node::Return]);
    let original = to_wire(&program).expect("a valid program");
    for at in 6..original.len() - 32 {
        for huge in [&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F][..], &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]] {
            let mut bytes = original.clone();
            bytes.splice(at..at + 1, huge.iter().copied());
            reseal(&mut bytes);
            refused_or_equal(&bytes, &format!("byte {at}"));
        }
    }
}

/// A file with this body section.
fn with_body(body: &[u8]) -> Vec<u8> {
    let original = to_wire(&Program::default()).expect("a valid program");
    // Up to the number of the section that has the body.
    let at = original.windows(5).rposition(|bytes| bytes[0] == 4 && bytes[2..] == [0; 3]).expect("it has a body");
    let mut bytes = original[..=at].to_vec();
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&[0; 32]);
    reseal(&mut bytes);
    bytes
}

/// Bodies in bodies that each claim all that follows. A length by itself gets little; one that begins with statements is believed,
/// but what is promised is reserved once, whoever promises it again.
#[test]
fn lengths_that_lie_get_little_and_all_of_them_together_no_more_than_the_file_has_bytes() {
    let size = 1 << 20;
    for statements in [0, 1, 63, 100] {
        let mut body = vec![1];
        for _ in 0..200 {
            body.push(0x0D);
            leb128(size - body.len() - 4, &mut body);
            // `return`, as statements before the next block.
            body.resize(body.len() + statements, 0x0A);
        }
        body.resize(size, 0xEE);
        let bytes = with_body(&body);
        let mut refused = None;
        let allocated = allocation_counter::measure(|| refused = from_wire(&bytes).err());
        assert_eq!(refused.map(|error| error.code), Some(ErrorCode::E0603));
        // A statement takes 32 bytes, and a byte of the file may be one.
        let limit = if statements < 64 { 1 << 20 } else { 32 * bytes.len() as u64 };
        assert!(allocated.bytes_max <= limit, "{} bytes where each has {statements} statements", allocated.bytes_max);
    }
}

/// The statements of one byte are those that take most memory for their bytes.
#[test]
fn decoding_takes_room_for_what_there_is() {
    // A little more than a power of two, where room for twice as many would be the most.
    let count = (1 << 16) + 100;
    let mut body = Vec::new();
    leb128(count, &mut body);
    body.resize(body.len() + count, 0x0A);
    let bytes = with_body(&body);
    let mut decoded = None;
    let allocated = allocation_counter::measure(|| decoded = from_wire(&bytes).ok());
    assert_eq!(decoded.map(|program| program.walk().count()), Some(count));
    let limit = size_of::<Node>() * bytes.len() * 65 / 64;
    assert!(allocated.bytes_max <= limit as u64, "{} bytes for {}", allocated.bytes_max, bytes.len());
}

fn leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[test]
fn other_versions_are_refused_by_name() {
    let mut bytes = to_wire(&Program::default()).expect("a valid program");
    for version in [0u16, 2, 7, u16::MAX] {
        bytes[4..6].copy_from_slice(&version.to_le_bytes());
        reseal(&mut bytes);
        let error = from_wire(&bytes).expect_err("another version");
        assert_eq!((error.code, error.offset), (ErrorCode::E0602, 4));
        assert!(error.reason.contains(&format!("version {version}")), "{error}");
    }
}

#[test]
fn raw_programs_and_described_types_have_a_wire_form() {
    let nested = DataType::SparseBsr {
        element: Box::new(DataType::TensorShaped {
            element: Box::new(DataType::vector(Scalar::F32, 9)),
            shape: [1, 2, 3].into_iter().collect(),
        }),
        block_rows: 4,
        block_cols: u32::MAX,
    };
    let raw = Program::new(
        vec![BufferDecl::output("out", u32::MAX, nested).with_count("n"), BufferDecl::workgroup("", DataType::NF4)],
        [0, u32::MAX, 1],
        vec![Node::store("out", Expr::vector([]), Expr::extract(Expr::f64(-0.0), 200)), Node::Return],
    );
    let bytes = to_wire(&raw).expect("it is not deep");
    assert!(from_wire(&bytes).expect("what was encoded decodes") == raw);
    assert!(raw.validated().is_err());
}

#[test]
fn programs_nested_too_deep_are_refused_on_both_sides() {
    let deep = |depth: usize| (0..depth).fold(vec![Node::Return], |body, _| vec![Node::block(body)]);
    let fits = Program::new(vec![], [1, 1, 1], deep(255));
    assert!(from_wire(&to_wire(&fits).expect("256 deep is fine")).expect("and decodes") == fits);
    let too_deep = Program::new(vec![], [1, 1, 1], deep(256));
    assert_eq!(to_wire(&too_deep).expect_err("too deep").code, ErrorCode::E0607);
    // What `to_wire` would have written.
    let mut bytes = b"vyre\x01\x00".to_vec();
    bytes.extend_from_slice(too_deep.wire_body());
    bytes.extend_from_slice(&[0; 32]);
    reseal(&mut bytes);
    assert_eq!(from_wire(&bytes).expect_err("too deep").code, ErrorCode::E0607);
}

#[test]
fn types_nested_too_deep_are_refused_on_both_sides() {
    let deep = |levels: usize| (1..levels).fold(DataType::U8, |element, _| DataType::SparseCsr { element: Box::new(element) });
    let as_element = |levels| Program::wrapped(vec![BufferDecl::read("a", 0, deep(levels))], [1, 1, 1], vec![]);
    let as_constant = |levels| Program::default().with_const("T", SpecValue::DType(deep(levels)));
    for (fits, too_deep) in [(as_element(256), as_element(257)), (as_constant(256), as_constant(257))] {
        assert!(from_wire(&to_wire(&fits).expect("256 deep is fine")).expect("and decodes") == fits);
        assert_eq!(to_wire(&too_deep).expect_err("too deep").code, ErrorCode::E0607);
        let mut bytes = b"vyre\x01\x00".to_vec();
        bytes.extend_from_slice(too_deep.wire_body());
        bytes.extend_from_slice(&[0; 32]);
        reseal(&mut bytes);
        assert_eq!(from_wire(&bytes).expect_err("too deep").code, ErrorCode::E0607);
    }
}
