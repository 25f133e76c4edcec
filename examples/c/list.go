// SPDX-License-Identifier: Apache-2.0
// Lists the tensors of a checkpoint and reads one, from Go through the C API.
//
//   go run list.go runs/a/step-000000000100-1f2e3d4c layers.0.weight
package main

/*
#cgo pkg-config: sealpoint-c
#include <sealpoint.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

func text(s C.sealpoint_string) string { return C.GoStringN(s.data, C.int(s.size)) }

// with calls f with s as the C API takes it, in memory of C.
func with(s string, f func(C.sealpoint_string) C.int32_t) C.int32_t {
	data := C.CString(s)
	defer C.free(unsafe.Pointer(data))
	return f(C.sealpoint_string{data: data, size: C.uint64_t(len(s))})
}

func check(code C.int32_t, e *C.sealpoint_error) error {
	if code == C.SEALPOINT_OK {
		return nil
	}
	defer C.sealpoint_error_free(e)
	return errors.New(text(C.sealpoint_error_text(e)))
}

func readF32(checkpoint *C.sealpoint_checkpoint, name string) ([]float32, error) {
	var info C.sealpoint_tensor_info
	var to C.sealpoint_destination
	var e *C.sealpoint_error
	C.sealpoint_init(unsafe.Pointer(&info), C.uint32_t(unsafe.Sizeof(info)))
	C.sealpoint_init(unsafe.Pointer(&to), C.uint32_t(unsafe.Sizeof(to)))
	code := with(name, func(s C.sealpoint_string) C.int32_t {
		return C.sealpoint_checkpoint_find_tensor(checkpoint, s, &info, &e)
	})
	if err := check(code, e); err != nil {
		return nil, err
	}
	// Memory of C, since a struct that C gets must not point into memory of Go.
	data := C.malloc(C.size_t(info.raw_bytes + 1))
	defer C.free(data)
	to.dtype = C.SEALPOINT_DTYPE_F32 // another dtype is an error
	to.data = data
	to.size_bytes = info.raw_bytes
	code = with(name, func(s C.sealpoint_string) C.int32_t {
		return C.sealpoint_checkpoint_read_tensor(checkpoint, s, nil, &to, nil, &e)
	})
	if err := check(code, e); err != nil {
		return nil, err
	}
	return append([]float32(nil), unsafe.Slice((*float32)(data), int(info.raw_bytes/4))...), nil
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: list CHECKPOINT [TENSOR]")
	}
	var checkpoint *C.sealpoint_checkpoint
	var e *C.sealpoint_error
	code := with(arguments[1], func(s C.sealpoint_string) C.int32_t {
		return C.sealpoint_checkpoint_open(s, nil, &checkpoint, &e)
	})
	if err := check(code, e); err != nil {
		return err
	}
	defer C.sealpoint_checkpoint_free(checkpoint)
	for i := C.uint64_t(0); ; i++ {
		var info C.sealpoint_tensor_info
		C.sealpoint_init(unsafe.Pointer(&info), C.uint32_t(unsafe.Sizeof(info)))
		if C.sealpoint_checkpoint_tensor(checkpoint, i, &info, nil) != C.SEALPOINT_OK {
			break
		}
		fmt.Println(text(info.name), text(C.sealpoint_dtype_name(info.dtype)), info.shape[:info.ndim])
	}
	if len(arguments) < 3 {
		return nil
	}
	values, err := readF32(checkpoint, arguments[2])
	fmt.Println(values)
	return err
}

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
