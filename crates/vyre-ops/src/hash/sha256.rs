//! SHA-256.

use crate::template::in_a_row;
use std::sync::LazyLock;
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};

const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

const START: [u32; 8] = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// SHA-256 of messages of `bytes` bytes each.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `digests` @1 | output u32 | eight words for each message, the first word of the digest first |
///
/// Launch: an invocation for each message. The 64 rounds are written out, so that the message schedule is 16 variables: the language
/// has no arrays but buffers.
#[must_use]
pub fn sha256(workgroup: [u32; 3], bytes: u32) -> Program {
    let hash = |n: usize| format!("h{n}");
    let mut nodes: Vec<Node> = START.iter().enumerate().map(|(n, word)| Node::let_bind(hash(n), Expr::u32(*word))).collect();
    nodes.push(Node::let_bind("start", Expr::mul(Expr::gid_x(), Expr::u32(bytes))));
    nodes.push(Node::loop_for("block", Expr::u32(0), Expr::u32(blocks(bytes)), block(bytes)));
    for n in 0..8 {
        let place = Expr::add(Expr::mul(Expr::gid_x(), Expr::u32(8)), Expr::u32(n));
        nodes.push(Node::store("digests", place, Expr::var(hash(n as usize))));
    }
    let buffers = vec![BufferDecl::read("messages", 0, DataType::U8), BufferDecl::output("digests", 1, DataType::U32)];
    let records = Expr::div(Expr::buf_len("digests"), Expr::u32(8));
    let body = vec![Node::if_then(Expr::lt(Expr::gid_x(), records), nodes)];
    Program::wrapped(buffers, [in_a_row(workgroup), 1, 1], body).with_name("sha256")
}

/// Blocks of 64 bytes that a message takes with the bit behind it and its length.
const fn blocks(bytes: u32) -> u32 {
    (bytes as u64 + 9).div_ceil(64) as u32
}

/// One block: its words, the rounds over them, and what they add to the hash.
fn block(bytes: u32) -> Vec<Node> {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let word = |n: usize| Expr::var(format!("w{}", n % 16));
    let mut nodes: Vec<Node> = (0..16).flat_map(|n| load_word(bytes, n)).collect();
    nodes.extend((0..8).map(|n| Node::let_bind(NAMES[n], Expr::var(format!("h{n}")))));
    let sum = |terms: Vec<Expr>| terms.into_iter().reduce(Expr::add).unwrap_or_else(|| Expr::u32(0));
    let rotations = |of: &Expr, by: [u32; 3]| {
        by.map(|n| Expr::rotr(of.clone(), Expr::u32(n))).into_iter().reduce(Expr::bitxor).unwrap_or_else(|| Expr::u32(0))
    };
    let mixed = |of: Expr, by: [u32; 2], shift: u32| {
        let [one, other] = by.map(|n| Expr::rotr(of.clone(), Expr::u32(n)));
        Expr::bitxor(Expr::bitxor(one, other), Expr::shr(of, Expr::u32(shift)))
    };
    for round in 0..64 {
        if round >= 16 {
            let terms =
                vec![word(round), mixed(word(round + 1), [7, 18], 3), word(round + 9), mixed(word(round + 14), [17, 19], 10)];
            nodes.push(Node::assign(format!("w{}", round % 16), sum(terms)));
        }
        // Names move instead of values: what is `h` in this round is `a` in the next.
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|n| Expr::var(NAMES[(n + 64 - round) % 8]));
        let choice = Expr::bitxor(g.clone(), Expr::bitand(e.clone(), Expr::bitxor(f, g)));
        let majority = Expr::bitor(Expr::bitand(a.clone(), b.clone()), Expr::bitand(c, Expr::bitor(a.clone(), b)));
        let (next_e, next_a) = (NAMES[(3 + 64 - round) % 8], NAMES[(7 + 64 - round) % 8]);
        nodes.push(Node::assign(next_a, sum(vec![h, rotations(&e, [6, 11, 25]), choice, Expr::u32(ROUNDS[round]), word(round)])));
        nodes.push(Node::assign(next_e, Expr::add(d, Expr::var(next_a))));
        nodes.push(Node::assign(next_a, sum(vec![Expr::var(next_a), rotations(&a, [2, 13, 22]), majority])));
    }
    nodes.extend((0..8).map(|n| {
        let name = format!("h{n}");
        Node::assign(name.clone(), Expr::add(Expr::var(name), Expr::var(NAMES[n])))
    }));
    nodes
}

/// Word `n` of a block: from the message, or where that ends, from what comes behind it.
fn load_word(bytes: u32, n: u32) -> Vec<Node> {
    let name = format!("w{n}");
    // Where the word is in the message.
    let at = || Expr::add(Expr::mul(Expr::var("block"), Expr::u32(64)), Expr::u32(n * 4));
    let byte = |k: u32| {
        let index = Expr::add(Expr::add(Expr::var("start"), at()), Expr::u32(k));
        Expr::shl(Expr::load("messages", index), Expr::u32(24 - k * 8))
    };
    let join = |parts: Vec<Expr>| parts.into_iter().reduce(Expr::bitor).unwrap_or_else(|| Expr::u32(0));
    let whole = bytes / 4 * 4;
    let last_block = Expr::eq(Expr::var("block"), Expr::u32(blocks(bytes) - 1));
    let length = u64::from(bytes) * 8;
    let behind = match n {
        14 => Some((length >> 32) as u32),
        15 => Some(length as u32),
        _ => None,
    };
    let mut nodes = vec![Node::let_bind(name.clone(), Expr::u32(0))];
    let in_message = vec![Node::assign(name.clone(), join((0..4).map(byte).collect()))];
    let mut rest = Vec::new();
    if n == bytes / 4 % 16 {
        // The message ends in such a word, or right before it.
        let cut_off = join((0..bytes % 4).map(byte).chain([Expr::u32(0x80 << (24 - bytes % 4 * 8))]).collect());
        rest.push(Node::if_then(Expr::eq(at(), Expr::u32(whole)), vec![Node::assign(name.clone(), cut_off)]));
    }
    nodes.push(Node::if_then_else(Expr::lt(at(), Expr::u32(whole)), in_message, rest));
    if let Some(length) = behind {
        nodes.push(Node::if_then(last_block, vec![Node::assign(name, Expr::u32(length))]));
    }
    nodes
}

/// The first 32 bits behind the point of the cube roots of the first 64 primes, and of the square roots of the first eight.
static ROOTS: LazyLock<(Vec<u32>, [u32; 8])> = LazyLock::new(|| {
    let primes: Vec<u128> = (2..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    (primes.iter().map(|p| root(*p << 96, 3) as u32).collect(), std::array::from_fn(|n| root(primes[n] << 64, 2) as u32))
});

/// SHA-256 of a message, with constants that are worked out from the primes.
#[must_use]
pub fn sha256_on_cpu(message: &[u8]) -> [u32; 8] {
    let (rounds, mut hash) = (&ROOTS.0, ROOTS.1);
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).div_ceil(64) * 64 - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut w: Vec<u32> = block.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        for t in 16..64 {
            let low = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ w[t - 15] >> 3;
            let high = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ w[t - 2] >> 10;
            w.push(w[t - 16].wrapping_add(low).wrapping_add(w[t - 7]).wrapping_add(high));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = hash;
        for (k, w) in rounds.iter().zip(w) {
            let first = h
                .wrapping_add(e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
                .wrapping_add(e & f ^ !e & g)
                .wrapping_add(*k)
                .wrapping_add(w);
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (sum, part) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(part);
        }
    }
    hash
}

/// The largest number whose power is not above `of`, found bit by bit.
fn root(of: u128, power: u32) -> u128 {
    (0..42).rev().fold(0, |root, bit| {
        let more = root | 1 << bit;
        if u128::checked_pow(more, power).is_some_and(|it| it <= of) { more } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(message: &[u8]) -> String {
        sha256_on_cpu(message).iter().map(|word| format!("{word:08x}")).collect()
    }

    /// The examples of FIPS 180 and of NIST's pages about it.
    #[test]
    fn published_values() {
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(digest(two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        assert_eq!(digest(&[b'a'; 1_000_000]), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }

    /// The kernel has them as they are printed in the standard.
    #[test]
    fn constants_are_roots_of_primes() {
        assert_eq!((ROUNDS.to_vec(), START), *ROOTS);
    }
}
