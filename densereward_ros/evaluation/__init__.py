"""How good the scores of recordings are: every metric on a folder of results, as a table and as JSON."""

TOLERANCE_S = 2.0  # after a failure, in which an event is of it, unless said otherwise
