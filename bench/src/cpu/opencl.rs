//! OpenCL as a peer: the library is looked for when it is asked for, so that nothing has to be installed to build or run the rest.
//!
//! Only what one dispatch takes is declared here. Inputs stay where they are (`CL_MEM_USE_HOST_PTR`) and the output is copied to be compared
//! and never while it is timed.

use super::cases::Case;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

const SOURCE: &str = include_str!("../../kernels/peers.cl");
const DEVICE_TYPE_CPU: u64 = 1 << 1;
const DEVICE_NAME: u32 = 0x102B;
const PLATFORM_VERSION: u32 = 0x0901;
const MEM_READ_WRITE: u64 = 1 << 0;
const MEM_READ_ONLY: u64 = 1 << 2;
const MEM_USE_HOST_PTR: u64 = 1 << 3;

type Object = *mut c_void;

/// Declares functions of the library and where they are kept.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($parameter:ty),*) -> $result:ty;)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($parameter),*) -> $result),* }

        impl Functions {
            /// The functions, if the library and all of them are there.
            fn load() -> Option<Functions> {
                // SAFETY: loading runs the constructors of the library, which is the system's loader of OpenCL drivers.
                let library = unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_NOW) };
                if library.is_null() {
                    return None;
                }
                $(
                    // SAFETY: the library is open and stays so.
                    let $field = unsafe { libc::dlsym(library, $name.as_ptr()) };
                    if $field.is_null() {
                        return None;
                    }
                )*
                // SAFETY: the functions of these names have these types, by the specification of OpenCL 1.2.
                Some(unsafe { Functions { $($field: std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($parameter),*) -> $result>($field)),* } })
            }
        }
    };
}

functions! {
    platforms = c"clGetPlatformIDs": fn(u32, *mut Object, *mut u32) -> i32;
    platform_info = c"clGetPlatformInfo": fn(Object, u32, usize, *mut c_void, *mut usize) -> i32;
    devices = c"clGetDeviceIDs": fn(Object, u64, u32, *mut Object, *mut u32) -> i32;
    device_info = c"clGetDeviceInfo": fn(Object, u32, usize, *mut c_void, *mut usize) -> i32;
    context = c"clCreateContext": fn(*const isize, u32, *const Object, *const c_void, *mut c_void, *mut i32) -> Object;
    queue = c"clCreateCommandQueue": fn(Object, Object, u64, *mut i32) -> Object;
    program = c"clCreateProgramWithSource": fn(Object, u32, *const *const c_char, *const usize, *mut i32) -> Object;
    build = c"clBuildProgram": fn(Object, u32, *const Object, *const c_char, *const c_void, *mut c_void) -> i32;
    kernel = c"clCreateKernel": fn(Object, *const c_char, *mut i32) -> Object;
    buffer = c"clCreateBuffer": fn(Object, u64, usize, *mut c_void, *mut i32) -> Object;
    argument = c"clSetKernelArg": fn(Object, u32, usize, *const c_void) -> i32;
    enqueue = c"clEnqueueNDRangeKernel": fn(Object, Object, u32, *const usize, *const usize, *const usize, u32, *const c_void, *mut c_void) -> i32;
    read = c"clEnqueueReadBuffer": fn(Object, Object, u32, usize, usize, *mut c_void, u32, *const c_void, *mut c_void) -> i32;
    finish = c"clFinish": fn(Object) -> i32;
    release_buffer = c"clReleaseMemObject": fn(Object) -> i32;
    release_kernel = c"clReleaseKernel": fn(Object) -> i32;
}

/// The first CPU that OpenCL offers, with the kernels built for it. Lives as long as the process.
pub struct OpenCl {
    functions: Functions,
    context: Object,
    queue: Object,
    program: Object,
    name: String,
}

fn worked(what: &str, status: i32) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what}: error {status}")) }
}

impl OpenCl {
    /// Opens it; says `not installed` if there is none.
    pub fn open() -> Result<OpenCl, String> {
        let functions = Functions::load().ok_or("not installed")?;
        let (mut platform, mut device, mut count, mut status) = (null_mut(), null_mut(), 0, 0);
        // SAFETY: pointers are to variables of the types that the functions write, lengths are theirs, and every object comes from the call
        // that makes it, checked before it is used.
        unsafe {
            if (functions.platforms)(1, &mut platform, &mut count) != 0 || count == 0 {
                return Err("not installed".into());
            }
            if (functions.devices)(platform, DEVICE_TYPE_CPU, 1, &mut device, &mut count) != 0 || count == 0 {
                return Err("no CPU offered".into());
            }
            let (mut version, mut model) = ([0u8; 256], [0u8; 256]);
            worked(
                "version",
                (functions.platform_info)(platform, PLATFORM_VERSION, 255, version.as_mut_ptr().cast(), null_mut()),
            )?;
            worked("name", (functions.device_info)(device, DEVICE_NAME, 255, model.as_mut_ptr().cast(), null_mut()))?;
            let text = |bytes: &[u8]| {
                CStr::from_bytes_until_nul(bytes).map_or_else(|_| String::new(), |text| text.to_string_lossy().into())
            };
            let name = format!("{}, {}", text(&version), text(&model));
            let context = (functions.context)(null(), 1, &device, null(), null_mut(), &mut status);
            worked("context", status)?;
            let queue = (functions.queue)(context, device, 0, &mut status);
            worked("queue", status)?;
            let source = CString::new(SOURCE).expect("no zero byte");
            let program = (functions.program)(context, 1, &source.as_ptr(), null(), &mut status);
            worked("program", status)?;
            worked("build", (functions.build)(program, 1, &device, c"-cl-std=CL1.2".as_ptr(), null(), null_mut()))?;
            Ok(OpenCl { functions, context, queue, program, name })
        }
    }

    /// What it calls itself.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// A case made ready, if there is a kernel for it.
    pub fn prepare<'a>(&'a self, case: &'a Case) -> Result<Dispatch<'a>, String> {
        // These names are taken in OpenCL C.
        let name = if matches!(case.name, "xor" | "mix" | "exp" | "sin") { format!("{}_", case.name) } else { case.name.into() };
        if !SOURCE.contains(&format!(" {name}(")) {
            return Err("not written".into());
        }
        let name = CString::new(name).expect("no zero byte");
        let mut status = 0;
        // SAFETY: as in `open`; inputs outlive the dispatch that borrows them and are only read.
        unsafe {
            let kernel = (self.functions.kernel)(self.program, name.as_ptr(), &mut status);
            worked("kernel", status)?;
            let mut dispatch = Dispatch { opencl: self, kernel, buffers: Vec::new(), case };
            for input in &case.inputs {
                let flags = MEM_READ_ONLY | MEM_USE_HOST_PTR;
                let buffer =
                    (self.functions.buffer)(self.context, flags, input.len() * 4, input.as_ptr().cast_mut().cast(), &mut status);
                worked("input", status)?;
                dispatch.buffers.push(buffer);
            }
            let output = (self.functions.buffer)(self.context, MEM_READ_WRITE, case.output * 4, null_mut(), &mut status);
            worked("output", status)?;
            dispatch.buffers.push(output);
            for (n, buffer) in dispatch.buffers.iter().enumerate() {
                worked(
                    "argument",
                    (self.functions.argument)(kernel, n as u32, size_of::<Object>(), (&raw const *buffer).cast()),
                )?;
            }
            Ok(dispatch)
        }
    }
}

/// A kernel with its buffers.
pub struct Dispatch<'a> {
    opencl: &'a OpenCl,
    kernel: Object,
    buffers: Vec<Object>,
    case: &'a Case,
}

impl Dispatch<'_> {
    /// Runs it and waits for its end.
    pub fn run(&self) -> Result<(), String> {
        let group = self.case.program.workgroup_size().map(|size| size as usize);
        let grid = self.case.config.grid_override.expect("every case has a grid");
        let global: [usize; 3] = std::array::from_fn(|axis| grid[axis] as usize * group[axis]);
        let OpenCl { functions, queue, .. } = self.opencl;
        // SAFETY: the kernel has its arguments, which live as long as the dispatch; sizes have three axes.
        unsafe {
            let (global, local) = (global.as_ptr(), group.as_ptr());
            worked("enqueue", (functions.enqueue)(*queue, self.kernel, 3, null(), global, local, 0, null(), null_mut()))?;
            worked("finish", (functions.finish)(*queue))
        }
    }

    /// What it wrote.
    pub fn output(&self) -> Result<Vec<u32>, String> {
        let mut words = vec![0u32; self.case.output];
        let OpenCl { functions, queue, .. } = self.opencl;
        let buffer = *self.buffers.last().expect("the output is there");
        // SAFETY: the words are as many as the buffer has, and the call waits until they are written.
        let status =
            unsafe { (functions.read)(*queue, buffer, 1, 0, words.len() * 4, words.as_mut_ptr().cast(), 0, null(), null_mut()) };
        worked("read", status)?;
        Ok(words)
    }
}

impl Drop for Dispatch<'_> {
    fn drop(&mut self) {
        // SAFETY: they were made by `prepare` and nothing runs any more. What cannot be released is lost until the process ends.
        unsafe {
            for buffer in &self.buffers {
                (self.opencl.functions.release_buffer)(*buffer);
            }
            (self.opencl.functions.release_kernel)(self.kernel);
        }
    }
}
