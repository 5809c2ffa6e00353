//! Accesses that go elsewhere: other elements, other strides, other buffers, and the last elements of a buffer.

use super::arithmetic::lit;
use super::fault::Fault;
use super::floats::launched;
use super::ops::pure_ops;
use super::rewrite::{Change, Site, on_expr, on_node, on_parts};
use super::witness::{apply, case, mix, words};
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{Access, Axis, BinaryOp, Body, BufferDecl, Builtin, DataType, Expr, Name, Node, OpId, Program, Scalar};
use vyre_reference::faults::BulkFault;
use vyre_spec::Storage;
use vyre_worker::Case;

pub(super) fn add(list: &mut List) {
    add_index(list);
    add_stride(list);
    add_binding(list);
    add_tail(list);
}

/// An index from a buffer and the right index.
type Wrong = fn(&Name, &mut Site<'_>, Expr) -> Expr;

/// A change of the index of loads from some buffers.
fn on_loads(wanted: impl Fn(&vyre_foundation::kernel::Buffer) -> bool + Send + Sync + 'static, wrong: Wrong) -> Change {
    on_expr(move |site, expr| {
        let Expr::Load { buffer, index } = expr else { return None };
        site.buffer(buffer).filter(|buffer| wanted(buffer))?;
        let index = wrong(buffer, site, Expr::clone(index));
        Some(Expr::load(buffer, index))
    })
}

/// A change of the index of stores to some buffers.
fn on_stores(wanted: impl Fn(&vyre_foundation::kernel::Buffer) -> bool + Send + Sync + 'static, wrong: Wrong) -> Change {
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

fn add_index(list: &mut List) {
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
        let shared = |buffer: &vyre_foundation::kernel::Buffer| buffer.access == Access::Workgroup;
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
        list.add(Class::Index, format!("atomic-{name}"), Fault::Code(atomic), || {
            super::ops::alone(vyre_foundation::ir::AtomicOp::Add, Scalar::U32)
        });
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
    let value = element.storage();
    let scalar = match value {
        Storage::Computed(ty) => ty.scalar().unwrap_or(Scalar::U32),
        Storage::Converted(scalar) | Storage::LoadOnly(scalar) => scalar,
        Storage::Described => Scalar::U32,
    };
    let at = indices(CELLS);
    let count = at.len() as u32 / 4;
    let buffers = vec![
        BufferDecl::read("at", 0, DataType::U32),
        BufferDecl::read("x", 1, element.clone()),
        BufferDecl::output("out", 2, witness::element(scalar)).with_count(count),
    ];
    // The index buffer is of another element type than what is looked at, but for u32.
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
    let scalar = match element.storage() {
        Storage::Computed(ty) => ty.scalar().unwrap_or(Scalar::U32),
        Storage::Converted(scalar) | Storage::LoadOnly(scalar) => scalar,
        Storage::Described => Scalar::U32,
    };
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
    let body = vec![Node::store("out", Expr::load("at", Expr::gid_x()), Expr::load("x", Expr::gid_x()))];
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

fn next_axis(axis: Axis) -> Axis {
    match axis {
        Axis::X => Axis::Y,
        Axis::Y => Axis::Z,
        Axis::Z => Axis::X,
    }
}

fn mistaken(builtin: Builtin) -> Builtin {
    match builtin {
        Builtin::Invocation(axis) => Builtin::Invocation(next_axis(axis)),
        Builtin::Workgroup(axis) => Builtin::Workgroup(next_axis(axis)),
        Builtin::Local(axis) => Builtin::Local(next_axis(axis)),
        Builtin::InvocationCount(axis) => Builtin::InvocationCount(next_axis(axis)),
        Builtin::WorkgroupCount(axis) => Builtin::WorkgroupCount(next_axis(axis)),
        Builtin::LocalCount(axis) => Builtin::LocalCount(next_axis(axis)),
        Builtin::SubgroupLane => Builtin::Local(Axis::X),
        Builtin::SubgroupSize => Builtin::LocalCount(Axis::X),
    }
}

fn on_builtin(builtin: Builtin, instead: impl Fn() -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |_, expr| matches!(expr, Expr::Builtin(here) if *here == builtin).then(&instead))
}

fn add_stride(list: &mut List) {
    for builtin in Builtin::ALL {
        let other = mistaken(builtin);
        let change = on_builtin(builtin, move || Expr::builtin(other));
        list.add(Class::Stride, format!("{builtin}-is-{other}"), Fault::Code(change), move || told(builtin));
        let change = on_builtin(builtin, move || Expr::add(Expr::builtin(builtin), Expr::u32(1)));
        list.add(Class::Stride, format!("{builtin}-plus-one"), Fault::Code(change), move || told(builtin));
    }
    type Index = fn(&Expr) -> Option<Expr>;
    fn parts(expr: &Expr, op: BinaryOp) -> Option<(Expr, Expr)> {
        let Expr::Binary { op: here, left, right } = expr else { return None };
        (*here == op).then(|| (Expr::clone(left), Expr::clone(right)))
    }
    let kinds: [(&str, Index); 4] = [
        ("stride-plus-one", |e| parts(e, BinaryOp::Mul).map(|(a, b)| Expr::mul(a, Expr::add(b, Expr::u32(1))))),
        ("stride-minus-one", |e| parts(e, BinaryOp::Mul).map(|(a, b)| Expr::mul(a, Expr::sub(b, Expr::u32(1))))),
        ("offset-dropped", |e| parts(e, BinaryOp::Add).and_then(|(a, _)| parts(&a, BinaryOp::Mul).map(|_| a))),
        ("transposed", |e| {
            let (row, column) = parts(e, BinaryOp::Add)?;
            let (a, b) = parts(&row, BinaryOp::Mul)?;
            Some(Expr::add(Expr::mul(column, b), a))
        }),
    ];
    for (name, index) in kinds {
        let change = on_expr(move |site, expr| index(expr).filter(|_| site.in_index));
        list.add(Class::Stride, format!("index-{name}"), Fault::Code(change), rows);
    }
    let lengths: [(&str, fn(Expr) -> Expr); 4] = [
        ("plus-one", |length| Expr::add(length, Expr::u32(1))),
        ("minus-one", |length| Expr::sub(length, Expr::u32(1))),
        ("rounded-up-to-4", |length| Expr::bitand(Expr::add(length, Expr::u32(3)), Expr::u32(!3))),
        ("rounded-down-to-8", |length| Expr::bitand(length, Expr::u32(!7))),
    ];
    for (name, wrong) in lengths {
        let change = on_expr(move |_, expr| matches!(expr, Expr::Len(_)).then(|| wrong(expr.clone())));
        list.add(Class::Stride, format!("len-{name}"), Fault::Code(change), rows);
    }
    let next = on_expr(|site, expr| {
        let Expr::Extract { vector, component } = expr else { return None };
        let vyre_foundation::kernel::ExprKind::Extract { vector: of, .. } = site.typed()?.kind else { return None };
        let vyre_spec::ValueType::Vector(_, count) = site.kernel.expr(of).ty else { return None };
        Some(Expr::extract(Expr::clone(vector), (component + 1) % count))
    });
    list.add(Class::Stride, "component-is-next", Fault::Code(next), vectors);
    let last = on_expr(|_, expr| {
        let Expr::Extract { vector, component } = expr else { return None };
        (*component == 3).then(|| Expr::extract(Expr::clone(vector), 2))
    });
    list.add(Class::Stride, "fourth-component-is-third", Fault::Code(last), vectors);
    let reversed = on_expr(|_, expr| {
        let Expr::Vector { components } = expr else { return None };
        Some(Expr::vector(components.iter().rev().map(|component| Expr::clone(component))))
    });
    list.add(Class::Stride, "components-reversed", Fault::Code(reversed), vectors);
}

/// What every invocation finds out about itself, in a grid of three dimensions.
fn told(builtin: Builtin) -> Witness {
    let text = format!(
        "program ids {{
  workgroup 4 2 3
  subgroup 8
  buffer out: output u32[2000] @0
  out[(gid.z * 8 + gid.y) * 20 + gid.x] = {builtin} * 7 + 3
}}"
    );
    Witness::Cases(vec![launched(case(&text, Vec::new()), [5, 3, 2])])
}

/// Rows of a matrix added up.
fn rows() -> Witness {
    let text = "program rows {
  workgroup 8
  buffer m: read u32 @0
  buffer out: output u32[30] @1
  let sum = len(m)
  for k in 0..9 {
    sum = sum * 3 + m[gid.x * 9 + k]
  }
  if gid.x < len(out) {
    out[gid.x] = sum
  }
}";
    Witness::Cases(vec![launched(case(text, vec![words(9 * 30 + 3, 1000)]), [4, 1, 1])])
}

/// Vectors taken apart and put together.
fn vectors() -> Witness {
    let v = || Expr::load("v", Expr::gid_x());
    let part = |n| Expr::extract(v(), n);
    let sum = Expr::add(Expr::mul(part(0), Expr::u32(3)), Expr::add(Expr::mul(part(3), Expr::u32(5)), part(2)));
    let buffers =
        vec![BufferDecl::read("v", 0, DataType::Vec4U32), BufferDecl::output("out", 1, DataType::Vec4U32).with_count(64)];
    let whole = Expr::vector([sum, part(1), part(2), part(3)]);
    let program = Program::wrapped(buffers, [64, 1, 1], vec![Node::store("out", Expr::gid_x(), whole)]);
    Witness::Cases(vec![Case::new(program, vec![words(256, 1000)])])
}

/// Names another buffer wherever one is named.
fn rename(body: &mut Body, name: &dyn Fn(&Name) -> Option<Name>) {
    fn expr(here: &mut Expr, name: &dyn Fn(&Name) -> Option<Name>) {
        if let Expr::Load { buffer, .. } | Expr::Len(buffer) = here
            && let Some(other) = name(buffer)
        {
            *buffer = other;
        }
        here.children_mut().for_each(|child| expr(child, name));
    }
    for node in body.iter_mut() {
        node.exprs_mut().for_each(|here| expr(here, name));
        let accessed = node.access().and_then(|(buffer, _)| name(buffer).map(|other| (buffer.clone(), other)));
        if let Some((from, to)) = accessed {
            // A name of a buffer is never that of a variable.
            node.names_mut().filter(|here| **here == from).for_each(|here| *here = to.clone());
        }
        node.bodies_mut().for_each(|body| rename(body, name));
    }
}

/// A change that mistakes the first two buffers of a kind for each other, or the second for the first.
fn mistakes(element: Option<DataType>, wanted: fn(Access) -> bool, both: bool) -> Change {
    on_parts(move |parts, kernel| {
        let fits = |buffer: &&vyre_foundation::kernel::Buffer| {
            wanted(buffer.access) && element.as_ref().is_none_or(|element| buffer.element == *element)
        };
        let mut found: Vec<_> = kernel.buffers.iter().filter(fits).collect();
        found.sort_by_key(|buffer| buffer.binding);
        let Some(first) = found.first() else { return false };
        let Some(second) = found[1..].iter().find(|other| other.element == first.element && other.access == first.access) else {
            return false;
        };
        let before = parts.body.clone();
        rename(&mut parts.body, &|name| match () {
            () if *name == second.name => Some(first.name.clone()),
            () if both && *name == first.name => Some(second.name.clone()),
            () => None,
        });
        parts.body != before
    })
}

fn is_read(access: Access) -> bool {
    access == Access::Read
}

fn is_output(access: Access) -> bool {
    access == Access::Output
}

fn add_binding(list: &mut List) {
    for element in DataType::KERNEL_SCALARS {
        let stores = match element.storage() {
            Storage::Computed(_) | Storage::Converted(_) => true,
            Storage::LoadOnly(_) => false,
            Storage::Described => continue,
        };
        let of = element.clone();
        let swapped = mistakes(Some(element.clone()), is_read, true);
        list.add(Class::Binding, format!("inputs.{element}-swapped"), Fault::Code(swapped), move || pairs(&of));
        if !stores {
            continue;
        }
        let of = element.clone();
        let outputs = mistakes(Some(element.clone()), is_output, true);
        list.add(Class::Binding, format!("outputs.{element}-swapped"), Fault::Code(outputs), move || pairs(&of));
    }
    let kinds: [(&str, fn(Access) -> bool, bool); 5] = [
        ("second-input-is-first", is_read, false),
        ("read-write-swapped", |access| access == Access::ReadWrite, true),
        ("uniforms-swapped", |access| access == Access::Uniform, true),
        ("workgroup-memories-swapped", |access| access == Access::Workgroup, true),
        ("second-workgroup-memory-is-first", |access| access == Access::Workgroup, false),
    ];
    for (name, wanted, both) in kinds {
        list.add(Class::Binding, name, Fault::Code(mistakes(None, wanted, both)), six);
    }
}

/// Two inputs and two outputs of one type, which are never alike.
fn pairs(element: &DataType) -> Witness {
    let scalar = match element.storage() {
        Storage::Computed(ty) => ty.scalar().unwrap_or(Scalar::U32),
        Storage::Converted(scalar) | Storage::LoadOnly(scalar) => scalar,
        Storage::Described => Scalar::U32,
    };
    let out = if matches!(element.storage(), Storage::LoadOnly(_)) { witness::element(scalar) } else { element.clone() };
    let buffers = vec![
        BufferDecl::read("a", 0, element.clone()),
        BufferDecl::read("b", 1, element.clone()),
        BufferDecl::output("c", 2, out.clone()).with_count(64),
        BufferDecl::output("d", 3, out).with_count(64),
    ];
    let body = vec![
        Node::store("c", Expr::gid_x(), Expr::load("a", Expr::gid_x())),
        Node::store("d", Expr::gid_x(), Expr::load("b", Expr::gid_x())),
    ];
    let bytes = 64 * element.bits().unwrap_or(32) as usize / 8;
    let cells = |seed: u64| (0..bytes).map(|n| (mix(n as u64 ^ seed) >> 9) as u8 & 0x77).collect::<Vec<u8>>();
    let program = Program::wrapped(buffers, [64, 1, 1], body);
    let (mut a, b) = (cells(1 << 20), cells(2 << 20));
    if *element == DataType::Bool {
        a.fill(0);
    }
    Witness::Cases(vec![Case::new(program, vec![a, b])])
}

/// Two buffers of each kind of access.
fn six() -> Witness {
    let text = "program six {
  workgroup 16
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer p: read_write u32 @2
  buffer q: read_write u32 @3
  buffer u: uniform u32[16] @4
  buffer v: uniform u32[16] @5
  buffer s: workgroup u32[16]
  buffer t: workgroup u32[16]
  let i = lid.x
  s[i] = a[i] * 3
  t[i] = b[i] * 5
  barrier
  p[i] = p[i] * 7 + s[15 - i] * 11 + u[i]
  q[i] = q[i] * 13 + t[15 - i] + v[i] * 17
}";
    let inputs = (0..6).map(|n| words(96, 1000)[16 * 4 * n % 320..][..64].to_vec()).collect();
    Witness::Cases(vec![launched(case(text, inputs), [1, 1, 1])])
}

/// Whether an element is beyond the last multiple of a vector's width.
fn in_tail(buffer: &Name, index: Expr, width: u32) -> Expr {
    Expr::ge(index, Expr::bitand(Expr::buf_len(buffer), Expr::u32(!(width - 1))))
}

/// A change of stores to the last elements.
fn tail_stores(wanted: impl Fn(&DataType) -> bool + Send + Sync + 'static, width: u32, dropped: bool) -> Change {
    on_node(move |site, node| {
        let Node::Store(store) = node else { return None };
        let buffer = site.buffer(&store.buffer).filter(|buffer| wanted(&buffer.element))?;
        let zero = lit(buffer.value.scalar()?, 0);
        let index = site.bind(store.index.clone());
        let tail = in_tail(&store.buffer, index.clone(), width);
        if dropped {
            let right = Node::store(&store.buffer, index, store.value.clone());
            return Some(vec![Node::if_then(Expr::not(tail), vec![right])]);
        }
        let value = Expr::select(tail, zero, store.value.clone());
        Some(vec![Node::store(&store.buffer, index, value)])
    })
}

fn add_tail(list: &mut List) {
    for element in DataType::KERNEL_SCALARS {
        if matches!(element.storage(), Storage::LoadOnly(_) | Storage::Described) {
            continue;
        }
        let of = element.clone();
        let change = tail_stores(move |here| *here == of, 8, true);
        let of = element.clone();
        list.add(Class::Tail, format!("store.{element}-dropped-beyond-8"), Fault::Code(change), move || pairs_of_61(&of));
    }
    for width in [4, 8, 16, 32] {
        let zero = Fault::Code(tail_stores(|_| true, width, false));
        list.add(Class::Tail, format!("store-zero-beyond-{width}"), zero, || pairs_of_61(&DataType::U32));
        let loads = on_expr(move |site, expr| {
            let Expr::Load { buffer, index } = expr else { return None };
            let zero = lit(site.scalar()?, 0);
            let index = site.bind(Expr::clone(index));
            Some(Expr::select(in_tail(buffer, index.clone(), width), zero, Expr::load(buffer, index)))
        });
        list.add(Class::Tail, format!("load-zero-beyond-{width}"), Fault::Code(loads), || pairs_of_61(&DataType::U32));
        let first = on_loads(
            |_| true,
            match width {
                4 => |buffer, site, index| repeated(buffer, site, index, 4),
                8 => |buffer, site, index| repeated(buffer, site, index, 8),
                16 => |buffer, site, index| repeated(buffer, site, index, 16),
                _ => |buffer, site, index| repeated(buffer, site, index, 32),
            },
        );
        list.add(Class::Tail, format!("load-repeats-beyond-{width}"), Fault::Code(first), || pairs_of_61(&DataType::U32));
    }
    // The invocations of a workgroup that do not fill a vector compute something else.
    for (op, ty) in pure_ops().flat_map(|op| op.info().over.iter().map(move |ty| (op, ty))) {
        let OpId::Binary(binary) = op else { continue };
        if !matches!(binary, BinaryOp::Add | BinaryOp::Max | BinaryOp::BitXor) || !ty.is_int() && !ty.is_float() {
            continue;
        }
        let change = super::rewrite::on_binary(binary, ty, move |site, a, b| {
            let a = site.bind(a);
            let count = Expr::builtin(Builtin::LocalCount(Axis::X));
            let tail = Expr::ge(Expr::lid_x(), Expr::bitand(count, Expr::u32(!7)));
            Expr::select(tail, a.clone(), apply(op, vec![a, b]))
        });
        let witness = move || {
            let Witness::Cases(cases) = super::witness::of_op(op, ty) else { unreachable!("cases") };
            Witness::Cases(cases.into_iter().map(|case| resized(case, 37)).collect())
        };
        list.add(Class::Tail, format!("{op}.{ty}-last-lanes"), Fault::Code(change), witness);
    }
    for fault in [BulkFault::TailComputed, BulkFault::TailLoaded, BulkFault::TailStored] {
        let shows = |kernel: &vyre_foundation::kernel::Kernel| !kernel.accesses.is_empty();
        list.add(Class::Tail, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, shows), || {
            let Witness::Cases(cases) = super::witness::of_op(OpId::Binary(BinaryOp::Add), Scalar::U32) else {
                unreachable!("cases")
            };
            Witness::Cases(cases.into_iter().map(|case| resized(case, 37)).collect())
        });
    }
}

fn repeated(buffer: &Name, site: &mut Site<'_>, index: Expr, width: u32) -> Expr {
    let index = site.bind(index);
    let start = Expr::bitand(Expr::buf_len(buffer), Expr::u32(!(width - 1)));
    Expr::select(in_tail(buffer, index.clone(), width), start, index)
}

/// The case in workgroups of another size.
pub(super) fn resized(mut case: Case, size: u32) -> Case {
    case.program = case.program.edit(|parts| parts.workgroup = [size.into(), 1.into(), 1.into()]);
    case
}

/// 61 elements copied.
fn pairs_of_61(element: &DataType) -> Witness {
    let buffers = vec![BufferDecl::read("a", 0, element.clone()), BufferDecl::output("b", 1, element.clone()).with_count(61)];
    let body = vec![Node::store("b", Expr::gid_x(), Expr::load("a", Expr::gid_x()))];
    let bytes = 61 * element.bits().unwrap_or(32) as usize / 8;
    let cells = (0..bytes).map(|n| (mix(n as u64) >> 9) as u8 & 0x77 | 1).collect();
    Witness::Cases(vec![Case::new(Program::wrapped(buffers, [64, 1, 1], body), vec![cells])])
}
