from __future__ import annotations

import pytest
import torch

from profiler.bench.failures import classified, classify
from profiler.errors import DeviceMemoryError, SpecError, UnsupportedError


def test_it_tells_an_allocation_the_host_refuses() -> None:
    with pytest.raises(DeviceMemoryError, match="out of memory on cpu"), classified("cpu"):
        torch.empty(1 << 55)


def test_it_tells_an_allocation_the_device_refuses() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    known = classify(error, "cuda:0")
    assert isinstance(known, DeviceMemoryError)
    assert "20.00 GiB" in known.message


def test_it_names_the_operator_a_dtype_lacks() -> None:
    with pytest.raises(UnsupportedError, match=r"linalg\.inv is not supported"), classified("cpu"):
        torch.linalg.inv(torch.ones(2, 2, dtype=torch.float16))


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("Could not run 'aten::foo' with arguments from the 'NPU' backend.", "aten::foo"),
        ("The operator 'aten::bar' is not currently implemented for the MPS device.", "aten::bar"),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "addmm_impl_cpu_"),
        ("MambaModel does not support an attention implementation through sdpa", "MambaModel"),
    ],
)
def test_it_names_the_operator_a_back_end_lacks(message: str, operator: str) -> None:
    known = classify(NotImplementedError(message), "npu:0")
    assert isinstance(known, UnsupportedError)
    assert known.message.startswith(f"{operator} is not supported on npu:0")


def test_it_leaves_faults_of_ours_alone() -> None:
    assert classify(RuntimeError("shape mismatch"), "cpu") is None
    with pytest.raises(ZeroDivisionError), classified("cpu"):
        raise ZeroDivisionError


def test_it_passes_a_user_error_on() -> None:
    with pytest.raises(SpecError, match="mine"), classified("cpu"):
        raise SpecError("mine")
