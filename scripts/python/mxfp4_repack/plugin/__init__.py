"""What the plug-ins of both engines share: settings, facts, sources, and the decision for each layer.

An engine's own package (mxfp4_repack.vllm, mxfp4_repack.sglang) says which functions it wraps, what it reads of
a layer, and what its conversion leaves. Nothing here imports an engine.
"""
