"""python -m mxfp4_repack: the program, as the command mxfp4-repack."""
from mxfp4_repack.program import main

main()
