//! What is kept between dispatches and should not be, and what should be and is not.

use super::device::DeviceFault;
use super::fault::Fault;
use super::floats::launched;
use super::state::{Stale, WeakKey, What, When};
use super::witness::{case, words};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Program, Scalar, SpecValue};
use vyre_foundation::kernel::Kernel;
use vyre_foundation::text::parse;
use vyre_reference::faults::BulkFault;
use vyre_worker::{Case, Sequence, SequenceStep};

pub(super) fn add(list: &mut List) {
    add_stale(list);
    add_cache_keys(list);
    add_resident(list);
}

fn add_stale(list: &mut List) {
    let whats = [
        ("outputs", What::Outputs),
        ("last-output", What::LastOutput),
        ("outputs-from-byte-128", What::OutputsFrom(128)),
        ("read-write", What::ReadWrite),
        ("first-input", What::Input(0)),
        ("second-input", What::Input(1)),
        ("last-input", What::LastInput),
        ("all-inputs", What::AllInputs),
        ("first-64-bytes", What::Head(64)),
        ("from-byte-256", What::From(256)),
    ];
    let whens = [
        ("always", When::Always),
        ("same-program", When::SameProgram),
        ("other-program", When::OtherProgram),
        ("every-third", When::Every(3)),
        ("large", When::Large(1024)),
    ];
    for (what, stale) in whats {
        for (name, when) in whens {
            let fault = Fault::Stale(Stale { what: stale, when });
            list.add(Class::Stale, format!("{what}-{name}"), fault, dispatches);
        }
    }
    let shared: fn(&Kernel) -> bool = |kernel| kernel.buffers.iter().any(|buffer| buffer.binding.is_none());
    let grid: fn(&Kernel) -> bool =
        |kernel| kernel.uses.grid_sync && kernel.buffers.iter().any(|buffer| buffer.binding.is_none());
    list.add(Class::Stale, "workgroup-memory-of-first", Fault::Evaluator(BulkFault::GroupMemory, shared), counted);
    list.add(Class::Stale, "workgroup-memory-after-grid-barrier", Fault::Evaluator(BulkFault::GridMemory, grid), across_grid);
}

/// Dispatches of two programs in turn, whose buffers are as long as each other's and hold something else every time.
fn dispatches() -> Witness {
    let program = |factor: u32| {
        format!(
            "program partial {{
  workgroup 16
  buffer x: read u32 @0
  buffer y: read u32 @1
  buffer p: read_write u32 @2
  buffer out: output u32[300] @3
  buffer more: output u32[300] @4
  if x[gid.x] % 3 == 0 {{
    out[gid.x] = x[gid.x] * {factor}
  }}
  if y[gid.x] % 3 == 0 {{
    more[gid.x] = y[gid.x] + 1
  }}
  if x[gid.x] % 2 == 1 {{
    p[gid.x] = p[gid.x] + 1
  }}
}}"
        )
    };
    let inputs = |n: usize| (0..3).map(|k| words(300 * 30, 100_000)[1200 * (n * 3 + k)..][..1200].to_vec()).collect();
    // Same, same, other, other, first again.
    let order = [3, 3, 5, 5, 3, 3, 3, 5];
    let cases = order.into_iter().enumerate();
    Witness::Cases(cases.map(|(n, factor)| launched(case(&program(factor), inputs(n)), [19, 1, 1])).collect())
}

/// A counter in the memory of each workgroup.
fn counted() -> Witness {
    let text = "program counted {
  workgroup 8
  buffer x: read u32 @0
  buffer out: output u32[64] @1
  buffer tile: workgroup u32[8]
  tile[lid.x] = tile[lid.x] + x[gid.x]
  barrier
  out[gid.x] = tile[7 - lid.x]
}";
    Witness::Cases(vec![launched(case(text, vec![words(64, 1000)]), [8, 1, 1])])
}

/// Memory of workgroups that is zero again behind a grid barrier.
fn across_grid() -> Witness {
    let text = "program across {
  workgroup 8
  buffer x: read u32 @0
  buffer out: output u32[64] @1
  buffer tile: workgroup u32[8]
  tile[lid.x] = x[gid.x] + 1
  barrier.grid
  out[gid.x] = tile[lid.x] + 5
}";
    Witness::Cases(vec![launched(case(text, vec![words(64, 1000)]), [8, 1, 1])])
}

fn add_cache_keys(list: &mut List) {
    let keys = [
        ("without-constants", WeakKey::NoConstants),
        ("without-constants.u32", WeakKey::NoConstantsOf(Scalar::U32)),
        ("without-constants.i32", WeakKey::NoConstantsOf(Scalar::I32)),
        ("without-constants.f32", WeakKey::NoConstantsOf(Scalar::F32)),
        ("without-constants.bool", WeakKey::NoConstantsOf(Scalar::Bool)),
        ("constants-without-names", WeakKey::ConstantsByOrder),
        ("without-literals", WeakKey::NoLiterals),
        ("without-literals.u32", WeakKey::NoLiteralsOf(Scalar::U32)),
        ("without-literals.i32", WeakKey::NoLiteralsOf(Scalar::I32)),
        ("without-literals.u64", WeakKey::NoLiteralsOf(Scalar::U64)),
        ("without-literals.f32", WeakKey::NoLiteralsOf(Scalar::F32)),
        ("without-literals.f64", WeakKey::NoLiteralsOf(Scalar::F64)),
        ("low-byte-of-literals", WeakKey::LowLiterals(8)),
        ("low-half-of-literals", WeakKey::LowLiterals(16)),
        ("without-binary-ops", WeakKey::NoBinaryOps),
        ("without-unary-ops", WeakKey::NoUnaryOps),
        ("without-float-mode", WeakKey::NoFloatMode),
        ("interface", WeakKey::Interface),
        ("length", WeakKey::Length),
        ("first-64-bytes", WeakKey::Head(64)),
        ("last-8-bytes", WeakKey::End(8)),
        ("sum-of-bytes", WeakKey::Sum),
        ("3-bits", WeakKey::Bits(3)),
        ("6-bits", WeakKey::Bits(6)),
        ("count-of-parts", WeakKey::Count),
    ];
    for (name, key) in keys {
        list.add(Class::CacheKey, name, Fault::CacheKey(key), alike);
    }
}

/// Programs that are nearly the same, and one program with other constants.
fn alike() -> Witness {
    let constants = "program tuned {
  workgroup 8
  const a: u32 = 3
  const b: i32 = 4
  const c: f32 = 5.5
  const d: bool = false
  const e: u32 = 9
  buffer x: read u32 @0
  buffer out: output f32[64] @1
  out[gid.x] = f32(x[gid.x] * a + e) * c + select(d, 1.0, 0.0) + f32(b)
}";
    let tuned = |values: &[(&str, SpecValue)]| {
        let mut case = case(constants, vec![words(64, 1000)]);
        values.iter().for_each(|(name, value)| case.config.specialization.insert(*name, value.clone()));
        case
    };
    let both = |a, e| tuned(&[("a", SpecValue::U32(a)), ("e", SpecValue::U32(e))]);
    let mut cases = vec![
        tuned(&[("a", SpecValue::U32(3))]),
        tuned(&[("a", SpecValue::U32(7))]),
        tuned(&[("b", SpecValue::I32(4))]),
        tuned(&[("b", SpecValue::I32(8))]),
        tuned(&[("c", SpecValue::F32(1.5))]),
        tuned(&[("c", SpecValue::F32(2.5))]),
        tuned(&[("d", SpecValue::Bool(true))]),
        tuned(&[("d", SpecValue::Bool(false))]),
        both(3, 9),
        both(9, 3),
    ];
    let body = |value: &str, mode: &str| {
        let text = format!(
            "program alike {{
  workgroup 8{mode}
  buffer x: read u32 @0
  buffer out: output u64[64] @1
  out[gid.x] = {value}
}}"
        );
        case(&text, vec![words(64, 1000)])
    };
    let bits = |value: &str| format!("u64(bitcast<u32>({value}))");
    for value in ["u64(x[gid.x] + 3)", "u64(x[gid.x] + 4)", "u64(x[gid.x] + 259)", "u64(x[gid.x] + 65795)"] {
        cases.push(body(value, ""));
    }
    for value in ["u64(x[gid.x] * 3)", "u64(x[gid.x] - 3)", "u64(i32(x[gid.x]) + 3i)", "u64(i32(x[gid.x]) + 5i)"] {
        cases.push(body(value, ""));
    }
    for value in ["u64(popcount(x[gid.x]))", "u64(ctz(x[gid.x]))", "u64(x[gid.x]) + 3u64", "u64(x[gid.x]) + 5u64"] {
        cases.push(body(value, ""));
    }
    for value in ["f32(x[gid.x]) * 1.5", "f32(x[gid.x]) * 2.5"] {
        cases.push(body(&bits(value), ""));
    }
    for value in ["bitcast<u64>(f64(x[gid.x]) * 1.5d)", "bitcast<u64>(f64(x[gid.x]) * 2.5d)"] {
        cases.push(body(value, ""));
    }
    let tiny = bits("f32(x[gid.x]) * 0x1p-140");
    cases.extend([body(&tiny, ""), body(&tiny, "\n  floats canonical")]);
    // Two ops in one order and in the other: as long, and of the same bytes.
    cases.extend([body("u64((x[gid.x] + 3) * 5)", ""), body("u64((x[gid.x] + 5) * 3)", "")]);
    Witness::Cases(cases)
}

fn add_resident(list: &mut List) {
    let faults = [
        ("first-upload-lost", DeviceFault::LostUpload(0)),
        ("second-upload-lost", DeviceFault::LostUpload(1)),
        ("third-upload-lost", DeviceFault::LostUpload(2)),
        ("last-upload-lost", DeviceFault::LostLastUpload),
        ("upload-beyond-multiple-of-64-lost", DeviceFault::ShortUpload(64)),
        ("upload-beyond-multiple-of-16-lost", DeviceFault::ShortUpload(16)),
        ("upload-beyond-multiple-of-4096-lost", DeviceFault::ShortUpload(4096)),
        ("first-upload-late", DeviceFault::LateUpload(0)),
        ("second-upload-late", DeviceFault::LateUpload(1)),
        ("later-dispatches-lost", DeviceFault::LostLater),
        ("last-dispatch-lost", DeviceFault::LostLast),
        ("outputs-not-zero", DeviceFault::KeepsOutputs),
        ("first-binding-of-before", DeviceFault::Before(0)),
        ("second-binding-of-before", DeviceFault::Before(1)),
        ("third-binding-of-before", DeviceFault::Before(2)),
        ("copy-of-first-binding-lost", DeviceFault::LostCopy(0)),
        ("copy-of-second-binding-lost", DeviceFault::LostCopy(1)),
        ("first-two-bindings-swapped", DeviceFault::Swapped(0, 1)),
        ("first-and-third-binding-swapped", DeviceFault::Swapped(0, 2)),
        ("last-word-of-first-binding-lost", DeviceFault::LostEnd(0, 4)),
        ("last-64-bytes-of-second-binding-lost", DeviceFault::LostEnd(1, 64)),
        ("read-before-last-dispatch", DeviceFault::EarlyRead),
        ("last-workgroup-of-later-dispatches-lost", DeviceFault::LostGroup),
    ];
    for (name, fault) in faults {
        list.add(Class::Resident, name, Fault::Device(fault), steps);
    }
}

/// Dispatches that hand their results on.
fn steps() -> Witness {
    let program = |factor: u32| -> Program {
        let text = format!(
            "program step {{
  workgroup 16
  buffer a: read u32 @0
  buffer b: read_write u32 @1
  buffer c: output u32 @2
  b[gid.x] = b[gid.x] * {factor} + a[gid.x]
  if b[gid.x] % 2 == 1 {{
    c[gid.x] = b[gid.x] + a[99 - gid.x]
  }}
}}"
        );
        match parse("step.vyre", &text) {
            Ok(program) => program,
            Err(report) => unreachable!("a witness is a program: {report}"),
        }
    };
    let step = |factor: u32, buffers: [usize; 3]| {
        let case = launched(Case::new(program(factor), Vec::new()), [7, 1, 1]);
        SequenceStep { program: case.program, config: case.config, buffers: buffers.into() }
    };
    let buffers = (0..6).map(|n| words(1000, 100_000)[404 * n..][..404].to_vec()).collect();
    // What was an output is read, and what was read is written.
    let steps = vec![step(3, [0, 1, 3]), step(5, [3, 2, 4]), step(7, [5, 4, 0]), step(11, [1, 3, 2])];
    Witness::Sequence(Sequence { buffers, steps, fuel: 1 << 20 })
}
