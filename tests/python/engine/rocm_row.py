"""One installed release of vLLM on a faked machine of AMD's: rocm_row.py SITE [CHECK...], as row.py."""
import pathlib
import sys

import aiter_mega
import engine
import kinds
import row


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    only = set(sys.argv[2:]) or {"mega"}
    if not only & {"mega"}:
        return 0
    row.REVISION = row.revision_of(site)
    print(f"== {row.REVISION} on ROCm", flush=True)
    engine.start(str(site), "gfx950")
    if "mega" in only:
        if aiter_mega.at_hand():
            aiter_mega.check(row.report, row.program, kinds.mega_proved, row.same_state, row.is_error, row.REVISION)
        else:
            print("skip mega MoE of AITER: the release has no such class, or tests/engines keeps no AITER")
    print(f"{row.REVISION} on ROCm: {row.failures} failed", flush=True)
    return 1 if row.failures else 0


if __name__ == "__main__":
    sys.exit(main())
