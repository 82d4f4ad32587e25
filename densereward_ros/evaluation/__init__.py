"""How good the scores of recordings are: every metric on a folder of results, as a table and as JSON."""
