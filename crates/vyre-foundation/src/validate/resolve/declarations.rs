//! Declarations: constants, buffers with their bindings, element types and counts, the sizes of workgroup and subgroup.

use super::Resolver;
use super::names::{Meaning, with_nearest};
use crate::diagnostic::{BufferPart, Diagnostic, Fix, Location};
use crate::ir::{Access, Axis, BufferDecl, DataType, Element, NodeId, Size, SpecValue};
use crate::kernel::{Buffer, BufferId, Kernel};
use crate::text::foreign;
use crate::text::suggest::nearest;
use std::collections::HashMap;
use vyre_scalar::memory::byte_length;
use vyre_spec::limits::{MAX_WORKGROUP_BYTES, MAX_WORKGROUP_INVOCATIONS, SUBGROUP_SIZES};
use vyre_spec::{ErrorCode, Scalar, Storage, ValueType};

impl Resolver<'_> {
    pub(super) fn constants(&mut self) {
        for (n, decl) in self.parts.consts.iter().enumerate() {
            let location = Location::Const(n as u32);
            self.declare(&decl.name, Meaning::Const(n as u32), location);
            if let SpecValue::DType(data_type) = &decl.default
                && data_type.storage() == Storage::Described
            {
                self.mistake(unusable_type(data_type, location));
            }
        }
    }

    /// A size that is written at `location`; `None` after a mistake in it.
    fn size(&mut self, size: &Size, location: Location) -> Option<u32> {
        let name = match size {
            Size::Lit(value) => return Some(*value).filter(|_| !self.poison.has(location)),
            Size::Const(name) => name,
        };
        let diagnostic = match self.constant(name) {
            Some((n, _)) if self.poison.has(Location::Const(n)) => return None,
            None if self.poison.has_name(name) => return None,
            Some((_, SpecValue::U32(value))) => return Some(*value),
            Some((_, other)) => Diagnostic::new(ErrorCode::E0412, format!("{name:?} is {}, and a size is u32", other.kind()))
                .expected("a u32 constant")
                .found(other.kind()),
            None => {
                let known = self.parts.consts.iter().map(|decl| decl.name.as_str());
                let suggestion = self.suggest(|| nearest(name, known));
                let diagnostic = Diagnostic::new(ErrorCode::E0201, format!("there is no constant {name:?}")).found(name);
                with_nearest(diagnostic, suggestion, location)
            }
        };
        self.mistake(diagnostic.at(location));
        None
    }

    pub(super) fn buffers(&mut self) {
        let mut bindings: HashMap<u32, u32> = HashMap::new();
        for (n, decl) in self.parts.buffers.iter().enumerate() {
            let n = n as u32;
            self.declare(&decl.name, Meaning::Buffer(BufferId(n)), Location::Buffer(n, BufferPart::Name));
            self.binding(n, decl, &mut bindings);
            let element = self.element(n, decl);
            self.known_buffers.push(element.is_some());
            // A stand-in keeps the walk going.
            let element = element.unwrap_or(DataType::U32);
            let count = match &decl.count {
                Some(size) => self.size(size, Location::Buffer(n, BufferPart::Count)),
                None => None,
            };
            if decl.access == Access::Workgroup {
                self.kernel.uses.workgroup_memory = true;
                if decl.count.is_none() || count == Some(0) {
                    self.mistake(
                        Diagnostic::new(
                            ErrorCode::E0405,
                            format!("the workgroup buffer {:?} needs a count of at least 1", decl.name),
                        )
                        .at(Location::Buffer(n, BufferPart::Whole))
                        .fix(
                            "write how many elements one workgroup shares",
                            match decl.count {
                                None => Fix::InsertAfter(Location::Buffer(n, BufferPart::Element), "[64]".into()),
                                Some(_) => Fix::Replace(Location::Buffer(n, BufferPart::Count), "64".into()),
                            },
                        ),
                    );
                }
            }
            let bytes = count.and_then(|count| byte_length(&element, u64::from(count)));
            if bytes.is_some_and(|bytes| bytes > 1 << 32) {
                self.mistake(
                    Diagnostic::new(ErrorCode::E0416, format!("{:?} takes more than 4 GiB", decl.name))
                        .at(Location::Buffer(n, BufferPart::Count))
                        .expected("at most 4294967296 bytes")
                        .found(bytes.unwrap_or(0)),
                );
            }
            let value = element.value_type().unwrap_or(ValueType::Scalar(Scalar::U32));
            self.note_type(value);
            let (name, access, binding) = (decl.name.clone(), decl.access, decl.binding);
            self.kernel.buffers.push(Buffer { name, access, binding, element, value, count });
        }
        if let Some((n, bytes)) = exceeds(&self.kernel, MAX_WORKGROUP_BYTES) {
            self.mistake(
                Diagnostic::new(ErrorCode::E0406, format!("with this buffer the workgroup memory takes {bytes} bytes"))
                    .at(Location::Buffer(n, BufferPart::Whole))
                    .expected(format!("at most {MAX_WORKGROUP_BYTES} bytes, each buffer rounded up to 16"))
                    .found(format!("{bytes} bytes")),
            );
        }
    }

    /// The smallest binding that nothing uses; it then counts as used, so that every suggestion can be followed.
    fn next_free_binding(&mut self) -> u32 {
        let free = (self.next_binding..).find(|binding| !self.bindings.contains(binding)).unwrap_or(0);
        self.next_binding = free;
        self.bindings.insert(free);
        free
    }

    fn binding(&mut self, n: u32, decl: &BufferDecl, bindings: &mut HashMap<u32, u32>) {
        match (decl.access, decl.binding) {
            (Access::Workgroup, None) => {}
            _ if self.poison.has(Location::Buffer(n, BufferPart::Binding)) => {}
            (Access::Workgroup, Some(_)) => self.mistake(
                Diagnostic::new(ErrorCode::E0403, format!("the workgroup buffer {:?} cannot have a binding", decl.name))
                    .at(Location::Buffer(n, BufferPart::Binding))
                    .help("remove the binding: workgroup memory is not passed by the caller"),
            ),
            (Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, None) => {
                let next_free = self.next_free_binding();
                self.mistake(
                    Diagnostic::new(ErrorCode::E0402, format!("the buffer {:?} needs a binding", decl.name))
                        .at(Location::Buffer(n, BufferPart::Whole))
                        .fix(
                            "the next free one is",
                            Fix::InsertAfter(Location::Buffer(n, BufferPart::Whole), format!(" @{next_free}")),
                        ),
                );
            }
            (Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, Some(binding)) => {
                if let Some(earlier) = bindings.insert(binding, n) {
                    let next_free = self.next_free_binding();
                    bindings.insert(binding, earlier);
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0401, format!("binding {binding} is taken"))
                            .at(Location::Buffer(n, BufferPart::Binding))
                            .related(Location::Buffer(earlier, BufferPart::Binding), "by this buffer")
                            .fix(
                                "the next free one is",
                                Fix::Replace(Location::Buffer(n, BufferPart::Binding), format!("@{next_free}")),
                            ),
                    );
                }
            }
        }
    }

    /// The element type; `None` after a mistake that hides it.
    fn element(&mut self, n: u32, decl: &BufferDecl) -> Option<DataType> {
        let location = Location::Buffer(n, BufferPart::Element);
        let data_type = match &decl.element {
            Element::Type(_) if self.poison.has(location) => return None,
            Element::Type(data_type) => data_type.clone(),
            Element::Const(name) => match self.constant(name) {
                Some((n, SpecValue::DType(_))) if self.poison.has(Location::Const(n)) => return None,
                None if self.poison.has_name(name) => return None,
                Some((_, SpecValue::DType(data_type))) => data_type.clone(),
                Some((_, other)) => {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0412, format!("{name:?} is {}, and an element type is needed", other.kind()))
                            .at(location)
                            .expected("a type, or a dtype constant")
                            .found(other.kind()),
                    );
                    return None;
                }
                None => {
                    let types = DataType::all_plain().filter(|(_, ty)| ty.value_type().is_some()).map(|(word, _)| word);
                    let consts = self.parts.consts.iter().map(|decl| decl.name.as_str());
                    let suggestion = self.suggest(|| nearest(name, types.chain(consts)));
                    let diagnostic =
                        Diagnostic::new(ErrorCode::E0207, format!("there is no type {name:?}")).at(location).found(name);
                    self.mistake(match foreign::data_type(name) {
                        Some(meant) => diagnostic.fix("write", Fix::Replace(location, meant)),
                        None => with_nearest(diagnostic, suggestion, location),
                    });
                    return None;
                }
            },
        };
        match data_type.storage() {
            Storage::Described => {
                self.mistake(unusable_type(&data_type, location));
                None
            }
            Storage::LoadOnly(_) if decl.access.is_writable() => {
                self.mistake(
                    Diagnostic::new(
                        ErrorCode::E0409,
                        format!("{data_type} can only be loaded, and {:?} is a `{}` buffer", decl.name, decl.access),
                    )
                    .at(location)
                    .expected("a type that can be stored")
                    .found(&data_type)
                    .help("declare the buffer `read` or `uniform`, or store a wider type"),
                );
                Some(data_type)
            }
            Storage::LoadOnly(_) | Storage::Computed(_) | Storage::Converted(_) => Some(data_type),
        }
    }

    /// Whether the size of a workgroup is known.
    pub(super) fn workgroup(&mut self) -> bool {
        let mut known = !self.poison.has(Location::Workgroup);
        for (size, axis) in self.parts.workgroup.iter().zip(Axis::ALL) {
            known &= self.size(size, Location::WorkgroupAxis(axis)).is_some();
        }
        let size = self.kernel.workgroup_size;
        let total = size.iter().try_fold(1u32, |total, extent| total.checked_mul(*extent));
        if known && !total.is_some_and(|total| (1..=MAX_WORKGROUP_INVOCATIONS).contains(&total)) {
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0407,
                    format!("a workgroup of {} x {} x {} invocations is not possible", size[0], size[1], size[2]),
                )
                .at(Location::Workgroup)
                .expected(format!("1 to {MAX_WORKGROUP_INVOCATIONS} invocations"))
                .found(total.map_or("more than 4294967295".to_string(), |total| total.to_string())),
            );
        }
        known
    }

    pub(super) fn subgroup(&mut self, workgroup_known: bool) {
        let Some(size) = self.parts.subgroup.filter(|_| !self.poison.has(Location::Subgroup)) else { return };
        if !SUBGROUP_SIZES.contains(&size) {
            self.mistake(
                Diagnostic::new(ErrorCode::E0414, format!("there are no subgroups of {size} lanes"))
                    .at(Location::Subgroup)
                    .expected("4, 8, 16 or 32")
                    .found(size),
            );
            return;
        }
        let total = self.kernel.workgroup_size.iter().try_fold(1u32, |total, extent| total.checked_mul(*extent));
        if let Some(total) = total.filter(|total| workgroup_known && total % size != 0) {
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0414,
                    format!("subgroups of {size} lanes do not divide a workgroup of {total} invocations"),
                )
                .at(Location::Subgroup)
                .related(Location::Workgroup, "the workgroup size")
                .expected(format!("a divisor of {total}"))
                .found(size),
            );
        }
    }

    pub(super) fn subgroup_declared(&mut self, place: NodeId) {
        if self.parts.subgroup.is_none() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0415, "the program does not say how many lanes a subgroup has")
                    .at(Location::Head(place))
                    .fix("declare it below the workgroup size", Fix::InsertAfter(Location::Workgroup, "\n  subgroup 8".into())),
            );
        }
    }
}

/// The workgroup buffer with which workgroup memory takes more than `limit` bytes, and how many it then takes. Each buffer is
/// rounded up to 16 bytes.
pub(in crate::validate) fn exceeds(kernel: &Kernel, limit: u64) -> Option<(u32, u64)> {
    let mut total = 0u64;
    for (n, buffer) in kernel.buffers.iter().enumerate() {
        if let (Access::Workgroup, Some(count)) = (buffer.access, buffer.count) {
            let bytes = byte_length(&buffer.element, u64::from(count)).unwrap_or(u64::MAX);
            total = total.saturating_add(bytes.checked_next_multiple_of(16).unwrap_or(u64::MAX));
            if total > limit {
                return Some((n as u32, total));
            }
        }
    }
    None
}

fn unusable_type(data_type: &DataType, location: Location) -> Diagnostic {
    Diagnostic::new(ErrorCode::E0404, format!("{data_type} is a type that programs can describe but no kernel can use"))
        .at(location)
        .expected("a type that loads: bool, u32, i32, u64, i64, f32, f64, a small type, or vec2 to vec4 of u32, i32 or f32")
        .found(data_type)
}
