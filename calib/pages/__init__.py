"""The way of a number to a page: runs, their execution, what they record, the published edition, verification."""
