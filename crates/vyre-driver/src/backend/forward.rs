//! Backends inside of others: methods that are those of the field `inner`. Whoever uses these denies `clippy::missing_trait_methods`,
//! since a method that is not forwarded would silently be the default of the trait.

/// The methods that are listed.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $result {
            self.inner.$name($($arg),*)
        })*
    };
}

/// Everything that is not about running programs: what the backend is and has, its resident memory, its life.
macro_rules! forward_properties {
    () => {
        $crate::backend::forward! {
            fn id(&self) -> &'static str;
            fn version(&self) -> &'static str;
            fn device_fingerprint(&self) -> String;
            fn device_name(&self) -> String;
            fn device(&self) -> Option<::std::sync::Arc<dyn $crate::device::Device>>;
            fn pipeline_cache_snapshot(&self) -> Option<$crate::pipeline::PipelineCacheSnapshot>;
            fn allocate_resident(&self, byte_len: usize) -> Result<$crate::backend::Resource, $crate::backend::BackendError>;
            fn upload_resident(&self, resource: &$crate::backend::Resource, bytes: &[u8]) -> Result<(), $crate::backend::BackendError>;
            fn upload_resident_many(&self, uploads: &[(&$crate::backend::Resource, &[u8])]) -> Result<(), $crate::backend::BackendError>;
            fn upload_resident_at(&self, resource: &$crate::backend::Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), $crate::backend::BackendError>;
            fn upload_resident_at_many(&self, uploads: &[(&$crate::backend::Resource, usize, &[u8])]) -> Result<(), $crate::backend::BackendError>;
            fn download_resident(&self, resource: &$crate::backend::Resource) -> Result<Vec<u8>, $crate::backend::BackendError>;
            fn download_resident_range(&self, resource: &$crate::backend::Resource, offset: usize, length: usize) -> Result<Vec<u8>, $crate::backend::BackendError>;
            fn download_resident_ranges(&self, ranges: &[(&$crate::backend::Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, $crate::backend::BackendError>;
            fn free_resident(&self, resource: $crate::backend::Resource) -> Result<(), $crate::backend::BackendError>;
            fn resident_size(&self, resource: &$crate::backend::Resource) -> Result<u64, $crate::backend::BackendError>;
            fn copy_resident(&self, from: &$crate::backend::Resource, from_offset: usize, to: &$crate::backend::Resource, to_offset: usize, length: usize) -> Result<(), $crate::backend::BackendError>;
            fn supported_ops(&self) -> &::std::collections::HashSet<::vyre_foundation::ir::OpId>;
            fn supports_subgroup_ops(&self) -> bool;
            fn supports_f16(&self) -> bool;
            fn supports_bf16(&self) -> bool;
            fn supports_f64(&self) -> bool;
            fn supports_tensor_cores(&self) -> bool;
            fn supports_async_compute(&self) -> bool;
            fn supports_indirect_dispatch(&self) -> bool;
            fn supports_speculation(&self) -> bool;
            fn supports_persistent_thread_dispatch(&self) -> bool;
            fn supports_grid_sync(&self) -> bool;
            fn allows_host_grid_sync_split(&self) -> bool;
            fn is_distributed(&self) -> bool;
            fn max_workgroup_size(&self) -> [u32; 3];
            fn max_compute_workgroups_per_dimension(&self) -> u32;
            fn max_compute_invocations_per_workgroup(&self) -> u32;
            fn subgroup_size(&self) -> Option<u32>;
            fn max_storage_buffer_bytes(&self) -> u64;
            fn prepare(&self) -> Result<(), $crate::backend::BackendError>;
            fn flush(&self) -> Result<(), $crate::backend::BackendError>;
            fn shutdown(&self) -> Result<(), $crate::backend::BackendError>;
            fn device_lost(&self) -> bool;
            fn try_recover(&self) -> Result<(), $crate::backend::BackendError>;
            fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)>;
        }
    };
}

pub(crate) use {forward, forward_properties};
