//! Memory accesses: which buffer is meant, whether it can be used so, and the access with its id.

use super::names::{Meaning, with_nearest};
use super::{Resolver, Typed};
use crate::diagnostic::{BufferPart, Diagnostic, Location};
use crate::ir::{Name, NodeId};
use crate::kernel::{AccessId, AccessKind, Buffer, BufferId, ExprId, MemoryAccess};
use crate::text::suggest::nearest;
use vyre_spec::{ErrorCode, Scalar, Storage, ValueType};

impl Resolver<'_> {
    #[inline]
    pub(super) fn access(&mut self, kind: AccessKind, buffer: BufferId, index: ExprId, node: NodeId) -> AccessId {
        if self.sketch.is_some() {
            return AccessId(0);
        }
        self.kernel.accesses.push(MemoryAccess { kind, buffer, index, stmt: self.stmt, node });
        AccessId(self.kernel.accesses.len() as u32 - 1)
    }

    #[inline]
    pub(super) fn buffer(&mut self, name: &Name, place: NodeId) -> Option<BufferId> {
        let location = Location::Head(place);
        if let Some(binding) = self.visible(name) {
            if let Meaning::Buffer(buffer) = binding.meaning {
                return Some(buffer);
            }
            let declared = binding.declared;
            self.mistake(
                Diagnostic::new(ErrorCode::E0206, format!("{name:?} is a value, and a buffer is needed"))
                    .at(location)
                    .related(declared, "declared here"),
            );
            return None;
        }
        if self.poison.has_name(name) {
            return None;
        }
        let suggestion = self.suggest(|| nearest(name, self.parts.buffers.iter().map(|decl| decl.name.as_str())));
        let diagnostic = Diagnostic::new(ErrorCode::E0204, format!("there is no buffer {name:?}")).at(location).found(name);
        self.mistake(with_nearest(diagnostic, suggestion, location));
        None
    }

    pub(super) fn writable(&mut self, name: &Name, place: NodeId) -> Option<BufferId> {
        let id = self.buffer(name, place)?;
        let access = self.parts.buffers[id.index()].access;
        if !access.is_writable() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0408, format!("{name:?} is a `{access}` buffer and cannot be written"))
                    .at(Location::Head(place))
                    .related(Location::Buffer(id.0, BufferPart::Whole), "declared here")
                    .expected("an output, read_write or workgroup buffer")
                    .found(access),
            );
        }
        Some(id)
    }

    pub(super) fn stored(&mut self, buffer: BufferId, value: Typed) {
        if !self.known_buffers[buffer.index()] {
            return;
        }
        let Buffer { name, element, value: expected, .. } = self.kernel.buffer(buffer);
        let expected = *expected;
        if let Some(found) = value.ty.filter(|found| *found != expected) {
            let as_stored = match element.storage() {
                Storage::Converted(_) => format!(" (its elements are {element})"),
                Storage::Computed(_) | Storage::LoadOnly(_) | Storage::Described => String::new(),
            };
            let message = format!("store to {name:?} needs {expected}{as_stored}, found {found}");
            let diagnostic = Diagnostic::new(ErrorCode::E0304, message)
                .at(Location::Tree(value.place))
                .related(Location::Buffer(buffer.0, BufferPart::Element), format!("a store takes {expected}"));
            let diagnostic = self.mismatch(diagnostic, expected, value);
            self.mistake(diagnostic);
        }
    }

    pub(super) fn atomic_target(&mut self, name: &Name, place: NodeId) -> Option<(BufferId, Scalar)> {
        let id = self.buffer(name, place).filter(|id| self.known_buffers[id.index()])?;
        let Buffer { access, element, .. } = self.kernel.buffer(id);
        if let Storage::Computed(ValueType::Scalar(scalar @ (Scalar::U32 | Scalar::I32))) = element.storage()
            && access.is_writable()
        {
            return Some((id, scalar));
        }
        let found = format!("a {access} buffer of {element}");
        self.mistake(
            Diagnostic::new(ErrorCode::E0410, format!("{name:?} is {found}, which has no atomic operations"))
                .at(Location::Head(place))
                .related(Location::Buffer(id.0, BufferPart::Whole), "declared here")
                .expected("an output, read_write or workgroup buffer of u32 or i32")
                .found(found),
        );
        None
    }
}
