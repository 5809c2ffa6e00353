//! Faults that are planted in the compiler, to see whether a suite notices them: a device with one of them is right but for what the fault
//! says. The mistakes are those that such a compiler can make: a mask forgotten, a value kept in one place too long, one instruction for
//! another.
//!
//! What is about single instructions is a rewriting of the code before registers are given out (`compile/planted.rs`); the rest are
//! questions at the places where the compiler decides.

use crate::compile::Machine;
use crate::run::MachineCode;
use std::sync::Arc;
use vyre_foundation::config::SpecMap;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;

macro_rules! faults {
    ($( $variant:ident $name:literal $about:literal; )*) => {
        /// Something that the compiler does wrong.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fault { $( #[doc = $about] $variant, )* }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Fault] = &[$( Fault::$variant ),*];

            /// Its name, which never changes.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Fault::$variant => $name, )* }
            }

            /// What goes wrong.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $( Fault::$variant => $about, )* }
            }
        }
    };
}

faults! {
    // Instructions.
    UnsignedMinIsSigned "unsigned-min-is-signed" "The smaller of two unsigned elements is found as if they were signed.";
    UnsignedMaxIsSigned "unsigned-max-is-signed" "The larger of two unsigned elements is found as if they were signed.";
    SignedMinIsUnsigned "signed-min-is-unsigned" "The smaller of two signed elements is found as if they were unsigned.";
    SignedMaxIsUnsigned "signed-max-is-unsigned" "The larger of two signed elements is found as if they were unsigned.";
    ProductOfEvenElements "product-of-even-elements" "A product of 32-bit elements is that of every other one, with 64 bits.";
    SignedProductIsUnsigned "signed-product-is-unsigned" "A product of signed elements with 64 bits is that of unsigned ones.";
    FloatDifferenceExchanged "float-difference-exchanged" "The operands of an f32 difference are exchanged.";
    DoubleQuotientExchanged "double-quotient-exchanged" "The operands of an f64 quotient are exchanged.";
    ZerosInOrder "zeros-in-order" "The smaller and the larger of two zeros is the second.";
    LessIsAtMost "less-is-at-most" "A comparison of floats for less holds for equal ones.";
    AtMostIsLess "at-most-is-less" "A comparison of floats for less or equal does not hold for equal ones.";
    GreaterIsAtLeast "greater-is-at-least" "A comparison of floats for greater holds for equal ones.";
    AtLeastIsGreater "at-least-is-greater" "A comparison of floats for greater or equal does not hold for equal ones.";
    EqualTakesNan "equal-takes-nan" "A comparison of floats for equal holds for NaN.";
    NotEqualDropsNan "not-equal-drops-nan" "A comparison of floats for not equal does not hold for NaN.";
    NanNeverFound "nan-never-found" "The test for NaN never holds.";
    IntegerGreaterExchanged "integer-greater-exchanged" "The operands of a comparison of signed elements are exchanged.";
    ArithmeticShiftIsLogical "arithmetic-shift-is-logical" "A shift of signed elements by a number fills up with zeros.";
    LogicalShiftIsArithmetic "logical-shift-is-arithmetic" "A shift of unsigned elements by a number fills up with the sign.";
    ArithmeticShiftByIsLogical "arithmetic-shift-by-is-logical" "A shift of signed elements by elements fills up with zeros.";
    LogicalShiftByIsArithmetic "logical-shift-by-is-arithmetic" "A shift of unsigned elements by elements fills up with the sign.";
    WideShiftByIsNarrow "wide-shift-by-is-narrow" "A shift of 64-bit elements to the left by elements shifts the 32-bit halves.";
    WideShiftOneMore "wide-shift-one-more" "A shift of 64-bit elements to the left by a number shifts one bit more.";
    SignedWideningIsUnsigned "signed-widening-is-unsigned" "Signed 32-bit elements are widened with zeros.";
    UnsignedWideningIsSigned "unsigned-widening-is-signed" "Unsigned 32-bit elements are widened with their sign.";
    NearestIsTowardZero "nearest-is-toward-zero" "Floats are rounded to an integer toward zero instead of to the nearest.";
    DownIsTowardZero "down-is-toward-zero" "Floats are rounded to an integer toward zero instead of down.";
    TowardZeroIsDown "toward-zero-is-down" "Floats are rounded to an integer down instead of toward zero.";
    BlendIgnoresMask "blend-ignores-mask" "What is taken for some lanes is taken for all.";
    FusedIsTwoSteps "fused-is-two-steps" "A fused multiply-add is rounded in between.";
    HighHalfIsLow "high-half-is-low" "Instead of the high half of a vector the low one is taken.";
    HalvesExchanged "halves-exchanged" "The halves of a vector that is put together are exchanged.";
    ByteLoadIsSigned "byte-load-is-signed" "Unsigned bytes are loaded with their sign.";
    SignedByteLoadIsUnsigned "signed-byte-load-is-unsigned" "Signed bytes are loaded with zeros.";
    HalfLoadIsSigned "half-load-is-signed" "Unsigned 16-bit elements are loaded with their sign.";
    SignedHalfLoadIsUnsigned "signed-half-load-is-unsigned" "Signed 16-bit elements are loaded with zeros.";
    UpperHalfNotStored "upper-half-not-stored" "The upper four lanes of a vector are not stored.";
    MaskedStoreIgnoresMask "masked-store-ignores-mask" "A store of some lanes stores all of them.";
    WideSplatIsNarrow "wide-splat-is-narrow" "A uniform 64-bit integer becomes a vector of its low half.";
    FirstOfWideIsNarrow "first-of-wide-is-narrow" "A uniform 64-bit value that is taken from a vector loses its high half.";
    ScalarShiftIsLogical "scalar-shift-is-logical" "A shift of a uniform signed integer by a number fills up with zeros.";
    ScalarShiftByIsLogical "scalar-shift-by-is-logical" "A shift of a uniform signed integer fills up with zeros.";
    WideProductIsNarrow "wide-product-is-narrow" "A product of uniform 64-bit integers has 32 bits.";
    WideMoveIsNarrow "wide-move-is-narrow" "A uniform 64-bit integer loses its high half when it is moved.";
    ScalarCompareIsSigned "scalar-compare-is-signed" "Uniform unsigned integers are compared as signed ones.";
    ScalarCompareIsUnsigned "scalar-compare-is-unsigned" "Uniform signed integers are compared as unsigned ones.";
    ScalarAtMostIsLess "scalar-at-most-is-less" "A comparison of uniform integers for less or equal does not hold for equal ones.";
    ChoiceExchanged "choice-exchanged" "A choice between uniform values takes the other one.";
    ScalarByteIsSigned "scalar-byte-is-signed" "An unsigned byte that all lanes read is loaded with its sign.";
    ScalarSignedHalfIsUnsigned "scalar-signed-half-is-unsigned" "A signed 16-bit element that all lanes read is loaded with zeros.";
    ByteStoreIsWord "byte-store-is-word" "A store of one byte writes three more.";
    HalfStoreIsWord "half-store-is-word" "A store of two bytes writes two more.";
    AtomicNotLocked "atomic-not-locked" "An atomic is not one step for other threads.";
    AtomicUnsignedMinIsSigned "atomic-unsigned-min-is-signed" "An atomic minimum of unsigned integers is that of signed ones.";
    AtomicSignedMaxIsUnsigned "atomic-signed-max-is-unsigned" "An atomic maximum of signed integers is that of unsigned ones.";
    CompareExchangeExchanged "compare-exchange-exchanged" "A compare-exchange has what it expects and what it writes exchanged.";
    // Shapes.
    StrideNotShifted "stride-not-shifted" "A shifted index is taken to have the stride of what is shifted.";
    DivergenceNotSeen "divergence-not-seen" "A loop that lanes leave one by one is taken for one that all leave together.";
    // Passes.
    UnrolledOnceLess "unrolled-once-less" "A loop that is written out runs once less.";
    UnrolledFromZero "unrolled-from-zero" "The counter of a loop that is written out begins at 0.";
    RowsAreOne "rows-are-one" "Rows of a workgroup that are done at once are all like the first of them.";
    LoadsHoisted "loads-hoisted" "A load is moved in front of a loop that stores to its place.";
    // Control.
    GuardOneShort "guard-one-short" "A guard that all but the last lane of a block pass is taken to hold for all.";
    OtherArmWritesAll "other-arm-writes-all" "The second arm of an `if` sets its results for all lanes.";
    OtherArmTakesAll "other-arm-takes-all" "The second arm of an `if` also runs for lanes that are not here.";
    CopiesInSequence "copies-in-sequence" "Values that a loop exchanges are copied one after the other.";
    LeaversChange "leavers-change" "Values of lanes that have left a loop go on changing.";
    BreakComesBack "break-comes-back" "A lane that breaks out of an iteration is back in the next.";
    ContinueLeaves "continue-leaves" "A lane that continues leaves the loop.";
    NeverStops "never-stops" "Loops do not look whether they are to stop: a deadline comes too late, and bytes are right.";
    RetiredFromInnermost "retired-from-innermost" "A lane that returns is only taken out of the innermost loop.";
    RetiredGoOn "retired-go-on" "What follows an `if` runs for lanes that have left in it.";
    EmptyLoopRuns "empty-loop-runs" "A loop whose range is empty runs once.";
    // Vectors and blocks.
    PartsAlike "parts-alike" "All vectors of a linear value are like the first.";
    TailIsThere "tail-is-there" "The last block of a workgroup has lanes that belong to no invocation.";
    SharedNotCleared "shared-not-cleared" "Workgroup memory holds what the previous workgroup left there.";
    RetiredReturn "retired-return" "Lanes that have returned run again after the next barrier.";
    LeaderLeftOut "leader-left-out" "The last lane of a segment that few take part in is left out.";
    KeptWhereOthersWrite "kept-where-others-write" "A value that crosses a barrier is read from workgroup memory that was written to since.";
    HoldsALaneEarly "holds-a-lane-early" "A condition that holds from a lane on is taken to hold for the vector that begins one lane before.";
    SlotTakenEarly "slot-taken-early" "The next value of a loop's variable is written where the old one is still read.";
    // Memory.
    LimitOneMore "limit-one-more" "A block may reach one element over the end.";
    ScatterIgnoresMask "scatter-ignores-mask" "A store to any indices also stores inactive lanes.";
    SumOfIndexMayWrap "sum-of-index-may-wrap" "A number that is added to an index becomes part of the address although the sum wraps.";
    OutsideIsKept "outside-is-kept" "What all lanes read beyond the end is not zero.";
    NibblesExchanged "nibbles-exchanged" "The halves of bytes are exchanged.";
    BoolIsNotTested "bool-is-not-tested" "A `bool` that all lanes read is what is in memory, not 0 or 1.";
    NanStoredAsIs "nan-stored-as-is" "A NaN is stored with the sign and payload that it has.";
    LoadNotFlushed "load-not-flushed" "Under `floats canonical`, subnormal numbers in memory are loaded as they are.";
    ResultNotFlushed "result-not-flushed" "Under `floats canonical`, subnormal results stay.";
    // Functions.
    RoundingNotTested "rounding-not-tested" "Elementary functions are rounded without a look at whether their last bit is certain.";
    // More than one lane.
    SubgroupsShareVectors "subgroups-share-vectors" "What is folded in a vector goes beyond a subgroup of fewer lanes.";
    ShuffleOutsideWraps "shuffle-outside-wraps" "A lane outside of the subgroup is taken to be one inside.";
    SubgroupTakesAll "subgroup-takes-all" "Inactive lanes take part in subgroup operations.";
    TrapInFirstLane "trap-in-first-lane" "A trap is told of the first lane of its block.";
    // Registers.
    LoopLivesCut "loop-lives-cut" "A register that a loop reads again is given out before the loop's end.";
    SlotsReusedEarly "slots-reused-early" "A slot of the frame is given out before its value is dead.";
    CallsSaveNothing "calls-save-nothing" "Vectors that live across a call are not saved.";
    MovedCarelessly "moved-carelessly" "A value is computed where it is moved to although the old value is still read.";
}

/// Whether code for a program is another one with the fault: at its own workgroup size, or at one of a few that have partial blocks and
/// several of them. It is not if the program cannot be compiled.
#[must_use]
pub fn shows_in(fault: Fault, program: &Program) -> bool {
    let Ok(program) = SpecMap::new().apply(program) else { return false };
    let Ok(valid) = program.validated() else { return false };
    let kernel = valid.kernel();
    let sizes = [kernel.workgroup_size, [1, 1, 1], [33, 1, 1], [128, 1, 1]];
    sizes.into_iter().any(|workgroup_size| {
        let kernel = Arc::new(Kernel { workgroup_size, ..Kernel::clone(kernel) });
        let hash = |fault| Machine::compile(&kernel, fault).map(|machine| machine.hash()).ok();
        hash(Some(fault)) != hash(None)
    })
}
