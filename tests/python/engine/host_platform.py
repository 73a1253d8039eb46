"""Platforms of vLLM: CUDA or ROCm by name and device, the host by their memory."""
import torch
import world
from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import DeviceCapability, PlatformEnum


class GpuOnHost(CpuPlatform):
    device_name = "fake"

    def is_cpu(self):
        return False

    def is_cuda_alike(self):
        return False

    @classmethod
    def device_count(cls):
        return 8

    @classmethod
    def num_compute_units(cls, device_id=0):
        return 132

    @classmethod
    def import_kernels(cls):
        pass

    @classmethod
    def check_and_update_config(cls, vllm_config):
        executor = vllm_config.parallel_config.distributed_executor_backend
        super().check_and_update_config(vllm_config)
        vllm_config.parallel_config.distributed_executor_backend = executor


class CudaOnHost(GpuOnHost):
    _enum = PlatformEnum.CUDA

    def is_cuda(self):
        return True

    @classmethod
    def get_device_capability(cls, device_id=0):
        return DeviceCapability(*world.Scene.current.capability)


class RocmOnHost(GpuOnHost):
    _enum = PlatformEnum.ROCM

    def is_rocm(self):
        return True

    @classmethod
    def get_device_capability(cls, device_id=0):
        return DeviceCapability(9, 5)


assert torch
