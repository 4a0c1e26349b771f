"""The language and what runs it: documents, diagnostics, lowering and the runtime."""
