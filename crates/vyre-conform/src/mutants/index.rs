//! Accesses that go to another element.

use super::fault::Fault;
use super::floats::launched;
use super::rewrite::{Change, Site, on_expr, on_node};
use super::witness::mix;
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{Access, AtomicOp, BufferDecl, DataType, Expr, Load, Name, Node, Program, Scalar};
use vyre_foundation::kernel::Buffer;
use vyre_spec::Storage;
use vyre_worker::Case;

/// An index from a buffer and the right index.
pub(super) type Wrong = fn(&Name, &mut Site<'_>, Expr) -> Expr;

/// A change of the index of loads from some buffers.
pub(super) fn on_loads(wanted: impl Fn(&Buffer) -> bool + Send + Sync + 'static, wrong: Wrong) -> Change {
    on_expr(move |site, expr| {
        let Expr::Load(load) = expr else { return None };
        let Load { buffer, index } = &**load;
        site.buffer(buffer).filter(|buffer| wanted(buffer))?;
        let index = wrong(buffer, site, Expr::clone(index));
        Some(Expr::load(buffer, index))
    })
}

/// A change of the index of stores to some buffers.
fn on_stores(wanted: impl Fn(&Buffer) -> bool + Send + Sync + 'static, wrong: Wrong) -> Change {
    on_node(move |site, node| {
        let Node::Store(store) = node else { return None };
        site.buffer(&store.buffer).filter(|buffer| wanted(buffer))?;
        let index = wrong(&store.buffer, site, store.index.clone());
        Some(vec![Node::store(&store.buffer, index, store.value.clone())])
    })
}

fn plus_one(_: &Name, _: &mut Site<'_>, index: Expr) -> Expr {
    Expr::add(index, Expr::u32(1))
}

fn minus_one(_: &Name, _: &mut Site<'_>, index: Expr) -> Expr {
    Expr::sub(index, Expr::u32(1))
}

pub(super) fn add(list: &mut List) {
    for element in DataType::KERNEL_SCALARS {
        let stores = match element.storage() {
            Storage::Computed(_) | Storage::Converted(_) => true,
            Storage::LoadOnly(_) => false,
            Storage::Described => continue,
        };
        for (name, wrong) in [("plus-one", plus_one as Wrong), ("minus-one", minus_one)] {
            let of = element.clone();
            let change = on_loads(move |buffer| buffer.element == of, wrong);
            let of = element.clone();
            list.add(Class::Index, format!("load.{element}-{name}"), Fault::Code(change), move || gather(&of));
        }
        if stores {
            let of = element.clone();
            let change = on_stores(move |buffer| buffer.element == of, plus_one);
            let of = element.clone();
            list.add(Class::Index, format!("store.{element}-plus-one"), Fault::Code(change), move || scatter(&of));
        }
    }
    let kinds: [(&str, Wrong); 9] = [
        ("clamped", |buffer, _, index| Expr::min(index, Expr::sub(Expr::buf_len(buffer), Expr::u32(1)))),
        ("modulo-length", |buffer, _, index| Expr::rem(index, Expr::buf_len(buffer))),
        ("loses-two-bits", |_, _, index| Expr::bitand(index, Expr::u32(0x3FFF_FFFF))),
        ("loses-one-bit", |_, _, index| Expr::bitand(index, Expr::u32(0x7FFF_FFFF))),
        ("low-half", |_, _, index| Expr::bitand(index, Expr::u32(0xFFFF))),
        ("low-byte", |_, _, index| Expr::bitand(index, Expr::u32(0xFF))),
        ("neighbour", |_, _, index| Expr::bitxor(index, Expr::u32(1))),
        ("past-end-is-last", |buffer, site, index| {
            let index = site.bind(index);
            let end = Expr::eq(index.clone(), Expr::buf_len(buffer));
            Expr::select(end, Expr::sub(index.clone(), Expr::u32(1)), index)
        }),
        ("past-end-is-first", |buffer, site, index| {
            let index = site.bind(index);
            Expr::select(Expr::eq(index.clone(), Expr::buf_len(buffer)), Expr::u32(0), index)
        }),
    ];
    for (name, wrong) in kinds {
        list.add(Class::Index, format!("load-{name}"), Fault::Code(on_loads(|_| true, wrong)), || gather(&DataType::U32));
        list.add(Class::Index, format!("store-{name}"), Fault::Code(on_stores(|_| true, wrong)), || scatter(&DataType::U32));
    }
    for (name, wrong) in [("plus-one", plus_one as Wrong), ("minus-one", minus_one)] {
        let shared = |buffer: &Buffer| buffer.access == Access::Workgroup;
        let load = Fault::Code(on_loads(shared, wrong));
        list.add(Class::Index, format!("load-workgroup-memory-{name}"), load, super::control::exchange);
        let store = Fault::Code(on_stores(shared, wrong));
        list.add(Class::Index, format!("store-workgroup-memory-{name}"), store, super::control::exchange);
        let atomic = on_node(move |site, node| {
            let Node::Atomic(atomic) = node else { return None };
            let mut changed = atomic.clone();
            changed.index = wrong(&atomic.buffer, site, atomic.index.clone());
            Some(vec![Node::Atomic(changed)])
        });
        list.add(Class::Index, format!("atomic-{name}"), Fault::Code(atomic), || super::ops::alone(AtomicOp::Add, Scalar::U32));
    }
}

/// Indices in range, and such that are not.
fn indices(count: u32) -> Vec<u8> {
    let hostile =
        [0, count, count + 1, count + 2, 1 << 16, (1 << 16) + 5, 1 << 30, (1 << 30) + 3, 1 << 31, (1 << 31) + 7, 256 + 9];
    let more = [u32::MAX, u32::MAX - 1, 0xC000_0004, 0x8000_0000 + count];
    let inside = (0..count).map(|n| (mix(n.into()) % u64::from(count)) as u32);
    hostile.into_iter().chain(more).chain(inside).flat_map(u32::to_le_bytes).collect()
}

const CELLS: u32 = 101;

/// Loads of an element type at all kinds of indices.
fn gather(element: &DataType) -> Witness {
    let scalar = witness::value(element);
    let at = indices(CELLS);
    let count = at.len() as u32 / 4;
    let buffers = vec![
        BufferDecl::read("at", 0, DataType::U32),
        BufferDecl::read("x", 1, element.clone()),
        BufferDecl::output("out", 2, witness::element(scalar)).with_count(count),
    ];
    let body = vec![Node::store("out", Expr::gid_x(), Expr::load("x", Expr::load("at", Expr::gid_x())))];
    let program = Program::wrapped(buffers, [64, 1, 1], body);
    Witness::Cases(vec![Case::new(program, vec![at, cells(element)])])
}

/// Elements that differ from their neighbours.
fn cells(element: &DataType) -> Vec<u8> {
    let bits = u64::from(CELLS) * element.bits().unwrap_or(32);
    (0..bits.div_ceil(8)).map(|n| (mix(n) >> 9) as u8 & 0x7F).collect()
}

/// Stores of an element type: one to each element, and some that are dropped.
fn scatter(element: &DataType) -> Witness {
    let scalar = witness::value(element);
    // The first is left out, so that what wraps around to it shows.
    let hostile = [CELLS, (1 << 16) + 2, (1 << 30) + 3, (1 << 31) + 5, u32::MAX, 256 + 9];
    let (first, last) = (10u32, CELLS - 3);
    let at: Vec<u32> = (first..last).map(|n| first + (n * 7) % (last - first)).chain(hostile).collect();
    let values: Vec<u64> = (0..at.len() as u64).map(|n| stored_number(scalar, n % 97 + 1)).collect();
    let buffers = vec![
        BufferDecl::read("at", 0, DataType::U32),
        BufferDecl::read("x", 1, witness::element(scalar)),
        BufferDecl::output("out", 2, element.clone()).with_count(CELLS),
    ];
    let store = Node::store("out", Expr::load("at", Expr::gid_x()), Expr::load("x", Expr::gid_x()));
    let body = vec![Node::if_then(Expr::lt(Expr::gid_x(), Expr::buf_len("at")), vec![store])];
    let program = Program::wrapped(buffers, [64, 1, 1], body);
    let at = at.into_iter().flat_map(u32::to_le_bytes).collect();
    Witness::Cases(vec![launched(Case::new(program, vec![at, witness::bytes(scalar, &values)]), [2, 1, 1])])
}

/// A small number that every type of this value can hold, apart from its neighbours.
fn stored_number(ty: Scalar, n: u64) -> u64 {
    match ty {
        Scalar::Bool => n / 3 % 2,
        Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => n,
        Scalar::F32 => u64::from((n as f32).to_bits()),
        Scalar::F64 => (n as f64).to_bits(),
    }
}
