"""What the sources print, beside what this book computes: printed values, rules, verdicts, the ledger."""
