"""What a role may not do and would have to: all of it at once, as the statements that grant it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.errors import PreflightRefused

Name: TypeAlias = tuple[str, str]  #: schema and table; the schema itself without a table

# to make a table that isn't there is a right of its schema
_MISSING = """
    SELECT w.schema, CASE WHEN c.oid IS NULL THEN '' ELSE w.name END,
           CASE WHEN c.oid IS NULL AND w.name <> '' THEN 'CREATE' ELSE w.privilege END, current_user
    FROM unnest(%(schemas)s::text[], %(names)s::text[], %(rights)s::text[], %(made)s::bool[])
         WITH ORDINALITY w (schema, name, privilege, made, n)
    JOIN pg_namespace s ON s.nspname = w.schema::name
    LEFT JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = w.name::name
    WHERE CASE WHEN c.oid IS NOT NULL THEN NOT has_table_privilege(c.oid, w.privilege)
               WHEN w.name <> '' THEN w.made AND NOT has_schema_privilege(s.oid, 'CREATE')
               ELSE NOT has_schema_privilege(s.oid, w.privilege) END
    ORDER BY w.n
"""


def require_rights(
    cursor: Cursor, who: str, rights: Mapping[Name, tuple[str, ...]], made: Collection[Name] = ()
) -> None:
    """Raises `PreflightRefused` with a GRANT for everything that the role lacks of `rights`, and of the right to make
    those tables of `made` that aren't there."""
    wanted = [(*name, privilege, name in made) for name, privileges in rights.items() for privilege in privileges]
    columns = zip(("schemas", "names", "rights", "made"), map(list, zip(*wanted, strict=True)), strict=True)
    cursor.execute(_MISSING, dict(columns))
    found = cursor.fetchall()
    if not found:
        return
    missing: dict[Name, dict[str, None]] = {}
    for schema, table, privilege, _ in found:
        missing.setdefault((schema, table), {})[privilege] = None
    role = str(found[0][3])
    raise PreflightRefused(
        f"{who}: role {role} may not do what the sink has to; let the owner of the tables, or a superuser, run: "
        f"{' '.join(_grants(cursor, missing, role))}"
    )


def _grants(cursor: Cursor, missing: Mapping[Name, Mapping[str, None]], role: str) -> Iterator[str]:
    """One statement for each table and schema."""
    for (schema, table), privileges in missing.items():
        statement = sql.SQL("GRANT {} ON {} {} TO {};").format(
            sql.SQL(", ").join(map(sql.SQL, privileges)),
            sql.SQL("TABLE" if table else "SCHEMA"),
            sql.Identifier(schema, table) if table else sql.Identifier(schema),
            sql.Identifier(role),
        )
        yield statement.as_string(cursor)
