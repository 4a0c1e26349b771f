"""The language: documents, records, families, rules and diagnostics."""
