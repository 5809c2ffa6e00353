//! Steps as commands: what is encoded into one submission of wgpu's, and how its bytes come back.
//!
//! **Blocks.** Every dispatch of a box of workgroups has its numbers in a slot of a uniform buffer; all slots are written in one go before
//! the commands run.
//!
//! **Bytes.** wgpu copies whole words. What begins or ends inside of one is copied by a small shader, in place of the bytes that are meant.
//!
//! **Conflicts.** wgpu takes a buffer that a dispatch reads and writes as a whole, also where the ranges are apart: what is read is
//! then a copy.

use crate::code::Ready;
use crate::gpu::{Gpu, Pooled, QUERIES, Use};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use vyre_driver::device::{Deadline, DeviceError};
use vyre_emit::Layout;
use vyre_foundation::ir::Access;
use vyre_foundation::launch::Launch;

/// Workgroups along one axis of a dispatch, which every device has.
const AXIS: u32 = 65_535;

/// Bytes of one buffer of blocks.
const BLOCKS: u64 = 64 << 10;

/// Bytes that the shader for bytes copies at once.
const PIECE: u64 = 16 << 20;

/// Some bytes of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub number: u64,
    pub buffer: &'a wgpu::Buffer,
    pub offset: u64,
    pub len: u64,
}

impl<'a> Place<'a> {
    /// The first bytes of a buffer of the pool.
    pub fn of(pooled: &'a Pooled, len: u64) -> Place<'a> {
        Place { number: pooled.number, buffer: &pooled.buffer, offset: 0, len }
    }

    fn is_whole_words(&self) -> bool {
        self.offset.is_multiple_of(4) && self.len.is_multiple_of(4)
    }
}

/// Copies of what a dispatch writes to memory that stays, where nobody knows before it has ended whether it means anything.
pub(crate) struct Apart {
    /// By binding.
    copies: Vec<Option<Pooled>>,
}

impl Apart {
    /// Makes them where the kernel counts rounds, for those of the places that are memory.
    pub fn of(
        batch: &mut Batch<'_>,
        ready: &Ready,
        places: &[Place<'_>],
        is_memory: &[bool],
        zero_outputs: bool,
    ) -> Result<Apart, DeviceError> {
        let mut copies = Vec::new();
        for (n, place) in places.iter().enumerate() {
            let is_written = ready.access[n].is_output() && place.len > 0;
            if !(ready.layout.counts_rounds && is_memory[n] && is_written) {
                copies.push(None);
                continue;
            }
            let copy = batch.gpu.take(room(place.len), Use::Storage)?;
            if !(zero_outputs && ready.access[n] == Access::Output) {
                batch.copy(place, &Place::of(&copy, place.len))?;
            }
            copies.push(Some(copy));
        }
        Ok(Apart { copies })
    }

    /// The places that the dispatch has.
    pub fn places<'a>(&'a self, places: &[Place<'a>]) -> Vec<Place<'a>> {
        let both = self.copies.iter().zip(places);
        both.map(|(copy, place)| copy.as_ref().map_or(*place, |copy| Place::of(copy, place.len))).collect()
    }

    /// Writes to memory what is in the copies.
    pub fn put_back(&self, gpu: &Gpu, places: &[Place<'_>], deadline: Deadline, left: &AtomicBool) -> Result<(), DeviceError> {
        if self.copies.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut batch = Batch::new(gpu, 0, 0)?;
        for (copy, place) in self.copies.iter().zip(places) {
            if let Some(copy) = copy {
                batch.copy(&Place::of(copy, place.len), place)?;
            }
        }
        batch.run(deadline, left).map(|_| ())
    }

    pub fn into_buffers(self) -> Vec<Pooled> {
        self.copies.into_iter().flatten().collect()
    }
}

/// Commands of one submission.
pub(crate) struct Batch<'g> {
    gpu: &'g Gpu,
    encoder: wgpu::CommandEncoder,
    /// Buffers that are used until it ends.
    pub held: Vec<Pooled>,
    blocks: Vec<(Pooled, Vec<u8>)>,
    readback: Option<Pooled>,
    /// Where the next bytes for the host go.
    at: u64,
    reads: Vec<Range<usize>>,
    /// When dispatches began and ended, one after the other; and how many timestamps there are so far.
    times: Option<(wgpu::QuerySet, u32)>,
}

/// A dispatch in a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Encoded {
    /// The read that has its traps, if the kernel has any.
    pub traps: Option<usize>,
    /// Its place among the timestamps, if it has a time.
    pub time: Option<u32>,
}

/// What a batch has given.
pub(crate) struct Bytes<'g> {
    gpu: &'g Gpu,
    view: Option<wgpu::BufferView>,
    /// Where the timestamps are.
    times: usize,
    reads: Vec<Range<usize>>,
    held: Vec<Pooled>,
    readback: Option<Pooled>,
}

impl Bytes<'_> {
    /// The bytes of a read.
    pub fn read(&self, n: usize) -> &[u8] {
        self.view.as_ref().map_or(&[], |view| &view[self.reads[n].clone()])
    }

    /// Nanoseconds between two timestamps that follow each other.
    pub fn time(&self, place: Option<u32>) -> Option<u64> {
        let (place, tick, view) = (place?, self.gpu.tick?, self.view.as_ref()?);
        let at = |n: u32| view.get(self.times + 8 * n as usize..)?.first_chunk().copied().map(u64::from_le_bytes);
        let ticks = at(place + 1)?.checked_sub(at(place)?)?;
        Some((ticks as f64 * f64::from(tick)) as u64)
    }

    /// The words of a read.
    pub fn words(&self, n: usize) -> Vec<u32> {
        self.read(n).as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        self.view = None;
        if let Some(readback) = self.readback.take() {
            readback.buffer.unmap();
            self.held.push(readback);
        }
        self.gpu.give_back(std::mem::take(&mut self.held));
    }
}

/// Bytes that a read of so many takes in the readback buffer.
pub(crate) fn room(len: u64) -> u64 {
    len.next_multiple_of(4) + 8
}

impl<'g> Batch<'g> {
    /// One whose reads have room for so many bytes, and of at most so many dispatches.
    pub fn new(gpu: &'g Gpu, read_bytes: u64, dispatches: usize) -> Result<Batch<'g>, DeviceError> {
        let encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        let times = match gpu.tick {
            Some(_) if dispatches > 0 => Some((gpu.take_queries(), 0)),
            Some(_) | None => None,
        };
        let time_bytes = if times.is_some() { 8 * (2 * dispatches as u64).min(QUERIES.into()) } else { 0 };
        let read_bytes = read_bytes + time_bytes;
        let readback = if read_bytes > 0 { Some(gpu.take(read_bytes, Use::Readback)?) } else { None };
        Ok(Batch { gpu, encoder, held: Vec::new(), blocks: Vec::new(), readback, at: 0, reads: Vec::new(), times })
    }

    /// A slot with these words: its buffer's place among the blocks, and the offset there.
    fn slot(&mut self, words: &[u32]) -> Result<(usize, u64), DeviceError> {
        let align = u64::from(self.gpu.device.limits().min_uniform_buffer_offset_alignment).max(256);
        let size = (4 * words.len() as u64).next_multiple_of(align);
        if self.blocks.last().is_none_or(|(_, bytes)| bytes.len() as u64 + size > BLOCKS) {
            self.blocks.push((self.gpu.take(BLOCKS.max(size), Use::Block)?, Vec::new()));
        }
        let n = self.blocks.len() - 1;
        let bytes = &mut self.blocks[n].1;
        let offset = bytes.len() as u64;
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize((offset + size) as usize, 0);
        Ok((n, offset))
    }

    /// A dispatch.
    pub fn dispatch(
        &mut self,
        ready: &Ready,
        launch: &Launch,
        groups: Range<u64>,
        zero_outputs: bool,
        places: &[Place<'_>],
    ) -> Result<Encoded, DeviceError> {
        if zero_outputs {
            for (place, access) in places.iter().zip(&ready.access) {
                if *access == Access::Output {
                    self.zero(place)?;
                }
            }
        }
        let traps = match ready.layout.trap_words() as u64 {
            0 => None,
            count => {
                let traps = self.gpu.take(4 * count, Use::Storage)?;
                self.encoder.clear_buffer(&traps.buffer, 0, Some(4 * count));
                Some((traps, 4 * count))
            }
        };
        let mut key = vec![];
        let mut entries = Vec::new();
        if let Some((traps, bytes)) = &traps {
            key.push((traps.number, 0, *bytes));
            entries.push(bind(Layout::TRAPS, &traps.buffer, 0, *bytes));
        }
        if ready.layout.tables {
            entries.push(bind(Layout::TABLES, &self.gpu.tables, 0, self.gpu.tables.size()));
        }
        let copies = self.separate(ready, places)?;
        for (n, place) in places.iter().enumerate() {
            let binding = Layout::BUFFERS + n as u32;
            let writable = ready.layout.writable[n];
            let (number, buffer, offset, size) = match (&copies[n], place.len) {
                (_, 0) => (u64::from(writable), &self.gpu.empty[usize::from(writable)], 0, 16),
                (Some(copy), len) => (copy.number, &copy.buffer, 0, len.next_multiple_of(4)),
                (None, len) => (place.number, place.buffer, place.offset, len.next_multiple_of(4)),
            };
            key.push((number, offset, size));
            entries.push(bind(binding, buffer, offset, size));
        }
        let mut slots = Vec::new();
        for (base, size) in boxes(groups, launch.grid) {
            let words = ready.layout.block(base, launch.grid, &launch.lengths);
            slots.push((self.slot(&words)?, size));
        }
        let block_bytes = ready.layout.block_bytes();
        let time = match &mut self.times {
            Some((_, next)) if *next + 2 <= QUERIES && !slots.is_empty() => {
                *next += 2;
                Some(*next - 2)
            }
            Some(_) | None => None,
        };
        let passes: Vec<_> = slots.chunk_by(|((one, _), _), ((other, _), _)| one == other).collect();
        for (n, same) in passes.iter().enumerate() {
            let block = &self.blocks[same[0].0.0].0;
            let mut key = key.clone();
            key.push((block.number, 0, block_bytes));
            let group = self.gpu.group((ready.number, key), || {
                let mut entries = entries.clone();
                entries.push(bind(Layout::BLOCK, &block.buffer, 0, block_bytes));
                let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &ready.groups, entries: &entries };
                self.gpu.device.create_bind_group(&descriptor)
            });
            let (is_first, is_last) = (n == 0, n + 1 == passes.len());
            let timestamp_writes = match (&self.times, time) {
                (Some((query_set, _)), Some(time)) if is_first || is_last => Some(wgpu::ComputePassTimestampWrites {
                    query_set,
                    beginning_of_pass_write_index: is_first.then_some(time),
                    end_of_pass_write_index: is_last.then_some(time + 1),
                }),
                (Some(_) | None, Some(_) | None) => None,
            };
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
            let mut pass = self.encoder.begin_compute_pass(&descriptor);
            pass.set_pipeline(&ready.pipeline);
            for ((_, offset), [x, y, z]) in *same {
                pass.set_bind_group(0, &group, &[*offset as u32]);
                pass.dispatch_workgroups(*x, *y, *z);
            }
        }
        self.held.extend(copies.into_iter().flatten());
        let traps = traps.map(|(traps, bytes)| {
            let read = self.read(&Place::of(&traps, bytes));
            self.held.push(traps);
            read
        });
        Ok(Encoded { traps, time })
    }

    /// Copies of what is read from a buffer that is written too.
    fn separate(&mut self, ready: &Ready, places: &[Place<'_>]) -> Result<Vec<Option<Pooled>>, DeviceError> {
        let mut copies = Vec::new();
        for (place, writable) in places.iter().zip(&ready.layout.writable) {
            let mut same = places.iter().zip(&ready.layout.writable).filter(|(other, _)| other.number == place.number);
            let conflicts = !writable && place.len > 0 && same.any(|(other, writable)| *writable && other.len > 0);
            copies.push(match conflicts {
                true => {
                    let copy = self.gpu.take(room(place.len), Use::Storage)?;
                    let len = place.len.next_multiple_of(4);
                    self.encoder.copy_buffer_to_buffer(place.buffer, place.offset, &copy.buffer, 0, Some(len));
                    Some(copy)
                }
                false => None,
            });
        }
        Ok(copies)
    }

    /// Makes bytes zero.
    pub fn zero(&mut self, place: &Place<'_>) -> Result<(), DeviceError> {
        let whole = if place.offset.is_multiple_of(4) { place.len & !3 } else { 0 };
        if whole > 0 {
            self.encoder.clear_buffer(place.buffer, place.offset, Some(whole));
        }
        if whole < place.len {
            let zeros = self.gpu.take(room(place.len - whole), Use::Storage)?;
            self.encoder.clear_buffer(&zeros.buffer, 0, None);
            let rest = Place { offset: place.offset + whole, len: place.len - whole, ..*place };
            self.bytes(&Place::of(&zeros, rest.len), &rest)?;
            self.held.push(zeros);
        }
        Ok(())
    }

    /// Bytes of the host to the device, at this place of the commands.
    pub fn write(&mut self, to: &Place<'_>, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let staging = self.gpu.take(room(to.len), Use::Storage)?;
        upload(self.gpu, &staging.buffer, bytes);
        let from = Place::of(&staging, to.len);
        self.copy_apart(&from, to)?;
        self.held.push(staging);
        Ok(())
    }

    /// A copy; the places may overlap.
    pub fn copy(&mut self, from: &Place<'_>, to: &Place<'_>) -> Result<(), DeviceError> {
        if from.number != to.number {
            return self.copy_apart(from, to);
        }
        // wgpu copies between different buffers only.
        let between = self.gpu.take(room(from.len), Use::Storage)?;
        self.copy_apart(from, &Place::of(&between, from.len))?;
        self.copy_apart(&Place::of(&between, from.len), to)?;
        self.held.push(between);
        Ok(())
    }

    fn copy_apart(&mut self, from: &Place<'_>, to: &Place<'_>) -> Result<(), DeviceError> {
        if from.len == 0 {
            return Ok(());
        }
        if from.is_whole_words() && to.is_whole_words() {
            self.encoder.copy_buffer_to_buffer(from.buffer, from.offset, to.buffer, to.offset, Some(from.len));
            return Ok(());
        }
        self.bytes(from, to)
    }

    /// Bytes for the host; gives the number of the read.
    pub fn read(&mut self, place: &Place<'_>) -> usize {
        if place.len == 0 {
            self.reads.push(0..0);
            return self.reads.len() - 1;
        }
        let start = self.at + place.offset % 4;
        let (first, end) = (place.offset & !3, (place.offset + place.len).next_multiple_of(4));
        if let Some(readback) = &self.readback {
            self.encoder.copy_buffer_to_buffer(place.buffer, first, &readback.buffer, self.at, Some(end - first));
            self.at += end - first;
        }
        self.reads.push(start as usize..(start + place.len) as usize);
        self.reads.len() - 1
    }

    /// Copies bytes that are no whole words, by a shader.
    fn bytes(&mut self, from: &Place<'_>, to: &Place<'_>) -> Result<(), DeviceError> {
        let copier = self.gpu.copier();
        let align = u64::from(self.gpu.device.limits().min_storage_buffer_offset_alignment).max(4);
        let mut done = 0;
        while done < from.len {
            let len = PIECE.min(from.len - done);
            let window = |place: &Place<'_>| {
                let start = (place.offset + done) / align * align;
                let end = (place.offset + done + len).next_multiple_of(4);
                (start, end - start, place.offset + done - start)
            };
            let ((source, source_size, from_at), (target, target_size, to_at)) = (window(from), window(to));
            let (n, offset) = self.slot(&[from_at as u32, to_at as u32, len as u32, 0])?;
            let block = &self.blocks[n].0;
            let group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &copier.1,
                entries: &[
                    bind(0, &block.buffer, 0, 16),
                    bind(1, from.buffer, source, source_size),
                    bind(2, to.buffer, target, target_size),
                ],
            });
            let words = (to_at + len).div_ceil(4) - to_at / 4;
            let mut pass = self.encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
            pass.set_pipeline(&copier.0);
            pass.set_bind_group(0, &group, &[offset as u32]);
            let groups = words.div_ceil(256) as u32;
            pass.dispatch_workgroups(groups.min(AXIS), groups.div_ceil(AXIS), 1);
            done += len;
        }
        Ok(())
    }

    /// Submits the commands and waits for them.
    pub fn run(self, deadline: Deadline, left: &AtomicBool) -> Result<Bytes<'g>, DeviceError> {
        let Batch { gpu, mut encoder, mut held, blocks, readback, mut at, reads, times } = self;
        let times_at = at;
        if let (Some((queries, count @ 1..)), Some(readback)) = (&times, &readback) {
            let bytes = 8 * u64::from(*count);
            let resolved = gpu.take(bytes, Use::Times)?;
            encoder.resolve_query_set(queries, 0..*count, &resolved.buffer, 0);
            encoder.copy_buffer_to_buffer(&resolved.buffer, 0, &readback.buffer, at, Some(bytes));
            at += bytes;
            held.push(resolved);
        }
        for (block, bytes) in blocks {
            upload(gpu, &block.buffer, &bytes);
            held.push(block);
        }
        let index = gpu.queue.submit([encoder.finish()]);
        let readback = readback.filter(|_| at > 0);
        if let Some(readback) = &readback {
            // Whether it was mapped is seen when it is read.
            readback.buffer.map_async(wgpu::MapMode::Read, 0..at, |_| {});
        }
        let waited = gpu.wait(index, deadline, left);
        if gpu.is_stuck() {
            // Nobody knows when these are free.
            std::mem::forget((held, readback, times));
            return Err(waited.err().unwrap_or(DeviceError::Hung));
        }
        if let Some((queries, _)) = times {
            gpu.give_back_queries(queries);
        }
        let mut bytes = Bytes { gpu, view: None, times: times_at as usize, reads, held, readback };
        waited?;
        if let Some(readback) = &bytes.readback {
            let view = readback.buffer.get_mapped_range(0..at);
            bytes.view = Some(view.map_err(|error| DeviceError::Other(format!("bytes cannot be read back: {error}")))?);
        }
        Ok(bytes)
    }
}

/// Bytes of the host to the beginning of a buffer, before the commands of the next submission.
pub(crate) fn upload(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: &[u8]) {
    let whole = bytes.len() & !3;
    if whole > 0 {
        gpu.queue.write_buffer(buffer, 0, &bytes[..whole]);
    }
    if whole < bytes.len() {
        let mut word = [0; 4];
        word[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
        gpu.queue.write_buffer(buffer, whole as u64, &word);
    }
}

fn bind(binding: u32, buffer: &wgpu::Buffer, offset: u64, size: u64) -> wgpu::BindGroupEntry<'_> {
    let size = std::num::NonZeroU64::new(size);
    wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size }) }
}

/// Where a range of workgroups, numbered with x fastest, begins and how far it reaches, in boxes that one dispatch can have.
fn boxes(groups: Range<u64>, grid: [u32; 3]) -> Vec<([u32; 3], [u32; 3])> {
    let [width, height, _] = grid.map(u64::from);
    let mut boxes = Vec::new();
    let mut at = groups.start;
    while at < groups.end {
        let left = groups.end - at;
        let [x, y, z] = [at % width, at / width % height, at / (width * height)];
        let size = match () {
            () if x > 0 || left < width => [left.min(width - x), 1, 1],
            () if y > 0 || left < width * height => [width, (left / width).min(height - y), 1],
            () => [width, height, left / (width * height)],
        };
        at += size.iter().product::<u64>();
        let cut = |length: u64| (0..length).step_by(AXIS as usize).map(move |start| (start, (length - start).min(AXIS.into())));
        for (dz, depth) in cut(size[2]) {
            for (dy, height) in cut(size[1]) {
                for (dx, width) in cut(size[0]) {
                    // All are below the extents of the grid.
                    boxes.push(([x + dx, y + dy, z + dz].map(|n| n as u32), [width, height, depth].map(|n| n as u32)));
                }
            }
        }
    }
    boxes
}

/// Copies bytes within words: `from`, `to` and `len` of the block, in bytes.
pub(crate) const COPIER: &str = "
@group(0) @binding(0) var<uniform> block: vec4<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let from_ = block.x;
    let to = block.y;
    let len = block.z;
    let word = to / 4u + (group.x + group.y * 65535u) * 256u + local;
    if (word * 4u < to + len) {
        var value = target_[word];
        for (var n = 0u; n < 4u; n = n + 1u) {
            let at = word * 4u + n;
            if (at >= to && at < to + len) {
                let byte = at - to + from_;
                let shift = 8u * n;
                value = (value & ~(0xffu << shift)) | (((source[byte / 4u] >> (8u * (byte % 4u))) & 0xffu) << shift);
            }
        }
        target_[word] = value;
    }
}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_every_workgroup_once_in_order() {
        for grid in [[5, 1, 1], [3, 4, 1], [2, 3, 4], [70_000, 2, 1], [1, 66_000, 1]] {
            let [width, height, depth] = grid.map(u64::from);
            let total = width * height * depth;
            for (start, end) in [(0, total), (0, 1), (total / 3, total - 1), (1, total / 2), (total - 1, total), (2, 2)] {
                let mut seen = Vec::new();
                for (base, size) in boxes(start..end, grid) {
                    assert!(size.iter().all(|n| (1..=AXIS).contains(n)));
                    for z in base[2]..base[2] + size[2] {
                        for y in base[1]..base[1] + size[1] {
                            for x in base[0]..base[0] + size[0] {
                                seen.push(u64::from(x) + width * (u64::from(y) + height * u64::from(z)));
                            }
                        }
                    }
                }
                seen.sort_unstable();
                assert_eq!(seen, (start..end).collect::<Vec<_>>(), "{grid:?} {start}..{end}");
            }
        }
    }
}
