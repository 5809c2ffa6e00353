//! Cases and outcomes as bytes, for the channel between a judge and its worker.
//!
//! A frame is its length as a u32 and that many bytes. The judge sends batches of cases; the worker greets once and then sends one
//! frame per case, so that the judge knows which case a process died of. A program that is the same as in the case before is not
//! sent again, and is then the same shared program in the worker too, with its proof of validity.
//!
//! Numbers are little-endian and of fixed width; bytes and lists are preceded by their length. The decoder names the byte at which it
//! stopped, never panics, and allocates no more than a small multiple of what it is given.

use crate::subject::{Case, Failure, Outputs};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;
use vyre_foundation::ir::{F32Bits, Program, SpecValue};
use vyre_foundation::launch::LaunchConfig;
use vyre_foundation::text::parse_data_type;
use vyre_foundation::wire::{WireError, from_wire, to_wire};

/// What a worker says first; judge and worker of different protocols do not talk.
const GREETING: &[u8; 14] = b"vyre-worker  1";

/// Why bytes are not what they should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// The byte at which decoding stopped.
    pub offset: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for io::Error {
    fn from(error: DecodeError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Writes one frame at once.
pub(crate) fn write_frame(out: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(|_| io::Error::other("a frame of more than 4 GiB"))?;
    let mut bytes = Vec::with_capacity(4 + content.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(content);
    out.write_all(&bytes)?;
    out.flush()
}

/// The next frame, or `None` at the end. Memory grows with what arrives, not with what the length promises.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut have = 0;
    while have < length.len() {
        match input.read(&mut length[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(length);
    let mut content = Vec::with_capacity((length as usize).min(1 << 16));
    input.take(u64::from(length)).read_to_end(&mut content)?;
    if content.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(content))
}

/// What a worker says first: which subject it is.
pub(crate) fn encode_greeting(subject: &str) -> Vec<u8> {
    let mut out = Encoder(GREETING.to_vec());
    out.text(subject);
    out.0
}

/// The subject that a worker says it is.
pub(crate) fn decode_greeting(bytes: &[u8]) -> Result<String, DecodeError> {
    let mut input = Decoder { bytes, at: 0 };
    if input.take(GREETING.len())? != GREETING {
        return Err(DecodeError { offset: 0, reason: "this is no worker of this version".into() });
    }
    let name = input.text()?;
    input.end()?;
    Ok(name)
}

/// A batch of cases. A program that is nested too deep has no bytes.
pub fn encode_batch<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Result<Vec<u8>, WireError> {
    let mut out = Encoder(Vec::new());
    let mut before: Option<&Program> = None;
    for case in cases {
        out.case(case, before)?;
        before = Some(&case.program);
    }
    Ok(out.0)
}

/// The cases of a batch.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Case>, DecodeError> {
    let mut input = Decoder { bytes, at: 0 };
    let mut cases: Vec<Case> = Vec::new();
    while input.at < bytes.len() {
        let case = input.case(cases.last().map(|case| &case.program))?;
        cases.push(case);
    }
    Ok(cases)
}

/// What came of the case with this number in its batch.
pub fn encode_outcome(number: u32, outcome: &Result<Outputs, Failure>) -> Vec<u8> {
    let mut out = Encoder(Vec::new());
    out.u32(number);
    out.outcome(outcome);
    out.0
}

/// The number of a case in its batch and what came of it.
pub fn decode_outcome(bytes: &[u8]) -> Result<(u32, Result<Outputs, Failure>), DecodeError> {
    let mut input = Decoder { bytes, at: 0 };
    let number = input.u32()?;
    let outcome = input.outcome()?;
    input.end()?;
    Ok((number, outcome))
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn lists(&mut self, lists: &[Vec<u8>]) {
        self.u64(lists.len() as u64);
        lists.iter().for_each(|bytes| self.bytes(bytes));
    }

    fn triple(&mut self, triple: Option<[u32; 3]>) {
        self.byte(u8::from(triple.is_some()));
        triple.into_iter().flatten().for_each(|value| self.u32(value));
    }

    fn case(&mut self, case: &Case, before: Option<&Program>) -> Result<(), WireError> {
        if before == Some(&case.program) {
            self.byte(0);
        } else {
            self.byte(1);
            self.bytes(&to_wire(&case.program)?);
        }
        self.lists(&case.inputs);
        self.triple(case.launch.grid);
        self.triple(case.launch.workgroup_override);
        self.u64(case.launch.output_counts.len() as u64);
        for (name, count) in &case.launch.output_counts {
            self.text(name);
            self.u32(*count);
        }
        self.u64(case.launch.max_output_bytes);
        self.u64(case.specialization.len() as u64);
        for (name, value) in &case.specialization {
            self.text(name);
            self.spec_value(value);
        }
        self.u64(case.fuel);
        Ok(())
    }

    fn spec_value(&mut self, value: &SpecValue) {
        let (tag, bits) = match value {
            SpecValue::U32(value) => (0, *value),
            SpecValue::I32(value) => (1, *value as u32),
            SpecValue::F32(value) => (2, F32Bits::from(*value).bits()),
            SpecValue::Bool(value) => (3, u32::from(*value)),
            SpecValue::DType(data_type) => {
                self.byte(4);
                return self.text(&data_type.to_string());
            }
        };
        self.byte(tag);
        self.u32(bits);
    }

    fn outcome(&mut self, outcome: &Result<Outputs, Failure>) {
        let (tag, text) = match outcome {
            Ok(outputs) => {
                self.byte(0);
                return self.lists(outputs);
            }
            Err(Failure::Trap { tag, invocation }) => {
                self.byte(1);
                self.u32(*tag);
                return invocation.iter().for_each(|id| self.u32(*id));
            }
            Err(Failure::OutOfFuel) => return self.byte(2),
            Err(Failure::Hung(time)) => {
                self.byte(3);
                self.u64(time.as_secs());
                return self.u32(time.subsec_nanos());
            }
            Err(Failure::Refused(text)) => (4, text),
            Err(Failure::Unsupported(text)) => (5, text),
            Err(Failure::Panicked(text)) => (6, text),
            Err(Failure::Crashed(text)) => (7, text),
            Err(Failure::Device(text)) => (8, text),
            Err(Failure::NotRun(text)) => (9, text),
        };
        self.byte(tag);
        self.text(text);
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    fn wrong<T>(&self, reason: impl Into<String>) -> Result<T, DecodeError> {
        Err(DecodeError { offset: self.at, reason: reason.into() })
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { self.wrong("there are more bytes than there should be") }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some(taken) = self.bytes[self.at..].get(..length) else {
            return self.wrong(format!("{length} bytes are needed, and {} are left", self.bytes.len() - self.at));
        };
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length. Whether there is as much is seen by whoever reads it.
    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = self.u64()?;
        usize::try_from(length).or_else(|_| self.wrong(format!("a length of {length}")))
    }

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let bytes = self.bytes()?;
        match str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => self.wrong("this is no UTF-8"),
        }
    }

    fn lists(&mut self) -> Result<Vec<Vec<u8>>, DecodeError> {
        // Each takes the eight bytes of its length at least; a `Vec` takes 24.
        let count = self.length()?;
        let mut lists = Vec::with_capacity(count.min((self.bytes.len() - self.at) / 8));
        for _ in 0..count {
            lists.push(self.bytes()?.to_vec());
        }
        Ok(lists)
    }

    fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => self.wrong(format!("a flag that is {other}")),
        }
    }

    fn triple(&mut self) -> Result<Option<[u32; 3]>, DecodeError> {
        Ok(if self.flag()? { Some([self.u32()?, self.u32()?, self.u32()?]) } else { None })
    }

    fn case(&mut self, before: Option<&Program>) -> Result<Case, DecodeError> {
        let program = if self.flag()? {
            let start = self.at + 8;
            from_wire(self.bytes()?)
                .map_err(|error| DecodeError { offset: start.saturating_add(error.offset), reason: error.reason })?
        } else {
            match before {
                Some(program) => program.clone(),
                None => return self.wrong("the program of the case before, and there is none"),
            }
        };
        let inputs = self.lists()?;
        let (grid, workgroup_override) = (self.triple()?, self.triple()?);
        let mut output_counts = BTreeMap::new();
        for _ in 0..self.length()? {
            output_counts.insert(self.text()?, self.u32()?);
        }
        let max_output_bytes = self.u64()?;
        let mut specialization = BTreeMap::new();
        for _ in 0..self.length()? {
            specialization.insert(self.text()?, self.spec_value()?);
        }
        let fuel = self.u64()?;
        let launch = LaunchConfig { grid, workgroup_override, output_counts, max_output_bytes };
        Ok(Case { program, inputs, launch, specialization, fuel })
    }

    fn spec_value(&mut self) -> Result<SpecValue, DecodeError> {
        Ok(match self.byte()? {
            0 => SpecValue::U32(self.u32()?),
            1 => SpecValue::I32(self.u32()? as i32),
            2 => SpecValue::F32(f32::from_bits(self.u32()?)),
            3 => SpecValue::Bool(self.u32()? != 0),
            4 => {
                let name = self.text()?;
                match parse_data_type(&name) {
                    Some(data_type) => SpecValue::DType(data_type),
                    None => return self.wrong(format!("there is no type `{name}`")),
                }
            }
            other => return self.wrong(format!("a constant of kind {other}")),
        })
    }

    fn outcome(&mut self) -> Result<Result<Outputs, Failure>, DecodeError> {
        Ok(Err(match self.byte()? {
            0 => return Ok(Ok(self.lists()?)),
            1 => Failure::Trap { tag: self.u32()?, invocation: [self.u32()?, self.u32()?, self.u32()?] },
            2 => Failure::OutOfFuel,
            3 => {
                let (seconds, nanoseconds) = (self.u64()?, self.u32()?);
                if nanoseconds >= 1_000_000_000 {
                    return self.wrong("more nanoseconds than a second has");
                }
                Failure::Hung(Duration::new(seconds, nanoseconds))
            }
            4 => Failure::Refused(self.text()?),
            5 => Failure::Unsupported(self.text()?),
            6 => Failure::Panicked(self.text()?),
            7 => Failure::Crashed(self.text()?),
            8 => Failure::Device(self.text()?),
            9 => Failure::NotRun(self.text()?),
            other => return self.wrong(format!("an outcome of kind {other}")),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_foundation::text::parse;

    fn cases() -> Vec<Case> {
        let text = "program p {
  workgroup 4
  const scale: u32 = 3
  const half: f32 = 0.5
  const element: dtype = f32
  buffer x: read element @0
  buffer out: output f32 @1
  if gid.x < len(out) {
    out[gid.x] = x[gid.x] * half + f32(scale)
  }
}";
        let program = parse("p.vyre", text).expect("it is a program");
        let mut first = Case::new(program, vec![vec![0, 0, 128, 63], vec![]]);
        first.launch.grid = Some([2, 3, 4]);
        first.launch.output_counts.insert("out".into(), 7);
        first.specialization = BTreeMap::from([
            ("scale".into(), SpecValue::U32(u32::MAX)),
            ("half".into(), SpecValue::F32(-0.0)),
            ("element".into(), SpecValue::DType(vyre_foundation::ir::DataType::F16)),
            ("yes".into(), SpecValue::Bool(true)),
            ("minus".into(), SpecValue::I32(-1)),
        ]);
        let second = Case { inputs: vec![vec![1; 100]], fuel: 3, ..first.clone() };
        let mut third = Case::new(Program::default(), Vec::new());
        third.launch.workgroup_override = Some([1, 1, 2]);
        third.launch.max_output_bytes = 0;
        vec![first, second, third]
    }

    fn outcomes() -> Vec<Result<Outputs, Failure>> {
        let mut outcomes = vec![
            Ok(vec![]),
            Ok(vec![vec![], vec![1, 2, 3]]),
            Err(Failure::Trap { tag: 7, invocation: [1, 2, 3] }),
            Err(Failure::OutOfFuel),
            Err(Failure::Hung(Duration::new(3, 999_999_999))),
        ];
        let with_text =
            [Failure::Refused, Failure::Unsupported, Failure::Panicked, Failure::Crashed, Failure::Device, Failure::NotRun];
        outcomes.extend(with_text.map(|failure| Err(failure("why — so".into()))));
        outcomes
    }

    #[test]
    fn batches_come_back_as_they_were() {
        let cases = cases();
        let bytes = encode_batch(&cases).expect("they are not deep");
        let back = decode_batch(&bytes).expect("they decode");
        assert_eq!(back, cases);
        // By bits, which `==` on floats does not tell.
        assert!(matches!(back[0].specialization["half"], SpecValue::F32(value) if value.to_bits() == 0x8000_0000));
    }

    #[test]
    fn a_program_is_sent_once_for_all_its_inputs() {
        let mut case = cases().swap_remove(0);
        let one = encode_batch([&case]).expect("it is not deep").len();
        case.inputs.clear();
        let without = encode_batch([&case]).expect("it is not deep").len();
        let two = encode_batch([&case, &case]).expect("it is not deep").len();
        let program = to_wire(&case.program).expect("it is not deep").len();
        assert!(two < 2 * without - program, "{one} {without} {two} {program}");
    }

    #[test]
    fn outcomes_come_back_as_they_were() {
        for (number, outcome) in outcomes().into_iter().enumerate() {
            let bytes = encode_outcome(number as u32, &outcome);
            assert_eq!(decode_outcome(&bytes), Ok((number as u32, outcome)));
        }
    }

    /// Every prefix, and every byte replaced by several others: an error or other content, and never a panic.
    #[test]
    fn damaged_bytes_never_panic() {
        let batch = encode_batch(&cases()).expect("they are not deep");
        assert!(decode_batch(&batch[..batch.len() - 1]).is_err());
        let damage = |bytes: &[u8], decode: &dyn Fn(&[u8])| {
            for end in 0..bytes.len() {
                decode(&bytes[..end]);
            }
            let mut damaged = bytes.to_vec();
            for at in 0..bytes.len() {
                for value in [0, 1, 4, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
                    damaged[at] = value;
                    decode(&damaged);
                }
                damaged[at] = bytes[at];
            }
        };
        damage(&batch, &|bytes| drop(decode_batch(bytes)));
        for outcome in outcomes() {
            damage(&encode_outcome(1, &outcome), &|bytes| drop(decode_outcome(bytes)));
        }
        damage(&encode_greeting("bulk"), &|bytes| drop(decode_greeting(bytes)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let batch = encode_batch(&cases()).expect("they are not deep");
        let mut changed = batch.clone();
        changed[40] ^= 1;
        let error = decode_batch(&changed).expect_err("the program has a checksum");
        assert!(error.reason.contains("checksum"), "{error}");
        assert_eq!(decode_outcome(&[0, 0, 0, 0, 77]).map_err(|error| error.offset), Err(5));
        let mut long = encode_outcome(0, &Ok(vec![]));
        long.push(0);
        assert!(decode_outcome(&long).is_err());
        // A length that no memory holds.
        assert!(decode_outcome(&[0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 127]).is_err());
    }

    #[test]
    fn frames_end_where_they_say() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"one").expect("memory takes it");
        write_frame(&mut bytes, b"").expect("memory takes it");
        let mut input = bytes.as_slice();
        assert_eq!(read_frame(&mut input).expect("a frame").as_deref(), Some(&b"one"[..]));
        assert_eq!(read_frame(&mut input).expect("a frame").as_deref(), Some(&b""[..]));
        assert!(read_frame(&mut input).expect("the end").is_none());
        assert!(read_frame(&mut &bytes[..2]).is_err());
        assert!(read_frame(&mut &bytes[..5]).is_err());
        assert!(read_frame(&mut &[255, 255, 255, 255, 1][..]).is_err());
    }
}
