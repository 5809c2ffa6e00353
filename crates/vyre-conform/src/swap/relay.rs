//! Buffers that go from backend to backend.
//!
//! A buffer is wherever it was last written or copied to. A backend that has no resident data is given bytes for every dispatch and gives them
//! back; to others a buffer is sent when a dispatch there needs it and the copy that is there is not the current one. Nothing is read back before
//! another backend needs it, so that writes that a device has only queued are seen to arrive.

use std::fmt;
use vyre_driver::{BackendError, DispatchConfig, Resource, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_worker::{SequenceStep, caught};

/// Why data did not get from one backend to the other, or a dispatch on them did not run.
#[derive(Clone, PartialEq, Debug)]
pub enum HandOverError {
    /// There is no such buffer.
    NoBuffer {
        /// The number that was used.
        buffer: usize,
        /// How many there are.
        buffers: usize,
    },
    /// There is no such backend.
    NoBackend {
        /// The number that was used.
        backend: usize,
        /// How many there are.
        backends: usize,
    },
    /// The program has another number of buffers.
    Bindings {
        /// How many it has.
        expected: usize,
        /// How many were bound.
        found: usize,
    },
    /// One buffer is bound twice, and one of the two is written.
    Aliased {
        /// The buffer.
        buffer: usize,
    },
    /// What comes from a backend is not as long as the buffer.
    Size {
        /// The buffer.
        buffer: usize,
        /// The backend that gave the bytes.
        backend: &'static str,
        /// Bytes of the buffer.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// The buffer is to be read, and nobody has written it.
    Unwritten {
        /// The buffer.
        buffer: usize,
    },
    /// The device is gone, and what was on it.
    Lost {
        /// The backend.
        backend: &'static str,
        /// The buffer whose only copy was there, if one was asked for.
        buffer: Option<usize>,
        /// What was said.
        reason: String,
    },
    /// The backend refused or failed.
    Backend {
        /// The backend.
        backend: &'static str,
        /// What it said.
        error: BackendError,
    },
    /// The backend panicked.
    Panicked {
        /// The backend.
        backend: &'static str,
        /// What it said.
        message: String,
    },
}

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandOverError::NoBuffer { buffer, buffers } => write!(f, "there is no buffer {buffer}; there are {buffers}"),
            HandOverError::NoBackend { backend, backends } => write!(f, "there is no backend {backend}; there are {backends}"),
            HandOverError::Bindings { expected, found } => write!(f, "the program has {expected} buffers, and {found} are bound"),
            HandOverError::Aliased { buffer } => write!(f, "buffer {buffer} is bound twice, and one of the two is written"),
            HandOverError::Size { buffer, backend, expected, found } => {
                write!(f, "`{backend}` gives {found} bytes for buffer {buffer}, which has {expected}")
            }
            HandOverError::Unwritten { buffer } => write!(f, "buffer {buffer} is read, but was never written"),
            HandOverError::Lost { backend, buffer: Some(buffer), reason } => {
                write!(f, "buffer {buffer} was lost with `{backend}`: {reason}")
            }
            HandOverError::Lost { backend, buffer: None, reason } => write!(f, "`{backend}` is lost: {reason}"),
            HandOverError::Backend { backend, error } => write!(f, "`{backend}`: {error}"),
            HandOverError::Panicked { backend, message } => write!(f, "`{backend}` panicked: {message}"),
        }
    }
}

impl std::error::Error for HandOverError {}

/// Where the bytes of a buffer are.
#[derive(Clone, Debug)]
enum Held {
    /// Nowhere yet.
    Absent,
    /// Of before somebody else wrote the buffer.
    Old(Resource),
    /// What the buffer holds.
    Current(Resource),
}

impl Held {
    fn current(&self) -> Option<&Resource> {
        match self {
            Held::Current(resource) => Some(resource),
            Held::Old(_) | Held::Absent => None,
        }
    }

    fn resource(&self) -> Option<&Resource> {
        match self {
            Held::Current(resource) | Held::Old(resource) => Some(resource),
            Held::Absent => None,
        }
    }
}

struct Buffer {
    bytes: usize,
    /// What it holds, if the host knows.
    here: Option<Vec<u8>>,
    /// By backend.
    copies: Vec<Held>,
}

/// Buffers that several backends work on in turn. Dropping it frees what is resident.
pub struct Relay<'a> {
    backends: Vec<&'a dyn VyreBackend>,
    buffers: Vec<Buffer>,
    hand_overs: u64,
    bytes_moved: u64,
}

impl<'a> Relay<'a> {
    /// No buffers yet.
    #[must_use]
    pub fn new(backends: &[&'a dyn VyreBackend]) -> Relay<'a> {
        Relay { backends: backends.to_vec(), buffers: Vec::new(), hand_overs: 0, bytes_moved: 0 }
    }

    /// A buffer that holds these bytes; gives its number.
    pub fn fill(&mut self, bytes: Vec<u8>) -> usize {
        let copies = vec![Held::Absent; self.backends.len()];
        self.buffers.push(Buffer { bytes: bytes.len(), here: Some(bytes), copies });
        self.buffers.len() - 1
    }

    /// A buffer of so many bytes that a dispatch has to write before anybody reads it; gives its number.
    pub fn reserve(&mut self, bytes: usize) -> usize {
        let copies = vec![Held::Absent; self.backends.len()];
        self.buffers.push(Buffer { bytes, here: None, copies });
        self.buffers.len() - 1
    }

    /// How often a buffer went to a backend that did not have its bytes.
    #[must_use]
    pub fn hand_overs(&self) -> u64 {
        self.hand_overs
    }

    /// Bytes that went so.
    #[must_use]
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_moved
    }

    /// Runs a program on a backend, on buffers by binding number. After a failure the buffers hold what they held before.
    ///
    /// # Errors
    ///
    /// See [`HandOverError`].
    pub fn step(
        &mut self,
        backend: usize,
        program: &Program,
        config: &DispatchConfig,
        buffers: &[usize],
    ) -> Result<(), HandOverError> {
        let device = self.backend(backend)?;
        let bound = program.interface().bound.clone();
        if bound.len() != buffers.len() {
            return Err(HandOverError::Bindings { expected: bound.len(), found: buffers.len() });
        }
        let access = |i: usize| program.buffers()[i].access;
        for (n, buffer) in buffers.iter().enumerate() {
            let twice =
                |other: usize| buffers[other] == *buffer && (access(bound[n]).is_output() || access(bound[other]).is_output());
            if (0..n).any(twice) {
                return Err(HandOverError::Aliased { buffer: *buffer });
            }
        }
        let mut resources = Vec::with_capacity(buffers.len());
        for (i, n) in bound.iter().zip(buffers) {
            self.buffer(*n)?;
            resources.push(match access(*i).is_input() {
                true => self.bring(backend, *n)?,
                false => self.room(backend, *n)?,
            });
        }
        let run = || device.dispatch_resident_timed(program, &resources, config);
        let is_resident = resources.iter().any(|resource| matches!(resource, Resource::Resident(_)));
        let outputs = match is_resident {
            true => asked(device, run)?.outputs,
            false => self.on_bytes(device, program, config, &resources, buffers)?,
        };
        let mut given = outputs.into_iter();
        for ((i, n), resource) in bound.iter().zip(buffers).zip(resources) {
            if !access(*i).is_output() {
                continue;
            }
            let current = match resource {
                Resource::Resident(_) => Held::Current(resource),
                Resource::Borrowed(_) => {
                    let bytes = given.next().unwrap_or_default();
                    self.fits(*n, device, bytes.len())?;
                    Held::Current(Resource::Borrowed(bytes))
                }
            };
            let buffer = &mut self.buffers[*n];
            buffer.here = None;
            for copy in &mut buffer.copies {
                if let Held::Current(old) = std::mem::replace(copy, Held::Absent) {
                    *copy = Held::Old(old);
                }
            }
            buffer.copies[backend] = current;
        }
        Ok(())
    }

    /// What a buffer holds; every backend that has it current must agree on it.
    ///
    /// # Errors
    ///
    /// See [`HandOverError`]. That two backends disagree is the one named last failing with [`BackendError::Other`].
    pub fn read(&mut self, buffer: usize) -> Result<Vec<u8>, HandOverError> {
        self.buffer(buffer)?;
        let mut bytes = self.buffers[buffer].here.clone();
        for backend in 0..self.backends.len() {
            let Some(found) = self.download(backend, buffer)? else { continue };
            match &bytes {
                Some(bytes) if *bytes != found => {
                    let error =
                        BackendError::new(format!("it has other bytes of buffer {buffer}, which it was given and only read"));
                    return Err(HandOverError::Backend { backend: self.backends[backend].id(), error });
                }
                Some(_) => {}
                None => bytes = Some(found),
            }
        }
        bytes.ok_or(HandOverError::Unwritten { buffer })
    }

    /// Frees what is resident.
    ///
    /// # Errors
    ///
    /// A backend that does not take its own memory back.
    pub fn finish(mut self) -> Result<(), HandOverError> {
        self.free()
    }

    /// Frees everything, and tells the first failure. What was lost with a device is not there to be given back.
    fn free(&mut self) -> Result<(), HandOverError> {
        let mut outcome = Ok(());
        for buffer in self.buffers.drain(..) {
            for (copy, backend) in buffer.copies.iter().zip(&self.backends) {
                if let Some(resource @ Resource::Resident(_)) = copy.resource()
                    && !backend.device_lost()
                {
                    outcome = outcome.and(asked(*backend, || backend.free_resident(resource.clone())));
                }
            }
        }
        outcome
    }

    fn backend(&self, backend: usize) -> Result<&'a dyn VyreBackend, HandOverError> {
        let backends = self.backends.len();
        self.backends.get(backend).copied().ok_or(HandOverError::NoBackend { backend, backends })
    }

    fn buffer(&self, buffer: usize) -> Result<&Buffer, HandOverError> {
        self.buffers.get(buffer).ok_or(HandOverError::NoBuffer { buffer, buffers: self.buffers.len() })
    }

    fn fits(&self, buffer: usize, backend: &dyn VyreBackend, found: usize) -> Result<(), HandOverError> {
        let expected = self.buffers[buffer].bytes as u64;
        match expected == found as u64 {
            true => Ok(()),
            false => Err(HandOverError::Size { buffer, backend: backend.id(), expected, found: found as u64 }),
        }
    }

    /// Memory for a buffer on a backend, whatever it holds; bytes where the backend has no resident data.
    fn room(&mut self, backend: usize, buffer: usize) -> Result<Resource, HandOverError> {
        if let Some(resource) = self.buffers[buffer].copies[backend].resource() {
            return Ok(resource.clone());
        }
        let (device, bytes) = (self.backends[backend], self.buffers[buffer].bytes);
        let resource = match asked(device, || device.allocate_resident(bytes)) {
            Ok(resource) => resource,
            Err(HandOverError::Backend { error: BackendError::UnsupportedFeature { .. }, .. }) => Resource::Borrowed(Vec::new()),
            Err(error) => return Err(error),
        };
        self.buffers[buffer].copies[backend] = Held::Old(resource.clone());
        Ok(resource)
    }

    /// The buffer on a backend with what it holds.
    fn bring(&mut self, backend: usize, buffer: usize) -> Result<Resource, HandOverError> {
        if let Some(resource) = self.buffers[buffer].copies[backend].current() {
            return Ok(resource.clone());
        }
        let bytes = match self.buffers[buffer].here.take() {
            Some(bytes) => bytes,
            None => {
                let mut found = None;
                for other in 0..self.backends.len() {
                    found = match found {
                        Some(found) => Some(found),
                        None => self.download(other, buffer)?,
                    };
                }
                found.ok_or(HandOverError::Unwritten { buffer })?
            }
        };
        let device = self.backends[backend];
        let resource = match self.room(backend, buffer)? {
            Resource::Borrowed(_) => Resource::Borrowed(bytes.clone()),
            resource => {
                asked(device, || device.upload_resident(&resource, &bytes))?;
                resource
            }
        };
        self.hand_overs += 1;
        self.bytes_moved += bytes.len() as u64;
        self.buffers[buffer].here = Some(bytes);
        self.buffers[buffer].copies[backend] = Held::Current(resource.clone());
        Ok(resource)
    }

    /// What a backend has of a buffer, if that is what the buffer holds.
    fn download(&self, backend: usize, buffer: usize) -> Result<Option<Vec<u8>>, HandOverError> {
        let device = self.backends[backend];
        let found = match self.buffers[buffer].copies[backend].current() {
            None => return Ok(None),
            Some(Resource::Borrowed(bytes)) => bytes.clone(),
            Some(resource) => match asked(device, || device.download_resident(resource)) {
                Err(HandOverError::Lost { backend, reason, .. }) => {
                    return Err(HandOverError::Lost { backend, buffer: Some(buffer), reason });
                }
                found => found?,
            },
        };
        self.fits(buffer, device, found.len())?;
        Ok(Some(found))
    }

    /// A dispatch on a backend that has no resident data.
    fn on_bytes(
        &self,
        device: &dyn VyreBackend,
        program: &Program,
        config: &DispatchConfig,
        resources: &[Resource],
        buffers: &[usize],
    ) -> Result<Vec<Vec<u8>>, HandOverError> {
        // The length of an output is that of the buffer it is bound to, as in a sequence.
        let bytes = |(resource, n): (&Resource, &usize)| match resource {
            Resource::Borrowed(bytes) if !bytes.is_empty() => bytes.clone(),
            Resource::Borrowed(_) | Resource::Resident(_) => vec![0; self.buffers[*n].bytes],
        };
        let held: Vec<Vec<u8>> = resources.iter().zip(buffers).map(bytes).collect();
        let step = SequenceStep { program: program.clone(), config: config.clone(), buffers: (0..held.len()).collect() };
        let (case, _) = step.case(&held, u64::MAX).map_err(|failure| HandOverError::Backend {
            backend: device.id(),
            error: BackendError::InvalidProgram { fix: failure.to_string() },
        })?;
        asked(device, || device.dispatch_borrowed(program, &case.input_slices(), &case.config))
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        // Whoever wants to know calls `finish`.
        let _ = self.free();
    }
}

/// A call to a backend that may panic.
fn asked<T>(backend: &dyn VyreBackend, call: impl FnOnce() -> Result<T, BackendError>) -> Result<T, HandOverError> {
    let id = backend.id();
    match caught(call) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(BackendError::DeviceLost { reason })) => Err(HandOverError::Lost { backend: id, buffer: None, reason }),
        Ok(Err(error)) if backend.device_lost() => {
            Err(HandOverError::Lost { backend: id, buffer: None, reason: error.to_string() })
        }
        Ok(Err(error)) => Err(HandOverError::Backend { backend: id, error }),
        Err(message) => Err(HandOverError::Panicked { backend: id, message }),
    }
}
