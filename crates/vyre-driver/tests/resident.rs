//! What a resident handle may still mean.

use std::collections::HashSet;
use vyre_driver::resident::{ResidentTable, ResidentUsage};
use vyre_driver::{BackendError, ResidentError, Resource};

fn handle(resource: &Resource) -> u64 {
    match resource {
        Resource::Resident(handle) => *handle,
        Resource::Borrowed(_) => panic!("a table gives handles"),
    }
}

#[test]
fn handles_are_never_given_twice_in_a_process() {
    let mut all = HashSet::new();
    for _ in 0..20 {
        let mut table = ResidentTable::new();
        for n in 0..20 {
            let resource = table.insert(n, 1).unwrap();
            assert!(all.insert(handle(&resource)), "{resource:?} was given before");
            match n % 3 {
                0 => drop(table.free(&resource).unwrap()),
                1 => drop(table.lose()),
                _ => {}
            }
        }
    }
}

#[test]
fn a_live_handle_gives_its_value() {
    let mut table = ResidentTable::new();
    let (a, b) = (table.insert(vec![1u8], 1).unwrap(), table.insert(vec![2u8, 2], 2).unwrap());
    assert_eq!(table.get(&a), Ok(&vec![1]));
    assert_eq!(table.get(&b), Ok(&vec![2, 2]));
    assert_eq!((table.size(&a), table.size(&b)), (Ok(1), Ok(2)));
    assert_eq!(table.free(&a), Ok(vec![1]));
    assert_eq!(table.get(&b), Ok(&vec![2, 2]));
}

/// What every way to use a handle says.
fn refusals(table: &mut ResidentTable<u8>, resource: &Resource) -> Vec<ResidentError> {
    vec![
        table.get(resource).map(drop).unwrap_err(),
        table.size(resource).map(drop).unwrap_err(),
        table.free(resource).map(drop).unwrap_err(),
    ]
}

#[test]
fn a_handle_of_another_table_is_foreign_and_so_is_one_that_nobody_gave() {
    let (mut one, mut other) = (ResidentTable::new(), ResidentTable::new());
    let theirs = other.insert(1, 4).unwrap();
    assert_eq!(
        refusals(&mut one, &theirs),
        vec![ResidentError::Foreign(handle(&theirs)); 3],
        "before the first handle of its own"
    );
    let ours = one.insert(2, 4).unwrap();
    assert_eq!(refusals(&mut one, &theirs), vec![ResidentError::Foreign(handle(&theirs)); 3]);
    for made_up in [0, 1, 2, u64::MAX, handle(&ours) + 1, handle(&ours) ^ 1 << 40] {
        assert_eq!(refusals(&mut one, &Resource::Resident(made_up)), vec![ResidentError::Foreign(made_up); 3]);
    }
    assert_eq!(one.check_aliasing(&[(&theirs, false)]), Err(ResidentError::Foreign(handle(&theirs))));
    assert_eq!((one.get(&ours), other.get(&theirs)), (Ok(&2), Ok(&1)));
}

#[test]
fn a_freed_handle_says_so_and_a_second_free_frees_nothing() {
    let mut table = ResidentTable::new();
    let (kept, freed) = (table.insert(1, 10).unwrap(), table.insert(2, 20).unwrap());
    assert_eq!(table.free(&freed), Ok(2));
    assert_eq!(refusals(&mut table, &freed), vec![ResidentError::Freed(handle(&freed)); 3]);
    assert_eq!(table.check_aliasing(&[(&freed, false)]), Err(ResidentError::Freed(handle(&freed))));
    assert_eq!((table.usage().live_bytes, table.usage().live_handles), (10, 1));
    assert_eq!(table.get(&kept), Ok(&1));
    // New memory does not make the old handle live.
    table.insert(3, 20).unwrap();
    assert_eq!(table.get(&freed), Err(ResidentError::Freed(handle(&freed))));
}

#[test]
fn after_a_loss_every_older_handle_is_stale_and_newer_ones_are_not() {
    let mut table = ResidentTable::new();
    let (live, freed) = (table.insert(1, 10).unwrap(), table.insert(2, 20).unwrap());
    table.free(&freed).unwrap();
    assert_eq!(table.lose(), vec![1]);
    for old in [&live, &freed] {
        assert_eq!(refusals(&mut table, old), vec![ResidentError::Stale(handle(old)); 3]);
        assert_eq!(table.check_aliasing(&[(old, true)]), Err(ResidentError::Stale(handle(old))));
    }
    let new = table.insert(3, 5).unwrap();
    assert_eq!(table.get(&new), Ok(&3));
    assert_eq!(table.lose(), vec![3]);
    for old in [&live, &new] {
        assert_eq!(table.get(old), Err(ResidentError::Stale(handle(old))));
    }
}

#[test]
fn bytes_of_the_caller_are_no_handle() {
    let mut table = ResidentTable::new();
    table.insert(1, 1).unwrap();
    assert_eq!(refusals(&mut table, &Resource::Borrowed(vec![0])), vec![ResidentError::NotResident; 3]);
}

#[test]
fn one_handle_may_stand_for_two_buffers_only_if_both_are_read() {
    let mut table = ResidentTable::new();
    let (a, b) = (table.insert((), 1).unwrap(), table.insert((), 1).unwrap());
    let bytes = Resource::Borrowed(vec![1]);
    let aliased = Err(ResidentError::Aliased(handle(&a)));
    assert_eq!(table.check_aliasing(&[]), Ok(()));
    assert_eq!(table.check_aliasing(&[(&a, true), (&b, true)]), Ok(()));
    assert_eq!(table.check_aliasing(&[(&a, false), (&b, true), (&a, false), (&a, false)]), Ok(()));
    assert_eq!(table.check_aliasing(&[(&a, true), (&b, false), (&a, false)]), aliased);
    assert_eq!(table.check_aliasing(&[(&a, false), (&a, true)]), aliased);
    assert_eq!(table.check_aliasing(&[(&a, false), (&a, false), (&a, true)]), aliased);
    assert_eq!(table.check_aliasing(&[(&a, true), (&a, true)]), aliased);
    assert_eq!(table.check_aliasing(&[(&bytes, true), (&bytes, true)]), Ok(()), "they are copies");
}

#[test]
fn usage_says_what_is_live_and_what_was_most() {
    let mut table = ResidentTable::new();
    assert_eq!(table.usage(), ResidentUsage::default());
    let a = table.insert((), 100).unwrap();
    let b = table.insert((), 50).unwrap();
    table.free(&a).unwrap();
    table.insert((), 20).unwrap();
    let usage = ResidentUsage { live_bytes: 70, peak_bytes: 150, live_handles: 2, peak_handles: 2 };
    assert_eq!(table.usage(), usage);
    // What cannot be counted is refused, and changes nothing.
    assert_eq!(table.insert((), u64::MAX), Err(BackendError::OutOfMemory { requested: u64::MAX }));
    assert_eq!(table.usage(), usage);
    table.lose();
    assert_eq!(table.usage(), ResidentUsage { live_bytes: 0, live_handles: 0, ..usage });
    assert!(table.free(&b).is_err());
    assert_eq!(table.usage().live_bytes, 0);
}
