//! The tests, under their names in the literature.

use super::Step::{Add, Barrier, Claim, Exchange, Load, PlainLoad, PlainStore, Store};
use super::{Litmus, Place, Step};

const X: u8 = 0;
const Y: u8 = 1;

const fn test(name: &'static str, about: &'static str, place: Place, threads: [&'static [Step]; 2]) -> Litmus {
    Litmus { name, about, place, threads }
}

/// Every test.
pub const LITMUS: &[Litmus] = &[
    // Two locations, in two workgroups: all of it may be seen, and nothing else.
    test("MP", "message passing", Place::Workgroups, [&[Store(X, 1), Store(Y, 1)], &[Load(Y), Load(X)]]),
    test("LB", "load buffering", Place::Workgroups, [&[Load(X), Store(Y, 1)], &[Load(Y), Store(X, 1)]]),
    test("SB", "store buffering", Place::Workgroups, [&[Store(X, 1), Load(Y)], &[Store(Y, 1), Load(X)]]),
    test("S", "a store behind a message", Place::Workgroups, [&[Store(X, 2), Store(Y, 1)], &[Load(Y), Store(X, 1)]]),
    test("R", "a load behind two stores", Place::Workgroups, [&[Store(X, 1), Store(Y, 1)], &[Store(Y, 2), Load(X)]]),
    test("2+2W", "two stores each", Place::Workgroups, [&[Store(X, 1), Store(Y, 2)], &[Store(Y, 1), Store(X, 2)]]),
    // One location: all agree on one order of its stores.
    test("CoRR", "two loads do not go back", Place::Workgroups, [&[Store(X, 1)], &[Load(X), Load(X)]]),
    test("CoWW", "the later store stays", Place::Workgroups, [&[Store(X, 1), Store(X, 2)], &[]]),
    test("CoWR", "a load sees the own store, or a later one", Place::Workgroups, [&[Store(X, 1), Load(X)], &[Store(X, 2)]]),
    test("CoRW1", "a load does not see the own store to come", Place::Workgroups, [&[Load(X), Store(X, 1)], &[]]),
    test("CoRW2", "a store comes behind what was loaded", Place::Workgroups, [&[Load(X), Store(X, 1)], &[Store(X, 2)]]),
    // Nothing comes between the load and the store of one atomic.
    test("atomicity.add", "no add is lost", Place::Workgroups, [&[Add(X, 1), Add(X, 1)], &[Add(X, 1), Add(X, 1)]]),
    test("atomicity.exchange", "each takes another value", Place::Workgroups, [&[Exchange(X, 1)], &[Exchange(X, 2)]]),
    test("atomicity.claim", "one of two has it", Place::Workgroups, [&[Claim(X, 1)], &[Claim(X, 2)]]),
    test("atomicity.store", "a store is not between", Place::Workgroups, [&[Exchange(X, 1)], &[Store(X, 2)]]),
    test("CoRR.rmw", "two exchanges do not go back", Place::Workgroups, [&[Add(X, 1)], &[Exchange(X, 2), Load(X)]]),
    // The same within a workgroup, where the scheduler is another.
    test("MP.storage", "message passing", Place::Storage, [&[Store(X, 1), Store(Y, 1)], &[Load(Y), Load(X)]]),
    test("SB.workgroup", "store buffering", Place::WorkgroupMemory, [&[Store(X, 1), Load(Y)], &[Store(Y, 1), Load(X)]]),
    test("CoRR.storage", "two loads do not go back", Place::Storage, [&[Store(X, 1)], &[Load(X), Load(X)]]),
    test("CoRR.workgroup", "two loads do not go back", Place::WorkgroupMemory, [&[Store(X, 1)], &[Load(X), Load(X)]]),
    test("CoWW.workgroup", "the later store stays", Place::WorkgroupMemory, [&[Store(X, 1), Store(X, 2)], &[]]),
    test("atomicity.add.workgroup", "no add is lost", Place::WorkgroupMemory, [&[Add(X, 1)], &[Add(X, 1)]]),
    // With a barrier between the steps of both: no order but one.
    test(
        "MP.barrier.storage",
        "message passing",
        Place::Storage,
        [&[Store(X, 1), Barrier, Store(Y, 1)], &[Load(Y), Barrier, Load(X)]],
    ),
    test(
        "LB.barrier.storage",
        "load buffering",
        Place::Storage,
        [&[Load(X), Barrier, Store(Y, 1)], &[Load(Y), Barrier, Store(X, 1)]],
    ),
    test(
        "SB.barrier.storage",
        "store buffering",
        Place::Storage,
        [&[Store(X, 1), Barrier, Load(Y)], &[Store(Y, 1), Barrier, Load(X)]],
    ),
    test(
        "S.barrier.storage",
        "a store behind a message",
        Place::Storage,
        [&[Store(X, 2), Barrier, Store(Y, 1)], &[Load(Y), Barrier, Store(X, 1)]],
    ),
    test(
        "R.barrier.storage",
        "a load behind two stores",
        Place::Storage,
        [&[Store(X, 1), Barrier, Store(Y, 1)], &[Store(Y, 2), Barrier, Load(X)]],
    ),
    test(
        "2+2W.barrier.storage",
        "two stores each",
        Place::Storage,
        [&[Store(X, 1), Barrier, Store(Y, 2)], &[Store(Y, 1), Barrier, Store(X, 2)]],
    ),
    test(
        "MP.barrier.workgroup",
        "message passing",
        Place::WorkgroupMemory,
        [&[Store(X, 1), Barrier, Store(Y, 1)], &[Load(Y), Barrier, Load(X)]],
    ),
    test(
        "SB.barrier.workgroup",
        "store buffering",
        Place::WorkgroupMemory,
        [&[Store(X, 1), Barrier, Load(Y)], &[Store(Y, 1), Barrier, Load(X)]],
    ),
    // Plain accesses, which only the barrier keeps from being a race.
    test("store-load.storage", "a store before a load", Place::Storage, [&[PlainStore(X, 1), Barrier], &[Barrier, PlainLoad(X)]]),
    test("load-store.storage", "a load before a store", Place::Storage, [&[PlainLoad(X), Barrier], &[Barrier, PlainStore(X, 1)]]),
    test(
        "store-store.storage",
        "a store before a store",
        Place::Storage,
        [&[PlainStore(X, 1), Barrier], &[Barrier, PlainStore(X, 2)]],
    ),
    test(
        "store-load.workgroup",
        "a store before a load",
        Place::WorkgroupMemory,
        [&[PlainStore(X, 1), Barrier], &[Barrier, PlainLoad(X)]],
    ),
    test(
        "load-store.workgroup",
        "a load before a store",
        Place::WorkgroupMemory,
        [&[PlainLoad(X), Barrier], &[Barrier, PlainStore(X, 1)]],
    ),
    test(
        "store-store.workgroup",
        "a store before a store",
        Place::WorkgroupMemory,
        [&[PlainStore(X, 1), Barrier], &[Barrier, PlainStore(X, 2)]],
    ),
];
