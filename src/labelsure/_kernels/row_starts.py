"""Where the rows of a text file begin: a finite-state machine over its bytes, O(1) a byte.

Line breaks inside of quotes end no row. The state goes on from one block of a file to the next.
"""

from __future__ import annotations

from labelsure._kernels.compiling import kernel

ROW_START, FIELD_START, FIELD, QUOTED, QUOTE_IN_QUOTED = 0, 1, 2, 3, 4
LINE_FEED, CARRIAGE_RETURN, SPACE, TAB = 10, 13, 32, 9
STATE, N_ROWS, N_STARTS = 0, 1, 2


@kernel
def find_row_starts(block, delimiter, quote, every, counts, starts):
    """Write the positions in `block` at which each `every`-th row begins into `starts`.

    `counts` goes from one block of a file to the next: the state, the rows so far, and the starts
    of this block. A quote opens a quoted field only at the beginning of the field, as in Arrow's
    reader. Empty lines are no rows. `quote` is -1 where no byte quotes; there spaces before a row
    are no part of it, so that lines of spaces are no rows either.
    """
    state = counts[STATE]
    n_rows = counts[N_ROWS]
    n_starts = 0
    for at in range(block.size):
        byte = block[at]
        ends_line = byte in (LINE_FEED, CARRIAGE_RETURN)
        if state == ROW_START and quote < 0 and byte in (SPACE, TAB):
            continue
        if state == ROW_START and not ends_line:
            if n_rows % every == 0:
                starts[n_starts] = at
                n_starts += 1
            n_rows += 1
            state = FIELD_START
        if state == QUOTED:
            if byte == quote:
                state = QUOTE_IN_QUOTED
        elif ends_line:
            state = ROW_START
        elif byte == delimiter:
            state = FIELD_START
        elif byte == quote and state != FIELD:  # opens a field, or is the second of two
            state = QUOTED
        else:
            state = FIELD
    counts[STATE] = state
    counts[N_ROWS] = n_rows
    counts[N_STARTS] = n_starts
