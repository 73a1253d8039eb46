"""The parts of scripts/bench that read through the C interface: `load`, `made` and `peers`."""
import glob
import itertools
import os
import shutil
import subprocess
import tempfile


class Loads:
    """Of a Bench, whose other methods it calls; FEW, ROWS and USUAL are its."""

    def told_seconds(self, program, *arguments):
        """The seconds that a program of tests/bench prints."""
        run = subprocess.run([os.path.join(self.args.build, "tests", program), *map(str, arguments)],
                             cwd=self.dir, check=True, capture_output=True, text=True)
        return float(run.stdout.split()[0])

    def load_seconds(self, blob, threads, verify=0, direct=0):
        """Seconds to read all layers into memory that is allocated before."""
        return self.told_seconds("load_bench", blob, threads, verify, direct)

    def cold_seconds(self, blob, program, *arguments):
        """Seconds that a program tells, once the page cache has dropped the blob."""
        for name in glob.glob(os.path.join(blob, "*")):
            with open(name, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return self.told_seconds(program, *arguments)

    def load_blobs(self, backend, flags):
        self.build("load_bench")
        source = self.checkpoint(*self.USUAL)
        for name in ("plain", "zstd"):
            self.remove(name)
            self.seconds(self.convert(source, backend, flags, out=name,
                                      compress="none" if name == "plain" else name))

    def load(self):
        for backend, flags, _ in self.FEW:
            self.load_blobs(backend, flags)
            for threads in self.powers():
                for verify in (0, 1):
                    self.note("load", f"{backend}, {threads} threads{', verified' if verify else ''}: "
                              "plain over compressed",
                              self.ratio(lambda: self.load_seconds("plain", threads, verify),
                                         lambda: self.load_seconds("zstd", threads, verify)),
                              ">= 0.95")
            self.cold(backend)
        self.remove("plain", "zstd")

    def cold(self, backend):
        self.build("device_bench")
        with tempfile.TemporaryDirectory(prefix="mxfp4-bench-", dir=self.args.disk) as disk:
            for name, threads in itertools.product(("plain", "zstd"), (1, 8)):
                blob = os.path.join(disk, name)
                shutil.copytree(self.path(name), blob, dirs_exist_ok=True)
                files = glob.glob(os.path.join(blob, "layer-*"))
                device = lambda: self.cold_seconds(blob, "device_bench", threads, *files)
                for direct, what in ((1, "direct"), (0, "through the page cache")):
                    self.note("load", f"{backend}, {name}, cold, {threads} threads, {what}", self.ratio(
                        device, lambda: self.cold_seconds(blob, "load_bench", blob, threads, 0, direct)))

    def made_seconds(self, source, backend, flags):
        words = flags.replace("--", "").split()
        maker = os.path.join(os.path.dirname(__file__), "made_seconds.py")
        command = ["/usr/bin/python3", maker, source, f"backend={backend}", *map("=".join, zip(words[::2], words[1::2]))]
        places = {"MXFP4_REPACK": "mxfp4-repack", "MXFP4_REPACK_LIBRARY": "libmxfp4_repack.so.0"}
        run = subprocess.run(command, cwd=self.dir, check=True, capture_output=True, text=True, env={
            **os.environ, **{key: os.path.join(os.path.abspath(self.args.build), name) for key, name in places.items()}})
        return float(run.stdout)

    def made(self):
        for target in ("mxfp4-repack", "libmxfp4_repack.so.0"):
            self.build(target)
        source = self.checkpoint(1, 16)
        (reading, flags, _), *others = self.ROWS
        read = lambda: self.made_seconds(source, reading, flags)
        for row in others:
            self.note("made", f"{row[0]}, of reading", self.ratio(read, lambda: self.made_seconds(source, *row[:2])))

    def peers(self):
        backend, flags, _ = self.FEW[0]
        self.load_blobs(backend, flags)
        ours = lambda: self.load_seconds("plain", 0)
        self.note("peers", "cat >/dev/null, of reading into memory",
                  self.ratio(lambda: self.seconds("cat plain/*.safetensors >/dev/null"), ours))
        reader = ("import glob, time; from safetensors.numpy import load_file; start = time.monotonic(); "
                  "[load_file(name) for name in glob.glob('plain/*.safetensors')]; "
                  "print(time.monotonic() - start)")
        peer = [self.args.python, "-c", reader]
        if subprocess.run([self.args.python, "-c", "import safetensors.numpy"],
                          capture_output=True).returncode != 0:
            print("peers        safetensors: not installed", flush=True)
        else:
            run = lambda: float(subprocess.run(peer, cwd=self.dir, check=True, capture_output=True,
                                               text=True).stdout)
            self.note("peers", "safetensors.numpy, of reading into memory", self.ratio(run, ours), ">= 1")
        self.remove("plain", "zstd")
