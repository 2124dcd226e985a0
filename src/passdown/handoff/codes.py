"""Small integers that stand for the closed vocabularies in the tables, and the bytes form of identity text.

Identity text is stored as UTF-8 bytes so that no collation of any engine ever compares it; vocabularies as integers so
that no engine's ENUM is needed. A code is never reused for another word.
"""

from __future__ import annotations

import hashlib
from typing import Final

ASSURANCE: Final = {"host_read": 1, "caller_supplied": 2, "referenced": 3}
MATERIALIZATION: Final = {"captured": 1, "referenced": 2}
IDENTITY: Final = {"asserted": 1, "authenticated": 2}
CITATION_KIND: Final = {"source": 1, "artifact": 2}
VERDICT: Final = {"accepted": 1, "declined": 2}
COMMIT_BASIS: Final = {"report": 1, "said": 2}

ASSURANCE_WORD: Final = {code: word for word, code in ASSURANCE.items()}
MATERIALIZATION_WORD: Final = {code: word for word, code in MATERIALIZATION.items()}
IDENTITY_WORD: Final = {code: word for word, code in IDENTITY.items()}
VERDICT_WORD: Final = {code: word for word, code in VERDICT.items()}
COMMIT_BASIS_WORD: Final = {code: word for word, code in COMMIT_BASIS.items()}


def source_key(source_type: str, source_id: str) -> bytes:
    """32 bytes that stand for a source identity: long ids stay within every engine's key length.

    A type has no control characters, so the NUL between both parts keeps different pairs apart.
    """
    return hashlib.sha256(source_type.encode() + b"\0" + source_id.encode()).digest()
