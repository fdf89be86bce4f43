"""The engine of sinks into tables. A database adds a dialect, a connection and a sink class (docs/writing-a-sink.md).

A `TableSink` is the description in a pipeline. Opened, it is

    TwoPhaseTableSink or WriteAheadTableSink    what the roles call (open_sink)
      OpenTarget                                the database: marker transactions, claims, removal of rows (target)
        Branches                                prepared transactions
        OwnTables                               Lockstep's tables: markers, ranges, owners (own_tables)
        OpenOutput                              one output and its table: preflight, reading back, comparing (output)
          TableLoad                             rows into a table: staging, upserts, trials (load)

Each of them speaks SQL through the `Dialect` (dialect), whose `RowEncoding` turns Arrow batches into the server's load
format.
"""
