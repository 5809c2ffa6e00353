//! Evaluators with one fault each, for judges to be judged by: what compares programs must notice every one of them.
//!
//! Each fault is one that real backends have had: a shift that is not masked, a barrier that does not wait, a NaN that compares, a
//! loop bound that is read again. All else is the plain interpreter ([`Fault`]) or the bulk evaluator ([`BulkFault`]).

pub(crate) mod hooks;
mod plain;

use crate::bulk::run_on;
use crate::dispatch::Prepared;
use crate::error::RunError;
use crate::observe::Unobserved;
use crate::plain::Options;
use plain::Faulty;
use vyre_foundation::ir::Program;
use vyre_foundation::specialize;
use vyre_host_floats::with_default_state;

macro_rules! faults {
    ($(#[$meta:meta])* $list:ident { $( $variant:ident $name:literal $doc:literal; )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $list { $( #[doc = $doc] $variant, )* }

        impl $list {
            /// Every fault of the list.
            pub const ALL: &'static [$list] = &[$( $list::$variant ),*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( $list::$variant => $name, )* }
            }

            /// What goes wrong.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $( $list::$variant => $doc, )* }
            }

            /// The fault with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$list> {
                $list::ALL.iter().copied().find(|fault| fault.name() == name)
            }
        }
    };
}

faults! {
    /// A fault of the plain interpreter: `--subject fault:NAME`.
    Fault {
        ShiftMask "shift-mask" "A shift by the width or more gives 0.";
        ShrLogical "shr-logical" "`>>` of a signed integer brings in zeros.";
        SubSwapped "sub-swapped" "Integer `a - b` is `b - a`.";
        DivByZero "div-by-zero" "Integer `x / 0` is 0.";
        RemByZero "rem-by-zero" "Integer `x % 0` is x.";
        DivOverflow "div-overflow" "`MIN / -1` is 0.";
        MulhiUnsigned "mulhi-unsigned" "`mulhi` takes signed operands as unsigned.";
        MulLow "mul-low" "64-bit `*` loses the upper half of the left side.";
        AbsDiff "abs-diff" "`abs_diff` is the magnitude of a difference that has wrapped.";
        ClzZero "clz-zero" "`clz(0)` is one less than the width.";
        CtzZero "ctz-zero" "`ctz(0)` is 0.";
        RotateWay "rotate-way" "`rotr` rotates left.";
        SatAddWraps "sat-add-wraps" "`sat_add` wraps.";
        SatSubFloor "sat-sub-floor" "Signed `sat_sub` ends at 0 instead of MIN.";
        CompareUnsigned "compare-unsigned" "`<` of signed integers compares bits.";
        NanCompare "nan-compare" "`<` is true when a side is NaN.";
        NanUnequal "nan-unequal" "`!=` is false when a side is NaN.";
        MinNan "min-nan" "`min` of a number and NaN is NaN.";
        MaxZero "max-zero" "`max` of zeros gives its left side.";
        NegZero "neg-zero" "`-x` is `0 - x`, which loses -0.";
        RoundHalfway "round-halfway" "`round` takes ties away from zero.";
        FmaTwice "fma-twice" "`fma` rounds the product too.";
        RemFloored "rem-floored" "Float `%` takes the sign of the divisor.";
        FlushSum "flush-sum" "Float `+` flushes subnormal sums under `floats ieee`.";
        CanonicalIgnored "canonical-ignored" "Float `*` keeps subnormals under `floats canonical`.";
        Exp2Ulp "exp2-ulp" "`exp2` is the next float up where it is inexact.";
        SelectSwapped "select-swapped" "`select` of f32 takes the other one.";
        CastSaturates "cast-saturates" "Float to integer keeps the low bits when out of range.";
        CastNan "cast-nan" "NaN becomes the smallest integer.";
        CastTruncates "cast-truncates" "`u32` to `f32` rounds toward zero.";
        CastSign "cast-sign" "`i32` to a 64-bit integer is not sign-extended.";
        LoadNan "load-nan" "Loads of f32 keep the sign and payload of a NaN.";
        HalfTruncates "half-truncates" "Stores to f16 round toward zero.";
        ByteSaturates "byte-saturates" "Stores to u8 saturate.";
        NibbleOrder "nibble-order" "The high nibble is the first.";
        BoolLoad "bool-load" "A bool loads as its lowest bit.";
        LastElement "last-element" "An index just past the end names the last element.";
        IndexWraps "index-wraps" "Indices lose their two upper bits.";
        LengthRounded "length-rounded" "`len` is one too many for an odd length.";
        IdsSwapped "ids-swapped" "`lid.y` and `lid.z` are swapped.";
        LastComponent "last-component" "The last component of a vector of four is the third.";
        LostAtomic "lost-atomic" "An atomic add that makes a negative number is lost.";
        AtomicNew "atomic-new" "An atomic gives the new value.";
        ExchangeAlways "exchange-always" "A compare-exchange always writes.";
        AtomicMaxUnsigned "atomic-max-unsigned" "An atomic max of i32 compares bits.";
        WrongLane "wrong-lane" "`shuffle_up` reads from one lane too far.";
        RetiredLanes "retired-lanes" "Retired lanes count as 0 in reductions.";
        ScanExclusive "scan-exclusive" "Exclusive scans include the lane itself.";
        LoopEnd "loop-end" "A loop of three iterations or more makes one too few.";
        ContinueBreaks "continue-breaks" "`continue` leaves the loop.";
        MissedBarrier "missed-barrier" "Barriers do not wait.";
        StaleMemory "stale-memory" "Workgroup memory still holds what the previous workgroup left there.";
        StaleAfterSync "stale-after-sync" "Workgroup memory survives a grid barrier.";
        LostWorkgroup "lost-workgroup" "The last of three or more workgroups does not run.";
        TrapLast "trap-last" "The largest invocation that traps is reported.";
        BoundAgain "bound-again" "The upper bound of a loop is evaluated again after every iteration.";
        BreakLate "break-late" "`break` takes effect at the end of the next iteration.";
        ReturnBreaks "return-breaks" "`return` in a loop only leaves the loop.";
        BreakOuter "break-outer" "`break` in a loop in a loop leaves both.";
        BarrierInLoop "barrier-in-loop" "Barriers in loops do not wait.";
        SecondBarrier "second-barrier" "All barriers of a program but the first do not wait.";
        BarrierValue "barrier-value" "The last invocation of a workgroup loses the value of its first variable at a barrier.";
        GridValues "grid-values" "Variables are zero behind a grid barrier.";
        CounterByte "counter-byte" "The body of a loop sees a counter that ends at 255.";
        LoopSigned "loop-signed" "A loop whose upper bound is 2³¹ or more does not run.";
        WideLow "wide-low" "An assignment to a 64-bit variable in an arm or loop keeps the lower half.";
        VectorAlias "vector-alias" "A vector is assigned component by component, while its components are read.";
        LocalByte "local-byte" "`lid` is kept in a byte.";
        WorkgroupTransposed "workgroup-transposed" "`wid.x` and `wid.y` count workgroups column by column.";
        InvocationPlane "invocation-plane" "`gid.y` is that of a workgroup of a square shape.";
        OverrideIgnored "override-ignored" "Ids take the workgroup size that is declared, not the one that is launched.";
        PartialGroup "partial-group" "The invocations of a workgroup beyond a multiple of four store nothing.";
        LastInvocation "last-invocation" "The last invocation of the last of several workgroups does not run.";
        PastFirstGroups "past-first-groups" "From the ninth workgroup on `wid.x` is that of the eighth.";
        NeighbourByte "neighbour-byte" "A store of a byte sets the byte behind it to 0.";
        SubgroupOverflow "subgroup-overflow" "`shuffle_down` reads lane 0 instead of its own value past the end of the subgroup.";
    }
}

faults! {
    /// A fault of the bulk evaluator: `--subject bulk-fault:NAME`.
    BulkFault {
        LaterBlocks "later-blocks" "Blocks after the first do not run.";
        LastGroup "last-group" "The last workgroup of the last block of several workgroups does not run.";
        TailComputed "tail-computed" "32-bit ops on two operands are 0 in the lanes beyond a multiple of eight.";
        TailLoaded "tail-loaded" "Loads are 0 in the lanes beyond a multiple of eight.";
        TailStored "tail-stored" "The lanes beyond a multiple of eight store nothing.";
        LanePast256 "lane-past-256" "Lanes past 256 have the ids of lane 256.";
        BlockIds "block-ids" "Ids of all blocks are those of the first.";
        WorkgroupId "workgroup-id" "In blocks of one workgroup after the first, `wid` is that of the workgroup before.";
        LocalShape "local-shape" "`lid` is right only for shapes of powers of two.";
        OverrideIgnored "override-ignored" "Ids take the workgroup size that is declared, not the one that is launched.";
        UpperBoundAgain "upper-bound-again" "A variable that is the upper bound of a loop is read again in every iteration.";
        LowerBoundAgain "lower-bound-again" "A variable that is the lower bound of a loop is read again in every iteration.";
        CounterOfFirstLane "counter-of-first-lane" "All lanes of a loop count from the lower bound of the first.";
        CounterByte "counter-byte" "The body of a loop sees a counter that ends at 255.";
        LoopSigned "loop-signed" "A loop whose upper bound is 2³¹ or more does not run.";
        ConditionAgain "condition-again" "A variable that is a condition is read again for `else`.";
        ElseMask "else-mask" "`else` runs for the lanes of the first arm too.";
        ArmExit "arm-exit" "Lanes that leave an arm go on behind the `if`.";
        BreakMask "break-mask" "Lanes that break run the rest of the body.";
        BreakAll "break-all" "A lane that breaks takes all others with it.";
        BreakLate "break-late" "`break` takes effect one iteration late.";
        BreakAndReturn "break-and-return" "A lane that breaks in the iteration in which another returns runs once more.";
        ContinueMask "continue-mask" "Lanes that continue run the rest of the body.";
        ReturnMask "return-mask" "Lanes that return run the rest of the body.";
        ReturnInLoop "return-in-loop" "Lanes that return in a loop go on behind it.";
        ReturnBreaks "return-breaks" "`return` in a loop only leaves the loop.";
        TrapMask "trap-mask" "A trap is that of all lanes that are live.";
        BlendSplat "blend-splat" "A value that is the same in all lanes, assigned by some, is assigned by all.";
        BlendWide "blend-wide" "A 64-bit variable that some lanes assign keeps the lower half.";
        VectorAlias "vector-alias" "A vector is assigned component by component, while its components are read.";
        StoreMask "store-mask" "Inactive lanes store too.";
        NarrowNeighbour "narrow-neighbour" "A store of a byte sets the byte behind it to 0.";
        AtomicMask "atomic-mask" "Inactive lanes take part in atomics.";
        AtomicOnce "atomic-once" "Of neighbouring lanes that change the same element only the first does.";
        TicketLane "ticket-lane" "The result of an atomic add that only some lanes do counts the lanes between that do not.";
        SharedCheck "shared-check" "In an op on two elements beside each other both are 0 if the second is out of bounds.";
        GroupMemory "group-memory" "All workgroups of a block load from the memory of the first.";
        GroupMemorySplat "group-memory-splat" "Where all lanes load one index, they load from the memory of the first workgroup.";
        GroupLength "group-length" "Workgroup memory is as long as that of all workgroups of the block.";
        SubgroupBoundary "subgroup-boundary" "Subgroup operations reach into the next subgroup.";
        SubgroupRetired "subgroup-retired" "Retired lanes take part in subgroup operations.";
        BarrierValue "barrier-value" "The last lane of a block loses the value of the first variable at a barrier.";
        GridValues "grid-values" "Variables are zero behind a grid barrier.";
        GridRetired "grid-retired" "Retired lanes go on behind a grid barrier.";
        GridMemory "grid-memory" "Workgroup memory survives a grid barrier.";
        CompactLanes "compact-lanes" "Compacted lanes go back in the opposite order.";
        CompactLost "compact-lost" "The first variable that compacted lanes have assigned does not go back.";
        CompactLive "compact-live" "Compacted lanes that have returned go on behind the loop.";
        CompactIds "compact-ids" "Compacted lanes have the ids of the first lanes.";
        CompactBounds "compact-bounds" "Compacted lanes have the bounds of the first lanes.";
    }
}

impl BulkFault {
    /// Whether it shows only where lanes are compacted.
    pub(crate) fn is_of_compaction(self) -> bool {
        matches!(
            self,
            BulkFault::CompactLanes
                | BulkFault::CompactLost
                | BulkFault::CompactLive
                | BulkFault::CompactIds
                | BulkFault::CompactBounds
        )
    }
}

/// Runs a program as [`crate::run`] does, with a fault. The schedule is always forward.
pub fn run(fault: Fault, program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    with_default_state(|| {
        let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
        let program = specialize(program, values)?;
        let mut prepared = Prepared::new(&program, inputs, options)?;
        let storage = std::mem::take(&mut prepared.storage);
        prepared.run(storage, &crate::Schedule::Forward, &mut options.fuel(), &mut Unobserved, &Faulty(fault))
    })
}

/// Runs a program as [`crate::bulk::run`] does, with a fault.
pub fn run_bulk(fault: BulkFault, program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
    run_on(&specialize(program, values)?, |bulk| bulk.with_fault(fault), inputs, options)
}
