//! What crosses one grid barrier, as words of a hidden buffer.
//!
//! First come the words that the invocations of a workgroup share, then those that each has of its own; the same word of
//! neighbours is next to each other:
//!
//! - word `w` of workgroup `g` is element `w * workgroups + g`
//! - word `w` of invocation `i` is element `group_words * workgroups + w * invocations + i`
//!
//! `g` and `i` count with x fastest. If some invocations may be retired, the first word of an invocation is its *fate*: the buffer
//! is zero at the start, and an invocation that reaches the barrier writes [`ALIVE`]. If it may trap, the second word is the tag.
//!
//! A value is one word, two if it has 64 bits (the low one first), or one per component. Bits are kept: a NaN has only one form, and
//! what a canonical program holds is canonical already.

use vyre_foundation::ir::{Axis, Builtin, Expr, Name, Scalar, ValueType};
use vyre_foundation::kernel::VarId;
use vyre_foundation::launch::Launch;

/// The fate of an invocation that reached the barrier; 0 is that of one that returned.
pub(super) const ALIVE: u32 = 1;
/// The fate of an invocation that trapped.
pub(super) const TRAPPED: u32 = 2;

/// What crosses one grid barrier.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Words that each workgroup has once.
    pub group_words: u32,
    /// Words that each invocation has.
    pub invocation_words: u32,
    /// Whether the first word of an invocation says if it is retired.
    pub fates: bool,
    /// Whether its second word is the tag it trapped with.
    pub tags: bool,
    pub(super) slots: Vec<Slot>,
}

/// Where a variable is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub var: VarId,
    pub ty: ValueType,
    pub first: Word,
}

/// A word of the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Group(u32),
    Invocation(u32),
}

/// The word that says what became of an invocation.
pub(super) const FATE: Word = Word::Invocation(0);
/// The tag it trapped with.
pub(super) const TAG: Word = Word::Invocation(1);

impl State {
    pub(super) fn new(fates: bool, tags: bool) -> State {
        State { group_words: 0, invocation_words: u32::from(fates) + u32::from(tags), fates, tags, slots: Vec::new() }
    }

    /// Adds a variable. A program has fewer variables than words can be counted: its nodes are counted by `u32`, and are larger.
    pub(super) fn add(&mut self, var: VarId, ty: ValueType, uniform: bool) {
        let first = if uniform { Word::Group(self.group_words) } else { Word::Invocation(self.invocation_words) };
        *if uniform { &mut self.group_words } else { &mut self.invocation_words } += word_count(ty);
        self.slots.push(Slot { var, ty, first });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.group_words == 0 && self.invocation_words == 0
    }

    /// Elements of the hidden buffer in a dispatch.
    #[must_use]
    pub fn words(&self, launch: &Launch) -> u64 {
        let groups: u64 = launch.grid.iter().map(|groups| u64::from(*groups)).product();
        let shared = groups.saturating_mul(u64::from(self.group_words));
        shared.saturating_add(launch.invocations().saturating_mul(u64::from(self.invocation_words)))
    }

    /// The smallest invocation that trapped, and its tag. `read` gives the bytes of so many words from an element of the buffer.
    pub(super) fn first_trap<E>(
        &self,
        launch: &Launch,
        mut read: impl FnMut(u64, u64) -> Result<Vec<u8>, E>,
    ) -> Result<Option<(u32, [u32; 3])>, E> {
        if !self.tags {
            return Ok(None);
        }
        let invocations = launch.invocations();
        let groups: u64 = launch.grid.iter().map(|groups| u64::from(*groups)).product();
        let start = groups * u64::from(self.group_words);
        let fates = read(start, invocations)?;
        let Some(first) = fates.chunks_exact(4).position(|word| word == TRAPPED.to_le_bytes()) else { return Ok(None) };
        let tag = read(start + invocations + first as u64, 1)?;
        let tag = tag.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let [nx, ny, _]: [u64; 3] =
            std::array::from_fn(|axis| u64::from(launch.grid[axis]) * u64::from(launch.workgroup_size[axis]));
        let first = first as u64;
        // The launch is planned so that every id fits.
        Ok(Some((tag, [first % nx, first / nx % ny, first / nx / ny].map(|id| id as u32))))
    }

    /// The element that a word is, for the invocation that asks.
    pub(super) fn element(&self, word: Word, ids: &Ids) -> Expr {
        let times = |count: u32, of: &Name| (count > 0).then(|| Expr::mul(Expr::u32(count), Expr::var(of)));
        let (own, before) = match word {
            Word::Group(n) => (&ids.group, [times(n, &ids.groups), None]),
            Word::Invocation(n) => (&ids.invocation, [times(self.group_words, &ids.groups), times(n, &ids.invocations)]),
        };
        before.into_iter().flatten().fold(Expr::var(own), Expr::add)
    }

    /// The words of a slot, in order.
    pub(super) fn words_of(slot: &Slot) -> impl Iterator<Item = Word> {
        let first = slot.first;
        (0..word_count(slot.ty)).map(move |n| match first {
            Word::Group(first) => Word::Group(first + n),
            Word::Invocation(first) => Word::Invocation(first + n),
        })
    }
}

/// Names of the variables that hold what elements are counted with.
pub(super) struct Ids {
    /// The invocation, x fastest.
    pub invocation: Name,
    /// How many there are.
    pub invocations: Name,
    /// The workgroup, x fastest.
    pub group: Name,
    /// How many there are.
    pub groups: Name,
}

impl Ids {
    /// The values of the four variables.
    pub fn values(&self) -> [(&Name, Expr); 4] {
        let axes = |id: fn(Axis) -> Builtin| Axis::ALL.map(|axis| Expr::builtin(id(axis)));
        let linear = |[x, y, z]: [Expr; 3], [nx, ny, _]: [Expr; 3]| Expr::add(Expr::mul(Expr::add(Expr::mul(z, ny), y), nx), x);
        let product = |[nx, ny, nz]: [Expr; 3]| Expr::mul(Expr::mul(nx, ny), nz);
        [
            (&self.invocation, linear(axes(Builtin::Invocation), axes(Builtin::InvocationCount))),
            (&self.invocations, product(axes(Builtin::InvocationCount))),
            (&self.group, linear(axes(Builtin::Workgroup), axes(Builtin::WorkgroupCount))),
            (&self.groups, product(axes(Builtin::WorkgroupCount))),
        ]
    }
}

fn word_count(ty: ValueType) -> u32 {
    match ty {
        ValueType::Scalar(scalar) => u32::from(is_wide(scalar)) + 1,
        ValueType::Vector(_, count) => u32::from(count),
    }
}

fn is_wide(scalar: Scalar) -> bool {
    match scalar {
        Scalar::U64 | Scalar::I64 | Scalar::F64 => true,
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => false,
    }
}

/// The value of a variable as words.
pub(super) fn to_words(ty: ValueType, name: &Name) -> Vec<Expr> {
    let value = || Expr::var(name);
    match ty {
        ValueType::Scalar(scalar) if is_wide(scalar) => {
            let bits = || if scalar == Scalar::U64 { value() } else { Expr::bitcast(Scalar::U64, value()) };
            vec![Expr::cast(Scalar::U32, bits()), Expr::cast(Scalar::U32, Expr::shr(bits(), Expr::u32(32)))]
        }
        ValueType::Scalar(scalar) => vec![to_word(scalar, value())],
        ValueType::Vector(scalar, count) => (0..count).map(|n| to_word(scalar, Expr::extract(value(), n))).collect(),
    }
}

/// The value that words stand for.
pub(super) fn from_words(ty: ValueType, mut words: Vec<Expr>) -> Expr {
    match ty {
        ValueType::Scalar(scalar) => {
            let high = if is_wide(scalar) { words.pop() } else { None };
            let low = words.pop().unwrap_or_else(|| Expr::u32(0));
            match high {
                None => from_word(scalar, low),
                Some(high) => {
                    let wide = |word| Expr::cast(Scalar::U64, word);
                    let bits = Expr::bitor(wide(low), Expr::shl(wide(high), Expr::u32(32)));
                    if scalar == Scalar::U64 { bits } else { Expr::bitcast(scalar, bits) }
                }
            }
        }
        ValueType::Vector(scalar, _) => Expr::vector(words.into_iter().map(|word| from_word(scalar, word))),
    }
}

fn to_word(scalar: Scalar, value: Expr) -> Expr {
    match scalar {
        Scalar::U32 => value,
        Scalar::I32 | Scalar::F32 => Expr::bitcast(Scalar::U32, value),
        // Those of 64 bits are two words; see `to_words`.
        Scalar::Bool | Scalar::U64 | Scalar::I64 | Scalar::F64 => Expr::cast(Scalar::U32, value),
    }
}

fn from_word(scalar: Scalar, word: Expr) -> Expr {
    match scalar {
        Scalar::U32 => word,
        Scalar::I32 | Scalar::F32 => Expr::bitcast(scalar, word),
        // Those of 64 bits are two words; see `from_words`.
        Scalar::Bool | Scalar::U64 | Scalar::I64 | Scalar::F64 => Expr::cast(scalar, word),
    }
}
