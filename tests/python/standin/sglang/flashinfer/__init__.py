"""Scales in tiles of 128 rows and 4 columns, as CUTLASS reads them."""
import torch


def block_scale_interleave(scale):
    experts, rows, columns = scale.shape
    if rows % 128 or columns % 4:
        raise NotImplementedError("padding")
    tiles = scale.numpy().reshape(experts, rows // 128, 4, 32, columns // 4, 4).transpose(0, 1, 4, 3, 2, 5)
    return torch.from_numpy(tiles.copy().reshape(-1))
