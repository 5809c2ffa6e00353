//! Compositions over text.

mod support;

use support::{Case, Grids, LENGTHS, Random, agrees, u32s};
use vyre_ops::text::{
    base64_decode, base64_decode_on_cpu, base64_encode, base64_encode_on_cpu, dfa_matches, dfa_matches_on_cpu, utf8_rest,
    utf8_rest_on_cpu,
};

#[test]
fn base64() {
    let mut random = Random(21);
    for length in LENGTHS {
        let bytes = random.bytes(length);
        let text = base64_encode_on_cpu(&bytes);
        let name = format!("{length} bytes");
        let groups = Grids::Invocations(text.len() / 4);
        let case = Case {
            name: name.clone(),
            counts: vec![("text", text.len())],
            outputs: vec![text.clone()],
            inputs: vec![bytes.clone()],
        };
        agrees(&base64_encode, &groups, &case);
        decodes(name, &text);
        assert_eq!(base64_decode_on_cpu(&text).0[..length], bytes);
    }
    decodes("RFC 4648".into(), b"Zm9vYmE=");
}

fn decodes(name: String, text: &[u8]) {
    let (bytes, status) = base64_decode_on_cpu(text);
    let counts = vec![("bytes", bytes.len())];
    let case = Case { name, inputs: vec![text.to_vec()], outputs: vec![bytes, u32s(&status)], counts };
    agrees(&base64_decode, &Grids::Invocations(text.len().div_ceil(4)), &case);
}

/// Every byte at every place of a group, in the middle and at the end; padding everywhere; lengths that are no multiple of four.
#[test]
fn base64_that_is_wrong() {
    let mut random = Random(22);
    for text in
        [&b"Zg="[..], b"Zh==", b"=", b"====", b"Zm9vZg==Zm9v", b"Zm=v", b"Z===", b"Zm9", b"Zm9vZ", b"Zm9vZm9v=", b"Zm8=", b"Zm9="]
    {
        decodes(String::from_utf8_lossy(text).into_owned(), text);
    }
    for place in 0..8 {
        let mut text = Vec::new();
        for byte in 0..=255 {
            let mut groups = *b"Zm9vYmFy";
            groups[place] = byte;
            text.extend(groups);
        }
        decodes(format!("every byte at {place}"), &text);
        for _ in 0..8 {
            let mut last = *b"Zm9vYmFy";
            last[place] = b"=+/AZaz09-@[`{ \n"[random.below(16) as usize];
            last[7] = b"=ykA"[random.below(4) as usize];
            decodes(format!("{place}"), &last);
        }
    }
}

fn validates(name: String, text: &[u8]) {
    let rest = utf8_rest_on_cpu(text);
    let case = Case { name, inputs: vec![text.to_vec()], outputs: vec![u32s(&[rest])], ..Case::default() };
    agrees(&utf8_rest, &Grids::Any, &case);
}

#[test]
fn utf8() {
    let text = "Die Grüße, naïve café: Ελλάδα, 日本語, 𝄞🦀 — ok. ";
    for length in 0..text.len() {
        validates(format!("{length} bytes"), &text.as_bytes()[..length]);
    }
    // From the tests of Kuhn: surrogates, overlong, past the last, stray and missing.
    let wrong: [&[u8]; 22] = [
        b"\xC0\x80",
        b"\xC1\xBF",
        b"\xE0\x80\x80",
        b"\xE0\x9F\xBF",
        b"\xE0\xA0\x80",
        b"\xED\x9F\xBF",
        b"\xED\xA0\x80",
        b"\xED\xBF\xBF",
        b"\xEE\x80\x80",
        b"\xF0\x8F\xBF\xBF",
        b"\xF0\x90\x80\x80",
        b"\xF4\x8F\xBF\xBF",
        b"\xF4\x90\x80\x80",
        b"\xF5\x80\x80\x80",
        b"\xFF",
        b"\x80",
        b"a\xBFb",
        b"\xC3\x28",
        b"\xE2\x82",
        b"\xE2\x28\xA1",
        b"\xF0\x9F\xA6",
        b"\xE2\x82\xAC\xAC",
    ];
    for bytes in wrong {
        validates(format!("{bytes:x?}"), bytes);
        validates(format!("{bytes:x?} in between"), &[b"ok ", bytes, " 🦀".as_bytes()].concat());
    }
    // Characters one after the other, with one byte changed.
    let mut random = Random(23);
    for length in [64, 257, 1000] {
        let mut text = String::new();
        while text.len() < length {
            let bits = [7, 11, 16, 21][random.below(4) as usize];
            text.extend(char::from_u32(random.below(1 << bits)));
        }
        validates(format!("{length} bytes and more"), text.as_bytes());
        for _ in 0..6 {
            let mut bytes = text.clone().into_bytes();
            let place = random.below(bytes.len() as u32) as usize;
            bytes[place] = random.u32() as u8;
            validates(format!("{place} changed"), &bytes);
        }
    }
}

/// Three bytes of values at which something changes, in all combinations, and one that continues a character.
#[test]
fn utf8_by_four_bytes() {
    let edges =
        [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF];
    let program = utf8_rest([1, 1, 1]);
    let mut options = vyre::reference::Options::default();
    options.launch.grid = Some([1, 1, 1]);
    for a in edges {
        for b in edges {
            for c in edges {
                let text = [a, b, c, 0x80];
                let found = vyre::reference::run(&program, &[&text], &options).expect("it runs");
                assert_eq!(found, [u32s(&[utf8_rest_on_cpu(&text)])], "{text:x?}");
            }
        }
    }
}

#[test]
fn matches() {
    let mut random = Random(24);
    for (n, length) in LENGTHS.into_iter().enumerate() {
        let states = 1 + n as u32 % 7;
        // Sparse enough for matches to end, and some entries lead to states that there are not.
        let table: Vec<u32> = (0..states * 256)
            .map(|_| if random.below(3) == 0 { 0 } else { random.below(states + 1) | (random.below(4) / 3) << 31 })
            .collect();
        let text = random.bytes(length);
        for longest in [0, 1, 16, 1000] {
            let lengths = dfa_matches_on_cpu(&table, &text, longest);
            let case = Case {
                name: format!("{length} bytes, {states} states, up to {longest}"),
                inputs: vec![u32s(&table), text.clone()],
                outputs: vec![u32s(&lengths)],
                counts: vec![("lengths", length)],
            };
            agrees(&|size| dfa_matches(size, longest), &Grids::Invocations(length), &case);
        }
    }
}
