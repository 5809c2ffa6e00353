"""Gives every shader in a folder (*.wgsl) to Dawn's compiler, and prints what it refuses, as JSON: the name of the file and Dawn's message.

Dawn runs without a device here: its null backend compiles and checks as the others do. `sys.argv` is the folder that pydawn is in, and the
folder with the shaders.
"""

import ctypes
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
from pydawn import utils, webgpu


def null_adapter():
    got = {}

    def answer(status, adapter, message, _):
        got.update(status=status, adapter=adapter, message=utils.from_wgpu_str(message))

    info = webgpu.WGPURequestAdapterCallbackInfo()
    info.mode = webgpu.WGPUCallbackMode_WaitAnyOnly
    info.callback = webgpu.WGPURequestAdapterCallback(answer)
    options = webgpu.WGPURequestAdapterOptions()
    options.backendType = webgpu.WGPUBackendType_Null
    utils.wait(webgpu.wgpuInstanceRequestAdapterF(utils.instance, options, info))
    if got["status"] != webgpu.WGPURequestAdapterStatus_Success:
        sys.exit("Dawn has no null backend: " + got["message"])
    return got["adapter"]


device = utils.request_device_sync(null_adapter())
refused = {}
names = sorted(name for name in os.listdir(sys.argv[2]) if name.endswith(".wgsl"))
for name in names:
    with open(os.path.join(sys.argv[2], name), encoding="utf-8") as file:
        text = file.read()
    try:
        webgpu.wgpuShaderModuleRelease(utils.create_shader_module(device, text))
    except RuntimeError as error:
        refused[name] = str(error)
json.dump({"shaders": len(names), "refused": refused}, sys.stdout)
