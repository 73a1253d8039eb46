"""Names that the plug-ins of all engines share."""

# Where a layer's converted weights come from.
BLOB, CHECKPOINT, EITHER = "blob", "checkpoint", "either"
# MXFP4_REPACK_BLOB of a model directory of `convert --include-rest`: the blob is inside the model that the engine
# loads, whichever that is.
IN_THE_MODEL = "model:"

# The tensors of a layer, in the order in which vLLM's converters return them.
SLOTS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")
# Attributes of a layer: where its weights come from; set from its first conversion on.
ORIGIN, CONVERTED = "_mxfp4_repack_origin", "_mxfp4_repack_converted"
# Attribute of a layer whose tensors equal a source's: what a reload has to know of them.
PLACES = "_mxfp4_repack_places"
BLOCK = 32  # codes that share a scale
