"""As much of SGLang as the plug-in touches, on a CPU. Signatures are those of 0.5.23."""
__version__ = "0.5.23"
