//! Compositions in which an invocation works alone: hashes and random numbers.

mod support;

use support::{Case, Grids, Random, agrees, bytes, u32s};
use vyre_ops::{hash, random};

const RECORDS: [usize; 5] = [1, 36, 64, 65, 257];
const BYTES: [u32; 13] = [0, 1, 2, 3, 4, 7, 8, 9, 55, 56, 63, 64, 120];

/// Messages of every length in every number.
fn messages(mut with: impl FnMut(u32, usize, Vec<u8>, &mut Random)) {
    let mut random = Random(1);
    for (n, length) in BYTES.into_iter().enumerate() {
        // Every length, and every number of records; all pairs would be many.
        let records = RECORDS[n % RECORDS.len()];
        let messages = random.bytes(records * length as usize);
        with(length, records, messages, &mut random);
    }
}

/// The messages one by one.
fn each(messages: &[u8], length: u32, records: usize) -> impl Iterator<Item = &[u8]> {
    let length = length as usize;
    (0..records).map(move |n| &messages[n * length..][..length])
}

#[test]
fn crc32() {
    messages(|length, records, messages, _| {
        let sums: Vec<u32> = each(&messages, length, records).map(hash::crc32_on_cpu).collect();
        let case = Case {
            name: format!("{length} bytes"),
            outputs: vec![u32s(&sums)],
            inputs: vec![messages],
            counts: vec![("sums", records)],
        };
        agrees(&|size| hash::crc32(size, length), &Grids::Invocations(records), &case);
    });
    let case = Case {
        name: "the check value".into(),
        inputs: vec![b"123456789".to_vec()],
        outputs: vec![u32s(&[0xCBF4_3926])],
        counts: vec![("sums", 1)],
    };
    agrees(&|size| hash::crc32(size, 9), &Grids::Invocations(1), &case);
}

#[test]
fn fnv1a() {
    messages(|length, records, messages, _| {
        let name = format!("{length} bytes");
        let hashes: Vec<u32> = each(&messages, length, records).map(hash::fnv1a_32_on_cpu).collect();
        let wide: Vec<u64> = each(&messages, length, records).map(hash::fnv1a_64_on_cpu).collect();
        let case = Case { name, outputs: vec![u32s(&hashes)], inputs: vec![messages], counts: vec![("hashes", records)] };
        agrees(&|size| hash::fnv1a_32(size, length), &Grids::Invocations(records), &case);
        let case = Case { outputs: vec![bytes(&wide, u64::to_le_bytes)], ..case };
        agrees(&|size| hash::fnv1a_64(size, length), &Grids::Invocations(records), &case);
    });
    let case = Case {
        name: "foobar".into(),
        inputs: vec![b"foobar".to_vec()],
        outputs: vec![u32s(&[0xBF9C_F968])],
        counts: vec![("hashes", 1)],
    };
    agrees(&|size| hash::fnv1a_32(size, 6), &Grids::Invocations(1), &case);
}

#[test]
fn murmur3() {
    messages(|length, records, messages, random| {
        let seeds = random.u32s(records);
        let hashes: Vec<u32> =
            each(&messages, length, records).zip(&seeds).map(|(message, seed)| hash::murmur3_on_cpu(message, *seed)).collect();
        let name = format!("{length} bytes");
        let inputs = vec![messages, u32s(&seeds)];
        let case = Case { name, inputs, outputs: vec![u32s(&hashes)], counts: vec![("hashes", records)] };
        agrees(&|size| hash::murmur3(size, length), &Grids::Invocations(records), &case);
    });
    let case = Case {
        name: "test".into(),
        inputs: vec![b"test".to_vec(), u32s(&[0x9747_B28C])],
        outputs: vec![u32s(&[0x704B_81DC])],
        counts: vec![("hashes", 1)],
    };
    agrees(&|size| hash::murmur3(size, 4), &Grids::Invocations(1), &case);
}

#[test]
fn siphash() {
    messages(|length, records, messages, random| {
        let keys: Vec<u64> = (0..records * 2).map(|_| random.u64()).collect();
        let hashes: Vec<u64> = each(&messages, length, records)
            .zip(keys.chunks_exact(2))
            .map(|(message, key)| hash::siphash_2_4_on_cpu(message, [key[0], key[1]]))
            .collect();
        let name = format!("{length} bytes");
        let inputs = vec![messages, bytes(&keys, u64::to_le_bytes)];
        let case = Case { name, inputs, outputs: vec![bytes(&hashes, u64::to_le_bytes)], counts: vec![("hashes", records)] };
        agrees(&|size| hash::siphash_2_4(size, length), &Grids::Invocations(records), &case);
    });
    let case = Case {
        name: "the example of the paper".into(),
        inputs: vec![(0..15).collect(), (0..16).collect()],
        outputs: vec![0xA129_CA61_49BE_45E5u64.to_le_bytes().to_vec()],
        counts: vec![("hashes", 1)],
    };
    agrees(&|size| hash::siphash_2_4(size, 15), &Grids::Invocations(1), &case);
}

#[test]
fn sha256() {
    messages(|length, records, messages, _| {
        let digests: Vec<u32> = each(&messages, length, records).flat_map(hash::sha256_on_cpu).collect();
        let name = format!("{length} bytes");
        let case = Case { name, outputs: vec![u32s(&digests)], inputs: vec![messages], counts: vec![("digests", records * 8)] };
        agrees(&|size| hash::sha256(size, length), &Grids::Invocations(records), &case);
    });
    let abc = [0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad];
    let case =
        Case { name: "abc".into(), inputs: vec![b"abc".to_vec()], outputs: vec![u32s(&abc)], counts: vec![("digests", 8)] };
    agrees(&|size| hash::sha256(size, 3), &Grids::Invocations(1), &case);
}

#[test]
fn philox() {
    let mut random = Random(2);
    for records in RECORDS {
        let (counters, keys) = (random.u32s(records * 4), random.u32s(records * 2));
        let words: Vec<u32> = counters
            .chunks_exact(4)
            .zip(keys.chunks_exact(2))
            .flat_map(|(c, k)| random::philox_on_cpu([c[0], c[1], c[2], c[3]], [k[0], k[1]]))
            .collect();
        let name = format!("{records} counters");
        let case = Case {
            name,
            inputs: vec![u32s(&counters), u32s(&keys)],
            outputs: vec![u32s(&words)],
            counts: vec![("words", records)],
        };
        agrees(&random::philox, &Grids::Invocations(records), &case);
    }
    let pi = [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344, 0xA409_3822, 0x299F_31D0];
    let case = Case {
        name: "digits of pi".into(),
        inputs: vec![u32s(&pi[..4]), u32s(&pi[4..])],
        outputs: vec![u32s(&[0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1])],
        counts: vec![("words", 1)],
    };
    agrees(&random::philox, &Grids::Invocations(1), &case);
}

#[test]
fn pcg32() {
    let mut random = Random(3);
    for (records, draws) in [(1, 0), (1, 6), (36, 1), (65, 7), (257, 3)] {
        let seeds: Vec<[u64; 2]> = (0..records).map(|_| [random.u64(), random.u64()]).collect();
        let words: Vec<u32> =
            seeds.iter().flat_map(|[seed, stream]| (0..draws).map(|n| random::pcg32_on_cpu(*seed, *stream, n))).collect();
        let column = |n: usize| seeds.iter().flat_map(|seed| seed[n].to_le_bytes()).collect::<Vec<u8>>();
        let case = Case {
            name: format!("{draws} of {records}"),
            inputs: vec![column(0), column(1)],
            outputs: vec![u32s(&words)],
            counts: vec![("words", records * draws as usize)],
        };
        agrees(&|size| random::pcg32(size, draws as u32), &Grids::Invocations(records), &case);
    }
    let case = Case {
        name: "the author's demonstration".into(),
        inputs: vec![42u64.to_le_bytes().to_vec(), 54u64.to_le_bytes().to_vec()],
        outputs: vec![u32s(&[0xA15C_02B7, 0x7B47_F409, 0xBA1D_3330, 0x83D2_F293, 0xBFA4_784B, 0xCBED_606E])],
        counts: vec![("words", 6)],
    };
    agrees(&|size| random::pcg32(size, 6), &Grids::Invocations(1), &case);
}
