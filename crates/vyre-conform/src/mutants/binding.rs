//! Buffers that are taken for others of their type.

use super::fault::Fault;
use super::floats::launched;
use super::rewrite::{Change, on_parts};
use super::witness::{case, mix, words};
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{Access, Body, BufferDecl, DataType, Expr, Name, Node, Program};
use vyre_foundation::kernel::Buffer;
use vyre_spec::Storage;
use vyre_worker::Case;

/// Names another buffer wherever one is named.
fn rename(body: &mut Body, name: &dyn Fn(&Name) -> Option<Name>) {
    fn expr(here: &mut Expr, name: &dyn Fn(&Name) -> Option<Name>) {
        let buffer = match here {
            Expr::Load(load) => Some(&mut load.buffer),
            Expr::Len(buffer) => Some(buffer),
            Expr::Lit(_)
            | Expr::Var(_)
            | Expr::Builtin(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Vector { .. }
            | Expr::Extract { .. } => None,
        };
        if let Some(buffer) = buffer
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

/// Which buffers, by what may be done with them.
type Wanted = fn(Access) -> bool;

/// A change that mistakes the first two buffers of a kind for each other, or the second for the first.
fn mistakes(element: Option<DataType>, wanted: Wanted, both: bool) -> Change {
    on_parts(move |parts, kernel| {
        let fits = |buffer: &&Buffer| wanted(buffer.access) && element.as_ref().is_none_or(|element| buffer.element == *element);
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

pub(super) fn add(list: &mut List) {
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
    let kinds: [(&str, Wanted, bool); 4] = [
        ("second-input-is-first", is_read, false),
        ("read-write-swapped", |access| access == Access::ReadWrite, true),
        ("uniforms-swapped", |access| access == Access::Uniform, true),
        ("second-workgroup-memory-is-first", |access| access == Access::Workgroup, false),
    ];
    for (name, wanted, both) in kinds {
        list.add(Class::Binding, name, Fault::Code(mistakes(None, wanted, both)), six);
    }
}

/// Two inputs and two outputs of one type, which are never alike.
fn pairs(element: &DataType) -> Witness {
    let scalar = witness::value(element);
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
