"""Stores the results of finished batches beside the output, so that a killed job resumes.

The hidden folder ``.OUT.partial`` holds a journal with everything that the results depend on, one file per scored
batch, and the output while it is being written. A file there gets its name only when its bytes are on the disk, so the
folder holds complete results whenever a job is killed. The output is moved to its final name as the last step. A second
job with the same output is refused.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptad.errors import DataError
from ptad.files import OutputLock, read_json, sync_folder, write_atomic, write_errors, write_json

logger = logging.getLogger("ptad")

_JOURNAL = "journal.json"


class PartStore:
    """The partial results of one job, whose output goes to ``out``.

    Results that depend on anything else than the ``fingerprint``, plain JSON, are deleted.
    """

    def __init__(self, out: Path, fingerprint: dict[str, Any]) -> None:
        self.out = out
        self.folder = out.with_name(f".{out.name}.partial")
        self.staging = self.folder / out.name
        with write_errors(out, DataError):
            self._lock = OutputLock(out)
            try:
                self._open(fingerprint)
            except BaseException:
                self._lock.release()
                raise

    def _open(self, fingerprint: dict[str, Any]) -> None:
        journal = self.folder / _JOURNAL
        if self.folder.exists():
            if read_json(journal) == fingerprint:
                for partial in self.folder.glob(".*.part"):
                    partial.unlink()
                return
            logger.info("earlier results for %s belong to another model, table or setting: they are deleted", self.out)
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        try:
            write_json(journal, fingerprint)
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def get(self, start: int, n_rows: int) -> pa.RecordBatch | None:
        """Return the result of the batch that begins at row ``start``, or None if it has to be computed."""
        path = self._path(start)
        try:
            with pa.OSFile(str(path)) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
        except (OSError, pa.ArrowException):  # missing or damaged: computing it again is safe
            return None
        return batch if batch.num_rows == n_rows else None

    def put(self, start: int, batch: pa.RecordBatch) -> None:
        """Store the result of the batch that begins at row ``start``."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with write_errors(self.out, DataError):
            write_atomic(self._path(start), sink.getvalue().to_pybytes())

    def finish(self) -> None:
        """Give the output its final name and delete the stored results."""
        with write_errors(self.out, DataError):
            self.staging.replace(self.out)
            sync_folder(self.out.parent)
        self.discard()

    def close(self) -> None:
        """Release the lock on the output; stored results stay."""
        self._lock.release()

    def discard(self) -> None:
        """Delete the stored results and release the lock on the output."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:015d}.arrow"
