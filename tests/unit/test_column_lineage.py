"""What a job says of its outputs' columns: what of it is believed, and how much."""

from __future__ import annotations

from lockstep.column_lineage import MOST_BYTES, MOST_COLUMNS, ColumnLineage, How, Part, bounded, sealed_lineage

ID = frozenset({Part("orders", "id", How.IDENTITY)})
LINEAGE = ColumnLineage({"id": ID, "note": None}, ID)


def test_it_is_sealed_where_it_names_the_sealed_columns_in_their_order_and_sources_of_the_epoch() -> None:
    found, columns = {"rows": LINEAGE}, {"rows": ["id", "note"]}
    assert sealed_lineage(found, columns, ["orders"]) == found
    for others in ({"rows": ["note", "id"]}, {"rows": ["id"]}, {"rows": ["ID", "note"]}, {"other": ["id", "note"]}):
        assert sealed_lineage(found, others, ["orders"]) == {}
    assert sealed_lineage(found, columns, ["customers"]) == {}
    by_rows = {"rows": ColumnLineage({"id": frozenset()}, ID)}
    assert sealed_lineage(by_rows, {"rows": ["id"]}, ["customers"]) == {}


def test_an_output_of_too_many_columns_is_left_out_and_so_is_all_where_it_is_too_long() -> None:
    many = ColumnLineage({f"c{number}": None for number in range(MOST_COLUMNS + 1)})
    assert bounded({"many": many, "rows": LINEAGE}) == {"rows": LINEAGE}
    long = ColumnLineage({"x" * MOST_BYTES: None})
    assert bounded({"long": long, "rows": LINEAGE}) == {}
