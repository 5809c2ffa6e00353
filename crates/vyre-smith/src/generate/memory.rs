//! Who may touch which element, and when: the discipline that makes communicating programs give the same bytes under every schedule.
//!
//! Time is cut into epochs: those of the grid, between grid barriers, and those of a workgroup, between any two barriers. Memory that
//! is written plays one role per epoch, which its first access in that epoch draws and all others there keep:
//!
//! - *private*: each invocation touches elements of its own, by an injective map of its id, and may do anything to them;
//! - *shared*: everybody reads anything and nobody writes;
//! - *gathering*: everybody applies atomics that commute with each other, anywhere, and nobody looks at a value;
//! - *flooding*: everybody writes one and the same literal, anywhere, and nobody reads;
//! - *taken*: tickets are drawn from one element by an atomic, or each ticket's element gets what the ticket alone decides. Who draws
//!   which depends on the schedule, which are drawn does not. Nobody else touches the buffer.
//!
//! A storage buffer has a role for the epoch of the grid. Its private form is *sliced*: each workgroup owns a slice, and within
//! it the roles are those of the workgroup's epochs, as they are for workgroup memory. So elements pass from invocation to invocation
//! through barriers, and from workgroup to workgroup through grid barriers.
//!
//! Roles follow control flow. Arms that a workgroup takes as a whole start from the same roles, and where they meet, a buffer whose
//! roles differ is out of bounds until the next barrier. Everything else accumulates: arms that invocations take differently, and the
//! iterations of a loop without a barrier, are in one epoch.

use super::Generator;
use vyre_foundation::ir::{Access, AtomicOp, Builtin, DataType, Expr, Literal, Name, Scalar, ValueType};
use vyre_spec::{AtomicClass, Axis};

/// The atomics that gather in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Those of one class, whose order does not show.
    One(AtomicClass),
    /// Any at all, results used: what only an order-dependent program does.
    Any,
}

impl Class {
    pub fn ops(self) -> Vec<AtomicOp> {
        match self {
            Class::One(class) => class.ops().collect(),
            Class::Any => AtomicOp::ALL.to_vec(),
        }
    }

    /// The classes whose order does not show, whatever the operands are.
    fn commuting() -> Vec<Class> {
        AtomicClass::ALL.into_iter().filter(|class| class.accumulates()).map(Class::One).collect()
    }
}

/// A one-to-one map of the elements of a slice onto themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// An invocation's elements lie together.
    Together,
    /// An invocation's elements are as far apart as the workgroup is large.
    Apart,
    /// The last comes first.
    Reversed,
    /// So many further on, around the end.
    Rotated(u32),
    /// Exclusive or with this; the slice has a power of two of elements.
    Flipped(u32),
    /// Times this, around the end; it has no factor in common with the slice.
    Scaled(u32),
}

/// What a workgroup does to its part of a buffer in one of its epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GroupRole {
    Fresh,
    Private(Order),
    Shared,
    Gathering(Class),
    Flooding(Literal),
    Taken,
    /// Differs with the way that led here.
    Mixed,
}

impl GroupRole {
    fn join(self, other: GroupRole) -> GroupRole {
        match (self, other) {
            (GroupRole::Fresh, role) | (role, GroupRole::Fresh) => role,
            (one, two) if one == two => one,
            (_, _) => GroupRole::Mixed,
        }
    }
}

/// What the grid does to a storage buffer in one of its epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GridRole {
    Fresh,
    Sliced,
    Shared,
    Gathering(Class),
    Flooding(Literal),
    Taken,
}

/// A buffer and what its type allows.
pub(super) struct Buffer {
    pub name: Name,
    pub access: Access,
    pub element: DataType,
    pub value: ValueType,
    /// Elements that each invocation owns, where it owns some.
    pub per: u32,
    /// Only private, so that what is stored here is seen at the end.
    pub sink: bool,
    pub grid: GridRole,
}

impl Buffer {
    fn floods(&self) -> Option<Scalar> {
        let wide = self.element.bits().is_some_and(|bits| bits >= 32);
        self.value.scalar().filter(|_| wide && !self.sink)
    }

    pub fn takes_atomics(&self) -> bool {
        self.access.is_writable() && matches!(self.element, DataType::U32 | DataType::I32)
    }
}

/// Where an access goes, and what else it must keep.
pub(super) struct Target {
    pub index: Expr,
    /// What a store must write.
    pub value: Option<Literal>,
}

/// Where an atomic goes, and which it may be.
pub(super) struct AtomicTarget {
    pub index: Expr,
    pub class: Class,
    /// Whether anybody may look at the result.
    pub result: bool,
}

/// How many elements of a slice each invocation owns, at most.
pub(super) const MAX_PER: u32 = 3;

impl Generator<'_> {
    /// A barrier of the workgroup.
    pub fn new_group_epoch(&mut self) {
        self.roles.fill(GroupRole::Fresh);
    }

    /// A grid barrier.
    pub fn new_grid_epoch(&mut self) {
        self.new_group_epoch();
        self.buffers.iter_mut().for_each(|buffer| buffer.grid = GridRole::Fresh);
    }

    /// Lets everybody read a buffer that nobody has touched yet in this epoch.
    pub fn share(&mut self, b: usize, whole_grid: bool) {
        if whole_grid {
            self.buffers[b].grid = GridRole::Shared;
        } else {
            self.roles[b] = GroupRole::Shared;
        }
    }

    pub fn join(roles: &mut [GroupRole], others: &[GroupRole]) {
        for (role, other) in roles.iter_mut().zip(others) {
            *role = role.join(*other);
        }
    }

    /// Invocations that share a slice: those of a workgroup. Where nothing may tell how invocations are grouped, each has its own.
    fn sharers(&self) -> u32 {
        if self.config.overridable { 1 } else { self.shape.group() }
    }

    /// Elements of the slice that one workgroup owns.
    fn slice(&self, b: usize) -> u32 {
        self.buffers[b].per * self.sharers()
    }

    fn order(&mut self, b: usize) -> Order {
        let slice = self.slice(b);
        if self.buffers[b].sink && self.dna.chance(80) {
            return Order::Together;
        }
        match self.dna.below(10) {
            0..=3 => Order::Together,
            4 => Order::Apart,
            5 => Order::Reversed,
            6 => Order::Rotated(1 + self.dna.below(slice)),
            7 if slice.is_power_of_two() => Order::Flipped(self.dna.below(slice)),
            8 => {
                let factor = self.dna.pick(&[3u32, 5, 7, 11, 13]);
                if slice.is_multiple_of(factor) { Order::Together } else { Order::Scaled(factor) }
            }
            _ => Order::Together,
        }
    }

    /// The invocation's number in its workgroup.
    fn local(&self) -> Expr {
        match (self.config.overridable, self.shape.flat()) {
            (true, _) => Expr::u32(0),
            (false, true) => Expr::lid_x(),
            (false, false) => Expr::var(&self.names.local),
        }
    }

    /// The number of the slice: the workgroup's, or the invocation's where each has its own.
    fn group(&self) -> Expr {
        match (self.config.overridable, self.shape.flat()) {
            (true, true) => Expr::gid_x(),
            (false, true) => Expr::wid_x(),
            (_, false) => Expr::var(&self.names.group),
        }
    }

    /// A number that differs among the invocations of a workgroup.
    pub fn lane_number(&mut self) -> Expr {
        match self.config.overridable || self.dna.chance(50) {
            true => Expr::gid_x(),
            false => self.local(),
        }
    }

    /// An element of the invocation's own.
    fn own(&mut self, b: usize, order: Order) -> Expr {
        let (per, slice) = (self.buffers[b].per, self.slice(b));
        let storage = self.buffers[b].access != Access::Workgroup;
        if per == 1 && order == Order::Together && self.shape.flat() && storage {
            return Expr::builtin(Builtin::Invocation(Axis::X));
        }
        let part = (per > 1).then(|| if self.dna.chance(70) { Expr::u32(self.dna.below(per)) } else { self.number_below(per) });
        let local = self.local();
        let together = |part: Option<Expr>, local: Expr| match part {
            None => local,
            Some(part) => Expr::add(Expr::mul(local, Expr::u32(per)), part),
        };
        let within = match order {
            Order::Together => together(part, local),
            Order::Apart => match part {
                None => local,
                Some(part) => Expr::add(Expr::mul(part, Expr::u32(self.sharers())), local),
            },
            Order::Reversed => Expr::sub(Expr::u32(slice - 1), together(part, local)),
            Order::Rotated(by) => Expr::rem(Expr::add(together(part, local), Expr::u32(by)), Expr::u32(slice)),
            Order::Flipped(by) => Expr::bitxor(together(part, local), Expr::u32(by)),
            Order::Scaled(factor) => Expr::rem(Expr::mul(together(part, local), Expr::u32(factor)), Expr::u32(slice)),
        };
        if storage { self.in_slice(b, within) } else { within }
    }

    /// The first of the invocation's own elements, the distance to the next, and how many there are, if the buffer may be written
    /// and they lie in a row.
    pub fn own_row(&mut self, b: usize) -> Option<(Expr, u32, u32)> {
        let per = self.buffers[b].per;
        let storage = self.buffers[b].access != Access::Workgroup;
        if storage && self.buffers[b].grid == GridRole::Fresh {
            self.buffers[b].grid = GridRole::Sliced;
        }
        if storage && self.buffers[b].grid != GridRole::Sliced {
            return None;
        }
        if self.roles[b] == GroupRole::Fresh {
            self.roles[b] = GroupRole::Private(self.dna.pick(&[Order::Together, Order::Apart]));
        }
        let (within, stride) = match self.roles[b] {
            GroupRole::Private(Order::Together) => (Expr::mul(self.local(), Expr::u32(per)), 1),
            GroupRole::Private(Order::Apart) => (self.local(), self.sharers()),
            GroupRole::Private(Order::Reversed | Order::Rotated(_) | Order::Flipped(_) | Order::Scaled(_))
            | GroupRole::Fresh
            | GroupRole::Shared
            | GroupRole::Gathering(_)
            | GroupRole::Flooding(_)
            | GroupRole::Taken
            | GroupRole::Mixed => return None,
        };
        Some((if storage { self.in_slice(b, within) } else { within }, stride, per))
    }

    /// Lets everybody in the workgroup read a buffer that nobody has touched yet in this epoch of the workgroup, if it is one that
    /// workgroups have slices of: an element of the slice, by a number that no memory has a part in.
    pub fn share_slice(&mut self, b: usize) -> Option<Expr> {
        let storage = self.buffers[b].access != Access::Workgroup;
        if storage && self.buffers[b].grid == GridRole::Fresh {
            self.buffers[b].grid = GridRole::Sliced;
        }
        if self.roles[b] != GroupRole::Fresh || storage && self.buffers[b].grid != GridRole::Sliced {
            return None;
        }
        self.roles[b] = GroupRole::Shared;
        let slice = self.slice(b);
        let number = match self.dna.below(3) {
            0 => Expr::u32(self.dna.below(slice)),
            1 => Expr::rem(Expr::add(self.local(), Expr::u32(1 + self.dna.below(3))), Expr::u32(slice)),
            _ => Expr::sub(Expr::u32(slice - 1), self.local()),
        };
        Some(if storage { self.in_slice(b, number) } else { number })
    }

    /// The element of the workgroup's slice with this number.
    fn in_slice(&self, b: usize, within: Expr) -> Expr {
        Expr::add(Expr::mul(self.group(), Expr::u32(self.slice(b))), within)
    }

    /// Whether tickets may be drawn from this buffer, or kept in it: by the grid, or by each workgroup for itself.
    pub fn may_be_taken(&self, b: usize, whole_grid: bool) -> bool {
        let buffer = &self.buffers[b];
        let fresh = self.roles[b] == GroupRole::Fresh;
        match (buffer.access == Access::Workgroup, whole_grid) {
            (true, _) => !whole_grid && fresh,
            (false, true) => buffer.grid == GridRole::Fresh,
            (false, false) => fresh && matches!(buffer.grid, GridRole::Fresh | GridRole::Sliced),
        }
    }

    /// Takes a buffer for tickets. Gives where the elements begin that whoever draws together has, and how many there are.
    pub fn take(&mut self, b: usize, whole_grid: bool) -> (Expr, u32) {
        let slice = self.slice(b);
        if whole_grid {
            self.buffers[b].grid = GridRole::Taken;
            return (Expr::u32(0), self.buffers[b].per * self.shape.invocations());
        }
        self.roles[b] = GroupRole::Taken;
        if self.buffers[b].access == Access::Workgroup {
            return (Expr::u32(0), slice);
        }
        self.buffers[b].grid = GridRole::Sliced;
        (self.in_slice(b, Expr::u32(0)), slice)
    }

    /// A scalar of 32 bits or more, which several may store to if they store the same.
    pub fn keeps_tickets(&self, b: usize) -> Option<Scalar> {
        self.buffers[b].floods().filter(|_| self.buffers[b].access.is_writable())
    }

    /// An element beside which another may be read too: any element where nobody writes.
    pub fn beside(&mut self, b: usize) -> Option<Expr> {
        match self.buffers[b].access {
            Access::Read | Access::Uniform => {}
            Access::ReadWrite | Access::Output => {
                let shares = self.buffers[b].grid == GridRole::Fresh && !self.buffers[b].sink && self.dna.chance(40);
                if self.buffers[b].grid != GridRole::Shared && !shares {
                    return None;
                }
                self.buffers[b].grid = GridRole::Shared;
            }
            Access::Workgroup => {
                if !matches!(self.roles[b], GroupRole::Fresh | GroupRole::Shared) {
                    return None;
                }
                self.roles[b] = GroupRole::Shared;
            }
        }
        // Mostly one of which some invocation has the last.
        let length = Expr::buf_len(&self.buffers[b].name);
        Some(match self.dna.below(6) {
            0 | 1 => self.lane_number(),
            2 => Expr::sub(length, Expr::u32(self.dna.below(4))),
            3 => Expr::sub(length, self.lane_number()),
            4 => Expr::rem(self.expr(Scalar::U32, 1, false), length),
            _ => self.any_index(b, 1),
        })
    }

    /// Any element that the workgroup may touch.
    fn anywhere_in_group(&mut self, b: usize, depth: u32) -> Expr {
        if self.buffers[b].access == Access::Workgroup {
            return self.any_index(b, depth);
        }
        let slice = self.slice(b);
        let within = self.number_below(slice);
        self.in_slice(b, within)
    }

    /// Where a load from this buffer may go, if it may.
    pub fn load_target(&mut self, b: usize, depth: u32) -> Option<Expr> {
        if self.breaks_rules() {
            return Some(self.any_index(b, depth));
        }
        match self.buffers[b].access {
            Access::Read | Access::Uniform => return Some(self.any_index(b, depth)),
            Access::ReadWrite | Access::Output => {
                if self.buffers[b].grid == GridRole::Fresh {
                    let shared = !self.buffers[b].sink && self.dna.chance(40);
                    self.buffers[b].grid = if shared { GridRole::Shared } else { GridRole::Sliced };
                }
                match self.buffers[b].grid {
                    GridRole::Shared => return Some(self.any_index(b, depth)),
                    GridRole::Sliced => {}
                    GridRole::Fresh | GridRole::Gathering(_) | GridRole::Flooding(_) | GridRole::Taken => return None,
                }
            }
            Access::Workgroup => {}
        }
        if self.roles[b] == GroupRole::Fresh {
            let shared = !self.buffers[b].sink && self.dna.chance(60);
            self.roles[b] = if shared { GroupRole::Shared } else { GroupRole::Private(self.order(b)) };
        }
        match self.roles[b] {
            GroupRole::Private(order) => Some(self.own(b, order)),
            GroupRole::Shared => Some(self.anywhere_in_group(b, depth)),
            GroupRole::Fresh | GroupRole::Gathering(_) | GroupRole::Flooding(_) | GroupRole::Taken | GroupRole::Mixed => None,
        }
    }

    /// Where a store to this buffer may go, if it may.
    pub fn store_target(&mut self, b: usize, depth: u32) -> Option<Target> {
        let anywhere = |index, value| Some(Target { index, value });
        if self.breaks_rules() {
            return anywhere(self.any_index(b, depth), None);
        }
        if self.buffers[b].access != Access::Workgroup {
            if self.buffers[b].grid == GridRole::Fresh {
                self.buffers[b].grid = match self.buffers[b].floods().filter(|_| self.dna.chance(6)) {
                    Some(ty) => GridRole::Flooding(crate::values::literal(&mut self.dna, ty)),
                    None => GridRole::Sliced,
                };
            }
            match self.buffers[b].grid {
                GridRole::Sliced => {}
                GridRole::Flooding(value) => return anywhere(self.any_index(b, depth), Some(value)),
                GridRole::Fresh | GridRole::Shared | GridRole::Gathering(_) | GridRole::Taken => return None,
            }
        }
        if self.roles[b] == GroupRole::Fresh {
            let floods = self.buffers[b].floods().filter(|_| self.buffers[b].access == Access::Workgroup);
            self.roles[b] = match floods.filter(|_| self.dna.chance(6)) {
                Some(ty) => GroupRole::Flooding(crate::values::literal(&mut self.dna, ty)),
                None => GroupRole::Private(self.order(b)),
            };
        }
        match self.roles[b] {
            GroupRole::Private(order) => anywhere(self.own(b, order), None),
            GroupRole::Flooding(value) => anywhere(self.any_index(b, depth), Some(value)),
            GroupRole::Fresh | GroupRole::Shared | GroupRole::Gathering(_) | GroupRole::Taken | GroupRole::Mixed => None,
        }
    }

    /// Where an atomic on this buffer may go, if it may.
    pub fn atomic_target(&mut self, b: usize, depth: u32) -> Option<AtomicTarget> {
        let gathers = |index, class| Some(AtomicTarget { index, class, result: class == Class::Any });
        if self.buffers[b].access != Access::Workgroup {
            if self.buffers[b].grid == GridRole::Fresh {
                let gathering = !self.buffers[b].sink && self.dna.chance(60);
                self.buffers[b].grid = if gathering { GridRole::Gathering(self.class()) } else { GridRole::Sliced };
            }
            match self.buffers[b].grid {
                GridRole::Sliced => {}
                GridRole::Gathering(class) => return gathers(self.meeting_place(b, depth), class),
                GridRole::Fresh | GridRole::Shared | GridRole::Flooding(_) | GridRole::Taken => return None,
            }
        }
        if self.roles[b] == GroupRole::Fresh {
            let gathering = !self.buffers[b].sink && self.dna.chance(60);
            self.roles[b] = if gathering { GroupRole::Gathering(self.class()) } else { GroupRole::Private(self.order(b)) };
        }
        match self.roles[b] {
            GroupRole::Private(order) => Some(AtomicTarget { index: self.own(b, order), class: Class::Any, result: true }),
            GroupRole::Gathering(class) => gathers(self.anywhere_in_group(b, depth), class),
            GroupRole::Fresh | GroupRole::Shared | GroupRole::Flooding(_) | GroupRole::Taken | GroupRole::Mixed => None,
        }
    }

    /// Where atomics go: few elements, so that they meet.
    fn meeting_place(&mut self, b: usize, depth: u32) -> Expr {
        if self.dna.chance(50) { Expr::u32(self.dna.below(2)) } else { self.any_index(b, depth) }
    }

    fn class(&mut self) -> Class {
        match self.config.discipline {
            super::config::Discipline::Ordered => Class::Any,
            super::config::Discipline::Kept | super::config::Discipline::Broken => self.dna.pick(&Class::commuting()),
        }
    }

    fn breaks_rules(&mut self) -> bool {
        self.config.discipline == super::config::Discipline::Broken && self.dna.chance(35)
    }
}
