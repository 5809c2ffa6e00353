//! Nothing outside of a buffer is touched: generated programs over buffers with pages on both sides that nobody may touch. An access there
//! ends the test. `VYRE_CPU_PROGRAMS=100000` takes so many programs.

use crate::{Outcome, TIERS, eager_device, generated, meaning, programs};
use std::ptr::NonNull;
use vyre_driver::BackendError;
use vyre_driver::device::{Binding, Call, CodeOptions, Deadline, Device, DeviceError};
use vyre_foundation::case::Case;
use vyre_foundation::ir::Access;

const SEED: u64 = 0x6A;
const PAGE: usize = 4096;

/// Memory with pages on both sides that cannot be touched.
struct Guarded {
    /// The first of the pages that can.
    first: NonNull<u8>,
    bytes: usize,
}

/// Where a buffer is in such memory.
#[derive(Clone, Copy, Debug)]
enum At {
    Start,
    End,
}

impl Guarded {
    fn new(bytes: usize) -> Guarded {
        let all = bytes + 2 * PAGE;
        let (none, both) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new memory at an address that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), all, none, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        // SAFETY: the pages are inside of what was just mapped.
        let first = unsafe { start.cast::<u8>().add(PAGE) };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::mprotect(first.cast(), bytes, both) }, 0, "{}", std::io::Error::last_os_error());
        Guarded { first: NonNull::new(first).expect("memory is not at 0"), bytes }
    }

    /// So many bytes, at one end of it.
    fn slice(&mut self, at: At, count: usize) -> &mut [u8] {
        assert!(count <= self.bytes, "{count} bytes");
        let offset = match at {
            At::Start => 0,
            At::End => self.bytes - count,
        };
        // SAFETY: inside of what can be read and written, and borrowed from here for as long as the slice is.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr().add(offset), count) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: what was mapped, and slices of it are gone.
        unsafe { libc::munmap(self.first.as_ptr().sub(PAGE).cast(), self.bytes + 2 * PAGE) };
    }
}

/// A dispatch on memory of this kind.
fn run(device: &dyn Device, case: &Case, memory: &mut [Guarded], at: At) -> Outcome {
    let program = case.specialized().map_err(BackendError::Rejected)?;
    let launch = case.plan().map_err(BackendError::Rejected)?;
    let interface = program.interface();
    let kernel = program.validated().map_err(|report| BackendError::Rejected(report.clone()))?.kernel();
    let options = CodeOptions { workgroup: case.config.workgroup_override, ..CodeOptions::default() };
    let code = device.compile(kernel, &options).expect("the device compiles everything");
    let mut inputs = case.inputs.iter();
    let mut bindings: Vec<Binding<'_>> = Vec::new();
    for (buffer, memory) in interface.bound.iter().zip(memory) {
        let bytes = memory.slice(at, launch.bytes[*buffer] as usize);
        let access = program.buffers()[*buffer].access;
        if access.is_input() {
            bytes.copy_from_slice(inputs.next().expect("an input"));
        }
        bindings.push(match access {
            Access::Output => Binding::Out(bytes),
            Access::ReadWrite => Binding::InOut(bytes),
            Access::Read | Access::Uniform | Access::Workgroup => Binding::In(bytes),
        });
    }
    let groups = 0..u64::from(launch.groups());
    let call = &mut Call { code: &code, launch: &launch, groups, zero_outputs: true, bindings: &mut bindings };
    match device.run(call, Deadline::NONE) {
        Ok(_) => {}
        Err(DeviceError::Trap { tag, invocation }) => return Err(BackendError::Trap { tag, invocation }),
        Err(error) => panic!("{error:?}"),
    }
    let found = bindings.iter().filter_map(|binding| match binding {
        Binding::Out(bytes) | Binding::InOut(bytes) => Some(bytes.to_vec()),
        Binding::In(_) | Binding::Memory(_) => None,
    });
    Ok(found.collect())
}

#[test]
fn nothing_outside_of_a_buffer_is_touched() {
    let mut memory: Vec<Guarded> = (0..16).map(|_| Guarded::new(64 * PAGE)).collect();
    let devices = TIERS.map(|portable| eager_device(2, portable));
    for number in 0..programs(1500) {
        let case = generated(SEED, number);
        let expected = meaning(&case);
        for device in &devices {
            for at in [At::Start, At::End] {
                let found = run(&**device, &case, &mut memory, at);
                assert!(found == expected, "program {number} of seed {SEED}, {at:?}:\n{}", case.program);
            }
        }
    }
}

/// The test would notice: the page behind the end cannot be read.
#[test]
fn what_guards_a_buffer_cannot_be_read() {
    let mut memory = Guarded::new(PAGE);
    let bytes = memory.slice(At::End, 8);
    let behind = bytes.as_ptr_range().end;
    let before = {
        let bytes = memory.slice(At::Start, 8);
        bytes.as_ptr().wrapping_sub(1)
    };
    for address in [behind, before] {
        let (mut there, own) = ([0_u8], std::process::id());
        let to = libc::iovec { iov_base: there.as_mut_ptr().cast(), iov_len: 1 };
        let from = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: 1 };
        // SAFETY: the system reads for us and tells if it cannot.
        let read = unsafe { libc::process_vm_readv(own as libc::pid_t, &raw const to, 1, &raw const from, 1, 0) };
        assert_eq!(read, -1, "a byte at {address:?} can be read");
    }
}
