// SPDX-License-Identifier: Apache-2.0
// Lists the tensors of a checkpoint and reads one, from Rust through the C API; no crate is needed.
//
//   rustc list.rs $(pkg-config --libs sealpoint-c)
//   ./list runs/a/step-000000000100-1f2e3d4c layers.0.weight

use std::ffi::c_void;
use std::ptr::{null, null_mut};

#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    data: *const u8,
    size: u64,
}
impl Text {
    fn of(text: &str) -> Text {
        Text { data: text.as_ptr(), size: text.len() as u64 }
    }
    fn to_string(self) -> String {
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size as usize) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

#[repr(C)]
struct TensorInfo {
    struct_size: u32,
    dtype: u32,
    name: Text,
    index: u64,
    element_size: u32,
    ndim: u32,
    chunk_size_bytes: u64,
    raw_bytes: u64,
    shard_count: u64,
    shape: [u64; 32],
}

#[repr(C)]
struct Destination {
    struct_size: u32,
    dtype: u32,
    data: *mut c_void,
    size_bytes: u64,
    strides_bytes: *const i64,
    origin_bytes: u64,
    stride_count: u32,
    reserved: u32,
    memory: u32,
    device: i32,
    stream: *mut c_void,
}

extern "C" {
    fn sealpoint_checkpoint_open(path: Text, options: *const c_void, out: *mut *mut c_void, error: *mut *mut c_void) -> i32;
    fn sealpoint_checkpoint_free(checkpoint: *mut c_void);
    fn sealpoint_checkpoint_tensor(checkpoint: *const c_void, index: u64, out: *mut TensorInfo, error: *mut *mut c_void) -> i32;
    fn sealpoint_checkpoint_find_tensor(checkpoint: *const c_void, name: Text, out: *mut TensorInfo, error: *mut *mut c_void) -> i32;
    fn sealpoint_checkpoint_read_tensor(
        checkpoint: *const c_void, tensor: Text, region: *const c_void, destination: *const Destination,
        options: *const c_void, error: *mut *mut c_void) -> i32;
    fn sealpoint_dtype_name(dtype: u32) -> Text;
    fn sealpoint_error_text(error: *const c_void) -> Text;
    fn sealpoint_error_free(error: *mut c_void);
}

const F32: u32 = 12;

/// The line of an error, which is freed.
fn check(code: i32, error: *mut c_void) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    let text = unsafe { sealpoint_error_text(error) }.to_string();
    unsafe { sealpoint_error_free(error) };
    Err(text)
}

/// Freed when it goes out of scope, on each way out.
struct Checkpoint(*mut c_void);
impl Drop for Checkpoint {
    fn drop(&mut self) {
        unsafe { sealpoint_checkpoint_free(self.0) }
    }
}

impl Checkpoint {
    fn open(path: &str) -> Result<Checkpoint, String> {
        let (mut handle, mut error) = (null_mut(), null_mut());
        check(unsafe { sealpoint_checkpoint_open(Text::of(path), null(), &mut handle, &mut error) }, error)?;
        Ok(Checkpoint(handle))
    }
    fn tensors(&self) -> Vec<TensorInfo> {
        let mut all = Vec::new();
        loop {
            let mut info: TensorInfo = unsafe { std::mem::zeroed() };
            info.struct_size = std::mem::size_of::<TensorInfo>() as u32;
            if unsafe { sealpoint_checkpoint_tensor(self.0, all.len() as u64, &mut info, null_mut()) } != 0 {
                return all;
            }
            all.push(info);
        }
    }
    fn read_f32(&self, name: &str) -> Result<Vec<f32>, String> {
        let mut info: TensorInfo = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of::<TensorInfo>() as u32;
        let mut error = null_mut();
        check(unsafe { sealpoint_checkpoint_find_tensor(self.0, Text::of(name), &mut info, &mut error) }, error)?;
        let mut values = vec![0f32; (info.raw_bytes / 4) as usize];
        let mut to: Destination = unsafe { std::mem::zeroed() };
        to.struct_size = std::mem::size_of::<Destination>() as u32;
        to.dtype = F32; // another dtype is an error
        to.data = values.as_mut_ptr() as *mut c_void;
        to.size_bytes = info.raw_bytes;
        let code = unsafe { sealpoint_checkpoint_read_tensor(self.0, Text::of(name), null(), &to, null(), &mut error) };
        check(code, error)?;
        Ok(values)
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let path = arguments.get(1).ok_or("usage: list CHECKPOINT [TENSOR]")?;
    let checkpoint = Checkpoint::open(path)?;
    for info in checkpoint.tensors() {
        let dtype = unsafe { sealpoint_dtype_name(info.dtype) }.to_string();
        println!("{} {} {:?}", info.name.to_string(), dtype, &info.shape[..info.ndim as usize]);
    }
    if let Some(name) = arguments.get(2) {
        println!("{:?}", checkpoint.read_f32(name)?);
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Err(text) = run(&arguments) {
        eprintln!("{text}");
        std::process::exit(1);
    }
}
