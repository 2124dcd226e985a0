"""Every limit that more than one room knows. Characters are code points after NFC, sizes are bytes.

Sources: the numbers of the report RFC ("Limits and errors") and of the handoff core.
"""

from typing import Final

MAX_DEPTH: Final = 64
MAX_SAFE_INTEGER: Final = 2**53 - 1
REQUEST_BODY_BYTES: Final = 12 * 1024 * 1024

IDENTIFIER: Final = 256
SOURCE_TYPE: Final = 64
SOURCE_ID: Final = 512
ARTIFACT_ID: Final = 128
NAME: Final = 256
DESCRIPTION: Final = 2_000
CURSOR: Final = 512

SOURCE_BODY_BYTES: Final = 256 * 1024
WORKTREE_PATHS: Final = 2_000
WORKTREE_HASHED_BYTES: Final = 64 * 1024 * 1024
COMMIT_PATHS: Final = 500

OBJECTIVE: Final = 8_192
STATEMENT: Final = 4_096
STATEMENTS: Final = 64
CITATIONS: Final = 32
OMISSIONS: Final = 64
HANDOFF_BYTES: Final = 32_768
HANDOFF_BYTES_CONFIGURABLE: Final = 262_144

KEY: Final = 64
TITLE: Final = 256
LABELS: Final = 32
LABEL: Final = 128
EXTERNAL_REFS: Final = 32
PROVIDER: Final = 64
EXTERNAL_ID: Final = 256
URL: Final = 2_048

LIST_DEFAULT: Final = 50
LIST_MAX: Final = 100
REPORT_WORKSTREAMS: Final = 100
REPORT_BYTES: Final = 10_485_760
HEAD_RETRIES: Final = 3
