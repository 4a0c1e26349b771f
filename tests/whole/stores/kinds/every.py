"""All kinds of stores."""

from __future__ import annotations

from tests.whole.stores.kinds.clickhouse import ClickHouseStore
from tests.whole.stores.kinds.kind import Store, Table
from tests.whole.stores.kinds.postgres import PostgresStore
from tests.whole.stores.kinds.s3 import S3Store

POSTGRES: Table = PostgresStore()
CLICKHOUSE: Table = ClickHouseStore()
S3: Store = S3Store()
EVERY = (POSTGRES, CLICKHOUSE, S3)
